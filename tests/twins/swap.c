/*
 * Scenes about strict's swapped arguments: reads are right, stores fault and are named, and what must not be swapped is
 * not.
 */
#include <pthread.h>

#include "swap.h"

/* A kernel that may store, and does not: it reads the twin, gets the right sum, and nothing is compared afterwards. */
static void reads(const char *argument)
{
	int count = 100, store = 0;
	void *params[] = {&w, &out, &count, &store};

	guard();
	for (int i = 0; i < 100; i++)
		run("read_or_store", 1, params);
	EXPECT((int)result() == 99 * 50);
	EXPECT(params[0] == &w); /* the program's own list is untouched */
	EXPECT(stats().verified == 0 && stats().stores == 100);
}

static void stores(const char *argument)
{
	int count = 100, store = 1;
	void *params[] = {&w, &out, &count, &store};

	guard();
	run("read_or_store", 1, params);
	cuStreamSynchronize(stream);
	_exit(7); /* not reached in strict */
}

static void store_at_exit(const char *argument)
{
	int count = 100, store = 1;
	void *params[] = {&w, &out, &count, &store};

	guard();
	run("read_or_store", 1, params);
}

static void store_extra(const char *argument)
{
	struct {
		CUdeviceptr data, sum;
		int count, store;
	} block = {w, out, 10, 0};
	size_t size = sizeof block;
	void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &block, CU_LAUNCH_PARAM_BUFFER_SIZE, &size, CU_LAUNCH_PARAM_END};

	guard();
	CHECK(cuLaunchKernel(function("read_or_store"), 1, 1, 1, 1, 1, 1, 0, stream, NULL, extra));
	EXPECT((int)result() == 45 && block.data == w && stats().verified == 0);
	block.store = 1;
	CHECK(cuLaunchKernel(function("read_or_store"), 1, 1, 1, 1, 1, 1, 0, stream, NULL, extra));
	cuStreamSynchronize(stream);
	_exit(7);
}

/* The pointer in the struct is swapped, the number beside it is not. */
static void store_boxed(const char *argument)
{
	struct {
		int count, pad;
		CUdeviceptr data;
		uint64_t key;
	} box = {5, 0, w, w + 64};
	int store = 0;
	void *params[] = {&box, &out, &store};

	guard();
	run("boxed", 1, params);
	EXPECT((uint64_t)result() == ((w + 64) ^ 4) && stats().verified == 0);
	store = 1;
	run("boxed", 1, params);
	cuStreamSynchronize(stream);
	_exit(7);
}

/* Argument: which of the two is protected memory. */
static void either(const char *argument)
{
	int which = 1, value = 3;
	CUdeviceptr a = w, b = q + 64;
	void *params[] = {&a, &b, &which, &value};

	guard();
	which = 0;
	run("either", 32, params);
	CHECK(cuStreamSynchronize(stream));
	EXPECT(word_at(q + 64) == 3 && word_at(w) == 0 && stats().verified == 0);
	which = 1;
	run("either", 32, params);
	cuStreamSynchronize(stream);
	_exit(7);
}

static void atomics(const char *argument)
{
	int by = 1;
	void *params[] = {&w, &by};

	guard();
	run("add_each", 32, params);
	cuStreamSynchronize(stream);
	_exit(7);
}

/* Both ends in place: the kernel ends, fills the range, and is found by comparing. */
static void pair(const char *argument)
{
	CUdeviceptr first = w, last = w + 64;
	int value = 9;
	void *params[] = {&first, &last, &value};

	guard();
	run("fill_pair", 1, params);
	cuStreamSynchronize(stream);
	_exit(7);
}

/* One end in the range, the other one behind it. */
static void pair_across(const char *argument)
{
	CUdeviceptr first = w - 0, last = w + WORDS * 4;
	int value = 9;
	void *params[] = {&first, &last, &value};

	protect(w, 64, "w");
	run("fill_pair", 1, params);
	cuStreamSynchronize(stream);
	_exit(7);
}

static void difference(const char *argument)
{
	CUdeviceptr first = w, last = w + 400;
	void *params[] = {&first, &last, &out};

	guard();
	run("distance", 1, params);
	EXPECT(result() == 100);
}

/* A number that looks like an address of the range is a number: the kernel gets it as it is. */
static void packed(const char *argument)
{
	CUdeviceptr data = q + 256;
	uint64_t key = w + 128;
	void *params[] = {&data, &key, &out};

	guard();
	run("packed", 1, params);
	EXPECT((uint64_t)result() == key * 3 + 1 && word_at(q + 260) == (int)key);
}

/* It compares its pointers, so it gets both as they are, and is found by comparing bytes. */
static void in_place(const char *argument)
{
	CUdeviceptr told = q + 512;
	void *params[] = {&w, &w, &told};

	guard();
	run("in_place", 8, params);
	cuStreamSynchronize(stream);
	_exit(7);
}

/* What is recorded is not swapped: graphs keep their pointers. */
static void captured(const char *argument)
{
	int count = 100, store = 0;
	void *params[] = {&w, &out, &count, &store};
	CUgraph graph;
	CUgraphExec exec;

	guard();
	CHECK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
	run("read_or_store", 1, params);
	CHECK(cuStreamEndCapture(stream, &graph));
	CHECK(cuGraphInstantiateWithFlags(&exec, graph, 0));
	CHECK(cuGraphLaunch(exec, stream));
	EXPECT((int)result() == 99 * 50 && stats().verified > 0);
	CUDA_KERNEL_NODE_PARAMS node;
	CUgraphNode nodes[1];
	size_t one = 1;
	CHECK(cuGraphGetNodes(graph, nodes, &one));
	CHECK(cuGraphKernelNodeGetParams(nodes[0], &node));
	EXPECT(*(CUdeviceptr *)node.kernelParams[0] == w);
}

/* A launch that may begin before the last one has ended is verified. */
static void overlapping(const char *argument)
{
	int count = 100, store = 0;
	void *params[] = {&w, &out, &count, &store};
	CUlaunchAttribute serial = {.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION,
	                            .value = {.programmaticStreamSerializationAllowed = 1}};
	CUlaunchConfig config = one_thread(stream, &serial);

	guard();
	CHECK(cuLaunchKernelEx(&config, function("read_or_store"), params, NULL));
	EXPECT((int)result() == 99 * 50 && stats().verified == 1);
	serial.value.programmaticStreamSerializationAllowed = 0;
	CHECK(cuLaunchKernelEx(&config, function("read_or_store"), params, NULL));
	EXPECT((int)result() == 99 * 50 && stats().verified == 1);
}

/* A range that is to be verified only, and one whose owner launches. */
static void exempt(const char *argument)
{
	int count = 10, store = 1;
	void *params[] = {&w, &out, &count, &store};
	struct cuconst_protect_info info = {.size = sizeof info, .owner = "swap"};
	cuconst_handle handle;

	CHECK(cuconst_protect(w, WORDS * 4, "w", 0, &info, &handle));
	run("read_or_store", 1, params);
	EXPECT((int)result() == 45 && word_at(w) == 45);
	CHECK(cuconst_unprotect(handle));
	store = 0;
	CHECK(cuconst_protect(w, WORDS * 4, "w", CUCONST_VERIFY_ONLY, NULL, &handle));
	unsigned long long before = stats().verified;
	run("read_or_store", 1, params);
	CHECK(cuStreamSynchronize(stream));
	EXPECT(stats().verified > before);
}

/* Nested ranges, of which the inner one has an owner: what one of them does not allow is not done. */
static void nested(const char *argument)
{
	int count = 10, store = 1;
	void *params[] = {&w, &out, &count, &store};
	struct cuconst_protect_info info = {.size = sizeof info, .owner = "swap"};
	cuconst_handle handle;

	CHECK(cuconst_protect(w, 64, "inner", 0, &info, &handle));
	CHECK(cuconst_protect(w, 4096, "outer", 0, &info, &handle));
	run("read_or_store", 1, params);
	EXPECT((int)result() == 45 && word_at(w) == 45);
}

/* Without a twin (plain memory) kernels are verified as before. */
static void no_twin(const char *argument)
{
	CUdeviceptr plain = p;
	int count = 10, store = 0;
	void *params[] = {&plain, &out, &count, &store};

	protect(p, SIZE, "p");
	run("read_or_store", 1, params);
	CHECK(cuStreamSynchronize(stream));
	EXPECT(stats().verified == 1);
}

/* No room for the twin: verified, and said once. */
static void no_room(const char *argument)
{
	int count = 100, store = 0;
	void *params[] = {&w, &out, &count, &store};
	CUdeviceptr other = allocate(1);

	fail_next("cuMemAddressReserve", CUDA_ERROR_OUT_OF_MEMORY);
	guard();
	fail_next("cuMemAddressReserve", CUDA_ERROR_OUT_OF_MEMORY);
	protect(other, GRAIN, "other");
	run("read_or_store", 1, params);
	EXPECT((int)result() == 99 * 50 && stats().verified == 1);
}

/* The protection ends with the mapping; other memory at the same addresses is another matter. */
static void freed_and_mapped_again(const char *argument)
{
	int count = 100, store = 0;
	void *params[] = {&w, &out, &count, &store};

	guard();
	run("read_or_store", 1, params);
	EXPECT((int)result() == 99 * 50);
	CHECK(cuMemUnmap(w, GRAIN));
	map(w, 1);
	CHECK(cuMemsetD32(w, 2, WORDS));
	CHECK(cuCtxSynchronize()); /* the stream does not wait for it */
	run("read_or_store", 1, params);
	EXPECT((int)result() == 200);
	guard();
	run("read_or_store", 1, params);
	EXPECT((int)result() == 200 && stats().verified == 0);
}

/* log: the kernel stores into the protected memory itself, and is found by comparing. */
static void no_fault_in_log(const char *argument)
{
	int by = 1;
	void *params[] = {&w, &by};

	view(w, 4096);
	guard();
	run("add_each", 8, params);
	CHECK(cuStreamSynchronize(stream));
	EXPECT(word_at(w) == 1);
}

/* A parameter that needs more room than a call has. */
static void large_struct(const char *argument)
{
	static struct {
		CUdeviceptr data[200];
	} large;
	int store = 0;
	void *params[] = {&large, &out, &store};

	large.data[199] = w;
	guard();
	run("large_struct", 1, params);
	EXPECT((int)result() == 5 && stats().verified == 0 && large.data[199] == w);
}

/* Threads that launch with swapped arguments, each in a stream of its own. */
static void *launch_many(void *data)
{
	CUstream mine;
	CUdeviceptr sum = q + 64 * (size_t)data;
	int count = 100, store = 0;
	void *params[] = {&w, &sum, &count, &store};

	CHECK(cuCtxSetCurrent(context));
	CHECK(cuStreamCreate(&mine, CU_STREAM_NON_BLOCKING));
	for (int i = 0; i < 1000; i++) {
		CHECK(cuLaunchKernel(function("read_or_store"), 1, 1, 1, 1, 1, 1, 0, mine, params, NULL));
		if (i % 100 == 99) {
			CHECK(cuStreamSynchronize(mine));
			EXPECT(word_at(sum) == 99 * 50);
			CHECK(cuMemsetD32Async(sum, 0, 1, mine));
		}
	}
	return NULL;
}

static void threads(const char *argument)
{
	pthread_t of[4];

	guard();
	for (size_t i = 0; i < 4; i++)
		EXPECT(pthread_create(&of[i], NULL, launch_many, (void *)i) == 0);
	for (size_t i = 0; i < 4; i++)
		EXPECT(pthread_join(of[i], NULL) == 0);
	EXPECT(stats().verified == 0 && stats().stores == 4000);
}

/*
 * Memory of the first device that the second one may use: the second one reads through the twin. Argument: 1: it
 * stores, too.
 */
static void peer(const char *argument)
{
	CUdevice other;
	CUcontext second;
	CUmodule there;
	CUfunction reader;
	CUstream work;
	CUdeviceptr sum;
	int devices = 0, can = 0, count = 10, store = atoi(argument);

	CHECK(cuDeviceGetCount(&devices));
	if (devices < 2)
		cannot("one device only");
	CHECK(cuDeviceGet(&other, 1));
	CHECK(cuDeviceCanAccessPeer(&can, other, 0));
	if (!can)
		cannot("the devices do not reach each other's memory");
	const CUmemAccessDesc access = {.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 1},
	                                .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
	CHECK(cuMemSetAccess(w, GRAIN, &access, 1));
	CUdeviceptr twin = view(w, 4096);
	CHECK(cuDevicePrimaryCtxRetain(&second, other));
	CHECK(cuCtxSetCurrent(second));
	static char text[1 << 16];
	FILE *file = fopen(getenv("SWAP_PTX"), "r");
	EXPECT(file && fread(text, 1, sizeof text - 1, file) > 0);
	fclose(file);
	CHECK(cuModuleLoadData(&there, text));
	CHECK(cuModuleGetFunction(&reader, there, "read_or_store"));
	CHECK(cuMemAlloc(&sum, 8));
	CHECK(cuStreamCreate(&work, CU_STREAM_NON_BLOCKING));
	void *params[] = {&twin, &sum, &count, &store};
	CHECK(cuLaunchKernel(reader, 1, 1, 1, 1, 1, 1, 0, work, params, NULL));
	if (!store) {
		CHECK(cuStreamSynchronize(work));
		EXPECT(word_at(sum) == 45);
		_exit(0);
	}
	EXPECT(cuStreamSynchronize(work) != CUDA_SUCCESS);
	/* The first device's context may live, or not (driver 580); nothing was written there. */
	int words[2] = {0, 1};
	CHECK(cuCtxSetCurrent(context));
	CUresult result = cuMemcpyDtoH(words, w, sizeof words);
	EXPECT(result == CUDA_SUCCESS || result == CUDA_ERROR_ILLEGAL_ADDRESS);
	EXPECT(words[0] == 0 && words[1] == 1);
	_exit(5);
}

/* An address that the kernel hands out, or that memory is compared with, is the program's own. */
static void handed_out(const char *argument)
{
	CUdeviceptr table[2];
	int store = 0;
	void *params[] = {&w, &out, &store};

	guard();
	run("publish", 2, params);
	EXPECT((uint64_t)result() == w && word_at(w) == 0);
	CHECK(cuMemcpyDtoH(table, out, sizeof table));
	EXPECT(table[1] == w + 4);
	run("take_out", 1, params);
	EXPECT(result() == 0);
}

static const struct scene scenes[] = {
	{"handed_out", handed_out},
	{"reads", reads},
	{"stores", stores},
	{"store_at_exit", store_at_exit},
	{"store_extra", store_extra},
	{"store_boxed", store_boxed},
	{"either", either},
	{"atomics", atomics},
	{"pair", pair},
	{"pair_across", pair_across},
	{"difference", difference},
	{"packed", packed},
	{"in_place", in_place},
	{"captured", captured},
	{"overlapping", overlapping},
	{"exempt", exempt},
	{"nested", nested},
	{"no_twin", no_twin},
	{"no_room", no_room},
	{"freed_and_mapped_again", freed_and_mapped_again},
	{"no_fault_in_log", no_fault_in_log},
	{"large_struct", large_struct},
	{"threads", threads},
	{"peer", peer},
	{NULL, NULL},
};

int main(int argc, char **argv)
{
	start();
	prepare();
	return scene_main(argc, argv, scenes);
}
