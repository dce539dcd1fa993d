/*
 * A reader first, the writer second: the second is named.
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
	int count = COUNT;
	void *params[] = {&p, &q, &count};
	protect(p, SIZE, "p");
	launch("copy", COUNT, stream, params);
	guilty_fill(p, 7, COUNT);
	CHECK(cuStreamSynchronize(stream));
	return 0;
}
