/* Launches that are given their twins again: what is handed over between the question and the driver's call, and what if the place becomes another launch's meanwhile. */
#include <criterion/criterion.h>

#include "shim/effects/launch_memo_read.h"
#include "shim/hook_state.h"
#include "shim/kernels/slot_verdict.h"

#define KEY 77
#define VERDICT (KERNEL_STORES - KERNEL_CLEAN)

static struct writer writer = {.key = KEY};
static struct tally tally = {.key = KEY, .count = 4};
static struct memo_place place = {
	.sequence = 2,
	.counts = (uint32_t)VERDICT | 2u << 4 | 3u << 8 | 1u << 16,
	.noted = 2,
	.first = {.writer = &writer, .tally = &tally, .key = KEY},
	.swap = {{.twin = 0x9000, .range = 5}, {.twin = 0x9100, .range = 6}},
};
static const uint64_t word[MEMO_WORDS] = {0x1000, 0x1100, 0x1200};

static void set_up(void)
{
	place.swap[0].what = memo_swap_what(0, 1, 7, 0, 8);
	place.swap[1].what = memo_swap_what(1, 3, 7, 16, 805);
	hook_count(COUNT_CALL);
}

static uint64_t counted(void)
{
	return hook_counted(COUNT_LAUNCH) + hook_counted(COUNT_STORES) + hook_counted(COUNT_CHECKED);
}

static void nothing_was_done(void)
{
	cr_assert(counted() == 0 && hook_thread.depth == 0 && tally.count == 4 && writer.value == 0);
}

static void all_was_done(const struct memo_twins *twins)
{
	cr_assert(twins && twins->count == 2 && twins->params == 7);
	const struct memo_twin *first = &twins->twin[0], *second = &twins->twin[1];
	cr_assert(first->value == 0x1000 && first->twin == 0x9000 && first->range == 5 && first->argument == 1 &&
	          first->offset == 0 && first->bytes == 8);
	cr_assert(second->value == 0x1100 && second->twin == 0x9100 && second->range == 6 && second->argument == 3 &&
	          second->offset == 16 && second->bytes == 805);
	cr_assert(counted() == 3 && hook_counted(COUNT_STORES) == 1 && hook_thread.depth == 1);
	cr_assert(tally.count == 5 && writer.value == 0x1200, "it is noted by its third word");
}

Test(twins_again, all_that_the_place_has, .init = set_up)
{
	cr_assert_eq(memo_keeps_twins(memo_look_at(&place), place.noted, word), MEMO_HAS_TWINS);
	nothing_was_done();
	all_was_done(memo_gives_twins(NULL, "cuLaunchKernel"));
}

Test(twins_again, a_place_that_is_written_while_it_is_read, .init = set_up)
{
	struct memo_found found = memo_look_at(&place);
	place.sequence += 2;
	cr_assert_eq(memo_keeps_twins(found, place.noted, word), MEMO_UNKNOWN);
	/* What is torn may say any number of twins, and of notes. */
	place.counts = UINT32_MAX;
	found = memo_look_at(&place);
	place.sequence++;
	cr_assert_eq(memo_keeps_twins(found, UINT32_MAX, word), MEMO_UNKNOWN);
	nothing_was_done();
}

Test(twins_again, a_place_that_is_written_before_the_answer, .init = set_up)
{
	cr_assert_eq(memo_keeps_twins(memo_look_at(&place), place.noted, word), MEMO_HAS_TWINS);
	place.sequence++;
	cr_assert_null(memo_gives_twins(NULL, "cuLaunchKernel"));
	nothing_was_done();
}

Test(twins_again, a_launch_that_may_begin_before_the_one_before_it_has_ended, .init = set_up)
{
	CUlaunchAttribute attribute = {.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION};
	const CUlaunchConfig config = {.attrs = &attribute, .numAttrs = 1};
	cr_assert_eq(memo_keeps_twins(memo_look_at(&place), place.noted, word), MEMO_HAS_TWINS);
	attribute.value.programmaticStreamSerializationAllowed = 1;
	cr_assert_null(memo_gives_twins(&config, "cuLaunchKernelEx"));
	nothing_was_done();
	attribute.value.programmaticStreamSerializationAllowed = 0;
	all_was_done(memo_gives_twins(&config, "cuLaunchKernelEx"));
}
