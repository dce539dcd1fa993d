/* Between images.c (which load has a handle) and function_paths.c (from a function to its load). */
#ifndef CUCONST_KERNELS_IMAGES_INTERNAL_H
#define CUCONST_KERNELS_IMAGES_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shim/driver.h"
#include "shim/kernels/paths.h"

struct image;

struct load {
	uint64_t number; /* never given twice */
	struct image *image;
};

/* The load that a module or library came from, with a reference to its image. False: not seen. */
bool images_find(const void *handle, struct load *ret_load);

/* A function was not seen. The next load ends what is known of it; what was loaded before this call must be looked for once more. */
void images_missed(void);

/* A module that belongs to a library's load, in the current context: it ends with it. */
void images_add_module(CUmodule module, CUlibrary library, const struct load *load);

/*
 * Fills in up to `room` loaded libraries; returns how many there are. From here to images_search_end() none of them is unloaded: threads that want to, wait
 * (images_ending()), so nothing but a few quick questions to the driver belongs in between.
 */
size_t images_search_begin(CUlibrary *libraries, size_t room);
void images_search_end(void);

/*
 * What a function's code does for these values (image_paths_for()), kept for ever, and the number of the load that it came from. False: its image is not there, or no
 * memory. *ret_paths NULL: no better than for any values.
 */
struct function_info;
bool images_paths_for(const struct function_info *info, struct paths_values *values,
                      const struct kernel_paths **ret_paths, uint64_t *ret_load);

/* function_paths.c, for images_reset(). */
void function_paths_reset(void);

#endif
