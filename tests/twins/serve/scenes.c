/*
 * Programs that allocate, under serving or not: `[SERVE_LEAVE=BYTES] serve_scenes SCENE`. Each checks itself; what it
 * prints are figures, `name value` a line. Every byte that is handed out is written with a pattern of its piece's and
 * read back before it is freed, so that pieces that overlap, move or vanish are found.
 */
#define __CUDA_API_VERSION_INTERNAL 1
#include <cuda.h>
#include <dlfcn.h>
#include <malloc.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/twins/serve/check.h"

#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)

static CUcontext context;
static CUdevice device;

static CUdeviceptr get(size_t bytes)
{
	CUdeviceptr at = 0;

	NEED(cuMemAlloc_v2(&at, bytes));
	return at;
}

static size_t free_memory(void)
{
	size_t bytes, total;

	NEED(cuMemGetInfo_v2(&bytes, &total));
	return bytes;
}

static size_t host_memory(void)
{
	return mallinfo2().uordblks + mallinfo2().hblkhd;
}

static void figure(const char *name, size_t value)
{
	printf("%s %zu\n", name, value);
}

struct mine {
	CUdeviceptr at;
	size_t bytes;
	unsigned char pattern;
};

static void fill(struct mine *mine, size_t bytes, uint64_t *seed)
{
	mine->at = get(bytes);
	mine->bytes = bytes;
	mine->pattern = (unsigned char)(1 + next_random(seed) % 255);
	NEED(cuMemsetD8_v2(mine->at, mine->pattern, bytes));
}

/* Its first, last and some byte in between. */
static void verify(const struct mine *mine, uint64_t *seed)
{
	size_t places[] = {0, mine->bytes - 1, next_random(seed) % mine->bytes};

	for (int i = 0; i < 3; i++) {
		unsigned char byte = 0;
		NEED(cuMemcpyDtoH_v2(&byte, mine->at + places[i], 1));
		CHECK_EQUAL(byte, mine->pattern);
	}
}

static void drop(struct mine *mine, uint64_t *seed)
{
	verify(mine, seed);
	NEED(cuMemFree_v2(mine->at));
	mine->at = 0;
}

static void random_trace(uint64_t seed, int rounds, int slots, size_t most)
{
	struct mine *mine = calloc((size_t)slots, sizeof *mine);

	for (int i = 0; i < rounds; i++) {
		struct mine *one = &mine[next_random(&seed) % (unsigned)slots];
		size_t bytes = 1 + next_random(&seed) % (next_random(&seed) % 16 ? 64 * KIB : most);

		if (one->at)
			drop(one, &seed);
		else
			fill(one, bytes, &seed);
	}
	for (int i = 0; i < slots; i++)
		if (mine[i].at)
			drop(&mine[i], &seed);
	free(mine);
}

static void trace(void)
{
	size_t before = free_memory();

	random_trace(1, 20000, 400, 4 * MIB);
	CHECK_EQUAL(free_memory(), before);
}

static void *trace_thread(void *number)
{
	NEED(cuCtxSetCurrent(context));
	random_trace((uintptr_t)number, 3000, 60, 3 * MIB);
	return NULL;
}

static void threads(void)
{
	pthread_t list[6];
	size_t before = free_memory();

	for (uintptr_t i = 0; i < 6; i++)
		CHECK(!pthread_create(&list[i], NULL, trace_thread, (void *)(i + 1)));
	for (int i = 0; i < 6; i++)
		CHECK(!pthread_join(list[i], NULL));
	CHECK_EQUAL(free_memory(), before);
}

/* What 10^5 allocations of 256 bytes cost. */
static void many(void)
{
	enum { COUNT = 100000 };
	CUdeviceptr *at = calloc(COUNT, sizeof *at);
	size_t device_before = free_memory(), host_before = host_memory();

	for (int i = 0; i < COUNT; i++)
		at[i] = get(256);
	figure("device_bytes", device_before - free_memory());
	figure("host_bytes", host_memory() - host_before);
	for (int i = 0; i < COUNT; i++)
		NEED(cuMemFree_v2(at[i]));
	CHECK_EQUAL(free_memory(), device_before);
	free(at);
}

/* Nothing grows: not after 10^3, not after 10^5. */
static void leak(void)
{
	size_t device_before = 0, host_before = 0;

	for (int i = 0; i < 100000; i++) {
		if (i == 1000) {
			device_before = free_memory();
			host_before = host_memory();
		}
		NEED(cuMemFree_v2(get(i % 10 ? 1 + (size_t)i % 4096 : 2 * MIB + (size_t)i)));
	}
	CHECK_EQUAL(free_memory(), device_before);
	CHECK(host_memory() <= host_before + 4096);
}

/* As CuPy's pool asks: multiples of 512 bytes, of many sizes, kept until the pool is emptied. */
static void cupy(void)
{
	enum { COUNT = 600 };
	CUdeviceptr at[COUNT];
	size_t asked = 0, before = free_memory();
	uint64_t seed = 5;

	for (int i = 0; i < COUNT; i++) {
		unsigned power = 9 + (unsigned)(next_random(&seed) % 13);
		size_t bytes = (((size_t)1 << power) + next_random(&seed) % ((size_t)1 << power) + 511) / 512 * 512;

		at[i] = get(bytes);
		asked += bytes;
	}
	figure("asked", asked);
	figure("device_bytes", before - free_memory());
	for (int i = 0; i < COUNT; i++)
		NEED(cuMemFree_v2(at[i]));
	CHECK_EQUAL(free_memory(), before);
}

/* As PyTorch's cache asks: 2 MiB for small, 20 MiB for middle, multiples of 2 MiB for large ones. */
static void torch(void)
{
	enum { COUNT = 60 };
	CUdeviceptr at[COUNT];
	size_t asked = 0, before = free_memory();
	uint64_t seed = 6;

	for (int i = 0; i < COUNT; i++) {
		size_t bytes = i % 3 == 0 ? 2 * MIB : i % 3 == 1 ? 20 * MIB : (5 + next_random(&seed) % 20) * 2 * MIB;

		at[i] = get(bytes);
		asked += bytes;
	}
	figure("asked", asked);
	figure("device_bytes", before - free_memory());
	for (int i = 0; i < COUNT; i++)
		NEED(cuMemFree_v2(at[i]));
	CHECK_EQUAL(free_memory(), before);
}

/*
 * A framework's way: out of memory, the cache is flushed, and the same size is there. Until nothing is left, in three
 * shapes.
 */
static void out_of_memory(void)
{
	enum { ROOM = 4096 };
	static CUdeviceptr at[ROOM];
	size_t before = free_memory();
	size_t sizes[] = {300 * KIB, 3 * MIB, 700 * KIB};

	for (int shape = 0; shape < 3; shape++) {
		int count = 0;
		CUresult result;

		while ((result = cuMemAlloc_v2(&at[count], sizes[shape])) == CUDA_SUCCESS && count < ROOM - 1)
			count++;
		CHECK_EQUAL(result, CUDA_ERROR_OUT_OF_MEMORY);
		CHECK_EQUAL(at[count], 0);
		figure(shape == 0 ? "small" : shape == 1 ? "large" : "small_again", (size_t)count * sizes[shape]);
		while (count--)
			NEED(cuMemFree_v2(at[count]));
		CHECK_EQUAL(free_memory(), before);
		CUdeviceptr all = get(before / 4 * 3);
		NEED(cuMemFree_v2(all));
	}
}

/* Memory that a stream frees. A driver finds it at once or only after the stream was waited for, as its threads run. */
static CUdeviceptr get_behind(CUstream stream, size_t bytes, size_t *waits)
{
	CUdeviceptr at = 0;
	CUresult result = cuMemAlloc_v2(&at, bytes);

	if (result == CUDA_SUCCESS)
		return at;
	CHECK_EQUAL(result, CUDA_ERROR_OUT_OF_MEMORY);
	++*waits;
	NEED(cuStreamSynchronize(stream));
	return get(bytes);
}

/* Memory freed in a stream's order, or during a capture, is found again when it is needed. */
static void waiting_memory_is_found(void)
{
	size_t before = free_memory(), most = before / 4 * 3, waits = 0;
	CUstream stream;
	CUgraph graph;

	NEED(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	for (int i = 0; i < 4; i++)
		NEED(cuMemFreeAsync(get_behind(stream, most, &waits), stream));
	CUdeviceptr one = get_behind(stream, most, &waits);
	CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
	NEED(cuThreadExchangeStreamCaptureMode(&mode));
	NEED(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
	NEED(cuMemFree_v2(one));
	NEED(cuStreamEndCapture(stream, &graph));
	one = get(most);
	NEED(cuMemFree_v2(one));
	CHECK_EQUAL(free_memory(), before);
	NEED(cuGraphDestroy(graph));
	NEED(cuStreamDestroy_v2(stream));
	figure("waits", waits);
}

/* cuMemFree waits for the work that uses the memory: a slow stream has written before it returns. */
static void a_free_waits(void)
{
	unsigned char seen[64] = {0};
	CUstream stream;
	CUdeviceptr used = get(4096), other = get(64);

	NEED(cuMemsetD8_v2(other, 0, 64));
	NEED(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	for (int i = 0; i < 20; i++)
		NEED(cuMemsetD8Async(other, (unsigned char)i, 64, stream));
	NEED(cuMemsetD8Async(other, 99, 64, stream));
	NEED(cuMemFree_v2(used));
	NEED(cuStreamQuery(stream));
	NEED(cuMemcpyDtoH_v2(seen, other, 64));
	CHECK_EQUAL(seen[63], 99);
	NEED(cuMemFree_v2(other));
	NEED(cuStreamDestroy_v2(stream));
}

static void ends_of_contexts(void)
{
	CUcontext other;

	/* What a first context makes the driver keep. */
	NEED(cuCtxCreate_v2(&other, 0, device));
	get(100);
	NEED(cuCtxDestroy_v2(other));
	size_t before = free_memory();
	for (int i = 0; i < 20; i++) {
		NEED(cuCtxCreate_v2(&other, 0, device));
		get(100);
		get(5 * MIB);
		NEED(cuCtxDestroy_v2(other));
		CHECK_EQUAL(free_memory(), before);
	}
	for (int i = 0; i < 5; i++) {
		get(100);
		get(5 * MIB);
		NEED(cuDevicePrimaryCtxReset_v2(device));
		CUcontext again;
		NEED(cuDevicePrimaryCtxRetain(&again, device));
		NEED(cuCtxSetCurrent(again));
		CHECK_EQUAL(free_memory(), before);
	}
}

/* Each device can have what the other has, once it asked for it, and no longer than that. */
static void two_devices(void)
{
	CUcontext other;
	CUdevice second;
	unsigned char byte = 0;

	NEED(cuDeviceGet(&second, 1));
	NEED(cuDevicePrimaryCtxRetain(&other, second));
	CUdeviceptr mine = get(1000), large = get(3 * MIB);
	NEED(cuMemsetD8_v2(mine, 5, 1000));
	NEED(cuCtxSetCurrent(other));
	CUdeviceptr theirs = get(1000);
	int ordinal = -1;
	NEED(cuPointerGetAttribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, theirs));
	CHECK_EQUAL(ordinal, 1);
	NEED(cuMemcpyPeer(theirs, other, mine, context, 1000));
	NEED(cuMemcpyDtoH_v2(&byte, theirs + 999, 1));
	CHECK_EQUAL(byte, 5);
	NEED(cuCtxEnablePeerAccess(context, 0));
	CHECK_EQUAL(cuCtxEnablePeerAccess(context, 0), CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED);
	NEED(cuMemcpyDtoD_v2(theirs, mine, 1000));
	NEED(cuMemsetD8_v2(large, 6, 3 * MIB));
	NEED(cuCtxSynchronize()); /* a set is not waited for, and the other context's copy waits for its own work */
	NEED(cuCtxSetCurrent(context));
	NEED(cuMemcpyDtoH_v2(&byte, large + 3 * MIB - 1, 1));
	CHECK_EQUAL(byte, 6);
	CUdeviceptr later = get(3 * MIB);
	NEED(cuCtxSetCurrent(other));
	NEED(cuMemsetD8_v2(later, 7, 3 * MIB));
	NEED(cuCtxSynchronize());
	NEED(cuCtxDisablePeerAccess(context));
	CHECK_EQUAL(cuCtxDisablePeerAccess(context), CUDA_ERROR_PEER_ACCESS_NOT_ENABLED);
	NEED(cuCtxSetCurrent(context));
	NEED(cuMemcpyDtoH_v2(&byte, later, 1));
	CHECK_EQUAL(byte, 7);
	NEED(cuMemFree_v2(theirs));
	NEED(cuMemFree_v2(mine));
	NEED(cuMemFree_v2(large));
	NEED(cuMemFree_v2(later));
	NEED(cuDevicePrimaryCtxRelease_v2(second));
}

/* The child of a process that used CUDA is refused by the driver as it would be, and the parent does not notice. */
static void fork_and_go_on(void)
{
	CUdeviceptr at = get(1000);
	pid_t child = fork();

	CHECK(child >= 0);
	if (!child) {
		CUdeviceptr mine = 0;
		_exit(cuMemAlloc_v2(&mine, 16) == CUDA_SUCCESS || cuMemFree_v2(at) == CUDA_SUCCESS);
	}
	int status = -1;
	CHECK_EQUAL(waitpid(child, &status, 0), child);
	figure("child", (size_t)status);
	NEED(cuMemsetD8_v2(at, 1, 1000));
	NEED(cuMemFree_v2(at));
}

/* What the driver does not do for mapped memory is done for it: copies and sets have ended when they return. */
static void synchronous(void)
{
	CUdeviceptr at = get(1000), other = get(1000);
	uint64_t (*calls)(const char *);
	unsigned one = 1, set = 0;

	*(void **)&calls = dlsym(RTLD_DEFAULT, "softgpu_calls");
	NEED(cuPointerSetAttribute(&one, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, at));
	NEED(cuPointerGetAttribute(&set, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, at));
	CHECK_EQUAL(set & 1, 1);
	uint64_t before = calls ? calls("cuStreamSynchronize") : 0;
	NEED(cuMemcpyDtoD_v2(at, other, 1000));
	NEED(cuMemsetD8_v2(at, 1, 1000));
	NEED(cuMemsetD8Async(at, 1, 1000, NULL));
	NEED(cuMemcpyDtoDAsync_v2(at, other, 1000, NULL));
	printf("waits %llu\n", calls ? (unsigned long long)(calls("cuStreamSynchronize") - before) : 0);
}

/* What is served cannot be shared, and the refusal says what can be done. */
static void share(void)
{
	CUipcMemHandle handle;
	CUdeviceptr at = get(1000);

	figure("result", cuIpcGetMemHandle(&handle, at));
	figure("again", cuIpcGetMemHandle(&handle, at));
	NEED(cuMemFree_v2(at));
}

/* On a device with much memory: all but this is taken, so that a scene can run out of it. */
static void leave(size_t bytes)
{
	size_t all = free_memory();

	get((all - bytes) / (2 * MIB) * 2 * MIB);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} scenes[] = {
		{"trace", trace},
		{"threads", threads},
		{"many", many},
		{"leak", leak},
		{"cupy", cupy},
		{"torch", torch},
		{"out_of_memory", out_of_memory},
		{"waiting_memory_is_found", waiting_memory_is_found},
		{"a_free_waits", a_free_waits},
		{"ends_of_contexts", ends_of_contexts},
		{"two_devices", two_devices},
		{"fork", fork_and_go_on},
		{"share", share},
		{"synchronous", synchronous},
	};

	for (size_t i = 0; argc == 2 && i < sizeof scenes / sizeof *scenes; i++)
		if (!strcmp(argv[1], scenes[i].name)) {
			NEED(cuInit(0));
			NEED(cuDeviceGet(&device, 0));
			NEED(cuDevicePrimaryCtxRetain(&context, device));
			NEED(cuCtxSetCurrent(context));
			if (getenv("SERVE_LEAVE"))
				leave(strtoull(getenv("SERVE_LEAVE"), NULL, 10));
			scenes[i].run();
			return 0;
		}
	fprintf(stderr, "no scene of that name\n");
	return 2;
}
