/* Virtual memory management: physical memory, reserved addresses, mappings with an access each. */
#include <stdlib.h>
#include <string.h>

#include "tests/softgpu/driver/memory.h"

/* A CUmemGenericAllocationHandle. The handle and each mapping hold a reference. */
struct sg_physical {
	CUmemAllocationProp prop;
	uint64_t offset; /* in the memfd */
	size_t bytes;
	unsigned handles, mappings;
};

/* What cuMemAddressReserve gave out, sorted or not: there are few. */
struct reservation {
	uint64_t address;
	size_t bytes;
	struct reservation *next;
};

static struct reservation *reservations;

static struct sg_physical *physical_of(CUmemGenericAllocationHandle handle)
{
	const void *pointer = (const void *)(uintptr_t)handle;

	return sg_is(pointer, SG_PHYSICAL) ? (struct sg_physical *)(uintptr_t)handle : NULL;
}

static void drop_if_unused(struct sg_physical *physical)
{
	if (physical->handles > 0 || physical->mappings > 0)
		return;
	sg_remove(physical);
	sg_physical_give(physical->prop.location.id, physical->offset, physical->bytes);
	free(physical);
}

static CUresult check_prop(const CUmemAllocationProp *prop)
{
	if (prop == NULL || prop->location.type != CU_MEM_LOCATION_TYPE_DEVICE)
		return CUDA_ERROR_INVALID_VALUE;
	if (!sg_is_device(prop->location.id))
		return CUDA_ERROR_INVALID_DEVICE;
	return CUDA_SUCCESS;
}

CUresult sg_cuMemGetAllocationGranularity(size_t *granularity, const CUmemAllocationProp *prop,
                                          CUmemAllocationGranularity_flags option)
{
	CUresult status = granularity == NULL || (unsigned)option > CU_MEM_ALLOC_GRANULARITY_RECOMMENDED
	                          ? CUDA_ERROR_INVALID_VALUE
	                          : check_prop(prop);

	if (status == CUDA_SUCCESS)
		*granularity = SG_PAGE;
	return status;
}

CUresult sg_cuMemAddressReserve(CUdeviceptr *ptr, size_t size, size_t alignment, CUdeviceptr addr,
                                unsigned long long flags)
{
	uint64_t address;

	if (ptr == NULL || size == 0 || size % SG_PAGE != 0 || (alignment & (alignment - 1)) != 0 || flags != 0)
		return CUDA_ERROR_INVALID_VALUE;
	struct reservation *fresh = malloc(sizeof(*fresh));
	if (fresh == NULL)
		return CUDA_ERROR_OUT_OF_MEMORY;
	sg_lock();
	bool taken = sg_space_take(size, alignment, addr % SG_PAGE == 0 ? addr : 0, &address);
	if (taken) {
		*fresh = (struct reservation){address, size, reservations};
		reservations = fresh;
	}
	sg_unlock();
	if (!taken) {
		free(fresh);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	*ptr = address;
	return CUDA_SUCCESS;
}

/* The allocation number of the first mapping that ends behind the address. */
static size_t mapping_from(uint64_t address)
{
	size_t i = 0;

	while (i < sg_allocation_count() && sg_allocation_number(i)->address + sg_allocation_number(i)->bytes <= address)
		i++;
	return i;
}

static bool has_mappings(uint64_t address, size_t bytes)
{
	size_t i = mapping_from(address);

	return i < sg_allocation_count() && sg_allocation_number(i)->address < address + bytes;
}

CUresult sg_cuMemAddressFree(CUdeviceptr ptr, size_t size)
{
	CUresult status = CUDA_ERROR_INVALID_VALUE;

	sg_lock();
	struct reservation **link = &reservations;
	while (*link != NULL && ((*link)->address != ptr || (*link)->bytes != size))
		link = &(*link)->next;
	struct reservation *found = *link;
	if (found != NULL && !has_mappings(ptr, size)) {
		*link = found->next;
		sg_space_give(ptr, size);
		free(found);
		status = CUDA_SUCCESS;
	}
	sg_unlock();
	return status;
}

CUresult sg_cuMemCreate(CUmemGenericAllocationHandle *handle, size_t size, const CUmemAllocationProp *prop,
                        unsigned long long flags)
{
	bool bad = handle == NULL || size == 0 || size % SG_PAGE != 0 || flags != 0 || prop == NULL ||
	           prop->type != CU_MEM_ALLOCATION_TYPE_PINNED;
	CUresult status = bad ? CUDA_ERROR_INVALID_VALUE : check_prop(prop);

	if (status != CUDA_SUCCESS)
		return status;
	if (prop->requestedHandleTypes != CU_MEM_HANDLE_TYPE_NONE)
		return CUDA_ERROR_NOT_SUPPORTED;
	struct sg_physical *fresh = calloc(1, sizeof(*fresh));
	if (fresh == NULL)
		return CUDA_ERROR_OUT_OF_MEMORY;
	sg_lock();
	bool taken = sg_physical_take(prop->location.id, size, &fresh->offset);
	if (taken && !sg_add(fresh, SG_PHYSICAL)) {
		sg_physical_give(prop->location.id, fresh->offset, size);
		taken = false;
	}
	if (taken) {
		fresh->prop = *prop;
		fresh->bytes = size;
		fresh->handles = 1;
	}
	sg_unlock();
	if (!taken) {
		free(fresh);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	*handle = (CUmemGenericAllocationHandle)(uintptr_t)fresh;
	return CUDA_SUCCESS;
}

CUresult sg_cuMemRelease(CUmemGenericAllocationHandle handle)
{
	CUresult status = CUDA_ERROR_INVALID_VALUE;

	sg_lock();
	struct sg_physical *physical = physical_of(handle);
	if (physical != NULL && physical->handles > 0) {
		physical->handles--;
		drop_if_unused(physical);
		status = CUDA_SUCCESS;
	}
	sg_unlock();
	return status;
}

static bool reserved(uint64_t address, size_t bytes)
{
	for (struct reservation *place = reservations; place != NULL; place = place->next)
		if (address >= place->address && address - place->address <= place->bytes &&
		    bytes <= place->bytes - (size_t)(address - place->address))
			return true;
	return false;
}

CUresult sg_cuMemMap(CUdeviceptr ptr, size_t size, size_t offset, CUmemGenericAllocationHandle handle,
                     unsigned long long flags)
{
	CUresult status = CUDA_ERROR_INVALID_VALUE;

	sg_lock();
	struct sg_physical *physical = physical_of(handle);
	bool known = physical != NULL && physical->handles > 0 && flags == 0;
	/* The driver maps memory whole. */
	if (known && (offset != 0 || size != physical->bytes)) {
		status = CUDA_ERROR_NOT_SUPPORTED;
	} else if (known && ptr % SG_PAGE == 0 && reserved(ptr, size) && !has_mappings(ptr, size)) {
		struct sg_allocation fresh = {.address = ptr,
		                              .bytes = size,
		                              .kind = SG_MEMORY_MAPPING,
		                              .access = SG_ACCESS_NONE,
		                              .device = physical->prop.location.id,
		                              .physical = physical,
		                              .physical_offset = offset};
		status = CUDA_ERROR_OUT_OF_MEMORY;
		if (sg_arena_map(ptr, size, physical->offset + offset)) {
			if (sg_allocation_add(&fresh) != NULL) {
				physical->mappings++;
				status = CUDA_SUCCESS;
			} else {
				sg_arena_unmap(ptr, size);
			}
		}
	}
	sg_unlock();
	return status;
}

/* The range must consist of whole mappings. Calls `act` for each when it does. */
static bool for_whole_mappings(uint64_t address, size_t bytes, bool (*act)(struct sg_allocation *mapping, int access),
                               int access)
{
	uint64_t at = address;

	while (at - address < bytes) {
		struct sg_allocation *mapping = sg_allocation_of(at);
		if (mapping == NULL || mapping->kind != SG_MEMORY_MAPPING ||
		    mapping->bytes > bytes - (size_t)(at - address))
			return false;
		at += mapping->bytes;
	}
	for (at = address; at - address < bytes;) {
		struct sg_allocation *mapping = sg_allocation_of(at);
		at += mapping->bytes;
		if (!act(mapping, access))
			return false;
	}
	return true;
}

static bool unmap(struct sg_allocation *mapping, int access)
{
	struct sg_physical *physical = mapping->physical;

	(void)access;
	sg_arena_unmap(mapping->address, mapping->bytes);
	sg_allocation_remove(mapping);
	physical->mappings--;
	drop_if_unused(physical);
	return true;
}

CUresult sg_cuMemUnmap(CUdeviceptr ptr, size_t size)
{
	sg_lock();
	/* An operation under way must not lose its memory: a real device would fault, this process would die. */
	sg_drain_all();
	bool done = size > 0 && for_whole_mappings(ptr, size, unmap, 0);
	sg_unlock();
	return done ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static bool protect(struct sg_allocation *mapping, int access)
{
	if (!sg_arena_protect(mapping->address, mapping->bytes, (enum sg_access)access))
		return false;
	mapping->access = (enum sg_access)access;
	return true;
}

CUresult sg_cuMemSetAccess(CUdeviceptr ptr, size_t size, const CUmemAccessDesc *desc, size_t count)
{
	int access = -1;

	if (desc == NULL || count == 0 || size == 0)
		return CUDA_ERROR_INVALID_VALUE;
	sg_lock();
	struct sg_allocation *first = sg_allocation_of(ptr);
	for (size_t i = 0; i < count; i++) {
		if (desc[i].location.type != CU_MEM_LOCATION_TYPE_DEVICE || !sg_is_device(desc[i].location.id) ||
		    (desc[i].flags != CU_MEM_ACCESS_FLAGS_PROT_NONE && desc[i].flags != CU_MEM_ACCESS_FLAGS_PROT_READ &&
		     desc[i].flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE))
			first = NULL;
		/* One access for all devices: the widest that was asked for. */
		else if ((int)desc[i].flags > access)
			access = (int)desc[i].flags;
	}
	if (first != NULL && access != SG_ACCESS_WRITE)
		sg_drain_all();
	bool done = first != NULL && for_whole_mappings(ptr, size, protect, access);
	sg_unlock();
	return done ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult sg_cuMemGetAccess(unsigned long long *flags, const CUmemLocation *location, CUdeviceptr ptr)
{
	CUresult status = CUDA_ERROR_INVALID_VALUE;

	if (flags == NULL || location == NULL || location->type != CU_MEM_LOCATION_TYPE_DEVICE ||
	    !sg_is_device(location->id))
		return status;
	sg_lock();
	const struct sg_allocation *mapping = sg_allocation_at(ptr);
	if (mapping != NULL && mapping->kind == SG_MEMORY_MAPPING) {
		*flags = (unsigned long long)mapping->access;
		status = CUDA_SUCCESS;
	}
	sg_unlock();
	return status;
}

CUresult sg_cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *handle, void *addr)
{
	CUresult status = CUDA_ERROR_INVALID_VALUE;

	sg_lock();
	const struct sg_allocation *mapping = sg_allocation_at((uint64_t)(uintptr_t)addr);
	if (handle != NULL && mapping != NULL && mapping->kind == SG_MEMORY_MAPPING) {
		mapping->physical->handles++;
		*handle = (CUmemGenericAllocationHandle)(uintptr_t)mapping->physical;
		status = CUDA_SUCCESS;
	}
	sg_unlock();
	return status;
}

CUresult sg_cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp *prop, CUmemGenericAllocationHandle handle)
{
	sg_lock();
	const struct sg_physical *physical = physical_of(handle);
	if (physical != NULL && prop != NULL)
		*prop = physical->prop;
	sg_unlock();
	return physical != NULL && prop != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
