/*
 * A kernel runs over the end of its array into the range behind it, in the same allocation: the pointer that it was
 * given lies in no range.
 *
 * expect log exit 0 "cuconst: violation: kernel fill (cuLaunchKernel, argument 0) wrote 2048 bytes of read-only 'behind'"
 * expect deny exit 0 "cuconst: violation: kernel fill (cuLaunchKernel, argument 0) wrote 2048 bytes of read-only 'behind'"
 * expect strict exit 86 "cuconst: stopped: kernel fill (cuLaunchKernel, argument 0) wrote 2048 bytes of read-only 'behind'"
 */
#include "misuse.h"

int main(void)
{
	start();
	protect(p + 2048, 2048, "behind");
	fill(p, 7, COUNT);
	CHECK(cuStreamSynchronize(stream));
	return 0;
}
