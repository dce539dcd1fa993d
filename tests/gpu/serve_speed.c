/*
 * What allocating costs: cuMemAlloc and cuMemFree of one size after the other, and of the driver's pool. Median and 99th percentile, microseconds.
 *
 *     serve_speed                                                        the driver
 *     LD_PRELOAD=libcuconst.so CUCONST_OPTIONS=twins=native serve_speed  with the library
 *     LD_PRELOAD=libcuconst.so CUCONST_OPTIONS=twins=all serve_speed     served
 *
 * `fresh`: everything that is allocated is kept till the end, then freed. `again`: one is allocated and freed, again and again. Both with an idle device, so
 * the wait in cuMemFree is for nothing. `room`: what an allocation of that size takes of the device, by cuMemGetInfo.
 */
#include <cuda.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define NEED(call)                                                                                                     \
	do {                                                                                                           \
		CUresult result_ = (call);                                                                             \
		if (result_ != CUDA_SUCCESS) {                                                                         \
			fprintf(stderr, "%s: %d\n", #call, (int)result_);                                              \
			exit(1);                                                                                       \
		}                                                                                                      \
	} while (0)

enum { MOST = 2000 };
static double alloc_us[MOST], free_us[MOST];

static double now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void say(const char *name, size_t bytes, int count)
{
	qsort(alloc_us, (size_t)count, sizeof *alloc_us, by_value);
	qsort(free_us, (size_t)count, sizeof *free_us, by_value);
	printf("%s bytes=%zu count=%d alloc_us=%.2f alloc_p99=%.2f free_us=%.2f free_p99=%.2f\n", name, bytes, count,
	       alloc_us[count / 2], alloc_us[count * 99 / 100], free_us[count / 2], free_us[count * 99 / 100]);
}

static void fresh(size_t bytes, int count)
{
	static CUdeviceptr at[MOST];
	size_t before, after, total;

	NEED(cuMemGetInfo(&before, &total));
	for (int i = 0; i < count; i++) {
		double start = now_us();
		NEED(cuMemAlloc(&at[i], bytes));
		alloc_us[i] = now_us() - start;
	}
	NEED(cuMemGetInfo(&after, &total));
	for (int i = 0; i < count; i++) {
		double start = now_us();
		NEED(cuMemFree(at[i]));
		free_us[i] = now_us() - start;
	}
	say("fresh", bytes, count);
	printf("room bytes=%zu each=%.0f\n", bytes, (double)(before - after) / count);
}

static void again(size_t bytes, int count)
{
	CUdeviceptr at;

	for (int i = 0; i < count; i++) {
		double start = now_us();
		NEED(cuMemAlloc(&at, bytes));
		double between = now_us();
		NEED(cuMemFree(at));
		alloc_us[i] = between - start;
		free_us[i] = now_us() - between;
	}
	say("again", bytes, count);
}

/* The pool is not served: its figures are to be the same. */
static void pool(size_t bytes, int count)
{
	CUstream stream;
	CUdeviceptr at;

	NEED(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	for (int i = 0; i < count; i++) {
		double start = now_us();
		NEED(cuMemAllocAsync(&at, bytes, stream));
		double between = now_us();
		NEED(cuMemFreeAsync(at, stream));
		alloc_us[i] = between - start;
		free_us[i] = now_us() - between;
		if (i % 64 == 63)
			NEED(cuStreamSynchronize(stream));
	}
	NEED(cuStreamSynchronize(stream));
	NEED(cuStreamDestroy(stream));
	say("pool", bytes, count);
}

int main(void)
{
	static const size_t sizes[] = {256,     4096,    65536,    262144,    1 << 20, (1 << 20) + 1,
	                               2 << 20, 3 << 20, 16 << 20, 128 << 20, 1 << 30};
	CUcontext context;
	CUdevice device;

	NEED(cuInit(0));
	NEED(cuDeviceGet(&device, 0));
	NEED(cuDevicePrimaryCtxRetain(&context, device));
	NEED(cuCtxSetCurrent(context));
	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		int count = sizes[i] <= 1 << 20 ? 2000 : sizes[i] <= 16 << 20 ? 200 : 5;

		fresh(sizes[i], count);
		again(sizes[i], count);
	}
	pool(4096, 2000);
	pool(16 << 20, 2000);
	return 0;
}
