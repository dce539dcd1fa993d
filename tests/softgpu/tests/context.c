/* Initialisation, devices, contexts. */
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/softgpu/tests/check.h"

static void before_init(void)
{
	int count, version = 0;
	CUdeviceptr memory;
	CUmodule module;

	STATUS(CUDA_ERROR_NOT_INITIALIZED, cuDeviceGetCount(&count));
	STATUS(CUDA_ERROR_NOT_INITIALIZED, cuMemAlloc(&memory, 16));
	STATUS(CUDA_ERROR_NOT_INITIALIZED, cuModuleLoadData(&module, ""));
	OK(cuDriverGetVersion(&version));
	CHECK(version == 13000);
	STATUS(CUDA_ERROR_INVALID_VALUE, cuInit(1));
	OK(cuInit(0));
	OK(cuInit(0));
	STATUS(CUDA_ERROR_INVALID_CONTEXT, cuMemAlloc(&memory, 16));
}

static void devices(void)
{
	int count = 0, value = 0;
	CUdevice device = -1;
	char name[64];
	size_t bytes = 0;

	OK(cuInit(0));
	OK(cuDeviceGetCount(&count));
	CHECK(count == 2);
	OK(cuDeviceGet(&device, 1));
	CHECK(device == 1);
	STATUS(CUDA_ERROR_INVALID_DEVICE, cuDeviceGet(&device, 2));
	STATUS(CUDA_ERROR_INVALID_DEVICE, cuDeviceGet(&device, -1));
	OK(cuDeviceGetName(name, sizeof(name), 0));
	CHECK(strcmp(name, "cuconst software GPU") == 0);
	OK(cuDeviceGetName(name, 8, 0));
	CHECK(strcmp(name, "cuconst") == 0);
	STATUS(CUDA_ERROR_INVALID_VALUE, cuDeviceGetName(NULL, 8, 0));
	OK(cuDeviceTotalMem(&bytes, 0));
	CHECK(bytes >= (size_t)1 << 30);
	OK(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 0));
	CHECK(value == 9);
	OK(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_WARP_SIZE, 0));
	CHECK(value == 32);
	STATUS(CUDA_ERROR_INVALID_VALUE, cuDeviceGetAttribute(&value, (CUdevice_attribute)0, 0));
	STATUS(CUDA_ERROR_INVALID_VALUE, cuDeviceGetAttribute(&value, (CUdevice_attribute)100000, 0));
	STATUS(CUDA_ERROR_INVALID_DEVICE, cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_WARP_SIZE, 7));
	OK(cuDeviceGetPCIBusId(name, sizeof(name), 1));
	OK(cuDeviceGetByPCIBusId(&device, name));
	CHECK(device == 1);
}

static void primary(void)
{
	CUcontext a = NULL, b = NULL;
	unsigned flags;
	int active = -1;

	OK(cuInit(0));
	OK(cuDevicePrimaryCtxGetState(0, &flags, &active));
	CHECK(active == 0);
	STATUS(CUDA_ERROR_INVALID_CONTEXT, cuDevicePrimaryCtxRelease(0));
	OK(cuDevicePrimaryCtxRetain(&a, 0));
	OK(cuDevicePrimaryCtxRetain(&b, 0));
	CHECK(a == b && a != NULL);
	OK(cuDevicePrimaryCtxRelease(0));
	OK(cuDevicePrimaryCtxGetState(0, &flags, &active));
	CHECK(active == 1);
	OK(cuCtxSetCurrent(a));
	OK(cuDevicePrimaryCtxRelease(0));
	OK(cuDevicePrimaryCtxGetState(0, &flags, &active));
	CHECK(active == 0);
	STATUS(CUDA_ERROR_CONTEXT_IS_DESTROYED, cuCtxSynchronize());
	OK(cuDevicePrimaryCtxRetain(&b, 0));
	CHECK(a == b);
	OK(cuCtxSynchronize());
	leave(0);
}

static void stack(void)
{
	CUcontext a = NULL, b = NULL, got = NULL;
	CUdevice device = -1;
	unsigned long long id_a = 0, id_b = 0;

	OK(cuInit(0));
	OK(cuCtxCreate(&a, NULL, 0, 0));
	OK(cuCtxCreate(&b, NULL, 0, 1));
	OK(cuCtxGetCurrent(&got));
	CHECK(got == b);
	OK(cuCtxGetDevice(&device));
	CHECK(device == 1);
	OK(cuCtxGetId(a, &id_a));
	OK(cuCtxGetId(NULL, &id_b));
	CHECK(id_a != id_b);
	OK(cuCtxPopCurrent(&got));
	CHECK(got == b);
	OK(cuCtxGetDevice(&device));
	CHECK(device == 0);
	OK(cuCtxPushCurrent(b));
	OK(cuCtxDestroy(a));
	STATUS(CUDA_ERROR_CONTEXT_IS_DESTROYED, cuCtxDestroy(a));
	OK(cuCtxPushCurrent(a));
	STATUS(CUDA_ERROR_CONTEXT_IS_DESTROYED, cuCtxSynchronize());
	device = -1;
	OK(cuCtxGetDevice(&device));
	CHECK(device == 0);
	OK(cuCtxPopCurrent(NULL));
	STATUS(CUDA_ERROR_INVALID_CONTEXT, cuCtxSetCurrent((CUcontext)(uintptr_t)0xdeadbeef));
	OK(cuCtxDestroy(b));
	STATUS(CUDA_ERROR_CONTEXT_IS_DESTROYED, cuCtxSynchronize());
	OK(cuCtxSetCurrent(NULL));
	STATUS(CUDA_ERROR_INVALID_CONTEXT, cuCtxSynchronize());
}

static void destroying_frees(void)
{
	CUcontext context;
	CUdeviceptr memory;
	CUstream stream;
	size_t before, after, total;

	enter(1);
	OK(cuMemGetInfo(&before, &total));
	OK(cuCtxCreate(&context, NULL, 0, 1));
	OK(cuMemAlloc(&memory, 10 << 20));
	OK(cuStreamCreate(&stream, 0));
	OK(cuMemsetD8Async(memory, 1, 10 << 20, stream));
	OK(cuCtxDestroy(context));
	OK(cuMemGetInfo(&after, &total));
	CHECK(before == after);
	STATUS(CUDA_ERROR_INVALID_VALUE, cuMemFree(memory));
	STATUS(CUDA_ERROR_INVALID_HANDLE, cuStreamSynchronize(stream));
	leave(1);
}

static void limits_and_flags(void)
{
	size_t value = 0;
	unsigned flags = 0;

	enter(0);
	OK(cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 4096));
	OK(cuCtxGetLimit(&value, CU_LIMIT_STACK_SIZE));
	CHECK(value == 4096);
	STATUS(CUDA_ERROR_INVALID_VALUE, cuCtxGetLimit(&value, (CUlimit)999));
	STATUS(CUDA_ERROR_INVALID_VALUE, cuDevicePrimaryCtxSetFlags(0, 0x7));
	OK(cuCtxGetFlags(&flags));
	leave(0);
}

static void peers(void)
{
	int can = 0;
	CUcontext other = NULL;

	enter(0);
	OK(cuDeviceCanAccessPeer(&can, 0, 1));
	CHECK(can == 1);
	OK(cuDeviceCanAccessPeer(&can, 0, 0));
	CHECK(can == 0);
	OK(cuDevicePrimaryCtxRetain(&other, 1));
	STATUS(CUDA_ERROR_PEER_ACCESS_NOT_ENABLED, cuCtxDisablePeerAccess(other));
	OK(cuCtxEnablePeerAccess(other, 0));
	STATUS(CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED, cuCtxEnablePeerAccess(other, 0));
	OK(cuCtxDisablePeerAccess(other));
	OK(cuDevicePrimaryCtxRelease(1));
	leave(0);
}

/* Twice: a child of fork gets NOT_INITIALIZED if its parent had called cuInit. */
static void after_fork(void)
{
	CUdeviceptr memory;
	int status = -1;

	enter(0);
	OK(cuMemAlloc(&memory, 4096));
	pid_t child = fork();
	if (child == 0) {
		bool good = cuMemsetD8(memory, 1, 16) == CUDA_ERROR_NOT_INITIALIZED &&
		            cuInit(0) == CUDA_ERROR_NOT_INITIALIZED && cuMemFree(memory) == CUDA_ERROR_NOT_INITIALIZED;
		_exit(good ? 0 : 1);
	}
	CHECK(waitpid(child, &status, 0) == child && status == 0);
	OK(cuMemsetD8(memory, 1, 16));
	leave(0);
}

static void *in_thread(void *argument)
{
	CUcontext got = (CUcontext)argument;

	OK(cuCtxGetCurrent(&got));
	CHECK(got == NULL);
	STATUS(CUDA_ERROR_INVALID_CONTEXT, cuCtxSynchronize());
	OK(cuCtxSetCurrent((CUcontext)argument));
	OK(cuCtxSynchronize());
	return NULL;
}

static void current_is_per_thread(void)
{
	pthread_t thread;

	pthread_create(&thread, NULL, in_thread, enter(0));
	pthread_join(thread, NULL);
	leave(0);
}

static void errors(void)
{
	const char *text = NULL;

	OK(cuGetErrorName(CUDA_ERROR_ILLEGAL_ADDRESS, &text));
	CHECK(strcmp(text, "CUDA_ERROR_ILLEGAL_ADDRESS") == 0);
	OK(cuGetErrorString(CUDA_ERROR_NOT_PERMITTED, &text));
	CHECK(strcmp(text, "operation not permitted") == 0);
	STATUS(CUDA_ERROR_INVALID_VALUE, cuGetErrorName((CUresult)12345, &text));
	CHECK(text == NULL);
	STATUS(CUDA_ERROR_INVALID_VALUE, cuGetErrorString(CUDA_SUCCESS, NULL));
}

MAIN(T(before_init), T(devices), T(primary), T(stack), T(destroying_frees), T(limits_and_flags), T(peers),
     T(after_fork), T(current_is_per_thread), T(errors))
