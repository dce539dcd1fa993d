#include "shim/verdict/allocation.h"

#include <stdbool.h>

#include "shim/twins/serve.h"
#include "shim/verdict/neighbours.h"

#define MAPPINGS 64 /* that are looked at beyond a range, on each side */

/* Is this address mapped by virtual memory management? */
static bool is_mapping(uint64_t address)
{
	CUmemGenericAllocationHandle handle;
	if (!drv.cuMemRetainAllocationHandle || !drv.cuMemRelease ||
	    drv.cuMemRetainAllocationHandle(&handle, (void *)address) != CUDA_SUCCESS)
		return false;
	drv.cuMemRelease(handle);
	return true;
}

/* Mappings of one reservation lie side by side and serve one pool: those next to the range's are its neighbours as well. Other allocations end where they end. */
static void add_mappings(struct allocation *allocation)
{
	struct registry *known = neighbours_all();
	CUdeviceptr base;
	size_t bytes;
	/* What was found out for another range: a pool may have thousands of mappings, and a model as many tensors. */
	if (known && neighbours_hit(known, allocation->start) && neighbours_hit(known, allocation->end - 1))
		return;
	if (!is_mapping(allocation->start))
		return;
	for (int i = 0; i < MAPPINGS && allocation->start && is_mapping(allocation->start - 1) &&
	                drv.cuMemGetAddressRange_v2(&base, &bytes, allocation->start - 1) == CUDA_SUCCESS &&
	                base < allocation->start;
	     i++)
		allocation->start = base;
	for (int i = 0; i < MAPPINGS && is_mapping(allocation->end) &&
	                drv.cuMemGetAddressRange_v2(&base, &bytes, allocation->end) == CUDA_SUCCESS &&
	                base + bytes > allocation->end;
	     i++)
		allocation->end = base + bytes;
}

cuconst_result allocation_of(uint64_t start, uint64_t end, struct allocation *ret, CUresult *ret_result)
{
	unsigned type = 0;
	struct allocation found = {.device = -1};
	CUresult result = drv.cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, start);
	*ret_result = result;
	if (result != CUDA_SUCCESS || type != CU_MEMORYTYPE_DEVICE)
		return CUCONST_ERROR_NOT_DEVICE;
	if (drv.cuPointerGetAttribute(&found.device, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, start) != CUDA_SUCCESS)
		found.device = -1;
	if (drv.cuPointerGetAttribute(&found.context, CU_POINTER_ATTRIBUTE_CONTEXT, start) != CUDA_SUCCESS)
		found.context = NULL;
	CUcontext served = serve_context(start);
	if (served)
		found.context = served;
	for (uint64_t at = start; at < end; at = found.end) {
		CUdeviceptr base;
		size_t bytes;
		*ret_result = result = serve_range(&base, &bytes, at);
		if (result != CUDA_SUCCESS || base + bytes <= at)
			return at == start ? CUCONST_ERROR_NOT_DEVICE : CUCONST_ERROR_OUT_OF_RANGE;
		if (at == start)
			found.start = base;
		found.end = base + bytes;
	}
	/* Served allocations share mappings as plain ones do, and are as little each other's neighbours. */
	if (!served)
		add_mappings(&found);
	*ret = found;
	return CUCONST_OK;
}
