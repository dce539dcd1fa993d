/*
 * What verification costs the launching thread, without the driver: a driver that does nothing but answer, and results
 * that come at once. Prints ns per verify_after() with the verify_poll() that handles it, and of an idle verify_poll().
 * No GPU needed.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "shim/verdict/verify_internal.h"

#define ROUNDS 20000u
#define REPEATS 11u

static struct verify_driver driver;
static struct range ranges[VERIFY_JOBS];
static _Alignas(4096) uint8_t device[64u << 20];
static size_t device_used;

struct range *range_get(struct range *range)
{
	return range;
}

void range_put(struct range *range)
{
	(void)range;
}

static void finding(const struct verify_finding *found)
{
	(void)found;
}

static CUresult ctx_get_current(CUcontext *ret)
{
	*ret = (CUcontext)(uintptr_t)1;
	return CUDA_SUCCESS;
}

static CUresult ctx_push(CUcontext context)
{
	(void)context;
	return CUDA_SUCCESS;
}

static CUresult ctx_pop(CUcontext *ret)
{
	return ctx_get_current(ret);
}

static CUresult synchronize(void)
{
	return CUDA_SUCCESS;
}

static CUresult stream_synchronize(CUstream stream)
{
	(void)stream;
	return CUDA_SUCCESS;
}

static CUresult module_load_data(CUmodule *ret, const void *image)
{
	(void)image;
	*ret = (CUmodule)(uintptr_t)1;
	return CUDA_SUCCESS;
}

static CUresult module_get_function(CUfunction *ret, CUmodule module, const char *name)
{
	(void)module;
	*ret = (CUfunction)(uintptr_t)(name[sizeof("cuconst_verify_") - 1] == 'c' ? 1 : 2);
	return CUDA_SUCCESS;
}

static CUresult mem_alloc(CUdeviceptr *ret, size_t bytes)
{
	*ret = (CUdeviceptr)(device + device_used);
	device_used += bytes;
	return device_used <= sizeof(device) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult mem_host_register(void *memory, size_t bytes, unsigned flags)
{
	(void)memory, (void)bytes, (void)flags;
	return CUDA_SUCCESS;
}

static CUresult mem_host_get_device_pointer(CUdeviceptr *ret, void *memory, unsigned flags)
{
	(void)flags;
	*ret = (CUdeviceptr)memory;
	return CUDA_SUCCESS;
}

static CUresult stream_create(CUstream *ret, unsigned flags)
{
	(void)flags;
	*ret = (CUstream)(uintptr_t)0x10;
	return CUDA_SUCCESS;
}

static CUresult stream_is_capturing(CUstream stream, CUstreamCaptureStatus *ret)
{
	(void)stream;
	*ret = CU_STREAM_CAPTURE_STATUS_NONE;
	return CUDA_SUCCESS;
}

static CUresult exchange_capture_mode(CUstreamCaptureMode *mode)
{
	(void)mode;
	return CUDA_SUCCESS;
}

static CUresult launch_kernel(CUfunction function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                              unsigned bz, unsigned shared, CUstream stream, void **parameters, void **extra)
{
	(void)gx, (void)gy, (void)gz, (void)bx, (void)by, (void)bz, (void)shared, (void)stream, (void)extra;
	if (function != (CUfunction)(uintptr_t)1)
		return CUDA_SUCCESS;
	const struct verify_batch *batch = parameters[0];
	struct verify_result *results = (struct verify_result *)batch->results;
	for (uint32_t i = 0; i < batch->jobs; i++)
		__atomic_store_n(&results[batch->job[i].slot].sequence, batch->job[i].sequence, __ATOMIC_RELEASE);
	return CUDA_SUCCESS;
}

static double nanoseconds(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

static double median_of(void (*round)(size_t), size_t count)
{
	double times[REPEATS];
	for (unsigned i = 0; i < REPEATS; i++) {
		double before = nanoseconds();
		for (unsigned j = 0; j < ROUNDS; j++)
			round(count);
		times[i] = (nanoseconds() - before) / ROUNDS;
	}
	qsort(times, REPEATS, sizeof(*times), by_value);
	return times[REPEATS / 2];
}

static void check(size_t count)
{
	static struct verify_writer writer = {.api = "cuLaunchKernel"};
	static struct range *named[VERIFY_JOBS];
	for (size_t i = 0; i < count; i++)
		named[i] = &ranges[i];
	if (verify_after(&writer, named, count, (CUstream)(uintptr_t)0x20) != count)
		abort();
	verify_poll();
}

static void idle(size_t unused)
{
	(void)unused;
	verify_poll();
}

int main(void)
{
	driver = (struct verify_driver){ctx_get_current,
	                                ctx_push,
	                                ctx_pop,
	                                synchronize,
	                                module_load_data,
	                                module_get_function,
	                                mem_alloc,
	                                NULL,
	                                mem_host_register,
	                                NULL,
	                                mem_host_get_device_pointer,
	                                stream_create,
	                                stream_synchronize,
	                                stream_is_capturing,
	                                launch_kernel,
	                                exchange_capture_mode};
	verify.watching = true; /* no watcher: the numbers are the launching thread's */
	verify_init(&driver, finding);
	for (unsigned i = 0; i < VERIFY_JOBS; i++)
		if (verify_attach(4096 * (i + 1), 4096 * (i + 1) + 100, false, NULL, &ranges[i].attachment))
			return 1;
	printf("verify_poll, nothing in flight      %8.1f ns\n", median_of(idle, 0));
	for (size_t count = 1; count <= VERIFY_JOBS; count *= 4)
		printf("verify_after and poll, %2zu ranges    %8.1f ns\n", count, median_of(check, count));
	return verify_counts().unverified != 0;
}
