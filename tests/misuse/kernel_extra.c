/*
 * The parameters come as one buffer (extra).
 *
 * expect log exit 0 "cuconst: violation: kernel fill (cuLaunchKernel, argument 0) wrote 4096 bytes of read-only 'p'"
 * expect deny exit 0 "cuconst: violation: kernel fill (cuLaunchKernel, argument 0) wrote 4096 bytes of read-only 'p'"
 * expect strict exit 86 "cuconst: stopped: kernel fill (cuLaunchKernel, argument 0) wrote 4096 bytes of read-only 'p'"
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
	CHECK(cuLaunchKernel(kernel("fill"), COUNT / 256, 1, 1, 256, 1, 1, 0, stream, NULL, extra));
	CHECK(cuStreamSynchronize(stream));
	return 0;
}
