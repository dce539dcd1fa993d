/* Graphs and capture. */
#include <pthread.h>

#include "tests/softgpu/tests/check.h"
#include "tests/softgpu/tests/kernels.h"

static CUmodule module;
static CUdeviceptr a, b;
static CUfunction fill, add;

static void begin(void)
{
	enter(0);
	OK(cuModuleLoadData(&module, kernels_ptx));
	OK(cuModuleGetFunction(&fill, module, "fill"));
	OK(cuModuleGetFunction(&add, module, "add"));
	OK(cuMemAlloc(&a, 64));
	OK(cuMemAlloc(&b, 64));
	OK(cuMemsetD8(a, 0, 64));
	OK(cuMemsetD8(b, 0, 64));
}

static unsigned first_of(CUdeviceptr address)
{
	unsigned value = 0;

	OK(cuMemcpyDtoH(&value, address, 4));
	return value;
}

static void CUDA_CB count_call(void *data)
{
	++*(int *)data;
}

static void built_by_hand(void)
{
	CUgraph graph;
	CUgraphExec exec;
	CUgraphNode set, kernel, copy, host, nodes[8], from[8], to[8];
	CUgraphNodeType type;
	CUDA_MEMSET_NODE_PARAMS set_params = {0, 0, 5, 4, 16, 1}, set_got;
	CUDA_KERNEL_NODE_PARAMS got;
	CUDA_MEMCPY3D copy_params, copy_got;
	int calls = 0;
	unsigned n = 16, on = 9;
	size_t count;

	begin();
	set_params.dst = a;
	OK(cuGraphCreate(&graph, 0));
	OK(cuGraphAddMemsetNode(&set, graph, NULL, 0, &set_params, NULL));
	void *parameters[] = {&b, &a, &n};
	CUDA_KERNEL_NODE_PARAMS params = {.func = add,
	                                  .gridDimX = 1,
	                                  .gridDimY = 1,
	                                  .gridDimZ = 1,
	                                  .blockDimX = 32,
	                                  .blockDimY = 1,
	                                  .blockDimZ = 1,
	                                  .kernelParams = parameters};
	OK(cuGraphAddKernelNode(&kernel, graph, &set, 1, &params));
	memset(&copy_params, 0, sizeof(copy_params));
	copy_params.srcMemoryType = copy_params.dstMemoryType = CU_MEMORYTYPE_DEVICE;
	copy_params.srcDevice = b;
	copy_params.dstDevice = a + 32;
	copy_params.WidthInBytes = 4;
	copy_params.Height = copy_params.Depth = 1;
	OK(cuGraphAddMemcpyNode(&copy, graph, &kernel, 1, &copy_params, NULL));
	CUDA_HOST_NODE_PARAMS host_params = {count_call, &calls};
	OK(cuGraphAddHostNode(&host, graph, &copy, 1, &host_params));
	/* What it says about itself. */
	count = 8;
	OK(cuGraphGetNodes(graph, nodes, &count));
	CHECK(count == 4 && nodes[0] == set && nodes[4] == NULL);
	OK(cuGraphGetEdges(graph, from, to, NULL, &count));
	CHECK(count == 3 && from[0] == set && to[0] == kernel);
	OK(cuGraphGetNodes(graph, NULL, &count));
	CHECK(count == 4);
	OK(cuGraphGetRootNodes(graph, nodes, &count));
	CHECK(count == 1 && nodes[0] == set);
	OK(cuGraphNodeGetType(copy, &type));
	CHECK(type == CU_GRAPH_NODE_TYPE_MEMCPY);
	OK(cuGraphKernelNodeGetParams(kernel, &got));
	CHECK(got.func == add && got.blockDimX == 32 && *(CUdeviceptr *)got.kernelParams[0] == b &&
	      *(unsigned *)got.kernelParams[2] == 16);
	OK(cuGraphMemsetNodeGetParams(set, &set_got));
	CHECK(set_got.dst == a && set_got.value == 5 && set_got.width == 16);
	OK(cuGraphMemcpyNodeGetParams(copy, &copy_got));
	CHECK(copy_got.dstDevice == a + 32);
	STATUS(CUDA_ERROR_INVALID_VALUE, cuGraphMemsetNodeGetParams(kernel, &set_got));
	CUkernelNodeAttrValue attribute;
	memset(&attribute, 0, sizeof(attribute));
	attribute.cooperative = 1;
	OK(cuGraphKernelNodeSetAttribute(kernel, CU_LAUNCH_ATTRIBUTE_COOPERATIVE, &attribute));
	attribute.cooperative = 0;
	OK(cuGraphKernelNodeGetAttribute(kernel, CU_LAUNCH_ATTRIBUTE_COOPERATIVE, &attribute));
	CHECK(attribute.cooperative == 1);
	STATUS(CUDA_ERROR_INVALID_VALUE, cuGraphKernelNodeGetAttribute(set, CU_LAUNCH_ATTRIBUTE_COOPERATIVE, &attribute));
	/* Runs, twice; the second time changed. */
	OK(cuGraphInstantiate(&exec, graph, 0));
	OK(cuGraphLaunch(exec, NULL));
	OK(cuCtxSynchronize());
	CHECK(first_of(b) == 5 && first_of(a + 32) == 5 && calls == 1);
	set_params.value = 7;
	OK(cuGraphExecMemsetNodeSetParams(exec, set, &set_params, NULL));
	OK(cuGraphNodeSetEnabled(exec, copy, 0));
	OK(cuGraphNodeGetEnabled(exec, copy, &on));
	CHECK(on == 0);
	STATUS(CUDA_ERROR_INVALID_VALUE, cuGraphNodeSetEnabled(exec, host, 0));
	OK(cuGraphLaunch(exec, NULL));
	OK(cuCtxSynchronize());
	CHECK(first_of(b) == 12 && first_of(a + 32) == 7 && calls == 2);
	/* The exec does not need its graph. */
	OK(cuGraphDestroy(graph));
	STATUS(CUDA_ERROR_INVALID_VALUE, cuGraphDestroy(graph));
	OK(cuGraphLaunch(exec, NULL));
	OK(cuCtxSynchronize());
	CHECK(calls == 3);
	OK(cuGraphExecDestroy(exec));
	STATUS(CUDA_ERROR_INVALID_VALUE, cuGraphLaunch(exec, NULL));
	leave(0);
}

static void capture(void)
{
	CUstream s, t;
	CUevent fork, join;
	CUgraph graph = NULL;
	CUgraphExec exec;
	CUstreamCaptureStatus status;
	cuuint64_t id = 0;
	unsigned value = 9, n = 16;
	size_t count;

	begin();
	OK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	OK(cuStreamCreate(&t, CU_STREAM_NON_BLOCKING));
	OK(cuEventCreate(&fork, CU_EVENT_DISABLE_TIMING));
	OK(cuEventCreate(&join, CU_EVENT_DISABLE_TIMING));
	STATUS(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cuStreamBeginCapture(NULL, CU_STREAM_CAPTURE_MODE_GLOBAL));
	STATUS(CUDA_ERROR_ILLEGAL_STATE, cuStreamEndCapture(s, &graph));
	/* Asking about an event of a capture ends that capture. */
	OK(cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
	OK(cuEventRecord(fork, s));
	STATUS(CUDA_ERROR_CAPTURED_EVENT, cuEventQuery(fork));
	STATUS(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, cuStreamEndCapture(s, &graph));
	STATUS(CUDA_ERROR_INVALID_VALUE, cuEventQuery(fork));
	STATUS(CUDA_ERROR_INVALID_VALUE, cuStreamWaitEvent(t, fork, 0));
	OK(cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
	OK(cuStreamIsCapturing(s, &status));
	CHECK(status == CU_STREAM_CAPTURE_STATUS_ACTIVE);
	void *parameters[] = {&a, &value, &n};
	OK(cuLaunchKernel(fill, 1, 1, 1, 32, 1, 1, 0, s, parameters, NULL));
	OK(cuEventRecord(fork, s));
	OK(cuStreamWaitEvent(t, fork, 0));
	OK(cuStreamIsCapturing(t, &status));
	CHECK(status == CU_STREAM_CAPTURE_STATUS_ACTIVE);
	OK(cuMemsetD32Async(b, 3, 16, t));
	OK(cuEventRecord(join, t));
	OK(cuStreamWaitEvent(s, join, 0));
	OK(cuMemcpyDtoDAsync(b + 4, a, 4, s));
	OK(cuStreamGetCaptureInfo(s, &status, &id, NULL, NULL, NULL, NULL));
	CHECK(id != 0);
	OK(cuStreamEndCapture(s, &graph));
	CHECK(first_of(a) == 0);
	OK(cuGraphGetEdges(graph, NULL, NULL, NULL, &count));
	CHECK(count == 3);
	OK(cuStreamIsCapturing(t, &status));
	CHECK(status == CU_STREAM_CAPTURE_STATUS_NONE);
	OK(cuGraphInstantiate(&exec, graph, 0));
	OK(cuGraphLaunch(exec, s));
	OK(cuStreamSynchronize(s));
	CHECK(first_of(a) == 9 && first_of(b) == 3 && first_of(b + 4) == 9);
	leave(0);
}

static void *relaxed_thread(void *context)
{
	CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
	CUdeviceptr memory;

	OK(cuCtxSetCurrent(context));
	OK(cuThreadExchangeStreamCaptureMode(&mode));
	CHECK(mode == CU_STREAM_CAPTURE_MODE_GLOBAL);
	OK(cuMemAlloc(&memory, 64));
	OK(cuMemFree(memory));
	return NULL;
}

static void capture_rules(void)
{
	CUstream s, t, blocking;
	CUgraph graph = (CUgraph)(uintptr_t)1;
	CUevent event;
	CUdeviceptr memory;
	pthread_t thread;
	CUcontext context = NULL;
	CUstreamCaptureStatus status;

	begin();
	OK(cuCtxGetCurrent(&context));
	OK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	OK(cuStreamCreate(&t, CU_STREAM_NON_BLOCKING));
	OK(cuStreamCreate(&blocking, CU_STREAM_DEFAULT));
	OK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
	/* An unsafe call fails and spoils the capture. */
	OK(cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
	STATUS(CUDA_ERROR_ILLEGAL_STATE, cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
	STATUS(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cuMemAlloc(&memory, 64));
	STATUS(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, cuMemsetD8Async(a, 0, 4, s));
	STATUS(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, cuStreamEndCapture(s, &graph));
	CHECK(graph == NULL);
	/* Not from a relaxed thread, nor in a relaxed capture. */
	OK(cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
	pthread_create(&thread, NULL, relaxed_thread, context);
	pthread_join(thread, NULL);
	OK(cuStreamEndCapture(s, &graph));
	OK(cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_RELAXED));
	OK(cuMemAlloc(&memory, 64));
	OK(cuStreamEndCapture(s, &graph));
	/* Waiting for a capturing stream. */
	OK(cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_RELAXED));
	STATUS(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cuStreamSynchronize(s));
	STATUS(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, cuStreamEndCapture(s, &graph));
	/* Work that nobody joined. */
	OK(cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_RELAXED));
	OK(cuEventRecord(event, s));
	OK(cuStreamWaitEvent(t, event, 0));
	OK(cuMemsetD8Async(a, 0, 4, t));
	STATUS(CUDA_ERROR_STREAM_CAPTURE_UNJOINED, cuStreamEndCapture(s, &graph));
	/* The wrong stream. */
	OK(cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_RELAXED));
	OK(cuEventRecord(event, s));
	OK(cuStreamWaitEvent(t, event, 0));
	STATUS(CUDA_ERROR_STREAM_CAPTURE_UNMATCHED, cuStreamEndCapture(t, &graph));
	STATUS(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, cuStreamEndCapture(s, &graph));
	/* The legacy stream would have to wait for a capturing one. */
	OK(cuStreamBeginCapture(blocking, CU_STREAM_CAPTURE_MODE_RELAXED));
	STATUS(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, cuStreamIsCapturing(NULL, &status));
	STATUS(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, cuMemsetD8Async(a, 0, 4, NULL));
	STATUS(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, cuStreamEndCapture(blocking, &graph));
	/* An event from outside. */
	OK(cuEventRecord(event, t));
	OK(cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_RELAXED));
	STATUS(CUDA_ERROR_STREAM_CAPTURE_ISOLATION, cuStreamWaitEvent(s, event, 0));
	STATUS(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, cuStreamEndCapture(s, &graph));
	leave(0);
}

/* Forks that are destroyed before their capture ends. */
static void capture_loses_a_fork(void)
{
	CUstream s, t;
	CUevent fork, join;
	CUgraph graph = NULL;
	size_t count = 0;

	begin();
	OK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	OK(cuEventCreate(&fork, 0));
	OK(cuEventCreate(&join, 0));
	for (int joined = 0; joined < 2; joined++) {
		OK(cuStreamCreate(&t, CU_STREAM_NON_BLOCKING));
		OK(cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
		OK(cuEventRecord(fork, s));
		OK(cuStreamWaitEvent(t, fork, 0));
		OK(cuMemsetD8Async(a, 1, 4, t));
		OK(cuEventRecord(join, t));
		if (joined)
			OK(cuStreamWaitEvent(s, join, 0));
		OK(cuStreamDestroy(t));
		if (joined)
			OK(cuMemsetD8Async(a, 2, 4, s));
		STATUS(joined ? CUDA_SUCCESS : CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, cuStreamEndCapture(s, &graph));
	}
	OK(cuGraphGetNodes(graph, NULL, &count));
	CHECK(count == 2);
	leave(0);
}

/* An instantiated graph is not for captures; nor does waiting for a context go with them, whatever their mode. */
static void refused_in_captures(void)
{
	CUstream s;
	CUgraph graph, ended = NULL;
	CUgraphNode node;
	CUgraphExec exec;
	unsigned value = 0;

	begin();
	OK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	OK(cuGraphCreate(&graph, 0));
	OK(cuGraphAddEmptyNode(&node, graph, NULL, 0));
	OK(cuGraphInstantiate(&exec, graph, 0));
	OK(cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
	STATUS(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cuGraphLaunch(exec, s));
	STATUS(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, cuStreamEndCapture(s, &ended));
	OK(cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_RELAXED));
	STATUS(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cuCtxSynchronize());
	STATUS(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, cuStreamEndCapture(s, &ended));
	/* Copies and sets of their own streams go on beside a capture. */
	OK(cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
	OK(cuMemsetD32(a, 7, 1));
	OK(cuMemcpyDtoH(&value, a, 4));
	CHECK(value == 7);
	OK(cuStreamEndCapture(s, NULL));
	STATUS(CUDA_ERROR_ILLEGAL_STATE, cuStreamEndCapture(s, &ended));
	leave(0);
}

static void memory_nodes(void)
{
	CUDA_MEM_ALLOC_NODE_PARAMS asked = {.poolProps = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
	                                                  .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0}},
	                                    .bytesize = 256},
				   got;
	CUcontext context;
	CUgraph graph, clone;
	CUgraphNode alloc, set, free_node, other;
	CUgraphExec exec, automatic;
	CUdeviceptr told = 0;
	size_t before, after, total;

	begin();
	OK(cuCtxGetCurrent(&context));
	OK(cuMemGetInfo(&before, &total));
	OK(cuGraphCreate(&graph, 0));
	OK(cuGraphAddMemAllocNode(&alloc, graph, NULL, 0, &asked));
	CHECK(asked.dptr != 0);
	OK(cuGraphMemAllocNodeGetParams(alloc, &got));
	CHECK(got.dptr == asked.dptr && got.bytesize == 256);
	CUDA_MEMSET_NODE_PARAMS params = {.dst = asked.dptr, .elementSize = 4, .width = 64, .height = 1, .value = 9};
	OK(cuGraphAddMemsetNode(&set, graph, &alloc, 1, &params, context));
	/* Left to the program: launched once until it is freed. */
	OK(cuGraphInstantiate(&exec, graph, 0));
	OK(cuGraphInstantiate(&automatic, graph, CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH));
	STATUS(CUDA_ERROR_INVALID_VALUE, cuMemFree(asked.dptr));
	OK(cuGraphLaunch(exec, NULL));
	STATUS(CUDA_ERROR_INVALID_VALUE, cuGraphLaunch(exec, NULL));
	OK(cuGraphLaunch(automatic, NULL));
	CHECK(first_of(asked.dptr) == 9);
	OK(cuMemFreeAsync(asked.dptr, NULL));
	STATUS(CUDA_ERROR_INVALID_VALUE, cuMemFreeAsync(asked.dptr, NULL));
	OK(cuGraphLaunch(exec, NULL));
	OK(cuMemFree(asked.dptr));
	/* Freed by the graph itself. */
	OK(cuGraphAddMemFreeNode(&free_node, graph, &set, 1, asked.dptr));
	OK(cuGraphMemFreeNodeGetParams(free_node, &told));
	CHECK(told == asked.dptr);
	STATUS(CUDA_ERROR_INVALID_VALUE, cuGraphAddMemFreeNode(&other, graph, &set, 1, asked.dptr));
	STATUS(CUDA_ERROR_INVALID_VALUE, cuGraphAddMemFreeNode(&other, graph, &set, 1, a));
	STATUS(CUDA_ERROR_NOT_SUPPORTED, cuGraphDestroyNode(alloc));
	STATUS(CUDA_ERROR_NOT_SUPPORTED, cuGraphClone(&clone, graph));
	OK(cuGraphExecDestroy(exec));
	OK(cuGraphInstantiate(&exec, graph, 0));
	OK(cuGraphLaunch(exec, NULL));
	OK(cuGraphLaunch(exec, NULL));
	OK(cuCtxSynchronize());
	STATUS(CUDA_ERROR_INVALID_VALUE, cuMemFree(asked.dptr));
	asked.bytesize = 0;
	STATUS(CUDA_ERROR_INVALID_VALUE, cuGraphAddMemAllocNode(&other, graph, NULL, 0, &asked));
	/* The last one to hold it gives it back. */
	OK(cuGraphDestroy(graph));
	OK(cuGraphExecDestroy(automatic));
	OK(cuMemGetInfo(&after, &total));
	CHECK(after < before);
	OK(cuGraphExecDestroy(exec));
	OK(cuMemGetInfo(&after, &total));
	CHECK(after == before);
	leave(0);
}

static void capture_allocates(void)
{
	CUstream s;
	CUgraph graph = NULL;
	CUgraphExec exec;
	CUdeviceptr scratch = 0, kept = 0;
	size_t count = 0;

	begin();
	OK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	OK(cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
	OK(cuMemAllocAsync(&scratch, 64, s));
	OK(cuMemAllocAsync(&kept, 64, s));
	OK(cuMemsetD32Async(scratch, 3, 16, s));
	OK(cuMemcpyDtoDAsync(kept, scratch, 64, s));
	OK(cuMemFreeAsync(scratch, s));
	STATUS(CUDA_ERROR_INVALID_VALUE, cuMemFreeAsync(a, s));
	OK(cuStreamEndCapture(s, &graph));
	OK(cuGraphGetNodes(graph, NULL, &count));
	CHECK(count == 5);
	OK(cuGraphInstantiate(&exec, graph, 0));
	OK(cuGraphDestroy(graph));
	OK(cuGraphLaunch(exec, s));
	OK(cuStreamSynchronize(s));
	CHECK(first_of(kept) == 3);
	OK(cuGraphExecDestroy(exec));
	/* What is out stays, whatever became of its graph. */
	CHECK(first_of(kept) == 3);
	OK(cuMemFreeAsync(kept, s));
	STATUS(CUDA_ERROR_INVALID_VALUE, cuMemFree(kept));
	leave(0);
}

static void capture_to_graph(void)
{
	CUstream s;
	CUgraph graph, ended = NULL;
	CUgraphNode empty;
	size_t count = 0;

	begin();
	OK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	OK(cuGraphCreate(&graph, 0));
	OK(cuGraphAddEmptyNode(&empty, graph, NULL, 0));
	OK(cuStreamBeginCaptureToGraph(s, graph, &empty, NULL, 1, CU_STREAM_CAPTURE_MODE_RELAXED));
	OK(cuMemsetD8Async(a, 1, 4, s));
	STATUS(CUDA_ERROR_INVALID_VALUE, cuGraphDestroy(graph));
	OK(cuStreamEndCapture(s, &ended));
	CHECK(ended == graph);
	OK(cuGraphNodeGetDependentNodes(empty, NULL, NULL, &count));
	CHECK(count == 1);
	OK(cuGraphDestroy(graph));
	leave(0);
}

static void children_clones_updates(void)
{
	CUgraph inner, outer, clone, other;
	CUgraphNode set, child, found = NULL, more;
	CUgraphExec exec;
	CUgraphExecUpdateResultInfo info;
	CUDA_MEMSET_NODE_PARAMS params = {0, 0, 1, 4, 16, 1};

	begin();
	params.dst = a;
	OK(cuGraphCreate(&inner, 0));
	OK(cuGraphAddMemsetNode(&set, inner, NULL, 0, &params, NULL));
	OK(cuGraphCreate(&outer, 0));
	OK(cuGraphAddChildGraphNode(&child, outer, NULL, 0, inner));
	OK(cuGraphInstantiate(&exec, outer, 0));
	OK(cuGraphLaunch(exec, NULL));
	OK(cuCtxSynchronize());
	CHECK(first_of(a) == 1);
	OK(cuGraphClone(&clone, outer));
	OK(cuGraphNodeFindInClone(&found, child, clone));
	CHECK(found != child);
	params.value = 2;
	OK(cuGraphMemsetNodeSetParams(set, &params));
	OK(cuGraphExecChildGraphNodeSetParams(exec, child, inner));
	OK(cuGraphLaunch(exec, NULL));
	OK(cuCtxSynchronize());
	CHECK(first_of(a) == 2);
	/* The clone kept the old value. */
	OK(cuGraphExecUpdate(exec, clone, &info));
	CHECK(info.result == CU_GRAPH_EXEC_UPDATE_SUCCESS);
	OK(cuGraphLaunch(exec, NULL));
	OK(cuCtxSynchronize());
	CHECK(first_of(a) == 1);
	OK(cuGraphCreate(&other, 0));
	STATUS(CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE, cuGraphExecUpdate(exec, other, &info));
	CHECK(info.result == CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED);
	OK(cuGraphAddEmptyNode(&more, other, NULL, 0));
	STATUS(CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE, cuGraphExecUpdate(exec, other, &info));
	CHECK(info.result == CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED && info.errorNode == more);
	leave(0);
}

static void bad_input(void)
{
	CUgraph graph, other;
	CUgraphNode x, y, z, twice[2];
	CUDA_MEMSET_NODE_PARAMS params = {0x10, 0, 1, 4, 16, 1};
	CUDA_KERNEL_NODE_PARAMS kernel = {.func = fill};
	CUgraphExec exec;

	begin();
	OK(cuGraphCreate(&graph, 0));
	OK(cuGraphCreate(&other, 0));
	STATUS(CUDA_ERROR_INVALID_VALUE, cuGraphCreate(NULL, 0));
	STATUS(CUDA_ERROR_INVALID_VALUE, cuGraphAddMemsetNode(&x, graph, NULL, 0, &params, NULL));
	STATUS(CUDA_ERROR_INVALID_VALUE, cuGraphAddKernelNode(&x, graph, NULL, 0, NULL));
	kernel.func = (CUfunction)(uintptr_t)0x77;
	STATUS(CUDA_ERROR_INVALID_HANDLE, cuGraphAddKernelNode(&x, graph, NULL, 0, &kernel));
	OK(cuGraphAddEmptyNode(&x, graph, NULL, 0));
	OK(cuGraphAddEmptyNode(&y, other, NULL, 0));
	STATUS(CUDA_ERROR_INVALID_VALUE, cuGraphAddEmptyNode(&z, graph, &y, 1));
	twice[0] = twice[1] = x;
	STATUS(CUDA_ERROR_INVALID_VALUE, cuGraphAddEmptyNode(&z, graph, twice, 2));
	OK(cuGraphAddEmptyNode(&z, graph, &x, 1));
	STATUS(CUDA_ERROR_INVALID_VALUE, cuGraphAddDependencies(graph, &z, &x, NULL, 1));
	STATUS(CUDA_ERROR_INVALID_VALUE, cuGraphAddDependencies(graph, &x, &z, NULL, 1));
	OK(cuGraphRemoveDependencies(graph, &x, &z, NULL, 1));
	OK(cuGraphDestroyNode(x));
	STATUS(CUDA_ERROR_INVALID_VALUE, cuGraphDestroyNode(x));
	STATUS(CUDA_ERROR_INVALID_VALUE, cuGraphInstantiate(&exec, (CUgraph)z, 0));
	STATUS(CUDA_ERROR_INVALID_VALUE, cuGraphLaunch((CUgraphExec)graph, NULL));
	leave(0);
}

/* A kernel's handle in a node, memory that is gone when the graph runs. */
static void after_the_fact(void)
{
	CUlibrary library;
	CUkernel kernel;
	CUgraph graph;
	CUgraphNode node;
	CUgraphExec exec;
	unsigned value = 4, n = 16;

	begin();
	OK(cuLibraryLoadData(&library, kernels_ptx, NULL, NULL, 0, NULL, NULL, 0));
	OK(cuLibraryGetKernel(&kernel, library, "fill"));
	void *parameters[] = {&a, &value, &n};
	CUDA_KERNEL_NODE_PARAMS params = {.kern = kernel,
	                                  .gridDimX = 1,
	                                  .gridDimY = 1,
	                                  .gridDimZ = 1,
	                                  .blockDimX = 32,
	                                  .blockDimY = 1,
	                                  .blockDimZ = 1,
	                                  .kernelParams = parameters},
				got;
	OK(cuGraphCreate(&graph, 0));
	OK(cuGraphAddKernelNode(&node, graph, NULL, 0, &params));
	OK(cuGraphKernelNodeGetParams(node, &got));
	CHECK(got.kern == kernel && got.func == NULL);
	CUDA_MEMSET_NODE_PARAMS set = {b, 0, 5, 4, 16, 1};
	CUgraphNode set_node;
	OK(cuGraphAddMemsetNode(&set_node, graph, &node, 1, &set, NULL));
	OK(cuGraphInstantiate(&exec, graph, 0));
	OK(cuGraphLaunch(exec, NULL));
	OK(cuCtxSynchronize());
	CHECK(first_of(a) == 4 && first_of(b) == 5);
	OK(cuMemFree(b));
	OK(cuGraphLaunch(exec, NULL));
	STATUS(CUDA_ERROR_ILLEGAL_ADDRESS, cuCtxSynchronize());
	leave(0);
}

static void user_objects(void)
{
	CUuserObject object;
	CUgraph graph;
	CUgraphNode node;
	CUgraphExec exec;
	int destroyed = 0;

	begin();
	OK(cuUserObjectCreate(&object, &destroyed, count_call, 2, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC));
	STATUS(CUDA_ERROR_INVALID_VALUE, cuUserObjectRelease(object, 3));
	OK(cuGraphCreate(&graph, 0));
	OK(cuGraphAddEmptyNode(&node, graph, NULL, 0));
	OK(cuGraphRetainUserObject(graph, object, 1, CU_GRAPH_USER_OBJECT_MOVE));
	OK(cuUserObjectRelease(object, 1));
	OK(cuGraphInstantiate(&exec, graph, 0));
	OK(cuGraphDestroy(graph));
	CHECK(destroyed == 0);
	OK(cuGraphLaunch(exec, NULL));
	OK(cuCtxSynchronize());
	OK(cuGraphExecDestroy(exec));
	CHECK(destroyed == 1);
	STATUS(CUDA_ERROR_INVALID_VALUE, cuUserObjectRelease(object, 1));
	leave(0);
}

MAIN(T(user_objects), T(built_by_hand), T(capture), T(capture_rules), T(capture_loses_a_fork), T(refused_in_captures),
     T(memory_nodes), T(capture_allocates), T(capture_to_graph), T(children_clones_updates), T(bad_input),
     T(after_the_fact))
