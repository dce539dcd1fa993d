/*
 * A captured kernel. deny refuses it when it is captured.
 *
 * expect log exit 0 "cuconst: violation: cuGraphLaunch wrote 4096 bytes of read-only 'p'"
 * expect deny exit 0 "cuconst: denied: kernel fill (cuLaunchKernel, argument 0) would write read-only 'p'"
 * expect strict exit 86 "cuconst: stopped: cuGraphLaunch wrote 4096 bytes of read-only 'p'"
 */
#include "misuse.h"

int main(void)
{
	start();
	CUgraph graph;
	CUgraphExec exec;
	protect(p, SIZE, "p");
	CHECK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
	EXPECT(refused(try_fill(p, 7, COUNT)));
	fill(q, 5, COUNT); /* a refusal leaves the capture as it was */
	CHECK(cuStreamEndCapture(stream, &graph));
	CHECK(cuGraphInstantiate(&exec, graph, 0));
	EXPECT(byte_at(p) == 1);
	CHECK(cuGraphLaunch(exec, stream));
	CHECK(cuStreamSynchronize(stream));
	EXPECT(byte_at(q) == 5);
	expect_unharmed(p, 1);
	return 0;
}
