/*
 * A conditional node runs one of its bodies, or one again and again, by the value of a handle, which kernels set. The
 * value is one for all launches: the driver keeps the launches of an instantiated graph apart, and says nothing about
 * several that share a handle.
 */
#include "tests/softgpu/driver/conditional.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "tests/softgpu/driver/exec.h"

/*
 * A loop that nobody ends would hang its test: beyond as many rounds it is an error, like a kernel that does not end.
 */
enum { ROUNDS_MAX = 1 << 20, BODIES_MAX = 4096 };

/* A CUgraphConditionalHandle. Its graph holds a reference, and each operation of its node. */
struct sg_conditional {
	const struct sg_graph *graph; /* compared, not followed */
	struct sg_context *context;
	unsigned references;
	unsigned initial;
	bool assign;   /* `initial`, at the start of each launch */
	bool has_node; /* a handle is for one node */
	_Atomic unsigned value;
	struct sg_conditional *next; /* of the same graph */
};

static struct sg_conditional *conditional_of(CUgraphConditionalHandle handle)
{
	struct sg_conditional *pointer = (struct sg_conditional *)(uintptr_t)handle;

	return sg_is(pointer, SG_CONDITIONAL) ? pointer : NULL;
}

static void drop(struct sg_conditional *handle)
{
	if (--handle->references > 0)
		return;
	sg_remove(handle);
	free(handle);
}

CUresult sg_cuGraphConditionalHandleCreate(CUgraphConditionalHandle *pHandle_out, CUgraph hGraph, CUcontext ctx,
                                           unsigned int defaultLaunchValue, unsigned int flags)
{
	struct sg_conditional *fresh = NULL;

	if (pHandle_out == NULL || (flags & ~(unsigned)CU_GRAPH_COND_ASSIGN_DEFAULT) != 0)
		return CUDA_ERROR_INVALID_VALUE;
	sg_lock();
	struct sg_graph *graph = sg_graph_of(hGraph);
	struct sg_context *context = sg_context_of(ctx);
	CUresult status = graph == NULL     ? CUDA_ERROR_INVALID_VALUE
	                  : context == NULL ? CUDA_ERROR_INVALID_CONTEXT
	                                    : CUDA_SUCCESS;
	if (status == CUDA_SUCCESS) {
		fresh = calloc(1, sizeof(*fresh));
		if (fresh == NULL || !sg_add(fresh, SG_CONDITIONAL))
			status = CUDA_ERROR_OUT_OF_MEMORY;
	}
	if (status == CUDA_SUCCESS) {
		fresh->graph = graph;
		fresh->context = context;
		fresh->references = 1;
		fresh->initial = defaultLaunchValue;
		fresh->assign = (flags & CU_GRAPH_COND_ASSIGN_DEFAULT) != 0;
		fresh->next = graph->conditionals;
		graph->conditionals = fresh;
	}
	sg_unlock();
	if (status == CUDA_SUCCESS)
		*pHandle_out = (CUgraphConditionalHandle)(uintptr_t)fresh;
	else
		free(fresh);
	return status;
}

CUresult sg_conditional_plan(const CUDA_CONDITIONAL_NODE_PARAMS *params, struct sg_op *ret_op)
{
	struct sg_conditional *handle = conditional_of(params->handle);
	unsigned most = params->type == CU_GRAPH_COND_TYPE_WHILE ? 1
	                : params->type == CU_GRAPH_COND_TYPE_IF  ? 2
	                                                         : BODIES_MAX;

	if (handle == NULL || (unsigned)params->type > CU_GRAPH_COND_TYPE_SWITCH || params->size == 0 ||
	    params->size > most || (params->ctx != NULL && sg_context_of(params->ctx) != handle->context))
		return CUDA_ERROR_INVALID_VALUE;
	struct sg_graph **bodies = calloc(params->size, sizeof(CUgraph));
	if (bodies == NULL)
		return CUDA_ERROR_OUT_OF_MEMORY;
	handle->references++;
	*ret_op = (struct sg_op){.kind = SG_OP_CONDITIONAL,
	                         .context = handle->context,
	                         .conditional = {handle, params->type, params->size, bodies, NULL}};
	for (unsigned i = 0; i < params->size; i++) {
		bodies[i] = sg_graph_create();
		if (bodies[i] == NULL) {
			sg_conditional_clear(ret_op);
			return CUDA_ERROR_OUT_OF_MEMORY;
		}
	}
	return CUDA_SUCCESS;
}

bool sg_conditional_fits(const struct sg_op *op, const struct sg_graph *graph)
{
	return op->conditional.handle->graph == graph && !op->conditional.handle->has_node;
}

void sg_conditional_added(struct sg_node *node)
{
	node->op.conditional.handle->has_node = true;
	for (unsigned i = 0; i < node->op.conditional.size; i++)
		node->op.conditional.bodies[i]->parent = node;
}

bool sg_conditional_clone(const struct sg_op *op, struct sg_op *ret_op)
{
	struct sg_exec *const *from = op->conditional.execs;
	unsigned size = op->conditional.size;

	ret_op->conditional.bodies = NULL;
	ret_op->conditional.execs = NULL;
	op->conditional.handle->references++;
	if (from == NULL)
		return true;
	ret_op->conditional.execs = calloc(size, sizeof(*from));
	for (unsigned i = 0; i < size && ret_op->conditional.execs != NULL; i++) {
		ret_op->conditional.execs[i] = sg_exec_clone(from[i]);
		if (ret_op->conditional.execs[i] == NULL)
			break;
	}
	if (ret_op->conditional.execs != NULL && ret_op->conditional.execs[size - 1] != NULL)
		return true;
	sg_conditional_clear(ret_op);
	return false;
}

void sg_conditional_clear(struct sg_op *op)
{
	struct sg_graph **bodies = op->conditional.bodies;
	struct sg_exec **execs = op->conditional.execs;
	struct sg_conditional *handle = op->conditional.handle;
	unsigned size = op->conditional.size;

	*op = (struct sg_op){.kind = SG_OP_EMPTY};
	for (unsigned i = 0; i < size; i++) {
		if (bodies != NULL && bodies[i] != NULL)
			sg_graph_free(bodies[i]);
		if (execs != NULL && execs[i] != NULL)
			sg_exec_free(execs[i]);
	}
	free(bodies);
	free(execs);
	drop(handle);
}

/* What the driver allows in a body, child graphs in it included. */
static bool may_be_body(const struct sg_graph *graph)
{
	for (size_t i = 0; i < graph->count; i++) {
		const struct sg_op *op = &graph->nodes[i]->op;
		bool allowed = op->kind == SG_OP_KERNEL || op->kind == SG_OP_EMPTY || op->kind == SG_OP_SET ||
		               op->kind == SG_OP_COPY || op->kind == SG_OP_CONDITIONAL ||
		               (op->kind == SG_OP_GRAPH && may_be_body(op->child.graph));
		if (!allowed)
			return false;
	}
	return true;
}

CUresult sg_conditional_instantiate(const struct sg_op *from, struct sg_op *op)
{
	CUresult status = CUDA_SUCCESS;

	op->conditional.execs = calloc(op->conditional.size, sizeof(struct sg_exec *));
	if (op->conditional.execs == NULL)
		return CUDA_ERROR_OUT_OF_MEMORY;
	for (unsigned i = 0; i < op->conditional.size && status == CUDA_SUCCESS; i++)
		status = may_be_body(from->conditional.bodies[i])
		                 ? sg_exec_create(from->conditional.bodies[i], &op->conditional.execs[i])
		                 : CUDA_ERROR_NOT_SUPPORTED;
	return status;
}

CUresult sg_conditional_run(const struct sg_op *op, struct sg_stream *stream)
{
	_Atomic unsigned *value = &op->conditional.handle->value;
	struct sg_exec *const *execs = op->conditional.execs;
	unsigned now = atomic_load(value);

	if (op->conditional.type == CU_GRAPH_COND_TYPE_WHILE) {
		CUresult status = CUDA_SUCCESS;
		for (unsigned round = 0; atomic_load(value) != 0 && status == CUDA_SUCCESS; round++)
			status = round < ROUNDS_MAX ? sg_exec_run(execs[0], stream) : CUDA_ERROR_LAUNCH_TIMEOUT;
		return status;
	}
	if (op->conditional.type == CU_GRAPH_COND_TYPE_IF)
		now = now != 0 ? 0 : 1;
	return now < op->conditional.size ? sg_exec_run(execs[now], stream) : CUDA_SUCCESS;
}

void sg_conditional_begin(const struct sg_exec *exec)
{
	for (size_t i = 0; i < exec->count; i++) {
		const struct sg_op *op = &exec->nodes[i].op;
		if (op->kind == SG_OP_CONDITIONAL && op->conditional.handle->assign)
			atomic_store(&op->conditional.handle->value, op->conditional.handle->initial);
		size_t count;
		struct sg_exec *const *inner = sg_op_execs(op, &count);
		for (size_t body = 0; body < count; body++)
			sg_conditional_begin(inner[body]);
	}
}

void sg_conditional_end(struct sg_conditional *handles)
{
	while (handles != NULL) {
		struct sg_conditional *next = handles->next;
		handles->graph = NULL;
		drop(handles);
		handles = next;
	}
}

bool sg_graph_has_conditionals(const struct sg_graph *graph)
{
	for (size_t i = 0; i < graph->count; i++)
		if (graph->nodes[i]->op.kind == SG_OP_CONDITIONAL)
			return true;
	return false;
}

bool sg_kernel_conditional(void *data, uint64_t handle, uint32_t value)
{
	(void)data;
	sg_lock();
	struct sg_conditional *conditional = conditional_of(handle);
	if (conditional != NULL)
		atomic_store(&conditional->value, value);
	sg_unlock();
	return conditional != NULL;
}
