/* Instantiated graphs: made, launched, run, destroyed. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/softgpu/driver/capture.h"
#include "tests/softgpu/driver/conditional.h"
#include "tests/softgpu/driver/event.h"
#include "tests/softgpu/driver/exec.h"
#include "tests/softgpu/driver/graph_memory.h"

struct sg_exec *sg_exec_of(CUgraphExec handle)
{
	return sg_is(handle, SG_EXEC) ? (struct sg_exec *)handle : NULL;
}

void sg_exec_free(struct sg_exec *exec)
{
	for (size_t i = 0; i < exec->count; i++) {
		sg_op_clear(&exec->nodes[i].op);
		free(exec->nodes[i].needs);
	}
	sg_point_drop(&exec->last);
	struct sg_user_reference *references = exec->user_references;
	free(exec->nodes);
	free(exec);
	sg_user_objects_drop(references);
}

/* Room for `count` nodes that are put in one by one: exec->count is what there is to free. */
static struct sg_exec *empty(size_t count)
{
	struct sg_exec *exec = calloc(1, sizeof(*exec));

	if (exec != NULL)
		exec->nodes = calloc(count + 1, sizeof(*exec->nodes));
	if (exec == NULL || exec->nodes == NULL) {
		free(exec);
		return NULL;
	}
	return exec;
}

/* An operation of a node as it stands in an exec: child graphs and bodies are instantiated too. */
CUresult sg_exec_op(const struct sg_op *op, struct sg_op *ret_op)
{
	if (!sg_op_clone(op, ret_op))
		return op->kind == SG_OP_KERNEL ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_OUT_OF_MEMORY;
	CUresult status = CUDA_SUCCESS;
	if (op->kind == SG_OP_GRAPH && op->child.graph != NULL)
		status = sg_exec_create(op->child.graph, &ret_op->child.exec);
	if (op->kind == SG_OP_CONDITIONAL && op->conditional.bodies != NULL)
		status = sg_conditional_instantiate(op, ret_op);
	if (status != CUDA_SUCCESS)
		sg_op_clear(ret_op);
	return status;
}

static CUresult append(struct sg_exec *exec, struct sg_node *node, struct sg_node *const *order)
{
	struct sg_exec_node *fresh = &exec->nodes[exec->count];
	CUresult status = sg_exec_op(&node->op, &fresh->op);

	if (status != CUDA_SUCCESS)
		return status;
	exec->count++;
	fresh->source = node;
	fresh->type = node->type;
	fresh->enabled = true;
	fresh->needs = calloc(node->needs_count + 1, sizeof(*fresh->needs));
	if (fresh->needs == NULL)
		return CUDA_ERROR_OUT_OF_MEMORY;
	for (size_t n = 0; n < node->needs_count; n++) {
		size_t i = 0;
		while (order[i] != node->needs[n])
			i++;
		fresh->needs[fresh->needs_count++] = i;
	}
	return CUDA_SUCCESS;
}

static bool placed(struct sg_node *const *order, size_t count, const struct sg_node *node)
{
	size_t i = 0;

	while (i < count && order[i] != node)
		i++;
	return i < count;
}

static bool ready(struct sg_node *const *order, size_t count, const struct sg_node *node)
{
	for (size_t n = 0; n < node->needs_count; n++)
		if (!placed(order, count, node->needs[n]))
			return false;
	return !placed(order, count, node);
}

CUresult sg_exec_create(const struct sg_graph *graph, struct sg_exec **ret_exec)
{
	struct sg_exec *exec = empty(graph->count);
	struct sg_node **order = calloc(graph->count + 1, sizeof(*order));
	CUresult status = exec != NULL && order != NULL ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;

	/*
	 * The first node that can run now, again and again: nodes keep the order they were added in as far as edges
	 * allow.
	 */
	while (status == CUDA_SUCCESS && exec->count < graph->count) {
		size_t i = 0;
		while (i < graph->count && !ready(order, exec->count, graph->nodes[i]))
			i++;
		if (i == graph->count) {
			status = CUDA_ERROR_INVALID_VALUE; /* a cycle */
			break;
		}
		order[exec->count] = graph->nodes[i];
		status = append(exec, graph->nodes[i], order);
	}
	free(order);
	if (status == CUDA_SUCCESS && !sg_user_objects_clone(graph->user_references, &exec->user_references))
		status = CUDA_ERROR_OUT_OF_MEMORY;
	if (status != CUDA_SUCCESS && exec != NULL)
		sg_exec_free(exec);
	if (status == CUDA_SUCCESS)
		*ret_exec = exec;
	return status;
}

struct sg_exec *sg_exec_clone(const struct sg_exec *exec)
{
	struct sg_exec *clone = empty(exec->count);

	for (size_t i = 0; clone != NULL && i < exec->count; i++) {
		clone->nodes[i] = exec->nodes[i];
		clone->nodes[i].needs = NULL; /* order is all a launch needs */
		clone->nodes[i].needs_count = 0;
		if (!sg_op_clone(&exec->nodes[i].op, &clone->nodes[i].op)) {
			sg_exec_free(clone);
			return NULL;
		}
		clone->count++;
	}
	return clone;
}

CUresult sg_exec_run(struct sg_exec *exec, struct sg_stream *stream)
{
	CUresult status = CUDA_SUCCESS;

	if (exec->launched)
		sg_conditional_begin(exec);
	for (size_t i = 0; i < exec->count && status == CUDA_SUCCESS; i++) {
		if (!exec->nodes[i].enabled)
			continue;
		status = sg_op_run(&exec->nodes[i].op, stream);
		/* Nobody waits for a copy in a graph: what goes wrong there ends the context. */
		if (status != CUDA_SUCCESS)
			sg_context_fault(stream->context,
			                 status == CUDA_ERROR_INVALID_VALUE ? CUDA_ERROR_ILLEGAL_ADDRESS : status);
	}
	return status;
}

static CUresult instantiate(CUgraphExec *ret_exec, CUgraph handle, unsigned long long flags)
{
	unsigned long long known = CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH |
	                           CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD | CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY;
	struct sg_exec *exec = NULL;

	if (ret_exec == NULL || (flags & ~known) != 0)
		return (flags & CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH) != 0 ? CUDA_ERROR_NOT_SUPPORTED
		                                                                : CUDA_ERROR_INVALID_VALUE;
	sg_lock();
	struct sg_graph *graph = sg_graph_of(handle);
	CUresult status = graph == NULL || graph->capture != NULL ? CUDA_ERROR_INVALID_VALUE
	                                                          : sg_exec_create(graph, &exec);
	if (status == CUDA_SUCCESS && !sg_add(exec, SG_EXEC)) {
		sg_exec_free(exec);
		status = CUDA_ERROR_OUT_OF_MEMORY;
	}
	if (status == CUDA_SUCCESS)
		exec->flags = flags;
	sg_unlock();
	if (status == CUDA_SUCCESS)
		*ret_exec = (CUgraphExec)exec;
	return status;
}

CUresult sg_cuGraphInstantiateWithFlags(CUgraphExec *phGraphExec, CUgraph hGraph, unsigned long long flags)
{
	return instantiate(phGraphExec, hGraph, flags);
}

CUresult sg_cuGraphInstantiate_v2(CUgraphExec *phGraphExec, CUgraph hGraph, CUgraphNode *phErrorNode, char *logBuffer,
                                  size_t bufferSize)
{
	if (phErrorNode != NULL)
		*phErrorNode = NULL;
	if (logBuffer != NULL && bufferSize > 0)
		*logBuffer = '\0';
	return instantiate(phGraphExec, hGraph, 0);
}

CUresult sg_cuGraphInstantiate(CUgraphExec *phGraphExec, CUgraph hGraph, CUgraphNode *phErrorNode, char *logBuffer,
                               size_t bufferSize)
{
	return sg_cuGraphInstantiate_v2(phGraphExec, hGraph, phErrorNode, logBuffer, bufferSize);
}

CUresult sg_cuGraphInstantiateWithParams(CUgraphExec *phGraphExec, CUgraph hGraph,
                                         CUDA_GRAPH_INSTANTIATE_PARAMS *instantiateParams)
{
	if (instantiateParams == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult status = instantiate(phGraphExec, hGraph, instantiateParams->flags);
	instantiateParams->hErrNode_out = NULL;
	instantiateParams->result_out = status == CUDA_SUCCESS ? CUDA_GRAPH_INSTANTIATE_SUCCESS
	                                                       : CUDA_GRAPH_INSTANTIATE_ERROR;
	return status;
}

CUresult sg_cuGraphExecGetFlags(CUgraphExec hGraphExec, cuuint64_t *flags)
{
	if (flags == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	sg_lock();
	const struct sg_exec *exec = sg_exec_of(hGraphExec);
	if (exec != NULL)
		*flags = exec->flags;
	sg_unlock();
	return exec != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* A launch under way has a copy of its own. */
CUresult sg_cuGraphExecDestroy(CUgraphExec hGraphExec)
{
	sg_lock();
	struct sg_exec *exec = sg_exec_of(hGraphExec);
	if (exec != NULL) {
		sg_remove(exec);
		sg_exec_free(exec);
	}
	sg_unlock();
	return exec != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* Every event that the launch will record is pending from now on. */
static void begin_records(struct sg_exec *exec)
{
	for (size_t i = 0; i < exec->count; i++) {
		struct sg_op *op = &exec->nodes[i].op;
		if (exec->nodes[i].enabled && op->kind == SG_OP_RECORD) {
			op->record.recording = ++op->record.event->recording;
			op->record.event->timed = false;
			op->record.event->capture_id = 0;
		}
		size_t count;
		struct sg_exec **inner = sg_op_execs(op, &count);
		for (size_t body = 0; body < count; body++)
			begin_records(inner[body]);
	}
}

static void end_records(const struct sg_exec *exec, struct sg_stream *stream)
{
	for (size_t i = 0; i < exec->count; i++) {
		const struct sg_op *op = &exec->nodes[i].op;
		if (exec->nodes[i].enabled && op->kind == SG_OP_RECORD) {
			sg_point_drop(&op->record.event->point);
			op->record.event->point = sg_point_of(stream);
		}
		size_t count;
		struct sg_exec **inner = sg_op_execs(op, &count);
		for (size_t body = 0; body < count; body++)
			end_records(inner[body], stream);
	}
}

CUresult sg_cuGraphLaunch(CUgraphExec hGraph, CUstream hStream)
{
	struct sg_stream *stream;

	sg_lock();
	struct sg_exec *exec = sg_exec_of(hGraph);
	CUresult status = exec == NULL ? CUDA_ERROR_INVALID_VALUE : sg_stream_of(hStream, &stream);
	if (status == CUDA_SUCCESS && stream->capture != NULL)
		status = sg_capture_refuse(stream);
	if (status == CUDA_SUCCESS)
		status = sg_exec_take_blocks(exec);
	struct sg_exec *copy = status == CUDA_SUCCESS ? sg_exec_clone(exec) : NULL;
	if (status == CUDA_SUCCESS && copy == NULL)
		status = CUDA_ERROR_OUT_OF_MEMORY;
	if (status == CUDA_SUCCESS) {
		struct sg_op op = {.kind = SG_OP_GRAPH, .context = stream->context, .child = {NULL, copy}};
		copy->launched = true;
		begin_records(copy);
		if (exec->last.timeline != NULL) {
			sg_points_add(&stream->waits, exec->last);
			exec->last = (struct sg_point){0};
		}
		status = sg_submit(stream, &op, false);
	}
	if (status == CUDA_SUCCESS) {
		exec->last = sg_point_of(stream);
		end_records(exec, stream);
	}
	sg_unlock();
	return status;
}

/* There is nothing to upload to. */
CUresult sg_cuGraphUpload(CUgraphExec hGraph, CUstream hStream)
{
	struct sg_stream *stream;

	sg_lock();
	CUresult status = sg_exec_of(hGraph) == NULL ? CUDA_ERROR_INVALID_VALUE : sg_stream_of(hStream, &stream);
	sg_unlock();
	return status;
}
