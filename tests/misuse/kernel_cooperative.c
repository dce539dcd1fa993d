/*
 * A cooperative launch.
 *
 * expect log exit 0 "cuconst: violation: kernel fill (cuLaunchCooperativeKernel, argument 0) wrote 4096 bytes of read-only 'p'"
 * expect deny exit 0 "cuconst: denied: kernel fill (cuLaunchCooperativeKernel, argument 0) would write read-only 'p'"
 * expect strict exit 86 "cuconst: stopped: kernel fill (cuLaunchCooperativeKernel, argument 0) wrote 4096 bytes of read-only 'p'"
 * expect twins exit 86 "cuconst: stopped: kernel fill (cuLaunchCooperativeKernel, argument 0) would write read-only 'p', which the GPU refused: CUDA error 700 from cuStreamSynchronize"
 */
#include "misuse.h"

int main(void)
{
	start();
	int value = 7, count = COUNT;
	void *params[] = {&p, &value, &count};
	protect(p, SIZE, "p");
	EXPECT(refused(cuLaunchCooperativeKernel(kernel("fill"), COUNT / 256, 1, 1, 256, 1, 1, 0, stream, params)));
	expect_unharmed(p, 1);
	CHECK(cuStreamSynchronize(stream));
	return 0;
}
