/*
 * Handles of what has ended: destroyed, unloaded, released, or left with the parent of a fork. Each use is an error,
 * never a crash or a success.
 */
#include <sys/wait.h>
#include <unistd.h>

#include "tests/softgpu/tests/check.h"
#include "tests/softgpu/tests/kernels.h"

static struct {
	CUcontext context;
	CUstream stream;
	CUevent event;
	CUmodule module;
	CUfunction function;
	CUlibrary library;
	CUkernel kernel;
	CUgraph graph;
	CUgraphNode node;
	CUgraphExec exec;
	CUmemoryPool pool;
	CUmemGenericAllocationHandle physical;
	CUarray array;
	CUlinkState link;
	CUuserObject object;
	CUdeviceptr memory, variable;
	void *pinned;
} h;

static void forget(void *data)
{
	(void)data;
}

static void make_all(void)
{
	CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED, .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
	CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED, .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
	CUDA_ARRAY_DESCRIPTOR array = {.Width = 8, .Format = CU_AD_FORMAT_UNSIGNED_INT32, .NumChannels = 1};
	size_t bytes;

	OK(cuStreamCreate(&h.stream, 0));
	OK(cuEventCreate(&h.event, 0));
	OK(cuModuleLoadData(&h.module, kernels_ptx));
	OK(cuModuleGetFunction(&h.function, h.module, "bump"));
	OK(cuModuleGetGlobal(&h.variable, &bytes, h.module, "counter"));
	OK(cuLibraryLoadData(&h.library, kernels_ptx, NULL, NULL, 0, NULL, NULL, 0));
	OK(cuLibraryGetKernel(&h.kernel, h.library, "bump"));
	OK(cuGraphCreate(&h.graph, 0));
	OK(cuGraphAddEmptyNode(&h.node, h.graph, NULL, 0));
	OK(cuGraphInstantiate(&h.exec, h.graph, 0));
	OK(cuMemPoolCreate(&h.pool, &props));
	OK(cuMemCreate(&h.physical, 2 << 20, &prop, 0));
	OK(cuArrayCreate(&h.array, &array));
	OK(cuLinkCreate(0, NULL, NULL, &h.link));
	OK(cuUserObjectCreate(&h.object, NULL, forget, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC));
	OK(cuMemAlloc(&h.memory, 64));
	OK(cuMemHostAlloc(&h.pinned, 64, 0));
}

static void end_all(void)
{
	OK(cuStreamDestroy(h.stream));
	OK(cuEventDestroy(h.event));
	OK(cuModuleUnload(h.module));
	OK(cuLibraryUnload(h.library));
	OK(cuGraphExecDestroy(h.exec));
	OK(cuGraphDestroy(h.graph));
	OK(cuMemPoolDestroy(h.pool));
	OK(cuMemRelease(h.physical));
	OK(cuArrayDestroy(h.array));
	OK(cuLinkDestroy(h.link));
	OK(cuUserObjectRelease(h.object, 1));
	OK(cuMemFree(h.memory));
	OK(cuMemFreeHost(h.pinned));
}

/* Runs every call that takes one of the handles; each answer goes to `judge`. */
static void use_all(void (*judge)(CUresult status, const char *call))
{
	char room[64] = "";
	CUdeviceptr address = 0;
	size_t bytes = 0;
	int number = 0;
	float time = 0;
	CUgraph graph;
	CUgraphExec exec;
	CUgraphNode node;
	CUgraphNodeType type;
	CUmemAllocationProp prop;
	CUfunction function;
	CUkernel kernel;
	CUstreamCaptureStatus capture;
	CUDA_ARRAY_DESCRIPTOR array;
	void *image;

#define USE(call) judge(call, #call)
	USE(cuStreamSynchronize(h.stream));
	USE(cuStreamQuery(h.stream));
	USE(cuStreamDestroy(h.stream));
	USE(cuStreamIsCapturing(h.stream, &capture));
	USE(cuStreamBeginCapture(h.stream, CU_STREAM_CAPTURE_MODE_RELAXED));
	USE(cuStreamEndCapture(h.stream, &graph));
	USE(cuEventRecord(h.event, NULL));
	USE(cuEventRecord(h.event, h.stream));
	USE(cuStreamWaitEvent(NULL, h.event, 0));
	USE(cuEventQuery(h.event));
	USE(cuEventSynchronize(h.event));
	USE(cuEventElapsedTime(&time, h.event, h.event));
	USE(cuEventDestroy(h.event));
	USE(cuModuleGetFunction(&function, h.module, "bump"));
	USE(cuModuleGetGlobal(&address, &bytes, h.module, "counter"));
	USE(cuModuleUnload(h.module));
	USE(cuFuncGetAttribute(&number, CU_FUNC_ATTRIBUTE_NUM_REGS, h.function));
	USE(cuLaunchKernel(h.function, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
	USE(cuLaunchKernel((CUfunction)h.kernel, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
	USE(cuLibraryGetKernel(&kernel, h.library, "bump"));
	USE(cuKernelGetFunction(&function, h.kernel));
	USE(cuLibraryUnload(h.library));
	USE(cuGraphAddEmptyNode(&node, h.graph, NULL, 0));
	USE(cuGraphInstantiate(&exec, h.graph, 0));
	USE(cuGraphClone(&graph, h.graph));
	USE(cuGraphNodeGetType(h.node, &type));
	USE(cuGraphDestroyNode(h.node));
	USE(cuGraphLaunch(h.exec, NULL));
	USE(cuGraphExecDestroy(h.exec));
	USE(cuGraphDestroy(h.graph));
	USE(cuMemAllocFromPoolAsync(&address, 64, h.pool, NULL));
	USE(cuMemPoolTrimTo(h.pool, 0));
	USE(cuMemPoolDestroy(h.pool));
	USE(cuMemGetAllocationPropertiesFromHandle(&prop, h.physical));
	USE(cuMemRelease(h.physical));
	USE(cuArrayGetDescriptor(&array, h.array));
	USE(cuMemcpyAtoH(room, h.array, 0, 4));
	USE(cuArrayDestroy(h.array));
	USE(cuLinkComplete(h.link, &image, &bytes));
	USE(cuUserObjectRetain(h.object, 1));
	USE(cuMemcpyDtoH(room, h.memory, 4));
	USE(cuMemsetD8(h.memory, 0, 4));
	USE(cuMemFree(h.memory));
	USE(cuMemcpyHtoD(h.variable, room, 4));
	USE(cuMemFreeHost(h.pinned));
}

static void is_refused(CUresult status, const char *call)
{
	if (status == CUDA_SUCCESS || status == CUDA_ERROR_NOT_SUPPORTED)
		fprintf(stderr, "%s: %d\n", call, (int)status);
	CHECK(status != CUDA_SUCCESS && status != CUDA_ERROR_NOT_SUPPORTED);
}

static unsigned uninitialised, others;

static void is_uninitialised(CUresult status, const char *call)
{
	if (status == CUDA_ERROR_NOT_INITIALIZED) {
		uninitialised++;
		return;
	}
	others++;
	fprintf(stderr, "after fork: %s: %d\n", call, (int)status);
}

static void after_destroy(void)
{
	enter(0);
	make_all();
	end_all();
	use_all(is_refused);
	OK(cuCtxSynchronize());
	/* And all of it again, in the same context. */
	make_all();
	end_all();
	use_all(is_refused);
	leave(0);
}

/* The context takes with it what it owns; what is the process's stays. */
static void after_context(void)
{
	CUcontext own;

	OK(cuInit(0));
	OK(cuCtxCreate(&own, NULL, 0, 0));
	make_all();
	OK(cuCtxDestroy(own));
	enter(0);
	STATUS(CUDA_ERROR_INVALID_HANDLE, cuStreamSynchronize(h.stream));
	STATUS(CUDA_ERROR_INVALID_HANDLE, cuLaunchKernel(h.function, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
	STATUS(CUDA_ERROR_INVALID_VALUE, cuMemsetD8(h.memory, 0, 4));
	STATUS(CUDA_ERROR_INVALID_VALUE, cuMemFree(h.memory));
	OK(cuCtxPushCurrent(own));
	STATUS(CUDA_ERROR_CONTEXT_IS_DESTROYED, cuCtxSynchronize());
	OK(cuCtxPopCurrent(NULL));
	OK(cuLaunchKernel((CUfunction)h.kernel, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
	OK(cuGraphLaunch(h.exec, NULL));
	OK(cuCtxSynchronize());
	leave(0);
}

static void after_fork(void)
{
	int status = -1;

	enter(0);
	make_all();
	/* With work under way, which stays with the parent. */
	OK(cuLaunchKernel(h.function, 1, 1, 1, 1, 1, 1, 0, h.stream, NULL, NULL));
	pid_t child = fork();
	if (child == 0) {
		use_all(is_uninitialised);
		_exit(others == 0 && uninitialised > 40 ? 0 : 1);
	}
	CHECK(waitpid(child, &status, 0) == child && status == 0);
	OK(cuStreamSynchronize(h.stream));
	end_all();
	leave(0);
}

/*
 * What ends while work that needs it waits in a stream: the work is done first, or is an error, and the process lives.
 */
static void under_way(void)
{
	unsigned value = 3, n = 16, back = 0;
	void *parameters[] = {&h.memory, &value, &n};
	CUfunction fill;
	CUdeviceptr other;

	enter(0);
	make_all();
	OK(cuMemAlloc(&other, 64));
	OK(cuModuleGetFunction(&fill, h.module, "fill"));
	softgpu_delay_us(2000);
	OK(cuLaunchKernel(fill, 1, 1, 1, 16, 1, 1, 0, h.stream, parameters, NULL));
	OK(cuMemcpyDtoDAsync(other, h.memory, 64, h.stream));
	OK(cuEventRecord(h.event, h.stream));
	OK(cuGraphLaunch(h.exec, h.stream));
	end_all();
	softgpu_delay_us(0);
	OK(cuCtxSynchronize());
	OK(cuMemcpyDtoH(&back, other, 4));
	CHECK(back == 3);
	leave(0);
}

MAIN(T(after_destroy), T(after_context), T(after_fork), T(under_way))
