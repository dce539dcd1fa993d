/*
 * A driver that knows handles and nothing else: modules with one kernel each, `which`, and the questions that images_paths() asks. Tests own the handles, and may
 * give them out again.
 */
#ifndef CUCONST_TESTS_UNIT_IMAGES_FAKE_H
#define CUCONST_TESTS_UNIT_IMAGES_FAKE_H

#include <stddef.h>
#include <stdint.h>

#include "shim/kernels/images.h"

#define MODULE(n) ((CUmodule)(uintptr_t)(0x10000 + 16 * (n)))
#define LIBRARY(n) ((CUlibrary)(uintptr_t)(0x20000 + 16 * (n)))
#define FUNCTION(n) ((CUfunction)(uintptr_t)(0x30000 + 16 * (n))) /* of MODULE(n) */
#define KERNEL(n) ((CUkernel)(uintptr_t)(0x40000 + 16 * (n)))     /* of LIBRARY(n), whose module is MODULE(n) */
#define CONTEXT ((CUcontext)(uintptr_t)0x50000)

/* Fills in drv, for devices of these machines (90: sm_90), and hands the loader to images.h. */
void fake_start(const unsigned *machines, size_t count);

/* From now on. */
void fake_machines(const unsigned *machines, size_t count);

/* As the rules of shim/effects/modules.c have it. */
void fake_unload_module(unsigned n);
void fake_unload_library(unsigned n);

/* The one slot that `which` stores through, of four; -1: its paths are not clear, or several. */
int stored_slot(const struct kernel_paths *paths);

/* code/which_N.cubin: it stores through slot N. */
const uint8_t *which_cubin(unsigned slot, size_t *ret_bytes);

/* PTX of the same, terminated. The caller frees. */
char *which_ptx(unsigned slot);

/* The folder code/. */
extern const char *code_folder;

/*
 * A fatbin of some entries; the caller frees. `sm` is only said, the code is what it is.
 */
enum packing { PLAIN, LZ4, ZSTD };
struct entry {
	unsigned kind, sm; /* 1: PTX, 2: cubin */
	uint64_t flags;
	enum packing packing;
	const void *code;
	size_t bytes;
};
uint8_t *make_fatbin(const struct entry *entries, size_t count, size_t *ret_bytes);

#endif
