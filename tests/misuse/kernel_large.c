/*
 * Beyond 64 KiB extents are exact to 4 KiB.
 *
 * expect log exit 0 "cuconst: violation: kernel fill (cuLaunchKernel, argument 0) wrote up to 4096 bytes of read-only 'large'"
 * expect deny exit 0 "cuconst: denied: kernel fill (cuLaunchKernel, argument 0) would write read-only 'large'"
 * expect strict exit 86 "cuconst: stopped: kernel fill (cuLaunchKernel, argument 0) wrote up to 4096 bytes of read-only 'large'"
 * expect twins exit 86 "cuconst: stopped: kernel fill (cuLaunchKernel, argument 0) would write read-only 'large', which the GPU refused: CUDA error 700 from cuStreamSynchronize"
 */
#include "misuse.h"

int main(void)
{
	start();
	CUdeviceptr large;
	CHECK(cuMemAlloc(&large, 1 << 20));
	CHECK(cuMemsetD8(large, 1, 1 << 20));
	protect(large, 1 << 20, "large");
	guilty_fill(large + 40960, 7, 3);
	CHECK(cuStreamSynchronize(stream));
	return 0;
}
