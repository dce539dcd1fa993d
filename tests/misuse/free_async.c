/*
 * Stream-ordered free.
 *
 * expect log exit 0 "cuconst: freed: cuMemFreeAsync freed read-only 'p'"
 * expect deny exit 0 "cuconst: freed: cuMemFreeAsync freed read-only 'p'"
 * expect strict exit 0 "cuconst: freed: cuMemFreeAsync freed read-only 'p'"
 */
#include "misuse.h"

int main(void)
{
	start();
	CUdeviceptr pooled;
	CHECK(cuMemAllocAsync(&pooled, SIZE, stream));
	CHECK(cuStreamSynchronize(stream));
	cuconst_handle handle = protect(pooled + 16, 100, "p");
	CHECK(cuMemFreeAsync(pooled, stream));
	EXPECT(cuconst_unprotect(handle) == CUCONST_ERROR_STALE_HANDLE);
	CHECK(cuStreamSynchronize(stream));
	return 0;
}
