/*
 * cuconst_check() is a look: launches before it are none of what is found later (test_misuse.py reads how many may have been it).
 *
 * expect log exit 0 "cuconst: violation: an unknown writer wrote 2048 bytes of read-only 'behind', found by cuconst_unprotect"
 * expect deny exit 0 "cuconst: violation: an unknown writer wrote 2048 bytes of read-only 'behind', found by cuconst_unprotect"
 * expect strict exit 86 "cuconst: stopped: an unknown writer wrote 2048 bytes of read-only 'behind', found by cuconst_unprotect"
 */
#include "misuse.h"

int main(void)
{
	start();
	cuconst_handle handle = protect(p + 2048, 2048, "behind");
	for (int i = 0; i < 5; i++)
		fill(p, 7 + i, 16);
	CHECK(cuStreamSynchronize(stream));
	EXPECT(cuconst_check(handle) == CUCONST_OK);
	fill(p, 99, COUNT);
	CHECK(cuStreamSynchronize(stream));
	EXPECT(cuconst_unprotect(handle) == CUCONST_ERROR_CHANGED);
	return 0;
}
