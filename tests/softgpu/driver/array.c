#include "tests/softgpu/driver/array.h"

#include <stdlib.h>
#include <string.h>

#include "tests/softgpu/driver/capture.h"
#include "tests/softgpu/driver/memory.h"

enum { LINE_MAX_WIDTH = 131072, FLAT_MAX = 131072, FLAT_MAX_HEIGHT = 65536, DEEP_MAX = 16384 };

struct sg_array *sg_array_of(CUarray handle)
{
	return sg_is(handle, SG_ARRAY) ? (struct sg_array *)handle : NULL;
}

size_t sg_channel_bytes(CUarray_format format)
{
	switch ((int)format) {
	case CU_AD_FORMAT_UNSIGNED_INT8:
	case CU_AD_FORMAT_SIGNED_INT8:
		return 1;
	case CU_AD_FORMAT_UNSIGNED_INT16:
	case CU_AD_FORMAT_SIGNED_INT16:
	case CU_AD_FORMAT_HALF:
		return 2;
	case CU_AD_FORMAT_UNSIGNED_INT32:
	case CU_AD_FORMAT_SIGNED_INT32:
	case CU_AD_FORMAT_FLOAT:
		return 4;
	default:
		return 0;
	}
}

static CUresult check(const CUDA_ARRAY3D_DESCRIPTOR *asked)
{
	bool deep = asked->Depth > 0, flat = asked->Height > 0;
	size_t width = deep ? DEEP_MAX : flat ? FLAT_MAX : LINE_MAX_WIDTH, height = deep ? DEEP_MAX : FLAT_MAX_HEIGHT;

	if (sg_channel_bytes(asked->Format) == 0 ||
	    (asked->NumChannels != 1 && asked->NumChannels != 2 && asked->NumChannels != 4) || asked->Width == 0 ||
	    (deep && !flat) || asked->Width > width || asked->Height > height || asked->Depth > DEEP_MAX)
		return CUDA_ERROR_INVALID_VALUE;
	/* Layers, cubes and the rest are other shapes. */
	return (asked->Flags & ~(unsigned)CUDA_ARRAY3D_SURFACE_LDST) != 0 ? CUDA_ERROR_NOT_SUPPORTED : CUDA_SUCCESS;
}

CUresult sg_cuArray3DCreate_v2(CUarray *pHandle, const CUDA_ARRAY3D_DESCRIPTOR *pAllocateArray)
{
	CUresult status = pHandle == NULL || pAllocateArray == NULL ? CUDA_ERROR_INVALID_VALUE : check(pAllocateArray);

	if (status != CUDA_SUCCESS)
		return status;
	struct sg_array *array = calloc(1, sizeof(*array));
	if (array == NULL)
		return CUDA_ERROR_OUT_OF_MEMORY;
	array->asked = *pAllocateArray;
	array->row = pAllocateArray->Width * pAllocateArray->NumChannels * sg_channel_bytes(pAllocateArray->Format);
	array->rows = pAllocateArray->Height > 0 ? pAllocateArray->Height : 1;
	array->layers = pAllocateArray->Depth > 0 ? pAllocateArray->Depth : 1;
	size_t bytes = array->row * array->rows * array->layers;
	sg_lock();
	array->context = sg_context_current();
	status = sg_capture_unsafe();
	if (status == CUDA_SUCCESS && !sg_heap_take(array->context->device, bytes, &array->address))
		status = CUDA_ERROR_OUT_OF_MEMORY;
	if (status == CUDA_SUCCESS && !sg_add(array, SG_ARRAY)) {
		sg_heap_give(array->context->device, array->address, bytes);
		status = CUDA_ERROR_OUT_OF_MEMORY;
	}
	if (status == CUDA_SUCCESS)
		sg_arena_mark(array->address, bytes, SG_ACCESS_WRITE);
	sg_unlock();
	if (status == CUDA_SUCCESS)
		*pHandle = (CUarray)array;
	else
		free(array);
	return status;
}

CUresult sg_cuArrayCreate_v2(CUarray *pHandle, const CUDA_ARRAY_DESCRIPTOR *pAllocateArray)
{
	if (pAllocateArray == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	CUDA_ARRAY3D_DESCRIPTOR whole = {.Width = pAllocateArray->Width,
	                                 .Height = pAllocateArray->Height,
	                                 .Format = pAllocateArray->Format,
	                                 .NumChannels = pAllocateArray->NumChannels};
	return sg_cuArray3DCreate_v2(pHandle, &whole);
}

static void give(struct sg_array *array)
{
	size_t bytes = array->row * array->rows * array->layers;

	sg_remove(array);
	sg_arena_mark(array->address, bytes, SG_ACCESS_NONE);
	sg_heap_give(array->context->device, array->address, bytes);
	free(array);
}

CUresult sg_cuArrayDestroy(CUarray hArray)
{
	CUresult status = CUDA_ERROR_INVALID_HANDLE;

	sg_lock();
	if (sg_array_of(hArray) != NULL) {
		status = sg_capture_unsafe();
		if (status == CUDA_SUCCESS)
			sg_drain_all();
		struct sg_array *array = sg_array_of(hArray);
		if (status == CUDA_SUCCESS && array != NULL)
			give(array);
	}
	sg_unlock();
	return status;
}

struct search {
	const struct sg_context *context;
	struct sg_array *found;
};

static void find(void *handle, void *data)
{
	struct search *search = data;

	if (((struct sg_array *)handle)->context == search->context)
		search->found = handle;
}

void sg_arrays_end(struct sg_context *context)
{
	struct search search;

	do {
		search = (struct search){context, NULL};
		sg_each(SG_ARRAY, find, &search);
		if (search.found != NULL)
			give(search.found);
	} while (search.found != NULL);
}

CUresult sg_cuArray3DGetDescriptor_v2(CUDA_ARRAY3D_DESCRIPTOR *pArrayDescriptor, CUarray hArray)
{
	if (pArrayDescriptor == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	sg_lock();
	const struct sg_array *array = sg_array_of(hArray);
	if (array != NULL)
		*pArrayDescriptor = array->asked;
	sg_unlock();
	return array != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult sg_cuArrayGetDescriptor_v2(CUDA_ARRAY_DESCRIPTOR *pArrayDescriptor, CUarray hArray)
{
	CUDA_ARRAY3D_DESCRIPTOR whole;

	if (pArrayDescriptor == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult status = sg_cuArray3DGetDescriptor_v2(&whole, hArray);
	if (status == CUDA_SUCCESS)
		*pArrayDescriptor = (CUDA_ARRAY_DESCRIPTOR){whole.Width, whole.Height, whole.Format, whole.NumChannels};
	return status;
}

/* Linear copies: bytes of the first row. */
static CUDA_MEMCPY3D row_of(size_t bytes)
{
	CUDA_MEMCPY3D asked;

	memset(&asked, 0, sizeof(asked));
	asked.WidthInBytes = bytes;
	asked.Height = asked.Depth = 1;
	return asked;
}

static void to_array(CUDA_MEMCPY3D *asked, CUarray array, size_t offset)
{
	asked->dstMemoryType = CU_MEMORYTYPE_ARRAY;
	asked->dstArray = array;
	asked->dstXInBytes = offset;
}

static void from_array(CUDA_MEMCPY3D *asked, CUarray array, size_t offset)
{
	asked->srcMemoryType = CU_MEMORYTYPE_ARRAY;
	asked->srcArray = array;
	asked->srcXInBytes = offset;
}

static CUDA_MEMCPY3D host_to_array(CUarray array, size_t offset, const void *host, size_t bytes)
{
	CUDA_MEMCPY3D asked = row_of(bytes);

	to_array(&asked, array, offset);
	asked.srcMemoryType = CU_MEMORYTYPE_HOST;
	asked.srcHost = host;
	return asked;
}

static CUDA_MEMCPY3D array_to_host(void *host, CUarray array, size_t offset, size_t bytes)
{
	CUDA_MEMCPY3D asked = row_of(bytes);

	from_array(&asked, array, offset);
	asked.dstMemoryType = CU_MEMORYTYPE_HOST;
	asked.dstHost = host;
	return asked;
}

CUresult sg_cuMemcpyHtoA_v2(CUarray dstArray, size_t dstOffset, const void *srcHost, size_t ByteCount)
{
	CUDA_MEMCPY3D asked = host_to_array(dstArray, dstOffset, srcHost, ByteCount);

	return sg_cuMemcpy3D_v2(&asked);
}

CUresult sg_cuMemcpyHtoAAsync_v2(CUarray dstArray, size_t dstOffset, const void *srcHost, size_t ByteCount,
                                 CUstream hStream)
{
	CUDA_MEMCPY3D asked = host_to_array(dstArray, dstOffset, srcHost, ByteCount);

	return sg_cuMemcpy3DAsync_v2(&asked, hStream);
}

CUresult sg_cuMemcpyAtoH_v2(void *dstHost, CUarray srcArray, size_t srcOffset, size_t ByteCount)
{
	CUDA_MEMCPY3D asked = array_to_host(dstHost, srcArray, srcOffset, ByteCount);

	return sg_cuMemcpy3D_v2(&asked);
}

CUresult sg_cuMemcpyAtoHAsync_v2(void *dstHost, CUarray srcArray, size_t srcOffset, size_t ByteCount, CUstream hStream)
{
	CUDA_MEMCPY3D asked = array_to_host(dstHost, srcArray, srcOffset, ByteCount);

	return sg_cuMemcpy3DAsync_v2(&asked, hStream);
}

CUresult sg_cuMemcpyDtoA_v2(CUarray dstArray, size_t dstOffset, CUdeviceptr srcDevice, size_t ByteCount)
{
	CUDA_MEMCPY3D asked = row_of(ByteCount);

	to_array(&asked, dstArray, dstOffset);
	asked.srcMemoryType = CU_MEMORYTYPE_DEVICE;
	asked.srcDevice = srcDevice;
	return sg_cuMemcpy3D_v2(&asked);
}

CUresult sg_cuMemcpyAtoD_v2(CUdeviceptr dstDevice, CUarray srcArray, size_t srcOffset, size_t ByteCount)
{
	CUDA_MEMCPY3D asked = row_of(ByteCount);

	from_array(&asked, srcArray, srcOffset);
	asked.dstMemoryType = CU_MEMORYTYPE_DEVICE;
	asked.dstDevice = dstDevice;
	return sg_cuMemcpy3D_v2(&asked);
}

CUresult sg_cuMemcpyAtoA_v2(CUarray dstArray, size_t dstOffset, CUarray srcArray, size_t srcOffset, size_t ByteCount)
{
	CUDA_MEMCPY3D asked = row_of(ByteCount);

	to_array(&asked, dstArray, dstOffset);
	from_array(&asked, srcArray, srcOffset);
	return sg_cuMemcpy3D_v2(&asked);
}
