/*
 * A store of the value that is there changes nothing, and is not seen (README, limits). deny does not wait for the
 * outcome: the argument is an output.
 *
 * expect log exit 0 ""
 * expect deny exit 0 "cuconst: denied: kernel fill (cuLaunchKernel, argument 0) would write read-only 'p'"
 * expect strict exit 0 ""
 * expect twins exit 86 "cuconst: stopped: kernel fill (cuLaunchKernel, argument 0) would write read-only 'p', which the GPU refused: CUDA error 700 from cuStreamSynchronize"
 */
#include "misuse.h"

int main(void)
{
	start();
	protect(p, SIZE, "p");
	guilty_fill(p, 0x01010101, COUNT);
	CHECK(cuStreamSynchronize(stream));
	return 0;
}
