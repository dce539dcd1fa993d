/*
 * Parts of the registry that registry.h does not show: slots and their generations, readers that queue up, lock
 * ranks.
 */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include "registry/lock.h"
#include "registry/tree.h"

TestSuite(registry_inside, .timeout = 10);

static struct range *add(struct ranges *table)
{
	const struct registry_spec spec = {.start = 1, .end = 2};
	struct registry_spec copy;

	cr_assert(eq(int, ranges_copy_spec(&spec, &copy), 0));
	cr_assert(eq(int, ranges_reserve(table), 0));
	return ranges_add(table, &copy, 1);
}

Test(registry_inside, slots_are_reused_under_new_handles)
{
	struct ranges table;
	struct range *range, *other;
	registry_handle first;

	ranges_init(&table, NULL);
	range = add(&table);
	first = range->handle;
	atomic_store(&range->removed, true);
	range_put(range);
	other = add(&table);
	cr_assert(eq(ptr, other, range));
	cr_assert(eq(u64, other->handle, first + (UINT64_C(1) << 32)));
	cr_assert(eq(ptr, ranges_take(&table, first), NULL));
	cr_assert(eq(int, ranges_lookup(&table, first, &other), -ESTALE));
	ranges_destroy(&table);
}

Test(registry_inside, a_slot_is_retired_before_its_handles_repeat)
{
	struct ranges table;
	struct range *range;
	registry_handle last = (uint64_t)RANGES_LAST_GENERATION << 32;

	ranges_init(&table, NULL);
	range = add(&table);
	range->handle = last;
	atomic_store(&range->removed, true);
	range_put(range);
	range = add(&table);
	cr_assert(eq(u64, range->handle, (UINT64_C(1) << 32) + 1), "the next slot, not a handle seen before");
	cr_assert(eq(int, ranges_lookup(&table, last, &range), -ESTALE));
	ranges_destroy(&table);
}

Test(registry_inside, slots_of_all_chunks_are_found)
{
	enum { MANY = 64 * 31 + 1 };
	struct ranges table;
	struct range *range;

	ranges_init(&table, NULL);
	for (uint32_t at = 0; at < MANY; at++) {
		range = add(&table);
		cr_assert(eq(u64, range->handle, (UINT64_C(1) << 32) + at));
	}
	for (uint32_t at = 0; at < MANY; at++) {
		range = ranges_take(&table, (UINT64_C(1) << 32) + at);
		cr_assert(ne(ptr, range, NULL));
		range_put(range);
	}
	cr_assert(eq(ptr, ranges_take(&table, (UINT64_C(1) << 32) + MANY), NULL));
	cr_assert(eq(ptr, ranges_take(&table, UINT64_MAX), NULL));
	ranges_destroy(&table);
}

static struct registry *queue_reg;
static _Atomic bool answered;

static void *ask(void *data)
{
	struct range *out[1];
	uint64_t distance;

	*(bool *)data = registry_hits(queue_reg, 15, 16) && registry_nearest(queue_reg, 15, &distance) != NULL &&
	                registry_overlaps(queue_reg, 0, 100, out, 1) == 1;
	atomic_store(&answered, true);
	return NULL;
}

/*
 * A writer that is held up in the middle of its work: readers give up trying, wait for it, and then get their
 * answer.
 */
Test(registry_inside, disturbed_readers_queue_up_behind_the_writer)
{
	const struct registry_spec spec = {.start = 10, .end = 20};
	struct tree *tree;
	pthread_t thread;
	bool right = false;

	cr_assert(eq(int, registry_create(NULL, &queue_reg), 0));
	cr_assert(eq(int, registry_insert(queue_reg, &spec, NULL, NULL), 0));
	tree = (struct tree *)(void *)queue_reg->tree;
	registry_prefork(queue_reg);
	tree_write_begin(tree);
	cr_assert(eq(int, pthread_create(&thread, NULL, ask, &right), 0));
	usleep(50000);
	cr_assert(not(atomic_load(&answered)));
	tree_write_end(tree);
	registry_postfork_parent(queue_reg);
	cr_assert(eq(int, pthread_join(thread, NULL), 0));
	cr_assert(right);
	registry_destroy(&queue_reg);
}

Test(registry_inside, locks_by_rising_rank)
{
	static struct lock twins = LOCK_INITIALIZER(LOCK_TWINS), report = LOCK_INITIALIZER(LOCK_REPORT);

	for (int round = 0; round < 2; round++) {
		lock_acquire(&twins);
		lock_acquire(&report);
		lock_release(&report);
		lock_release(&twins);
	}
}

#ifndef NDEBUG
Test(registry_inside, falling_rank_aborts_a_debug_build, .signal = SIGABRT)
{
	static struct lock twins = LOCK_INITIALIZER(LOCK_TWINS), report = LOCK_INITIALIZER(LOCK_REPORT);

	lock_acquire(&report);
	lock_acquire(&twins);
}

Test(registry_inside, same_rank_aborts_a_debug_build, .signal = SIGABRT)
{
	static struct lock one = LOCK_INITIALIZER(LOCK_REGISTRY), other = LOCK_INITIALIZER(LOCK_REGISTRY);

	lock_acquire(&one);
	lock_acquire(&other);
}
#endif
