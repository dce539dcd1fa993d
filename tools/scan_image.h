/* Device code in a file: PTX, a cubin, a fatbin, or a host file that holds fatbins. */
#ifndef CUCONST_TOOLS_SCAN_IMAGE_H
#define CUCONST_TOOLS_SCAN_IMAGE_H

#include <stddef.h>

#include "shim/kernels/paths.h"

struct scan_param {
	uint32_t index, offset, bytes;
};

/* A slot that a store may go through; stores by their number. */
struct scan_base {
	size_t store;
	uint32_t slot;
};

/* Values to go by: words of 4 bytes at their place in the parameters. */
#define SCAN_VALUES_MAX 64
#define SCAN_VALUE_BYTES 4096 /* their offsets are below */
struct scan_value {
	uint32_t offset, value;
};

struct scan_kernel {
	char *name;
	unsigned sm; /* 90 for sm_90; 0: not said */
	bool ptx;
	struct kernel_paths paths;
	struct scan_param *params; /* by index */
	size_t param_count, param_room;
	struct scan_base *bases; /* by store, then by slot; of the stores that paths keeps */
	size_t base_count, base_room;
	struct scan_value *values; /* of those that were given: the ones that `paths` hang on */
	size_t value_count;
	bool failed; /* while it is filled: no memory */
};

struct scan_result {
	struct scan_kernel *kernels;
	size_t count, room;
	size_t images;        /* PTX texts and cubins that were read */
	size_t damaged, zstd; /* images that could not be: damaged, or packed with zstd where there is no libzstd */
};

/*
 * What to leave out: kernels whose names do not match the glob (NULL: none), images for another machine (0: none); and
 * what to go by.
 */
struct scan_filter {
	const char *glob;
	unsigned sm;
	const struct scan_value *values; /* of each kernel's parameters */
	size_t value_count;
	void (*progress)(void *ctx, size_t done, size_t bytes); /* NULL: nobody asks; between images */
	void *ctx;
};

/* 0, -EINVAL (holds no device code), -ENOMEM. scan_free() in any case. */
int scan_bytes(const void *file, size_t bytes, const struct scan_filter *filter, struct scan_result *result);
void scan_free(struct scan_result *result);

#endif
