/* Changes to instantiated graphs: one node's parameters, whether it runs, all of it from another graph. */
#include <string.h>

#include "tests/softgpu/driver/exec.h"
#include "tests/softgpu/driver/node_forms.h"

/* The exec's node that was made from this one, in child graphs and bodies too. */
static struct sg_exec_node *find(struct sg_exec *exec, const void *node)
{
	for (size_t i = 0; i < exec->count; i++) {
		struct sg_exec_node *found = &exec->nodes[i];
		if (found->source == node)
			return found;
		size_t count;
		struct sg_exec **inner = sg_op_execs(&found->op, &count);
		for (size_t body = 0; body < count; body++) {
			found = find(inner[body], node);
			if (found != NULL)
				return found;
		}
	}
	return NULL;
}

static bool same_shape(const struct sg_exec *a, const struct sg_exec *b)
{
	if (a->count != b->count)
		return false;
	for (size_t i = 0; i < a->count; i++)
		if (a->nodes[i].type != b->nodes[i].type || a->nodes[i].needs_count != b->nodes[i].needs_count ||
		    memcmp(a->nodes[i].needs, b->nodes[i].needs, a->nodes[i].needs_count * sizeof(*a->nodes[i].needs)) !=
		            0)
			return false;
	return true;
}

/* Do the graphs inside both operations, if there are any, have the same shapes? */
static bool same_inside(const struct sg_op *a, const struct sg_op *b)
{
	size_t count_a, count_b;
	struct sg_exec **inner_a = sg_op_execs(a, &count_a), **inner_b = sg_op_execs(b, &count_b);
	bool same = count_a == count_b;

	for (size_t i = 0; i < count_a && same; i++)
		same = same_shape(inner_a[i], inner_b[i]);
	return same;
}

/*
 * The new operation takes the old one's place. Graphs inside must keep their shape, and their nodes stay known by their
 * old handles.
 */
static CUresult replace(struct sg_exec_node *node, struct sg_op *op)
{
	size_t count;
	struct sg_exec **fresh = sg_op_execs(op, &count), **old = sg_op_execs(&node->op, &count);

	if (!same_inside(&node->op, op)) {
		sg_op_clear(op);
		return CUDA_ERROR_INVALID_VALUE;
	}
	for (size_t body = 0; body < count; body++)
		for (size_t i = 0; i < fresh[body]->count; i++)
			fresh[body]->nodes[i].source = old[body]->nodes[i].source;
	sg_op_clear(&node->op);
	node->op = *op;
	return CUDA_SUCCESS;
}

static CUresult set(CUgraphExec handle, CUgraphNode hNode, const CUgraphNodeParams *params)
{
	struct sg_op plan, op;
	CUresult status = sg_node_plan(params, &plan);

	if (status != CUDA_SUCCESS)
		return status;
	sg_lock();
	struct sg_exec *exec = sg_exec_of(handle);
	struct sg_exec_node *node = exec != NULL ? find(exec, hNode) : NULL;
	if (node == NULL || node->type != params->type || plan.kind == SG_OP_CONDITIONAL)
		status = CUDA_ERROR_INVALID_VALUE;
	if (status == CUDA_SUCCESS && plan.kind == SG_OP_KERNEL && plan.context != node->op.context)
		status = CUDA_ERROR_INVALID_VALUE;
	if (status == CUDA_SUCCESS)
		status = sg_exec_op(&plan, &op);
	sg_op_clear(&plan);
	/* One row stays one row. */
	if (status == CUDA_SUCCESS && op.kind == SG_OP_SET && (op.set.height > 1) != (node->op.set.height > 1))
		status = CUDA_ERROR_INVALID_VALUE;
	if (status == CUDA_SUCCESS)
		status = replace(node, &op);
	sg_unlock();
	return status;
}

CUresult sg_cuGraphExecNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode, CUgraphNodeParams *nodeParams)
{
	return nodeParams == NULL ? CUDA_ERROR_INVALID_VALUE : set(hGraphExec, hNode, nodeParams);
}

CUresult sg_cuGraphExecKernelNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode,
                                           const CUDA_KERNEL_NODE_PARAMS_v1 *nodeParams)
{
	if (nodeParams == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	CUgraphNodeParams params = of_kernel_v1(nodeParams);
	return set(hGraphExec, hNode, &params);
}

CUresult sg_cuGraphExecKernelNodeSetParams_v2(CUgraphExec hGraphExec, CUgraphNode hNode,
                                              const CUDA_KERNEL_NODE_PARAMS *nodeParams)
{
	if (nodeParams == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	CUgraphNodeParams params = of_kernel(nodeParams);
	return set(hGraphExec, hNode, &params);
}

CUresult sg_cuGraphExecMemcpyNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode, const CUDA_MEMCPY3D *copyParams,
                                           CUcontext ctx)
{
	if (copyParams == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	CUgraphNodeParams params = of_copy(copyParams);
	params.memcpy.copyCtx = ctx;
	return set(hGraphExec, hNode, &params);
}

CUresult sg_cuGraphExecMemsetNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode,
                                           const CUDA_MEMSET_NODE_PARAMS *memsetParams, CUcontext ctx)
{
	if (memsetParams == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	CUgraphNodeParams params = of_set(memsetParams);
	params.memset.ctx = ctx;
	return set(hGraphExec, hNode, &params);
}

CUresult sg_cuGraphExecHostNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode,
                                         const CUDA_HOST_NODE_PARAMS *nodeParams)
{
	if (nodeParams == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	CUgraphNodeParams params = of_host(nodeParams);
	return set(hGraphExec, hNode, &params);
}

CUresult sg_cuGraphExecBatchMemOpNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode,
                                               const CUDA_BATCH_MEM_OP_NODE_PARAMS *nodeParams)
{
	if (nodeParams == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	CUgraphNodeParams params = of_values(nodeParams);
	return set(hGraphExec, hNode, &params);
}

CUresult sg_cuGraphExecChildGraphNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode, CUgraph childGraph)
{
	CUgraphNodeParams params = of_child(childGraph);

	return set(hGraphExec, hNode, &params);
}

CUresult sg_cuGraphExecEventRecordNodeSetEvent(CUgraphExec hGraphExec, CUgraphNode hNode, CUevent event)
{
	CUgraphNodeParams params = of_event(CU_GRAPH_NODE_TYPE_EVENT_RECORD, event);

	return set(hGraphExec, hNode, &params);
}

CUresult sg_cuGraphExecEventWaitNodeSetEvent(CUgraphExec hGraphExec, CUgraphNode hNode, CUevent event)
{
	CUgraphNodeParams params = of_event(CU_GRAPH_NODE_TYPE_WAIT_EVENT, event);

	return set(hGraphExec, hNode, &params);
}

/* Kernels, copies and sets can be switched off. */
static struct sg_exec_node *switchable(CUgraphExec handle, CUgraphNode hNode)
{
	struct sg_exec *exec = sg_exec_of(handle);
	struct sg_exec_node *node = exec != NULL ? find(exec, hNode) : NULL;

	return node != NULL && node->type <= CU_GRAPH_NODE_TYPE_MEMSET ? node : NULL;
}

CUresult sg_cuGraphNodeSetEnabled(CUgraphExec hGraphExec, CUgraphNode hNode, unsigned int isEnabled)
{
	sg_lock();
	struct sg_exec_node *node = switchable(hGraphExec, hNode);
	if (node != NULL)
		node->enabled = isEnabled != 0;
	sg_unlock();
	return node != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult sg_cuGraphNodeGetEnabled(CUgraphExec hGraphExec, CUgraphNode hNode, unsigned int *isEnabled)
{
	if (isEnabled == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	sg_lock();
	const struct sg_exec_node *node = switchable(hGraphExec, hNode);
	if (node != NULL)
		*isEnabled = node->enabled;
	sg_unlock();
	return node != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* What keeps `fresh` from taking the place of `exec`; *ret_node is the first node that differs. */
static CUgraphExecUpdateResult compare(const struct sg_exec *exec, const struct sg_exec *fresh, CUgraphNode *ret_node)
{
	*ret_node = NULL;
	if (exec->count != fresh->count)
		return CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
	for (size_t i = 0; i < exec->count; i++) {
		const struct sg_exec_node *a = &exec->nodes[i], *b = &fresh->nodes[i];
		*ret_node = (CUgraphNode)b->source;
		if (a->needs_count != b->needs_count ||
		    memcmp(a->needs, b->needs, a->needs_count * sizeof(*a->needs)) != 0)
			return CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
		if (a->type != b->type)
			return CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED;
		if (a->op.kind == SG_OP_KERNEL && a->op.context != b->op.context)
			return CU_GRAPH_EXEC_UPDATE_ERROR_UNSUPPORTED_FUNCTION_CHANGE;
		if (!same_inside(&a->op, &b->op))
			return CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
	}
	*ret_node = NULL;
	return CU_GRAPH_EXEC_UPDATE_SUCCESS;
}

static CUresult update(CUgraphExec handle, CUgraph hGraph, CUgraphExecUpdateResult *ret_result, CUgraphNode *ret_node)
{
	struct sg_exec *fresh = NULL;

	*ret_result = CU_GRAPH_EXEC_UPDATE_ERROR;
	*ret_node = NULL;
	sg_lock();
	struct sg_exec *exec = sg_exec_of(handle);
	const struct sg_graph *graph = sg_graph_of(hGraph);
	CUresult status = exec == NULL || graph == NULL ? CUDA_ERROR_INVALID_VALUE : sg_exec_create(graph, &fresh);
	if (status == CUDA_SUCCESS) {
		*ret_result = compare(exec, fresh, ret_node);
		for (size_t i = 0; *ret_result == CU_GRAPH_EXEC_UPDATE_SUCCESS && i < exec->count; i++) {
			replace(&exec->nodes[i], &fresh->nodes[i].op);
			fresh->nodes[i].op = (struct sg_op){.kind = SG_OP_EMPTY};
		}
		sg_exec_free(fresh);
		if (*ret_result != CU_GRAPH_EXEC_UPDATE_SUCCESS)
			status = CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
	}
	sg_unlock();
	return status;
}

CUresult sg_cuGraphExecUpdate_v2(CUgraphExec hGraphExec, CUgraph hGraph, CUgraphExecUpdateResultInfo *resultInfo)
{
	CUgraphExecUpdateResultInfo unwanted;

	if (resultInfo == NULL)
		resultInfo = &unwanted;
	resultInfo->errorFromNode = NULL;
	return update(hGraphExec, hGraph, &resultInfo->result, &resultInfo->errorNode);
}

CUresult sg_cuGraphExecUpdate(CUgraphExec hGraphExec, CUgraph hGraph, CUgraphNode *hErrorNode_out,
                              CUgraphExecUpdateResult *updateResult_out)
{
	return hErrorNode_out == NULL || updateResult_out == NULL
	               ? CUDA_ERROR_INVALID_VALUE
	               : update(hGraphExec, hGraph, updateResult_out, hErrorNode_out);
}
