/*
 * A driver that answers at once: what a launch costs beside it is the shim's. Device memory is host memory that nobody
 * writes; a check "runs" by putting its sequence number into the ring, and finds no change.
 */
#include "tests/bench/launch/stub.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "shim/verdict/verify_device.h"

#define EXPORT __attribute__((visibility("default")))

#define PAGE ((size_t)4096)
#define GRAIN ((size_t)2 << 20)

static const char *const names[] = {
	[STUB_CHECK] = "check",   [STUB_OTHER] = "other", [STUB_FOUR] = "four",  [STUB_STRUCT] = "many",
	[STUB_READER] = "reader", [STUB_GEMV] = "gemv",   [STUB_TABLE] = "table"};

/* The large allocation. Small ones have a page each. */
static CUdeviceptr last_start;
static size_t last_bytes;

EXPORT uint64_t stub_checks;

EXPORT CUresult stub_launch(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                            unsigned shared, CUstream stream, void **params, void **extra)
{
	const struct verify_batch *batch;
	struct verify_result *results;

	if (f != (CUfunction)(uintptr_t)STUB_CHECK)
		return CUDA_SUCCESS;
	stub_checks++;
	batch = params[0];
	results = (struct verify_result *)batch->results;
	for (uint32_t job = 0; job < batch->jobs; job++)
		__atomic_store_n(&results[batch->job[job].slot].sequence, batch->job[job].sequence, __ATOMIC_RELEASE);
	return CUDA_SUCCESS;
}

EXPORT CUresult cuLaunchKernel(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                               unsigned bz, unsigned shared, CUstream stream, void **params, void **extra)
{
	return stub_launch(f, gx, gy, gz, bx, by, bz, shared, stream, params, extra);
}

EXPORT CUresult cuInit(unsigned flags)
{
	return CUDA_SUCCESS;
}

EXPORT CUresult cuDriverGetVersion(int *ret)
{
	*ret = 13000;
	return CUDA_SUCCESS;
}

EXPORT CUresult cuCtxGetCurrent(CUcontext *ret)
{
	*ret = (CUcontext)(uintptr_t)1;
	return CUDA_SUCCESS;
}

EXPORT CUresult cuCtxGetDevice(CUdevice *ret)
{
	*ret = 0;
	return CUDA_SUCCESS;
}

EXPORT CUresult cuCtxPushCurrent(CUcontext context)
{
	return CUDA_SUCCESS;
}

EXPORT CUresult cuCtxPopCurrent(CUcontext *ret)
{
	return cuCtxGetCurrent(ret);
}

EXPORT CUresult cuCtxSynchronize(void)
{
	return CUDA_SUCCESS;
}

EXPORT CUresult cuModuleLoadData(CUmodule *ret, const void *image)
{
	*ret = (CUmodule)(uintptr_t)1;
	return CUDA_SUCCESS;
}

EXPORT CUresult cuFuncGetModule(CUmodule *ret, CUfunction function)
{
	return cuModuleLoadData(ret, NULL);
}

EXPORT CUresult cuModuleGetFunction(CUfunction *ret, CUmodule module, const char *name)
{
	*ret = (CUfunction)(uintptr_t)(strcmp(name, VERIFY_ENTRY_CHECK) ? STUB_OTHER : STUB_CHECK);
	return CUDA_SUCCESS;
}

EXPORT CUresult cuKernelGetFunction(CUfunction *ret, CUkernel kernel)
{
	*ret = (CUfunction)kernel;
	return CUDA_SUCCESS;
}

EXPORT CUresult cuKernelGetLibrary(CUlibrary *ret, CUkernel kernel)
{
	*ret = (CUlibrary)(uintptr_t)1;
	return CUDA_SUCCESS;
}

EXPORT CUresult cuFuncGetName(const char **ret, CUfunction function)
{
	uintptr_t number = (uintptr_t)function;

	*ret = number < STUB_MODEL ? names[number] : names[number % 3 ? STUB_FOUR : STUB_READER];
	return CUDA_SUCCESS;
}

EXPORT CUresult cuFuncGetParamInfo(CUfunction function, size_t index, size_t *ret_offset, size_t *ret_bytes)
{
	size_t block = function == (CUfunction)(uintptr_t)STUB_STRUCT ? STUB_TENSORS * 8
	               : function == (CUfunction)(uintptr_t)STUB_GEMV ? STUB_WORDS * 8
	                                                              : 0;

	if (index >= (block ? 1 : 4))
		return CUDA_ERROR_INVALID_VALUE;
	*ret_offset = index * 8;
	*ret_bytes = block ? block : index == 3 ? 4 : 8;
	return CUDA_SUCCESS;
}

EXPORT CUresult cuMemAlloc(CUdeviceptr *ret, size_t bytes)
{
	/* The large one can have a twin. */
	size_t grain = bytes < GRAIN ? PAGE : GRAIN;
	/* Where a device has its memory the upper halves of addresses are no small numbers, under valgrind neither. */
	static uintptr_t hint = UINT64_C(0x0a) << 40;
	void *made = mmap((void *)hint, (bytes + grain - 1) / grain * grain, PROT_READ | PROT_WRITE,
	                  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	hint += (bytes + GRAIN - 1) / GRAIN * GRAIN;
	*ret = made == MAP_FAILED || (uintptr_t)made % grain ? 0 : (CUdeviceptr)made;
	if (bytes > last_bytes) {
		last_start = *ret;
		last_bytes = bytes < GRAIN ? bytes : (bytes + GRAIN - 1) / GRAIN * GRAIN;
	}
	return *ret ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

static int in_large(CUdeviceptr address)
{
	return last_bytes >= GRAIN && address >= last_start && address - last_start < last_bytes;
}

EXPORT CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *ret, void *address)
{
	*ret = 1;
	return in_large((CUdeviceptr)address) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

EXPORT CUresult cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp *ret, CUmemGenericAllocationHandle handle)
{
	memset(ret, 0, sizeof *ret);
	ret->location.type = CU_MEM_LOCATION_TYPE_DEVICE;
	return CUDA_SUCCESS;
}

/* With twins=all what cuMemAlloc gives is made of these. */
EXPORT CUresult cuMemCreate(CUmemGenericAllocationHandle *ret, size_t bytes, const CUmemAllocationProp *prop,
                            unsigned long long flags)
{
	*ret = 1;
	return CUDA_SUCCESS;
}

EXPORT CUresult cuMemGetAllocationGranularity(size_t *ret, const CUmemAllocationProp *prop,
                                              CUmemAllocationGranularity_flags which)
{
	*ret = GRAIN;
	return CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceGetAttribute(int *ret, CUdevice_attribute attribute, CUdevice device)
{
	*ret = attribute == CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED;
	return CUDA_SUCCESS;
}

EXPORT CUresult cuMemAddressReserve(CUdeviceptr *ret, size_t bytes, size_t alignment, CUdeviceptr address,
                                    unsigned long long flags)
{
	*ret = (CUdeviceptr)aligned_alloc(GRAIN, bytes);
	return *ret ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

EXPORT CUresult cuMemAddressFree(CUdeviceptr address, size_t bytes)
{
	return CUDA_SUCCESS;
}

EXPORT CUresult cuMemMap(CUdeviceptr address, size_t bytes, size_t offset, CUmemGenericAllocationHandle handle,
                         unsigned long long flags)
{
	return CUDA_SUCCESS;
}

EXPORT CUresult cuMemUnmap(CUdeviceptr address, size_t bytes)
{
	return CUDA_SUCCESS;
}

EXPORT CUresult cuMemRelease(CUmemGenericAllocationHandle handle)
{
	return CUDA_SUCCESS;
}

EXPORT CUresult cuMemSetAccess(CUdeviceptr address, size_t bytes, const CUmemAccessDesc *access, size_t count)
{
	return CUDA_SUCCESS;
}

EXPORT CUresult cuMemGetAccess(unsigned long long *ret, const CUmemLocation *location, CUdeviceptr address)
{
	*ret = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
	return CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceGetCount(int *ret)
{
	*ret = 1;
	return CUDA_SUCCESS;
}

EXPORT CUresult cuMemFree(CUdeviceptr memory)
{
	/* Its address is never used again. */
	return memory ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

EXPORT CUresult cuMemGetAddressRange(CUdeviceptr *ret_base, size_t *ret_bytes, CUdeviceptr pointer)
{
	bool large = pointer >= last_start && pointer - last_start < last_bytes;

	*ret_base = large ? last_start : pointer & ~(CUdeviceptr)(PAGE - 1);
	*ret_bytes = large ? last_bytes : PAGE;
	return CUDA_SUCCESS;
}

EXPORT CUresult cuPointerGetAttribute(void *ret, CUpointer_attribute attribute, CUdeviceptr pointer)
{
	if (attribute == CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL || attribute == CU_POINTER_ATTRIBUTE_IS_MANAGED)
		*(int *)ret = 0;
	else if (attribute == CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE)
		*(CUmemoryPool *)ret = NULL;
	else if (attribute == CU_POINTER_ATTRIBUTE_CONTEXT) /* a mapping has none */
		*(CUcontext *)ret = in_large(pointer) ? NULL : (CUcontext)(uintptr_t)1;
	else if (attribute == CU_POINTER_ATTRIBUTE_MEMORY_TYPE)
		*(CUmemorytype *)ret = CU_MEMORYTYPE_DEVICE;
	else
		return CUDA_ERROR_INVALID_VALUE;
	return CUDA_SUCCESS;
}

EXPORT CUresult cuMemsetD8Async(CUdeviceptr memory, unsigned char value, size_t bytes, CUstream stream)
{
	return CUDA_SUCCESS;
}

EXPORT CUresult cuMemHostRegister(void *memory, size_t bytes, unsigned flags)
{
	return CUDA_SUCCESS;
}

EXPORT CUresult cuMemHostAlloc(void **ret, size_t bytes, unsigned flags)
{
	*ret = aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
	return *ret ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

EXPORT CUresult cuMemHostGetDevicePointer(CUdeviceptr *ret, void *memory, unsigned flags)
{
	*ret = (CUdeviceptr)memory;
	return CUDA_SUCCESS;
}

EXPORT CUresult cuStreamCreate(CUstream *ret, unsigned flags)
{
	*ret = (CUstream)(uintptr_t)0x10;
	return CUDA_SUCCESS;
}

EXPORT CUresult cuStreamSynchronize(CUstream stream)
{
	return CUDA_SUCCESS;
}

EXPORT CUresult cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus *ret)
{
	*ret = CU_STREAM_CAPTURE_STATUS_NONE;
	return CUDA_SUCCESS;
}

EXPORT CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode)
{
	return CUDA_SUCCESS;
}
