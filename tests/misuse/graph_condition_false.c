/*
 * A write in the body of a condition that does not hold: nothing is written, and nothing is said. deny cannot know, and refuses.
 *
 * expect log exit 0 ""
 * expect deny exit 0 "cuconst: denied: cuGraphLaunch (memset node) would write 64 bytes of read-only 'p'"
 * expect strict exit 0 ""
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
	CHECK(cuGraphConditionalHandleCreate(&handle, graph, context, 0, CU_GRAPH_COND_ASSIGN_DEFAULT));
	CUgraphNodeParams params = {
		.type = CU_GRAPH_NODE_TYPE_CONDITIONAL,
		.conditional = {.handle = handle, .type = CU_GRAPH_COND_TYPE_IF, .size = 1, .ctx = context}};
	CHECK(cuGraphAddNode(&node, graph, NULL, NULL, 0, &params));
	CUDA_MEMSET_NODE_PARAMS set = {.dst = p, .value = 7, .elementSize = 4, .width = 16, .height = 1};
	CHECK(cuGraphAddMemsetNode(&node, params.conditional.phGraph_out[0], NULL, 0, &set, context));
	CHECK(cuGraphInstantiate(&exec, graph, 0));
	protect(p, SIZE, "p");
	EXPECT(refused(cuGraphLaunch(exec, stream)));
	CHECK(cuStreamSynchronize(stream));
	EXPECT(byte_at(p) == 1);
	return 0;
}
