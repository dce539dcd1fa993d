/*
 * Handles that are stale, doubled or never were.
 *
 * expect log exit 0 ""
 * expect deny exit 0 ""
 * expect strict exit 0 ""
 */
#include "misuse.h"

int main(void)
{
	start();
	cuconst_handle handle = protect(p, SIZE, "p"), other = protect(p, SIZE, "other");
	EXPECT(handle != other);
	EXPECT(cuconst_unprotect(0) == CUCONST_ERROR_BAD_HANDLE);
	EXPECT(cuconst_unprotect(0x123456789abcdef0) == CUCONST_ERROR_BAD_HANDLE);
	CHECK(cuconst_unprotect(handle));
	EXPECT(cuconst_unprotect(handle) == CUCONST_ERROR_STALE_HANDLE);
	EXPECT(cuconst_check(handle) == CUCONST_ERROR_STALE_HANDLE);
	CHECK(cuconst_check(other));
	CHECK(cuconst_unprotect(other));
	return 0;
}
