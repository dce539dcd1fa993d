/* A graph of one conditional node, whose body `body` sets 64 bytes of p to 7. */
#ifndef MISUSE_CONDITIONAL_H
#define MISUSE_CONDITIONAL_H

#include "misuse.h"

/* `value` of the condition at each launch, `bodies` of the node. */
static CUgraphExec conditional_set(CUgraphConditionalNodeType type, unsigned value, unsigned bodies, unsigned body)
{
	CUgraph graph;
	CUgraphNode node;
	CUgraphExec exec;
	CUgraphConditionalHandle handle;
	CHECK(cuGraphCreate(&graph, 0));
	CHECK(cuGraphConditionalHandleCreate(&handle, graph, context, value, CU_GRAPH_COND_ASSIGN_DEFAULT));
	CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_CONDITIONAL,
	                            .conditional = {.handle = handle, .type = type, .size = bodies, .ctx = context}};
	CHECK(cuGraphAddNode(&node, graph, NULL, NULL, 0, &params));
	CUDA_MEMSET_NODE_PARAMS set = {.dst = p, .value = 7, .elementSize = 4, .width = 16, .height = 1};
	CHECK(cuGraphAddMemsetNode(&node, params.conditional.phGraph_out[body], NULL, 0, &set, context));
	CHECK(cuGraphInstantiate(&exec, graph, 0));
	return exec;
}

#endif
