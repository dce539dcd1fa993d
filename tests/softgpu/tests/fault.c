/* A kernel's fault ends CUDA for the process; the answers are those of an H200. Each scene is a process of its own. */
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/softgpu/tests/check.h"
#include "tests/softgpu/tests/kernels.h"

static CUfunction function(const char *name)
{
	CUmodule module;
	CUfunction found = NULL;

	OK(cuModuleLoadData(&module, kernels_ptx));
	OK(cuModuleGetFunction(&found, module, name));
	return found;
}

static void fault(CUfunction trap, CUstream stream)
{
	OK(cuLaunchKernel(trap, 1, 1, 1, 1, 1, 1, 0, stream, NULL, NULL));
}

/* Each context answers it, also those of another device, and none is made any more. */
static void in_every_context(void)
{
	CUcontext first = enter(0), second, other;
	CUdeviceptr memory, more;
	CUdevice device;

	OK(cuMemAlloc(&memory, 16));
	OK(cuDevicePrimaryCtxRetain(&other, 1));
	OK(cuCtxCreate(&second, NULL, 0, 0));
	fault(function("fault"), NULL);
	STATUS(CUDA_ERROR_LAUNCH_FAILED, cuCtxSynchronize());
	OK(cuCtxSetCurrent(first));
	STATUS(CUDA_ERROR_LAUNCH_FAILED, cuMemAlloc(&more, 16));
	STATUS(CUDA_ERROR_LAUNCH_FAILED, cuMemFree(memory));
	STATUS(CUDA_ERROR_LAUNCH_FAILED, cuCtxSynchronize());
	OK(cuCtxSetCurrent(other));
	STATUS(CUDA_ERROR_LAUNCH_FAILED, cuMemAlloc(&more, 16));
	STATUS(CUDA_ERROR_LAUNCH_FAILED, cuCtxCreate(&second, NULL, 0, 1));
	STATUS(CUDA_ERROR_LAUNCH_FAILED, cuDevicePrimaryCtxRetain(&other, 0));
	STATUS(CUDA_ERROR_INVALID_DEVICE, cuDevicePrimaryCtxRetain(&other, 99));
	OK(cuCtxGetDevice(&device));
	OK(cuDeviceGet(&device, 0));
	OK(cuCtxDestroy(second));
	OK(cuDevicePrimaryCtxReset(0));
	STATUS(CUDA_ERROR_LAUNCH_FAILED, cuDevicePrimaryCtxRetain(&other, 0));
	OK(cuCtxSetCurrent(first));
	STATUS(CUDA_ERROR_CONTEXT_IS_DESTROYED, cuCtxSynchronize());
}

/* The first error stays, whatever else goes wrong. */
static void first_stays(void)
{
	CUdeviceptr wild = 0x10;
	unsigned value = 1, n = 4;
	void *parameters[] = {&wild, &value, &n};
	CUcontext second;

	enter(0);
	OK(cuLaunchKernel(function("fill"), 1, 1, 1, 32, 1, 1, 0, NULL, parameters, NULL));
	STATUS(CUDA_ERROR_ILLEGAL_ADDRESS, cuCtxSynchronize());
	STATUS(CUDA_ERROR_ILLEGAL_ADDRESS, cuCtxCreate(&second, NULL, 0, 0));
}

/*
 * SOFTGPU_FAULT_US: meanwhile the stream is busy, and other streams know nothing. An event behind it tells it, also
 * when the stream is gone.
 */
static void takes_time(void)
{
	CUstream stream, idle;
	CUevent event;
	CUresult result;
	int looks = 0;

	enter(0);
	CUfunction trap = function("fault");
	OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	OK(cuStreamCreate(&idle, CU_STREAM_NON_BLOCKING));
	OK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
	fault(trap, stream);
	OK(cuEventRecord(event, stream));
	STATUS(CUDA_ERROR_NOT_READY, cuStreamQuery(stream));
	OK(cuStreamQuery(idle));
	OK(cuStreamQuery(CU_STREAM_LEGACY));
	OK(cuStreamDestroy(stream));
	STATUS(CUDA_ERROR_NOT_READY, cuEventQuery(event));
	while ((result = cuEventQuery(event)) == CUDA_ERROR_NOT_READY && looks++ < 2000)
		nanosleep(&(struct timespec){0, 1000000}, NULL);
	STATUS(CUDA_ERROR_LAUNCH_FAILED, result);
	STATUS(CUDA_ERROR_LAUNCH_FAILED, cuStreamQuery(idle));
}

/* SOFTGPU_FAULT=context: the process goes on in others. */
static void in_one_context(void)
{
	CUcontext first = enter(0), second;

	OK(cuCtxCreate(&second, NULL, 0, 0));
	fault(function("fault"), NULL);
	STATUS(CUDA_ERROR_LAUNCH_FAILED, cuCtxSynchronize());
	OK(cuCtxSetCurrent(first));
	OK(cuCtxSynchronize());
	OK(cuCtxDestroy(second));
	OK(cuCtxCreate(&second, NULL, 0, 0));
}

/* A primary context that was reset is no more: who retained it may release it, and retains it to use it again. */
static void reset(void)
{
	CUcontext before = enter(0), after;
	unsigned flags;
	int active = 1;
	CUdeviceptr memory;

	OK(cuDevicePrimaryCtxReset(0));
	STATUS(CUDA_ERROR_CONTEXT_IS_DESTROYED, cuMemAlloc(&memory, 16));
	OK(cuDevicePrimaryCtxGetState(0, &flags, &active));
	CHECK(active == 0);
	OK(cuDevicePrimaryCtxRetain(&after, 0));
	CHECK(before == after);
	OK(cuMemAlloc(&memory, 16));
	OK(cuDevicePrimaryCtxRelease(0));
	OK(cuMemFree(memory));
	OK(cuDevicePrimaryCtxRelease(0));
	STATUS(CUDA_ERROR_INVALID_CONTEXT, cuDevicePrimaryCtxRelease(0));
}

static void alone(void (*scene)(void), const char *reach, const char *delay)
{
	int status = -1;
	pid_t child = fork();

	if (child == 0) {
		setenv("SOFTGPU_QUIET", "1", 1);
		setenv("SOFTGPU_FAULT_US", delay, 1);
		if (reach != NULL)
			setenv("SOFTGPU_FAULT", reach, 1);
		else
			unsetenv("SOFTGPU_FAULT");
		scene();
		_exit(failures != 0 || checks == 0);
	}
	CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0);
}

static void all(void)
{
	alone(in_every_context, NULL, "0");
	alone(in_every_context, "process", "0");
	alone(first_stays, NULL, "0");
	alone(takes_time, NULL, "100000");
	alone(in_one_context, "context", "0");
	alone(reset, NULL, "0");
}

MAIN(T(all))
