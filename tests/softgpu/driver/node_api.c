/* The entry points that add, read and change nodes: each goes by way of CUgraphNodeParams. */
#include <string.h>

#include "tests/softgpu/driver/graph.h"
#include "tests/softgpu/driver/graph_memory.h"
#include "tests/softgpu/driver/module.h"
#include "tests/softgpu/driver/node_forms.h"

static CUresult add(CUgraphNode *ret_node, CUgraph handle, const CUgraphNode *needs, size_t count,
                    const CUgraphNodeParams *params)
{
	struct sg_node *node;
	struct sg_op op;

	static const int none[sizeof(params->reserved0) / sizeof(int)];

	if (ret_node == NULL || params == NULL || (count > 0 && needs == NULL) ||
	    memcmp(params->reserved0, none, sizeof(none)) != 0)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult status = sg_node_plan(params, &op);
	if (status != CUDA_SUCCESS)
		return status;
	sg_lock();
	struct sg_graph *graph = sg_graph_of(handle);
	if (graph == NULL) {
		sg_op_clear(&op);
		status = CUDA_ERROR_INVALID_VALUE;
	} else {
		status = sg_graph_add(graph, params->type, &op, (struct sg_node *const *)needs, count, &node);
	}
	sg_unlock();
	if (status == CUDA_SUCCESS)
		*ret_node = (CUgraphNode)node;
	return status;
}

/* An allocation node's address and a conditional node's bodies are told through its parameters. */
static CUresult add_and_tell(CUgraphNode *ret_node, CUgraph handle, const CUgraphNode *needs, size_t count,
                             CUgraphNodeParams *params)
{
	CUresult status = add(ret_node, handle, needs, count, params);

	if (status == CUDA_SUCCESS && params->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC) {
		sg_lock();
		params->alloc.dptr = ((struct sg_node *)*ret_node)->op.block->address;
		sg_unlock();
	}
	if (status == CUDA_SUCCESS && params->type == CU_GRAPH_NODE_TYPE_CONDITIONAL) {
		sg_lock();
		params->conditional.phGraph_out = (CUgraph *)((struct sg_node *)*ret_node)->op.conditional.bodies;
		sg_unlock();
	}
	return status;
}

CUresult sg_cuGraphAddNode_v2(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies,
                              const CUgraphEdgeData *dependencyData, size_t numDependencies,
                              CUgraphNodeParams *nodeParams)
{
	static const CUgraphEdgeData plain;

	for (size_t i = 0; dependencyData != NULL && i < numDependencies; i++)
		if (memcmp(&dependencyData[i], &plain, sizeof(plain)) != 0)
			return CUDA_ERROR_INVALID_VALUE;
	return add_and_tell(phGraphNode, hGraph, dependencies, numDependencies, nodeParams);
}

CUresult sg_cuGraphAddNode(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies,
                           size_t numDependencies, CUgraphNodeParams *nodeParams)
{
	return add_and_tell(phGraphNode, hGraph, dependencies, numDependencies, nodeParams);
}

/* Changes a node to other parameters of its own type. */
static CUresult set(CUgraphNode handle, const CUgraphNodeParams *params)
{
	struct sg_op op;

	CUresult status = sg_node_plan(params, &op);
	if (status != CUDA_SUCCESS)
		return status;
	sg_lock();
	struct sg_node *node = sg_node_of(handle);
	/* A conditional node stays as it was made. */
	if (node == NULL || node->type != params->type || op.kind == SG_OP_CONDITIONAL) {
		sg_op_clear(&op);
		status = CUDA_ERROR_INVALID_VALUE;
	} else {
		sg_op_clear(&node->op);
		node->op = op;
	}
	sg_unlock();
	return status;
}

CUresult sg_cuGraphNodeSetParams(CUgraphNode hNode, CUgraphNodeParams *nodeParams)
{
	return nodeParams == NULL ? CUDA_ERROR_INVALID_VALUE : set(hNode, nodeParams);
}

/* The parameters of a node of this type. */
static CUresult get(CUgraphNode handle, CUgraphNodeType type, CUgraphNodeParams *ret_params)
{
	CUresult status = CUDA_ERROR_INVALID_VALUE;

	sg_lock();
	const struct sg_node *node = sg_node_of(handle);
	if (node != NULL && node->type == type)
		status = sg_node_params(&node->op, ret_params);
	sg_unlock();
	return status;
}

CUresult sg_cuGraphAddKernelNode(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies,
                                 size_t numDependencies, const CUDA_KERNEL_NODE_PARAMS_v1 *nodeParams)
{
	if (nodeParams == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	CUgraphNodeParams params = of_kernel_v1(nodeParams);
	return add(phGraphNode, hGraph, dependencies, numDependencies, &params);
}

CUresult sg_cuGraphAddKernelNode_v2(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies,
                                    size_t numDependencies, const CUDA_KERNEL_NODE_PARAMS *nodeParams)
{
	if (nodeParams == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	CUgraphNodeParams params = of_kernel(nodeParams);
	return add(phGraphNode, hGraph, dependencies, numDependencies, &params);
}

CUresult sg_cuGraphAddMemcpyNode(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies,
                                 size_t numDependencies, const CUDA_MEMCPY3D *copyParams, CUcontext ctx)
{
	if (copyParams == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	CUgraphNodeParams params = of_copy(copyParams);
	params.memcpy.copyCtx = ctx;
	return add(phGraphNode, hGraph, dependencies, numDependencies, &params);
}

CUresult sg_cuGraphAddMemsetNode(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies,
                                 size_t numDependencies, const CUDA_MEMSET_NODE_PARAMS *memsetParams, CUcontext ctx)
{
	if (memsetParams == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	CUgraphNodeParams params = of_set(memsetParams);
	params.memset.ctx = ctx;
	return add(phGraphNode, hGraph, dependencies, numDependencies, &params);
}

CUresult sg_cuGraphAddHostNode(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies,
                               size_t numDependencies, const CUDA_HOST_NODE_PARAMS *nodeParams)
{
	if (nodeParams == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	CUgraphNodeParams params = of_host(nodeParams);
	return add(phGraphNode, hGraph, dependencies, numDependencies, &params);
}

CUresult sg_cuGraphAddChildGraphNode(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies,
                                     size_t numDependencies, CUgraph childGraph)
{
	CUgraphNodeParams params = of_child(childGraph);
	return add(phGraphNode, hGraph, dependencies, numDependencies, &params);
}

CUresult sg_cuGraphAddEmptyNode(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies,
                                size_t numDependencies)
{
	CUgraphNodeParams params = of_type(CU_GRAPH_NODE_TYPE_EMPTY);
	return add(phGraphNode, hGraph, dependencies, numDependencies, &params);
}

CUresult sg_cuGraphAddEventRecordNode(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies,
                                      size_t numDependencies, CUevent event)
{
	CUgraphNodeParams params = of_event(CU_GRAPH_NODE_TYPE_EVENT_RECORD, event);
	return add(phGraphNode, hGraph, dependencies, numDependencies, &params);
}

CUresult sg_cuGraphAddEventWaitNode(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies,
                                    size_t numDependencies, CUevent event)
{
	CUgraphNodeParams params = of_event(CU_GRAPH_NODE_TYPE_WAIT_EVENT, event);
	return add(phGraphNode, hGraph, dependencies, numDependencies, &params);
}

CUresult sg_cuGraphAddBatchMemOpNode(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies,
                                     size_t numDependencies, const CUDA_BATCH_MEM_OP_NODE_PARAMS *nodeParams)
{
	if (nodeParams == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	CUgraphNodeParams params = of_values(nodeParams);
	return add(phGraphNode, hGraph, dependencies, numDependencies, &params);
}

CUresult sg_cuGraphKernelNodeSetParams(CUgraphNode hNode, const CUDA_KERNEL_NODE_PARAMS_v1 *nodeParams)
{
	if (nodeParams == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	CUgraphNodeParams params = of_kernel_v1(nodeParams);
	return set(hNode, &params);
}

CUresult sg_cuGraphKernelNodeSetParams_v2(CUgraphNode hNode, const CUDA_KERNEL_NODE_PARAMS *nodeParams)
{
	if (nodeParams == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	CUgraphNodeParams params = of_kernel(nodeParams);
	return set(hNode, &params);
}

CUresult sg_cuGraphMemcpyNodeSetParams(CUgraphNode hNode, const CUDA_MEMCPY3D *nodeParams)
{
	if (nodeParams == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	CUgraphNodeParams params = of_copy(nodeParams);
	return set(hNode, &params);
}

CUresult sg_cuGraphMemsetNodeSetParams(CUgraphNode hNode, const CUDA_MEMSET_NODE_PARAMS *nodeParams)
{
	if (nodeParams == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	CUgraphNodeParams params = of_set(nodeParams);
	sg_cuCtxGetCurrent(&params.memset.ctx);
	return set(hNode, &params);
}

CUresult sg_cuGraphHostNodeSetParams(CUgraphNode hNode, const CUDA_HOST_NODE_PARAMS *nodeParams)
{
	if (nodeParams == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	CUgraphNodeParams params = of_host(nodeParams);
	return set(hNode, &params);
}

CUresult sg_cuGraphBatchMemOpNodeSetParams(CUgraphNode hNode, const CUDA_BATCH_MEM_OP_NODE_PARAMS *nodeParams)
{
	if (nodeParams == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	CUgraphNodeParams params = of_values(nodeParams);
	return set(hNode, &params);
}

CUresult sg_cuGraphEventRecordNodeSetEvent(CUgraphNode hNode, CUevent event)
{
	CUgraphNodeParams params = of_event(CU_GRAPH_NODE_TYPE_EVENT_RECORD, event);
	return set(hNode, &params);
}

CUresult sg_cuGraphEventWaitNodeSetEvent(CUgraphNode hNode, CUevent event)
{
	CUgraphNodeParams params = of_event(CU_GRAPH_NODE_TYPE_WAIT_EVENT, event);
	return set(hNode, &params);
}

CUresult sg_cuGraphKernelNodeGetParams_v2(CUgraphNode hNode, CUDA_KERNEL_NODE_PARAMS *nodeParams)
{
	CUgraphNodeParams params;
	CUresult status = nodeParams == NULL ? CUDA_ERROR_INVALID_VALUE : get(hNode, CU_GRAPH_NODE_TYPE_KERNEL, &params);

	if (status == CUDA_SUCCESS)
		memcpy(nodeParams, &params.kernel, sizeof(*nodeParams));
	return status;
}

CUresult sg_cuGraphMemcpyNodeGetParams(CUgraphNode hNode, CUDA_MEMCPY3D *nodeParams)
{
	CUgraphNodeParams params;
	CUresult status = nodeParams == NULL ? CUDA_ERROR_INVALID_VALUE : get(hNode, CU_GRAPH_NODE_TYPE_MEMCPY, &params);

	if (status == CUDA_SUCCESS)
		*nodeParams = params.memcpy.copyParams;
	return status;
}

CUresult sg_cuGraphMemsetNodeGetParams(CUgraphNode hNode, CUDA_MEMSET_NODE_PARAMS *nodeParams)
{
	CUgraphNodeParams params;
	CUresult status = nodeParams == NULL ? CUDA_ERROR_INVALID_VALUE : get(hNode, CU_GRAPH_NODE_TYPE_MEMSET, &params);

	if (status == CUDA_SUCCESS)
		memcpy(nodeParams, &params.memset, sizeof(*nodeParams));
	return status;
}

CUresult sg_cuGraphHostNodeGetParams(CUgraphNode hNode, CUDA_HOST_NODE_PARAMS *nodeParams)
{
	CUgraphNodeParams params;
	CUresult status = nodeParams == NULL ? CUDA_ERROR_INVALID_VALUE : get(hNode, CU_GRAPH_NODE_TYPE_HOST, &params);

	if (status == CUDA_SUCCESS)
		memcpy(nodeParams, &params.host, sizeof(*nodeParams));
	return status;
}

CUresult sg_cuGraphChildGraphNodeGetGraph(CUgraphNode hNode, CUgraph *phGraph)
{
	CUgraphNodeParams params;
	CUresult status = phGraph == NULL ? CUDA_ERROR_INVALID_VALUE : get(hNode, CU_GRAPH_NODE_TYPE_GRAPH, &params);

	if (status == CUDA_SUCCESS)
		*phGraph = params.graph.graph;
	return status;
}

CUresult sg_cuGraphEventRecordNodeGetEvent(CUgraphNode hNode, CUevent *event_out)
{
	CUgraphNodeParams params;
	CUresult status = event_out == NULL ? CUDA_ERROR_INVALID_VALUE
	                                    : get(hNode, CU_GRAPH_NODE_TYPE_EVENT_RECORD, &params);

	if (status == CUDA_SUCCESS)
		*event_out = params.eventRecord.event;
	return status;
}

CUresult sg_cuGraphEventWaitNodeGetEvent(CUgraphNode hNode, CUevent *event_out)
{
	CUgraphNodeParams params;
	CUresult status = event_out == NULL ? CUDA_ERROR_INVALID_VALUE
	                                    : get(hNode, CU_GRAPH_NODE_TYPE_WAIT_EVENT, &params);

	if (status == CUDA_SUCCESS)
		*event_out = params.eventWait.event;
	return status;
}

CUresult sg_cuGraphBatchMemOpNodeGetParams(CUgraphNode hNode, CUDA_BATCH_MEM_OP_NODE_PARAMS *nodeParams_out)
{
	CUgraphNodeParams params;
	CUresult status = nodeParams_out == NULL ? CUDA_ERROR_INVALID_VALUE
	                                         : get(hNode, CU_GRAPH_NODE_TYPE_BATCH_MEM_OP, &params);

	if (status == CUDA_SUCCESS) {
		nodeParams_out->ctx = params.memOp.ctx;
		nodeParams_out->count = params.memOp.count;
		nodeParams_out->paramArray = params.memOp.paramArray;
		nodeParams_out->flags = params.memOp.flags;
	}
	return status;
}

/* A caller of the first version knows functions only: a kernel is answered by its function in the node's context. */
CUresult sg_cuGraphKernelNodeGetParams(CUgraphNode hNode, CUDA_KERNEL_NODE_PARAMS_v1 *nodeParams)
{
	CUgraphNodeParams params;
	CUresult status = nodeParams == NULL ? CUDA_ERROR_INVALID_VALUE : get(hNode, CU_GRAPH_NODE_TYPE_KERNEL, &params);

	if (status == CUDA_SUCCESS) {
		struct sg_function *function = NULL;
		if (params.kernel.kern != NULL)
			status = sg_function_in((CUfunction)params.kernel.kern, (struct sg_context *)params.kernel.ctx,
			                        &function);
		memcpy(nodeParams, &params.kernel, sizeof(*nodeParams));
		if (function != NULL)
			nodeParams->func = (CUfunction)function;
	}
	return status;
}

/* Of a kernel's attributes only the cooperative one means something here; the others are hints, kept by nobody. */
static bool is_hint(CUkernelNodeAttrID attr)
{
	return attr == CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW || attr == CU_LAUNCH_ATTRIBUTE_PRIORITY ||
	       attr == CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN || attr == CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP ||
	       attr == CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT;
}

static struct sg_node *kernel_node(CUgraphNode handle)
{
	struct sg_node *node = sg_node_of(handle);

	return node != NULL && node->type == CU_GRAPH_NODE_TYPE_KERNEL ? node : NULL;
}

CUresult sg_cuGraphKernelNodeGetAttribute(CUgraphNode hNode, CUkernelNodeAttrID attr, CUkernelNodeAttrValue *value_out)
{
	if (value_out == NULL || (attr != CU_LAUNCH_ATTRIBUTE_COOPERATIVE && !is_hint(attr)))
		return CUDA_ERROR_INVALID_VALUE;
	sg_lock();
	const struct sg_node *node = kernel_node(hNode);
	if (node != NULL) {
		memset(value_out, 0, sizeof(*value_out));
		if (attr == CU_LAUNCH_ATTRIBUTE_COOPERATIVE)
			value_out->cooperative = node->op.launch.cooperative;
	}
	sg_unlock();
	return node != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult sg_cuGraphKernelNodeSetAttribute(CUgraphNode hNode, CUkernelNodeAttrID attr, const CUkernelNodeAttrValue *value)
{
	if (value == NULL || (attr != CU_LAUNCH_ATTRIBUTE_COOPERATIVE && !is_hint(attr)))
		return CUDA_ERROR_INVALID_VALUE;
	sg_lock();
	struct sg_node *node = kernel_node(hNode);
	if (node != NULL && attr == CU_LAUNCH_ATTRIBUTE_COOPERATIVE)
		node->op.launch.cooperative = value->cooperative != 0;
	sg_unlock();
	return node != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult sg_cuGraphKernelNodeCopyAttributes(CUgraphNode dst, CUgraphNode src)
{
	sg_lock();
	struct sg_node *to = kernel_node(dst);
	const struct sg_node *from = kernel_node(src);
	if (to != NULL && from != NULL)
		to->op.launch.cooperative = from->op.launch.cooperative;
	sg_unlock();
	return to != NULL && from != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult sg_cuGraphAddMemAllocNode(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies,
                                   size_t numDependencies, CUDA_MEM_ALLOC_NODE_PARAMS *nodeParams)
{
	if (nodeParams == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	CUgraphNodeParams params = of_type(CU_GRAPH_NODE_TYPE_MEM_ALLOC);
	memcpy(&params.alloc, nodeParams, sizeof(*nodeParams));
	CUresult status = add_and_tell(phGraphNode, hGraph, dependencies, numDependencies, &params);
	if (status == CUDA_SUCCESS)
		nodeParams->dptr = params.alloc.dptr;
	return status;
}

CUresult sg_cuGraphAddMemFreeNode(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies,
                                  size_t numDependencies, CUdeviceptr dptr)
{
	CUgraphNodeParams params = of_type(CU_GRAPH_NODE_TYPE_MEM_FREE);

	params.free.dptr = dptr;
	return add(phGraphNode, hGraph, dependencies, numDependencies, &params);
}

CUresult sg_cuGraphMemAllocNodeGetParams(CUgraphNode hNode, CUDA_MEM_ALLOC_NODE_PARAMS *params_out)
{
	CUgraphNodeParams params;
	CUresult status = params_out != NULL ? get(hNode, CU_GRAPH_NODE_TYPE_MEM_ALLOC, &params)
	                                     : CUDA_ERROR_INVALID_VALUE;

	if (status == CUDA_SUCCESS)
		memcpy(params_out, &params.alloc, sizeof(*params_out));
	return status;
}

CUresult sg_cuGraphMemFreeNodeGetParams(CUgraphNode hNode, CUdeviceptr *dptr_out)
{
	CUgraphNodeParams params;
	CUresult status = dptr_out != NULL ? get(hNode, CU_GRAPH_NODE_TYPE_MEM_FREE, &params) : CUDA_ERROR_INVALID_VALUE;

	if (status == CUDA_SUCCESS)
		*dptr_out = params.free.dptr;
	return status;
}
