/*
 * What cannot be checked: captures, a full ring, errors, contexts that are elsewhere or gone. Counted, never a
 * violation.
 */
#include "tests/unit/verify/protocol.h"

TestSuite(verify_missed, .init = setup, .fini = teardown, .timeout = 20);

/* ---- what cannot be checked */

Test(verify_missed, nothing_is_issued_into_a_capturing_stream)
{
	fake_capture(S1, true);
	unsigned before = fake_counts().launches;
	cr_assert_eq(check("a", S1), 0);
	cr_assert_eq(check("b", S1), 0);
	refresh(S1);
	cr_assert_eq(fake_counts().launches, before);
	cr_assert_eq(verify_counts().unverified, 2);
	fake_capture(S1, false);
	fake_write(S1, range->start, 1, 1);
	check("c", S1);
	verify_poll();
	cr_assert_eq(found_count, 1);
	cr_assert_eq(found[0].unverified, 2);
	cr_assert_not(found[0].inconclusive);
	/* Told once. */
	fake_write(S1, range->start, 2, 1);
	check("d", S1);
	verify_poll();
	cr_assert_eq(found[1].unverified, 0);
	drop();
}

Test(verify_missed, a_full_ring_counts)
{
	fake_defer(true);
	unsigned issued = 0;
	for (unsigned i = 0; i < VERIFY_SLOTS + 10; i++)
		issued += (unsigned)check("a", S1);
	cr_assert_eq(issued, VERIFY_SLOTS);
	cr_assert_eq(verify_counts().unverified, 10);
	cr_assert_eq(verify_counts().pending, VERIFY_SLOTS);
	fake_write(S1, range->start, 1, 1);
	refresh(S1);
	fake_run_all();
	cr_assert_eq(verify_poll(), VERIFY_SLOTS);
	cr_assert_eq(found_count, 0);
	/* The permitted write could not become the baseline: the difference is not called a violation. */
	check("b", S1);
	fake_run_all();
	verify_poll();
	cr_assert_eq(found_count, 1);
	cr_assert(found[0].inconclusive);
	cr_assert_eq(found[0].unverified, 10);
	drop();
}

Test(verify_missed, a_full_ring_that_has_come_back_lets_attach)
{
	fake_defer(true);
	for (unsigned i = 0; i < VERIFY_SLOTS; i++)
		check("a", S1);
	struct range *second = attach(address(memory) + 8192, address(memory) + 8200);
	cr_assert_eq(verify_counts().pending, 0);
	fake_drop(second);
	drop();
}

Test(verify_missed, slots_are_used_again)
{
	for (unsigned i = 0; i < 3 * VERIFY_SLOTS; i++) {
		fake_write(S1, range->start + i % BYTES, (uint8_t)(i / BYTES + 1), 1);
		cr_assert_eq(check("a", S1), 1);
		if (i % 100 == 0)
			verify_poll();
	}
	verify_poll();
	cr_assert_eq(verify_counts().verified, 3 * VERIFY_SLOTS);
	cr_assert_eq(verify_counts().unverified, 0);
	cr_assert_eq(found_count, 3 * VERIFY_SLOTS);
	drop();
}

Test(verify_missed, a_failed_launch_is_counted_and_no_violation)
{
	fake_write(S1, range->start, 1, 1);
	fake_fail_launches(CUDA_ERROR_INVALID_HANDLE);
	cr_assert_eq(check("a", S1), 0);
	fake_fail_launches(CUDA_SUCCESS);
	cr_assert_eq(verify_counts().unverified, 1);
	cr_assert_eq(verify_counts().pending, 0);
	cr_assert_eq(verify_poll(), 0);
	fake_capture(S1, true);
	check("b", S1);
	fake_capture(S1, false);
	fake_fail_launches(CUDA_ERROR_INVALID_HANDLE);
	check("c", S1);
	fake_fail_launches(CUDA_SUCCESS);
	/* The next check that works finds the change, and says that it may be one of the others'. */
	check("d", S1);
	verify_poll();
	cr_assert_eq(found_count, 1);
	cr_assert_str_eq(found[0].api, "d");
	cr_assert_eq(found[0].unverified, 3);
	drop();
}

Test(verify_missed, a_sticky_error_ends_checking_quietly)
{
	struct range *second = attach(address(memory) + 8192, address(memory) + 8200);
	fake_defer(true);
	fake_write(S1, range->start, 1, 1);
	check("arrived", S1);
	fake_run_all();
	check_range(second, "lost", S2);
	fake_fail_launches(CUDA_ERROR_ILLEGAL_ADDRESS);
	cr_assert_eq(check("crashed", S1), 0);
	cr_assert_eq(verify_counts().pending, 1);
	/* What came back before the crash is told. */
	verify_poll();
	cr_assert_eq(found_count, 1);
	cr_assert_str_eq(found[0].api, "arrived");
	cr_assert_eq(verify_counts().pending, 0);
	unsigned before = fake_counts().launches;
	cr_assert_eq(check("later", S1), 0);
	refresh(S1);
	cr_assert_eq(fake_counts().launches, before, "launched into a broken context");
	cr_assert_eq(verify_counts().unverified, 3);
	cr_assert_eq(verify_drain(10), 0);
	bool changed = false;
	struct verify_writer writer = {.api = "now"};
	cr_assert_neq(verify_now(range, &writer, &changed), CUDA_SUCCESS);
	cr_assert_not(changed);
	fake_drop(second);
	drop();
}

/* ---- contexts */

Test(verify_missed, the_ranges_context_is_entered_and_left)
{
	fake_set_current(FAKE_CONTEXT(1));
	fake_write(S1, range->start, 1, 1);
	cr_assert_eq(check("a", S1), 1);
	cr_assert_eq(fake_current(), FAKE_CONTEXT(1));
	verify_poll();
	cr_assert_eq(found_count, 1);
	fake_set_current(NULL);
	cr_assert_eq(check("b", S1), 1);
	cr_assert_null(fake_current());
	verify_poll();
	drop();
}

Test(verify_missed, default_streams_belong_to_the_current_context)
{
	static const CUstream streams[3] = {NULL, CU_STREAM_LEGACY, CU_STREAM_PER_THREAD};
	for (unsigned i = 0; i < 3; i++) {
		fake_set_current(FAKE_CONTEXT(1));
		cr_assert_eq(check("a", streams[i]), 0);
		fake_set_current(FAKE_CONTEXT(0));
		cr_assert_eq(check("a", streams[i]), 1);
	}
	cr_assert_eq(verify_counts().unverified, 3);
	verify_poll();
	drop();
}

Test(verify_missed, both_names_of_the_legacy_stream_are_one_stream)
{
	fake_defer(true);
	check("a", NULL);
	fake_write(NULL, range->start, 1, 1);
	check("b", CU_STREAM_LEGACY);
	fake_run_all();
	verify_poll();
	cr_assert_eq(found_count, 1);
	cr_assert_eq(found[0].other_count, 0);
	drop();
}

Test(verify_missed, each_context_has_its_own_tables)
{
	unsigned loads = fake_counts().loads;
	fake_set_current(FAKE_CONTEXT(2));
	struct range *second = attach(address(memory) + 8192, address(memory) + 8200);
	cr_assert_eq(fake_counts().loads, loads + 1);
	fake_set_current(FAKE_CONTEXT(0));
	struct range *both[2] = {range, second};
	struct verify_writer writer = {.api = "a"};
	cr_assert_eq(verify_after(&writer, both, 2, S1), 2);
	verify_poll();
	cr_assert_eq(fake_current(), FAKE_CONTEXT(0));
	fake_drop(second);
	drop();
}

Test(verify_missed, a_destroyed_context_takes_its_checks_along)
{
	fake_defer(true);
	fake_write(S1, range->start, 1, 1);
	check("arrived", S1);
	fake_run_all();
	check("lost", S1);
	verify_context_gone(FAKE_CONTEXT(0));
	cr_assert_eq(found_count, 1);
	cr_assert_str_eq(found[0].api, "arrived");
	cr_assert_eq(verify_counts().pending, 0);
	cr_assert_eq(verify_counts().unverified, 1);
	cr_assert_eq(check("later", S1), 0);
	cr_assert_eq(verify_counts().unverified, 2);
	bool changed = false;
	struct verify_writer writer = {.api = "now"};
	cr_assert_eq(verify_now(range, &writer, &changed), CUDA_ERROR_CONTEXT_IS_DESTROYED);
	fake_run_all();
	cr_assert_eq(verify_poll(), 0);
	/* The same handle again is another context. */
	fake_defer(false);
	unsigned loads = fake_counts().loads;
	struct range *next = attach(address(memory), address(memory) + BYTES);
	cr_assert_eq(fake_counts().loads, loads + 1);
	fake_write(S1, next->start, 2, 1);
	check_range(next, "new", S1);
	verify_poll();
	cr_assert_eq(found_count, 2);
	cr_assert_eq(found[1].range, next);
	fake_drop(next);
	drop();
}

Test(verify_missed, an_unknown_context_may_go)
{
	verify_context_gone(FAKE_CONTEXT(7));
	verify_context_gone(NULL);
	check("a", S1);
	cr_assert_eq(verify_poll(), 1);
	drop();
}
