/*
 * What is known about a launched function: its name and the layout of its parameters. Cached by handle; asked of the driver once.
 */
#ifndef CUCONST_KERNELS_FUNCTION_H
#define CUCONST_KERNELS_FUNCTION_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shim/driver.h"

struct function_param {
	uint32_t offset, bytes; /* in the parameter block */
};

struct kernel_paths;
struct variant;

/* Answers for some values of the parameters, found without a lock; more are not kept, nor worked out. */
#define FUNCTION_VARIANTS 16
struct function_variants {
	_Atomic(const struct variant *) of[FUNCTION_VARIANTS]; /* the first that is NULL ends it */
	_Atomic unsigned asked; /* how often one was worked out, but for those that another thread brought first */
};

/* Fixed once published but for its paths, never freed: graphs and pending checks point to it. */
struct function_info {
	CUfunction function; /* or a CUkernel that was passed as one */
	const char *name;    /* raw symbol, interned; "?" when the driver would not tell */
	bool readable;       /* the parameter layout is known */
	size_t param_count;
	size_t params_bytes;                          /* of the whole block */
	_Atomic(const struct kernel_paths *) paths;   /* function_paths() */
	uint64_t load;                                /* whose code the paths are of; function.c's */
	_Atomic(struct function_variants *) variants; /* made with the first, then for ever */
	struct function_param params[];
};

/* Never NULL but for lack of memory. No lock on the path of a function that is known. Thread-safe. */
const struct function_info *function_info(CUfunction function);

/* A module or library was unloaded: handles may come again for other functions. */
void function_forget(void);

/* Store paths as they are known: one load. NULL: nobody asked yet, then images_paths() finds out. */
static inline const struct kernel_paths *function_paths(const struct function_info *info)
{
	return atomic_load_explicit(&info->paths, memory_order_acquire);
}

/*
 * For images_paths(): what it found for the code of that load, asked for in that epoch. Not kept when something was unloaded meanwhile: the handle may mean
 * another function.
 */
uint64_t function_epoch(void);
void function_set_paths(const struct function_info *info, const struct kernel_paths *paths, uint64_t load,
                        uint64_t epoch);

/*
 * For variants.c: the place for variants, made at the first call (NULL: no memory); and a variant of the code of that load is put there, as with function_set_paths(). False: it is
 * there already.
 */
struct function_variants *function_variants(const struct function_info *info);
bool function_add_variant(const struct function_info *info, const struct variant *variant, uint64_t load, uint64_t epoch);

#endif
