/* Scenes about read-only views: what reads, what fails, and why. */
#include <pthread.h>
#include <sys/wait.h>

#include "vmm.h"

/*
 * Every way to write by a call fails, the bytes stay, the context goes on; loads through the view give what the owner
 * wrote.
 */
static void writes_fail(const char *mode)
{
	CUdeviceptr at = allocate(2), twin = view(at + 4096, 8192);
	CUresult refusal = mode && !strcmp(mode, "deny") ? CUDA_ERROR_NOT_PERMITTED : CUDA_ERROR_INVALID_VALUE;
	char host[64] = {0};

	CHECK(cuMemsetD32(at, 41, GRAIN / 4));
	CHECK(cuMemsetD32(at + 4096, 42, 2048));
	EXPECT(twin != at + 4096);
	EXPECT(word_at(twin) == 42);
	EXPECT(cuMemcpyHtoD(twin, host, 64) == refusal);
	EXPECT(cuMemcpyHtoDAsync(twin, host, 64, stream) == refusal);
	EXPECT(cuMemcpyDtoD(twin, q, 64) == refusal);
	EXPECT(cuMemcpyDtoDAsync(twin, q, 64, stream) == refusal);
	EXPECT(cuMemcpy(twin, q, 64) == refusal);
	EXPECT(cuMemsetD8(twin, 1, 64) == refusal);
	EXPECT(cuMemsetD32Async(twin, 1, 16, stream) == refusal);
	EXPECT(cuMemsetD2D8(twin, 64, 1, 8, 8) == refusal);
	EXPECT(word_at(twin) == 42 && word_at(at + 4096) == 42);
	CHECK(cuCtxSynchronize());
	CHECK(cuMemsetD32(at + 4096, 43, 1));
	EXPECT(word_at(twin) == 43);
	int count = COUNT;
	void *params[] = {&twin, &q, &count};
	launch("copy", COUNT, stream, params);
	CHECK(cuStreamSynchronize(stream));
	EXPECT(word_at(q) == 43 && word_at(q + 4) == 42);
}

/* The driver would take it, and the context would die: refused in each mode but strict, which ends the process. */
static void memory_operation(const char *mode)
{
	CUdeviceptr at = allocate(1), twin = view(at, 4096);
	CUstreamBatchMemOpParams ops[1] = {
		{.writeValue = {.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32, .address = twin}}};

	CHECK(cuMemsetD32(at, 5, 1024));
	EXPECT(cuStreamWriteValue32(stream, twin, 7, 0) == CUDA_ERROR_NOT_PERMITTED);
	EXPECT(cuStreamWriteValue64(stream, twin + 8, 7, 0) == CUDA_ERROR_NOT_PERMITTED);
	EXPECT(cuStreamBatchMemOp(stream, 1, ops, 0) == CUDA_ERROR_NOT_PERMITTED);
	CHECK(cuStreamWriteValue32(stream, at, 7, 0));
	CHECK(cuStreamSynchronize(stream));
	EXPECT(word_at(twin) == 7);
}

/* The driver would grant these for a twin like for any mapping; that would open every view of it. */
static void mapping_calls(const char *mode)
{
	CUdeviceptr at = allocate(1), twin = view(at, GRAIN);
	const CUmemAccessDesc access = {.location = device_memory.location, .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};

	EXPECT(cuMemSetAccess(twin, GRAIN, &access, 1) == CUDA_ERROR_NOT_PERMITTED);
	EXPECT(cuMemUnmap(twin, GRAIN) == CUDA_ERROR_NOT_PERMITTED);
	EXPECT(cuMemAddressFree(twin, GRAIN) == CUDA_ERROR_NOT_PERMITTED);
	EXPECT(cuMemMap(twin, GRAIN, 0, 0, 0) == CUDA_ERROR_NOT_PERMITTED);
	CUmemGenericAllocationHandle handle;
	EXPECT(cuMemRetainAllocationHandle(&handle, (void *)twin) == CUDA_ERROR_NOT_PERMITTED);
	CHECK(cuMemsetD32(at, 9, 1));
	EXPECT(word_at(twin) == 9);
}

static void of_a_view(const char *mode)
{
	CUdeviceptr at = allocate(1);

	EXPECT(!cuconst_view_known(at, GRAIN)); /* a look-up makes none */
	CUdeviceptr twin = view(at, GRAIN);
	EXPECT(!cuconst_view_known(0, GRAIN) && !cuconst_view_known(at, 0) && !cuconst_view_known(at, GRAIN + 1));
	EXPECT(!cuconst_view_known(at, SIZE_MAX - at) && !cuconst_view_known(at, SIZE_MAX));
	EXPECT(view(twin, GRAIN) == twin);
	EXPECT(view(twin + 512, 16) == twin + 512);
	EXPECT(view(at + 512, 16) == twin + 512);
}

/*
 * Views of a reserved range are address + constant, mapping by mapping; what is not mapped has none; growth and holes
 * are followed.
 */
static void grows(const char *mode)
{
	CUdeviceptr at = reserve(8), twin;
	uint64_t none = 77;

	EXPECT(cuconst_view(at, GRAIN, &none) == CUCONST_ERROR_NOT_DEVICE && none == 77);
	map(at, 1);
	map(at + GRAIN, 2);
	twin = view(at, 3 * GRAIN);
	EXPECT(view(at + GRAIN - 4, 8) == twin + GRAIN - 4);
	EXPECT(cuconst_view(at, 4 * GRAIN, &none) == CUCONST_ERROR_OUT_OF_RANGE && none == 77);
	EXPECT(!cuconst_view_known(at, 4 * GRAIN));
	map(at + 4 * GRAIN, 1);
	EXPECT(view(at + 4 * GRAIN, GRAIN) == twin + 4 * GRAIN);
	EXPECT(cuconst_view(at, 5 * GRAIN, &none) == CUCONST_ERROR_OUT_OF_RANGE);
	map(at + 3 * GRAIN, 1);
	EXPECT(view(at, 5 * GRAIN) == twin);
	CHECK(cuMemsetD32(at, 11, 5 * GRAIN / 4));
	for (size_t i = 0; i < 5; i++)
		EXPECT(word_at(twin + (i + 1) * GRAIN - 4) == 11);
	CHECK(cuMemUnmap(at + GRAIN, 2 * GRAIN));
	EXPECT(cuconst_view(at + GRAIN, 4, &none) == CUCONST_ERROR_NOT_DEVICE && none == 77);
	EXPECT(!cuconst_view_known(at + GRAIN, 4));
	EXPECT(view(at + 4 * GRAIN, 4) == twin + 4 * GRAIN && word_at(twin) == 11);
	/* The hole is filled with other memory: the view is of that, not of what was there. */
	map(at + GRAIN, 2);
	CHECK(cuMemsetD32(at + GRAIN, 12, 1));
	EXPECT(view(at, 5 * GRAIN) == twin && word_at(twin + GRAIN) == 12);
	CHECK(cuMemUnmap(at, 5 * GRAIN));
	CHECK(cuMemAddressFree(at, 8 * GRAIN));
}

/* Access that is granted after the mapping, and taken away again, is the twin's, too. */
static void follows_access(const char *mode)
{
	CUdeviceptr at = allocate(1), twin = view(at, GRAIN), later = reserve(1);
	CUmemGenericAllocationHandle handle = create(1);
	CUmemAccessDesc access = {.location = device_memory.location, .flags = CU_MEM_ACCESS_FLAGS_PROT_NONE};
	unsigned long long flags = 77;
	uint64_t none = 77;

	CHECK(cuMemMap(later, GRAIN, 0, handle, 0));
	EXPECT(cuconst_view(later, GRAIN, &none) != CUCONST_OK && none == 77);
	let_write(later, 1);
	CHECK(cuMemGetAccess(&flags, &device_memory.location, view(later, GRAIN)));
	EXPECT(flags == CU_MEM_ACCESS_FLAGS_PROT_READ);
	CHECK(cuMemSetAccess(at, GRAIN, &access, 1));
	CHECK(cuMemGetAccess(&flags, &device_memory.location, twin));
	EXPECT(flags == CU_MEM_ACCESS_FLAGS_PROT_NONE);
	access.flags = CU_MEM_ACCESS_FLAGS_PROT_READ;
	CHECK(cuMemSetAccess(at, GRAIN, &access, 1));
	CHECK(cuMemGetAccess(&flags, &device_memory.location, twin));
	EXPECT(flags == CU_MEM_ACCESS_FLAGS_PROT_READ);
	CHECK(cuMemRelease(handle));
}

/* Memory of a graph that stays until it is freed. */
static CUdeviceptr graph_memory(size_t bytes)
{
	CUDA_MEM_ALLOC_NODE_PARAMS memory = {
		.poolProps = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED, .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}},
		.bytesize = bytes};
	CUgraph graph;
	CUgraphNode node;
	CUgraphExec exec;
	CHECK(cuGraphCreate(&graph, 0));
	CHECK(cuGraphAddMemAllocNode(&node, graph, NULL, 0, &memory));
	CHECK(cuGraphInstantiate(&exec, graph, 0));
	CHECK(cuGraphLaunch(exec, stream));
	CHECK(cuStreamSynchronize(stream));
	return memory.dptr;
}

/* What cannot have a twin says why. */
static void reasons(const char *mode)
{
	CUdeviceptr managed, pooled;
	void *host;
	uint64_t none = 77;

	EXPECT(cuconst_view(p, 16, &none) == CUCONST_ERROR_PLAIN_MEMORY);
	CHECK(cuMemAllocAsync(&pooled, 4096, stream));
	CHECK(cuStreamSynchronize(stream));
	EXPECT(cuconst_view(pooled, 16, &none) == CUCONST_ERROR_POOL_MEMORY);
	for (size_t bytes = 4096; bytes <= GRAIN; bytes = bytes == GRAIN ? GRAIN + 1 : GRAIN) {
		cuconst_result graph = cuconst_view(graph_memory(bytes), 16, &none);
		/* Which of these: a driver may name the context of such memory. */
		EXPECT(graph == CUCONST_ERROR_POOL_MEMORY || graph == CUCONST_ERROR_PLAIN_MEMORY);
	}
	CHECK(cuMemAllocManaged(&managed, 4096, CU_MEM_ATTACH_GLOBAL));
	EXPECT(cuconst_view(managed, 16, &none) == CUCONST_ERROR_MANAGED_MEMORY);
	CHECK(cuMemHostAlloc(&host, 4096, 0));
	EXPECT(cuconst_view((uint64_t)host, 16, &none) == CUCONST_ERROR_HOST_MEMORY);
	EXPECT(cuconst_view(0, 16, &none) == CUCONST_ERROR_INVALID_VALUE);
	EXPECT(cuconst_view(p, 0, &none) == CUCONST_ERROR_INVALID_VALUE);
	EXPECT(cuconst_view(UINT64_MAX - 7, 16, &none) == CUCONST_ERROR_INVALID_VALUE);
	EXPECT(cuconst_view(p, 16, NULL) == CUCONST_ERROR_INVALID_VALUE);
	EXPECT(cuconst_view(0x1234, 16, &none) == CUCONST_ERROR_NOT_DEVICE);
	EXPECT(cuconst_view(UINT64_C(1) << 60, 16, &none) == CUCONST_ERROR_NOT_DEVICE);
	EXPECT(none == 77);
	for (int code = 0; code < 40; code++)
		EXPECT(cuconst_result_text((cuconst_result)code)[0]);
}

static void off(const char *mode)
{
	CUdeviceptr at = allocate(1);
	uint64_t none = 77;

	EXPECT(cuconst_view(at, 16, &none) == CUCONST_ERROR_TWINS_OFF && none == 77);
	give_back(at, 1);
}

/* Without address space or memory for a twin the answer says so; nothing is left behind, and later it may work. */
static void no_room(const char *mode)
{
	static const char *const steps[] = {"cuMemAddressReserve", "cuMemMap", "cuMemSetAccess"};
	CUdeviceptr at = allocate(2);
	size_t left = free_memory();
	uint64_t twin = 77;

	for (size_t i = 0; i < 3; i++) {
		fail_next(steps[i], CUDA_ERROR_OUT_OF_MEMORY);
		EXPECT(cuconst_view(at, GRAIN, &twin) == CUCONST_ERROR_NO_ROOM && twin == 77);
		EXPECT(cuconst_last_cuda_error() == CUDA_ERROR_OUT_OF_MEMORY);
	}
	fail_next("cuMemGetAllocationPropertiesFromHandle", CUDA_ERROR_UNKNOWN);
	EXPECT(cuconst_view(at, GRAIN, &twin) == CUCONST_ERROR_CUDA && cuconst_last_cuda_error() == CUDA_ERROR_UNKNOWN);
	EXPECT(cuconst_view(at, GRAIN, &twin) == CUCONST_OK && twin != 77);
	EXPECT(free_memory() == left);
	give_back(at, 2);
	EXPECT(free_memory() == left + 2 * GRAIN);
}

/* The second view of the same range makes no driver call at all. */
static void second_is_free(const char *mode)
{
	CUdeviceptr at = allocate(4);
	uint64_t (*total)(void);

	*(void **)&total = dlsym(RTLD_DEFAULT, "softgpu_calls_total");
	CUdeviceptr twin = view(at, 4 * GRAIN);
	uint64_t before = total ? total() : 0;
	for (size_t i = 0; i < 1000; i++)
		EXPECT(view(at + i * 4096, 4096) == twin + i * 4096);
	EXPECT(!total || total() == before);
}

/* Threads make, use and drop views of spaces of their own and of a common one. */
static CUdeviceptr shared;

static void *thread_main(void *data)
{
	CHECK(cuCtxSetCurrent(context));
	for (int i = 0; i < 300; i++) {
		CUdeviceptr at = allocate(1);
		CUdeviceptr twin = view(at, GRAIN), common = view(shared, GRAIN);
		CHECK(cuMemsetD32(at, (unsigned)i, 1));
		EXPECT(word_at(twin) == i && word_at(common) == 51);
		CUdeviceptr own = shared + (1 + (size_t)data) * GRAIN;
		map(own, 1);
		EXPECT(view(own, GRAIN) - own == common - shared);
		CHECK(cuMemUnmap(own, GRAIN));
		give_back(at, 1);
	}
	return NULL;
}

static void threads(const char *mode)
{
	pthread_t of[4];

	shared = reserve(8);
	map(shared, 1);
	CHECK(cuMemsetD32(shared, 51, 1));
	for (size_t i = 0; i < 4; i++)
		EXPECT(pthread_create(&of[i], NULL, thread_main, (void *)i) == 0);
	for (size_t i = 0; i < 4; i++)
		EXPECT(pthread_join(of[i], NULL) == 0);
	CHECK(cuMemUnmap(shared, GRAIN));
	CHECK(cuMemAddressFree(shared, 8 * GRAIN));
	EXPECT(calls("cuMemMap") == calls("cuMemUnmap") && calls("cuMemAddressReserve") == calls("cuMemAddressFree"));
}

/* A view from a thread without a context, and one that a second context uses. */
static void *no_context(void *data)
{
	*(CUdeviceptr *)data = view(*(CUdeviceptr *)data, GRAIN);
	return NULL;
}

static void contexts(const char *mode)
{
	CUdeviceptr at = allocate(1), seen = at;
	CUcontext second;
	CUdevice device;
	pthread_t thread;

	EXPECT(pthread_create(&thread, NULL, no_context, &seen) == 0);
	EXPECT(pthread_join(thread, NULL) == 0);
	EXPECT(seen != at && view(at, GRAIN) == seen);
	CHECK(cuMemsetD32(at, 61, 1));
	CHECK(cuCtxSynchronize()); /* the other context's copy does not wait for it */
	CHECK(cuDeviceGet(&device, 0));
	CHECK(cuCtxCreate(&second, NULL, 0, device));
	EXPECT(word_at(seen) == 61 && view(at, GRAIN) == seen);
	EXPECT(cuMemsetD32(seen, 1, 1) != CUDA_SUCCESS);
	CHECK(cuCtxDestroy(second));
	CHECK(cuCtxSetCurrent(context));
	EXPECT(word_at(seen) == 61 && view(at, GRAIN) == seen);
	EXPECT(cuMemsetD32(seen, 1, 1) != CUDA_SUCCESS);
}

/* A capture elsewhere in the process is not disturbed by the making of a twin. */
static void capture(const char *mode)
{
	CUdeviceptr at = allocate(1);
	CUgraph graph;

	CHECK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
	CUdeviceptr twin = view(at, GRAIN);
	CHECK(cuMemcpyDtoDAsync(q, twin, 64, stream));
	CHECK(cuStreamEndCapture(stream, &graph));
	CHECK(cuGraphDestroy(graph));
}

/* Copies of unknown times may end: pins what a program without any view pays, one call each. */
static void untouched(const char *mode)
{
	unsigned long long made = calls("cuMemMap");
	CUdeviceptr at = allocate(2);
	if (calls("cuMemMap") == made)
		cannot("this driver does not count its calls");
	CUdeviceptr twice = reserve(2);

	map(twice, 2);
	EXPECT(calls("cuMemMap") == made + 2);
	give_back(at, 2);
	give_back(twice, 2);
	EXPECT(calls("cuMemUnmap") == 2 && calls("cuMemGetAccess") == 0 && calls("cuMemRetainAllocationHandle") == 0);
}

/* The child of a process that used CUDA has no views; the parent's stay. */
static void forked(const char *mode)
{
	CUdeviceptr at = allocate(1), twin = view(at, GRAIN);
	uint64_t none = 77;
	int status;

	pid_t child = fork();
	if (!child)
		_exit(cuconst_view(at, 16, &none) == CUCONST_ERROR_NOT_ACTIVE && none == 77 ? 0 : 1);
	EXPECT(waitpid(child, &status, 0) == child && status == 0);
	CHECK(cuMemsetD32(at, 81, 1));
	EXPECT(word_at(twin) == 81);
	give_back(at, 1);
}

/* The statistics are about protections: a twin of many gigabytes is none. */
static void not_counted(const char *mode)
{
	CUdeviceptr at = allocate(4);
	struct cuconst_range_info info;
	size_t count = 0;

	CUdeviceptr twin = view(at, GRAIN);
	EXPECT(stats().ranges == 0 && stats().bytes == 0);
	CHECK(cuconst_query(twin, 16, &info, 1, &count));
	EXPECT(count == 1 && !strcmp(info.label, "read-only view"));
	EXPECT(cuconst_check(0) == CUCONST_OK);
}

static const struct scene scenes[] = {
	{"writes_fail", writes_fail},
	{"memory_operation", memory_operation},
	{"mapping_calls", mapping_calls},
	{"of_a_view", of_a_view},
	{"grows", grows},
	{"follows_access", follows_access},
	{"reasons", reasons},
	{"off", off},
	{"no_room", no_room},
	{"second_is_free", second_is_free},
	{"threads", threads},
	{"contexts", contexts},
	{"capture", capture},
	{"untouched", untouched},
	{"forked", forked},
	{"not_counted", not_counted},
	{NULL, NULL},
};

int main(int argc, char **argv)
{
	start();
	return scene_main(argc, argv, scenes);
}
