/* The environment variables. Run with SOFTGPU_DEVICES=3 SOFTGPU_MEMORY=67108864 SOFTGPU_DELAY_US=2000
 * SOFTGPU_FAIL=cuMemAlloc_v2:2,cuMemFree_v2:1:700 */
#include <time.h>

#include "tests/softgpu/tests/check.h"
#include "tests/softgpu/tests/kernels.h"

static void devices_and_memory(void)
{
	int count = 0;
	size_t bytes = 0;

	OK(cuInit(0));
	OK(cuDeviceGetCount(&count));
	CHECK(count == 3);
	OK(cuDeviceTotalMem(&bytes, 2));
	CHECK(bytes == 64 << 20);
}

static void failing(void)
{
	CUdeviceptr a = 0, b = 0;

	enter(2);
	OK(cuMemAlloc(&a, 16));
	STATUS(CUDA_ERROR_OUT_OF_MEMORY, cuMemAlloc(&b, 16));
	CHECK(b == 0);
	OK(cuMemAlloc(&b, 16));
	STATUS(CUDA_ERROR_ILLEGAL_ADDRESS, cuMemFree(a));
	OK(cuMemFree(a));
	STATUS(CUDA_ERROR_OUT_OF_MEMORY, cuMemAlloc(&a, 65 << 20));
	leave(2);
}

static void delay(void)
{
	struct timespec start, stop;
	CUdeviceptr a;
	CUstream s;

	enter(0);
	OK(cuMemAlloc(&a, 16));
	OK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	clock_gettime(CLOCK_MONOTONIC, &start);
	for (int i = 0; i < 5; i++)
		OK(cuMemsetD8Async(a, 1, 16, s));
	STATUS(CUDA_ERROR_NOT_READY, cuStreamQuery(s));
	OK(cuStreamSynchronize(s));
	clock_gettime(CLOCK_MONOTONIC, &stop);
	CHECK((stop.tv_sec - start.tv_sec) * 1000000000L + stop.tv_nsec - start.tv_nsec >= 10000000L);
	softgpu_delay_us(0);
	leave(0);
}

/* A kernel of one device reaches another's memory only after the peer was enabled. */
static void peers(void)
{
	CUcontext other = NULL, context = enter(0);
	CUdeviceptr far = 0;
	CUmodule module;
	CUfunction fill;
	unsigned value = 6, n = 4, back = 0;
	void *parameters[] = {&far, &value, &n};

	OK(cuDevicePrimaryCtxRetain(&other, 1));
	OK(cuCtxSetCurrent(other));
	OK(cuMemAlloc(&far, 16));
	OK(cuMemsetD8(far, 0, 16));
	OK(cuCtxSetCurrent(context));
	OK(cuModuleLoadData(&module, kernels_ptx));
	OK(cuModuleGetFunction(&fill, module, "fill"));
	OK(cuCtxEnablePeerAccess(other, 0));
	OK(cuLaunchKernel(fill, 1, 1, 1, 32, 1, 1, 0, NULL, parameters, NULL));
	OK(cuCtxSynchronize());
	OK(cuMemcpyDtoH(&back, far, 4));
	CHECK(back == 6);
	OK(cuCtxDisablePeerAccess(other));
	OK(cuLaunchKernel(fill, 1, 1, 1, 32, 1, 1, 0, NULL, parameters, NULL));
	STATUS(CUDA_ERROR_ILLEGAL_ADDRESS, cuCtxSynchronize());
	OK(cuCtxSetCurrent(other));
	OK(cuMemcpyDtoH(&back, far, 4));
	OK(cuDevicePrimaryCtxRelease(1));
	leave(0);
}

MAIN(T(devices_and_memory), T(failing), T(delay), T(peers))
