/*
 * What one hooked call costs: the same cheap calls through the hook and directly, in one process, alternating; median of the differences.
 * Build: gcc -O2 -I$CUDA_HOME/include call_cost.c -o call_cost -lcuda -ldl. Run it under `cuconst run`.
 */
#define _GNU_SOURCE
#include <cuda.h>
#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define ROUNDS 201
#define CALLS 20000

typedef CUresult (*set_fn)(CUdeviceptr, unsigned char, size_t);
typedef CUresult (*launch_fn)(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                              CUstream, void **, void **);

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

int main(void)
{
	CUdevice device;
	CUcontext context;
	CUdeviceptr p;
	struct wanted direct = {"cuMemsetD8_v2", NULL};
	if (cuInit(0) || cuDeviceGet(&device, 0) || cuDevicePrimaryCtxRetain(&context, device) ||
	    cuCtxSetCurrent(context) || cuMemAlloc(&p, 4096))
		return 1;
	dl_iterate_phdr(look, &direct);
	set_fn paths[2] = {(set_fn)direct.address, cuMemsetD8};
	if (!paths[0] || paths[0] == paths[1]) {
		fprintf(stderr, "not under the shim\n");
		return 1;
	}
	static double times[2][ROUNDS], differences[ROUNDS];
	for (int round = 0; round < ROUNDS; round++) {
		for (int k = 0; k < 2; k++) {
			int path = (round + k) % 2;
			double began = now();
			for (int i = 0; i < CALLS; i++)
				paths[path](p, 0, 0); /* zero bytes: the driver checks and returns */
			times[path][round] = (now() - began) / CALLS;
		}
		differences[round] = times[1][round] - times[0][round];
	}
	for (int path = 0; path < 2; path++)
		qsort(times[path], ROUNDS, sizeof(double), compare);
	qsort(differences, ROUNDS, sizeof(double), compare);
	printf("direct %.2f ns, hooked %.2f ns, added %.2f ns a call (median of %d rounds of %d; quartiles %.2f to %.2f)\n",
	       times[0][ROUNDS / 2], times[1][ROUNDS / 2], differences[ROUNDS / 2], ROUNDS, CALLS,
	       differences[ROUNDS / 4], differences[3 * ROUNDS / 4]);
	return 0;
}
