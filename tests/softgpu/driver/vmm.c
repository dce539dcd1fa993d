/* Virtual memory management: physical memory, reserved addresses, mappings with an access each. */
#include "tests/softgpu/driver/vmm.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/softgpu/driver/memory.h"
#include "tests/softgpu/driver/share.h"

/* What cuMemAddressReserve gave out, sorted or not: there are few. */
struct reservation {
	uint64_t address;
	size_t bytes;
	struct reservation *next;
};

static struct reservation *reservations;

struct sg_physical *sg_physical_of(CUmemGenericAllocationHandle handle)
{
	const void *pointer = (const void *)(uintptr_t)handle;

	return sg_is(pointer, SG_PHYSICAL) ? (struct sg_physical *)(uintptr_t)handle : NULL;
}

static void drop_if_unused(struct sg_physical *physical)
{
	if (physical->handles > 0 || physical->mappings > 0)
		return;
	sg_remove(physical);
	if (physical->fd >= 0) {
		close(physical->fd);
		if (!physical->imported)
			sg_physical_count(physical->prop.location.id, -(int64_t)physical->bytes);
	} else {
		sg_physical_give(physical->prop.location.id, physical->offset, physical->bytes);
	}
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

CUmemGenericAllocationHandle sg_physical_adopt(const CUmemAllocationProp *prop, int fd, size_t bytes, bool imported)
{
	struct sg_physical *fresh = calloc(1, sizeof(*fresh));

	if (fresh == NULL || !sg_add(fresh, SG_PHYSICAL)) {
		free(fresh);
		return 0;
	}
	*fresh = (struct sg_physical){.prop = *prop, .fd = fd, .bytes = bytes, .imported = imported, .handles = 1};
	return (CUmemGenericAllocationHandle)(uintptr_t)fresh;
}

/* Memory that can be exported has a file of its own: what gets it must not get the rest of the device. */
static CUmemGenericAllocationHandle create_shareable(const CUmemAllocationProp *prop, size_t bytes)
{
	int fd = bytes > sg_device_free(prop->location.id) ? -1 : sg_share_create(prop->location.id, bytes);
	CUmemGenericAllocationHandle handle = fd < 0 ? 0 : sg_physical_adopt(prop, fd, bytes, false);

	if (handle != 0)
		sg_physical_count(prop->location.id, (int64_t)bytes);
	else if (fd >= 0)
		close(fd);
	return handle;
}

static CUmemGenericAllocationHandle create_plain(const CUmemAllocationProp *prop, size_t bytes)
{
	uint64_t offset;

	if (!sg_physical_take(prop->location.id, bytes, &offset))
		return 0;
	CUmemGenericAllocationHandle handle = sg_physical_adopt(prop, -1, bytes, false);
	if (handle == 0)
		sg_physical_give(prop->location.id, offset, bytes);
	else
		sg_physical_of(handle)->offset = offset;
	return handle;
}

CUresult sg_cuMemCreate(CUmemGenericAllocationHandle *handle, size_t size, const CUmemAllocationProp *prop,
                        unsigned long long flags)
{
	bool bad = handle == NULL || size == 0 || size % SG_PAGE != 0 || flags != 0 || prop == NULL ||
	           prop->type != CU_MEM_ALLOCATION_TYPE_PINNED;
	CUresult status = bad ? CUDA_ERROR_INVALID_VALUE : check_prop(prop);

	if (status != CUDA_SUCCESS)
		return status;
	if ((prop->requestedHandleTypes & ~(unsigned)CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) != 0)
		return CUDA_ERROR_NOT_SUPPORTED;
	sg_lock();
	CUmemGenericAllocationHandle fresh = prop->requestedHandleTypes != CU_MEM_HANDLE_TYPE_NONE
	                                             ? create_shareable(prop, size)
	                                             : create_plain(prop, size);
	if (fresh != 0)
		*handle = fresh;
	sg_unlock();
	return fresh != 0 ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult sg_cuMemRelease(CUmemGenericAllocationHandle handle)
{
	CUresult status = CUDA_ERROR_INVALID_VALUE;

	sg_lock();
	struct sg_physical *physical = sg_physical_of(handle);
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
	struct sg_physical *physical = sg_physical_of(handle);
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
		if (sg_arena_map(ptr, size, physical->fd, physical->offset + offset)) {
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

/* Does the range consist of whole mappings? */
static bool is_whole_mappings(uint64_t address, size_t bytes)
{
	for (uint64_t at = address; at - address < bytes;) {
		const struct sg_allocation *mapping = sg_allocation_of(at);
		if (mapping == NULL || mapping->kind != SG_MEMORY_MAPPING ||
		    mapping->bytes > bytes - (size_t)(at - address))
			return false;
		at += mapping->bytes;
	}
	return true;
}

static void unmap(struct sg_allocation *mapping)
{
	struct sg_physical *physical = mapping->physical;

	sg_arena_unmap(mapping->address, mapping->bytes);
	sg_allocation_remove(mapping);
	physical->mappings--;
	drop_if_unused(physical);
}

CUresult sg_cuMemUnmap(CUdeviceptr ptr, size_t size)
{
	CUresult status = CUDA_ERROR_INVALID_VALUE;

	sg_lock();
	if (size > 0 && is_whole_mappings(ptr, size)) {
		/*
		 * An operation under way must not lose its memory: a real device would fault, this process would die.
		 */
		sg_drain_all();
		/* That lets go of the lock: another thread may have been here. */
		if (is_whole_mappings(ptr, size)) {
			for (size_t done = 0, bytes; done < size; done += bytes) {
				struct sg_allocation *mapping = sg_allocation_of(ptr + done);
				bytes = mapping->bytes;
				unmap(mapping);
			}
			status = CUDA_SUCCESS;
		}
	} else if (size > 0 && reserved(ptr, size) && !has_mappings(ptr, size)) {
		/* The driver has nothing against unmapping what is reserved only. */
		status = CUDA_SUCCESS;
	}
	sg_unlock();
	return status;
}

/* What the descriptions make of an access: devices that they do not name keep theirs. False where one is wrong. */
static bool changed_access(uint16_t *access, const CUmemAccessDesc *desc, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		int device = desc[i].location.id;
		if (desc[i].location.type != CU_MEM_LOCATION_TYPE_DEVICE || !sg_is_device(device) ||
		    (desc[i].flags != CU_MEM_ACCESS_FLAGS_PROT_NONE && desc[i].flags != CU_MEM_ACCESS_FLAGS_PROT_READ &&
		     desc[i].flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE))
			return false;
		*access = (uint16_t)((*access & ~(3u << 2 * device)) | (unsigned)desc[i].flags << 2 * device);
	}
	return true;
}

static bool protect_all(uint64_t address, size_t bytes, const CUmemAccessDesc *desc, size_t count)
{
	for (uint64_t at = address; at - address < bytes;) {
		struct sg_allocation *mapping = sg_allocation_of(at);
		uint16_t access = mapping->access;
		changed_access(&access, desc, count);
		if (!sg_arena_protect(mapping->address, mapping->bytes, access))
			return false;
		mapping->access = access;
		at += mapping->bytes;
	}
	return true;
}

CUresult sg_cuMemSetAccess(CUdeviceptr ptr, size_t size, const CUmemAccessDesc *desc, size_t count)
{
	uint16_t access = SG_ACCESS_WRITE;

	if (desc == NULL || count == 0 || size == 0 || !changed_access(&access, desc, count))
		return CUDA_ERROR_INVALID_VALUE;
	sg_lock();
	bool good = is_whole_mappings(ptr, size);
	/* Work under way has the access that it was checked for. */
	if (good && access != SG_ACCESS_WRITE) {
		sg_drain_all();
		good = is_whole_mappings(ptr, size);
	}
	good = good && protect_all(ptr, size, desc, count);
	sg_unlock();
	return good ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult sg_cuMemGetAccess(unsigned long long *flags, const CUmemLocation *location, CUdeviceptr ptr)
{
	CUresult status = CUDA_ERROR_INVALID_VALUE;

	if (flags == NULL || location == NULL)
		return status;
	bool device = location->type == CU_MEM_LOCATION_TYPE_DEVICE;
	if (device && !sg_is_device(location->id))
		return CUDA_ERROR_INVALID_DEVICE;
	*flags = CU_MEM_ACCESS_FLAGS_PROT_NONE;
	sg_lock();
	const struct sg_allocation *memory = sg_allocation_at(ptr);
	if (memory != NULL && memory->kind == SG_MEMORY_MAPPING) {
		/* For the host the real driver tells that of the memory's device. */
		*flags = sg_access_of(memory->access, device ? location->id : memory->device);
		status = CUDA_SUCCESS;
	} else if (memory != NULL && (memory->kind == SG_MEMORY_DEVICE || memory->kind == SG_MEMORY_POOL)) {
		status = CUDA_SUCCESS; /* it may be asked, and nobody has access */
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
	const struct sg_physical *physical = sg_physical_of(handle);
	if (physical != NULL && prop != NULL)
		*prop = physical->prop;
	sg_unlock();
	return physical != NULL && prop != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
