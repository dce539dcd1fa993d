/* Functions: names, parameters, attributes, occupancy. */
#include "tests/softgpu/driver/function.h"

CUresult sg_cuFuncGetModule(CUmodule *hmod, CUfunction hfunc)
{
	if (hmod == NULL || hfunc == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	sg_lock();
	struct sg_function *function = sg_function_of(hfunc);
	if (function != NULL)
		*hmod = (CUmodule)function->module;
	sg_unlock();
	return function != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult sg_cuFuncGetName(const char **name, CUfunction hfunc)
{
	if (name == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	sg_lock();
	struct sg_function *function = sg_function_of(hfunc);
	if (function != NULL)
		*name = ptx_function_name(function->ptx);
	sg_unlock();
	return function != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult sg_cuFuncGetParamInfo(CUfunction func, size_t paramIndex, size_t *paramOffset, size_t *paramSize)
{
	size_t offset, bytes;

	if (paramOffset == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	sg_lock();
	struct sg_function *function = sg_function_of(func);
	bool found = function != NULL && ptx_function_param(function->ptx, paramIndex, &offset, &bytes);
	sg_unlock();
	if (!found)
		return function == NULL ? CUDA_ERROR_INVALID_HANDLE : CUDA_ERROR_INVALID_VALUE;
	*paramOffset = offset;
	if (paramSize != NULL)
		*paramSize = bytes;
	return CUDA_SUCCESS;
}

CUresult sg_cuFuncIsLoaded(CUfunctionLoadingState *state, CUfunction func)
{
	if (state == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	sg_lock();
	bool known = sg_function_of(func) != NULL;
	sg_unlock();
	if (!known)
		return CUDA_ERROR_INVALID_HANDLE;
	*state = CU_FUNCTION_LOADING_STATE_LOADED;
	return CUDA_SUCCESS;
}

CUresult sg_cuFuncLoad(CUfunction func)
{
	CUfunctionLoadingState state;

	return sg_cuFuncIsLoaded(&state, func);
}

static CUresult answer(const struct ptx_function *ptx, int max_dynamic_shared, CUfunction_attribute attribute,
                       int *ret_value)
{
	switch ((int)attribute) {
	case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
		*ret_value = (int)ptx_function_max_threads(ptx);
		break;
	case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES:
		*ret_value = (int)ptx_function_static_shared(ptx);
		break;
	case CU_FUNC_ATTRIBUTE_NUM_REGS:
		*ret_value = 32;
		break;
	case CU_FUNC_ATTRIBUTE_PTX_VERSION:
	case CU_FUNC_ATTRIBUTE_BINARY_VERSION:
		*ret_value = 90;
		break;
	case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
		*ret_value = max_dynamic_shared;
		break;
	case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
		*ret_value = -1;
		break;
	default:
		if (attribute < 0 || attribute >= CU_FUNC_ATTRIBUTE_MAX)
			return CUDA_ERROR_INVALID_VALUE;
		*ret_value = 0;
	}
	return CUDA_SUCCESS;
}

static CUresult change(const struct ptx_function *ptx, int *max_dynamic_shared, CUfunction_attribute attribute, int value)
{
	switch ((int)attribute) {
	case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
		if (value < 0 || (size_t)value + ptx_function_static_shared(ptx) > SG_SHARED_OPTIN)
			return CUDA_ERROR_INVALID_VALUE;
		*max_dynamic_shared = value;
		return CUDA_SUCCESS;
	case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
		return value < -1 || value > 100 ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
	case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
	case CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
		return CUDA_SUCCESS;
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
}

/* Reading takes a CUfunction alone, or a CUkernel alone; other calls take either, as the driver's do. */
static CUresult with_attribute(const void *handle, bool kernels_too, CUfunction_attribute attribute, int *ret_value,
                               int value)
{
	CUresult status = CUDA_ERROR_INVALID_HANDLE;
	const struct ptx_function *ptx = NULL;
	int *shared = NULL;

	sg_lock();
	if (sg_is(handle, SG_FUNCTION)) {
		struct sg_function *function = (struct sg_function *)(uintptr_t)handle;
		ptx = function->ptx;
		shared = &function->max_dynamic_shared;
	} else if (sg_is(handle, SG_KERNEL) && kernels_too) {
		struct sg_kernel *kernel = (struct sg_kernel *)(uintptr_t)handle;
		ptx = kernel->ptx;
		shared = &kernel->max_dynamic_shared;
	}
	if (ptx != NULL)
		status = ret_value != NULL ? answer(ptx, *shared, attribute, ret_value)
		                           : change(ptx, shared, attribute, value);
	sg_unlock();
	return status;
}

CUresult sg_cuFuncGetAttribute(int *pi, CUfunction_attribute attrib, CUfunction hfunc)
{
	return pi == NULL ? CUDA_ERROR_INVALID_VALUE : with_attribute(hfunc, false, attrib, pi, 0);
}

CUresult sg_cuFuncSetAttribute(CUfunction hfunc, CUfunction_attribute attrib, int value)
{
	return with_attribute(hfunc, true, attrib, NULL, value);
}

CUresult sg_cuKernelGetAttribute(int *pi, CUfunction_attribute attrib, CUkernel kernel, CUdevice dev)
{
	if (!sg_is_device(dev))
		return CUDA_ERROR_INVALID_DEVICE;
	return pi == NULL ? CUDA_ERROR_INVALID_VALUE : with_attribute(kernel, true, attrib, pi, 0);
}

CUresult sg_cuKernelSetAttribute(CUfunction_attribute attrib, int val, CUkernel kernel, CUdevice dev)
{
	return !sg_is_device(dev) ? CUDA_ERROR_INVALID_DEVICE : with_attribute(kernel, true, attrib, NULL, val);
}

CUresult sg_cuFuncSetCacheConfig(CUfunction hfunc, CUfunc_cache config)
{
	int threads;

	if ((unsigned)config > CU_FUNC_CACHE_PREFER_EQUAL)
		return CUDA_ERROR_INVALID_VALUE;
	return with_attribute(hfunc, true, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, &threads, 0);
}

CUresult sg_cuFuncSetSharedMemConfig(CUfunction hfunc, CUsharedconfig config)
{
	int threads;

	if ((unsigned)config > CU_SHARED_MEM_CONFIG_EIGHT_BYTE_BANK_SIZE)
		return CUDA_ERROR_INVALID_VALUE;
	return with_attribute(hfunc, true, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, &threads, 0);
}

CUresult sg_cuKernelSetCacheConfig(CUkernel kernel, CUfunc_cache config, CUdevice dev)
{
	return !sg_is_device(dev) ? CUDA_ERROR_INVALID_DEVICE : sg_cuFuncSetCacheConfig((CUfunction)kernel, config);
}

int sg_default_dynamic_shared(const struct ptx_function *ptx)
{
	size_t fixed = ptx_function_static_shared(ptx);

	return fixed < SG_SHARED_DEFAULT ? SG_SHARED_DEFAULT - (int)fixed : 0;
}

int sg_blocks_per_sm(const struct sg_function *function, int block_threads, size_t dynamic_shared)
{
	int threads = (block_threads + 31) / 32 * 32, blocks = SG_SM_THREADS / threads;
	size_t shared = ptx_function_static_shared(function->ptx) + dynamic_shared + SG_SHARED_RESERVED;

	if (shared > SG_SHARED_OPTIN + SG_SHARED_RESERVED)
		return 0;
	if ((size_t)blocks > SG_SHARED_SM / shared)
		blocks = (int)(SG_SHARED_SM / shared);
	return blocks < SG_SM_BLOCKS ? blocks : SG_SM_BLOCKS;
}

/* The function to ask about, also behind a CUkernel. */
static CUresult ask(CUfunction handle, int threads, size_t shared, int *ret_blocks)
{
	struct sg_function *function;

	sg_lock();
	struct sg_context *context = sg_context_current();
	sg_unlock();
	CUresult status = sg_function_in(handle, context, &function);
	if (status != CUDA_SUCCESS)
		return status;
	sg_lock();
	*ret_blocks = threads > (int)ptx_function_max_threads(function->ptx)
	                      ? 0
	                      : sg_blocks_per_sm(function, threads, shared);
	sg_unlock();
	return CUDA_SUCCESS;
}

CUresult sg_cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *numBlocks, CUfunction func, int blockSize,
                                                                 size_t dynamicSMemSize, unsigned int flags)
{
	if (numBlocks == NULL || blockSize <= 0 || flags > CU_OCCUPANCY_DISABLE_CACHING_OVERRIDE)
		return CUDA_ERROR_INVALID_VALUE;
	return ask(func, blockSize, dynamicSMemSize, numBlocks);
}

CUresult sg_cuOccupancyMaxActiveBlocksPerMultiprocessor(int *numBlocks, CUfunction func, int blockSize,
                                                        size_t dynamicSMemSize)
{
	return sg_cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(numBlocks, func, blockSize, dynamicSMemSize, 0);
}

CUresult sg_cuOccupancyMaxPotentialBlockSizeWithFlags(int *minGridSize, int *blockSize, CUfunction func,
                                                      CUoccupancyB2DSize blockSizeToDynamicSMemSize,
                                                      size_t dynamicSMemSize, int blockSizeLimit, unsigned int flags)
{
	int limit = blockSizeLimit > 0 && blockSizeLimit < 1024 ? blockSizeLimit : 1024, best = 0, best_blocks = 0,
	    blocks;

	if (minGridSize == NULL || blockSize == NULL || flags > CU_OCCUPANCY_DISABLE_CACHING_OVERRIDE)
		return CUDA_ERROR_INVALID_VALUE;
	for (int size = limit; size > 0; size = size % 32 != 0 ? size - size % 32 : size - 32) {
		size_t shared = blockSizeToDynamicSMemSize != NULL ? blockSizeToDynamicSMemSize(size) : dynamicSMemSize;
		CUresult status = ask(func, size, shared, &blocks);
		if (status != CUDA_SUCCESS)
			return status;
		if (size * blocks > best * best_blocks) {
			best = size;
			best_blocks = blocks;
		}
	}
	*blockSize = best;
	*minGridSize = best_blocks * SG_SM_COUNT;
	return CUDA_SUCCESS;
}

CUresult sg_cuOccupancyMaxPotentialBlockSize(int *minGridSize, int *blockSize, CUfunction func,
                                             CUoccupancyB2DSize blockSizeToDynamicSMemSize, size_t dynamicSMemSize,
                                             int blockSizeLimit)
{
	return sg_cuOccupancyMaxPotentialBlockSizeWithFlags(minGridSize, blockSize, func, blockSizeToDynamicSMemSize,
	                                                    dynamicSMemSize, blockSizeLimit, 0);
}

CUresult sg_cuOccupancyAvailableDynamicSMemPerBlock(size_t *dynamicSmemSize, CUfunction func, int numBlocks, int blockSize)
{
	int fixed, blocks;

	if (dynamicSmemSize == NULL || numBlocks <= 0 || blockSize <= 0)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult status = ask(func, blockSize, 0, &blocks);
	if (status == CUDA_SUCCESS)
		status = with_attribute(func, true, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, &fixed, 0);
	if (status != CUDA_SUCCESS)
		return status;
	if (numBlocks > blocks)
		return CUDA_ERROR_INVALID_VALUE;
	size_t share = (size_t)(SG_SHARED_SM / numBlocks), taken = (size_t)fixed + SG_SHARED_RESERVED;
	size_t room = share > taken ? share - taken : 0;
	int most;
	status = with_attribute(func, true, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, &most, 0);
	if (status == CUDA_SUCCESS)
		*dynamicSmemSize = room < (size_t)most ? room : (size_t)most;
	return status;
}
