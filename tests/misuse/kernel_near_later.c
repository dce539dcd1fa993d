/*
 * Launches beside a range are checked the 1st, 2nd, 4th... time; the third runs over. The next look finds it and lists
 * the kernels that stored beside the range since the last one (test_misuse.py reads them).
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
	fill(p, 7, COUNT / 2);
	fill(p, 8, COUNT / 2);
	fill(p, 9, COUNT);
	CHECK(cuStreamSynchronize(stream));
	EXPECT(cuconst_unprotect(handle) == CUCONST_ERROR_CHANGED);
	return 0;
}
