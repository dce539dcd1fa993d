/*
 * An atomic is a write.
 *
 * expect log exit 0 "cuconst: violation: kernel add_one (cuLaunchKernel, argument 0) wrote 1024 bytes of read-only 'p'"
 * expect deny exit 0 "cuconst: denied: kernel add_one (cuLaunchKernel, argument 0) would write read-only 'p'"
 * expect strict exit 86 "cuconst: stopped: kernel add_one (cuLaunchKernel, argument 0) wrote 1024 bytes of read-only 'p'"
 * expect twins exit 86 "cuconst: stopped: kernel add_one (cuLaunchKernel, argument 0) would write read-only 'p', which the GPU refused: CUDA error 700 from cuStreamSynchronize"
 */
#include "misuse.h"

int main(void)
{
	start();
	int count = COUNT;
	void *params[] = {&p, &count};
	protect(p, SIZE, "p"); /* 0x01010101 + 1 changes the lowest byte of each word */
	EXPECT(refused(try_launch("add_one", COUNT, stream, params)));
	expect_unharmed(p, 1);
	CHECK(cuStreamSynchronize(stream));
	return 0;
}
