/* Stream memory operations, one or a batch. */
#include "shim/effects/call.h"

bool effect_memop_extent(const CUstreamBatchMemOpParams *param, struct extent *ret_extent)
{
	uint64_t bytes;
	switch (param->operation) {
	case CU_STREAM_MEM_OP_WRITE_VALUE_32:
		bytes = 4;
		break;
	case CU_STREAM_MEM_OP_WRITE_VALUE_64:
		bytes = 8;
		break;
	default:
		return false;
	}
	*ret_extent = (struct extent){.address = param->writeValue.address, .width = bytes, .rows = 1, .slices = 1};
	return true;
}

void effect_memop(struct call *call, uint64_t address, uint64_t bytes)
{
	call->memop = true;
	effect_line(call, address, bytes);
}

void effect_memops(struct call *call, const CUstreamBatchMemOpParams *params, unsigned count)
{
	struct extent extent;
	call->memop = true;
	for (unsigned i = 0; params && count <= MEMOPS_MAX && i < count; i++)
		if (effect_memop_extent(&params[i], &extent))
			call_add_write(call, &extent, NULL);
}
