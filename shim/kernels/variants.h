/*
 * Store paths of a function for the values that its parameters have at one launch. Kernels of libraries serve several layouts by one piece of code: a word of the parameters says
 * which, and only in some of them an address comes from memory.
 *
 * A variant is an answer with the conditions on words of the parameters under which it holds. Variants are kept with the function, found without a lock, and never freed.
 */
#ifndef CUCONST_KERNELS_VARIANTS_H
#define CUCONST_KERNELS_VARIANTS_H

#include "shim/kernels/function.h"
#include "shim/kernels/paths.h"

/* One condition: the word at `offset` has these bits, or is small (PATHS_SMALL). */
struct variant_guard {
	uint32_t offset, mask, value;
	uint32_t small; /* a bool without a gap behind it: guards are compared as bytes */
};

static inline bool variant_guard_holds(const struct variant_guard *guard, uint32_t word)
{
	return guard->small ? word < PATHS_SMALL : (word & guard->mask) == guard->value;
}

struct variant {
	uint16_t number;                  /* in this process: no other variant's; 0: all were given */
	const struct kernel_paths *paths; /* NULL: no better than for any values */
	size_t guard_count;
	struct variant_guard guards[];
};

/* The largest parameter block that is looked at. */
#define VARIANT_BLOCK_BYTES 4096

/*
 * What the kernel does in a launch with this parameter block, of info->params_bytes, laid out as the function says. Where nothing is known of such values it is worked out, which
 * takes some runs of the analysis and calls the driver, a few times for each function. NULL: not known. Its paths are NULL where they are no better than function_paths().
 */
const struct variant *function_variant(const struct function_info *info, const uint8_t *block);
/* The same where it was worked out before; else NULL. */
const struct variant *function_known_variant(const struct function_info *info, const uint8_t *block);
/* The same, paths alone. NULL: nothing better than function_paths(). */
const struct kernel_paths *function_paths_for(const struct function_info *info, const uint8_t *block);

/* fork child. */
void variants_reset(void);

#endif
