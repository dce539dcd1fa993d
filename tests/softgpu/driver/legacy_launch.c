/*
 * Launches as in CUDA 2: a function remembers its block's shape and its parameters' bytes, set one by one, until it is
 * launched.
 */
#include <stdlib.h>
#include <string.h>

#include "tests/softgpu/driver/function.h"
#include "tests/softgpu/driver/module.h"
#include "tests/softgpu/ptx.h"

enum { THREADS_MAX = 1024, DEPTH_MAX = 64, PARAMETERS_MAX = 4096 };

/* With the lock held: the function and what it remembers; NULL for no function, or without memory. */
static struct sg_remembered *remembered(CUfunction handle)
{
	struct sg_function *function = sg_function_of(handle);

	if (function == NULL)
		return NULL;
	if (function->remembered == NULL) {
		function->remembered = calloc(1, sizeof(*function->remembered));
		if (function->remembered != NULL)
			function->remembered->block[0] = function->remembered->block[1] =
				function->remembered->block[2] = 1;
	}
	return function->remembered;
}

CUresult sg_cuFuncSetBlockShape(CUfunction hfunc, int x, int y, int z)
{
	if (x <= 0 || y <= 0 || z <= 0 || x > THREADS_MAX || y > THREADS_MAX || z > DEPTH_MAX ||
	    (long long)x * y * z > THREADS_MAX)
		return CUDA_ERROR_INVALID_VALUE;
	sg_lock();
	struct sg_remembered *memory = remembered(hfunc);
	if (memory != NULL) {
		memory->block[0] = (unsigned)x;
		memory->block[1] = (unsigned)y;
		memory->block[2] = (unsigned)z;
	}
	sg_unlock();
	return memory != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult sg_cuFuncSetSharedSize(CUfunction hfunc, unsigned int bytes)
{
	sg_lock();
	struct sg_remembered *memory = remembered(hfunc);
	if (memory != NULL)
		memory->shared = bytes;
	sg_unlock();
	return memory != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult sg_cuParamSetSize(CUfunction hfunc, unsigned int numbytes)
{
	if (numbytes > PARAMETERS_MAX)
		return CUDA_ERROR_INVALID_VALUE;
	sg_lock();
	struct sg_remembered *memory = remembered(hfunc);
	if (memory != NULL)
		memory->bytes = numbytes;
	sg_unlock();
	return memory != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult sg_cuParamSetv(CUfunction hfunc, int offset, void *ptr, unsigned int numbytes)
{
	if (ptr == NULL || offset < 0 || offset > PARAMETERS_MAX || numbytes > PARAMETERS_MAX - (unsigned)offset)
		return CUDA_ERROR_INVALID_VALUE;
	sg_lock();
	struct sg_remembered *memory = remembered(hfunc);
	if (memory != NULL)
		memcpy(memory->parameters + offset, ptr, numbytes);
	sg_unlock();
	return memory != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult sg_cuParamSeti(CUfunction hfunc, int offset, unsigned int value)
{
	return sg_cuParamSetv(hfunc, offset, &value, sizeof(value));
}

CUresult sg_cuParamSetf(CUfunction hfunc, int offset, float value)
{
	return sg_cuParamSetv(hfunc, offset, &value, sizeof(value));
}

static CUresult launch(CUfunction handle, int width, int height, CUstream stream)
{
	struct sg_remembered copy;

	if (width <= 0 || height <= 0)
		return CUDA_ERROR_INVALID_VALUE;
	sg_lock();
	const struct sg_remembered *memory = remembered(handle);
	if (memory != NULL)
		copy = *memory;
	sg_unlock();
	if (memory == NULL)
		return CUDA_ERROR_INVALID_HANDLE;
	size_t bytes = copy.bytes;
	void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, copy.parameters, CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes,
	                 CU_LAUNCH_PARAM_END};
	return sg_cuLaunchKernel(handle, (unsigned)width, (unsigned)height, 1, copy.block[0], copy.block[1],
	                         copy.block[2], copy.shared, stream, NULL, extra);
}

CUresult sg_cuLaunch(CUfunction f)
{
	return launch(f, 1, 1, NULL);
}

CUresult sg_cuLaunchGrid(CUfunction f, int grid_width, int grid_height)
{
	return launch(f, grid_width, grid_height, NULL);
}

CUresult sg_cuLaunchGridAsync(CUfunction f, int grid_width, int grid_height, CUstream hStream)
{
	return launch(f, grid_width, grid_height, hStream);
}
