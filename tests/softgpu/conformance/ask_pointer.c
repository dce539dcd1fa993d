/* What a pointer says of itself. */
#include "tests/softgpu/conformance/conformance.h"

#define ATTRIBUTE(name)                                                                                                \
	{                                                                                                              \
#name, CU_POINTER_ATTRIBUTE_##name                                                                     \
	}

/* Every attribute of a small value, of one kind of memory. */
static void of(const char *kind, CUdeviceptr address)
{
	static const struct {
		const char *name;
		CUpointer_attribute attribute;
	} list[] = {
		ATTRIBUTE(MEMORY_TYPE),
		ATTRIBUTE(SYNC_MEMOPS),
		ATTRIBUTE(IS_MANAGED),
		ATTRIBUTE(DEVICE_ORDINAL),
		ATTRIBUTE(IS_LEGACY_CUDA_IPC_CAPABLE),
		ATTRIBUTE(RANGE_SIZE),
		ATTRIBUTE(MAPPED),
		ATTRIBUTE(ALLOWED_HANDLE_TYPES),
		ATTRIBUTE(IS_GPU_DIRECT_RDMA_CAPABLE),
		ATTRIBUTE(ACCESS_FLAGS),
		ATTRIBUTE(MAPPING_SIZE),
		ATTRIBUTE(IS_HW_DECOMPRESS_CAPABLE),
	};
	char question[96];

	for (size_t i = 0; i < sizeof(list) / sizeof(*list); i++) {
		uint64_t value = 0;
		CUresult status = cuPointerGetAttribute(&value, list[i].attribute, address);

		snprintf(question, sizeof(question), "%s.%s", kind, list[i].name);
		if (status == CUDA_SUCCESS)
			answer_number(question, (int)value);
		else
			answer_status(question, status);
	}
	static const struct {
		const char *name;
		CUpointer_attribute attribute;
	} same[] = {
		ATTRIBUTE(DEVICE_POINTER),
		ATTRIBUTE(HOST_POINTER),
		ATTRIBUTE(RANGE_START_ADDR),
		ATTRIBUTE(MAPPING_BASE_ADDR),
	};
	for (size_t i = 0; i < sizeof(same) / sizeof(*same); i++) {
		uint64_t value = 0;
		CUresult status = cuPointerGetAttribute(&value, same[i].attribute, address);

		snprintf(question, sizeof(question), "%s.%s", kind, same[i].name);
		if (status == CUDA_SUCCESS)
			answer(question, "%s", value == 0 ? "null" : value == address ? "same" : "another");
		else
			answer_status(question, status);
	}
	CUcontext context = NULL, current = NULL;
	NEED(cuCtxGetCurrent(&current));
	snprintf(question, sizeof(question), "%s.CONTEXT", kind);
	CUresult status = cuPointerGetAttribute(&context, CU_POINTER_ATTRIBUTE_CONTEXT, address);
	if (status == CUDA_SUCCESS)
		answer(question, "%s", context == NULL ? "null" : context == current ? "current" : "another");
	else
		answer_status(question, status);
	unsigned long long id = 0;
	snprintf(question, sizeof(question), "%s.BUFFER_ID", kind);
	status = cuPointerGetAttribute(&id, CU_POINTER_ATTRIBUTE_BUFFER_ID, address);
	if (status == CUDA_SUCCESS)
		answer_yes(question, id != 0);
	else
		answer_status(question, status);
	/* Several at once: what does not apply is zero, and the call succeeds. */
	unsigned type = 77, managed = 77;
	CUpointer_attribute several[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_IS_MANAGED};
	void *into[] = {&type, &managed};
	status = cuPointerGetAttributes(2, several, into, address);
	snprintf(question, sizeof(question), "%s.several", kind);
	if (status == CUDA_SUCCESS)
		answer(question, "type %u, managed %u", type, managed & 1);
	else
		answer_status(question, status);
}

static void kinds(void)
{
	CUdeviceptr memory = device_memory(1000), managed = 0, pooled = 0, mapped = 0;
	void *pinned = NULL, *plain = malloc(65536);
	static char registered[8192] __attribute__((aligned(4096)));
	CUmemAllocationProp property = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
	                                .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0}};
	CUmemAccessDesc access = {.location = property.location, .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
	CUmemGenericAllocationHandle handle;

	of("device", memory);
	of("device_inside", memory + 100);
	of("device_past", memory + 1000);
	NEED(cuMemHostAlloc(&pinned, 4096, 0));
	of("pinned", (CUdeviceptr)(uintptr_t)pinned);
	NEED(cuMemHostRegister(registered, 4096, 0));
	of("registered", (CUdeviceptr)(uintptr_t)registered);
	NEED(cuMemAllocManaged(&managed, 4096, CU_MEM_ATTACH_GLOBAL));
	of("managed", managed);
	NEED(cuMemAllocAsync(&pooled, 4096, NULL));
	NEED(cuCtxSynchronize());
	of("pooled", pooled);
	NEED(cuMemCreate(&handle, 2 << 20, &property, 0));
	NEED(cuMemAddressReserve(&mapped, 2 << 20, 0, 0, 0));
	of("reserved", mapped);
	NEED(cuMemMap(mapped, 2 << 20, 0, handle, 0));
	NEED(cuMemSetAccess(mapped, 2 << 20, &access, 1));
	of("mapped", mapped);
	of("unknown", (CUdeviceptr)(uintptr_t)plain);
	of("null", 0);
	CUdeviceptr gone = device_memory(4 << 20);
	NEED(cuMemFree(gone));
	of("freed", gone);
	free(plain);
}

static void misuse(void)
{
	CUdeviceptr memory = device_memory(64);
	unsigned value = 1;
	CUpointer_attribute type = CU_POINTER_ATTRIBUTE_MEMORY_TYPE, synchronous = CU_POINTER_ATTRIBUTE_SYNC_MEMOPS;

	answer_status("null_output", cuPointerGetAttribute(NULL, type, memory));
	answer_status("attribute_zero", cuPointerGetAttribute(&value, (CUpointer_attribute)0, memory));
	answer_status("attribute_unknown", cuPointerGetAttribute(&value, (CUpointer_attribute)99, memory));
	answer_status("set_sync", cuPointerSetAttribute(&value, synchronous, memory));
	value = 0;
	NEED(cuPointerGetAttribute(&value, synchronous, memory));
	answer_number("set_sync_value", value & 1);
	answer_status("set_type", cuPointerSetAttribute(&value, type, memory));
	answer_status("set_of_unknown", cuPointerSetAttribute(&value, synchronous, 0x1234));
	answer_status("several_none", cuPointerGetAttributes(0, NULL, NULL, memory));
}

static const struct topic topics[] = {
	{.name = "kinds", .ask = kinds},
	{.name = "misuse", .ask = misuse},
	{.name = NULL},
};
const struct family pointer_family = {.name = "pointer", .topics = topics};
