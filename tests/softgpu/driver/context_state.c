/* What a context answers and remembers: identity, flags, limits, peers. */
#include "tests/softgpu/driver/arena.h"
#include "tests/softgpu/driver/capture.h"
#include "tests/softgpu/driver/context.h"

CUresult sg_cuCtxGetDevice_v2(CUdevice *device, CUcontext ctx)
{
	if (device == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	sg_lock();
	if (ctx == NULL && sg_thread.depth > 0)
		ctx = sg_thread.stack[sg_thread.depth - 1];
	/* An ended one is remembered. */
	bool known = sg_is(ctx, SG_CONTEXT) || sg_is(ctx, SG_CONTEXT_ENDED);
	const struct sg_context *context = known ? (struct sg_context *)ctx : NULL;
	if (context != NULL)
		*device = context->device;
	sg_unlock();
	return context != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

CUresult sg_cuCtxGetDevice(CUdevice *device)
{
	return sg_cuCtxGetDevice_v2(device, NULL);
}

CUresult sg_cuCtxGetId(CUcontext ctx, unsigned long long *ctxId)
{
	if (ctxId == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	sg_lock();
	struct sg_context *context = ctx == NULL ? sg_context_current() : sg_context_of(ctx);
	if (context != NULL)
		*ctxId = context->id;
	sg_unlock();
	return context != NULL ? CUDA_SUCCESS
	       : ctx == NULL   ? CUDA_ERROR_INVALID_CONTEXT
	                       : CUDA_ERROR_CONTEXT_IS_DESTROYED;
}

CUresult sg_cuCtxGetApiVersion(CUcontext ctx, unsigned int *version)
{
	if (version == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	sg_lock();
	struct sg_context *context = ctx == NULL ? sg_context_current() : sg_context_of(ctx);
	if (context != NULL)
		*version = context->api_version;
	sg_unlock();
	return context != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

CUresult sg_cuCtxGetFlags(unsigned int *flags)
{
	if (flags == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	sg_lock();
	const struct sg_context *context = sg_context_current();
	if (context != NULL)
		*flags = context->flags | CU_CTX_MAP_HOST; /* which every context does */
	sg_unlock();
	return context != NULL ? CUDA_SUCCESS : CUDA_ERROR_CONTEXT_IS_DESTROYED;
}

CUresult sg_cuCtxSetFlags(unsigned int flags)
{
	unsigned scheduling = flags & CU_CTX_SCHED_MASK;

	if ((flags & ~(unsigned)CU_CTX_FLAGS_MASK) != 0 || (scheduling & (scheduling - 1)) != 0)
		return CUDA_ERROR_INVALID_VALUE;
	sg_lock();
	struct sg_context *context = sg_context_current();
	if (context != NULL)
		context->flags = flags;
	sg_unlock();
	return context != NULL ? CUDA_SUCCESS : CUDA_ERROR_CONTEXT_IS_DESTROYED;
}

CUresult sg_cuCtxSetLimit(CUlimit limit, size_t value)
{
	if ((unsigned)limit >= CU_LIMIT_MAX)
		return CUDA_ERROR_INVALID_VALUE;
	if (limit == CU_LIMIT_SHMEM_SIZE || limit == CU_LIMIT_CIG_ENABLED || limit == CU_LIMIT_CIG_SHMEM_FALLBACK_ENABLED)
		return CUDA_ERROR_UNSUPPORTED_LIMIT;
	sg_lock();
	struct sg_context *context = sg_context_current();
	CUresult status = context == NULL ? CUDA_ERROR_CONTEXT_IS_DESTROYED : sg_capture_unsafe();
	if (status == CUDA_SUCCESS)
		context->limits[limit] = value;
	sg_unlock();
	return status;
}

CUresult sg_cuCtxGetLimit(size_t *pvalue, CUlimit limit)
{
	if (pvalue == NULL || (unsigned)limit >= CU_LIMIT_MAX)
		return CUDA_ERROR_INVALID_VALUE;
	sg_lock();
	const struct sg_context *context = sg_context_current();
	if (context != NULL)
		*pvalue = context->limits[limit];
	sg_unlock();
	return context != NULL ? CUDA_SUCCESS : CUDA_ERROR_CONTEXT_IS_DESTROYED;
}

CUresult sg_cuCtxGetCacheConfig(CUfunc_cache *pconfig)
{
	if (pconfig == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	sg_lock();
	const struct sg_context *context = sg_context_current();
	if (context != NULL)
		*pconfig = context->cache;
	sg_unlock();
	return context != NULL ? CUDA_SUCCESS : CUDA_ERROR_CONTEXT_IS_DESTROYED;
}

CUresult sg_cuCtxSetCacheConfig(CUfunc_cache config)
{
	if ((unsigned)config > CU_FUNC_CACHE_PREFER_EQUAL)
		return CUDA_ERROR_INVALID_VALUE;
	sg_lock();
	struct sg_context *context = sg_context_current();
	if (context != NULL)
		context->cache = config;
	sg_unlock();
	return context != NULL ? CUDA_SUCCESS : CUDA_ERROR_CONTEXT_IS_DESTROYED;
}

CUresult sg_cuCtxGetSharedMemConfig(CUsharedconfig *pConfig)
{
	if (pConfig == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	*pConfig = CU_SHARED_MEM_CONFIG_FOUR_BYTE_BANK_SIZE;
	return CUDA_SUCCESS;
}

/* Banks have one size since compute capability 5: accepted without effect, as there. */
CUresult sg_cuCtxSetSharedMemConfig(CUsharedconfig config)
{
	return (unsigned)config > CU_SHARED_MEM_CONFIG_EIGHT_BYTE_BANK_SIZE ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

CUresult sg_cuCtxGetStreamPriorityRange(int *leastPriority, int *greatestPriority)
{
	if (leastPriority != NULL)
		*leastPriority = 0;
	if (greatestPriority != NULL)
		*greatestPriority = -5;
	return CUDA_SUCCESS;
}

CUresult sg_cuCtxResetPersistingL2Cache(void)
{
	return CUDA_SUCCESS;
}

CUresult sg_cuDeviceCanAccessPeer(int *canAccessPeer, CUdevice dev, CUdevice peerDev)
{
	if (canAccessPeer == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	if (!sg_is_device(dev) || !sg_is_device(peerDev))
		return CUDA_ERROR_INVALID_DEVICE;
	*canAccessPeer = dev != peerDev;
	return CUDA_SUCCESS;
}

static CUresult change_peer(CUcontext peer, bool enable)
{
	CUresult status = CUDA_SUCCESS;

	sg_lock();
	struct sg_context *context = sg_context_current(), *other = sg_context_of(peer);
	unsigned bit = other != NULL ? 1u << other->device : 0;
	if (other == NULL || context == NULL)
		status = CUDA_ERROR_INVALID_CONTEXT;
	else if (other->device == context->device)
		status = enable ? CUDA_ERROR_PEER_ACCESS_UNSUPPORTED : CUDA_ERROR_PEER_ACCESS_NOT_ENABLED;
	else if (enable && (atomic_load(&context->peers) & bit))
		status = CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED;
	else if (!enable && !(atomic_load(&context->peers) & bit))
		status = CUDA_ERROR_PEER_ACCESS_NOT_ENABLED;
	else
		atomic_fetch_xor(&context->peers, bit);
	sg_unlock();
	return status;
}

CUresult sg_cuCtxEnablePeerAccess(CUcontext peerContext, unsigned int Flags)
{
	return Flags != 0 ? CUDA_ERROR_INVALID_VALUE : change_peer(peerContext, true);
}

CUresult sg_cuCtxDisablePeerAccess(CUcontext peerContext)
{
	return change_peer(peerContext, false);
}

CUresult sg_cuDeviceGetP2PAttribute(int *value, CUdevice_P2PAttribute attrib, CUdevice srcDevice, CUdevice dstDevice)
{
	if (value == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	if (!sg_is_device(srcDevice) || !sg_is_device(dstDevice) || srcDevice == dstDevice)
		return CUDA_ERROR_INVALID_DEVICE;
	switch ((int)attrib) {
	case CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED:
	case CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED:
		*value = 1;
		return CUDA_SUCCESS;
	case CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK:
	case CU_DEVICE_P2P_ATTRIBUTE_CUDA_ARRAY_ACCESS_SUPPORTED:
		*value = 0;
		return CUDA_SUCCESS;
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
}
