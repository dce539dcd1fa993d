/* When launches were made: which looks at protected bytes came before them, and how many there were in between. */
#include <criterion/criterion.h>
#include <pthread.h>

#include "shim/looks.h"

#define THREADS 20
#define LAUNCHES 1000

Test(looks, launches_after_a_look_have_later_times)
{
	uint64_t time = look_launch_time();
	cr_assert_gt(time, look_time((struct look){0}), "after none");
	for (uint64_t number = 1; number < 10; number++) {
		const struct look look = look_next();
		cr_assert_eq(look.number, number);
		cr_assert_leq(time, look_time(look));
		for (uint64_t nth = 0; nth < LAUNCHES; nth++) {
			uint64_t before = time;
			time = look_launch_time();
			cr_assert_gt(time, look_time(look));
			cr_assert_gt(time, before, "in order");
		}
	}
}

/* Their number has few bits: it does not reach the number of looks. */
Test(looks, however_many_launches_there_were)
{
	const struct look look = look_next();
	for (unsigned bits = 0; bits <= LOOK_SHIFT; bits++) {
		atomic_store(&hook_line.noted, (UINT64_C(1) << bits) - 1);
		for (int i = 0; i < 3; i++) {
			uint64_t time = look_launch_time();
			cr_assert_gt(time, look_time(look), "%u bits", bits);
			cr_assert_leq(time, look_time((struct look){.number = look.number + 1}), "%u bits", bits);
		}
	}
	look_next();
	uint64_t first = look_launch_time();
	cr_assert_gt(look_launch_time(), first, "it begins anew");
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
		look_launch_time();
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
