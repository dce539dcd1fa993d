/* Making and ending mappings: the driver's side of a block. No lock is held here. */
#include <stdlib.h>

#include "shim/twins/serve_internal.h"

struct serve_events serve_events;

static void give_back(CUdeviceptr base, size_t bytes, CUmemGenericAllocationHandle handle)
{
	drv.cuMemAddressFree(base, bytes);
	drv.cuMemRelease(handle);
}

CUresult serve_map(const struct view *view, size_t bytes, CUdeviceptr *ret_base, CUmemGenericAllocationHandle *ret_handle)
{
	CUmemGenericAllocationHandle handle;
	CUdeviceptr base;
	CUresult result = drv.cuMemCreate(&handle, bytes, &view->prop, 0);

	if (result != CUDA_SUCCESS)
		return result;
	result = drv.cuMemAddressReserve(&base, bytes, 0, 0, 0);
	if (result != CUDA_SUCCESS) {
		drv.cuMemRelease(handle);
		return result;
	}
	result = drv.cuMemMap(base, bytes, 0, handle, 0);
	if (result != CUDA_SUCCESS) {
		give_back(base, bytes, handle);
		return result;
	}
	result = drv.cuMemSetAccess(base, bytes, view->access, view->access_count);
	if (result != CUDA_SUCCESS) {
		drv.cuMemUnmap(base, bytes);
		give_back(base, bytes, handle);
		return result;
	}
	*ret_base = base;
	*ret_handle = handle;
	return CUDA_SUCCESS;
}

void serve_drop_mapping(const struct block *block)
{
	if (serve_events.unmapping)
		serve_events.unmapping(block->base, block->bytes);
	bool done = drv.cuMemUnmap(block->base, block->bytes) == CUDA_SUCCESS;
	if (serve_events.unmapped)
		serve_events.unmapped(block->base, block->bytes, done);
	give_back(block->base, block->bytes, block->handle);
	slab_destroy(block->slab);
}

void serve_take_down(struct block *taken)
{
	while (taken) {
		struct block *block = taken;

		taken = block->next;
		serve_drop_mapping(block);
		free(block);
	}
}

CUresult serve_set_access(const struct block *block, const struct view *view, CUdevice revoked)
{
	CUmemAccessDesc access[SERVE_DEVICES_MAX + 1];
	size_t count = view->access_count;

	/*
	 * All devices in one call: an access that is not named stays, but who revokes must not leave a moment in which
	 * the others lose it.
	 */
	for (size_t i = 0; i < count; i++)
		access[i] = view->access[i];
	if (revoked >= 0)
		access[count++] = (CUmemAccessDesc){.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = revoked},
		                                    .flags = CU_MEM_ACCESS_FLAGS_PROT_NONE};
	CUresult result = drv.cuMemSetAccess(block->base, block->bytes, access, count);
	if (result == CUDA_SUCCESS && serve_events.access_changed)
		serve_events.access_changed(block->base, block->bytes);
	return result;
}

void serve_hold(struct block *block)
{
	block->users++;
}

void serve_let_go(struct block *block, struct block **taken)
{
	if (!--block->users && !block->arena) {
		block->next = *taken;
		*taken = block;
	}
}
