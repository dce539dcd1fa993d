/* What a pointer is: cuPointerGetAttribute(s). Hints about managed memory: accepted, without effect. */
#include <stddef.h>

#include "tests/softgpu/driver/memory.h"
#include "tests/softgpu/driver/vmm.h"

/* Access is answered for the device of the current context. */
static int device_asking(const struct sg_allocation *memory)
{
	const struct sg_context *context = sg_context_current();

	return context != NULL ? context->device : memory->device;
}

/* A known pointer's attribute; INVALID_VALUE where the attribute means nothing for this kind of memory. */
static CUresult answer(const struct sg_allocation *memory, CUpointer_attribute attribute, uint64_t pointer, void *data)
{
	bool host = memory->kind >= SG_MEMORY_HOST, mapping = memory->kind == SG_MEMORY_MAPPING,
	     managed = memory->kind == SG_MEMORY_MANAGED;

	switch ((int)attribute) {
	case CU_POINTER_ATTRIBUTE_CONTEXT:
		*(CUcontext *)data = (CUcontext)memory->context;
		break;
	case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
		*(unsigned *)data = host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
		break;
	case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
		*(CUdeviceptr *)data = pointer;
		break;
	case CU_POINTER_ATTRIBUTE_HOST_POINTER:
		if (!host && !managed)
			return CUDA_ERROR_INVALID_VALUE;
		*(void **)data = (void *)(uintptr_t)pointer;
		break;
	case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
		*(unsigned *)data = memory->sync_memops || managed;
		break;
	case CU_POINTER_ATTRIBUTE_BUFFER_ID:
	case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID:
		*(unsigned long long *)data = memory->id;
		break;
	case CU_POINTER_ATTRIBUTE_IS_MANAGED:
		*(unsigned *)data = managed;
		break;
	case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
		*(int *)data = memory->device;
		break;
	case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
		*(unsigned *)data = memory->kind == SG_MEMORY_DEVICE;
		break;
	case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
	case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
		*(CUdeviceptr *)data = memory->address;
		break;
	case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
	case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
		*(size_t *)data = memory->bytes;
		break;
	case CU_POINTER_ATTRIBUTE_MAPPED:
		*(unsigned *)data = !mapping || memory->access != SG_ACCESS_NONE;
		break;
	case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
		*(unsigned long long *)data = mapping ? memory->physical->prop.requestedHandleTypes
		                                      : CU_MEM_HANDLE_TYPE_NONE;
		break;
	case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
	case CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE:
		*(unsigned *)data = 0;
		break;
	case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
		*(unsigned *)data = sg_access_of(memory->access, device_asking(memory));
		break;
	case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
		*(CUmemoryPool *)data = (CUmemoryPool)memory->pool;
		break;
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
	return CUDA_SUCCESS;
}

/* Bytes of an attribute's answer, which is zero for pointers that are not known; DEVICE_ORDINAL is -2 then. */
static size_t answer_bytes(CUpointer_attribute attribute)
{
	switch ((int)attribute) {
	case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
	case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
	case CU_POINTER_ATTRIBUTE_IS_MANAGED:
	case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
	case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
	case CU_POINTER_ATTRIBUTE_MAPPED:
	case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
	case CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE:
	case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
		return 4;
	default:
		return 8;
	}
}

static bool is_attribute(CUpointer_attribute attribute)
{
	return attribute >= CU_POINTER_ATTRIBUTE_CONTEXT && attribute <= CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE &&
	       attribute != CU_POINTER_ATTRIBUTE_P2P_TOKENS;
}

CUresult sg_cuPointerGetAttribute(void *data, CUpointer_attribute attribute, CUdeviceptr ptr)
{
	CUresult status = CUDA_ERROR_INVALID_VALUE;

	if (data == NULL || !is_attribute(attribute))
		return status;
	sg_lock();
	const struct sg_allocation *memory = sg_allocation_at(ptr);
	if (memory != NULL)
		status = answer(memory, attribute, ptr, data);
	sg_unlock();
	return status;
}

/* Unlike the single question this one succeeds for pointers it does not know. */
CUresult sg_cuPointerGetAttributes(unsigned int numAttributes, CUpointer_attribute *attributes, void **data,
                                   CUdeviceptr ptr)
{
	if (numAttributes == 0 || attributes == NULL || data == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	for (unsigned i = 0; i < numAttributes; i++)
		if (data[i] == NULL || !is_attribute(attributes[i]))
			return CUDA_ERROR_INVALID_VALUE;
	sg_lock();
	const struct sg_allocation *memory = sg_allocation_at(ptr);
	for (unsigned i = 0; i < numAttributes; i++) {
		if (memory != NULL && answer(memory, attributes[i], ptr, data[i]) == CUDA_SUCCESS)
			continue;
		__builtin_memset(data[i], 0, answer_bytes(attributes[i]));
		if (attributes[i] == CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL)
			*(int *)data[i] = -2;
	}
	sg_unlock();
	return CUDA_SUCCESS;
}

CUresult sg_cuPointerSetAttribute(const void *value, CUpointer_attribute attribute, CUdeviceptr ptr)
{
	CUresult status = CUDA_ERROR_INVALID_VALUE;

	if (value == NULL)
		return status;
	sg_lock();
	struct sg_allocation *memory = sg_allocation_at(ptr);
	if (memory != NULL && memory->kind == SG_MEMORY_MAPPING) {
		status = CUDA_ERROR_NOT_SUPPORTED;
	} else if (memory != NULL && memory->kind < SG_MEMORY_HOST && attribute == CU_POINTER_ATTRIBUTE_SYNC_MEMOPS) {
		memory->sync_memops = *(const unsigned *)value != 0;
		status = CUDA_SUCCESS;
	}
	sg_unlock();
	return status;
}
