/*
 * What memory of cuMemAlloc says of itself, attribute by attribute and error by error: one `question<TAB>answer` a
 * line. Run with and without serving, the answers are to be the same but for differences.tsv. Runs on any driver; asks
 * nothing that leaves a context dead but last.
 */
#define __CUDA_API_VERSION_INTERNAL 1
#include <cuda.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <string.h>

#include "tests/twins/serve/check.h"

#define MIB ((size_t)1 << 20)

static CUcontext context, second;
static CUdevice device;

static void answer(const char *value, const char *question, ...) __attribute__((format(printf, 2, 3)));
static void answer(const char *value, const char *question, ...)
{
	va_list list;

	va_start(list, question);
	vprintf(question, list);
	va_end(list);
	printf("\t%s\n", value);
}

static const char *number(long long value)
{
	static char text[32];

	snprintf(text, sizeof text, "%lld", value);
	return text;
}

static const char *status(CUresult result)
{
	static __typeof__(cuGetErrorName) *const name = cuGetErrorName;
	const char *text = NULL;

	return name(result, &text) == CUDA_SUCCESS ? text : number(result);
}

#define ATTRIBUTE(name, bytes)                                                                                         \
	{                                                                                                              \
#name, CU_POINTER_ATTRIBUTE_##name, bytes                                                              \
	}
static const struct {
	const char *name;
	CUpointer_attribute attribute;
	size_t bytes;
} attributes[] = {
	ATTRIBUTE(CONTEXT, 8),
	ATTRIBUTE(MEMORY_TYPE, 4),
	ATTRIBUTE(DEVICE_POINTER, 8),
	ATTRIBUTE(HOST_POINTER, 8),
	ATTRIBUTE(SYNC_MEMOPS, 1),
	ATTRIBUTE(BUFFER_ID, 8),
	ATTRIBUTE(IS_MANAGED, 1),
	ATTRIBUTE(DEVICE_ORDINAL, 4),
	ATTRIBUTE(IS_LEGACY_CUDA_IPC_CAPABLE, 1),
	ATTRIBUTE(RANGE_START_ADDR, 8),
	ATTRIBUTE(RANGE_SIZE, 8),
	ATTRIBUTE(MAPPED, 1),
	ATTRIBUTE(ALLOWED_HANDLE_TYPES, 8),
	ATTRIBUTE(IS_GPU_DIRECT_RDMA_CAPABLE, 1),
	ATTRIBUTE(ACCESS_FLAGS, 4),
	ATTRIBUTE(MEMPOOL_HANDLE, 8),
	ATTRIBUTE(IS_HW_DECOMPRESS_CAPABLE, 1),
};
#define ATTRIBUTES (sizeof attributes / sizeof *attributes)

/* Addresses as what they mean, ids as whether there is one: both differ from run to run. */
static const char *meaning(size_t i, uint64_t value, CUdeviceptr start, CUdeviceptr at)
{
	switch ((int)attributes[i].attribute) {
	case CU_POINTER_ATTRIBUTE_CONTEXT:
		return !value                       ? "null"
		       : value == (uint64_t)context ? "context"
		       : value == (uint64_t)second  ? "second"
		                                    : "another";
	case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
	case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
		return !value ? "null" : value == start ? "start" : value == at ? "itself" : "another";
	case CU_POINTER_ATTRIBUTE_BUFFER_ID:
		return value ? "an id" : "none";
	default:
		return number((long long)value);
	}
}

static uint64_t low_bytes(uint64_t value, size_t bytes)
{
	return bytes == 8 ? value : value & ((UINT64_C(1) << 8 * bytes) - 1);
}

/* Every attribute, alone and together with all others, and the range. */
static void ask(const char *what, CUdeviceptr start, CUdeviceptr at)
{
	CUpointer_attribute list[ATTRIBUTES];
	uint64_t values[ATTRIBUTES] = {0};
	void *data[ATTRIBUTES];
	CUdeviceptr base = 0;
	size_t bytes = 0;
	CUresult result;

	for (size_t i = 0; i < ATTRIBUTES; i++) {
		uint64_t value = 0;

		list[i] = attributes[i].attribute;
		data[i] = &values[i];
		result = cuPointerGetAttribute(&value, list[i], at);
		answer(result ? status(result) : meaning(i, low_bytes(value, attributes[i].bytes), start, at), "%s.%s",
		       what, attributes[i].name);
	}
	answer(status(cuPointerGetAttributes(ATTRIBUTES, list, data, at)), "%s.all", what);
	for (size_t i = 0; i < ATTRIBUTES; i++)
		answer(meaning(i, low_bytes(values[i], attributes[i].bytes), start, at), "%s.all.%s", what,
		       attributes[i].name);
	result = cuMemGetAddressRange_v2(&base, &bytes, at);
	answer(status(result), "%s.range", what);
	if (!result) {
		answer(base == start ? "start" : "another", "%s.range.base", what);
		answer(number((long long)bytes), "%s.range.size", what);
	}
	answer(status(cuMemGetAddressRange_v2(&base, NULL, at)), "%s.range.base_only", what);
	/* Of memory that is gone a driver can die of this question. */
	if (!result)
		answer(status(cuMemGetAddressRange_v2(NULL, &bytes, at)), "%s.range.size_only", what);
}

static CUdeviceptr get(size_t bytes)
{
	CUdeviceptr at = 0;

	NEED(cuMemAlloc_v2(&at, bytes));
	return at;
}

static void every_size(void)
{
	static const size_t sizes[] = {1,           255,     256,         511,     512,      513,
	                               1000,        4096,    65536,       MIB - 1, MIB,      MIB + 1,
	                               2 * MIB - 1, 2 * MIB, 2 * MIB + 1, 3 * MIB, 20 * MIB, 33 * MIB + 7};

	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		CUdeviceptr at = get(sizes[i]);
		char what[64];

		answer(at % 512 ? "no" : "yes", "size_%zu.aligned", sizes[i]);
		snprintf(what, sizeof what, "size_%zu.start", sizes[i]);
		ask(what, at, at);
		snprintf(what, sizeof what, "size_%zu.last", sizes[i]);
		ask(what, at, at + sizes[i] - 1);
		if (sizes[i] % 512) { /* else somebody else's memory may begin there */
			snprintf(what, sizeof what, "size_%zu.past", sizes[i]);
			ask(what, at, at + sizes[i]);
		}
		answer(status(cuMemsetD8_v2(at, 7, sizes[i])), "size_%zu.set", sizes[i]);
		answer(status(cuMemFree_v2(at + 1)), "size_%zu.free_inside", sizes[i]);
		NEED(cuMemFree_v2(at));
		snprintf(what, sizeof what, "size_%zu.freed", sizes[i]);
		ask(what, at, at);
		answer(status(cuMemFree_v2(at)), "size_%zu.free_again", sizes[i]);
	}
}

static void wrong_calls(void)
{
	CUdeviceptr at = 77, other;
	size_t bytes, all;
	unsigned one = 1;
	CUpointer_attribute type = CU_POINTER_ATTRIBUTE_MEMORY_TYPE;

	NEED(cuMemGetInfo_v2(&bytes, &all));
	answer(status(cuMemAlloc_v2(NULL, 16)), "alloc_null");
	answer(status(cuMemAlloc_v2(&at, 0)), "alloc_zero");
	answer(number((long long)at), "alloc_zero.output");
	at = 77;
	answer(status(cuMemAlloc_v2(&at, all + 1)), "alloc_beyond");
	answer(number((long long)at), "alloc_beyond.output");
	answer(status(cuMemAlloc_v2(&at, SIZE_MAX)), "alloc_largest");
	answer(status(cuMemAlloc_v2(&at, SIZE_MAX - MIB)), "alloc_nearly_largest");
	answer(status(cuMemFree_v2(0)), "free_null");
	answer(status(cuMemFree_v2(0x1234)), "free_garbage");
	answer(status(cuMemFree_v2((CUdeviceptr)(uintptr_t)&at)), "free_host");
	at = get(1000);
	other = get(1000);
	answer(other == at ? "yes" : "no", "two_are_one");
	answer(status(cuPointerGetAttribute(NULL, type, at)), "attribute_null");
	answer(status(cuPointerGetAttribute(&one, (CUpointer_attribute)0, at)), "attribute_zero");
	answer(status(cuPointerGetAttribute(&one, (CUpointer_attribute)99, at)), "attribute_unknown");
	answer(status(cuPointerGetAttributes(0, NULL, NULL, at)), "attributes_none");
	answer(status(cuPointerGetAttributes(1, &type, NULL, at)), "attributes_null");
	answer(status(cuPointerSetAttribute(&one, type, at)), "set_type");
	answer(status(cuPointerSetAttribute(NULL, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, at)), "set_null");
	answer(status(cuPointerSetAttribute(&one, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, at + 1000)), "set_past");
	answer(status(cuPointerSetAttribute(&one, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, at + 10)), "set_sync");
	ask("sync", at, at);
	ask("sync_neighbour", other, other);
	one = 0;
	answer(status(cuPointerSetAttribute(&one, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, at)), "unset_sync");
	ask("unsynced", at, at);
	NEED(cuMemFree_v2(at));
	NEED(cuMemFree_v2(other));
}

static void ask_access(const char *what, const CUmemLocation *location, CUdeviceptr at)
{
	unsigned long long flags = 77;

	answer(status(cuMemGetAccess(&flags, location, at)), "mapped.%s", what);
	answer(number((long long)flags), "mapped.%s.flags", what);
}

/* Calls for memory that is mapped by the program. */
static void mapped_only(void)
{
	CUdeviceptr at = get(2 * MIB), small = get(1000);
	CUmemLocation here = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0};
	CUmemAccessDesc access = {.location = here, .flags = CU_MEM_ACCESS_FLAGS_PROT_READ};
	CUmemLocation other = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 1},
		      host = {.type = CU_MEM_LOCATION_TYPE_HOST, .id = 0};
	CUmemGenericAllocationHandle handle;
	unsigned long long flags;

	answer(status(cuMemSetAccess(at, 2 * MIB, &access, 1)), "mapped.set_access");
	ask_access("get_access", &here, at);
	ask_access("get_access_inside", &here, at + 2 * MIB - 1);
	ask_access("get_access_small", &here, small + 999);
	ask_access("get_access_past", &here, small + 1000);
	ask_access("get_access_other", &other, at);
	ask_access("get_access_host", &host, at);
	answer(status(cuMemGetAccess(NULL, &here, at)), "mapped.get_access_null");
	answer(status(cuMemGetAccess(&flags, NULL, at)), "mapped.get_access_nowhere");
	answer(status(cuMemRetainAllocationHandle(&handle, (void *)at)), "mapped.retain");
	answer(status(cuMemUnmap(at, 2 * MIB)), "mapped.unmap");
	answer(status(cuMemAddressFree(at, 2 * MIB)), "mapped.address_free");
	answer(status(cuMemsetD8_v2(at, 1, 2 * MIB)), "mapped.still_there");
	NEED(cuMemFree_v2(at));
	NEED(cuMemFree_v2(small));
	ask_access("get_access_freed", &here, at);
	ask_access("get_access_small_freed", &here, small);
}

/* Nodes that set memory and name no context, by each call that makes or edits one. */
static void set_nodes(void)
{
	CUdeviceptr at = get(1000);
	CUgraph graph;
	CUgraphNode old = NULL, node = NULL;
	CUgraphExec exec;
	const CUDA_MEMSET_NODE_PARAMS set = {.dst = at, .value = 1, .elementSize = 1, .width = 100, .height = 1};
	CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_MEMSET};
	unsigned char byte = 0;

	params.memset = (CUDA_MEMSET_NODE_PARAMS_v2){.dst = at, .value = 2, .elementSize = 1, .width = 1000, .height = 1};
	NEED(cuGraphCreate(&graph, 0));
	answer(status(cuGraphAddMemsetNode(&old, graph, NULL, 0, &set, NULL)), "set_node.add_old");
	answer(status(cuGraphAddNode_v2(&node, graph, &old, NULL, 1, &params)), "set_node.add");
	params.memset.value = 3;
	answer(status(cuGraphNodeSetParams(node, &params)), "set_node.edit");
	answer(params.memset.ctx ? "filled in" : "as it was", "set_node.parameters");
	NEED(cuGraphInstantiateWithFlags(&exec, graph, 0));
	answer(status(cuGraphExecMemsetNodeSetParams(exec, old, &set, NULL)), "set_node.edit_exec_old");
	answer(status(cuGraphExecNodeSetParams(exec, node, &params)), "set_node.edit_exec");
	answer(status(cuGraphLaunch(exec, NULL)), "set_node.launch");
	NEED(cuMemcpyDtoH_v2(&byte, at + 999, 1));
	answer(number(byte), "set_node.byte");
	NEED(cuGraphExecDestroy(exec));
	NEED(cuGraphDestroy(graph));
	NEED(cuMemFree_v2(at));
}

/* The same of nodes that copy. */
static void copy_nodes(void)
{
	CUdeviceptr at = get(1000), from = get(1000);
	CUgraph graph;
	CUgraphNode node = NULL;
	CUgraphExec exec;
	const CUDA_MEMCPY3D copy = {.srcMemoryType = CU_MEMORYTYPE_DEVICE,
	                            .srcDevice = from,
	                            .dstMemoryType = CU_MEMORYTYPE_DEVICE,
	                            .dstDevice = at,
	                            .WidthInBytes = 1000,
	                            .Height = 1,
	                            .Depth = 1};
	CUresult added;

	NEED(cuGraphCreate(&graph, 0));
	added = cuGraphAddMemcpyNode(&node, graph, NULL, 0, &copy, NULL);
	answer(status(added), "copy_node.add");
	NEED(cuGraphInstantiateWithFlags(&exec, graph, 0));
	if (added == CUDA_SUCCESS)
		answer(status(cuGraphExecMemcpyNodeSetParams(exec, node, &copy, NULL)), "copy_node.edit_exec");
	answer(status(cuGraphLaunch(exec, NULL)), "copy_node.launch");
	NEED(cuGraphExecDestroy(exec));
	NEED(cuGraphDestroy(graph));
	NEED(cuMemFree_v2(at));
	NEED(cuMemFree_v2(from));
}

static void pitches(void)
{
	static const struct {
		size_t width, height;
		unsigned element;
	} asked[] = {{1, 1, 4},        {100, 10, 4},
	             {512, 10, 4},     {513, 10, 16},
	             {7680, 100, 8},   {0, 10, 4},
	             {100, 0, 4},      {100, 10, 3},
	             {100, 10, 0},     {(size_t)1 << 31, 2, 4},
	             {SIZE_MAX, 2, 4}, {4096, SIZE_MAX / 1024, 4},
	             {MIB + 1, 3, 4}};
	CUdeviceptr at;
	size_t pitch;

	for (int round = 0; round < 2; round++)
		for (size_t i = 0; i < sizeof asked / sizeof *asked; i++) {
			CUresult result =
				cuMemAllocPitch_v2(&at, &pitch, asked[i].width, asked[i].height, asked[i].element);

			answer(status(result), "pitch_%d_%zu", round, i);
			if (result)
				continue;
			char what[64];
			snprintf(what, sizeof what, "pitch_%d_%zu.memory", round, i);
			answer(number((long long)pitch), "pitch_%d_%zu.value", round, i);
			ask(what, at, at);
			NEED(cuMemFree_v2(at));
		}
	answer(status(cuMemAllocPitch_v2(&at, NULL, 100, 10, 4)), "pitch_null");
	answer(status(cuMemAllocPitch_v2(NULL, &pitch, 100, 10, 4)), "pitch_no_output");
}

/* Freed, everything is as free as before; in between it is not. */
static void free_memory(void)
{
	static const size_t sizes[] = {1, 4096, MIB, 3 * MIB, 64 * MIB};
	size_t before, between, after, total;

	NEED(cuMemFree_v2(get(1)));
	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		NEED(cuMemGetInfo_v2(&before, &total));
		CUdeviceptr at = get(sizes[i]);
		NEED(cuMemGetInfo_v2(&between, &total));
		answer(between <= before ? "yes" : "no", "info_%zu.not_more", sizes[i]);
		answer(before - between >= sizes[i] || sizes[i] <= MIB ? "yes" : "no", "info_%zu.less", sizes[i]);
		answer(before - between <= sizes[i] + 2 * MIB ? "yes" : "no", "info_%zu.not_much_less", sizes[i]);
		NEED(cuMemFree_v2(at));
		NEED(cuMemGetInfo_v2(&after, &total));
		answer(after == before ? "yes" : "no", "info_%zu.back", sizes[i]);
	}
	answer(status(cuMemGetInfo_v2(NULL, &total)), "info_no_free");
	answer(status(cuMemGetInfo_v2(&after, NULL)), "info_no_total");
	answer(status(cuMemGetInfo_v2(NULL, NULL)), "info_nothing");
}

static void *without_context(void *data)
{
	CUdeviceptr *at = data, none = 77, base = 0;
	size_t bytes = 0;

	answer(status(cuMemAlloc_v2(&none, 16)), "no_context.alloc");
	answer(status(cuMemGetAddressRange_v2(&base, &bytes, *at)), "no_context.range");
	answer(status(cuMemGetInfo_v2(&bytes, &bytes)), "no_context.info");
	uint64_t type = 0;
	CUresult result = cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, *at);
	answer(result ? status(result) : number((long long)type), "no_context.type");
	answer(status(cuMemFree_v2(*at)), "no_context.free");
	return NULL;
}

static void contexts(void)
{
	CUdeviceptr mine = get(1000), theirs;
	pthread_t thread;

	NEED(cuCtxCreate_v2(&second, 0, device));
	theirs = get(1000);
	ask("second_context", theirs, theirs);
	ask("first_context", mine, mine);
	answer(status(cuMemcpyDtoD_v2(mine, theirs, 1000)), "copy_between_contexts");
	answer(status(cuMemFree_v2(mine)), "free_in_another_context");
	ask("freed_in_another_context", mine, mine);
	NEED(cuCtxDestroy_v2(second));
	ask("of_destroyed_context", theirs, theirs);
	answer(status(cuMemFree_v2(theirs)), "free_of_destroyed_context");
	second = NULL;
	mine = get(1000);
	CHECK(!pthread_create(&thread, NULL, without_context, &mine));
	CHECK(!pthread_join(thread, NULL));
}

static void free_in_order(void)
{
	CUstream stream;
	CUdeviceptr at = get(1000), large = get(5 * MIB);

	NEED(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	NEED(cuMemsetD8Async(at, 1, 1000, stream));
	answer(status(cuMemFreeAsync(at, stream)), "free_async");
	answer(status(cuMemFreeAsync(large, NULL)), "free_async_legacy");
	ask("freed_async", at, at);
	answer(status(cuMemFreeAsync(0, stream)), "free_async_null");
	at = get(1000);
	/*
	 * Not asked: a second cuMemFreeAsync(), a cuMemFree() after one, which a real driver answers with success, and
	 * cuMemFreeAsync() of an inner address. A real driver dies of it at the next synchronisation.
	 */
	NEED(cuMemFree_v2(at));
	NEED(cuStreamSynchronize(stream));
	NEED(cuStreamDestroy_v2(stream));
}

static void while_capturing(const char *name, CUstreamCaptureMode mode)
{
	CUstream stream;
	CUgraph graph = NULL;
	CUdeviceptr before = get(1000), at = 77, large = get(3 * MIB);
	size_t bytes = 0;

	NEED(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	NEED(cuStreamBeginCapture_v2(stream, mode));
	answer(status(cuMemsetD8Async(before, 1, 1000, stream)), "capture_%s.set", name);
	answer(status(cuMemGetAddressRange_v2(NULL, &bytes, before)), "capture_%s.range", name);
	answer(status(cuStreamEndCapture(stream, &graph)), "capture_%s.end_untouched", name);

	NEED(cuStreamBeginCapture_v2(stream, mode));
	CUresult result = cuMemAlloc_v2(&at, 1000);
	answer(status(result), "capture_%s.alloc", name);
	if (result == CUDA_SUCCESS) {
		ask("capture.memory", at, at);
		answer(status(cuMemsetD8Async(at, 2, 1000, stream)), "capture_%s.set_new", name);
	} else {
		answer(number((long long)at), "capture_%s.alloc_output", name);
		at = 0;
	}
	answer(status(cuStreamEndCapture(stream, &graph)), "capture_%s.alloc_end", name);

	NEED(cuStreamBeginCapture_v2(stream, mode));
	answer(status(cuMemFree_v2(before)), "capture_%s.free", name);
	answer(status(cuMemFree_v2(large + 8)), "capture_%s.free_inside", name);
	answer(status(cuStreamEndCapture(stream, &graph)), "capture_%s.free_end", name);
	char what[64];
	snprintf(what, sizeof what, "capture_%s.freed", name);
	ask(what, before, before);

	NEED(cuStreamBeginCapture_v2(stream, mode));
	answer(status(cuMemFreeAsync(large, stream)), "capture_%s.free_async", name);
	cuStreamEndCapture(stream, &graph);
	ask("capture.free_async", large, large);
	cuMemFree_v2(before);
	cuMemFree_v2(large);
	if (at)
		NEED(cuMemFree_v2(at));
	NEED(cuStreamDestroy_v2(stream));
	NEED(cuCtxSynchronize());
}

static void resets(void)
{
	CUdeviceptr at = get(1000), large = get(3 * MIB);
	size_t before, after, total;

	NEED(cuCtxSynchronize());
	answer(status(cuDevicePrimaryCtxReset_v2(device)), "reset");
	ask("of_reset_context", at, at);
	ask("large_of_reset_context", large, large);
	answer(status(cuMemFree_v2(at)), "free_of_reset_context");
	NEED(cuDevicePrimaryCtxRetain(&context, device));
	NEED(cuCtxSetCurrent(context));
	at = get(1000);
	ask("after_reset", at, at);
	NEED(cuMemGetInfo_v2(&before, &total));
	large = get(64 * MIB);
	NEED(cuMemFree_v2(large));
	NEED(cuMemGetInfo_v2(&after, &total));
	answer(before == after ? "yes" : "no", "after_reset.back");
	NEED(cuMemFree_v2(at));
}

int main(void)
{
	setvbuf(stdout, NULL, _IOLBF, 0); /* should a question end the process, the last line tells which was before it */
	NEED(cuInit(0));
	NEED(cuDeviceGet(&device, 0));
	NEED(cuDevicePrimaryCtxRetain(&context, device));
	NEED(cuCtxSetCurrent(context));
	every_size();
	wrong_calls();
	mapped_only();
	set_nodes();
	copy_nodes();
	pitches();
	free_memory();
	contexts();
	free_in_order();
	while_capturing("global", CU_STREAM_CAPTURE_MODE_GLOBAL);
	while_capturing("thread", CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
	while_capturing("relaxed", CU_STREAM_CAPTURE_MODE_RELAXED);
	CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
	NEED(cuThreadExchangeStreamCaptureMode(&mode));
	while_capturing("relaxed_thread", CU_STREAM_CAPTURE_MODE_GLOBAL);
	NEED(cuThreadExchangeStreamCaptureMode(&mode));
	resets();
	return 0;
}
