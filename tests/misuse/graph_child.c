/*
 * The write is in a child graph.
 *
 * expect log exit 0 "cuconst: violation: cuGraphLaunch (memset node) wrote 64 bytes of read-only 'p'"
 * expect deny exit 0 "cuconst: denied: cuGraphLaunch (memset node) would write 64 bytes of read-only 'p'"
 * expect strict exit 86 "cuconst: stopped: cuGraphLaunch (memset node) would write 64 bytes of read-only 'p'"
 */
#include "misuse.h"

int main(void)
{
	start();
	CUgraph graph;
	CUgraphNode node;
	CUgraphExec exec;
	CHECK(cuGraphCreate(&graph, 0));
	CUgraph outer;
	CUDA_MEMSET_NODE_PARAMS params = {.dst = p, .value = 7, .elementSize = 4, .width = 16, .height = 1};
	CHECK(cuGraphAddMemsetNode(&node, graph, NULL, 0, &params, context));
	CHECK(cuGraphCreate(&outer, 0));
	CHECK(cuGraphAddChildGraphNode(&node, outer, NULL, 0, graph));
	CHECK(cuGraphInstantiate(&exec, outer, 0));
	protect(p, SIZE, "p");
	EXPECT(refused(cuGraphLaunch(exec, stream)));
	CHECK(cuStreamSynchronize(stream));
	return 0;
}
