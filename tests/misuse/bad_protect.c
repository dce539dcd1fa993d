/*
 * protect() answers bad input with an error that says which, and protects nothing.
 *
 * expect log exit 0 ""
 * expect deny exit 0 ""
 * expect strict exit 0 ""
 */
#include "misuse.h"

int main(void)
{
	start();
	cuconst_handle handle = 77;
	struct cuconst_stats stats = {.size = sizeof stats};
	int host;
	EXPECT(cuconst_protect(0, 16, "x", 0, NULL, &handle) == CUCONST_ERROR_INVALID_VALUE);
	EXPECT(cuconst_protect(p, 0, "x", 0, NULL, &handle) == CUCONST_ERROR_INVALID_VALUE);
	EXPECT(cuconst_protect(p, SIZE_MAX, "x", 0, NULL, &handle) == CUCONST_ERROR_INVALID_VALUE);
	EXPECT(cuconst_protect(p, 16, "x", 0x8000, NULL, &handle) == CUCONST_ERROR_INVALID_VALUE);
	EXPECT(cuconst_protect(p, 16, "x", 0, NULL, NULL) == CUCONST_ERROR_INVALID_VALUE);
	EXPECT(cuconst_protect((uint64_t)&host, 4, "x", 0, NULL, &handle) == CUCONST_ERROR_NOT_DEVICE);
	EXPECT(cuconst_protect(p, 1u << 30, "x", 0, NULL, &handle) == CUCONST_ERROR_OUT_OF_RANGE);
	CHECK(cuMemFree(q));
	EXPECT(cuconst_protect(q, 16, "x", 0, NULL, &handle) == CUCONST_ERROR_NOT_DEVICE);
	CHECK(cuconst_stats(&stats));
	EXPECT(handle == 77 && stats.ranges == 0);
	return 0;
}
