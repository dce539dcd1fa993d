/*
 * A kernel that reads a range and stores through an address that it loads there is checked the 1st, 2nd, 4th... time;
 * the third launch stores into the range. The next look finds it and lists the kernel (test_misuse.py reads it). strict
 * leaves none out.
 *
 * expect log exit 0 "cuconst: violation: an unknown writer wrote 4 bytes of read-only 'p', found by cuconst_unprotect"
 * expect deny exit 0 "cuconst: violation: an unknown writer wrote 4 bytes of read-only 'p', found by cuconst_unprotect"
 * expect strict exit 86 "cuconst: stopped: kernel fill_table (cuLaunchKernel, argument 0) wrote 4 bytes of read-only 'p'"
 */
#include "misuse.h"

int main(void)
{
	start();
	CUdeviceptr table[] = {q, p + 64}, at = p;
	int value = 7;
	void *params[] = {&at, &value};
	CHECK(cuMemcpyHtoD(p, table, sizeof table));
	cuconst_handle handle = protect(p, SIZE, "p");
	launch("fill_table", 1, stream, params);
	launch("fill_table", 1, stream, params);
	at = p + 8;
	launch("fill_table", 1, stream, params);
	CHECK(cuStreamSynchronize(stream));
	EXPECT(cuconst_unprotect(handle) == CUCONST_ERROR_CHANGED);
	return 0;
}
