/*
 * A kernel stores into a read-only array that it was given.
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
	protect(p, SIZE, "p");
	CUresult result = try_fill(p, 7, COUNT);
	EXPECT(refused(result));
	CHECK(cuStreamSynchronize(stream));
	EXPECT(byte_at(p) == (result ? 1 : 7));
	expect_unharmed(p, 1);
	return 0;
}
