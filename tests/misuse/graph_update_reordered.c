/*
 * An update pairs nodes by the graphs' shape, not by the order in which they were added: what was disabled before stays
 * what it was.
 *
 * expect log exit 0 ""
 */
#include "misuse.h"

/*
 * Two sets, one after the other: first into `first`, then into `second`. Added in that order, or the other way round.
 */
static CUgraph graph_of(CUdeviceptr first, CUdeviceptr second, int reversed, CUgraphNode nodes[2])
{
	CUgraph graph;
	CUDA_MEMSET_NODE_PARAMS one = {.dst = first, .value = 7, .elementSize = 4, .width = 16, .height = 1};
	CUDA_MEMSET_NODE_PARAMS two = {.dst = second, .value = 7, .elementSize = 4, .width = 16, .height = 1};
	CHECK(cuGraphCreate(&graph, 0));
	CHECK(cuGraphAddMemsetNode(&nodes[reversed], graph, NULL, 0, reversed ? &two : &one, context));
	CHECK(cuGraphAddMemsetNode(&nodes[!reversed], graph, NULL, 0, reversed ? &one : &two, context));
	CHECK(cuGraphAddDependencies(graph, &nodes[0], &nodes[1], NULL, 1));
	return graph;
}

int main(void)
{
	CUgraphNode nodes[2], others[2];
	CUgraphExec exec;
	CUgraphExecUpdateResultInfo info;
	start();
	CHECK(cuGraphInstantiate(&exec, graph_of(q, p, 0, nodes), 0));
	CHECK(cuGraphNodeSetEnabled(exec, nodes[1], 0));
	protect(p, SIZE, "p");
	CHECK(cuGraphLaunch(exec, stream));
	CHECK(cuGraphExecUpdate(exec, graph_of(q, p, 1, others), &info));
	CHECK(cuGraphLaunch(exec, stream));
	CHECK(cuStreamSynchronize(stream));
	EXPECT(byte_at(p) == 1 && byte_at(q) == 7);
	return 0;
}
