/*
 * A captured copy writes at each launch of its graph, not at its capture.
 *
 * expect log exit 0 "cuconst: violation: cuGraphLaunch (memcpy node) wrote 64 bytes of read-only 'p'"
 * expect deny exit 0 "cuconst: denied: cuGraphLaunch (memcpy node) would write 64 bytes of read-only 'p'"
 * expect strict exit 86 "cuconst: stopped: cuGraphLaunch (memcpy node) would write 64 bytes of read-only 'p'"
 */
#include "misuse.h"

int main(void)
{
	start();
	CUgraph graph;
	CUgraphExec exec;
	protect(p, SIZE, "p");
	CHECK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
	CHECK(cuMemcpyDtoDAsync(p, q, 64, stream));
	CHECK(cuStreamEndCapture(stream, &graph));
	CHECK(cuGraphInstantiate(&exec, graph, 0));
	EXPECT(byte_at(p) == 1);
	EXPECT(refused(cuGraphLaunch(exec, stream)));
	CHECK(cuStreamSynchronize(stream));
	return 0;
}
