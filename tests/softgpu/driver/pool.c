/*
 * A pool keeps the blocks that were given back to it, newest first, and hands out the newest of the right size: so the
 * same address comes again, as from the driver. A block that goes back in stream order can be had at once by a later
 * allocation; if that is of another stream, the stream is made to wait for the giving back (the driver's "internal
 * dependencies").
 *
 * Kept blocks stay accessible to kernels, as pool memory does on a real device until it is trimmed; API calls no longer
 * find them.
 */
#include "tests/softgpu/driver/pool.h"

#include <stdlib.h>
#include <string.h>

#include "tests/softgpu/driver/capture.h"
#include "tests/softgpu/driver/graph_memory.h"
#include "tests/softgpu/driver/memory.h"
#include "tests/softgpu/driver/op.h"
#include "tests/softgpu/driver/stream.h"

struct block {
	uint64_t address;
	size_t bytes; /* room, a multiple of SG_GRANULE */
	struct sg_point given_back;
	struct block *next;
};

/* A CUmemoryPool. */
struct sg_pool {
	CUmemPoolProps props;
	int device;
	bool is_default;
	int reuse[3];
	uint64_t threshold;
	uint64_t reserved, reserved_high, used, used_high;
	struct block *kept;
};

static struct sg_pool *defaults[SG_DEVICES_MAX], *current[SG_DEVICES_MAX];

static struct sg_pool *pool_of(CUmemoryPool handle)
{
	return sg_is(handle, SG_POOL) ? (struct sg_pool *)handle : NULL;
}

static struct sg_pool *create(int device)
{
	struct sg_pool *pool = calloc(1, sizeof(*pool));

	if (pool == NULL || !sg_add(pool, SG_POOL)) {
		free(pool);
		return NULL;
	}
	pool->device = device;
	pool->reuse[0] = pool->reuse[1] = pool->reuse[2] = 1;
	pool->props.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
	pool->props.location = (CUmemLocation){CU_MEM_LOCATION_TYPE_DEVICE, device};
	return pool;
}

static struct sg_pool *default_pool(int device)
{
	if (defaults[device] == NULL) {
		defaults[device] = create(device);
		if (defaults[device] != NULL)
			defaults[device]->is_default = true;
	}
	return defaults[device];
}

static struct sg_pool *current_pool(int device)
{
	return current[device] != NULL ? current[device] : default_pool(device);
}

static size_t room_for(size_t bytes)
{
	return (bytes + SG_GRANULE - 1) & ~(size_t)(SG_GRANULE - 1);
}

static void trim(struct sg_pool *pool, uint64_t keep)
{
	struct block **link = &pool->kept;

	while (*link != NULL && pool->reserved > keep) {
		struct block *block = *link;
		if (!sg_point_reached(&block->given_back)) {
			link = &block->next;
			continue;
		}
		*link = block->next;
		sg_point_drop(&block->given_back);
		sg_arena_mark(block->address, block->bytes, SG_ACCESS_NONE);
		sg_heap_give(pool->device, block->address, block->bytes);
		pool->reserved -= block->bytes;
		free(block);
	}
}

static CUresult allocate(struct sg_pool *pool, size_t bytes, struct sg_stream *stream, uint64_t *ret_address)
{
	struct sg_allocation fresh = {
		.bytes = bytes, .kind = SG_MEMORY_POOL, .access = SG_ACCESS_WRITE, .device = pool->device, .pool = pool};
	size_t room = room_for(bytes);
	struct block **link = &pool->kept;

	while (*link != NULL && (*link)->bytes != room)
		link = &(*link)->next;
	struct block *block = *link;
	if (block != NULL) {
		*link = block->next;
		fresh.address = block->address;
		bool waited = block->given_back.timeline == stream->timeline;
		if (waited)
			sg_point_drop(&block->given_back);
		else
			waited = sg_points_add(&stream->waits, block->given_back);
		free(block);
		if (!waited)
			return CUDA_ERROR_OUT_OF_MEMORY;
	} else {
		if (pool->props.maxSize != 0 && pool->reserved + room > pool->props.maxSize)
			return CUDA_ERROR_OUT_OF_MEMORY;
		if (!sg_heap_take(pool->device, room, &fresh.address)) {
			trim(pool, 0);
			if (!sg_heap_take(pool->device, room, &fresh.address))
				return CUDA_ERROR_OUT_OF_MEMORY;
		}
		pool->reserved += room;
	}
	if (sg_allocation_add(&fresh) == NULL)
		return CUDA_ERROR_OUT_OF_MEMORY;
	pool->used += bytes;
	if (pool->used > pool->used_high)
		pool->used_high = pool->used;
	if (pool->reserved > pool->reserved_high)
		pool->reserved_high = pool->reserved;
	*ret_address = fresh.address;
	return CUDA_SUCCESS;
}

static void keep(struct sg_allocation *allocation, struct sg_point given_back)
{
	struct sg_pool *pool = allocation->pool;
	struct block *block = malloc(sizeof(*block));
	uint64_t address = allocation->address;
	size_t room = room_for(allocation->bytes);

	pool->used -= allocation->bytes;
	sg_allocation_remove(allocation);
	if (block == NULL) {
		/* The block is lost to the pool, but never handed out twice. */
		sg_point_drop(&given_back);
		return;
	}
	*block = (struct block){address, room, given_back, pool->kept};
	pool->kept = block;
}

void sg_pool_free_now(struct sg_allocation *allocation)
{
	keep(allocation, (struct sg_point){0});
}

/* The operation itself has nothing to do: its place in the stream is the point that keep() noted. */
void sg_pool_release(uint64_t address)
{
	(void)address;
}

/* While capturing, allocating and freeing are nodes. */
static CUresult capture_allocate(const struct sg_pool *pool, size_t bytes, struct sg_stream *stream, uint64_t *ret_address)
{
	CUDA_MEM_ALLOC_NODE_PARAMS_v2 asked = {
		.poolProps = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED, .location = pool->props.location},
		.bytesize = bytes};
	struct sg_op op = {.kind = SG_OP_ALLOC};
	CUresult status = sg_block_create(&asked, &op.block);

	if (status != CUDA_SUCCESS)
		return status;
	uint64_t address = op.block->address;
	status = sg_submit(stream, &op, false);
	if (status == CUDA_SUCCESS)
		*ret_address = address;
	return status;
}

/* Memory of a graph, by its stream's capture or at once. */
static CUresult free_block(struct sg_block *block, struct sg_stream *stream)
{
	struct sg_op op = {.kind = SG_OP_FREE, .block = block};

	bool capturing = stream->capture != NULL;

	if (!capturing && !block->out)
		return CUDA_ERROR_INVALID_VALUE;
	/* Outside a capture the operation does nothing but hold the memory until its turn. */
	sg_block_hold(block);
	CUresult status = sg_submit(stream, &op, false);
	if (status == CUDA_SUCCESS && !capturing)
		status = sg_block_free(block);
	return status;
}

static CUresult allocate_async(CUdeviceptr *dptr, size_t bytes, CUmemoryPool handle, bool use_current, CUstream hStream)
{
	struct sg_stream *stream;
	uint64_t address = 0;

	if (dptr == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	sg_lock();
	CUresult status = sg_stream_of(hStream, &stream);
	struct sg_pool *pool = NULL;
	if (status == CUDA_SUCCESS) {
		pool = use_current ? current_pool(stream->context->device) : pool_of(handle);
		if (pool == NULL)
			status = CUDA_ERROR_INVALID_VALUE;
		else if (stream->capture != NULL)
			status = capture_allocate(pool, bytes, stream, &address);
		else if (bytes > 0)
			status = allocate(pool, bytes, stream, &address);
	}
	sg_unlock();
	if (status == CUDA_SUCCESS)
		*dptr = address;
	return status;
}

CUresult sg_cuMemAllocAsync(CUdeviceptr *dptr, size_t bytesize, CUstream hStream)
{
	return allocate_async(dptr, bytesize, NULL, true, hStream);
}

CUresult sg_cuMemAllocFromPoolAsync(CUdeviceptr *dptr, size_t bytesize, CUmemoryPool pool, CUstream hStream)
{
	return allocate_async(dptr, bytesize, pool, false, hStream);
}

CUresult sg_cuMemFreeAsync(CUdeviceptr dptr, CUstream hStream)
{
	struct sg_stream *stream;
	struct sg_op op = {.kind = SG_OP_RELEASE, .release = {dptr}};

	sg_lock();
	CUresult status = sg_stream_of(hStream, &stream);
	struct sg_allocation *allocation = sg_allocation_of(dptr);
	if (status == CUDA_SUCCESS && sg_block_of(dptr) != NULL) {
		status = free_block(sg_block_of(dptr), stream);
	} else if (status == CUDA_SUCCESS && dptr != 0) {
		if (allocation == NULL || (allocation->kind != SG_MEMORY_POOL && allocation->kind != SG_MEMORY_DEVICE))
			status = CUDA_ERROR_INVALID_VALUE;
		else if (stream->capture != NULL)
			status = CUDA_ERROR_INVALID_VALUE;
		else
			status = sg_submit(stream, &op, false);
		if (status == CUDA_SUCCESS && allocation->kind == SG_MEMORY_POOL) {
			keep(allocation, sg_point_of(stream));
		} else if (status == CUDA_SUCCESS) {
			/* cuMemAlloc memory: its heap has no idea of streams. */
			sg_stream_drain(stream);
			allocation = sg_allocation_of(dptr); /* somebody may have freed it while this waited */
			if (allocation != NULL && allocation->kind == SG_MEMORY_DEVICE)
				sg_device_give(allocation);
		}
	}
	sg_unlock();
	return status;
}

CUresult sg_cuMemPoolCreate(CUmemoryPool *ret_pool, const CUmemPoolProps *poolProps)
{
	if (ret_pool == NULL || poolProps == NULL || poolProps->allocType != CU_MEM_ALLOCATION_TYPE_PINNED)
		return CUDA_ERROR_INVALID_VALUE;
	if (poolProps->location.type != CU_MEM_LOCATION_TYPE_DEVICE ||
	    (poolProps->handleTypes != CU_MEM_HANDLE_TYPE_NONE))
		return CUDA_ERROR_NOT_SUPPORTED;
	if (!sg_is_device(poolProps->location.id))
		return CUDA_ERROR_INVALID_VALUE;
	sg_lock();
	struct sg_pool *pool = create(poolProps->location.id);
	if (pool != NULL)
		pool->props = *poolProps;
	sg_unlock();
	if (pool == NULL)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*ret_pool = (CUmemoryPool)pool;
	return CUDA_SUCCESS;
}

/* Allocations that are left keep the pool's memory until they are freed; here they just die with it. */
CUresult sg_cuMemPoolDestroy(CUmemoryPool handle)
{
	CUresult status = CUDA_ERROR_INVALID_VALUE;

	sg_lock();
	struct sg_pool *pool = pool_of(handle);
	if (pool != NULL && !pool->is_default) {
		status = CUDA_SUCCESS;
		sg_remove(pool);
		if (current[pool->device] == pool)
			current[pool->device] = NULL;
		for (size_t i = sg_allocation_count(); i-- > 0;)
			if (sg_allocation_number(i)->pool == pool)
				sg_pool_free_now(sg_allocation_number(i));
		for (struct block *block = pool->kept; block != NULL; block = block->next)
			sg_point_await(&block->given_back);
		trim(pool, 0);
		free(pool);
	}
	sg_unlock();
	return status;
}

CUresult sg_cuMemPoolTrimTo(CUmemoryPool handle, size_t minBytesToKeep)
{
	sg_lock();
	struct sg_pool *pool = pool_of(handle);
	if (pool != NULL)
		trim(pool, minBytesToKeep);
	sg_unlock();
	return pool != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult sg_cuMemPoolSetAttribute(CUmemoryPool handle, CUmemPool_attribute attr, void *value)
{
	CUresult status = CUDA_SUCCESS;

	sg_lock();
	struct sg_pool *pool = pool_of(handle);
	if (pool == NULL || value == NULL)
		status = CUDA_ERROR_INVALID_VALUE;
	else if (attr >= CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES &&
	         attr <= CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES)
		pool->reuse[attr - CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES] = *(const int *)value != 0;
	else if (attr == CU_MEMPOOL_ATTR_RELEASE_THRESHOLD)
		pool->threshold = *(const cuuint64_t *)value;
	else if (attr == CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH && *(const cuuint64_t *)value == 0)
		pool->reserved_high = pool->reserved;
	else if (attr == CU_MEMPOOL_ATTR_USED_MEM_HIGH && *(const cuuint64_t *)value == 0)
		pool->used_high = pool->used;
	else
		status = CUDA_ERROR_INVALID_VALUE;
	sg_unlock();
	return status;
}

CUresult sg_cuMemPoolGetAttribute(CUmemoryPool handle, CUmemPool_attribute attr, void *value)
{
	CUresult status = CUDA_SUCCESS;

	sg_lock();
	struct sg_pool *pool = pool_of(handle);
	if (pool == NULL || value == NULL)
		status = CUDA_ERROR_INVALID_VALUE;
	else if (attr >= CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES &&
	         attr <= CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES)
		*(int *)value = pool->reuse[attr - CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES];
	else if (attr == CU_MEMPOOL_ATTR_RELEASE_THRESHOLD)
		*(cuuint64_t *)value = pool->threshold;
	else if (attr == CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT)
		*(cuuint64_t *)value = pool->reserved;
	else if (attr == CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH)
		*(cuuint64_t *)value = pool->reserved_high;
	else if (attr == CU_MEMPOOL_ATTR_USED_MEM_CURRENT)
		*(cuuint64_t *)value = pool->used;
	else if (attr == CU_MEMPOOL_ATTR_USED_MEM_HIGH)
		*(cuuint64_t *)value = pool->used_high;
	else
		status = CUDA_ERROR_INVALID_VALUE;
	sg_unlock();
	return status;
}

/*
 * A pool is writable on its own device; nothing less can be set there, as on a real device. Peers see it as soon as
 * contexts do.
 */
CUresult sg_cuMemPoolSetAccess(CUmemoryPool handle, const CUmemAccessDesc *map, size_t count)
{
	CUresult status = map == NULL || count == 0 ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;

	sg_lock();
	struct sg_pool *pool = pool_of(handle);
	if (pool == NULL)
		status = CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; i < count && status == CUDA_SUCCESS; i++) {
		if (map[i].location.type != CU_MEM_LOCATION_TYPE_DEVICE || !sg_is_device(map[i].location.id))
			status = CUDA_ERROR_INVALID_DEVICE;
		else if (map[i].location.id == pool->device && map[i].flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
			status = map[i].flags == CU_MEM_ACCESS_FLAGS_PROT_NONE ? CUDA_ERROR_INVALID_DEVICE
			                                                       : CUDA_ERROR_NOT_SUPPORTED;
	}
	sg_unlock();
	return status;
}

CUresult sg_cuMemPoolGetAccess(CUmemAccess_flags *flags, CUmemoryPool handle, CUmemLocation *location)
{
	CUresult status = CUDA_ERROR_INVALID_VALUE;

	sg_lock();
	struct sg_pool *pool = pool_of(handle);
	if (flags != NULL && pool != NULL && location != NULL && location->type == CU_MEM_LOCATION_TYPE_DEVICE &&
	    sg_is_device(location->id)) {
		*flags = location->id == pool->device ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE
		                                      : CU_MEM_ACCESS_FLAGS_PROT_NONE;
		status = CUDA_SUCCESS;
	}
	sg_unlock();
	return status;
}

static CUresult answer_pool(CUmemoryPool *ret_pool, CUdevice dev, struct sg_pool *(*which)(int device))
{
	if (ret_pool == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	if (!sg_is_device(dev))
		return CUDA_ERROR_INVALID_DEVICE;
	sg_lock();
	struct sg_pool *pool = which(dev);
	sg_unlock();
	if (pool == NULL)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*ret_pool = (CUmemoryPool)pool;
	return CUDA_SUCCESS;
}

CUresult sg_cuDeviceGetDefaultMemPool(CUmemoryPool *pool_out, CUdevice dev)
{
	return answer_pool(pool_out, dev, default_pool);
}

CUresult sg_cuDeviceGetMemPool(CUmemoryPool *pool, CUdevice dev)
{
	return answer_pool(pool, dev, current_pool);
}

CUresult sg_cuDeviceSetMemPool(CUdevice dev, CUmemoryPool handle)
{
	CUresult status = CUDA_ERROR_INVALID_VALUE;

	if (!sg_is_device(dev))
		return CUDA_ERROR_INVALID_DEVICE;
	sg_lock();
	struct sg_pool *pool = pool_of(handle);
	if (pool != NULL && pool->device == dev) {
		current[dev] = pool;
		status = CUDA_SUCCESS;
	}
	sg_unlock();
	return status;
}
