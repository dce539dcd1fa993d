/* Granules: what holds ranges is marked as long as it does, whatever else comes and goes. */
#include <criterion/criterion.h>
#include <pthread.h>

#include "shim/verdict/granules.h"
#include "shim/verdict/neighbours.h"
#include "shim/verdict/protect.h"

#define GRANULE (UINT64_C(1) << GRANULE_BITS)
#define ALL (GRANULES * GRANULE)
#define BASE (UINT64_C(0x7f00) << 32)
#define ROUNDS 20000

static void set_up(void)
{
	cr_assert_eq(protect_start(), 0);
}

static bool held(uint64_t address)
{
	return granules_hold(granules_all(), address);
}

/* How many of all granules are marked. */
static unsigned marked(void)
{
	unsigned count = 0;
	for (uint64_t granule = 0; granule < GRANULES; granule++)
		count += held(granule * GRANULE);
	return count;
}

Test(granules, an_allocation_marks_what_it_reaches_into, .init = set_up)
{
	cr_assert_eq(marked(), 0);
	cr_assert(!held(BASE));
	cr_assert(neighbours_join(BASE + GRANULE - 1, BASE + 2 * GRANULE + 1));
	cr_assert(held(BASE) && held(BASE + GRANULE) && held(BASE + 3 * GRANULE - 1));
	cr_assert(!held(BASE - 1) && !held(BASE + 3 * GRANULE));
	neighbours_leave(BASE + GRANULE);
	cr_assert_eq(marked(), 0);
	/* Its end is no part of it. */
	cr_assert(neighbours_join(BASE, BASE + GRANULE));
	cr_assert_eq(marked(), 1);
}

Test(granules, the_last_allocation_in_one_clears_it, .init = set_up)
{
	cr_assert(neighbours_join(BASE, BASE + 256));
	cr_assert(neighbours_join(BASE + 512, BASE + 768));
	cr_assert(neighbours_join(BASE + 512, BASE + 768)); /* a second range in it */
	neighbours_leave(BASE);
	cr_assert(held(BASE + 512));
	neighbours_leave(BASE + 512);
	cr_assert(held(BASE + 512));
	neighbours_leave(BASE + 512);
	cr_assert(!held(BASE + 512));
}

Test(granules, one_mark_is_of_many_granules, .init = set_up)
{
	cr_assert(neighbours_join(BASE, BASE + 256));
	cr_assert(held(BASE + ALL) && held(BASE - ALL), "which is no harm");
	cr_assert(neighbours_join(BASE + ALL, BASE + ALL + 256));
	neighbours_leave(BASE);
	cr_assert(held(BASE + ALL));
	neighbours_leave(BASE + ALL);
	cr_assert_eq(marked(), 0);
	/* Across the last one. */
	cr_assert(neighbours_join(2 * ALL - GRANULE, 2 * ALL + GRANULE));
	cr_assert(held(2 * ALL - 1) && held(2 * ALL));
	cr_assert_eq(marked(), 2);
}

Test(granules, an_allocation_larger_than_all, .init = set_up)
{
	cr_assert(neighbours_join(BASE + 5, BASE + 3 * ALL));
	cr_assert_eq(marked(), GRANULES);
	cr_assert(neighbours_join(BASE - ALL, BASE - ALL + 256));
	neighbours_leave(BASE + ALL);
	cr_assert_eq(marked(), 1);
	neighbours_leave(BASE - ALL);
	cr_assert_eq(marked(), 0);
}

Test(granules, allocations_that_become_one, .init = set_up)
{
	for (uint64_t i = 0; i < 10; i++)
		cr_assert(neighbours_join(BASE + 4 * i * GRANULE, BASE + (4 * i + 1) * GRANULE));
	cr_assert_eq(marked(), 10);
	cr_assert(neighbours_join(BASE, BASE + 37 * GRANULE));
	cr_assert_eq(marked(), 37);
	for (int i = 0; i < 11; i++) {
		cr_assert_eq(marked(), 37);
		neighbours_leave(BASE);
	}
	cr_assert_eq(marked(), 0);
}

static _Atomic bool stop;

static void *come_and_go(void *number)
{
	uint64_t start = BASE + (1 + (uintptr_t)number) * 4096;
	while (!atomic_load(&stop)) {
		cr_assert(neighbours_join(start, start + 4096));
		neighbours_leave(start);
	}
	return NULL;
}

Test(granules, what_stays_is_marked_all_along, .init = set_up, .timeout = 60)
{
	pthread_t threads[2];
	cr_assert(neighbours_join(BASE, BASE + 4096));
	for (uintptr_t i = 0; i < 2; i++)
		cr_assert_eq(pthread_create(&threads[i], NULL, come_and_go, (void *)i), 0);
	for (int i = 0; i < ROUNDS; i++)
		cr_assert(held(BASE));
	atomic_store(&stop, true);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	cr_assert_eq(marked(), 1);
}
