/* Hints about managed memory: advice, prefetching, discarding, and what a range says of them. */
#include "tests/softgpu/driver/memory.h"
#include "tests/softgpu/driver/op.h"
#include "tests/softgpu/driver/stream.h"

/* With the lock held: the managed memory that holds a range, or NULL. */
static struct sg_allocation *managed(CUdeviceptr address, size_t count)
{
	struct sg_allocation *memory = sg_allocation_at(address);

	return count > 0 && memory != NULL && memory->kind == SG_MEMORY_MANAGED &&
	                       count <= memory->bytes - (address - memory->address)
	               ? memory
	               : NULL;
}

static bool is_place(CUmemLocation location)
{
	switch ((int)location.type) {
	case CU_MEM_LOCATION_TYPE_DEVICE:
		return sg_is_device(location.id);
	case CU_MEM_LOCATION_TYPE_HOST:
	case CU_MEM_LOCATION_TYPE_HOST_NUMA:
	case CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT:
		return true;
	default:
		return false;
	}
}

static unsigned bit_of(CUmemLocation location)
{
	return 1u << (location.type == CU_MEM_LOCATION_TYPE_DEVICE ? location.id : SG_DEVICES_MAX);
}

CUresult sg_cuMemAdvise_v2(CUdeviceptr devPtr, size_t count, CUmem_advise advice, CUmemLocation location)
{
	static const CUmemLocation nowhere;
	bool places = advice == CU_MEM_ADVISE_SET_PREFERRED_LOCATION || advice == CU_MEM_ADVISE_SET_ACCESSED_BY ||
	              advice == CU_MEM_ADVISE_UNSET_ACCESSED_BY;

	if (places && !is_place(location))
		return location.type == CU_MEM_LOCATION_TYPE_DEVICE ? CUDA_ERROR_INVALID_DEVICE
		                                                    : CUDA_ERROR_INVALID_VALUE;
	sg_lock();
	struct sg_allocation *memory = managed(devPtr, count);
	CUresult status = memory != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
	switch (memory != NULL ? (int)advice : 0) {
	case 0:
		break;
	case CU_MEM_ADVISE_SET_READ_MOSTLY:
	case CU_MEM_ADVISE_UNSET_READ_MOSTLY:
		memory->advice.read_mostly = advice == CU_MEM_ADVISE_SET_READ_MOSTLY;
		break;
	case CU_MEM_ADVISE_SET_PREFERRED_LOCATION:
		memory->advice.preferred = location;
		break;
	case CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION:
		memory->advice.preferred = nowhere;
		break;
	case CU_MEM_ADVISE_SET_ACCESSED_BY:
		memory->advice.accessed_by |= bit_of(location);
		break;
	case CU_MEM_ADVISE_UNSET_ACCESSED_BY:
		memory->advice.accessed_by &= ~bit_of(location);
		break;
	default:
		status = CUDA_ERROR_INVALID_VALUE;
	}
	sg_unlock();
	return status;
}

/* A device number, or one of the two that mean the host and nowhere. */
static CUmemLocation place_of(CUdevice device)
{
	return device == CU_DEVICE_CPU ? (CUmemLocation){.type = CU_MEM_LOCATION_TYPE_HOST}
	                               : (CUmemLocation){.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device};
}

static int number_of(CUmemLocation location)
{
	switch ((int)location.type) {
	case CU_MEM_LOCATION_TYPE_INVALID:
		return CU_DEVICE_INVALID;
	case CU_MEM_LOCATION_TYPE_DEVICE:
		return location.id;
	default:
		return CU_DEVICE_CPU;
	}
}

CUresult sg_cuMemAdvise(CUdeviceptr devPtr, size_t count, CUmem_advise advice, CUdevice device)
{
	return sg_cuMemAdvise_v2(devPtr, count, advice, place_of(device));
}

/* Checks all, then notes all; what runs in the stream has nothing to do. */
static CUresult prefetch(const CUdeviceptr *addresses, const size_t *sizes, size_t count, const CUmemLocation *to,
                         CUstream handle)
{
	struct sg_op op = {.kind = SG_OP_EMPTY};
	struct sg_stream *stream;

	sg_lock();
	CUresult status = sg_stream_of(handle, &stream);
	for (size_t i = 0; i < count && status == CUDA_SUCCESS; i++)
		if (managed(addresses[i], sizes[i]) == NULL)
			status = CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; i < count && status == CUDA_SUCCESS && to != NULL; i++)
		managed(addresses[i], sizes[i])->advice.prefetched = to[i];
	if (status == CUDA_SUCCESS)
		status = sg_submit(stream, &op, false);
	sg_unlock();
	return status;
}

CUresult sg_cuMemPrefetchAsync_v2(CUdeviceptr devPtr, size_t count, CUmemLocation location, unsigned int flags,
                                  CUstream hStream)
{
	if (flags != 0)
		return CUDA_ERROR_INVALID_VALUE;
	if (!is_place(location))
		return location.type == CU_MEM_LOCATION_TYPE_DEVICE ? CUDA_ERROR_INVALID_DEVICE
		                                                    : CUDA_ERROR_INVALID_VALUE;
	return prefetch(&devPtr, &count, 1, &location, hStream);
}

CUresult sg_cuMemPrefetchAsync(CUdeviceptr devPtr, size_t count, CUdevice dstDevice, CUstream hStream)
{
	return sg_cuMemPrefetchAsync_v2(devPtr, count, place_of(dstDevice), 0, hStream);
}

/* Location number i of `places` is for the ranges from indices[i] on. */
static CUresult prefetch_batch(const CUdeviceptr *addresses, const size_t *sizes, size_t count,
                               const CUmemLocation *places, const size_t *indices, size_t place_count,
                               unsigned long long flags, CUstream stream)
{
	CUresult status = CUDA_SUCCESS;

	if (addresses == NULL || sizes == NULL || count == 0 || flags != 0 || places == NULL || indices == NULL ||
	    place_count == 0 || place_count > count || indices[0] != 0)
		return CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; i < place_count; i++)
		if (!is_place(places[i]) || indices[i] >= count || (i > 0 && indices[i] <= indices[i - 1]))
			return CUDA_ERROR_INVALID_VALUE;
	sg_lock();
	for (size_t i = 0; i < count; i++)
		if (managed(addresses[i], sizes[i]) == NULL)
			status = CUDA_ERROR_INVALID_VALUE;
	sg_unlock();
	for (size_t i = 0, place = 0; i < count && status == CUDA_SUCCESS; i++) {
		if (place + 1 < place_count && indices[place + 1] == i)
			place++;
		status = prefetch(&addresses[i], &sizes[i], 1, &places[place], stream);
	}
	return status;
}

CUresult sg_cuMemPrefetchBatchAsync(CUdeviceptr *dptrs, size_t *sizes, size_t count, CUmemLocation *prefetchLocs,
                                    size_t *prefetchLocIdxs, size_t numPrefetchLocs, unsigned long long flags,
                                    CUstream hStream)
{
	return prefetch_batch(dptrs, sizes, count, prefetchLocs, prefetchLocIdxs, numPrefetchLocs, flags, hStream);
}

/* What is discarded may keep what it holds: a program must not rely on either. */
CUresult sg_cuMemDiscardBatchAsync(CUdeviceptr *dptrs, size_t *sizes, size_t count, unsigned long long flags,
                                   CUstream hStream)
{
	if (dptrs == NULL || sizes == NULL || count == 0 || flags != 0)
		return CUDA_ERROR_INVALID_VALUE;
	return prefetch(dptrs, sizes, count, NULL, hStream);
}

CUresult sg_cuMemDiscardAndPrefetchBatchAsync(CUdeviceptr *dptrs, size_t *sizes, size_t count,
                                              CUmemLocation *prefetchLocs, size_t *prefetchLocIdxs,
                                              size_t numPrefetchLocs, unsigned long long flags, CUstream hStream)
{
	return prefetch_batch(dptrs, sizes, count, prefetchLocs, prefetchLocIdxs, numPrefetchLocs, flags, hStream);
}

/* The devices that a range is accessed by, and CU_DEVICE_INVALID for what is left of the list. */
static void list_accessors(unsigned accessed_by, int *list, size_t room)
{
	size_t used = 0;

	for (int bit = 0; bit <= SG_DEVICES_MAX && used < room; bit++)
		if ((accessed_by >> bit & 1) != 0)
			list[used++] = bit == SG_DEVICES_MAX ? CU_DEVICE_CPU : bit;
	while (used < room)
		list[used++] = CU_DEVICE_INVALID;
}

CUresult sg_cuMemRangeGetAttribute(void *data, size_t dataSize, CUmem_range_attribute attribute, CUdeviceptr devPtr,
                                   size_t count)
{
	CUresult status = CUDA_SUCCESS;

	if (data == NULL || dataSize < sizeof(int) || dataSize % sizeof(int) != 0 ||
	    (dataSize != sizeof(int) && attribute != CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY))
		return CUDA_ERROR_INVALID_VALUE;
	sg_lock();
	const struct sg_allocation *memory = managed(devPtr, count);
	int *value = data;
	switch (memory != NULL ? (int)attribute : 0) {
	case CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY:
		*value = memory->advice.read_mostly;
		break;
	case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION:
		*value = number_of(memory->advice.preferred);
		break;
	case CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY:
		list_accessors(memory->advice.accessed_by, value, dataSize / sizeof(int));
		break;
	case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION:
		*value = number_of(memory->advice.prefetched);
		break;
	case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_TYPE:
		*value = (int)memory->advice.preferred.type;
		break;
	case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_ID:
		*value = memory->advice.preferred.id;
		break;
	case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_TYPE:
		*value = (int)memory->advice.prefetched.type;
		break;
	case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_ID:
		*value = memory->advice.prefetched.id;
		break;
	default:
		status = CUDA_ERROR_INVALID_VALUE;
	}
	sg_unlock();
	return status;
}

CUresult sg_cuMemRangeGetAttributes(void **data, size_t *dataSizes, CUmem_range_attribute *attributes,
                                    size_t numAttributes, CUdeviceptr devPtr, size_t count)
{
	CUresult status = data == NULL || dataSizes == NULL || attributes == NULL || numAttributes == 0
	                          ? CUDA_ERROR_INVALID_VALUE
	                          : CUDA_SUCCESS;

	for (size_t i = 0; i < numAttributes && status == CUDA_SUCCESS; i++)
		status = sg_cuMemRangeGetAttribute(data[i], dataSizes[i], attributes[i], devPtr, count);
	return status;
}
