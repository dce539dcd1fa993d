/*
 * A range of odd start and length; its last byte is written.
 *
 * expect log exit 0 "cuconst: violation: kernel fill (cuLaunchKernel, argument 0) wrote 1 byte of read-only 'odd'"
 * expect deny exit 0 "cuconst: denied: kernel fill (cuLaunchKernel, argument 0) would write read-only 'odd'"
 * expect strict exit 86 "cuconst: stopped: kernel fill (cuLaunchKernel, argument 0) wrote 1 byte of read-only 'odd'"
 * expect twins exit 86 "cuconst: stopped: kernel fill (cuLaunchKernel, argument 0) would write read-only 'odd', which the GPU refused: CUDA error 700 from cuStreamSynchronize"
 */
#include "misuse.h"

int main(void)
{
	start();
	protect(p + 13, 1000, "odd"); /* its last byte is p + 1012 */
	guilty_fill(p + 1012, 7, 1);
	CHECK(cuStreamSynchronize(stream));
	return 0;
}
