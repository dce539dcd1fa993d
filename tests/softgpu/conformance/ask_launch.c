/* Launches: shapes beyond limits, parameters, attributes. Occupancy. Errors that end a context. */
#include <time.h>

#include "tests/softgpu/conformance/conformance.h"

static CUdeviceptr memory;

static CUresult shape(unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared)
{
	static uint32_t value = 5;
	void *parameters[] = {&memory, &value};

	return cuLaunchKernel(kernel("store"), gx, gy, gz, bx, by, bz, shared, NULL, parameters, NULL);
}

static void shapes(void)
{
	memory = device_memory(64);
	answer_status("ordinary", shape(1, 1, 1, 1, 1, 1, 0));
	answer_status("no_blocks", shape(0, 1, 1, 1, 1, 1, 0));
	answer_status("no_blocks_z", shape(1, 1, 0, 1, 1, 1, 0));
	answer_status("no_threads", shape(1, 1, 1, 0, 1, 1, 0));
	answer_status("threads_1024", shape(1, 1, 1, 1024, 1, 1, 0));
	answer_status("threads_1025", shape(1, 1, 1, 1025, 1, 1, 0));
	answer_status("threads_32_33", shape(1, 1, 1, 32, 33, 1, 0));
	answer_status("threads_z_64", shape(1, 1, 1, 1, 1, 64, 0));
	answer_status("threads_z_65", shape(1, 1, 1, 1, 1, 65, 0));
	answer_status("blocks_y_65535", shape(1, 65535, 1, 1, 1, 1, 0));
	answer_status("blocks_y_65536", shape(1, 65536, 1, 1, 1, 1, 0));
	answer_status("blocks_z_65536", shape(1, 1, 65536, 1, 1, 1, 0));
	answer_status("blocks_x_2_31", shape(0x80000000u, 1, 1, 1, 1, 1, 0));
	answer_status("shared_48k", shape(1, 1, 1, 1, 1, 1, 49152));
	answer_status("shared_48k_and_one", shape(1, 1, 1, 1, 1, 1, 49153));
	answer_status("shared_1m", shape(1, 1, 1, 1, 1, 1, 1 << 20));
	NEED(cuFuncSetAttribute(kernel("store"), CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 100000));
	answer_status("shared_opted_in", shape(1, 1, 1, 1, 1, 1, 100000));
	answer_status("shared_past_opted_in", shape(1, 1, 1, 1, 1, 1, 100001));
	void *parameters[] = {&memory};
	answer_status("bounded_64", cuLaunchKernel(kernel("bounded"), 1, 1, 1, 64, 1, 1, 0, NULL, parameters, NULL));
	answer_status("bounded_65", cuLaunchKernel(kernel("bounded"), 1, 1, 1, 65, 1, 1, 0, NULL, parameters, NULL));
	answer_status("shared_static_and_dynamic",
	              cuLaunchKernel(kernel("shared"), 1, 1, 1, 1, 1, 1, 48128, NULL, parameters, NULL));
	answer_status("shared_static_and_more",
	              cuLaunchKernel(kernel("shared"), 1, 1, 1, 1, 1, 1, 48129, NULL, parameters, NULL));
	answer_status("synchronize", cuCtxSynchronize());
	answer_number("shared_value", word_at(memory));
}

static void parameters_of(void)
{
	CUfunction store = kernel("store");
	uint32_t value = 6;
	void *parameters[] = {&memory, &value};
	struct {
		CUdeviceptr out;
		uint32_t value;
	} packed;
	size_t size = 12, large = 16, small = 8;

	memory = device_memory(64);
	packed.out = memory;
	packed.value = 7;
	void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &packed, CU_LAUNCH_PARAM_BUFFER_SIZE, &size,
	                 CU_LAUNCH_PARAM_END};
	answer_status("null_function", cuLaunchKernel(NULL, 1, 1, 1, 1, 1, 1, 0, NULL, parameters, NULL));
	answer_status("extra", cuLaunchKernel(store, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, extra));
	answer_number("extra_value", word_at(memory));
	answer_status("both", cuLaunchKernel(store, 1, 1, 1, 1, 1, 1, 0, NULL, parameters, extra));
	extra[3] = &large;
	answer_status("extra_large", cuLaunchKernel(store, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, extra));
	extra[3] = &small;
	answer_status("extra_small", cuLaunchKernel(store, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, extra));
	answer_status("neither", cuLaunchKernel(store, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
	answer_status("none_needed", cuLaunchKernel(kernel("bounded"), 1, 1, 1, 1, 1, 1, 0, NULL, parameters, NULL));
	answer_status("parameters_synchronize", cuCtxSynchronize());
}

static void attributes(void)
{
	CUfunction store = kernel("store");
	uint32_t value = 6;
	CUlaunchAttribute list[2] = {0};
	CUlaunchConfig config = {
		.gridDimX = 1, .gridDimY = 1, .gridDimZ = 1, .blockDimX = 1, .blockDimY = 1, .blockDimZ = 1};

	memory = device_memory(64);
	void *parameters[] = {&memory, &value};
	answer_status("ex", cuLaunchKernelEx(&config, store, parameters, NULL));
	answer_status("ex_null", cuLaunchKernelEx(NULL, store, parameters, NULL));
	config.numAttrs = 1;
	answer_status("ex_null_attributes", cuLaunchKernelEx(&config, store, parameters, NULL));
	config.attrs = list;
	list[0].id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
	list[0].value.cooperative = 1;
	answer_status("ex_cooperative", cuLaunchKernelEx(&config, store, parameters, NULL));
	list[0].id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
	list[0].value.clusterDim.x = list[0].value.clusterDim.y = list[0].value.clusterDim.z = 1;
	answer_status("ex_cluster_of_one", cuLaunchKernelEx(&config, store, parameters, NULL));
	list[0].value.clusterDim.x = 2;
	answer_status("ex_cluster_does_not_divide", cuLaunchKernelEx(&config, store, parameters, NULL));
	config.gridDimX = 16;
	list[0].value.clusterDim.x = 16;
	answer_status("ex_cluster_of_sixteen", cuLaunchKernelEx(&config, store, parameters, NULL));
	config.gridDimX = 1;
	list[0] = (CUlaunchAttribute){.id = (CUlaunchAttributeID)99};
	answer_status("ex_unknown_attribute", cuLaunchKernelEx(&config, store, parameters, NULL));
	list[0] = (CUlaunchAttribute){.id = CU_LAUNCH_ATTRIBUTE_IGNORE};
	answer_status("ex_ignore", cuLaunchKernelEx(&config, store, parameters, NULL));
	list[0] = (CUlaunchAttribute){.id = CU_LAUNCH_ATTRIBUTE_PRIORITY, .value = {.priority = -1}};
	answer_status("ex_priority", cuLaunchKernelEx(&config, store, parameters, NULL));
	list[0] = (CUlaunchAttribute){.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION,
	                              .value = {.programmaticStreamSerializationAllowed = 1}};
	answer_status("ex_programmatic", cuLaunchKernelEx(&config, store, parameters, NULL));
	answer_status("cooperative", cuLaunchCooperativeKernel(store, 1, 1, 1, 1, 1, 1, 0, NULL, parameters));
	answer_status("cooperative_too_large",
	              cuLaunchCooperativeKernel(store, 1000000, 1, 1, 1024, 1, 1, 0, NULL, parameters));
	answer_status("attributes_synchronize", cuCtxSynchronize());
}

static void legacy(void)
{
	CUfunction store = kernel("store");

	memory = device_memory(64);
	answer_status("legacy_block", cuFuncSetBlockShape(store, 1, 1, 1));
	answer_status("legacy_size", cuParamSetSize(store, 12));
	answer_status("legacy_vector", cuParamSetv(store, 0, &memory, 8));
	answer_status("legacy_integer", cuParamSeti(store, 8, 77));
	answer_status("legacy_launch", cuLaunchGrid(store, 1, 1));
	answer_status("legacy_synchronize", cuCtxSynchronize());
	answer_number("legacy_value", word_at(memory));
	answer_status("legacy_block_beyond", cuFuncSetBlockShape(store, 2000, 1, 1));
	answer_status("legacy_size_beyond", cuParamSetSize(store, 100000));
}

static const struct topic topics[] = {
	{.name = "shapes", .ask = shapes},
	{.name = "parameters", .ask = parameters_of},
	{.name = "attributes", .ask = attributes},
	{.name = "legacy", .ask = legacy, .alone = true},
	{.name = NULL},
};
const struct family launch_family = {.name = "launch", .topics = topics};

static size_t no_shared(int threads)
{
	(void)threads;
	return 0;
}

static void occupancy(void)
{
	int blocks = 77, threads = 77;
	size_t bytes = 77;
	CUfunction store = kernel("store");

	answer_status("blocks", cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, store, 128, 0));
	answer_number("blocks_128", blocks);
	NEED(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, store, 1024, 0));
	answer_number("blocks_1024", blocks);
	NEED(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, store, 32, 0));
	answer_number("blocks_32", blocks);
	NEED(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, store, 32, 49152));
	answer_number("blocks_shared_48k", blocks);
	answer_status("blocks_no_threads", cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, store, 0, 0));
	answer_status("blocks_2000", cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, store, 2000, 0));
	answer_number("blocks_2000_value", blocks);
	answer_status("blocks_null_function", cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, NULL, 128, 0));
	answer_status("blocks_null", cuOccupancyMaxActiveBlocksPerMultiprocessor(NULL, store, 128, 0));
	answer_status("blocks_flags", cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(&blocks, store, 128, 0, 77));
	answer_status("potential", cuOccupancyMaxPotentialBlockSize(&blocks, &threads, store, no_shared, 0, 0));
	answer("potential_value", "%d blocks of %d", blocks, threads);
	answer_status("potential_limit", cuOccupancyMaxPotentialBlockSize(&blocks, &threads, store, NULL, 0, 100));
	answer("potential_limit_value", "%d blocks of %d", blocks, threads);
	answer_status("available", cuOccupancyAvailableDynamicSMemPerBlock(&bytes, store, 1, 128));
	answer_number("available_value", (long long)bytes);
	answer_status("available_no_blocks", cuOccupancyAvailableDynamicSMemPerBlock(&bytes, store, 0, 128));
}

static const struct topic occupancy_topics[] = {
	{.name = "occupancy", .ask = occupancy},
	{.name = NULL},
};
const struct family occupancy_family = {.name = "occupancy", .topics = occupancy_topics};

/* What every kind of call says once a context is lost. */
static void after(const char *what)
{
	char question[96];
	CUdeviceptr other;
	CUstream stream;
	CUcontext context, fresh = NULL;
	CUevent event;
	CUmodule module;
	CUgraph graph;
	CUdevice device;
	int count;
	void *host;
	size_t one, two;
	uint32_t word = 0;
	unsigned type;

#define AFTER(name, call)                                                                                              \
	do {                                                                                                           \
		snprintf(question, sizeof(question), "%s.%s", what, name);                                             \
		answer_status(question, call);                                                                         \
	} while (0)
	AFTER("synchronize", cuCtxSynchronize());
	AFTER("synchronize_again", cuCtxSynchronize());
	AFTER("alloc", cuMemAlloc(&other, 16));
	AFTER("alloc_zero", cuMemAlloc(&other, 0));
	AFTER("free", cuMemFree(memory));
	AFTER("copy", cuMemcpyHtoD(memory, &word, 4));
	AFTER("set", cuMemsetD8(memory, 0, 4));
	AFTER("host_alloc", cuMemHostAlloc(&host, 16, 0));
	AFTER("info", cuMemGetInfo(&one, &two));
	AFTER("launch", launch_store(NULL, memory, 1));
	AFTER("stream_create", cuStreamCreate(&stream, 0));
	AFTER("stream_query", cuStreamQuery(NULL));
	AFTER("event_create", cuEventCreate(&event, 0));
	AFTER("module_load", cuModuleLoadData(&module, conformance_ptx));
	AFTER("graph_create", cuGraphCreate(&graph, 0));
	AFTER("get_current", cuCtxGetCurrent(&context));
	AFTER("get_device", cuCtxGetDevice(&device));
	AFTER("device_count", cuDeviceGetCount(&count));
	AFTER("pointer", cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, memory));
	AFTER("range", cuMemGetAddressRange(&other, &one, memory));
	AFTER("set_current", cuCtxSetCurrent(context));
	AFTER("create_context", cuCtxCreate(&fresh, NULL, 0, 0));
	AFTER("pop", cuCtxPopCurrent(&context));
#undef AFTER
}

static void illegal_address(void)
{
	enter();
	memory = device_memory(64);
	kernels();
	answer_status("illegal_launch", launch_store(NULL, 0x1000, 1));
	after("illegal");
}

static void misaligned(void)
{
	enter();
	memory = device_memory(64);
	kernels();
	answer_status("misaligned_launch", launch_store(NULL, memory + 2, 1));
	after("misaligned");
}

static void trapped(void)
{
	enter();
	memory = device_memory(64);
	answer_status("trap_launch", cuLaunchKernel(kernel("trap"), 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
	after("trap");
}

static void on_other_stream(void)
{
	CUstream s, t;

	enter();
	NEED(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	NEED(cuStreamCreate(&t, CU_STREAM_NON_BLOCKING));
	answer_status("stream_launch", launch_store(s, 0x1000, 1));
	answer_status("stream_synchronize", cuStreamSynchronize(s));
	answer_status("other_stream_synchronize", cuStreamSynchronize(t));
	answer_status("destroy_stream", cuStreamDestroy(s));
}

static void host_function_after(void *ran)
{
	*(int *)ran = 1;
}

static void work_behind(void)
{
	CUstream s;
	int ran = 0;

	enter();
	kernels(); /* loading waits for the device */
	NEED(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	hold_stream(s);
	answer_status("behind_launch", launch_store(s, 0x1000, 1));
	answer_status("behind_host_function", cuLaunchHostFunc(s, host_function_after, &ran));
	release_streams();
	answer_status("behind_synchronize", cuStreamSynchronize(s));
	answer_number("behind_host_function_ran", ran);
}

static void reset_after(void)
{
	CUcontext context = NULL;

	enter();
	NEED(cuCtxGetCurrent(&context));
	NEED(launch_store(NULL, 0x1000, 1));
	answer_status("recover_synchronize", cuCtxSynchronize());
	answer_status("recover_release", cuDevicePrimaryCtxRelease(0));
	answer_status("recover_retain", cuDevicePrimaryCtxRetain(&context, 0));
	answer_status("recover_set", cuCtxSetCurrent(context));
	answer_status("recover_use", cuCtxSynchronize());
}

/* A stream that is destroyed before what it runs faults: an event behind that tells. */
static void in_a_stream_that_is_gone(void)
{
	CUresult result;
	CUstream s;
	CUevent event;
	int looks = 0;

	enter();
	kernels();
	NEED(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
	NEED(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	hold_stream(s);
	answer_status("gone_launch", launch_store(s, 0x1000, 1));
	answer_status("gone_record", cuEventRecord(event, s));
	answer_status("gone_destroy", cuStreamDestroy(s));
	release_streams();
	while ((result = cuEventQuery(event)) == CUDA_ERROR_NOT_READY && looks++ < 5000)
		nanosleep(&(struct timespec){0, 1000000}, NULL);
	answer_status("gone_event", result);
	answer_status("gone_legacy_query", cuStreamQuery(CU_STREAM_LEGACY));
	answer_status("gone_event_destroy", cuEventDestroy(event));
}

/* Another context of the process. */
static void in_another_context(void)
{
	CUcontext first = NULL, second = NULL;
	CUdeviceptr other;

	enter();
	NEED(cuCtxGetCurrent(&first));
	NEED(cuCtxCreate(&second, NULL, 0, 0));
	kernels();
	NEED(launch_store(NULL, 0x1000, 1));
	answer_status("second_synchronize", cuCtxSynchronize());
	answer_status("first_set", cuCtxSetCurrent(first));
	answer_status("first_alloc", cuMemAlloc(&other, 16));
	answer_status("first_synchronize", cuCtxSynchronize());
	answer_status("first_query", cuStreamQuery(NULL));
	answer_status("second_destroy", cuCtxDestroy(second));
	answer_status("reset", cuDevicePrimaryCtxReset(0));
	answer_status("reset_retain", cuDevicePrimaryCtxRetain(&second, 0));
}

static const struct topic sticky_topics[] = {
	{.name = "illegal_address", .ask = illegal_address},
	{.name = "misaligned", .ask = misaligned},
	{.name = "trapped", .ask = trapped},
	{.name = "on_other_stream", .ask = on_other_stream},
	{.name = "work_behind", .ask = work_behind},
	{.name = "reset_after", .ask = reset_after},
	{.name = "in_a_stream_that_is_gone", .ask = in_a_stream_that_is_gone},
	{.name = "in_another_context", .ask = in_another_context},
	{.name = NULL},
};
const struct family sticky_family = {.name = "sticky", .topics = sticky_topics, .bare = true};
