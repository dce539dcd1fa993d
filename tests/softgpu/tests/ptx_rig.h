/* A small device memory for the interpreter's tests: one arena, live ranges, and what was written. */
#ifndef SOFTGPU_TESTS_PTX_RIG_H
#define SOFTGPU_TESTS_PTX_RIG_H

#include "tests/softgpu/ptx.h"

#define RIG_BYTES (8u << 20)
#define RIG_RANGES 256u

struct rig_range {
	uint64_t start, end;
	bool read_only;
};

struct rig {
	unsigned char *bytes;
	size_t used;
	struct rig_range ranges[RIG_RANGES];
	unsigned range_count;
	uint64_t wrote_bytes; /* in all, by stores that happened */
	uint64_t wrote_calls;
	struct ptx_memory memory;
	char log[512];
	struct ptx_module *module;
	struct ptx_fault fault;
	uint64_t limit;
	unsigned host_threads;
};

void rig_create(struct rig *rig);
void rig_destroy(struct rig *rig);
/* Zeroed; live until the end. */
uint64_t rig_alloc(struct rig *rig, size_t bytes);
void rig_read_only(struct rig *rig, uint64_t address);
enum ptx_status rig_load(struct rig *rig, const char *text);
/* Loads a file of the source tree's tests/softgpu/tests/ptx_kernels. */
enum ptx_status rig_load_file(struct rig *rig, const char *name);
char *rig_read_file(const char *name);
/* One-dimensional; the parameters are 64-bit words and go in order into the kernel's, cut to their sizes. */
enum ptx_status rig_run(struct rig *rig, const char *kernel, unsigned grid, unsigned block, unsigned shared,
                        const uint64_t *params, size_t count);
#define RIG_RUN(rig, kernel, grid, block, shared, ...)                                                                 \
	rig_run(rig, kernel, grid, block, shared, (const uint64_t[]){__VA_ARGS__},                                     \
	        sizeof((const uint64_t[]){__VA_ARGS__}) / sizeof(uint64_t))
#define RIG_AT(type, address) ((type *)(uintptr_t)(address))

#endif
