/*
 * A pointer in device memory is in no parameter slot: the check at the end of the protection finds the change.
 *
 * expect log exit 0 "cuconst: violation: an unknown writer wrote 4 bytes of read-only 'p', found by cuconst_unprotect"
 * expect deny exit 0 "cuconst: violation: an unknown writer wrote 4 bytes of read-only 'p', found by cuconst_unprotect"
 * expect strict exit 86 "cuconst: stopped: an unknown writer wrote 4 bytes of read-only 'p', found by cuconst_unprotect"
 */
#include "misuse.h"

int main(void)
{
	start();
	CUdeviceptr table;
	int value = 7;
	void *params[] = {&table, &value};
	CHECK(cuMemAlloc(&table, 8));
	CHECK(cuMemcpyHtoD(table, &p, 8));
	cuconst_handle handle = protect(p, SIZE, "p");
	launch("fill_table", 1, stream, params);
	CHECK(cuStreamSynchronize(stream));
	EXPECT(cuconst_unprotect(handle) == CUCONST_ERROR_CHANGED);
	return 0;
}
