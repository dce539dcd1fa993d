/*
 * A driver of the few functions by which a graph is read: graphs and nodes are numbers, and each node that sets memory
 * sets 64 bytes at 4096.
 */
#ifndef CUCONST_TESTS_UNIT_EFFECT_FAKE_GRAPH_H
#define CUCONST_TESTS_UNIT_EFFECT_FAKE_GRAPH_H

#include "shim/driver.h"

#define GRAPH(n) ((CUgraph)(uintptr_t)(0x1000 + (n)))
#define NODE(n) ((CUgraphNode)(uintptr_t)(0x2000 + (n)))

static CUresult fake_memset(CUgraphNode node, CUDA_MEMSET_NODE_PARAMS *params)
{
	*params = (CUDA_MEMSET_NODE_PARAMS){.dst = 4096, .elementSize = 1, .width = 64, .height = 1};
	return CUDA_SUCCESS;
}

static CUresult fake_no_memcpy(CUgraphNode node, CUDA_MEMCPY3D *params)
{
	return CUDA_ERROR_INVALID_VALUE;
}

/* Which nodes a graph has, of what type each is, and which graph one holds, is the test's to say. */
static void fake_graph_start(__typeof__(drv.cuGraphGetNodes) get_nodes, __typeof__(drv.cuGraphNodeGetType) get_type,
                             __typeof__(drv.cuGraphChildGraphNodeGetGraph) get_child)
{
	drv.cuGraphGetNodes = get_nodes;
	drv.cuGraphNodeGetType = get_type;
	drv.cuGraphChildGraphNodeGetGraph = get_child;
	drv.cuGraphMemsetNodeGetParams = fake_memset;
	drv.cuGraphMemcpyNodeGetParams = fake_no_memcpy;
}

#endif
