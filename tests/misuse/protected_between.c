/*
 * A range is protected between launches: those before it are none of what is found later (test_misuse.py reads how many may have been it).
 *
 * expect log exit 0 "cuconst: violation: an unknown writer wrote 2048 bytes of read-only 'behind', found by cuconst_unprotect"
 * expect deny exit 0 "cuconst: violation: an unknown writer wrote 2048 bytes of read-only 'behind', found by cuconst_unprotect"
 * expect strict exit 86 "cuconst: stopped: an unknown writer wrote 2048 bytes of read-only 'behind', found by cuconst_unprotect"
 */
#include "misuse.h"

int main(void)
{
	start();
	protect(p, 64, "in front");
	fill(p + 1024, 7, 16);
	fill(p + 1024, 8, 16);
	cuconst_handle handle = protect(p + 2048, 2048, "behind");
	fill(p + 1024, 9, COUNT - 256);
	CHECK(cuStreamSynchronize(stream));
	EXPECT(cuconst_unprotect(handle) == CUCONST_ERROR_CHANGED);
	return 0;
}
