/*
 * Random kernels over memory in which random ranges are protected: soundness FIRST COUNT. The software GPU's write log
 * says which ranges a launch really wrote; such a launch must have been judged `stores`, `near` or `unknown`, never
 * `clean` and never as if it concerned nothing. In log each change is found by the end; in deny a refused launch wrote
 * nothing. Prints what there was of each.
 */
#include <dlfcn.h>
#include <stdbool.h>
#include <string.h>

#include <cuda.h>

#include "tests/effects/random_run.h"
#include "tests/kernels/ptx_generate.h"

#define RANGES 6
#define POOL ((size_t)GENERATED_SLOTS * GENERATED_BUFFER)

static struct {
	unsigned launches, clean, near, unknown, stores, elsewhere, refused, wrote, failures;
} totals;

static int range_count;

struct guarded {
	CUdeviceptr start;
	size_t bytes;
	cuconst_handle handle;
};

static void failed(const char *what)
{
	fprintf(stderr, "seed %" PRIu64 ": %s\n", seed, what);
	totals.failures++;
}

/* What one launch was judged, from the counters; true: of concern, and not clean. */
static bool count_verdict(const struct cuconst_stats *before)
{
	struct cuconst_stats now = stats();
	unsigned clean = (unsigned)(now.clean - before->clean), near = (unsigned)(now.near - before->near);
	unsigned unknown = (unsigned)(now.unknown - before->unknown), guilty = (unsigned)(now.stores - before->stores);
	if (clean + near + unknown + guilty > 1)
		failed("one launch, more than one verdict");
	totals.clean += clean;
	totals.near += near;
	totals.unknown += unknown;
	totals.stores += guilty;
	totals.elsewhere += !(clean + near + unknown + guilty);
	return near + unknown + guilty;
}

static bool any_written(const struct guarded *ranges)
{
	for (int i = 0; i < range_count; i++)
		if (was_written(ranges[i].start, ranges[i].bytes))
			return true;
	return false;
}

static void launch(CUfunction function, void **extra, const struct guarded *ranges, bool deny)
{
	struct cuconst_stats before = stats();
	log_writes(true);
	CUresult result = cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, NULL, NULL, extra);
	CHECK(cuCtxSynchronize());
	log_writes(false);
	bool suspected = count_verdict(&before), wrote = any_written(ranges);
	totals.launches++;
	totals.wrote += wrote;
	totals.refused += result != CUDA_SUCCESS;
	if (wrote && !suspected)
		failed("wrote into a range, and was judged harmless");
	if (result != CUDA_SUCCESS && (!deny || result != CUDA_ERROR_NOT_PERMITTED || wrote))
		failed("refused as it must not be");
}

static void protect_some(struct guarded *ranges, const CUdeviceptr *buffers, unsigned count)
{
	range_count = 1 + (int)below(RANGES);
	for (int i = 0; i < range_count; i++) {
		size_t offset = below(3) ? 0 : below(GENERATED_BUFFER - 1);
		ranges[i].start = buffers[below(count)] + offset;
		ranges[i].bytes = below(2) ? GENERATED_BUFFER - offset : 1 + below((uint32_t)(GENERATED_BUFFER - offset));
		CHECK(cuconst_protect(ranges[i].start, ranges[i].bytes, "range", 0, NULL, &ranges[i].handle));
	}
}

static void unprotect_all(const struct guarded *ranges)
{
	for (int i = 0; i < range_count; i++) {
		int answer = cuconst_unprotect(ranges[i].handle);
		if (answer != CUCONST_OK && answer != CUCONST_ERROR_CHANGED)
			failed("the last check did not work");
	}
}

/* With zeros everywhere kernels stay in their buffers. */
static void play(CUfunction function, const struct generated *kernel, const CUdeviceptr *buffers, bool deny)
{
	struct guarded ranges[RANGES];
	uint64_t values[GENERATED_SLOTS + 2] = {0};
	size_t bytes = kernel->slots * sizeof values[0];
	void *block[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, values, CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes,
	                 CU_LAUNCH_PARAM_END};
	for (unsigned i = 0; i < GENERATED_SLOTS; i++)
		CHECK(cuMemsetD8(buffers[i], 0, GENERATED_BUFFER));
	for (unsigned i = 0; i < kernel->pointers; i++)
		values[i] = buffers[i];
	values[kernel->pointers] = below(4);
	values[kernel->pointers + 1] = below(4);
	protect_some(ranges, buffers, kernel->pointers);
	launch(function, block, ranges, deny);
	unprotect_all(ranges);
}

/* Either each buffer is an allocation, or all lie side by side in one, as in a pool. */
static void run(bool deny)
{
	struct generated kernel = ptx_generate(seed);
	CUdeviceptr buffers[GENERATED_SLOTS], pool = 0;
	CUmodule module;
	CUfunction function;
	random_state = seed;
	CHECK(cuModuleLoadData(&module, kernel.text));
	CHECK(cuModuleGetFunction(&function, module, "k"));
	if (below(2))
		CHECK(cuMemAlloc(&pool, POOL));
	for (unsigned i = 0; i < GENERATED_SLOTS; i++) {
		if (pool)
			buffers[i] = pool + (CUdeviceptr)i * GENERATED_BUFFER;
		else
			CHECK(cuMemAlloc(&buffers[i], GENERATED_BUFFER));
	}
	for (unsigned n = 0; n < 3; n++)
		play(function, &kernel, buffers, deny);
	for (unsigned i = 0; !pool && i < GENERATED_SLOTS; i++)
		CHECK(cuMemFree(buffers[i]));
	if (pool)
		CHECK(cuMemFree(pool));
	CHECK(cuModuleUnload(module));
	free(kernel.text);
}

int main(int argc, char **argv)
{
	const char *options = getenv("CUCONST_OPTIONS");
	bool deny = options && strstr(options, "mode=deny");
	CUdevice device;
	CUcontext context;
	uint64_t first = argc > 1 ? strtoull(argv[1], NULL, 10) : 1, count = argc > 2 ? strtoull(argv[2], NULL, 10) : 100;
	log_writes = (__typeof__(log_writes))dlsym(RTLD_DEFAULT, "softgpu_log_writes");
	was_written = (__typeof__(was_written))dlsym(RTLD_DEFAULT, "softgpu_wrote");
	if (!log_writes || !was_written) {
		fprintf(stderr, "needs the software GPU\n");
		return 1;
	}
	CHECK(cuInit(0));
	CHECK(cuDeviceGet(&device, 0));
	CHECK(cuDevicePrimaryCtxRetain(&context, device));
	CHECK(cuCtxSetCurrent(context));
	for (seed = first; seed < first + count; seed++)
		run(deny);
	printf("%u launches: %u clean, %u stores, %u near, %u unknown, %u elsewhere; %u refused; %u wrote into a range; %u failures\n",
	       totals.launches, totals.clean, totals.stores, totals.near, totals.unknown, totals.elsewhere,
	       totals.refused, totals.wrote, totals.failures);
	return totals.failures || !totals.wrote || !totals.clean || (deny && !totals.refused);
}
