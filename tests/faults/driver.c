/* Scenes in which the driver fails, a kernel faults, or what was protected goes away under the checks. */
#include "tests/faults/scene.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>

static bool (*fail_call)(const char *, uint64_t, int);
static void (*fail_none)(void);

static void find_failing(void)
{
	fail_call = (bool (*)(const char *, uint64_t, int))dlsym(RTLD_DEFAULT, "softgpu_fail");
	fail_none = (void (*)(void))dlsym(RTLD_DEFAULT, "softgpu_fail_none");
	EXPECT(fail_call && fail_none);
}

static void copy_p_to_q(void)
{
	int count = COUNT;
	void *params[] = {&p, &q, &count};
	launch("copy", COUNT, stream, params);
}

/*
 * Call `nth` of one function fails while a range is protected, read and lifted: an error or a check that was not made,
 * never a finding.
 */
static void protect_with_failure(const char *symbol, unsigned nth)
{
	cuconst_handle handle = 0;
	EXPECT(fail_call(symbol, nth, CUDA_ERROR_OUT_OF_MEMORY));
	int answer = (int)cuconst_protect(p, SIZE, "p", 0, NULL, &handle);
	EXPECT(answer != CUCONST_ERROR_INVALID_VALUE && (answer == CUCONST_OK) == (handle != 0));
	if (handle) {
		answer = (int)cuconst_unprotect(handle);
		EXPECT(answer != CUCONST_ERROR_CHANGED);
		EXPECT(cuconst_unprotect(handle) == CUCONST_ERROR_STALE_HANDLE);
	}
	fail_none();
	handle = protect(p, SIZE, "p");
	copy_p_to_q();
	CHECK(cuStreamSynchronize(stream));
	CHECK(cuconst_unprotect(handle));
	EXPECT(stats().violations == 0 && stats().ranges == 0);
}

/* argument: symbol */
static void play_protect_fails(const char *symbol)
{
	start();
	find_failing();
	for (unsigned nth = 1; nth <= 5; nth++)
		protect_with_failure(symbol, nth);
	EXPECT(byte_at(q) == 1);
}

/*
 * The check of a launch fails: counted, and the program's own work is done. Then its own launch fails, and that is its
 * own to see.
 */
static void play_check_fails(const char *argument)
{
	int count = COUNT, value = 7;
	void *params[] = {&p, &value, &count};
	start();
	find_failing();
	CUfunction fill_kernel = kernel("fill");
	cuconst_handle handle = protect(p, SIZE, "p");
	EXPECT(fail_call("cuLaunchKernel", 2, CUDA_ERROR_OUT_OF_MEMORY));
	CHECK(cuLaunchKernel(fill_kernel, COUNT / 256, 1, 1, 256, 1, 1, 0, stream, params, NULL));
	CHECK(cuStreamSynchronize(stream));
	EXPECT(byte_at(p) == 7 && stats().violations == 0 && stats().unverified == 1);
	EXPECT(cuconst_unprotect(handle) == CUCONST_ERROR_CHANGED); /* what no check of a launch saw, the last one does */
	EXPECT(stats().violations == 1);
	protect(p, SIZE, "p");
	EXPECT(fail_call("cuLaunchKernel", 1, CUDA_ERROR_OUT_OF_MEMORY));
	EXPECT(cuLaunchKernel(fill_kernel, COUNT / 256, 1, 1, 256, 1, 1, 0, stream, params, NULL) ==
	       CUDA_ERROR_OUT_OF_MEMORY);
	CHECK(cuStreamSynchronize(stream));
	EXPECT(stats().violations == 1 && stats().unverified == 1);
}

/* After a kernel that faults every call fails: the program sees that error, and no change is made up. */
static void play_sticky(const char *argument)
{
	CUdeviceptr nowhere = 64;
	int count = COUNT;
	void *params[] = {&nowhere, &p, &count};
	cuconst_handle other = 0;
	start();
	cuconst_handle handle = protect(p, SIZE, "p");
	launch("copy", COUNT, stream, params);
	EXPECT(cuStreamSynchronize(stream) == CUDA_ERROR_ILLEGAL_ADDRESS);
	EXPECT(cuMemsetD8(q, 0, 16) == CUDA_ERROR_ILLEGAL_ADDRESS);
	EXPECT(cuconst_protect(q, SIZE, "q", 0, NULL, &other) != CUCONST_OK && other == 0);
	EXPECT(cuconst_check(handle) == CUCONST_ERROR_CUDA);
	EXPECT(cuconst_unprotect(handle) == CUCONST_ERROR_CUDA);
	EXPECT(stats().violations == 0 && stats().ranges == 0);
}

static void work_in(CUcontext in, bool leave_checks)
{
	CUdeviceptr at;
	CUmodule own;
	CUfunction fill_kernel;
	int value = 9, count = COUNT;
	CHECK(cuCtxSetCurrent(in));
	CHECK(cuMemAlloc(&at, SIZE));
	CHECK(cuMemsetD8(at, 1, SIZE));
	static char text[1 << 16];
	FILE *file = fopen(getenv("MISUSE_PTX"), "r");
	EXPECT(file && fread(text, 1, sizeof text - 1, file) > 0);
	fclose(file);
	CHECK(cuModuleLoadData(&own, text));
	CHECK(cuModuleGetFunction(&fill_kernel, own, "fill"));
	uint64_t before = stats().violations;
	cuconst_handle handle = protect(at, SIZE, "at");
	void *params[] = {&at, &value, &count};
	EXPECT(refused(cuLaunchKernel(fill_kernel, COUNT / 256, 1, 1, 256, 1, 1, 0, NULL, params, NULL)));
	if (leave_checks)
		return;
	CHECK(cuCtxSynchronize());
	CHECK(cuconst_unprotect(handle)); /* the refusal, or the check of the launch, had told it */
	EXPECT(stats().violations == before + 1);
}

static CUcontext new_context(void)
{
	CUcontext made;
	CUdevice device;
	CHECK(cuDeviceGet(&device, 0));
	CHECK(cuCtxCreate(&made, NULL, 0, device));
	return made;
}

static void play_context_destroyed(const char *argument)
{
	start();
	for (int round = 0; round < 5; round++) {
		CUcontext made = new_context();
		work_in(made, true);
		CHECK(cuCtxDestroy(made));
		EXPECT(stats().ranges == 0);
	}
	CUcontext made = new_context();
	work_in(made, false);
	CHECK(cuCtxDestroy(made));
	CHECK(cuCtxSetCurrent(context));
	EXPECT(byte_at(p) == 1);
}

static void retain_again(void)
{
	CUdevice device;
	CHECK(cuDeviceGet(&device, 0));
	CHECK(cuDevicePrimaryCtxRetain(&context, device));
}

static void reset(void)
{
	CUdevice device;
	CHECK(cuDeviceGet(&device, 0));
	CHECK(cuDevicePrimaryCtxReset(device));
}

static void play_reset_protected(const char *argument)
{
	start();
	for (int round = 0; round < 3; round++) {
		work_in(context, true);
		reset();
		EXPECT(stats().ranges == 0);
		retain_again();
	}
	work_in(context, false);
}

/* Nothing is protected when the context goes, but what the checks had there goes with it. */
static void play_reset_unprotected(const char *argument)
{
	start();
	for (int round = 0; round < 3; round++) {
		work_in(context, false);
		reset();
		retain_again();
	}
	work_in(context, false);
}

/* A reset ends the primary context's ranges, not those of another context of the device. */
static void play_reset_other(const char *argument)
{
	start();
	CUcontext made = new_context();
	CHECK(cuCtxSetCurrent(made));
	CUdeviceptr at;
	CHECK(cuMemAlloc(&at, SIZE));
	CHECK(cuMemsetD8(at, 1, SIZE));
	cuconst_handle kept = protect(at, SIZE, "kept");
	CHECK(cuCtxSetCurrent(context));
	protect(p, SIZE, "p");
	CHECK(cuCtxSetCurrent(made));
	reset();
	EXPECT(stats().ranges == 1);
	CHECK(cuMemsetD8(at, 2, 16));
	EXPECT(stats().violations == 1);
	CHECK(cuconst_unprotect(kept));
}

/* Functions of an unloaded module leave their handles to others, with other parameters. */
static void play_module_reused(const char *argument)
{
	static char text[1 << 16];
	start();
	FILE *file = fopen(getenv("MISUSE_PTX"), "r");
	EXPECT(file && fread(text, 1, sizeof text - 1, file) > 0);
	fclose(file);
	cuconst_handle handle = protect(p, SIZE, "p");
	for (int round = 0; round < 20; round++) {
		CUmodule own;
		CUfunction function;
		int count = COUNT, value = round + 10;
		void *reading[] = {&p, &q, &count}, *writing[] = {&q, &value, &count};
		CHECK(cuModuleLoadData(&own, text));
		CHECK(cuModuleGetFunction(&function, own, round % 2 ? "copy" : "fill"));
		CHECK(cuLaunchKernel(function, COUNT / 256, 1, 1, 256, 1, 1, 0, stream, round % 2 ? reading : writing,
		                     NULL));
		CHECK(cuStreamSynchronize(stream));
		CHECK(cuModuleUnload(own));
	}
	EXPECT(stats().violations == 0);
	fill(p, 7, COUNT);
	CHECK(cuStreamSynchronize(stream));
	CHECK(cuconst_unprotect(handle));
	EXPECT(stats().violations == 1);
}

static _Atomic bool reading;

static void *read_late(void *end)
{
	char text[4096];
	usleep(400000);
	reading = true;
	while (read(*(int *)end, text, sizeof text) > 0)
		;
	return NULL;
}

/*
 * The watcher has a change in hand and cannot get it written yet: who asks meanwhile is told of it all the same.
 * argument: who asks
 */
static void play_told_late(const char *argument)
{
	int ends[2], error = dup(STDERR_FILENO);
	char dots[4096];
	pthread_t reader;
	struct cuconst_range_info info;
	size_t count;
	start();
	cuconst_handle handle = protect(p, SIZE, "p");
	EXPECT(!pipe(ends) && fcntl(ends[1], F_SETPIPE_SZ, sizeof dots) == sizeof dots);
	memset(dots, '.', sizeof dots);
	EXPECT(write(ends[1], dots, sizeof dots) == sizeof dots);
	EXPECT(dup2(ends[1], STDERR_FILENO) == STDERR_FILENO);
	EXPECT(!pthread_create(&reader, NULL, read_late, &ends[0]));
	fill(p, 7, COUNT); /* may tell of it itself, if the check is quick: then it waits for the reader here */
	usleep(100000);    /* for the watcher, who looks each millisecond or two */
	uint64_t violations = 0;
	if (!strcmp(argument, "stats")) {
		violations = stats().violations;
	} else if (!strcmp(argument, "query")) {
		CHECK(cuconst_query(p, SIZE, &info, 1, &count));
		violations = info.violations;
	} else {
		CHECK(cuconst_unprotect(handle));
		violations = reading; /* it waited */
	}
	EXPECT(dup2(error, STDERR_FILENO) == STDERR_FILENO);
	EXPECT(violations == 1);
	EXPECT(!close(ends[1]) && !pthread_join(reader, NULL));
}

static void play_stream_destroyed(const char *argument)
{
	start();
	cuconst_handle handle = protect(p, SIZE, "p");
	for (int round = 0; round < 50; round++) {
		CHECK(cuStreamDestroy(stream));
		CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
		fill(p, 100 + round, COUNT);
		CHECK(cuStreamDestroy(stream));
		CHECK(cuCtxSynchronize());
		CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	}
	CHECK(cuconst_unprotect(handle));
	EXPECT(stats().violations == 50);
}

static void *lift(void *handle)
{
	CHECK(cuconst_unprotect(*(cuconst_handle *)handle)); /* no context is current in this thread */
	return NULL;
}

static void play_handles(const char *argument)
{
	pthread_t thread;
	start();
	cuconst_handle handle = protect(p, SIZE, "p");
	CHECK(pthread_create(&thread, NULL, lift, &handle));
	CHECK(pthread_join(thread, NULL));
	EXPECT(cuconst_unprotect(handle) == CUCONST_ERROR_STALE_HANDLE);
	handle = protect(p, SIZE, "p");
	CHECK(cuMemFree(p));
	EXPECT(cuconst_unprotect(handle) == CUCONST_ERROR_STALE_HANDLE);
	EXPECT(cuconst_check(handle) == CUCONST_ERROR_STALE_HANDLE);
	EXPECT(cuconst_release(handle) == CUCONST_ERROR_STALE_HANDLE);
	EXPECT(cuconst_unprotect(0) == CUCONST_ERROR_BAD_HANDLE);
	EXPECT(cuconst_unprotect(UINT64_MAX) == CUCONST_ERROR_BAD_HANDLE);
	EXPECT(cuMemFree(p) != CUDA_SUCCESS); /* the driver's own answer */
	EXPECT(stats().violations == 0);
}

/* An older driver: what can be judged by contract is, and the program's results are its own. */
static void play_old_driver(const char *argument)
{
	cuconst_handle handle = 0;
	start();
	CHECK(cuconst_protect(p, SIZE, "p", 0, NULL, &handle));
	copy_p_to_q();
	CHECK(cuStreamSynchronize(stream));
	EXPECT(byte_at(q) == 1);
	CHECK(cuMemsetD8(p, 9, 16));
	EXPECT(byte_at(p) == 9 && stats().violations == 1);
	cuconst_unprotect(handle);
	EXPECT(stats().ranges == 0);
	puts("done");
}

int main(int argc, char **argv)
{
	static const struct scene scenes[] = {
		{"protect_fails", play_protect_fails},
		{"check_fails", play_check_fails},
		{"sticky", play_sticky},
		{"context_destroyed", play_context_destroyed},
		{"reset_protected", play_reset_protected},
		{"reset_unprotected", play_reset_unprotected},
		{"reset_other", play_reset_other},
		{"module_reused", play_module_reused},
		{"told_late", play_told_late},
		{"stream_destroyed", play_stream_destroyed},
		{"handles", play_handles},
		{"old_driver", play_old_driver},
		{NULL, NULL},
	};
	return scene_main(argc, argv, scenes);
}
