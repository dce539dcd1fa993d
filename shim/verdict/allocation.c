#include "shim/verdict/allocation.h"

#include <stdbool.h>

#include "shim/twins/serve.h"
#include "shim/twins/twin.h"
#include "shim/verdict/neighbours.h"
#include "shim/verdict/protect.h"

#define MAPPINGS 64 /* that are looked at beyond a range, on each side */

/* Mappings of one reservation lie side by side and serve one pool: those next to the range's are its neighbours as well. Other allocations end where they end. */
static void add_mappings(struct allocation *allocation)
{
	struct registry *known = neighbours_all();
	CUdeviceptr base;
	size_t bytes;
	/* What was found out for another range: a pool may have thousands of mappings, and a model as many tensors. */
	if (known && neighbours_hit(known, allocation->start) && neighbours_hit(known, allocation->end - 1))
		return;
	if (!twin_is_mapping(allocation->start))
		return;
	for (int i = 0;
	     i < MAPPINGS && allocation->start && twin_is_mapping(allocation->start - 1) &&
	     allocation_range(&base, &bytes, allocation->start - 1) == CUDA_SUCCESS && base < allocation->start;
	     i++)
		allocation->start = base;
	for (int i = 0;
	     i < MAPPINGS && twin_is_mapping(allocation->end) &&
	     allocation_range(&base, &bytes, allocation->end) == CUDA_SUCCESS && base + bytes > allocation->end;
	     i++)
		allocation->end = base + bytes;
}

/* Of the context that owns the memory: the driver knows no other's (CUDA_ERROR_NOT_FOUND). */
static CUresult range_there(CUdeviceptr *ret_base, size_t *ret_bytes, uint64_t address, int device, CUcontext owner)
{
	CUcontext context;
	bool pushed;
	CUresult result = protect_enter_context(device, owner, &context, &pushed);
	if (result != CUDA_SUCCESS)
		return result;
	result = serve_range(ret_base, ret_bytes, address);
	if (pushed)
		drv.cuCtxPopCurrent_v2(&(CUcontext){NULL});
	return result;
}

/* Whose memory is it? */
static void owner_of(uint64_t address, int *ret_device, CUcontext *ret_context)
{
	CUcontext served = serve_context(address);
	*ret_device = -1;
	*ret_context = NULL;
	if (drv.cuPointerGetAttribute(ret_device, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, address) != CUDA_SUCCESS)
		*ret_device = -1;
	if (drv.cuPointerGetAttribute(ret_context, CU_POINTER_ATTRIBUTE_CONTEXT, address) != CUDA_SUCCESS)
		*ret_context = NULL;
	if (served)
		*ret_context = served;
}

CUresult allocation_range(CUdeviceptr *ret_base, size_t *ret_bytes, uint64_t address)
{
	int device;
	CUcontext owner;
	CUresult result = serve_range(ret_base, ret_bytes, address);
	if (result != CUDA_ERROR_NOT_FOUND)
		return result;
	owner_of(address, &device, &owner);
	return device >= 0 || owner ? range_there(ret_base, ret_bytes, address, device, owner) : result;
}

cuconst_result allocation_of(uint64_t start, uint64_t end, struct allocation *ret, CUresult *ret_result)
{
	unsigned type = 0;
	struct allocation found;
	CUresult result = drv.cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, start);
	*ret_result = result;
	if (result != CUDA_SUCCESS || type != CU_MEMORYTYPE_DEVICE)
		return CUCONST_ERROR_NOT_DEVICE;
	owner_of(start, &found.device, &found.context);
	for (uint64_t at = start; at < end; at = found.end) {
		CUdeviceptr base;
		size_t bytes;
		*ret_result = result = allocation_range(&base, &bytes, at);
		if (result != CUDA_SUCCESS || base + bytes <= at)
			return at == start ? CUCONST_ERROR_NOT_DEVICE : CUCONST_ERROR_OUT_OF_RANGE;
		if (at == start)
			found.start = base;
		found.end = base + bytes;
	}
	/* Served allocations share mappings as plain ones do, and are as little each other's neighbours. */
	if (!serve_context(start))
		add_mappings(&found);
	*ret = found;
	return CUCONST_OK;
}
