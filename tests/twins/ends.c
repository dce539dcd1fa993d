/*
 * Scenes about what ends while twins are in use, and what comes in its place: contexts, streams, neighbouring
 * reservations; and about what begins beyond an end.
 */
#include <pthread.h>
#include <stdbool.h>
#include <sys/mman.h>

#include "vmm.h"

static CUmodule kernels;

static CUfunction function(const char *name)
{
	static char text[1 << 16];
	FILE *file = fopen(getenv("SWAP_PTX"), "r");
	CUfunction found;

	EXPECT(file && fread(text, 1, sizeof text - 1, file) > 0);
	fclose(file);
	CHECK(cuModuleLoadData(&kernels, text));
	CHECK(cuModuleGetFunction(&found, kernels, name));
	return found;
}

static void store_through(CUdeviceptr twin, CUstream work)
{
	int by = 1;
	void *params[] = {&twin, &by};

	CHECK(cuLaunchKernel(function("add_each"), 1, 1, 1, 8, 1, 1, 0, work, params, NULL));
}

/* With many drivers a fault ends CUDA for the process: there is nothing after it. */
static void needs_life(CUresult result)
{
	if (result == CUDA_ERROR_ILLEGAL_ADDRESS)
		cannot("a fault ends CUDA for the process with this driver");
	CHECK(result);
}

/*
 * A program that resets the device after an error, and makes the same mistake again: the context has the same handle,
 * the violation is another one.
 */
static void reset_and_again(const char *argument)
{
	CUcontext before, after;
	CUdeviceptr at = allocate(1);

	CHECK(cuCtxGetCurrent(&before));
	store_through(view(at, GRAIN), stream);
	EXPECT(cuStreamSynchronize(stream) == CUDA_ERROR_ILLEGAL_ADDRESS);
	cuDevicePrimaryCtxReset(0);
	needs_life(cuDevicePrimaryCtxRetain(&after, 0));
	start();
	EXPECT(before == after);
	at = allocate(1);
	store_through(view(at, GRAIN), stream);
	EXPECT(cuStreamSynchronize(stream) == CUDA_ERROR_ILLEGAL_ADDRESS);
	_exit(5);
}

/* What was in flight in a context that is gone has nothing to do with an error of the next one. */
static void reset_then_own_fault(const char *argument)
{
	CUdeviceptr at = allocate(1), twin = view(at, GRAIN), wild = 4096;
	int count = 4, no = 0;
	void *params[] = {&twin, &q, &count, &no};

	CHECK(cuLaunchKernel(function("read_or_store"), 1, 1, 1, 1, 1, 1, 0, stream, params, NULL));
	CHECK(cuDevicePrimaryCtxReset(0));
	start();
	store_through(wild, NULL);
	EXPECT(cuStreamSynchronize(NULL) == CUDA_ERROR_ILLEGAL_ADDRESS);
	_exit(5);
}

/* A view belongs to no context: it was made in one that is gone, and is read-only, known and named all the same. */
static void made_in_another(const char *argument)
{
	CUdeviceptr at = allocate(1), twin;
	CUcontext each;

	CHECK(cuCtxCreate(&each, NULL, 0, 0));
	twin = view(at, GRAIN);
	CHECK(cuCtxDestroy(each));
	CHECK(cuCtxSetCurrent(context));
	EXPECT(view(at, GRAIN) == twin);
	if (!strcmp(argument, "deny")) {
		EXPECT(cuMemsetD8(twin, 1, 64) == CUDA_ERROR_NOT_PERMITTED);
		EXPECT(cuStreamWriteValue32(stream, twin, 7, 0) == CUDA_ERROR_NOT_PERMITTED);
		_exit(5);
	}
	store_through(twin, stream);
	EXPECT(cuStreamSynchronize(stream) == CUDA_ERROR_ILLEGAL_ADDRESS);
	_exit(5);
}

/* More contexts, one after the other, than anybody would keep in mind. */
static void many_contexts(const char *argument)
{
	CUdeviceptr at = allocate(1), twin = view(at, GRAIN);
	int rounds = atoi(argument);

	for (int i = 0; i < rounds; i++) {
		CUcontext each;
		needs_life(cuCtxCreate(&each, NULL, 0, 0));
		store_through(twin, NULL);
		EXPECT(cuCtxSynchronize() == CUDA_ERROR_ILLEGAL_ADDRESS);
		cuCtxDestroy(each);
	}
	_exit(5);
}

/* Nobody synchronises: the context's end is the last chance to see what it did. */
static void destroyed_at_once(const char *argument)
{
	CUdeviceptr at = allocate(1), twin = view(at, GRAIN);
	CUcontext each;

	CHECK(cuCtxCreate(&each, NULL, 0, 0));
	store_through(twin, NULL);
	cuCtxDestroy(each);
	CHECK(cuCtxSetCurrent(context));
	_exit(5);
}

static void reset_at_once(const char *argument)
{
	CUdeviceptr at = allocate(1), twin = view(at, GRAIN);

	store_through(twin, stream);
	cuDevicePrimaryCtxReset(0);
	_exit(5);
}

/* As reset_at_once, when the fault is known already: no call tells the context's handle then. */
static void reset_later(const char *argument)
{
	CUdeviceptr at = allocate(1), twin = view(at, GRAIN);

	store_through(twin, stream);
	usleep(200000);
	cuDevicePrimaryCtxReset(0);
	_exit(5);
}

/* The default stream's end is not that of a stream which does not wait for it. */
static void default_stream_first(const char *argument)
{
	CUdeviceptr at = allocate(1), twin = view(at, GRAIN);
	CUfunction late = function("late_store");
	int rounds = 3000000;
	void *params[] = {&twin, &rounds};

	CHECK(cuLaunchKernel(late, 1, 1, 1, 1, 1, 1, 0, stream, params, NULL));
	EXPECT(cuStreamQuery(stream) == CUDA_ERROR_NOT_READY);
	if (!strcmp(argument, "legacy"))
		CHECK(cuStreamSynchronize(CU_STREAM_LEGACY));
	else
		CHECK(cuStreamSynchronize(NULL));
	EXPECT(cuStreamSynchronize(stream) == CUDA_ERROR_ILLEGAL_ADDRESS);
	_exit(5);
}

/*
 * An error that comes through a stream or an event of another context than the current one is that context's; what was
 * in flight there and ended well is no candidate of a later one; and the next error, if there can be one, is the
 * current one's.
 */
static void through_another(const char *argument)
{
	CUdeviceptr at = allocate(1), twin = view(at, GRAIN);
	int count = 4, no = 0;
	void *params[] = {&twin, &q, &count, &no};
	CUcontext each;
	CUstream work;
	CUevent event;

	CHECK(cuCtxCreate(&each, NULL, 0, 0));
	CHECK(cuStreamCreate(&work, CU_STREAM_NON_BLOCKING));
	CHECK(cuEventCreate(&event, 0));
	CHECK(cuLaunchKernel(function("read_or_store"), 1, 1, 1, 1, 1, 1, 0, work, params, NULL));
	CHECK(cuCtxSetCurrent(context));
	CHECK(cuStreamSynchronize(work));
	CHECK(cuCtxSetCurrent(each));
	store_through(twin, work);
	cuEventRecord(event, work);
	CHECK(cuCtxSetCurrent(context));
	CUresult result = strcmp(argument, "event") ? cuStreamSynchronize(work) : cuEventSynchronize(event);
	EXPECT(result == CUDA_ERROR_ILLEGAL_ADDRESS);
	needs_life(cuCtxSynchronize());
	store_through(twin, stream);
	EXPECT(cuStreamSynchronize(stream) == CUDA_ERROR_ILLEGAL_ADDRESS);
	_exit(5);
}

/*
 * A stream that was asked, and said that all has ended: what ran there has nothing to do with a later error of the
 * program's own.
 */
static void asked_before_own_fault(const char *argument)
{
	CUdeviceptr at = allocate(1), twin = view(at, GRAIN), wild = 4096;
	int count = 4, no = 0;
	void *params[] = {&twin, &q, &count, &no};

	CHECK(cuLaunchKernel(function("read_or_store"), 1, 1, 1, 1, 1, 1, 0, stream, params, NULL));
	CUresult result;
	while ((result = cuStreamQuery(stream)) == CUDA_ERROR_NOT_READY)
		;
	CHECK(result);
	store_through(wild, stream);
	EXPECT(cuStreamSynchronize(stream) == CUDA_ERROR_ILLEGAL_ADDRESS);
	_exit(5);
}

/* As asked_before_own_fault, where the program learns of the end in another way. */
static void learnt_before_own_fault(const char *argument)
{
	CUdeviceptr at = allocate(1), twin = view(at, GRAIN), wild = 4096;
	int count = 4, no = 0, word;
	void *params[] = {&twin, &q, &count, &no};
	bool copies = !strcmp(argument, "copy") || !strcmp(argument, "copy_back");
	CUstream work = copies ? NULL : stream;
	CUresult result;
	CUevent event;

	CHECK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
	CHECK(cuLaunchKernel(function("read_or_store"), 1, 1, 1, 1, 1, 1, 0, work, params, NULL));
	CHECK(cuEventRecord(event, work));
	if (!strcmp(argument, "event"))
		CHECK(cuEventSynchronize(event));
	else if (!strcmp(argument, "copy"))
		CHECK(cuMemcpyHtoD(p, &count, 4));
	else if (!strcmp(argument, "copy_back"))
		CHECK(cuMemcpyDtoH(&word, p, 4));
	else
		while ((result = cuEventQuery(event)) != CUDA_SUCCESS)
			EXPECT(result == CUDA_ERROR_NOT_READY);
	store_through(wild, stream);
	EXPECT(cuStreamSynchronize(stream) == CUDA_ERROR_ILLEGAL_ADDRESS);
	_exit(5);
}

/* Access that is taken away is the twin's no more either, also when the driver does not take it away there. */
static void access_that_cannot_follow(const char *argument)
{
	CUmemAccessDesc none = {.location = device_memory.location, .flags = CU_MEM_ACCESS_FLAGS_PROT_NONE};
	CUdeviceptr at = allocate(1), twin = view(at, GRAIN);
	size_t before = free_memory();
	uint64_t seen = 77;
	int word;

	fail_nth("cuMemSetAccess", 2, CUDA_ERROR_OUT_OF_MEMORY);
	CHECK(cuMemSetAccess(at, GRAIN, &none, 1));
	EXPECT(cuMemcpyDtoH(&word, twin, 4) != CUDA_SUCCESS);
	EXPECT(cuconst_view(at, 4, &seen) != CUCONST_OK && seen == 77);
	let_write(at, 1);
	CHECK(cuMemsetD32(at, 5, 1));
	EXPECT(view(at, GRAIN) == twin && word_at(twin) == 5);
	give_back(at, 1);
	EXPECT(free_memory() == before + GRAIN);
}

/*
 * A size beyond the parameters is the driver's to refuse: what lies there is not read, and need not be memory at all.
 * `alone`: without the library.
 */
static void extra_too_large(const char *argument)
{
	const size_t sizes[] = {32, 4096, (size_t)1 << 20, SIZE_MAX / 2, SIZE_MAX - 64, SIZE_MAX};
	const bool alone = !strcmp(argument, "alone");
	struct {
		CUdeviceptr data, sum;
		int count, store;
	} block = {allocate(1), q, 4, 0};
	char *page = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CUfunction reader = function("read_or_store");

	EXPECT(page != MAP_FAILED && munmap(page + 4096, 4096) == 0);
	if (!alone)
		protect(block.data, 4096, "w");
	void *at = memcpy(page + 4096 - sizeof block, &block, sizeof block);
	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		size_t size = sizes[i];
		void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, at, CU_LAUNCH_PARAM_BUFFER_SIZE, &size,
		                 CU_LAUNCH_PARAM_END};
		printf("%zu: %d\n", size, (int)cuLaunchKernel(reader, 1, 1, 1, 1, 1, 1, 0, stream, NULL, extra));
	}
}

/* The stream of the launch is gone when the program ends. */
static void stream_gone(const char *argument)
{
	CUdeviceptr at = allocate(1), twin = view(at, GRAIN);
	CUstream work;

	CHECK(cuStreamCreate(&work, CU_STREAM_NON_BLOCKING));
	store_through(twin, work);
	cuStreamDestroy(work);
}

/*
 * Streams that come and go with work in flight: what ended well there is no candidate of a later error, and nothing of
 * ours is left behind.
 */
static void many_streams_gone(const char *argument)
{
	CUdeviceptr at = allocate(1), twin = view(at, GRAIN), wild = 4096;
	CUfunction reader = function("read_or_store");
	int count = 4, no = 0;
	void *params[] = {&twin, &q, &count, &no};

	for (int i = 0; i < 300; i++) {
		CUstream work;
		CHECK(cuStreamCreate(&work, CU_STREAM_NON_BLOCKING));
		CHECK(cuLaunchKernel(reader, 1, 1, 1, 1, 1, 1, 0, work, params, NULL));
		CHECK(cuStreamDestroy(work));
	}
	CHECK(cuCtxSynchronize());
	CUstream last;
	CHECK(cuStreamCreate(&last, CU_STREAM_NON_BLOCKING));
	CHECK(cuStreamDestroy(last));
	EXPECT(calls("cuEventCreate") == calls("cuEventDestroy_v2"));
	store_through(wild, stream);
	EXPECT(cuStreamSynchronize(stream) == CUDA_ERROR_ILLEGAL_ADDRESS);
	_exit(5);
}

static CUdeviceptr threads_twin;
static CUfunction threads_reader;

static void *streams_come_and_go(void *data)
{
	int count = 4, no = 0;
	void *params[] = {&threads_twin, &q, &count, &no};
	CUevent event;

	CHECK(cuCtxSetCurrent(context));
	CHECK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
	for (int i = 0; i < 100; i++) {
		CUstream work;
		CHECK(cuStreamCreate(&work, CU_STREAM_NON_BLOCKING));
		CHECK(cuLaunchKernel(threads_reader, 1, 1, 1, 1, 1, 1, 0, work, params, NULL));
		CHECK(cuEventRecord(event, work));
		CHECK(cuStreamDestroy(work));
		if (i % 3 == 0)
			CHECK(cuEventSynchronize(event));
	}
	CHECK(cuEventDestroy(event));
	return NULL;
}

/* As many_streams_gone, in threads; all but the last launches have ended when each has waited for its own. */
static void threads_of_streams(const char *argument)
{
	CUdeviceptr at = allocate(1), wild = 4096;
	pthread_t of[4];

	threads_twin = view(at, GRAIN);
	threads_reader = function("read_or_store");
	for (size_t i = 0; i < 4; i++)
		EXPECT(pthread_create(&of[i], NULL, streams_come_and_go, NULL) == 0);
	for (size_t i = 0; i < 4; i++)
		EXPECT(pthread_join(of[i], NULL) == 0);
	CHECK(cuCtxSynchronize());
	store_through(wild, stream);
	EXPECT(cuStreamSynchronize(stream) == CUDA_ERROR_ILLEGAL_ADDRESS);
	_exit(5);
}

/*
 * A fault is one violation, also where it is every context's from then on; what is in flight in a context that answers
 * no error is no candidate.
 */
static void innocent_elsewhere(const char *argument)
{
	CUdeviceptr at = allocate(1), twin = view(at, GRAIN);
	int count = 4, no = 0;
	void *params[] = {&twin, &q, &count, &no};
	CUcontext each;

	CHECK(cuCtxCreate(&each, NULL, 0, 0));
	CHECK(cuLaunchKernel(function("read_or_store"), 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
	CHECK(cuCtxSetCurrent(context));
	store_through(twin, stream);
	EXPECT(cuStreamSynchronize(stream) == CUDA_ERROR_ILLEGAL_ADDRESS);
	CHECK(cuCtxSetCurrent(each));
	needs_life(cuCtxSynchronize());
	_exit(5);
}

static void touches(CUdeviceptr low, CUdeviceptr at, CUdeviceptr twin)
{
	const CUmemAccessDesc write = {.location = device_memory.location, .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
	unsigned long long flags = 77;

	EXPECT(cuMemSetAccess(low, 2 * GRAIN, &write, 1) == CUDA_ERROR_NOT_PERMITTED);
	EXPECT(cuMemUnmap(low, 2 * GRAIN) == CUDA_ERROR_NOT_PERMITTED);
	EXPECT(cuMemAddressFree(low, 2 * GRAIN) == CUDA_ERROR_NOT_PERMITTED);
	CHECK(cuMemGetAccess(&flags, &device_memory.location, twin));
	EXPECT(flags == CU_MEM_ACCESS_FLAGS_PROT_READ);
	CHECK(cuMemsetD32(at, 9, 1));
	EXPECT(word_at(twin) == 9);
}

/* Reservations next to a twin, in front of it and behind it: calls for both together touch the twin. */
static void across(const char *argument)
{
	CUdeviceptr at = allocate(1), front = reserve(1), behind, twin;
	bool before, after;

	/* A hole for the twin, between two of the program's. */
	CUdeviceptr hole = reserve(1);
	behind = reserve(1);
	CHECK(cuMemAddressFree(hole, GRAIN));
	map(front, 1);
	map(behind, 1);
	twin = view(at, GRAIN);
	before = front + GRAIN == twin || behind + GRAIN == twin;
	after = twin + GRAIN == front || twin + GRAIN == behind;
	if (!before && !after)
		cannot("no reservations next to each other");
	if (before)
		touches(twin - GRAIN, at, twin);
	if (after)
		touches(twin, at, twin);
	if (!before || !after)
		cannot("only one reservation next to another");
}

/* One call takes the access of two reservations' memory away: both twins follow. */
static void access_across(const char *argument)
{
	CUmemAccessDesc none = {.location = device_memory.location, .flags = CU_MEM_ACCESS_FLAGS_PROT_NONE};
	CUdeviceptr first = allocate(1), second = allocate(1);
	CUdeviceptr low = first < second ? first : second, high = first < second ? second : first;
	unsigned long long flags = 77;

	if (low + GRAIN != high)
		cannot("no reservations next to each other");
	CUdeviceptr low_twin = view(low, GRAIN), high_twin = view(high, GRAIN);
	if (cuMemSetAccess(low, 2 * GRAIN, &none, 1) != CUDA_SUCCESS)
		cannot("no access is set across reservations");
	CHECK(cuMemGetAccess(&flags, &device_memory.location, low_twin));
	EXPECT(flags == CU_MEM_ACCESS_FLAGS_PROT_NONE);
	CHECK(cuMemGetAccess(&flags, &device_memory.location, high_twin));
	EXPECT(flags == CU_MEM_ACCESS_FLAGS_PROT_NONE);
	/* And both come back. */
	let_write(low, 2);
	CHECK(cuMemGetAccess(&flags, &device_memory.location, low_twin));
	EXPECT(flags == CU_MEM_ACCESS_FLAGS_PROT_READ);
	CHECK(cuMemGetAccess(&flags, &device_memory.location, high_twin));
	EXPECT(flags == CU_MEM_ACCESS_FLAGS_PROT_READ);
}

static const struct scene scenes[] = {
	{"reset_and_again", reset_and_again},
	{"reset_then_own_fault", reset_then_own_fault},
	{"made_in_another", made_in_another},
	{"many_contexts", many_contexts},
	{"destroyed_at_once", destroyed_at_once},
	{"reset_at_once", reset_at_once},
	{"reset_later", reset_later},
	{"default_stream_first", default_stream_first},
	{"through_another", through_another},
	{"asked_before_own_fault", asked_before_own_fault},
	{"learnt_before_own_fault", learnt_before_own_fault},
	{"access_that_cannot_follow", access_that_cannot_follow},
	{"extra_too_large", extra_too_large},
	{"stream_gone", stream_gone},
	{"many_streams_gone", many_streams_gone},
	{"innocent_elsewhere", innocent_elsewhere},
	{"threads_of_streams", threads_of_streams},
	{"across", across},
	{"access_across", access_across},
	{NULL, NULL},
};

int main(int argc, char **argv)
{
	start();
	return scene_main(argc, argv, scenes);
}
