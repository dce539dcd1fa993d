/* The driver of launch_bench.c: libcuda.so.1 in all but work. */
#ifndef CUCONST_BENCH_LAUNCH_STUB_H
#define CUCONST_BENCH_LAUNCH_STUB_H

#include <cuda.h>
#include <stddef.h>
#include <stdint.h>

#define STUB_TENSORS 16
#define STUB_WORDS 64
#define STUB_MODEL_KERNELS 150

/* Function handles. */
enum {
	STUB_CHECK = 1, /* the shim's own */
	STUB_OTHER,
	STUB_FOUR,   /* (pointer, pointer, pointer, int) */
	STUB_STRUCT, /* one struct of STUB_TENSORS pointers */
	STUB_READER, /* (pointer, pointer, pointer, int): stores nothing; the two before store through all */
	STUB_GEMV, /* one struct of STUB_WORDS words: word 0, 2 and 4 are read through, 6 is stored through, others are numbers */
	STUB_MODEL = 100, /* and STUB_MODEL_KERNELS - 1 more: as STUB_FOUR or, every third, STUB_READER */
	STUB_TABLE = 7,   /* (pointer, pointer, pointer, int): stores through an address loaded from the third */
};

struct stub_dim {
	unsigned x, y, z;
};

/* runtime.c: as the CUDA runtime's. */
int cudaLaunchKernel(const void *func, struct stub_dim grid, struct stub_dim block, void **args, size_t shared,
                     CUstream stream);

/* cuLaunchKernel() by a name that is not hooked. */
CUresult stub_launch(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                     unsigned shared, CUstream stream, void **params, void **extra);

/* Check launches so far. */
extern uint64_t stub_checks;

#endif
