/* Before cuInit, and before there is a context. */
#include <sys/wait.h>
#include <unistd.h>

#include "tests/softgpu/conformance/conformance.h"

static void before(void)
{
	int number = 0;
	CUdevice device;
	CUcontext context;
	CUdeviceptr memory;
	CUstream stream;
	CUmodule module;
	CUgraph graph;
	CUlibrary library;
	size_t bytes, total;
	const char *text;
	void *host;
	CUmemoryPool pool;

	answer_status("version_before", cuDriverGetVersion(&number));
	answer_yes("version_13000", number == 13000);
	answer_status("version_null", cuDriverGetVersion(NULL));
	answer_status("count_before", cuDeviceGetCount(&number));
	answer_status("device_before", cuDeviceGet(&device, 0));
	answer_status("current_before", cuCtxGetCurrent(&context));
	answer_status("set_current_before", cuCtxSetCurrent(NULL));
	answer_status("synchronize_before", cuCtxSynchronize());
	answer_status("retain_before", cuDevicePrimaryCtxRetain(&context, 0));
	answer_status("alloc_before", cuMemAlloc(&memory, 16));
	answer_status("free_before", cuMemFree(0));
	answer_status("info_before", cuMemGetInfo(&bytes, &total));
	answer_status("host_alloc_before", cuMemHostAlloc(&host, 16, 0));
	answer_status("stream_before", cuStreamCreate(&stream, 0));
	answer_status("null_stream_before", cuStreamSynchronize(NULL));
	answer_status("module_before", cuModuleLoadData(&module, conformance_ptx));
	answer_status("library_before", cuLibraryLoadData(&library, conformance_ptx, NULL, NULL, 0, NULL, NULL, 0));
	answer_status("graph_before", cuGraphCreate(&graph, 0));
	answer_status("pool_before", cuDeviceGetDefaultMemPool(&pool, 0));
	answer_status("error_name_before", cuGetErrorName(CUDA_ERROR_INVALID_VALUE, &text));
	answer_status("proc_address_before", cuGetProcAddress("cuInit", &host, 13000, 0, NULL));
	answer_status("init_flags", cuInit(1));
	answer_status("count_after_bad_flags", cuDeviceGetCount(&number));
	answer_status("init", cuInit(0));
	answer_status("init_again", cuInit(0));
	answer_status("count", cuDeviceGetCount(&number));
}

static void no_context(void)
{
	CUcontext context = (CUcontext)(uintptr_t)1;
	CUdevice device;
	CUdeviceptr memory = 0;
	CUstream stream;
	CUevent event;
	CUmodule module;
	CUgraph graph;
	CUlibrary library;
	CUlimit limit = CU_LIMIT_STACK_SIZE;
	size_t bytes, total;
	void *host;
	unsigned flags;
	CUpointer_attribute attribute = CU_POINTER_ATTRIBUTE_MEMORY_TYPE;
	unsigned type;
	int word = 0;

	NEED(cuInit(0));
	answer_status("current_none", cuCtxGetCurrent(&context));
	answer_yes("current_none_null", context == NULL);
	answer_status("device_none", cuCtxGetDevice(&device));
	answer_status("pop_none", cuCtxPopCurrent(&context));
	answer_status("push_null", cuCtxPushCurrent(NULL));
	answer_status("set_null", cuCtxSetCurrent(NULL));
	answer_status("synchronize_none", cuCtxSynchronize());
	answer_status("flags_none", cuCtxGetFlags(&flags));
	answer_status("limit_none", cuCtxGetLimit(&bytes, limit));
	answer_status("api_version_none", cuCtxGetApiVersion(NULL, &flags));
	answer_status("alloc_none", cuMemAlloc(&memory, 16));
	answer_status("alloc_zero_none", cuMemAlloc(&memory, 0));
	answer_status("free_none", cuMemFree(0));
	answer_status("info_none", cuMemGetInfo(&bytes, &total));
	answer_status("host_alloc_none", cuMemHostAlloc(&host, 16, 0));
	answer_status("managed_none", cuMemAllocManaged(&memory, 16, CU_MEM_ATTACH_GLOBAL));
	answer_status("copy_none", cuMemcpyHtoD(memory, &word, 4));
	answer_status("stream_none", cuStreamCreate(&stream, 0));
	answer_status("null_stream_none", cuStreamSynchronize(NULL));
	answer_status("event_none", cuEventCreate(&event, 0));
	answer_status("module_none", cuModuleLoadData(&module, conformance_ptx));
	answer_status("library_none", cuLibraryLoadData(&library, conformance_ptx, NULL, NULL, 0, NULL, NULL, 0));
	answer_status("graph_none", cuGraphCreate(&graph, 0));
	answer_status("pointer_none", cuPointerGetAttribute(&type, attribute, (CUdeviceptr)(uintptr_t)&word));
	answer_status("reserve_none", cuMemAddressReserve(&memory, 2 << 20, 0, 0, 0));
}

/* Not alone enough: a child of a process that uses CUDA must not, and is told so. */
static void after_fork(void)
{
	int status = 0, count = 0;

	enter();
	CUdeviceptr memory = device_memory(64);
	pid_t child = fork();
	if (child == 0) {
		CUcontext context;

		answer_status("child_synchronize", cuCtxSynchronize());
		answer_status("child_init", cuInit(0));
		answer_status("child_count", cuDeviceGetCount(&count));
		answer_status("child_current", cuCtxGetCurrent(&context));
		answer_status("child_set", cuMemsetD8(memory, 0, 4));
		answer_status("child_version", cuDriverGetVersion(&count));
		_exit(0);
	}
	answer_yes("child_lives", waitpid(child, &status, 0) == child && status == 0);
	answer_status("parent_after_child", cuMemsetD8(memory, 0, 4));
}

static void fork_without_context(void)
{
	int status = 0, count = 0;

	NEED(cuInit(0));
	pid_t child = fork();
	if (child == 0) {
		answer_status("child_init_only", cuInit(0));
		answer_status("child_count_init_only", cuDeviceGetCount(&count));
		_exit(0);
	}
	answer_yes("child_init_only_lives", waitpid(child, &status, 0) == child && status == 0);
}

static const struct topic topics[] = {
	{.name = "before", .ask = before},
	{.name = "no_context", .ask = no_context},
	{.name = "after_fork", .ask = after_fork},
	{.name = "fork_without_context", .ask = fork_without_context},
	{.name = NULL},
};
const struct family init_family = {.name = "init", .topics = topics, .bare = true};
