/*
 * A node with twenty bodies, of which the nineteenth writes into the range.
 *
 * expect log exit 0 "cuconst: violation: cuGraphLaunch wrote 64 bytes of read-only 'p'"
 * expect deny exit 0 "cuconst: denied: cuGraphLaunch (memset node) would write 64 bytes of read-only 'p'"
 * expect strict exit 86 "cuconst: stopped: cuGraphLaunch wrote 64 bytes of read-only 'p'"
 */
#include "misuse.h"

int main(void)
{
	start();
	CUgraph graph;
	CUgraphNode node;
	CUgraphExec exec;
	CUgraphConditionalHandle handle;
	CHECK(cuGraphCreate(&graph, 0));
	CHECK(cuGraphConditionalHandleCreate(&handle, graph, context, 18, CU_GRAPH_COND_ASSIGN_DEFAULT));
	CUgraphNodeParams params = {
		.type = CU_GRAPH_NODE_TYPE_CONDITIONAL,
		.conditional = {.handle = handle, .type = CU_GRAPH_COND_TYPE_SWITCH, .size = 20, .ctx = context}};
	CHECK(cuGraphAddNode(&node, graph, NULL, NULL, 0, &params));
	CUDA_MEMSET_NODE_PARAMS set = {.dst = p, .value = 7, .elementSize = 4, .width = 16, .height = 1};
	CHECK(cuGraphAddMemsetNode(&node, params.conditional.phGraph_out[18], NULL, 0, &set, context));
	CHECK(cuGraphInstantiate(&exec, graph, 0));
	protect(p, SIZE, "p");
	EXPECT(refused(cuGraphLaunch(exec, stream)));
	CHECK(cuStreamSynchronize(stream));
	return 0;
}
