#include "tests/softgpu/driver/graph_memory.h"

#include <stdlib.h>

#include "tests/softgpu/driver/memory.h"

CUresult sg_block_create(const CUDA_MEM_ALLOC_NODE_PARAMS_v2 *asked, struct sg_block **ret_block)
{
	const CUmemPoolProps *props = &asked->poolProps;
	struct sg_allocation fresh = {.bytes = asked->bytesize, .kind = SG_MEMORY_GRAPH, .access = SG_ACCESS_WRITE};

	if (asked->bytesize == 0 || props->allocType != CU_MEM_ALLOCATION_TYPE_PINNED ||
	    props->location.type != CU_MEM_LOCATION_TYPE_DEVICE || !sg_is_device(props->location.id))
		return CUDA_ERROR_INVALID_VALUE;
	if (props->handleTypes != CU_MEM_HANDLE_TYPE_NONE)
		return CUDA_ERROR_NOT_SUPPORTED;
	struct sg_block *block = calloc(1, sizeof(*block));
	if (block == NULL)
		return CUDA_ERROR_OUT_OF_MEMORY;
	fresh.device = props->location.id;
	fresh.block = block;
	if (!sg_heap_take(fresh.device, fresh.bytes, &fresh.address)) {
		free(block);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	if (sg_allocation_add(&fresh) == NULL) {
		sg_heap_give(fresh.device, fresh.address, fresh.bytes);
		free(block);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	block->references = 1;
	block->asked = *asked;
	block->asked.accessDescs = NULL; /* the caller's */
	block->asked.accessDescCount = 0;
	block->asked.dptr = block->address = fresh.address;
	*ret_block = block;
	return CUDA_SUCCESS;
}

struct sg_block *sg_block_hold(struct sg_block *block)
{
	block->references++;
	return block;
}

void sg_block_drop(struct sg_block *block)
{
	if (--block->references > 0)
		return;
	sg_device_give(sg_allocation_of(block->address));
	free(block);
}

struct sg_block *sg_block_of(uint64_t address)
{
	const struct sg_allocation *allocation = sg_allocation_of(address);

	return allocation != NULL && allocation->kind == SG_MEMORY_GRAPH ? allocation->block : NULL;
}

CUresult sg_block_free(struct sg_block *block)
{
	if (!block->out)
		return CUDA_ERROR_INVALID_VALUE;
	block->out = false;
	sg_block_drop(block);
	return CUDA_SUCCESS;
}

bool sg_graph_has_memory(const struct sg_graph *graph)
{
	for (size_t i = 0; i < graph->count; i++)
		if (graph->nodes[i]->op.kind == SG_OP_ALLOC || graph->nodes[i]->op.kind == SG_OP_FREE)
			return true;
	return false;
}

bool sg_graph_frees(const struct sg_graph *graph, const struct sg_block *block)
{
	for (size_t i = 0; i < graph->count; i++)
		if (graph->nodes[i]->op.kind == SG_OP_FREE && graph->nodes[i]->op.block == block)
			return true;
	return false;
}

static bool exec_has(const struct sg_exec *exec, enum sg_op_kind kind, const struct sg_block *block)
{
	for (size_t i = 0; i < exec->count; i++)
		if (exec->nodes[i].op.kind == kind && exec->nodes[i].op.block == block)
			return true;
	return false;
}

CUresult sg_exec_take_blocks(struct sg_exec *exec)
{
	bool frees_itself = (exec->flags & CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH) != 0;

	for (size_t i = 0; i < exec->count; i++) {
		const struct sg_op *op = &exec->nodes[i].op;
		bool bad = (op->kind == SG_OP_ALLOC && op->block->out && !frees_itself) ||
		           (op->kind == SG_OP_FREE && !op->block->out && !exec_has(exec, SG_OP_ALLOC, op->block));
		if (bad)
			return CUDA_ERROR_INVALID_VALUE;
	}
	for (size_t i = 0; i < exec->count; i++) {
		const struct sg_op *op = &exec->nodes[i].op;
		if (op->kind == SG_OP_ALLOC && !op->block->out && !exec_has(exec, SG_OP_FREE, op->block)) {
			op->block->out = true;
			sg_block_hold(op->block);
		} else if (op->kind == SG_OP_FREE && op->block->out) {
			op->block->out = false;
			sg_block_drop(op->block); /* the operation has a reference of its own */
		}
	}
	return CUDA_SUCCESS;
}
