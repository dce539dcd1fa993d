/*
 * Frame of the misuse programs: each is one way to write into read-only memory (or to come near it), and names in its
 * first comment what must come of it, mode by mode:
 *
 *     expect MODE exit STATUS "first line on stderr"     ("" : nothing is said about a violation)
 *
 * MODE `twins` is strict with twins=all, where that differs.
 *
 * Buffers p and q have SIZE bytes of device memory each, filled with 1 and 3. Everything that is checked aborts the
 * program with 99.
 */
#ifndef MISUSE_H
#define MISUSE_H

#include <cuda.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "shim/cuconst.h"

#define CHECK(call)                                                                                                    \
	do {                                                                                                           \
		int result_ = (int)(call);                                                                             \
		if (result_) {                                                                                         \
			fprintf(stderr, "%s:%d: %s: %d\n", __FILE__, __LINE__, #call, result_);                        \
			_exit(99);                                                                                     \
		}                                                                                                      \
	} while (0)

/* The program's own claim about an answer. */
#define EXPECT(condition)                                                                                              \
	do {                                                                                                           \
		if (!(condition)) {                                                                                    \
			fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);                        \
			_exit(99);                                                                                     \
		}                                                                                                      \
	} while (0)

#define SIZE 4096u
#define COUNT (SIZE / 4)

static CUdeviceptr p, q;
static CUcontext context;
static CUmodule module;
static CUstream stream;

__attribute__((unused)) static CUfunction kernel(const char *name)
{
	CUfunction function;
	CHECK(cuModuleGetFunction(&function, module, name));
	return function;
}

__attribute__((unused)) static CUresult try_launch(const char *name, unsigned threads, CUstream in, void **params)
{
	unsigned block = threads < 256 ? threads : 256;
	return cuLaunchKernel(kernel(name), (threads + block - 1) / block, 1, 1, block, 1, 1, 0, in, params, NULL);
}

__attribute__((unused)) static void launch(const char *name, unsigned threads, CUstream in, void **params)
{
	CHECK(try_launch(name, threads, in, params));
}

/* A graph's node that launches it as try_launch() does. */
__attribute__((unused)) static CUDA_KERNEL_NODE_PARAMS kernel_node(CUfunction function, unsigned threads, void **params)
{
	unsigned block = threads < 256 ? threads : 256;
	return (CUDA_KERNEL_NODE_PARAMS){.func = function,
	                                 .gridDimX = (threads + block - 1) / block,
	                                 .gridDimY = 1,
	                                 .gridDimZ = 1,
	                                 .blockDimX = block,
	                                 .blockDimY = 1,
	                                 .blockDimZ = 1,
	                                 .kernelParams = params};
}

__attribute__((unused)) static CUresult try_fill(CUdeviceptr out, int value, int count)
{
	void *params[] = {&out, &value, &count};
	return try_launch("fill", (unsigned)count, stream, params);
}

/* fill(out, value, count) in the program's stream. */
__attribute__((unused)) static void fill(CUdeviceptr out, int value, int count)
{
	CHECK(try_fill(out, value, count));
}

__attribute__((unused)) static cuconst_handle protect(CUdeviceptr at, size_t bytes, const char *label)
{
	cuconst_handle handle = 0;
	CHECK(cuconst_protect(at, bytes, label, 0, NULL, &handle));
	return handle;
}

__attribute__((unused)) static int byte_at(CUdeviceptr at)
{
	unsigned char byte;
	CHECK(cuMemcpyDtoH(&byte, at, 1));
	return byte;
}

/* Set by the deny runs, so that a program can expect a refusal: MISUSE_MODE. */
__attribute__((unused)) static int refused(CUresult result)
{
	const char *mode = getenv("MISUSE_MODE");
	return result == (mode && !strcmp(mode, "deny") ? CUDA_ERROR_NOT_PERMITTED : CUDA_SUCCESS);
}

/* After a launch that the deny runs refuse: the bytes are what they were, and the context is as good as before. */
__attribute__((unused)) static void expect_unharmed(CUdeviceptr at, int was)
{
	const char *mode = getenv("MISUSE_MODE");
	if (!mode || strcmp(mode, "deny") != 0)
		return;
	CHECK(cuCtxSynchronize());
	EXPECT(byte_at(at) == was);
	fill(q, 5, COUNT);
	CHECK(cuStreamSynchronize(stream));
	EXPECT(byte_at(q) == 5);
}

/* fill() into a read-only range: refused in the deny runs. */
__attribute__((unused)) static void guilty_fill(CUdeviceptr out, int value, int count)
{
	int was = byte_at(out);
	EXPECT(refused(try_fill(out, value, count)));
	expect_unharmed(out, was);
}

static void start(void)
{
	CUdevice device;
	static char text[1 << 16];
	FILE *file = fopen(getenv("MISUSE_PTX") ? getenv("MISUSE_PTX") : "kernels.ptx", "r");
	EXPECT(file && fread(text, 1, sizeof text - 1, file) > 0);
	fclose(file);
	CHECK(cuInit(0));
	CHECK(cuDeviceGet(&device, 0));
	CHECK(cuDevicePrimaryCtxRetain(&context, device));
	CHECK(cuCtxSetCurrent(context));
	CHECK(cuModuleLoadData(&module, text));
	CHECK(cuMemAlloc(&p, SIZE));
	CHECK(cuMemAlloc(&q, SIZE));
	CHECK(cuMemsetD8(p, 1, SIZE));
	CHECK(cuMemsetD8(q, 3, SIZE));
	CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	CHECK(cuCtxSynchronize());
}

#endif
