/* Devices and their attributes, error texts. */
#include "tests/softgpu/conformance/conformance.h"

static void handles(void)
{
	int count = 0, value = 0, minor = 0;
	CUdevice device = -1;
	char name[256];
	size_t bytes = 0;
	CUuuid id;
	CUdevprop properties;

	NEED(cuDeviceGetCount(&count));
	answer_status("get", cuDeviceGet(&device, 0));
	answer_number("get_ordinal", device);
	answer_status("get_negative", cuDeviceGet(&device, -1));
	answer_status("get_count", cuDeviceGet(&device, count));
	answer_status("get_null", cuDeviceGet(NULL, 0));
	answer_status("count_null", cuDeviceGetCount(NULL));
	answer_status("name", cuDeviceGetName(name, sizeof(name), 0));
	answer_status("name_short", cuDeviceGetName(name, 4, 0));
	answer_number("name_short_length", (long long)strlen(name));
	answer_status("name_null", cuDeviceGetName(NULL, 4, 0));
	answer_status("name_no_device", cuDeviceGetName(name, 4, count));
	answer_status("uuid", cuDeviceGetUuid(&id, 0));
	answer_status("uuid_null", cuDeviceGetUuid(NULL, 0));
	answer_status("total", cuDeviceTotalMem(&bytes, 0));
	answer_status("total_null", cuDeviceTotalMem(NULL, 0));
	answer_status("total_no_device", cuDeviceTotalMem(&bytes, -1));
	answer_status("bus_id", cuDeviceGetPCIBusId(name, sizeof(name), 0));
	answer_number("bus_id_length", (long long)strlen(name));
	answer_status("by_bus_id", cuDeviceGetByPCIBusId(&device, name));
	answer_status("by_bus_id_garbage", cuDeviceGetByPCIBusId(&device, "not a device"));
	answer_status("by_bus_id_null", cuDeviceGetByPCIBusId(&device, NULL));
	answer_status("bus_id_short", cuDeviceGetPCIBusId(name, 5, 0));
	answer_status("capability", cuDeviceComputeCapability(&value, &minor, 0));
	answer("capability_value", "%d.%d", value, minor);
	answer_status("properties", cuDeviceGetProperties(&properties, 0));
	answer_number("properties_threads", properties.maxThreadsPerBlock);
	answer_status("peer_itself", cuDeviceCanAccessPeer(&value, 0, 0));
	answer_number("peer_itself_value", value);
	answer_status("peer_no_device", cuDeviceCanAccessPeer(&value, 0, count));
	answer_status("p2p_itself", cuDeviceGetP2PAttribute(&value, CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED, 0, 0));
	answer_status("p2p_no_device",
	              cuDeviceGetP2PAttribute(&value, CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED, 0, count));
	answer_status("affinity", cuDeviceGetExecAffinitySupport(&value, CU_EXEC_AFFINITY_TYPE_SM_COUNT, 0));
	answer_status("affinity_unknown", cuDeviceGetExecAffinitySupport(&value, (CUexecAffinityType)77, 0));
	answer_status("attribute_zero", cuDeviceGetAttribute(&value, (CUdevice_attribute)0, 0));
	answer_status("attribute_unknown", cuDeviceGetAttribute(&value, (CUdevice_attribute)100000, 0));
	answer_status("attribute_null", cuDeviceGetAttribute(NULL, CU_DEVICE_ATTRIBUTE_WARP_SIZE, 0));
	answer_status("attribute_no_device", cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_WARP_SIZE, count));
}

#define ATTRIBUTE(name)                                                                                                \
	{                                                                                                              \
#name, CU_DEVICE_ATTRIBUTE_##name                                                                      \
	}

static void attributes(void)
{
	/* Those that say what a program may do; not those of the host, the bus or the driver's configuration. */
	static const struct {
		const char *name;
		CUdevice_attribute attribute;
	} list[] = {
		ATTRIBUTE(MAX_THREADS_PER_BLOCK),
		ATTRIBUTE(MAX_BLOCK_DIM_X),
		ATTRIBUTE(MAX_BLOCK_DIM_Y),
		ATTRIBUTE(MAX_BLOCK_DIM_Z),
		ATTRIBUTE(MAX_GRID_DIM_X),
		ATTRIBUTE(MAX_GRID_DIM_Y),
		ATTRIBUTE(MAX_GRID_DIM_Z),
		ATTRIBUTE(MAX_SHARED_MEMORY_PER_BLOCK),
		ATTRIBUTE(MAX_SHARED_MEMORY_PER_BLOCK_OPTIN),
		ATTRIBUTE(MAX_SHARED_MEMORY_PER_MULTIPROCESSOR),
		ATTRIBUTE(RESERVED_SHARED_MEMORY_PER_BLOCK),
		ATTRIBUTE(TOTAL_CONSTANT_MEMORY),
		ATTRIBUTE(WARP_SIZE),
		ATTRIBUTE(MAX_PITCH),
		ATTRIBUTE(MAX_REGISTERS_PER_BLOCK),
		ATTRIBUTE(MAX_REGISTERS_PER_MULTIPROCESSOR),
		ATTRIBUTE(MAX_THREADS_PER_MULTIPROCESSOR),
		ATTRIBUTE(MAX_BLOCKS_PER_MULTIPROCESSOR),
		ATTRIBUTE(MULTIPROCESSOR_COUNT),
		ATTRIBUTE(CLOCK_RATE),
		ATTRIBUTE(MEMORY_CLOCK_RATE),
		ATTRIBUTE(GLOBAL_MEMORY_BUS_WIDTH),
		ATTRIBUTE(L2_CACHE_SIZE),
		ATTRIBUTE(MAX_PERSISTING_L2_CACHE_SIZE),
		ATTRIBUTE(MAX_ACCESS_POLICY_WINDOW_SIZE),
		ATTRIBUTE(TEXTURE_ALIGNMENT),
		ATTRIBUTE(TEXTURE_PITCH_ALIGNMENT),
		ATTRIBUTE(SURFACE_ALIGNMENT),
		ATTRIBUTE(MAXIMUM_TEXTURE1D_WIDTH),
		ATTRIBUTE(MAXIMUM_TEXTURE2D_WIDTH),
		ATTRIBUTE(MAXIMUM_TEXTURE2D_HEIGHT),
		ATTRIBUTE(MAXIMUM_TEXTURE3D_WIDTH),
		ATTRIBUTE(MAXIMUM_TEXTURE3D_HEIGHT),
		ATTRIBUTE(MAXIMUM_TEXTURE3D_DEPTH),
		ATTRIBUTE(COMPUTE_CAPABILITY_MAJOR),
		ATTRIBUTE(COMPUTE_CAPABILITY_MINOR),
		ATTRIBUTE(SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO),
		ATTRIBUTE(ASYNC_ENGINE_COUNT),
		ATTRIBUTE(GPU_OVERLAP),
		ATTRIBUTE(INTEGRATED),
		ATTRIBUTE(CAN_MAP_HOST_MEMORY),
		ATTRIBUTE(COMPUTE_MODE),
		ATTRIBUTE(CONCURRENT_KERNELS),
		ATTRIBUTE(UNIFIED_ADDRESSING),
		ATTRIBUTE(TCC_DRIVER),
		ATTRIBUTE(KERNEL_EXEC_TIMEOUT),
		ATTRIBUTE(STREAM_PRIORITIES_SUPPORTED),
		ATTRIBUTE(GLOBAL_L1_CACHE_SUPPORTED),
		ATTRIBUTE(LOCAL_L1_CACHE_SUPPORTED),
		ATTRIBUTE(MANAGED_MEMORY),
		ATTRIBUTE(CONCURRENT_MANAGED_ACCESS),
		ATTRIBUTE(COMPUTE_PREEMPTION_SUPPORTED),
		ATTRIBUTE(CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM),
		ATTRIBUTE(CAN_USE_64_BIT_STREAM_MEM_OPS),
		ATTRIBUTE(CAN_USE_STREAM_WAIT_VALUE_NOR),
		ATTRIBUTE(COOPERATIVE_LAUNCH),
		ATTRIBUTE(CAN_FLUSH_REMOTE_WRITES),
		ATTRIBUTE(HOST_REGISTER_SUPPORTED),
		ATTRIBUTE(READ_ONLY_HOST_REGISTER_SUPPORTED),
		ATTRIBUTE(VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED),
		ATTRIBUTE(HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED),
		ATTRIBUTE(HANDLE_TYPE_WIN32_HANDLE_SUPPORTED),
		ATTRIBUTE(GENERIC_COMPRESSION_SUPPORTED),
		ATTRIBUTE(SPARSE_CUDA_ARRAY_SUPPORTED),
		ATTRIBUTE(MEMORY_POOLS_SUPPORTED),
		ATTRIBUTE(DEFERRED_MAPPING_CUDA_ARRAY_SUPPORTED),
		ATTRIBUTE(CLUSTER_LAUNCH),
		ATTRIBUTE(UNIFIED_FUNCTION_POINTERS),
		ATTRIBUTE(TENSOR_MAP_ACCESS_SUPPORTED),
		ATTRIBUTE(ECC_ENABLED),
		ATTRIBUTE(IPC_EVENT_SUPPORTED),
		ATTRIBUTE(MEM_SYNC_DOMAIN_COUNT),
	};
	char question[96];

	for (size_t i = 0; i < sizeof(list) / sizeof(*list); i++) {
		int value = -1;

		snprintf(question, sizeof(question), "attribute.%s", list[i].name);
		CUresult status = cuDeviceGetAttribute(&value, list[i].attribute, 0);
		if (status == CUDA_SUCCESS)
			answer_number(question, value);
		else
			answer_status(question, status);
	}
}

static void error_texts(void)
{
	static const int statuses[] = {0,   1,   2,   3,   4,   34,  36,  46,  100, 101, 200, 201, 205, 209, 211,
	                               217, 218, 222, 226, 300, 301, 302, 304, 400, 401, 500, 600, 700, 701, 702,
	                               704, 705, 708, 709, 712, 713, 715, 716, 717, 718, 719, 720, 800, 801, 802,
	                               900, 901, 902, 903, 904, 905, 906, 907, 908, 909, 910, 911, 912, 915, 999};
	char question[32];

	for (size_t i = 0; i < sizeof(statuses) / sizeof(*statuses); i++) {
		const char *name = NULL, *text = NULL;

		snprintf(question, sizeof(question), "error.%d", statuses[i]);
		cuGetErrorName((CUresult)statuses[i], &name);
		cuGetErrorString((CUresult)statuses[i], &text);
		answer(question, "%s: %s", name != NULL ? name : "none", text != NULL ? text : "none");
	}
	const char *name = "before", *text = "before";
	answer_status("error.unknown_name", cuGetErrorName((CUresult)12345, &name));
	answer_yes("error.unknown_name_null", name == NULL);
	answer_status("error.unknown_text", cuGetErrorString((CUresult)12345, &text));
	answer_yes("error.unknown_text_null", text == NULL);
}

static const struct topic topics[] = {
	{.name = "handles", .ask = handles},
	{.name = "attributes", .ask = attributes},
	{.name = "error_texts", .ask = error_texts},
	{.name = NULL},
};
const struct family device_family = {.name = "device", .topics = topics};
