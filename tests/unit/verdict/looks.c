/* When launches were made: which looks at protected bytes came before them, and how many there were in between. */
#include <criterion/criterion.h>
#include <pthread.h>

#include "shim/looks.h"

#define THREADS 20
#define LAUNCHES 1000

Test(looks, launches_after_a_look_have_later_times)
{
	cr_assert_neq(look_own_time(), 0, "before this thread has counts of its own");
	hook_count(COUNT_CALL);
	uint64_t first = look_own_time();
	cr_assert_gt(first, look_time((struct look){0}), "and before the first look");
	const struct look look = look_next();
	cr_assert_eq(look.number, 1);
	cr_assert_leq(first, look_time(look));
	for (uint64_t nth = 0; nth < LAUNCHES; nth++) {
		uint64_t time = look_own_time();
		cr_assert_gt(time, look_time(look));
		hook_count(COUNT_LAUNCH);
		cr_assert_gt(look_own_time(), time);
	}
	const struct look next = look_next();
	cr_assert_gt(look_own_time(), look_time(next));
}

/* The count of launches has few bits: it does not reach the number of looks. */
Test(looks, however_many_launches_there_were)
{
	hook_count(COUNT_LAUNCH);
	struct hook_counts *counts = hook_counts_own();
	cr_assert(counts);
	const struct look look = look_next();
	for (unsigned bits = 0; bits < 64; bits++) {
		atomic_store(&counts->of[COUNT_LAUNCH], (UINT64_C(1) << bits) - 1);
		cr_assert_gt(look_own_time(), look_time(look), "%u bits", bits);
		cr_assert_leq(look_own_time(), look_time((struct look){.number = look.number + 1}), "%u bits", bits);
	}
}

Test(looks, launches_between)
{
	const struct look before = look_next();
	hook_count(COUNT_LAUNCH);
	hook_count(COUNT_GRAPH_LAUNCH);
	hook_count(COUNT_CALL);
	const struct look behind = look_next();
	cr_assert_eq(look_launches(before, behind, 0), 2);
	cr_assert_eq(look_launches(before, behind, 1), 1);
	cr_assert_eq(look_launches(behind, behind, 1), 0, "not below none");
	cr_assert_eq(look_launches(behind, before, 0), 0);
}

static void *launch(void *unused)
{
	(void)unused;
	for (int i = 0; i < LAUNCHES; i++) {
		hook_count(COUNT_LAUNCH);
		if (i % 100 == 0)
			look_next();
	}
	return NULL;
}

/* Of all threads, living and dead. */
Test(looks, of_many_threads)
{
	pthread_t threads[THREADS];
	const struct look before = look_next();
	for (int round = 0; round < 3; round++) {
		for (int i = 0; i < THREADS; i++)
			cr_assert_eq(pthread_create(&threads[i], NULL, launch, NULL), 0);
		for (int i = 0; i < THREADS; i++)
			pthread_join(threads[i], NULL);
	}
	const struct look behind = look_next();
	cr_assert_eq(look_launches(before, behind, 0), 3 * THREADS * LAUNCHES);
	cr_assert_eq(behind.number, before.number + 1 + 3 * THREADS * (LAUNCHES / 100));
}
