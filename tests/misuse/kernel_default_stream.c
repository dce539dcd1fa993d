/*
 * The legacy default stream.
 *
 * expect log exit 0 "cuconst: violation: kernel fill (cuLaunchKernel, argument 0) wrote 4096 bytes of read-only 'p'"
 * expect deny exit 0 "cuconst: denied: kernel fill (cuLaunchKernel, argument 0) would write read-only 'p'"
 * expect strict exit 86 "cuconst: stopped: kernel fill (cuLaunchKernel, argument 0) wrote 4096 bytes of read-only 'p'"
 * expect twins exit 86 "cuconst: stopped: kernel fill (cuLaunchKernel, argument 0) would write read-only 'p', which the GPU refused: CUDA error 700 from cuCtxSynchronize"
 */
#include "misuse.h"

int main(void)
{
	start();
	int value = 7, count = COUNT;
	void *params[] = {&p, &value, &count};
	protect(p, SIZE, "p");
	EXPECT(refused(try_launch("fill", COUNT, NULL, params)));
	expect_unharmed(p, 1);
	CHECK(cuCtxSynchronize());
	return 0;
}
