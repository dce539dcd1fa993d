/* Where addresses lie: what was remembered must not outlive a protection, whoever filled the memory. */
#include <criterion/criterion.h>
#include <pthread.h>

#include "shim/verdict/area.h"
#include "shim/verdict/neighbours.h"
#include "shim/verdict/protect.h"

#define ROUNDS 20000

static void set_up(void)
{
	cr_assert_eq(protect_start(), 0);
}

static registry_handle add(uint64_t start, uint64_t end)
{
	const struct registry_spec spec = {.start = start, .end = end};
	registry_handle handle;
	cr_assert_eq(registry_insert(protect_ranges(), &spec, &handle, NULL), 0);
	return handle;
}

static struct area now(uint64_t address)
{
	struct area_view view = area_view();
	return address - view.low < view.bytes ? area_of(&view, address) : (struct area){.kind = AREA_ELSEWHERE};
}

static enum area_kind kind(uint64_t address)
{
	return now(address).kind;
}

Test(area, nothing_lies_anywhere_before_the_start)
{
	cr_assert_eq(area_view().bytes, 0);
}

Test(area, an_answer_lasts_as_long_as_what_it_is_of, .init = set_up)
{
	cr_assert_eq(kind(0x2000), AREA_ELSEWHERE);
	cr_assert(neighbours_join(0x1000, 0x9000));
	cr_assert(neighbours_join(0x20000, 0x21000));
	registry_handle first = add(0x2000, 0x3000);
	for (int i = 0; i < 2; i++) {
		cr_assert_eq(kind(0x1000), AREA_BESIDE);
		cr_assert_eq(kind(0x1fff), AREA_BESIDE);
		cr_assert_eq(kind(0x2000), AREA_INSIDE);
		cr_assert_eq(kind(0x2fff), AREA_INSIDE);
		cr_assert_eq(kind(0x3000), AREA_BESIDE);
		cr_assert_eq(kind(0x9000), AREA_ELSEWHERE, "between two allocations, within the bounds of both");
		cr_assert(now(0x2000).neighbourhood == now(0x1000).neighbourhood && now(0x1000).neighbourhood);
		cr_assert_neq(now(0x20000).neighbourhood, now(0x1000).neighbourhood);
	}
	registry_handle second = add(0x3000, 0x4000);
	cr_assert_eq(kind(0x3000), AREA_INSIDE);
	cr_assert_eq(registry_remove(protect_ranges(), first, NULL), 0);
	cr_assert_eq(kind(0x2000), AREA_BESIDE);
	cr_assert_eq(registry_remove(protect_ranges(), second, NULL), 0);
	neighbours_leave(0x1000);
	cr_assert_eq(kind(0x2000), AREA_ELSEWHERE);
	cr_assert_eq(kind(0x20000), AREA_BESIDE);
}

Test(area, an_allocation_that_grew_has_another_name, .init = set_up)
{
	cr_assert(neighbours_join(0x1000, 0x2000));
	registry_handle before = now(0x1000).neighbourhood;
	cr_assert(neighbours_join(0x1800, 0x4000));
	cr_assert_neq(now(0x1000).neighbourhood, before);
	cr_assert_eq(kind(0x3000), AREA_BESIDE);
	struct range *found = registry_find(neighbours_all(), now(0x1000).neighbourhood);
	cr_assert(found && found->start == 0x1000 && found->end == 0x4000);
	range_put(found);
}

Test(area, more_addresses_than_are_remembered, .init = set_up)
{
	cr_assert(neighbours_join(0x100000, 0x10000000));
	for (uint64_t at = 0x100000; at < 0x1000000; at += 0x1000)
		add(at, at + 0x800);
	for (int round = 0; round < 2; round++)
		for (uint64_t at = 0x100000; at < 0x1000000; at += 0x400)
			cr_assert_eq(kind(at), at & 0x800 ? AREA_BESIDE : AREA_INSIDE);
}

static _Atomic bool stop;

static void *look_all_the_time(void *unused)
{
	while (!atomic_load(&stop))
		for (uint64_t at = 0x2000; at < 0x2040; at += 8)
			kind(at);
	return unused;
}

Test(area, another_thread_leaves_nothing_stale, .init = set_up, .timeout = 60)
{
	pthread_t looking;
	cr_assert(neighbours_join(0x1000, 0x9000));
	cr_assert_eq(pthread_create(&looking, NULL, look_all_the_time, NULL), 0);
	for (int i = 0; i < ROUNDS; i++) {
		registry_handle handle = add(0x2000, 0x2040);
		cr_assert_eq(kind(0x2000 + i % 8 * 8), AREA_INSIDE);
		cr_assert_eq(registry_remove(protect_ranges(), handle, NULL), 0);
		cr_assert_eq(kind(0x2000 + i % 8 * 8), AREA_BESIDE);
	}
	atomic_store(&stop, true);
	pthread_join(looking, NULL);
}
