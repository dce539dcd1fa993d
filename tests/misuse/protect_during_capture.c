/*
 * A range that is protected while a capture runs gets its baseline when the capture has ended.
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
	CUgraph graph;
	int count = COUNT;
	void *params[] = {&p, &q, &count};
	CHECK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
	protect(p, SIZE, "p");
	CHECK(cuStreamEndCapture(stream, &graph)); /* the capture was not disturbed */
	launch("copy", COUNT, stream, params);
	guilty_fill(p, 7, COUNT);
	CHECK(cuStreamSynchronize(stream));
	return 0;
}
