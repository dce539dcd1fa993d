#include "shim/twins/mirror.h"

#include "shim/twins/twin_map.h"

#define DEVICES 64 /* bits of mapping->readers */

static __thread CUresult last_error;

CUresult mirror_last_error(void)
{
	return last_error;
}

bool mirror_possible(void)
{
	return drv.cuMemAddressReserve && drv.cuMemAddressFree && drv.cuMemMap && drv.cuMemUnmap &&
	       drv.cuMemSetAccess && drv.cuMemGetAccess && drv.cuMemRelease && drv.cuMemRetainAllocationHandle &&
	       drv.cuMemGetAllocationPropertiesFromHandle && drv.cuMemGetAddressRange_v2 && drv.cuDeviceGetCount;
}

static enum twin_answer failed(CUresult result)
{
	last_error = result;
	return result == CUDA_ERROR_OUT_OF_MEMORY ? TWIN_NO_ROOM : TWIN_REFUSED;
}

/* Memory of a graph looks like a mapping that no hook saw, but is of any size, and there is no handle of it. */
static enum twin_answer not_mapped(const struct space *space, CUresult result)
{
	return space->found && result == CUDA_ERROR_INVALID_VALUE ? TWIN_POOL : failed(result);
}

/* Nothing of the driver's: no memory of our own, or addresses that the table does not reach. */
static enum twin_answer no_room(void)
{
	last_error = CUDA_SUCCESS;
	return TWIN_NO_ROOM;
}

static uint64_t twin_start(const struct space *space, const struct mapping *mapping)
{
	return space->twin + (mapping->start - space->start);
}

/* The devices that may read a mapping, as bits. */
static uint64_t readers_of(uint64_t address)
{
	int count = 0;
	uint64_t readers = 0;
	if (drv.cuDeviceGetCount(&count) != CUDA_SUCCESS)
		return 0;
	for (int i = 0; i < count && i < DEVICES; i++) {
		const CUmemLocation place = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = i};
		unsigned long long flags = 0;
		if (drv.cuMemGetAccess(&flags, &place, address) == CUDA_SUCCESS && flags != CU_MEM_ACCESS_FLAGS_PROT_NONE)
			readers |= UINT64_C(1) << i;
	}
	return readers;
}

/* Whoever may read the memory may read its twin, and nobody may write it. */
static CUresult let_read(const struct space *space, struct mapping *mapping, uint64_t readers)
{
	CUmemAccessDesc access[DEVICES];
	size_t count = 0;
	for (int i = 0; i < DEVICES; i++) {
		uint64_t bit = UINT64_C(1) << i;
		if ((readers | mapping->readers) & bit)
			access[count++] = (CUmemAccessDesc){.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = i},
			                                    .flags = readers & bit ? CU_MEM_ACCESS_FLAGS_PROT_READ
			                                                           : CU_MEM_ACCESS_FLAGS_PROT_NONE};
	}
	CUresult result = count ? drv.cuMemSetAccess(twin_start(space, mapping), mapping->bytes, access, count)
	                        : CUDA_SUCCESS;
	if (result == CUDA_SUCCESS)
		mapping->readers = readers;
	return result;
}

/* Memory of a device, which is what can be mapped twice; a multicast object has no properties. */
static CUresult check_handle(CUmemGenericAllocationHandle handle)
{
	CUmemAllocationProp prop = {0};
	CUresult result = drv.cuMemGetAllocationPropertiesFromHandle(&prop, handle);
	if (result != CUDA_SUCCESS)
		return result;
	return prop.location.type == CU_MEM_LOCATION_TYPE_DEVICE ? CUDA_SUCCESS : CUDA_ERROR_NOT_SUPPORTED;
}

/* The handle is held while it is mapped only: the twin's mapping keeps the memory, just as long as it is there. */
static CUresult map_again(const struct space *space, const struct mapping *mapping)
{
	CUmemGenericAllocationHandle handle;
	CUresult result = drv.cuMemRetainAllocationHandle(&handle, (void *)mapping->start);
	if (result != CUDA_SUCCESS)
		return result;
	result = check_handle(handle);
	if (result == CUDA_SUCCESS)
		result = drv.cuMemMap(twin_start(space, mapping), mapping->bytes, 0, handle, 0);
	drv.cuMemRelease(handle);
	return result;
}

/* Nobody is said to read memory of a graph: is this any, or a mapping without access? */
static enum twin_answer unread(const struct space *space, const struct mapping *mapping)
{
	CUmemGenericAllocationHandle handle;
	if (!space->found)
		return TWIN_OK;
	CUresult result = drv.cuMemRetainAllocationHandle(&handle, (void *)mapping->start);
	if (result != CUDA_SUCCESS)
		return not_mapped(space, result);
	drv.cuMemRelease(handle);
	return TWIN_OK;
}

/* A mapping that nobody may read needs no twin: what cannot be loaded faults either way. */
static enum twin_answer mirror(const struct space *space, struct mapping *mapping)
{
	uint64_t readers = readers_of(mapping->start);
	if (!readers)
		return unread(space, mapping);
	CUresult result = map_again(space, mapping);
	if (result != CUDA_SUCCESS)
		return not_mapped(space, result);
	mapping->readers = 0;
	result = let_read(space, mapping, readers);
	if (result != CUDA_SUCCESS) {
		drv.cuMemUnmap(twin_start(space, mapping), mapping->bytes);
		return failed(result);
	}
	mapping->state = MAPPING_MIRRORED;
	return TWIN_OK;
}

static void unmap_twin(struct space *space, uint64_t start, uint64_t bytes)
{
	if (drv.cuMemUnmap(start, bytes) == CUDA_SUCCESS)
		return;
	if (space->stuck_count < SPACE_STUCK) {
		space->stuck[space->stuck_count].start = start;
		space->stuck[space->stuck_count].bytes = bytes;
	}
	space->stuck_count++;
}

/* Before something else is mapped there. */
static void try_stuck_again(struct space *space)
{
	size_t listed = space->stuck_count < SPACE_STUCK ? space->stuck_count : SPACE_STUCK;
	for (size_t i = listed; i-- > 0;) {
		if (drv.cuMemUnmap(space->stuck[i].start, space->stuck[i].bytes) != CUDA_SUCCESS)
			continue;
		space->stuck[i] = space->stuck[--listed];
		space->stuck_count--;
	}
}

static void withdraw(const struct space *space)
{
	for (size_t i = 0; i < space->count; i++)
		twin_map_clear(space->mappings[i].start, space->mappings[i].bytes);
}

static bool publish(const struct space *space, const struct mapping *mapping)
{
	return mapping->state != MAPPING_MIRRORED ||
	       twin_map_set(mapping->start, mapping->bytes, TWIN_ORIGINAL, (int64_t)(space->twin - space->start));
}

static enum twin_answer reserve(struct space *space)
{
	CUdeviceptr twin;
	CUresult result = drv.cuMemAddressReserve(&twin, space->bytes, 0, 0, 0);
	if (result != CUDA_SUCCESS)
		return not_mapped(space, result);
	if (!twin_map_set(twin, space->bytes, TWIN_ALIAS, (int64_t)(space->start - twin))) {
		drv.cuMemAddressFree(twin, space->bytes);
		return no_room();
	}
	space->twin = twin;
	return TWIN_OK;
}

/* What is not mirrored yet, and then into the table: it alone, or everything after the space was broken. */
static enum twin_answer mirror_rest(struct space *space)
{
	for (size_t i = 0; i < space->count; i++) {
		struct mapping *mapping = &space->mappings[i];
		bool fresh = mapping->state == MAPPING_PLAIN;
		enum twin_answer answer = fresh ? mirror(space, mapping) : TWIN_OK;
		if (answer != TWIN_OK)
			return answer;
		if ((fresh || space->broken) && !publish(space, mapping))
			return no_room();
	}
	return TWIN_OK;
}

/* A twin that could not be made: as if nothing had been tried. */
static void give_up(struct space *space)
{
	mirror_drop(space, space->start, space_end(space));
	for (size_t i = 0; i < space->count; i++)
		space->mappings[i].state = MAPPING_PLAIN;
	mirror_end(space);
}

enum twin_answer mirror_complete(struct space *space)
{
	bool had_twin = space->twin;
	if (space->stuck_count)
		try_stuck_again(space);
	enum twin_answer answer = had_twin ? TWIN_OK : reserve(space);
	if (answer != TWIN_OK)
		return answer;
	answer = mirror_rest(space);
	/* A kernel that got the twin of one mapping may walk on into the next: all of them, or none. */
	if (answer != TWIN_OK)
		withdraw(space);
	if (answer != TWIN_OK && !had_twin)
		give_up(space);
	else
		space->broken = answer != TWIN_OK;
	return answer;
}

/* Whose access was taken away must not keep it through the twin, though views dangle then. */
static void shut(const struct space *space, struct mapping *mapping, uint64_t readers)
{
	if (mapping->readers & ~readers && drv.cuMemUnmap(twin_start(space, mapping), mapping->bytes) == CUDA_SUCCESS)
		mapping->state = MAPPING_PLAIN;
}

enum twin_answer mirror_follow_access(struct space *space, uint64_t start, uint64_t end)
{
	for (size_t i = 0; i < space->count; i++) {
		struct mapping *mapping = &space->mappings[i];
		if (mapping->state != MAPPING_MIRRORED || mapping->start < start || mapping->start >= end)
			continue;
		uint64_t readers = readers_of(mapping->start);
		CUresult result = let_read(space, mapping, readers);
		if (result != CUDA_SUCCESS) {
			shut(space, mapping, readers);
			space->broken = true;
			withdraw(space);
			return failed(result);
		}
	}
	return mirror_complete(space);
}

/* Neighbours that go together are unmapped by one call: each call costs tens of microseconds. */
void mirror_drop(struct space *space, uint64_t start, uint64_t end)
{
	uint64_t run = 0, bytes = 0;
	for (size_t i = 0; i < space->count; i++) {
		struct mapping *mapping = &space->mappings[i];
		bool inside = mapping->start >= start && mapping->start + mapping->bytes <= end;
		bool mirrored = inside && mapping->state == MAPPING_MIRRORED;
		if (bytes && (!mirrored || run + bytes != twin_start(space, mapping))) {
			unmap_twin(space, run, bytes);
			bytes = 0;
		}
		if (inside) {
			twin_map_clear(mapping->start, mapping->bytes);
			mapping->state = MAPPING_LEAVING;
		}
		if (mirrored) {
			run = bytes ? run : twin_start(space, mapping);
			bytes += mapping->bytes;
		}
	}
	if (bytes)
		unmap_twin(space, run, bytes);
}

/* Whatever is mapped there still, mapping by mapping. */
static void unmap_all(uint64_t start, uint64_t end)
{
	CUdeviceptr base;
	size_t bytes;
	for (uint64_t at = start; at < end;) {
		if (drv.cuMemGetAddressRange_v2(&base, &bytes, at) != CUDA_SUCCESS) {
			at += TWIN_GRANULE;
			continue;
		}
		drv.cuMemUnmap(base, bytes);
		at = base + bytes;
	}
}

void mirror_end(struct space *space)
{
	if (!space->twin)
		return;
	twin_map_clear(space->twin, space->bytes);
	if (space->stuck_count)
		unmap_all(space->twin, space->twin + space->bytes);
	space->stuck_count = 0;
	drv.cuMemAddressFree(space->twin, space->bytes);
	space->twin = 0;
}

int mirror_device(const struct space *space)
{
	int device = -1;
	if (!space->count || !drv.cuPointerGetAttribute ||
	    drv.cuPointerGetAttribute(&device, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, space->mappings[0].start) !=
	            CUDA_SUCCESS)
		return -1;
	return device;
}
