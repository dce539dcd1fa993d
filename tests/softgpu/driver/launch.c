/* Kernel launches. */
#include "tests/softgpu/driver/capture.h"
#include "tests/softgpu/driver/event.h"
#include "tests/softgpu/driver/function.h"
#include "tests/softgpu/driver/op.h"
#include "tests/softgpu/driver/order.h"
#include "tests/softgpu/driver/probe.h"
#include "tests/softgpu/driver/stream.h"

#include <stdlib.h>
#include <string.h>

const struct ptx_function *sg_launch_ptx(const struct sg_launch *launch)
{
	return launch->function->ptx;
}

static bool bad_shape(const CUlaunchConfig *config)
{
	uint64_t threads = (uint64_t)config->blockDimX * config->blockDimY;

	return config->gridDimX == 0 || config->gridDimY == 0 || config->gridDimZ == 0 || config->blockDimX == 0 ||
	       config->blockDimY == 0 || config->blockDimZ == 0 || config->gridDimX > INT32_MAX ||
	       config->gridDimY > 65535 || config->gridDimZ > 65535 || config->blockDimX > 1024 ||
	       config->blockDimY > 1024 || config->blockDimZ > 64 || threads > 1024 ||
	       threads * config->blockDimZ > 1024;
}

/* CU_LAUNCH_PARAM_BUFFER_POINTER and _SIZE, in any order, up to END. */
static CUresult read_extra(void **extra, const void **ret_buffer, size_t *ret_bytes)
{
	const size_t *bytes = NULL;

	*ret_buffer = NULL;
	for (; *extra != CU_LAUNCH_PARAM_END; extra += 2) {
		if (*extra == CU_LAUNCH_PARAM_BUFFER_POINTER)
			*ret_buffer = extra[1];
		else if (*extra == CU_LAUNCH_PARAM_BUFFER_SIZE)
			bytes = extra[1];
		else
			return CUDA_ERROR_INVALID_VALUE;
	}
	if (*ret_buffer == NULL || bytes == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	*ret_bytes = *bytes;
	return CUDA_SUCCESS;
}

static CUresult gather(const struct ptx_function *ptx, void **parameters, void **extra, struct sg_launch *launch)
{
	size_t count = 0, offset, bytes, given = 0;
	const void *buffer = NULL;
	CUresult status = CUDA_SUCCESS;

	while (ptx_function_param(ptx, count, &offset, &bytes))
		count++;
	if (parameters != NULL && extra != NULL)
		return CUDA_ERROR_INVALID_VALUE;
	if (extra != NULL)
		status = read_extra(extra, &buffer, &given);
	else if (parameters == NULL && count > 0)
		status = CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; i < count && extra == NULL && status == CUDA_SUCCESS; i++)
		if (parameters[i] == NULL)
			status = CUDA_ERROR_INVALID_VALUE;
	launch->params_bytes = ptx_function_params_bytes(ptx);
	/* A buffer that is short leaves the last parameters zero. */
	if (extra != NULL && status == CUDA_SUCCESS && given > launch->params_bytes)
		status = CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
	if (status != CUDA_SUCCESS)
		return status;
	launch->params = calloc(1, launch->params_bytes + 1);
	launch->pointers = calloc(count + 1, sizeof(*launch->pointers));
	if (launch->params == NULL || launch->pointers == NULL) {
		free(launch->params);
		free(launch->pointers);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	if (buffer != NULL)
		memcpy(launch->params, buffer, given);
	for (size_t i = 0; ptx_function_param(ptx, i, &offset, &bytes); i++) {
		launch->pointers[i] = (char *)launch->params + offset;
		if (buffer == NULL)
			memcpy(launch->pointers[i], parameters[i], bytes);
	}
	return CUDA_SUCCESS;
}

static CUresult check_cluster(const CUlaunchConfig *config, const CUlaunchAttributeValue *value, unsigned ret_cluster[3])
{
	unsigned x = value->clusterDim.x, y = value->clusterDim.y, z = value->clusterDim.z;

	if (x == 0 || y == 0 || z == 0 || (uint64_t)x * y * z > 8 || config->gridDimX % x != 0 ||
	    config->gridDimY % y != 0 || config->gridDimZ % z != 0)
		return CUDA_ERROR_INVALID_CLUSTER_SIZE;
	ret_cluster[0] = x;
	ret_cluster[1] = y;
	ret_cluster[2] = z;
	return CUDA_SUCCESS;
}

static CUresult check_attributes(const CUlaunchConfig *config, struct sg_launch *launch)
{
	if (config->numAttrs > 0 && config->attrs == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	for (unsigned i = 0; i < config->numAttrs; i++) {
		CUresult status;
		const CUlaunchAttribute *attribute = &config->attrs[i];
		switch ((int)attribute->id) {
		case CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
			launch->cooperative = attribute->value.cooperative != 0;
			break;
		case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
			status = check_cluster(config, &attribute->value, launch->cluster);
			if (status != CUDA_SUCCESS)
				return status;
			break;
		case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT:
		case CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT:
		case CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE:
			return CUDA_ERROR_NOT_SUPPORTED;
		default: /* hints */
			if (attribute->id < 0 || attribute->id >= CU_LAUNCH_ATTRIBUTE_MAX)
				return CUDA_ERROR_INVALID_VALUE;
		}
	}
	return CUDA_SUCCESS;
}

/* What the kernel says about its clusters, and the launch, must agree; the grid must consist of them. */
static CUresult agreed_cluster(const struct sg_launch *launch, const struct ptx_function *ptx)
{
	uint32_t said[3];

	if (!ptx_function_cluster(ptx, said))
		return CUDA_SUCCESS;
	for (int n = 0; n < 3; n++)
		if ((launch->cluster[0] != 0 && launch->cluster[n] != said[n]) || launch->grid[n] % said[n] != 0)
			return CUDA_ERROR_INVALID_CLUSTER_SIZE;
	return CUDA_SUCCESS;
}

CUresult sg_launch_plan(const CUlaunchConfig *config, CUfunction asked, struct sg_function *function, void **parameters,
                        void **extra, struct sg_launch *ret_launch)
{
	struct sg_launch launch = {
		.function = function,
		.asked = asked,
		.shared = config->sharedMemBytes,
		.grid = {config->gridDimX, config->gridDimY, config->gridDimZ},
		.block = {config->blockDimX, config->blockDimY, config->blockDimZ},
	};

	if (sg_function_of((CUfunction)function) == NULL)
		return CUDA_ERROR_INVALID_HANDLE;
	if (bad_shape(config) || config->sharedMemBytes > (unsigned)function->max_dynamic_shared)
		return CUDA_ERROR_INVALID_VALUE;
	int threads = (int)(launch.block[0] * launch.block[1] * launch.block[2]);
	if (threads > (int)ptx_function_max_threads(function->ptx))
		return CUDA_ERROR_INVALID_VALUE;
	CUresult status = check_attributes(config, &launch);
	if (status == CUDA_SUCCESS)
		status = agreed_cluster(&launch, function->ptx);
	if (status != CUDA_SUCCESS)
		return status;
	int per_sm = sg_blocks_per_sm(function, threads, launch.shared);
	if (per_sm == 0)
		return CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
	if (launch.cooperative &&
	    (uint64_t)launch.grid[0] * launch.grid[1] * launch.grid[2] > (uint64_t)per_sm * SG_SM_COUNT)
		return CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE;
	status = gather(function->ptx, parameters, extra, &launch);
	if (status == CUDA_SUCCESS)
		*ret_launch = launch;
	return status;
}

CUresult sg_launch_run(const struct sg_launch *launch)
{
	struct ptx_fault fault = {0};

	/* A graph outlives the modules of its kernels. */
	sg_lock();
	const struct sg_function *function = sg_function_of((CUfunction)launch->function);
	const struct ptx_function *ptx = function != NULL ? function->ptx : NULL;
	sg_unlock();
	if (ptx == NULL)
		return CUDA_ERROR_LAUNCH_FAILED;
	struct ptx_launch run = {
		.grid = {launch->grid[0], launch->grid[1], launch->grid[2]},
		.block = {launch->block[0], launch->block[1], launch->block[2]},
		.cluster = {launch->cluster[0], launch->cluster[1], launch->cluster[2]},
		.shared_bytes = launch->shared,
		.params = launch->params,
		.params_bytes = launch->params_bytes,
		.instruction_limit = sg_environment("SOFTGPU_INSTRUCTIONS", 0),
		.host_threads = sg_order() == SG_ORDER_THREADS ? 0 : 1,
	};
	enum ptx_status status = ptx_run(ptx, &run, &fault);
	/* A fault that nobody expected is hard to find from the error code alone. */
	if (status != PTX_OK)
		sg_say("kernel fault: %s", fault.message);
	return sg_status_of(status);
}

static CUresult launch(const CUlaunchConfig *config, CUfunction asked, void **parameters, void **extra)
{
	struct sg_op op = {.kind = SG_OP_KERNEL};
	struct sg_function *function;
	struct sg_stream *stream;

	if (config == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	sg_lock();
	CUresult status = sg_stream_of(config->hStream, &stream);
	struct sg_context *context = status == CUDA_SUCCESS ? stream->context : NULL;
	sg_unlock();
	if (status == CUDA_SUCCESS)
		status = sg_function_in(asked, context, &function);
	if (status != CUDA_SUCCESS)
		return status;
	sg_lock();
	/* Loading a kernel dropped the lock: the stream may have ended. */
	status = sg_stream_of(config->hStream, &stream);
	if (status == CUDA_SUCCESS && sg_function_of((CUfunction)function) == NULL)
		status = CUDA_ERROR_INVALID_HANDLE;
	if (status == CUDA_SUCCESS && function->module->context != stream->context)
		status = CUDA_ERROR_INVALID_HANDLE;
	if (status == CUDA_SUCCESS)
		status = sg_launch_plan(config, asked, function, parameters, extra, &op.launch);
	if (status == CUDA_SUCCESS) {
		op.context = stream->context;
		status = sg_submit(stream, &op, false);
	}
	sg_unlock();
	return status;
}

CUresult sg_cuLaunchKernel(CUfunction f, unsigned int gridDimX, unsigned int gridDimY, unsigned int gridDimZ,
                           unsigned int blockDimX, unsigned int blockDimY, unsigned int blockDimZ,
                           unsigned int sharedMemBytes, CUstream hStream, void **kernelParams, void **extra)
{
	CUlaunchConfig config = {gridDimX,  gridDimY,       gridDimZ, blockDimX, blockDimY,
	                         blockDimZ, sharedMemBytes, hStream,  NULL,      0};

	return launch(&config, f, kernelParams, extra);
}

CUresult sg_cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction f, void **kernelParams, void **extra)
{
	return launch(config, f, kernelParams, extra);
}

CUresult sg_cuLaunchCooperativeKernel(CUfunction f, unsigned int gridDimX, unsigned int gridDimY, unsigned int gridDimZ,
                                      unsigned int blockDimX, unsigned int blockDimY, unsigned int blockDimZ,
                                      unsigned int sharedMemBytes, CUstream hStream, void **kernelParams)
{
	CUlaunchAttribute attribute;
	CUlaunchConfig config = {gridDimX,  gridDimY,       gridDimZ, blockDimX,  blockDimY,
	                         blockDimZ, sharedMemBytes, hStream,  &attribute, 1};

	memset(&attribute, 0, sizeof(attribute));
	attribute.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
	attribute.value.cooperative = 1;
	return launch(&config, f, kernelParams, NULL);
}
