/* cuMemAlloc and its family, pinned and managed host memory. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "tests/softgpu/driver/capture.h"
#include "tests/softgpu/driver/graph_memory.h"
#include "tests/softgpu/driver/memory.h"
#include "tests/softgpu/driver/pool.h"

enum { PITCH_ALIGN = 512, HOST_PAGE = 4096 };

static CUresult take(CUdeviceptr *ret_address, size_t bytes, enum sg_memory_kind kind)
{
	if (ret_address == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	*ret_address = 0; /* also where it fails */
	if (bytes == 0)
		return CUDA_ERROR_INVALID_VALUE;
	sg_lock();
	struct sg_context *context = sg_context_current();
	CUresult status = context == NULL ? CUDA_ERROR_INVALID_CONTEXT : sg_capture_unsafe();
	uint64_t address = 0;
	if (status == CUDA_SUCCESS) {
		address = sg_device_take(context, bytes, kind, false);
		if (address == 0)
			status = CUDA_ERROR_OUT_OF_MEMORY;
	}
	sg_unlock();
	if (status == CUDA_SUCCESS)
		*ret_address = address;
	return status;
}

CUresult sg_cuMemAlloc_v2(CUdeviceptr *dptr, size_t bytesize)
{
	return take(dptr, bytesize, SG_MEMORY_DEVICE);
}

CUresult sg_cuMemAllocManaged(CUdeviceptr *dptr, size_t bytesize, unsigned int flags)
{
	if (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST)
		return CUDA_ERROR_INVALID_VALUE;
	return take(dptr, bytesize, SG_MEMORY_MANAGED);
}

CUresult sg_cuMemAllocPitch_v2(CUdeviceptr *dptr, size_t *pPitch, size_t WidthInBytes, size_t Height,
                               unsigned int ElementSizeBytes)
{
	size_t pitch, bytes;

	if (pPitch == NULL || WidthInBytes == 0 || Height == 0 || WidthInBytes > INT32_MAX ||
	    (ElementSizeBytes != 4 && ElementSizeBytes != 8 && ElementSizeBytes != 16))
		return CUDA_ERROR_INVALID_VALUE;
	pitch = (WidthInBytes + PITCH_ALIGN - 1) & ~(size_t)(PITCH_ALIGN - 1);
	if (__builtin_mul_overflow(pitch, Height, &bytes))
		return CUDA_ERROR_OUT_OF_MEMORY;
	CUresult status = take(dptr, bytes, SG_MEMORY_DEVICE);
	if (status == CUDA_SUCCESS)
		*pPitch = pitch;
	return status;
}

static void drain_one(void *handle, void *data)
{
	struct sg_context ***next = data;

	*(*next)++ = handle;
}

/* Memory that goes away may still be in use by any stream of any context. */
void sg_drain_all(void)
{
	struct sg_context *contexts[256], **next = contexts;

	sg_each(SG_CONTEXT, drain_one, &next);
	for (struct sg_context **context = contexts; context < next; context++)
		sg_context_drain(*context);
}

CUresult sg_cuMemFree_v2(CUdeviceptr dptr)
{
	CUresult status = CUDA_ERROR_INVALID_VALUE;

	sg_lock();
	if (dptr == 0) {
		status = sg_capture_unsafe();
		sg_unlock();
		return status;
	}
	struct sg_allocation *allocation = sg_allocation_of(dptr);
	bool out = allocation != NULL && (allocation->kind != SG_MEMORY_GRAPH || allocation->block->out);
	if (out && allocation->kind <= SG_MEMORY_MANAGED) {
		status = sg_capture_unsafe();
		if (status == CUDA_SUCCESS)
			sg_drain_all();
		/* Somebody may have freed it while this waited. */
		allocation = sg_allocation_of(dptr);
		if (status == CUDA_SUCCESS && allocation != NULL) {
			if (allocation->kind == SG_MEMORY_POOL)
				sg_pool_free_now(allocation);
			else if (allocation->kind == SG_MEMORY_GRAPH)
				status = sg_block_free(allocation->block);
			else
				sg_device_give(allocation);
		}
	}
	sg_unlock();
	return status;
}

/* The call knows the memory of the current context's device, and what is everywhere; not that of another device. */
static const struct sg_allocation *found_here(uint64_t address)
{
	const struct sg_allocation *allocation = sg_allocation_at(address);
	const struct sg_context *context = sg_context_current();
	bool elsewhere = allocation != NULL && context != NULL && allocation->device != context->device &&
	                 allocation->kind != SG_MEMORY_MANAGED && allocation->kind < SG_MEMORY_HOST;

	return elsewhere ? NULL : allocation;
}

CUresult sg_cuMemGetAddressRange_v2(CUdeviceptr *pbase, size_t *psize, CUdeviceptr dptr)
{
	sg_lock();
	const struct sg_allocation *allocation = found_here(dptr);
	if (allocation != NULL && pbase != NULL)
		*pbase = allocation->address;
	if (allocation != NULL && psize != NULL)
		*psize = allocation->bytes;
	sg_unlock();
	return allocation != NULL ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

CUresult sg_cuMemGetInfo_v2(size_t *bytes_free, size_t *total)
{
	sg_lock();
	struct sg_context *context = sg_context_current();
	if (context != NULL && bytes_free != NULL)
		*bytes_free = sg_device_free(context->device);
	if (context != NULL && total != NULL)
		*total = sg_device_memory();
	sg_unlock();
	return context != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

void sg_host_give(struct sg_allocation *allocation)
{
	if (allocation->kind == SG_MEMORY_HOST)
		munmap((void *)(uintptr_t)allocation->address,
		       (allocation->bytes + HOST_PAGE - 1) & ~(size_t)(HOST_PAGE - 1));
	sg_allocation_remove(allocation);
}

static CUresult add_host(uint64_t address, size_t bytes, enum sg_memory_kind kind, uint16_t access, unsigned flags)
{
	struct sg_context *context = sg_context_current();

	if (context == NULL)
		return CUDA_ERROR_INVALID_CONTEXT;
	struct sg_allocation fresh = {.address = address,
	                              .bytes = bytes,
	                              .kind = kind,
	                              .access = access,
	                              .device = context->device,
	                              .context = context,
	                              .flags = flags};
	return sg_allocation_add(&fresh) != NULL ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult sg_cuMemHostAlloc(void **pp, size_t bytesize, unsigned int Flags)
{
	if (pp == NULL || bytesize > SIZE_MAX / 2 ||
	    (Flags &
	     ~(unsigned)(CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_WRITECOMBINED)) != 0)
		return CUDA_ERROR_INVALID_VALUE;
	if (bytesize == 0) {
		*pp = NULL;
		return CUDA_SUCCESS;
	}
	sg_lock();
	CUresult status = sg_capture_unsafe();
	void *memory = MAP_FAILED;
	if (status == CUDA_SUCCESS) {
		memory = mmap(NULL, bytesize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		status = memory == MAP_FAILED ? CUDA_ERROR_OUT_OF_MEMORY
		                              : add_host((uint64_t)(uintptr_t)memory, bytesize, SG_MEMORY_HOST,
		                                         SG_ACCESS_WRITE, Flags);
	}
	sg_unlock();
	if (status == CUDA_SUCCESS)
		*pp = memory;
	else if (memory != MAP_FAILED)
		munmap(memory, bytesize);
	return status;
}

CUresult sg_cuMemAllocHost_v2(void **pp, size_t bytesize)
{
	return sg_cuMemHostAlloc(pp, bytesize, 0);
}

CUresult sg_cuMemAllocHost(void **pp, unsigned int bytesize)
{
	return sg_cuMemHostAlloc(pp, bytesize, 0);
}

static CUresult forget_host(const void *address, enum sg_memory_kind kind, CUresult otherwise)
{
	CUresult status = otherwise;

	sg_lock();
	struct sg_allocation *allocation = sg_allocation_at((uint64_t)(uintptr_t)address);
	if (allocation != NULL && allocation->address != (uint64_t)(uintptr_t)address) {
		status = CUDA_ERROR_INVALID_VALUE; /* inside of something */
	} else if (allocation != NULL && allocation->kind == kind) {
		status = sg_capture_unsafe();
		if (status == CUDA_SUCCESS) {
			sg_drain_all();
			allocation = sg_allocation_of((uint64_t)(uintptr_t)address);
			if (allocation != NULL)
				sg_host_give(allocation);
		}
	}
	sg_unlock();
	return status;
}

CUresult sg_cuMemFreeHost(void *p)
{
	return p == NULL ? CUDA_SUCCESS : forget_host(p, SG_MEMORY_HOST, CUDA_ERROR_INVALID_VALUE);
}

CUresult sg_cuMemHostRegister_v2(void *p, size_t bytesize, unsigned int Flags)
{
	uint64_t address = (uint64_t)(uintptr_t)p;
	unsigned known = CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP | CU_MEMHOSTREGISTER_READ_ONLY;

	if (p == NULL || bytesize == 0 || bytesize > UINT64_MAX - address)
		return CUDA_ERROR_INVALID_VALUE;
	if ((Flags & ~known) != 0)
		return (Flags & CU_MEMHOSTREGISTER_IOMEMORY) != 0 ? CUDA_ERROR_NOT_SUPPORTED : CUDA_ERROR_INVALID_VALUE;
	uint64_t first = address & ~(uint64_t)(HOST_PAGE - 1), last = address + bytesize;
	/* ENOMEM: some of the pages are not mapped. */
	if (msync((void *)(uintptr_t)first, last - first, MS_ASYNC) != 0)
		return CUDA_ERROR_INVALID_VALUE;
	sg_lock();
	CUresult status = sg_capture_unsafe();
	for (size_t i = 0; i < sg_allocation_count() && status == CUDA_SUCCESS; i++) {
		const struct sg_allocation *other = sg_allocation_number(i);
		if (other->address < last && address < other->address + other->bytes)
			status = other->kind == SG_MEMORY_REGISTERED ? CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED
			                                             : CUDA_ERROR_INVALID_VALUE;
	}
	if (status == CUDA_SUCCESS)
		status = add_host(address, bytesize, SG_MEMORY_REGISTERED,
		                  (Flags & CU_MEMHOSTREGISTER_READ_ONLY) != 0 ? SG_ACCESS_READ : SG_ACCESS_WRITE, Flags);
	sg_unlock();
	return status;
}

CUresult sg_cuMemHostRegister(void *p, size_t bytesize, unsigned int Flags)
{
	return sg_cuMemHostRegister_v2(p, bytesize, Flags);
}

CUresult sg_cuMemHostUnregister(void *p)
{
	return p == NULL ? CUDA_ERROR_INVALID_VALUE
	                 : forget_host(p, SG_MEMORY_REGISTERED, CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
}

CUresult sg_cuMemHostGetDevicePointer_v2(CUdeviceptr *pdptr, void *p, unsigned int Flags)
{
	if (pdptr == NULL || p == NULL || Flags != 0)
		return CUDA_ERROR_INVALID_VALUE;
	sg_lock();
	const struct sg_allocation *allocation = sg_allocation_at((uint64_t)(uintptr_t)p);
	bool host = allocation != NULL && allocation->kind >= SG_MEMORY_HOST;
	sg_unlock();
	if (host)
		*pdptr = (CUdeviceptr)(uintptr_t)p;
	return host ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult sg_cuMemHostGetFlags(unsigned int *pFlags, void *p)
{
	if (pFlags == NULL || p == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	sg_lock();
	const struct sg_allocation *allocation = sg_allocation_at((uint64_t)(uintptr_t)p);
	bool host = allocation != NULL && allocation->kind >= SG_MEMORY_HOST;
	if (host)
		*pFlags = allocation->flags | CU_MEMHOSTALLOC_DEVICEMAP;
	sg_unlock();
	return host ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
