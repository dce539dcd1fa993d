/* What served memory says of itself: what plain memory of cuMemAlloc would say, except about what it cannot do. */
#include <stdatomic.h>
#include <stdint.h>

#include "shim/effects/capture.h"
#include "shim/report/report.h"
#include "shim/twins/serve_calls.h"
#include "shim/twins/serve_internal.h"

#define PITCH_WIDTH_MAX INT32_MAX /* CU_DEVICE_ATTRIBUTE_MAX_PITCH of all devices so far */

CUresult serve_range(CUdeviceptr *ret_base, size_t *ret_bytes, CUdeviceptr address)
{
	struct serve_fact fact = serve_used() ? serve_fact(address) : (struct serve_fact){.inside = false};
	CUdeviceptr base;
	size_t bytes;

	if (!fact.inside)
		return drv.cuMemGetAddressRange_v2(ret_base, ret_bytes, address);
	/* The driver is asked all the same: it knows whether the context is healthy. */
	CUresult result = drv.cuMemGetAddressRange_v2(&base, &bytes, address);
	if (result != CUDA_SUCCESS)
		return result;
	if (!fact.live)
		return CUDA_ERROR_NOT_FOUND;
	if (ret_base)
		*ret_base = fact.start;
	if (ret_bytes)
		*ret_bytes = fact.piece.bytes;
	return CUDA_SUCCESS;
}

CUresult serve_cuMemGetAddressRange_v2(CUdeviceptr *pbase, size_t *psize, CUdeviceptr dptr)
{
	return serve_range(pbase, psize, dptr);
}

/*
 * An empty mapping that is kept is free to the program: the next small allocation uses it, and a large one gets it back
 * first.
 */
CUresult serve_cuMemGetInfo_v2(size_t *free, size_t *total)
{
	CUresult result = drv.cuMemGetInfo_v2(free, total);
	CUdevice device;

	if (result != CUDA_SUCCESS || !serve_used() || !free || drv.cuCtxGetDevice(&device) != CUDA_SUCCESS)
		return result;
	lock_acquire(&serve_lock);
	for (const struct arena *arena = serve_arenas; arena; arena = arena->next)
		if (arena->device == device && arena->kept)
			*free += arena->kept->bytes;
	lock_release(&serve_lock);
	return result;
}

static void patch(void *data, CUpointer_attribute attribute, const struct serve_fact *fact)
{
	switch ((int)attribute) {
	case CU_POINTER_ATTRIBUTE_CONTEXT:
		*(CUcontext *)data = fact->context;
		break;
	case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
		*(CUdeviceptr *)data = fact->start;
		break;
	case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
		*(size_t *)data = fact->piece.bytes;
		break;
	case CU_POINTER_ATTRIBUTE_BUFFER_ID:
		*(unsigned long long *)data = fact->piece.id;
		break;
	case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
		/* The driver has written 0 or 1, in a width of its own. */
		*(unsigned char *)data = fact->piece.sync;
		break;
	default:
		break;
	}
}

/*
 * Where a block is but no allocation the program must not be told of the block: the driver answers for an address that
 * is none.
 */
static CUdeviceptr asked(CUdeviceptr address, const struct serve_fact *fact)
{
	return fact->inside && !fact->live ? 0 : address;
}

CUresult serve_cuPointerGetAttribute(void *data, CUpointer_attribute attribute, CUdeviceptr ptr)
{
	if (!serve_used())
		return drv.cuPointerGetAttribute(data, attribute, ptr);
	struct serve_fact fact = serve_fact(ptr);
	CUresult result = drv.cuPointerGetAttribute(data, attribute, asked(ptr, &fact));
	if (result == CUDA_SUCCESS && fact.live)
		patch(data, attribute, &fact);
	return result;
}

CUresult serve_cuPointerGetAttributes(unsigned int numAttributes, CUpointer_attribute *attributes, void **data,
                                      CUdeviceptr ptr)
{
	if (!serve_used())
		return drv.cuPointerGetAttributes(numAttributes, attributes, data, ptr);
	struct serve_fact fact = serve_fact(ptr);
	CUresult result = drv.cuPointerGetAttributes(numAttributes, attributes, data, asked(ptr, &fact));
	for (unsigned i = 0; result == CUDA_SUCCESS && fact.live && i < numAttributes; i++)
		patch(data[i], attributes[i], &fact);
	return result;
}

/* Before the driver is told: does the whole block change? It is synchronous as long as one of its pieces is to be. */
static bool changes_block(CUdeviceptr address, bool sync)
{
	struct place place;

	lock_acquire(&serve_lock);
	bool changes = sync;
	if (!sync && piece_at(address, &place))
		changes = place.block->syncs <= place.piece->sync;
	lock_release(&serve_lock);
	return changes;
}

/* Was any allocation ever to be synchronous? */
static _Atomic bool synchronous;

static void remember_sync(CUdeviceptr address, bool sync)
{
	struct place place;

	if (sync)
		atomic_store_explicit(&synchronous, true, memory_order_relaxed);
	lock_acquire(&serve_lock);
	if (piece_at(address, &place) && place.piece->sync != sync) {
		place.piece->sync = sync;
		place.block->syncs += sync ? 1u : -1u;
	}
	lock_release(&serve_lock);
}

/*
 * An H200 (580) sets no attribute of mapped memory: NOT_SUPPORTED. What plain memory would let be set is done by us
 * then, the rest is as wrong as there.
 */
CUresult serve_cuPointerSetAttribute(const void *value, CUpointer_attribute attribute, CUdeviceptr ptr)
{
	if (!serve_used())
		return drv.cuPointerSetAttribute(value, attribute, ptr);
	struct serve_fact fact = serve_fact(ptr);
	bool ours = fact.live && value && attribute == CU_POINTER_ATTRIBUTE_SYNC_MEMOPS;
	bool sync = ours && *(const unsigned char *)value;
	CUresult result = CUDA_SUCCESS;
	if (!ours || changes_block(ptr, sync))
		result = drv.cuPointerSetAttribute(value, attribute, asked(ptr, &fact));
	if (fact.live && result == CUDA_ERROR_NOT_SUPPORTED)
		result = ours ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
	if (ours && result == CUDA_SUCCESS)
		remember_sync(ptr, sync);
	return result;
}

bool serve_synchronous(void)
{
	return atomic_load_explicit(&synchronous, memory_order_relaxed);
}

/* The driver cannot share mapped memory this way, and the whole slab must not be shared. */
CUresult serve_cuIpcGetMemHandle(CUipcMemHandle *pHandle, CUdeviceptr dptr)
{
	if (!serve_used() || !serve_fact(dptr).inside)
		return drv.cuIpcGetMemHandle(pHandle, dptr);
	report_note(
		"cuIpcGetMemHandle is refused for memory that twins=all serves: a program that shares memory between processes needs twins=native");
	return CUDA_ERROR_INVALID_VALUE;
}

/* Calls for mapped memory, which plain memory is not: the driver refuses them there. */
static bool mapped_by_us(CUdeviceptr address)
{
	return serve_used() && serve_fact(address).inside;
}

CUresult serve_cuMemUnmap(CUdeviceptr ptr, size_t size)
{
	return mapped_by_us(ptr) ? CUDA_ERROR_INVALID_VALUE : drv.cuMemUnmap(ptr, size);
}

CUresult serve_cuMemAddressFree(CUdeviceptr ptr, size_t size)
{
	return mapped_by_us(ptr) ? CUDA_ERROR_INVALID_VALUE : drv.cuMemAddressFree(ptr, size);
}

CUresult serve_cuMemSetAccess(CUdeviceptr ptr, size_t size, const CUmemAccessDesc *desc, size_t count)
{
	return mapped_by_us(ptr) ? CUDA_ERROR_INVALID_VALUE : drv.cuMemSetAccess(ptr, size, desc, count);
}

CUresult serve_cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *handle, void *addr)
{
	return mapped_by_us((CUdeviceptr)addr) ? CUDA_ERROR_INVALID_VALUE : drv.cuMemRetainAllocationHandle(handle, addr);
}

/* A driver (580) takes the question for plain memory, too, and answers that nobody has access. A block is mapped between its allocations as well. */
CUresult serve_cuMemGetAccess(unsigned long long *flags, const CUmemLocation *location, CUdeviceptr ptr)
{
	struct serve_fact fact = serve_used() ? serve_fact(ptr) : (struct serve_fact){.inside = false};

	CUresult result = drv.cuMemGetAccess(flags, location, ptr);
	if (!fact.inside || result != CUDA_SUCCESS)
		return result;
	*flags = CU_MEM_ACCESS_FLAGS_PROT_NONE;
	return fact.live ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* The driver's pitch is a multiple of this; 0: not known yet. By device. */
static _Atomic uint32_t pitch_units[SERVE_DEVICES_MAX];

static size_t pitch_unit(void)
{
	CUdeviceptr probe;
	CUdevice device;
	size_t pitch;

	if (drv.cuCtxGetDevice(&device) != CUDA_SUCCESS || device < 0 || device >= SERVE_DEVICES_MAX)
		return 0;
	size_t unit = atomic_load_explicit(&pitch_units[device], memory_order_relaxed);
	if (unit || capture_anywhere() || drv.cuMemAllocPitch_v2(&probe, &pitch, 1, 1, 4) != CUDA_SUCCESS)
		return unit;
	drv.cuMemFree_v2(probe);
	atomic_store_explicit(&pitch_units[device], (uint32_t)pitch, memory_order_relaxed);
	return pitch;
}

CUresult serve_cuMemAllocPitch_v2(CUdeviceptr *dptr, size_t *pPitch, size_t WidthInBytes, size_t Height,
                                  unsigned int ElementSizeBytes)
{
	bool good = dptr && pPitch && WidthInBytes && WidthInBytes <= PITCH_WIDTH_MAX && Height &&
	            (ElementSizeBytes == 4 || ElementSizeBytes == 8 || ElementSizeBytes == 16);
	size_t unit = good && serve_on() ? pitch_unit() : 0, bytes;

	if (unit) {
		size_t pitch = (WidthInBytes + unit - 1) / unit * unit;

		if (!__builtin_mul_overflow(pitch, Height, &bytes) && serve_take(bytes, dptr)) {
			*pPitch = pitch;
			return CUDA_SUCCESS;
		}
	}
	return drv.cuMemAllocPitch_v2(dptr, pPitch, WidthInBytes, Height, ElementSizeBytes);
}
