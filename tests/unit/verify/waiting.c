/* Checks that are waited for, draining, polls inside findings, fork. */
#include <semaphore.h>

#include "tests/unit/verify/protocol.h"

TestSuite(verify_waiting, .init = setup, .fini = teardown, .timeout = 20);

/* ---- waiting */

Test(verify_waiting, now_tells_pending_findings_first)
{
	fake_defer(true);
	fake_write(S1, range->start, 1, 1);
	check("a", S1);
	fake_write(S1, range->start + 1, 1, 1);
	struct verify_writer writer = {.api = "now"};
	bool changed = false;
	cr_assert_eq(verify_now(range, &writer, &changed), CUDA_SUCCESS);
	cr_assert(changed);
	cr_assert_eq(found_count, 2);
	cr_assert_str_eq(found[0].api, "a");
	cr_assert_str_eq(found[1].api, "now");
	cr_assert_eq(found[1].start, 1);
	cr_assert_eq(verify_now(range, &writer, &changed), CUDA_SUCCESS);
	cr_assert_not(changed);
	cr_assert_eq(found_count, 2);
	drop();
}

Test(verify_waiting, now_works_from_another_context)
{
	fake_set_current(FAKE_CONTEXT(6));
	memory[5] = 1;
	struct verify_writer writer = {.api = "now"};
	bool changed = false;
	cr_assert_eq(verify_now(range, &writer, &changed), CUDA_SUCCESS);
	cr_assert(changed);
	cr_assert_eq(fake_current(), FAKE_CONTEXT(6));
	fake_set_current(FAKE_CONTEXT(0));
	drop();
}

Test(verify_waiting, drain_gives_up_in_time)
{
	fake_defer(true);
	check("a", S1);
	check("b", S1);
	refresh(S2);
	cr_assert_eq(verify_drain(20), 2);
	fake_run_all();
	cr_assert_eq(verify_drain(UINT64_MAX), 0);
	cr_assert_eq(verify_counts().verified, 2);
	drop();
}

Test(verify_waiting, memory_that_is_about_to_go_is_waited_for)
{
	struct range *other = attach(address(memory) + BYTES, address(memory) + 2 * BYTES);
	cr_assert(verify_settle(&range, 1, 0));
	fake_defer(true);
	check("a", S1);
	cr_assert_not(verify_settle(&range, 1, 20));
	cr_assert(verify_settle(&other, 1, 0), "nothing reads that");
	struct range *both[] = {other, range};
	cr_assert_not(verify_settle(both, 2, 20));
	fake_run_all();
	cr_assert(verify_settle(both, 2, 0));
	refresh(S2);
	cr_assert_not(verify_settle(&range, 1, 20));
	fake_run_all();
	cr_assert(verify_settle(&range, 1, 0));
	verify_poll();
	fake_drop(other);
	drop();
}

static size_t handled_inside;

static void poll_inside(void)
{
	handled_inside += verify_poll();
}

Test(verify_waiting, a_poll_inside_a_finding_keeps_the_order_of_a_stream)
{
	fake_defer(true);
	struct range *second = attach(address(memory) + 8192, address(memory) + 8200);
	fake_write(S1, range->start, 1, 1);
	check("a", S1);
	fake_write(S1, second->start, 1, 1);
	check_range(second, "b", S1);
	fake_run_all();
	during_finding = poll_inside;
	cr_assert_eq(verify_poll(), 2);
	cr_assert_eq(handled_inside, 0);
	cr_assert_eq(found_count, 2);
	cr_assert_str_eq(found[0].api, "a");
	cr_assert_str_eq(found[1].api, "b");
	fake_drop(second);
	drop();
}

/*
 * "a" is being told, so the refresh behind it in its stream is not handled yet, though it has arrived; and it is what
 * puts the baseline of `second` in doubt. The check of another stream must not be judged before.
 */
Test(verify_waiting, a_poll_inside_a_finding_keeps_the_order_of_a_baseline)
{
	fake_defer(true);
	struct range *second = attach(address(memory) + 8192, address(memory) + 8200);
	fake_write(S1, range->start, 1, 1);
	check("a", S1);
	verify_refresh(&second, 1, S1);
	verify_refresh(&second, 1, S2);
	fake_run_all();
	fake_write(S3, second->start, 1, 1);
	check_range(second, "b", S3);
	fake_run_all();
	during_finding = poll_inside;
	cr_assert_eq(verify_poll() + handled_inside, 4);
	cr_assert_eq(handled_inside, 0);
	cr_assert_eq(found_count, 2);
	cr_assert_str_eq(found[1].api, "b");
	cr_assert(found[1].inconclusive);
	fake_drop(second);
	drop();
}

static sem_t inside, released;

static void stay_inside(void)
{
	sem_post(&inside);
	sem_wait(&released);
}

static void *poll_there(void *unused)
{
	(void)unused;
	verify_poll();
	return NULL;
}

static void *release_late(void *unused)
{
	(void)unused;
	usleep(20000);
	sem_post(&released);
	return NULL;
}

/* Another thread is in the middle of telling "a" for 20 ms to come; "b", which has come back too, stands behind it. */
static void have_one_told(pthread_t *threads)
{
	fake_defer(true);
	fake_write(S1, range->start, 1, 1);
	check("a", S1);
	check("b", S1);
	fake_run_all();
	sem_init(&inside, 0, 0);
	sem_init(&released, 0, 0);
	during_finding = stay_inside;
	cr_assert_eq(pthread_create(&threads[0], NULL, poll_there, NULL), 0);
	sem_wait(&inside);
	cr_assert_eq(verify_poll(), 0);
	cr_assert_eq(verify_counts().pending, 2);
	cr_assert_eq(pthread_create(&threads[1], NULL, release_late, NULL), 0);
}

static void all_told(const pthread_t *threads)
{
	cr_assert_eq(found_count, 1);
	cr_assert_eq(verify_counts().verified, 2);
	cr_assert_eq(verify_counts().unverified, 0);
	cr_assert_eq(verify_counts().pending, 0);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	drop();
}

Test(verify_waiting, what_another_thread_has_in_hand_is_waited_for)
{
	pthread_t threads[2];
	have_one_told(threads);
	verify_catch_up();
	all_told(threads);
}

Test(verify_waiting, a_context_goes_once_all_is_told)
{
	pthread_t threads[2];
	have_one_told(threads);
	verify_context_gone(FAKE_CONTEXT(0));
	all_told(threads);
}

Test(verify_waiting, what_has_not_come_back_is_not_waited_for)
{
	pthread_t threads[2];
	have_one_told(threads);
	check("later", S1);
	verify_catch_up();
	cr_assert_eq(verify_counts().pending, 1);
	fake_run_all();
	verify_poll();
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	drop();
}

Test(verify_waiting, a_child_forgets_everything)
{
	fake_defer(true);
	check("a", S1);
	pthread_mutex_lock(&verify.lock); /* as if another thread had it at the fork */
	verify_postfork_child();
	cr_assert_eq(verify_poll(), 0);
	cr_assert_eq(verify_drain(1000), 0);
	cr_assert_eq(verify_counts().pending, 0);
	cr_assert_eq(check("b", S1), 0);
	refresh(S1);
	bool changed = false;
	struct verify_writer writer = {.api = "now"};
	cr_assert_neq(verify_now(range, &writer, &changed), CUDA_SUCCESS);
	verify_release(range->attachment);
	/* A child that may use CUDA starts anew, without a watcher. */
	fake_defer(false);
	struct range *next = attach(address(memory), address(memory) + BYTES);
	fake_write(S1, next->start, 1, 1);
	check_range(next, "c", S1);
	verify_poll();
	cr_assert_eq(found_count, 1);
	cr_assert(verify.watching);
	fake_drop(next);
	behaved();
}
