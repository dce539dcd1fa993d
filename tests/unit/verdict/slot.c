/* The verdict of one slot: by hand, each way for it to lie in a parameter block. */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "shim/kernels/slot_verdict.h"

static struct slot_paths slots[] = {
	{.use = SLOT_NONE},
	{.use = SLOT_LOAD},
	{.use = SLOT_STORE, .only_base = true},
	{.use = SLOT_STORE, .compared = true},
};
static struct kernel_paths paths = {.slot_count = 4, .slots = slots};

/* Parameters at these offsets, 8 bytes each. */
static const struct function_info *function(uint32_t first, uint32_t second)
{
	struct function_info *info = calloc(1, sizeof *info + 2 * sizeof info->params[0]);
	info->readable = true;
	info->param_count = 2;
	info->params[0] = (struct function_param){first, 8};
	info->params[1] = (struct function_param){second, 16};
	return info;
}

static enum kernel_verdict verdict(enum paths_reason reason, int argument, uint32_t offset, struct slot_paths *ret)
{
	paths.reason = reason;
	return slot_verdict(function(0, 8), &paths, argument, offset, ret);
}

Test(slot_verdict, by_use_and_reason)
{
	struct slot_paths may;
	cr_assert_eq(verdict(PATHS_CLEAR, 0, 0, &may), KERNEL_CLEAN);
	cr_assert_eq(verdict(PATHS_CLEAR, 1, 0, &may), KERNEL_CLEAN);
	cr_assert(slot_may_swap(&may), "an address that is read");
	cr_assert_eq(verdict(PATHS_CLEAR, 1, 8, &may), KERNEL_STORES);
	cr_assert(may.only_base && slot_may_swap(&may));
	/* A kernel that stores elsewhere too: what is not said to be stored through may be. */
	cr_assert_eq(verdict(PATHS_TABLE, 0, 0, &may), KERNEL_UNKNOWN);
	cr_assert(!slot_may_swap(&may), "no address at all, as far as is known");
	cr_assert_eq(verdict(PATHS_TABLE, 1, 0, &may), KERNEL_UNKNOWN);
	cr_assert_eq(verdict(PATHS_TABLE, 1, 8, &may), KERNEL_STORES);
	cr_assert(may.only_base, "its own store is met by refusing the slot");
}

Test(slot_verdict, of_the_whole_block)
{
	struct slot_paths may;
	cr_assert_eq(verdict(PATHS_CLEAR, -1, 16, &may), KERNEL_STORES);
	cr_assert_eq(verdict(PATHS_CLEAR, -1, 24, &may), KERNEL_STORES);
	cr_assert(!slot_may_swap(&may), "compared with another");
	cr_assert_eq(slot_index(function(0, 8), -1, 24), 3);
	cr_assert_eq(slot_index(function(0, 8), 1, 8), 2);
}

Test(slot_verdict, across_two)
{
	struct slot_paths may;
	paths.reason = PATHS_CLEAR;
	/* 4 to 12: of slots 0 and 1, both harmless; 12 to 20: of 1 and 2. */
	cr_assert_eq(slot_verdict(function(4, 12), &paths, 0, 0, &may), KERNEL_CLEAN);
	cr_assert_eq(slot_verdict(function(4, 12), &paths, 1, 0, &may), KERNEL_STORES);
	cr_assert(!may.only_base, "it is none of the two alone");
	cr_assert_eq(slot_index(function(4, 12), 1, 0), SLOT_NOWHERE);
}

Test(slot_verdict, what_is_not_known_is_not_clean)
{
	struct slot_paths may;
	paths.reason = PATHS_CLEAR;
	cr_assert_eq(slot_verdict(function(0, 8), NULL, 0, 0, &may), KERNEL_UNKNOWN, "no memory");
	cr_assert(!may.only_base && !slot_may_swap(&may));
	cr_assert_eq(slot_verdict(function(0, 32), &paths, 1, 0, &may), KERNEL_UNKNOWN, "beyond what the code has");
	cr_assert_eq(slot_verdict(function(0, 28), &paths, 1, 0, &may), KERNEL_UNKNOWN, "half beyond it");
	cr_assert_eq(slot_verdict(function(0, UINT32_MAX), &paths, 1, 8, &may), KERNEL_UNKNOWN);
	const struct kernel_paths unread = {.reason = PATHS_UNSEEN};
	cr_assert_eq(slot_verdict(function(0, 8), &unread, 0, 0, &may), KERNEL_UNKNOWN);
}
