/* Virtual memory management in few lines: for the scenes of this suite. Every failure ends the program with 99. */
#ifndef TESTS_TWINS_VMM_H
#define TESTS_TWINS_VMM_H

#include <dlfcn.h>

#include "tests/faults/scene.h"

#define GRAIN ((size_t)2 << 20)

/* This driver does not let happen what the scene is about: its test is skipped, and says why. */
__attribute__((unused, noreturn)) static void cannot(const char *why)
{
	printf("%s\n", why);
	fflush(stdout);
	_exit(77);
}

/* For cuLaunchKernelEx. The attribute lives as long as this is used. */
__attribute__((unused)) static CUlaunchConfig one_thread(CUstream in, CUlaunchAttribute *attribute)
{
	return (CUlaunchConfig){.gridDimX = 1,
	                        .gridDimY = 1,
	                        .gridDimZ = 1,
	                        .blockDimX = 1,
	                        .blockDimY = 1,
	                        .blockDimZ = 1,
	                        .hStream = in,
	                        .attrs = attribute,
	                        .numAttrs = 1};
}

__attribute__((unused)) static const CUmemAllocationProp device_memory = {
	.type = CU_MEM_ALLOCATION_TYPE_PINNED, .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0}};

__attribute__((unused)) static CUdeviceptr reserve(size_t grains)
{
	CUdeviceptr at;
	CHECK(cuMemAddressReserve(&at, grains * GRAIN, 0, 0, 0));
	return at;
}

__attribute__((unused)) static CUmemGenericAllocationHandle create(size_t grains)
{
	CUmemGenericAllocationHandle handle;
	CHECK(cuMemCreate(&handle, grains * GRAIN, &device_memory, 0));
	return handle;
}

__attribute__((unused)) static void let_write(CUdeviceptr at, size_t grains)
{
	const CUmemAccessDesc access = {.location = device_memory.location, .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
	CHECK(cuMemSetAccess(at, grains * GRAIN, &access, 1));
}

/* Memory of its own behind part of a reservation; nothing but the mapping holds it afterwards. */
__attribute__((unused)) static void map(CUdeviceptr at, size_t grains)
{
	CUmemGenericAllocationHandle handle = create(grains);
	CHECK(cuMemMap(at, grains * GRAIN, 0, handle, 0));
	CHECK(cuMemRelease(handle));
	let_write(at, grains);
}

/* A reservation with one mapping of the same size. */
__attribute__((unused)) static CUdeviceptr allocate(size_t grains)
{
	CUdeviceptr at = reserve(grains);
	map(at, grains);
	return at;
}

__attribute__((unused)) static void give_back(CUdeviceptr at, size_t grains)
{
	CHECK(cuMemUnmap(at, grains * GRAIN));
	CHECK(cuMemAddressFree(at, grains * GRAIN));
}

__attribute__((unused)) static CUdeviceptr view(CUdeviceptr at, size_t bytes)
{
	uint64_t twin = 0;
	cuconst_result result = cuconst_view(at, bytes, &twin);
	if (result) {
		fprintf(stderr, "cuconst_view: %d: %s\n", (int)result, cuconst_result_text(result));
		_exit(99);
	}
	/* From now on it takes a look-up only. */
	EXPECT(cuconst_view_known(at, bytes) == twin);
	return twin;
}

__attribute__((unused)) static int word_at(CUdeviceptr at)
{
	int word;
	CHECK(cuMemcpyDtoH(&word, at, 4));
	return word;
}

__attribute__((unused)) static size_t free_memory(void)
{
	size_t left, total;
	CHECK(cuMemGetInfo(&left, &total));
	return left;
}

/*
 * How often the driver was called, on the software GPU; on a real one nobody counts, and it is 0: for differences that
 * are to be none.
 */
__attribute__((unused)) static unsigned long long calls(const char *symbol)
{
	static uint64_t (*count)(const char *);
	if (!count)
		*(void **)&count = dlsym(RTLD_DEFAULT, "softgpu_calls");
	return count ? count(symbol) : 0;
}

/* The nth call from now on of a driver function answers `status`, on the software GPU. */
__attribute__((unused)) static void fail_nth(const char *symbol, uint64_t nth, int status)
{
	static _Bool (*fail)(const char *, uint64_t, int);
	if (!fail)
		*(void **)&fail = dlsym(RTLD_DEFAULT, "softgpu_fail");
	if (!fail)
		cannot("no call of this driver can be told to fail");
	EXPECT(fail(symbol, nth, status));
}

__attribute__((unused)) static void fail_next(const char *symbol, int status)
{
	fail_nth(symbol, 1, status);
}

#endif
