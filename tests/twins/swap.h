/* What scenes with kernels need: the kernels of swap.ptx, memory that has twins, and a place for a kernel's result. */
#ifndef TESTS_TWINS_SWAP_H
#define TESTS_TWINS_SWAP_H

#include "vmm.h"

static CUmodule kernels;
static CUdeviceptr w; /* protected, of memory that has twins: words 0, 1, 2... */
static CUdeviceptr out;

#define WORDS 1024

static CUfunction function(const char *name)
{
	CUfunction found;
	CHECK(cuModuleGetFunction(&found, kernels, name));
	return found;
}

static void run(const char *name, unsigned threads, void **params)
{
	CHECK(cuLaunchKernel(function(name), 1, 1, 1, threads, 1, 1, 0, stream, params, NULL));
}

static void prepare(void)
{
	static char text[1 << 16];
	int words[WORDS];
	FILE *file = fopen(getenv("SWAP_PTX"), "r");

	EXPECT(file && fread(text, 1, sizeof text - 1, file) > 0);
	fclose(file);
	CHECK(cuModuleLoadData(&kernels, text));
	w = allocate(1);
	out = q;
	for (int i = 0; i < WORDS; i++)
		words[i] = i;
	CHECK(cuMemcpyHtoD(w, words, sizeof words));
	CHECK(cuCtxSynchronize());
}

__attribute__((unused)) static cuconst_handle guard(void)
{
	return protect(w, WORDS * 4, "w");
}

static long long result(void)
{
	long long value;
	CHECK(cuStreamSynchronize(stream));
	CHECK(cuMemcpyDtoH(&value, out, 8));
	return value;
}

#endif
