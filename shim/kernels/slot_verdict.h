/*
 * The kernel verdict of one parameter slot: what a launch with an address there can do to the memory around it. Pure: asks nobody.
 */
#ifndef CUCONST_KERNELS_SLOT_VERDICT_H
#define CUCONST_KERNELS_SLOT_VERDICT_H

#include <stdint.h>

#include "shim/kernels/function.h"
#include "shim/kernels/paths.h"

/* Ordered: more is worse. */
enum kernel_verdict {
	KERNEL_CLEAN, /* no store goes through the slot */
	KERNEL_NEAR,  /* one may, and the slot points beside a protected range, into its allocation */
	KERNEL_UNKNOWN, /* the kernel stores through addresses that did not come from its parameters, or could not be read */
	KERNEL_STORES, /* a store goes through the slot */
};

#define SLOT_BYTES 8

/* Offset in the parameter block. */
static inline uint64_t slot_block_offset(const struct function_info *info, int argument, uint32_t offset)
{
	uint64_t start = argument >= 0 && (size_t)argument < info->param_count ? info->params[argument].offset : 0;
	return start + offset;
}

static inline void slot_join(struct slot_paths *into, const struct slot_paths *other)
{
	into->use = other->use > into->use ? other->use : into->use;
	into->compared |= other->compared;
	into->only_base = false;
}

/*
 * The verdict of the aligned slot at `offset` of an argument (-1: of the whole block), whose value points into a protected range. `paths` NULL: unknown.
 * *ret_may is what the kernel can do with it; of a slot that lies across two of the parameter block (a packed struct) both together, and then it is
 * never an only base.
 */
static inline enum kernel_verdict slot_verdict(const struct function_info *info, const struct kernel_paths *paths,
                                               int argument, uint32_t offset, struct slot_paths *ret_may)
{
	uint64_t at = slot_block_offset(info, argument, offset), first = at / SLOT_BYTES;
	bool across = at % SLOT_BYTES;
	*ret_may = (struct slot_paths){.use = SLOT_STORE, .compared = true};
	/* Parameters that the code does not have: what was read is not what runs. */
	if (!paths || first + across >= paths->slot_count)
		return KERNEL_UNKNOWN;
	*ret_may = paths->slots[first];
	if (across)
		slot_join(ret_may, &paths->slots[first + 1]);
	if (ret_may->use == SLOT_STORE)
		return KERNEL_STORES;
	return paths->reason == PATHS_CLEAR ? KERNEL_CLEAN : KERNEL_UNKNOWN;
}

/* Its place in kernel_paths.slots; SLOT_NOWHERE: none, or two. */
#define SLOT_NOWHERE UINT32_MAX
uint32_t slot_index(const struct function_info *info, int argument, uint32_t offset);

/* May the value be replaced by another address of the same memory? Only where it is used as an address and not compared with another. */
static inline bool slot_may_swap(const struct slot_paths *may)
{
	return may->use != SLOT_NONE && !may->compared;
}

/*
 * Of an unknown slot: was all code read, and is the slot itself the address of no store? Then what the kernel stores through comes from memory, from the
 * module or from a number, and mostly has nothing to do with the slot.
 */
static inline bool slot_stores_elsewhere(const struct kernel_paths *paths, const struct slot_paths *may)
{
	return paths && may->use != SLOT_STORE &&
	       (paths->reason == PATHS_TABLE || paths->reason == PATHS_GLOBAL || paths->reason == PATHS_NO_BASE);
}

/* Static text: "clean", "near", "unknown", "stores". */
const char *kernel_verdict_name(enum kernel_verdict verdict);

#endif
