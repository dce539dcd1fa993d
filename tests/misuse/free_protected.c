/*
 * Freeing protected memory is recorded, never refused; the protection ends.
 *
 * expect log exit 0 "cuconst: freed: cuMemFree_v2 freed read-only 'p'"
 * expect deny exit 0 "cuconst: freed: cuMemFree_v2 freed read-only 'p'"
 * expect strict exit 0 "cuconst: freed: cuMemFree_v2 freed read-only 'p'"
 */
#include "misuse.h"

int main(void)
{
	start();
	cuconst_handle handle = protect(p, SIZE, "p");
	CHECK(cuMemFree(p));
	EXPECT(cuconst_unprotect(handle) == CUCONST_ERROR_STALE_HANDLE);
	return 0;
}
