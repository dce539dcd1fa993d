/*
 * The parameters come as one buffer (extra).
 *
 * expect log exit 0 "cuconst: violation: kernel fill (cuLaunchKernel, argument 0) wrote 4096 bytes of read-only 'p'"
 * expect deny exit 0 "cuconst: denied: kernel fill (cuLaunchKernel, argument 0) would write read-only 'p'"
 * expect strict exit 86 "cuconst: stopped: kernel fill (cuLaunchKernel, argument 0) wrote 4096 bytes of read-only 'p'"
 * expect twins exit 86 "cuconst: stopped: kernel fill (cuLaunchKernel, argument 0) would write read-only 'p', which the GPU refused: CUDA error 700 from cuStreamSynchronize"
 */
#include "misuse.h"

int main(void)
{
	start();
	struct {
		CUdeviceptr out;
		int value, count;
	} block = {p, 7, COUNT};
	size_t bytes = sizeof block;
	void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &block, CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes,
	                 CU_LAUNCH_PARAM_END};
	protect(p, SIZE, "p");
	EXPECT(refused(cuLaunchKernel(kernel("fill"), COUNT / 256, 1, 1, 256, 1, 1, 0, stream, NULL, extra)));
	expect_unharmed(p, 1);
	CHECK(cuStreamSynchronize(stream));
	return 0;
}
