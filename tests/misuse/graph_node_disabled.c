/*
 * A disabled node does not write.
 *
 * expect log exit 0 ""
 * expect deny exit 0 ""
 * expect strict exit 0 ""
 */
#include "misuse.h"

int main(void)
{
	start();
	CUgraph graph;
	CUgraphNode node;
	CUgraphExec exec;
	CHECK(cuGraphCreate(&graph, 0));
	CUDA_MEMSET_NODE_PARAMS params = {.dst = p, .value = 7, .elementSize = 4, .width = 16, .height = 1};
	CHECK(cuGraphAddMemsetNode(&node, graph, NULL, 0, &params, context));
	CHECK(cuGraphInstantiate(&exec, graph, 0));
	CHECK(cuGraphNodeSetEnabled(exec, node, 0));
	protect(p, SIZE, "p");
	CHECK(cuGraphLaunch(exec, stream));
	CHECK(cuStreamSynchronize(stream));
	EXPECT(byte_at(p) == 1);
	return 0;
}
