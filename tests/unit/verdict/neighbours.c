/* Neighbourhoods: which allocations count, when a launch beside a range is due to be checked, and who is named. */
#include <criterion/criterion.h>
#include <pthread.h>
#include <stdlib.h>

#include "shim/effects/call.h"
#include "shim/kernels/function.h"
#include "shim/verdict/neighbours.h"
#include "shim/verdict/protect.h"

static struct function_info *function(const char *name)
{
	struct function_info *info = calloc(1, sizeof *info);
	info->name = name;
	return info;
}

static bool note(const struct call_slot *slot, uint64_t serial, const char *api)
{
	struct neighbours_mark mark;
	return neighbours_note(slot, serial, api, &mark);
}

static void set_up(void)
{
	cr_assert_eq(protect_start(), 0);
}

static struct range *add(uint64_t start, uint64_t end)
{
	const struct registry_spec spec = {.start = start, .end = end};
	struct range *range;
	cr_assert_eq(registry_insert(protect_ranges(), &spec, NULL, &range), 0);
	return range;
}

static bool hit(uint64_t address)
{
	return neighbours_hit(neighbours_all(), address);
}

Test(neighbours, an_allocation_stays_as_long_as_a_range_in_it, .init = set_up)
{
	cr_assert(!hit(0x1000));
	cr_assert(neighbours_join(0x1000, 0x9000));
	cr_assert(neighbours_join(0x1000, 0x9000));
	cr_assert(hit(0x1000) && hit(0x8fff) && !hit(0xfff) && !hit(0x9000));
	cr_assert_eq(atomic_load(&neighbours_all()->live), 1);
	neighbours_leave(0x2000);
	cr_assert(hit(0x5000));
	neighbours_leave(0x1000);
	cr_assert(!hit(0x5000));
	neighbours_leave(0x1000); /* once too often: there is none, and nothing happens */
}

Test(neighbours, those_that_overlap_become_one, .init = set_up)
{
	static struct function_info *kernel;
	struct report_kernel named[NEIGHBOURS_WRITERS];
	kernel = function("kernel");
	struct call_slot slot = {.function = kernel, .value = 0x1800};
	cr_assert(neighbours_join(0x1000, 0x2000));
	cr_assert(neighbours_join(0x4000, 0x5000));
	note(&slot, 7, "cuLaunchKernel");
	cr_assert(neighbours_join(0x1800, 0x4800), "it reaches into both");
	cr_assert_eq(atomic_load(&neighbours_all()->live), 1);
	cr_assert(hit(0x1000) && hit(0x3000) && hit(0x4fff));
	cr_assert(neighbours_join(0x2000, 0x3000), "inside");
	cr_assert_eq(atomic_load(&neighbours_all()->live), 1);
	/* What was known is kept. */
	struct range *range = add(0x4100, 0x4200);
	cr_assert_eq(neighbours_writers(range, 0, named, NEIGHBOURS_WRITERS), 1);
	for (int i = 0; i < 3; i++)
		neighbours_leave(0x4000);
	cr_assert(hit(0x1000));
	neighbours_leave(0x1000);
	cr_assert_eq(atomic_load(&neighbours_all()->live), 0);
}

Test(neighbours, first_second_fourth_eighth, .init = set_up)
{
	struct call_slot slot = {.function = function("kernel"), .argument = 2, .offset = 16, .value = 0x1800};
	struct call_slot other = slot;
	unsigned due = 0;
	other.argument = 3;
	cr_assert(neighbours_join(0x1000, 0x9000));
	for (unsigned i = 1; i <= 1000; i++) {
		bool now = note(&slot, i, "cuLaunchKernel");
		cr_assert_eq(now, !(i & (i - 1)), "%u", i);
		due += now;
	}
	cr_assert_eq(due, 10);
	cr_assert(note(&other, 2000, "cuLaunchKernel"), "another argument begins anew");
}

Test(neighbours, what_lies_in_a_range_has_its_own_number, .init = set_up)
{
	struct call_slot beside = {.function = function("kernel"), .value = 0x1800}, inside = beside;
	inside.value = 0x2000;
	inside.seldom = true;
	cr_assert(neighbours_join(0x1000, 0x9000));
	for (unsigned i = 1; i <= 4; i++)
		note(&beside, i, "cuLaunchKernel");
	cr_assert(note(&inside, 5, "cuLaunchKernel") && note(&inside, 6, "cuLaunchKernel"));
	cr_assert(!note(&inside, 7, "cuLaunchKernel") && !note(&beside, 8, "cuLaunchKernel"));
	/* One kernel through one parameter is named once. */
	struct report_kernel named[NEIGHBOURS_WRITERS];
	cr_assert_eq(neighbours_writers(add(0x2000, 0x2100), 0, named, NEIGHBOURS_WRITERS), 1);
}

Test(neighbours, whose_places_a_mark_has)
{
	struct writer writer = {.key = 17};
	struct tally tally = {.key = 17, .count = 4};
	const struct neighbours_mark mark = {&writer, &tally, 17}, other = {&writer, &tally, 18};
	cr_assert(neighbours_mark_waits(&mark));
	cr_assert(!neighbours_mark_waits(&other));
	atomic_store(&tally.key, ~UINT64_C(17));
	cr_assert(neighbours_mark_waits(&mark));
	atomic_store(&tally.key, 18);
	cr_assert(!neighbours_mark_waits(&mark), "the number is another's");
	atomic_store(&tally.key, 17);
	atomic_store(&writer.key, 18);
	cr_assert(neighbours_mark_waits(&mark), "the name is another's, and is taken back");
	/* Up to the next that is due, which is not noted here; somebody else's may have come between. */
	for (uint64_t count = 5; count <= 7; count++) {
		cr_assert(neighbours_mark_waits(&mark));
		neighbours_mark_note(&mark, 0x3000 + count, count, "cuLaunchKernel");
		cr_assert_eq(atomic_load(&tally.count), count);
		cr_assert_eq(atomic_load(&writer.last), count);
		cr_assert_eq(atomic_load(&writer.key), 17);
		cr_assert_eq(atomic_load(&writer.value), 0x3000 + count);
	}
	cr_assert(!neighbours_mark_waits(&mark));
	neighbours_mark_note(&mark, 0x4000, 9, "cuLaunchKernel");
	cr_assert_eq(atomic_load(&tally.count), 7, "the next one is due in its place");
	cr_assert_eq(atomic_load(&writer.last), 9);
}

Test(neighbours, who_is_named, .init = set_up)
{
	static const char *const names[] = {"a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l"};
	struct report_kernel named[NEIGHBOURS_WRITERS];
	struct site site = {.python = {{"train.py", "step", 12}}, .python_count = 1};
	struct range *range = add(0x2000, 0x2100);
	cr_assert(neighbours_join(0x1000, 0x9000));
	cr_assert_eq(neighbours_writers(range, 0, named, NEIGHBOURS_WRITERS), 0);
	for (unsigned i = 0; i < 12; i++) {
		struct call_slot slot = {
			.function = function(names[i]), .argument = (int)i - 1, .offset = 8 * i, .value = 0x3000 + i};
		note(&slot, 100 + i, "cuLaunchKernelEx");
		if (i == 11)
			neighbours_keep_site(&slot, &site);
	}
	cr_assert_eq(neighbours_writers(range, 0, named, NEIGHBOURS_WRITERS), NEIGHBOURS_WRITERS);
	for (unsigned i = 0; i < NEIGHBOURS_WRITERS; i++) {
		cr_assert_str_eq(named[i].name, names[11 - i], "last ones first");
		cr_assert_eq(named[i].argument, 10 - (int)i);
		cr_assert_eq(named[i].offset, 8 * (11 - i));
		cr_assert_eq(named[i].value, 0x3000 + 11 - i);
		cr_assert_str_eq(named[i].api, "cuLaunchKernelEx");
		cr_assert_eq(named[i].site.python_count, i == 0);
	}
	/* Only those since the last look. */
	cr_assert_eq(neighbours_writers(range, 109, named, NEIGHBOURS_WRITERS), 2);
	cr_assert_eq(neighbours_writers(range, 111, named, NEIGHBOURS_WRITERS), 0);
	cr_assert_eq(neighbours_writers(range, 0, named, 3), 3);
}

Test(neighbours, more_kernels_than_places, .init = set_up)
{
	struct report_kernel named[NEIGHBOURS_WRITERS];
	struct range *range = add(0x2000, 0x2100);
	cr_assert(neighbours_join(0x1000, 0x9000));
	for (unsigned i = 1; i <= 5000; i++) {
		struct call_slot slot = {.function = function("kernel"), .argument = (int)i, .value = 0x3000};
		note(&slot, i, "cuLaunchKernel");
	}
	cr_assert_eq(neighbours_writers(range, 4000, named, NEIGHBOURS_WRITERS), NEIGHBOURS_WRITERS);
	cr_assert_eq(named[0].argument, 4094, "what is too large for its field is cut");
}

/* Launches of a kernel with so many pointers; returns how many of its slots were due in the last one. */
static unsigned due_in_last(unsigned pointers, unsigned launches, unsigned *ret_all)
{
	struct function_info *kernel = function("foreach");
	unsigned due = 0;
	*ret_all = 0;
	for (unsigned i = 1; i <= launches; i++) {
		due = 0;
		for (unsigned k = 0; k < pointers; k++) {
			struct call_slot slot = {
				.function = kernel, .argument = (int)(k / 500), .offset = k % 500 * 8, .value = 0x3000};
			due += note(&slot, i, "cuLaunchKernel");
		}
		*ret_all += due;
	}
	return due;
}

/* A kernel with more pointers than there are names kept: that they take turns does not make each launch a first one. */
Test(neighbours, many_pointers_of_one_kernel, .init = set_up)
{
	unsigned all;
	cr_assert(neighbours_join(0x1000, 0x9000));
	cr_assert_eq(due_in_last(500, 1, &all), 500, "the first launch");
	for (unsigned i = 0; i < 2; i++) {
		neighbours_leave(0x1000);
		cr_assert(neighbours_join(0x1000, 0x9000));
		cr_assert_lt(due_in_last(500, 7, &all), 25, "the seventh");
	}
	due_in_last(500, 1000, &all);
	cr_assert_lt(all, 500 * 15);
	/* More than there are counted: the cost is bounded all the same. */
	due_in_last(5000, 1000, &all);
	cr_assert_lt(all, 5000 * 1000 / 50, "%u", all);
}

/* What was counted goes on where allocations become one. */
Test(neighbours, counts_of_those_that_become_one, .init = set_up)
{
	struct call_slot slot = {.function = function("kernel"), .value = 0x1800};
	cr_assert(neighbours_join(0x1000, 0x2000));
	for (unsigned i = 1; i <= 4; i++)
		note(&slot, i, "cuLaunchKernel");
	cr_assert(neighbours_join(0x1800, 0x4800));
	cr_assert(!note(&slot, 5, "cuLaunchKernel") && !note(&slot, 6, "cuLaunchKernel") &&
	          !note(&slot, 7, "cuLaunchKernel") && note(&slot, 8, "cuLaunchKernel"));
}

Test(neighbours, the_nearest_on_both_sides, .init = set_up)
{
	struct range *found[NEIGHBOURS_BESIDE], *all[100];
	cr_assert(neighbours_join(0x100000, 0x40000000));
	cr_assert_eq(neighbours_beside(protect_ranges(), 0x200000, found), 0);
	/* Far away: the only one of its allocation. One of another allocation, though nearer, is none. */
	struct range *far = add(0x30000000, 0x30000010);
	add(0x50000, 0x50010);
	cr_assert_eq(neighbours_beside(protect_ranges(), 0x200000, found), 1);
	cr_assert_eq(found[0], far);
	for (unsigned i = 0; i < 100; i++)
		all[i] = add(0x200000 + 64 * i, 0x200000 + 64 * i + 32);
	size_t count = neighbours_beside(protect_ranges(), 0x200000 + 64 * 50 + 40, found);
	bool before = false, behind = false;
	cr_assert(count >= 9 && count <= NEIGHBOURS_BESIDE, "%zu", count);
	for (size_t i = 0; i < count; i++) {
		before |= found[i] == all[50];
		behind |= found[i] == all[51];
	}
	cr_assert(before && behind);
}

/* Under ThreadSanitizer and in numbers: threads note, look and protect at once. */
static struct range *watched;
static _Atomic bool stop;

static void *noting(void *data)
{
	struct call_slot slot = {.function = data, .value = 0x3000};
	for (uint64_t i = 1; i <= 20000; i++) {
		slot.argument = (int)(i % 7);
		note(&slot, i, "cuLaunchKernel");
		if (i % 1000 == 0)
			neighbours_keep_site(&slot, &(struct site){.python_count = 0});
	}
	return NULL;
}

static void *joining(void *data)
{
	while (!atomic_load(&stop)) {
		cr_assert(neighbours_join(0x8000, 0xa000));
		cr_assert(hit(0x3000) && hit(0x9000), "never out of sight");
		neighbours_leave(0x9000);
	}
	return NULL;
}

Test(neighbours, many_threads, .init = set_up, .timeout = 30)
{
	pthread_t threads[3], joiner;
	struct report_kernel named[NEIGHBOURS_WRITERS];
	watched = add(0x2000, 0x2100);
	cr_assert(neighbours_join(0x1000, 0x9000));
	pthread_create(&joiner, NULL, joining, NULL);
	for (int i = 0; i < 3; i++)
		pthread_create(&threads[i], NULL, noting, function("kernel"));
	for (int i = 0; i < 1000; i++) {
		size_t count = neighbours_writers(watched, 0, named, NEIGHBOURS_WRITERS);
		for (size_t k = 0; k < count; k++)
			cr_assert_str_eq(named[k].name, "kernel");
	}
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	atomic_store(&stop, true);
	pthread_join(joiner, NULL);
	cr_assert(hit(0x3000));
}
