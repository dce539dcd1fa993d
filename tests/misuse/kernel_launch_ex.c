/*
 * cuLaunchKernelEx: the stream is in its configuration.
 *
 * expect log exit 0 "cuconst: violation: kernel fill (cuLaunchKernelEx, argument 0) wrote 4096 bytes of read-only 'p'"
 * expect deny exit 0 "cuconst: denied: kernel fill (cuLaunchKernelEx, argument 0) would write read-only 'p'"
 * expect strict exit 86 "cuconst: stopped: kernel fill (cuLaunchKernelEx, argument 0) wrote 4096 bytes of read-only 'p'"
 * expect twins exit 86 "cuconst: stopped: kernel fill (cuLaunchKernelEx, argument 0) would write read-only 'p', which the GPU refused: CUDA error 700 from cuStreamSynchronize"
 */
#include "misuse.h"

int main(void)
{
	start();
	int value = 7, count = COUNT;
	void *params[] = {&p, &value, &count};
	CUlaunchConfig config = {.gridDimX = COUNT / 256,
	                         .gridDimY = 1,
	                         .gridDimZ = 1,
	                         .blockDimX = 256,
	                         .blockDimY = 1,
	                         .blockDimZ = 1,
	                         .hStream = stream};
	protect(p, SIZE, "p");
	EXPECT(refused(cuLaunchKernelEx(&config, kernel("fill"), params, NULL)));
	expect_unharmed(p, 1);
	CHECK(cuStreamSynchronize(stream));
	return 0;
}
