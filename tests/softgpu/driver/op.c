#include "tests/softgpu/driver/op.h"

#include <stdlib.h>
#include <string.h>

#include "tests/softgpu/driver/conditional.h"
#include "tests/softgpu/driver/context.h"
#include "tests/softgpu/driver/event.h"
#include "tests/softgpu/driver/graph_memory.h"
#include "tests/softgpu/driver/stream.h"
#include "tests/softgpu/ptx.h"

static void *copy_of(const void *from, size_t bytes)
{
	void *to = malloc(bytes > 0 ? bytes : 1);

	if (to != NULL && bytes > 0)
		memcpy(to, from, bytes);
	return to;
}

static bool clone_launch(const struct sg_launch *from, struct sg_launch *to)
{
	size_t count = 0, offset, bytes;

	while (ptx_function_param(sg_launch_ptx(from), count, &offset, &bytes))
		count++;
	to->params = copy_of(from->params, from->params_bytes);
	to->pointers = malloc((count + 1) * sizeof(*to->pointers));
	if (to->params == NULL || to->pointers == NULL) {
		free(to->params);
		free(to->pointers);
		return false;
	}
	for (size_t i = 0; ptx_function_param(sg_launch_ptx(from), i, &offset, &bytes); i++)
		to->pointers[i] = (char *)to->params + offset;
	return true;
}

bool sg_op_clone(const struct sg_op *op, struct sg_op *ret_op)
{
	struct sg_op fresh = *op;
	const struct sg_copy *copy = &op->copy;

	switch (op->kind) {
	case SG_OP_COPY:
		if (copy->staged != NULL) {
			fresh.copy.staged = copy_of(copy->staged, copy->width * copy->height * copy->depth);
			fresh.copy.from = (uint64_t)(uintptr_t)fresh.copy.staged;
			if (fresh.copy.staged == NULL)
				return false;
		}
		break;
	case SG_OP_KERNEL:
		if (!sg_is(op->launch.function, SG_FUNCTION) || !clone_launch(&op->launch, &fresh.launch))
			return false;
		break;
	case SG_OP_RECORD:
	case SG_OP_WAIT:
		sg_event_hold(op->record.event);
		break;
	case SG_OP_VALUES:
		fresh.values.list = copy_of(op->values.list, op->values.count * sizeof(*op->values.list));
		if (fresh.values.list == NULL)
			return false;
		break;
	case SG_OP_ALLOC:
	case SG_OP_FREE:
		sg_block_hold(op->block);
		break;
	case SG_OP_GRAPH:
		fresh.child.graph = NULL;
		fresh.child.exec = op->child.exec != NULL ? sg_exec_clone(op->child.exec) : NULL;
		if (op->child.exec != NULL && fresh.child.exec == NULL)
			return false;
		break;
	case SG_OP_CONDITIONAL:
		if (!sg_conditional_clone(op, &fresh))
			return false;
		break;
	default:
		break;
	}
	*ret_op = fresh;
	return true;
}

void sg_op_clear(struct sg_op *op)
{
	switch (op->kind) {
	case SG_OP_COPY:
		free(op->copy.staged);
		break;
	case SG_OP_KERNEL:
		free(op->launch.params);
		free(op->launch.pointers);
		break;
	case SG_OP_RECORD:
	case SG_OP_WAIT:
		sg_event_drop(op->record.event);
		break;
	case SG_OP_VALUES:
		free(op->values.list);
		break;
	case SG_OP_ALLOC:
	case SG_OP_FREE:
		sg_block_drop(op->block);
		break;
	case SG_OP_GRAPH:
		if (op->child.exec != NULL)
			sg_exec_free(op->child.exec);
		if (op->child.graph != NULL)
			sg_graph_free(op->child.graph);
		break;
	case SG_OP_CONDITIONAL:
		sg_conditional_clear(op);
		break;
	default:
		break;
	}
	*op = (struct sg_op){.kind = SG_OP_EMPTY};
}

struct sg_exec **sg_op_execs(const struct sg_op *op, size_t *ret_count)
{
	bool child = op->kind == SG_OP_GRAPH, conditional = op->kind == SG_OP_CONDITIONAL;

	*ret_count = child && op->child.exec != NULL                ? 1
	             : conditional && op->conditional.execs != NULL ? op->conditional.size
	                                                            : 0;
	return child ? (struct sg_exec **)(uintptr_t)&op->child.exec : conditional ? op->conditional.execs : NULL;
}

/*
 * In a graph: the event's point is the one it has when the graph runs. In a stream the wait was a point of the
 * operation itself.
 */
static void wait_for_event(struct sg_event *event, const struct sg_stream *stream)
{
	sg_lock();
	struct sg_point point = event->point;
	if (point.timeline != NULL)
		point.timeline->references++;
	/* A point of this very stream is this launch itself, or lies before it. */
	if (point.timeline != stream->timeline)
		sg_point_await(&point);
	sg_point_drop(&point);
	sg_unlock();
}

static void call_back(const struct sg_op *op, CUresult status)
{
	sg_thread.in_callback = true;
	if (op->kind == SG_OP_HOST)
		op->host.function(op->host.data);
	else
		op->callback.function(op->callback.stream, status, op->callback.data);
	sg_thread.in_callback = false;
}

CUresult sg_op_run(struct sg_op *op, struct sg_stream *stream)
{
	CUresult status = CUDA_SUCCESS;

	switch (op->kind) {
	case SG_OP_EMPTY:
	case SG_OP_ALLOC:
	case SG_OP_FREE:
		break;
	case SG_OP_COPY:
		status = sg_copy_run(&op->copy);
		break;
	case SG_OP_SET:
		status = sg_set_run(&op->set);
		break;
	case SG_OP_KERNEL:
		status = sg_launch_run(&op->launch);
		break;
	case SG_OP_HOST:
	case SG_OP_CALLBACK:
		call_back(op, status);
		break;
	case SG_OP_RECORD:
		sg_event_reached(op->record.event, op->record.recording);
		break;
	case SG_OP_WAIT:
		wait_for_event(op->wait.event, stream);
		break;
	case SG_OP_VALUES:
		status = sg_values_run(op->values.list, op->values.count, stream);
		break;
	case SG_OP_RELEASE:
		sg_pool_release(op->release.address);
		break;
	case SG_OP_GRAPH:
		status = sg_exec_run(op->child.exec, stream);
		break;
	case SG_OP_CONDITIONAL:
		status = sg_conditional_run(op, stream);
		break;
	}
	/*
	 * A kernel or memory operation that fails ends its context; a copy that finds its host memory gone is its
	 * caller's error.
	 */
	if (status != CUDA_SUCCESS && (op->kind == SG_OP_KERNEL || op->kind == SG_OP_VALUES))
		sg_context_fault(op->context != NULL ? op->context : stream->context, status);
	return status;
}
