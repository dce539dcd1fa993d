/* The older kinds of node parameters, as CUgraphNodeParams. */
#ifndef SOFTGPU_NODE_FORMS_H
#define SOFTGPU_NODE_FORMS_H

#include <cuda.h>
#include <string.h>

static inline CUgraphNodeParams of_type(CUgraphNodeType type)
{
	CUgraphNodeParams params;

	memset(&params, 0, sizeof(params));
	params.type = type;
	return params;
}

/* The first version of kernel parameters ends before `kern`. */
static inline CUgraphNodeParams of_kernel_v1(const CUDA_KERNEL_NODE_PARAMS_v1 *kernel)
{
	CUgraphNodeParams params = of_type(CU_GRAPH_NODE_TYPE_KERNEL);

	memcpy(&params.kernel, kernel, sizeof(*kernel));
	return params;
}

static inline CUgraphNodeParams of_kernel(const CUDA_KERNEL_NODE_PARAMS_v2 *kernel)
{
	CUgraphNodeParams params = of_type(CU_GRAPH_NODE_TYPE_KERNEL);

	memcpy(&params.kernel, kernel, sizeof(*kernel));
	return params;
}

static inline CUgraphNodeParams of_copy(const CUDA_MEMCPY3D *copy)
{
	CUgraphNodeParams params = of_type(CU_GRAPH_NODE_TYPE_MEMCPY);

	params.memcpy.copyParams = *copy;
	return params;
}

static inline CUgraphNodeParams of_set(const CUDA_MEMSET_NODE_PARAMS_v1 *memset_params)
{
	CUgraphNodeParams params = of_type(CU_GRAPH_NODE_TYPE_MEMSET);

	memcpy(&params.memset, memset_params, sizeof(*memset_params));
	return params;
}

static inline CUgraphNodeParams of_host(const CUDA_HOST_NODE_PARAMS_v1 *host)
{
	CUgraphNodeParams params = of_type(CU_GRAPH_NODE_TYPE_HOST);

	memcpy(&params.host, host, sizeof(*host));
	return params;
}

static inline CUgraphNodeParams of_values(const CUDA_BATCH_MEM_OP_NODE_PARAMS_v1 *values)
{
	CUgraphNodeParams params = of_type(CU_GRAPH_NODE_TYPE_BATCH_MEM_OP);

	params.memOp.ctx = values->ctx;
	params.memOp.count = values->count;
	params.memOp.paramArray = values->paramArray;
	params.memOp.flags = values->flags;
	return params;
}

static inline CUgraphNodeParams of_event(CUgraphNodeType type, CUevent event)
{
	CUgraphNodeParams params = of_type(type);

	params.eventRecord.event = event;
	return params;
}

static inline CUgraphNodeParams of_child(CUgraph graph)
{
	CUgraphNodeParams params = of_type(CU_GRAPH_NODE_TYPE_GRAPH);

	params.graph.graph = graph;
	return params;
}

#endif
