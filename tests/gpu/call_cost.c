/*
 * What one hooked call costs with nothing protected: the same cheap calls through the hook and directly, in one process, alternating; median of the differences.
 * Launches are of no function: the driver refuses them at once, and a hook that has nothing to judge does not look at them.
 * Build: gcc -O2 -I$CUDA_HOME/include call_cost.c -o call_cost -lcuda -ldl. Run it under `cuconst run`.
 */
#define _GNU_SOURCE
#include <cuda.h>
#include <dlfcn.h>
#include <link.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define ROUNDS 101
#define CALLS 10000

static CUdeviceptr memory;
static CUstream stream;

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return 1e9 * (double)t.tv_sec + (double)t.tv_nsec;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

/* An address straight out of libcuda's own symbol table: no door sees it. */
struct wanted {
	const char *name;
	void *address;
};

static int look(struct dl_phdr_info *info, size_t size, void *data)
{
	struct wanted *wanted = data;
	if (!strstr(info->dlpi_name, "libcuda.so"))
		return 0;
	const ElfW(Dyn) *dyn = NULL;
	for (int i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_DYNAMIC)
			dyn = (const ElfW(Dyn) *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
	const ElfW(Sym) *symbols = NULL;
	const char *strings = NULL;
	for (; dyn && dyn->d_tag; dyn++) {
		if (dyn->d_tag == DT_SYMTAB)
			symbols = (const ElfW(Sym) *)dyn->d_un.d_ptr;
		if (dyn->d_tag == DT_STRTAB)
			strings = (const char *)dyn->d_un.d_ptr;
	}
	/* The string table follows the symbol table in every libcuda seen. */
	for (const ElfW(Sym) *s = symbols; s && (const char *)s < strings; s++)
		if (!strcmp(strings + s->st_name, wanted->name))
			wanted->address = (void *)(info->dlpi_addr + s->st_value);
	return 1;
}

/* One call, by the function that it is to be made through. */
static void set(void *function)
{
	((__typeof__(cuMemsetD8) *)function)(memory, 0, 0); /* zero bytes: the driver checks and returns */
}

static void get_attribute(void *function)
{
	CUcontext context;
	((__typeof__(cuPointerGetAttribute) *)function)(&context, CU_POINTER_ATTRIBUTE_CONTEXT, memory);
}

static void get_attributes(void *function)
{
	CUmemorytype type;
	CUdeviceptr device;
	CUpointer_attribute asked[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_DEVICE_POINTER};
	void *answers[] = {&type, &device};
	((__typeof__(cuPointerGetAttributes) *)function)(2, asked, answers, memory);
}

static void get_range(void *function)
{
	CUdeviceptr base;
	size_t bytes;
	((__typeof__(cuMemGetAddressRange) *)function)(&base, &bytes, memory);
}

static void launch(void *function)
{
	void *params[] = {&memory};
	((__typeof__(cuLaunchKernel) *)function)(NULL, 1, 1, 1, 1, 1, 1, 0, stream, params, NULL);
}

static void launch_ex(void *function)
{
	void *params[] = {&memory};
	CUlaunchAttribute attribute = {.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION};
	CUlaunchConfig config = {.gridDimX = 1,
	                         .gridDimY = 1,
	                         .gridDimZ = 1,
	                         .blockDimX = 1,
	                         .blockDimY = 1,
	                         .blockDimZ = 1,
	                         .hStream = stream,
	                         .attrs = &attribute,
	                         .numAttrs = 1};
	((__typeof__(cuLaunchKernelEx) *)function)(&config, NULL, params, NULL);
}

static void synchronize(void *function)
{
	((__typeof__(cuStreamSynchronize) *)function)(stream);
}

static void query(void *function)
{
	((__typeof__(cuStreamQuery) *)function)(stream);
}

static void get_current(void *function)
{
	CUcontext context;
	((__typeof__(cuCtxGetCurrent) *)function)(&context);
}

static const struct {
	const char *name; /* in libcuda */
	void *met;        /* by a program that is linked with it */
	void (*call)(void *function);
	bool hooked;
} calls[] = {
	{"cuMemsetD8_v2", cuMemsetD8, set, true},
	{"cuPointerGetAttribute", cuPointerGetAttribute, get_attribute, true},
	{"cuPointerGetAttributes", cuPointerGetAttributes, get_attributes, true},
	{"cuMemGetAddressRange_v2", cuMemGetAddressRange, get_range, true},
	{"cuLaunchKernel", cuLaunchKernel, launch, true},
	{"cuLaunchKernelEx", cuLaunchKernelEx, launch_ex, true},
	{"cuStreamSynchronize", cuStreamSynchronize, synchronize, true},
	{"cuStreamQuery", cuStreamQuery, query, true},
	{"cuCtxGetCurrent", cuCtxGetCurrent, get_current, false},
};

static bool measure(size_t nth)
{
	static double times[2][ROUNDS], differences[ROUNDS];
	struct wanted direct = {calls[nth].name, NULL};
	dl_iterate_phdr(look, &direct);
	void *paths[2] = {direct.address, calls[nth].met};
	if (!paths[0] || (paths[0] != paths[1]) != calls[nth].hooked) {
		fprintf(stderr, "%s: not as wanted under the shim\n", calls[nth].name);
		return false;
	}
	for (int round = 0; round < ROUNDS; round++) {
		for (int k = 0; k < 2; k++) {
			int path = (round + k) % 2;
			double began = now();
			for (int i = 0; i < CALLS; i++)
				calls[nth].call(paths[path]);
			times[path][round] = (now() - began) / CALLS;
		}
		differences[round] = times[1][round] - times[0][round];
	}
	for (int path = 0; path < 2; path++)
		qsort(times[path], ROUNDS, sizeof(double), compare);
	qsort(differences, ROUNDS, sizeof(double), compare);
	printf("%s: direct %.2f ns, %s %.2f ns, added %.2f ns a call (median of %d rounds of %d; quartiles %.2f to %.2f)\n",
	       calls[nth].name, times[0][ROUNDS / 2], calls[nth].hooked ? "hooked" : "not hooked", times[1][ROUNDS / 2],
	       differences[ROUNDS / 2], ROUNDS, CALLS, differences[ROUNDS / 4], differences[3 * ROUNDS / 4]);
	return true;
}

int main(void)
{
	CUdevice device;
	CUcontext context;
	bool done = true;
	if (cuInit(0) || cuDeviceGet(&device, 0) || cuDevicePrimaryCtxRetain(&context, device) ||
	    cuCtxSetCurrent(context) || cuMemAlloc(&memory, 4096) || cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING))
		return 1;
	for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
		done &= measure(i);
	return !done;
}
