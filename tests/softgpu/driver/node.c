/* Nodes: every kind of parameters becomes CUgraphNodeParams, and that an operation; and back. */
#include <stdlib.h>
#include <string.h>

#include "tests/softgpu/driver/conditional.h"
#include "tests/softgpu/driver/event.h"
#include "tests/softgpu/driver/graph.h"
#include "tests/softgpu/driver/graph_memory.h"
#include "tests/softgpu/driver/memory.h"
#include "tests/softgpu/driver/module.h"

/* The context that a node names, or the current one. */
static struct sg_context *named(CUcontext handle)
{
	return handle != NULL ? sg_context_of(handle) : sg_context_current();
}

static CUresult plan_kernel(const CUDA_KERNEL_NODE_PARAMS_v3 *params, struct sg_op *ret_op)
{
	CUlaunchConfig config = {params->gridDimX,
	                         params->gridDimY,
	                         params->gridDimZ,
	                         params->blockDimX,
	                         params->blockDimY,
	                         params->blockDimZ,
	                         params->sharedMemBytes,
	                         NULL,
	                         NULL,
	                         0};
	CUfunction asked = params->func != NULL ? params->func : (CUfunction)params->kern;
	struct sg_function *function;

	sg_lock();
	struct sg_context *context = named(params->ctx);
	sg_unlock();
	CUresult status = sg_function_in(asked, context, &function);
	if (status != CUDA_SUCCESS)
		return status;
	*ret_op = (struct sg_op){.kind = SG_OP_KERNEL};
	sg_lock();
	status = sg_launch_plan(&config, asked, function, params->kernelParams, params->extra, &ret_op->launch);
	if (status == CUDA_SUCCESS)
		ret_op->context = function->module->context;
	sg_unlock();
	return status;
}

static CUresult plan_child(CUgraph handle, struct sg_op *ret_op)
{
	struct sg_graph *graph = sg_graph_of(handle);

	if (graph == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	if (sg_graph_has_memory(graph) || sg_graph_has_conditionals(graph))
		return CUDA_ERROR_NOT_SUPPORTED;
	*ret_op = (struct sg_op){.kind = SG_OP_GRAPH, .child = {sg_graph_clone(graph), NULL}};
	return ret_op->child.graph != NULL ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult plan_event(CUevent handle, enum sg_op_kind kind, struct sg_op *ret_op)
{
	struct sg_event *event = sg_event_of(handle);

	if (event == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	*ret_op = (struct sg_op){.kind = kind, .record = {sg_event_hold(event), 0}};
	return CUDA_SUCCESS;
}

/* The context of a set may be left out where the memory has one, and mapped memory has none. Lock held. */
static bool nobodys(CUdeviceptr memory, CUcontext asked)
{
	const struct sg_allocation *found = asked == NULL ? sg_allocation_at(memory) : NULL;

	return found != NULL && found->kind == SG_MEMORY_MAPPING;
}

CUresult sg_node_plan(const CUgraphNodeParams *params, struct sg_op *ret_op)
{
	CUresult status = CUDA_SUCCESS;

	if (params->type == CU_GRAPH_NODE_TYPE_KERNEL)
		return plan_kernel(&params->kernel, ret_op);
	*ret_op = (struct sg_op){.kind = SG_OP_EMPTY};
	sg_lock();
	switch ((int)params->type) {
	case CU_GRAPH_NODE_TYPE_EMPTY:
		break;
	case CU_GRAPH_NODE_TYPE_MEMCPY:
		ret_op->kind = SG_OP_COPY;
		status = sg_copy_plan(&params->memcpy.copyParams, named(params->memcpy.copyCtx),
		                      named(params->memcpy.copyCtx), &ret_op->copy);
		break;
	case CU_GRAPH_NODE_TYPE_MEMSET:
		ret_op->kind = SG_OP_SET;
		status = sg_set_plan(named(params->memset.ctx), params->memset.dst, params->memset.pitch,
		                     params->memset.value, params->memset.elementSize, params->memset.width,
		                     params->memset.height, &ret_op->set);
		if (params->memset.width == 0 || params->memset.height == 0 ||
		    nobodys(params->memset.dst, params->memset.ctx))
			status = CUDA_ERROR_INVALID_VALUE;
		break;
	case CU_GRAPH_NODE_TYPE_HOST:
		ret_op->kind = SG_OP_HOST;
		ret_op->host.function = params->host.fn;
		ret_op->host.data = params->host.userData;
		status = params->host.fn != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
		break;
	case CU_GRAPH_NODE_TYPE_GRAPH:
		status = plan_child(params->graph.graph, ret_op);
		break;
	case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
		status = plan_event(params->eventWait.event, SG_OP_WAIT, ret_op);
		break;
	case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
		status = plan_event(params->eventRecord.event, SG_OP_RECORD, ret_op);
		break;
	case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
		status = sg_values_plan(named(params->memOp.ctx), params->memOp.paramArray, params->memOp.count,
		                        params->memOp.flags, ret_op);
		break;
	case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
		ret_op->kind = SG_OP_ALLOC;
		status = sg_block_create(&params->alloc, &ret_op->block);
		break;
	case CU_GRAPH_NODE_TYPE_MEM_FREE:
		ret_op->kind = SG_OP_FREE;
		ret_op->block = sg_block_of(params->free.dptr);
		if (ret_op->block != NULL)
			sg_block_hold(ret_op->block);
		status = ret_op->block != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
		break;
	case CU_GRAPH_NODE_TYPE_CONDITIONAL:
		status = sg_conditional_plan(&params->conditional, ret_op);
		break;
	case CU_GRAPH_NODE_TYPE_EXT_SEMAS_SIGNAL:
	case CU_GRAPH_NODE_TYPE_EXT_SEMAS_WAIT:
		status = CUDA_ERROR_NOT_SUPPORTED;
		break;
	default:
		status = CUDA_ERROR_INVALID_VALUE;
	}
	if (status != CUDA_SUCCESS)
		*ret_op = (struct sg_op){.kind = SG_OP_EMPTY};
	sg_unlock();
	return status;
}

CUgraphNodeType sg_node_type(const struct sg_op *op)
{
	switch (op->kind) {
	case SG_OP_COPY:
		return CU_GRAPH_NODE_TYPE_MEMCPY;
	case SG_OP_SET:
		return CU_GRAPH_NODE_TYPE_MEMSET;
	case SG_OP_KERNEL:
		return CU_GRAPH_NODE_TYPE_KERNEL;
	case SG_OP_HOST:
	case SG_OP_CALLBACK:
		return CU_GRAPH_NODE_TYPE_HOST;
	case SG_OP_RECORD:
		return CU_GRAPH_NODE_TYPE_EVENT_RECORD;
	case SG_OP_WAIT:
		return CU_GRAPH_NODE_TYPE_WAIT_EVENT;
	case SG_OP_VALUES:
		return CU_GRAPH_NODE_TYPE_BATCH_MEM_OP;
	case SG_OP_GRAPH:
		return CU_GRAPH_NODE_TYPE_GRAPH;
	case SG_OP_CONDITIONAL:
		return CU_GRAPH_NODE_TYPE_CONDITIONAL;
	case SG_OP_ALLOC:
		return CU_GRAPH_NODE_TYPE_MEM_ALLOC;
	case SG_OP_FREE:
		return CU_GRAPH_NODE_TYPE_MEM_FREE;
	case SG_OP_EMPTY:
	case SG_OP_RELEASE:
		break;
	}
	return CU_GRAPH_NODE_TYPE_EMPTY;
}

static void kernel_params(const struct sg_op *op, CUDA_KERNEL_NODE_PARAMS_v3 *params)
{
	const struct sg_launch *launch = &op->launch;

	params->func = (CUfunction)launch->function;
	params->gridDimX = launch->grid[0];
	params->gridDimY = launch->grid[1];
	params->gridDimZ = launch->grid[2];
	params->blockDimX = launch->block[0];
	params->blockDimY = launch->block[1];
	params->blockDimZ = launch->block[2];
	params->sharedMemBytes = launch->shared;
	params->kernelParams = launch->pointers;
	params->ctx = (CUcontext)op->context;
	/* A kernel stays one: func is NULL then, as the driver answers. */
	if (sg_is(launch->asked, SG_KERNEL)) {
		params->func = NULL;
		params->kern = (CUkernel)launch->asked;
	}
}

CUresult sg_node_params(const struct sg_op *op, CUgraphNodeParams *ret_params)
{
	memset(ret_params, 0, sizeof(*ret_params));
	ret_params->type = sg_node_type(op);
	switch (op->kind) {
	case SG_OP_COPY:
		ret_params->memcpy.copyParams = op->copy.asked;
		break;
	case SG_OP_SET:
		ret_params->memset.dst = op->set.to;
		ret_params->memset.pitch = op->set.pitch;
		ret_params->memset.value = op->set.value;
		ret_params->memset.elementSize = op->set.element;
		ret_params->memset.width = op->set.width;
		ret_params->memset.height = op->set.height;
		break;
	case SG_OP_KERNEL:
		kernel_params(op, &ret_params->kernel);
		break;
	case SG_OP_HOST:
		ret_params->host.fn = op->host.function;
		ret_params->host.userData = op->host.data;
		break;
	case SG_OP_RECORD:
	case SG_OP_WAIT:
		ret_params->eventRecord.event = (CUevent)op->record.event;
		break;
	case SG_OP_VALUES:
		ret_params->memOp.count = op->values.count;
		ret_params->memOp.paramArray = op->values.list;
		ret_params->memOp.flags = op->values.flags;
		break;
	case SG_OP_ALLOC:
		ret_params->alloc = op->block->asked;
		break;
	case SG_OP_FREE:
		ret_params->free.dptr = op->block->address;
		break;
	case SG_OP_GRAPH:
		ret_params->graph.graph = (CUgraph)op->child.graph;
		break;
	case SG_OP_CONDITIONAL:
		ret_params->conditional.handle = (CUgraphConditionalHandle)(uintptr_t)op->conditional.handle;
		ret_params->conditional.type = op->conditional.type;
		ret_params->conditional.size = op->conditional.size;
		ret_params->conditional.phGraph_out = (CUgraph *)op->conditional.bodies;
		ret_params->conditional.ctx = (CUcontext)op->context;
		break;
	default:
		break;
	}
	return CUDA_SUCCESS;
}
