/* Baselines taken, put off and given back; every driver call failing once. */
#include "tests/unit/verify/protocol.h"

TestSuite(verify_attach, .init = setup, .fini = teardown, .timeout = 20);

/* ---- attaching and releasing */

Test(verify_attach, attaching_waits_for_what_produces_the_bytes)
{
	fake_defer(true);
	uint64_t start = address(memory) + 8192;
	fake_write(S1, start, 1, 16);
	fake_write(S2, start + 16, 2, 16);
	struct range *all = attach(start, start + 64);
	cr_assert_eq(memory[8192 + 16], 2, "not all streams were waited for");
	cr_assert_eq(fake_counts().legacy, 0, "the legacy stream holds up all others");
	void *attachment = NULL;
	fake_write(S1, start + 100, 3, 16);
	fake_write(S2, start + 200, 4, 16);
	cr_assert_eq(verify_attach(start + 100, start + 116, true, S1, &attachment), CUDA_SUCCESS);
	cr_assert_eq(memory[8192 + 100], 3);
	cr_assert_eq(memory[8192 + 200], 7, "the other stream was waited for, too");
	struct range *one = fake_range(start + 100, start + 116, attachment);
	check_range(all, "a", S3);
	check_range(one, "b", S3);
	fake_run_all();
	verify_poll();
	cr_assert_eq(found_count, 0);
	fake_drop(all);
	fake_drop(one);
	drop();
}

Test(verify_attach, bad_ranges_are_refused)
{
	void *attachment = &attachment;
	cr_assert_eq(verify_attach(16, 16, false, NULL, &attachment), CUDA_ERROR_INVALID_VALUE);
	cr_assert_eq(verify_attach(17, 16, false, NULL, &attachment), CUDA_ERROR_INVALID_VALUE);
	fake_set_current(NULL);
	cr_assert_eq(verify_attach(16, 32, false, NULL, &attachment), CUDA_ERROR_INVALID_CONTEXT);
	cr_assert_eq(attachment, (void *)&attachment, "output touched");
	fake_set_current(FAKE_CONTEXT(0));
	drop();
}

Test(verify_attach, memory_of_a_range_is_used_again_only_when_its_checks_are_through)
{
	fake_defer(true);
	struct verify_baseline *baseline = range->attachment;
	uint64_t block = verify_block_address(baseline->block);
	uint64_t used = baseline->home->arena.used_bytes;
	struct verify_home *home = baseline->home;
	check("a", S1);
	/* Against the rules, as the op holds a reference; and still nothing breaks. */
	verify_release(range->attachment);
	cr_assert_eq(home->arena.used_bytes, used);
	fake_run_all();
	verify_poll();
	cr_assert_eq(home->arena.used_bytes, 0);
	range->attachment = NULL;
	fake_defer(false);
	unsigned allocations = fake_counts().allocations;
	struct range *next = attach(address(memory), address(memory) + BYTES);
	cr_assert_eq(verify_block_address(((struct verify_baseline *)next->attachment)->block), block);
	cr_assert_eq(fake_counts().allocations, allocations);
	fake_drop(next);
	drop();
}

Test(verify_attach, a_range_removed_while_checked_lives_until_the_result)
{
	fake_defer(true);
	fake_write(S1, range->start, 1, 1);
	check("a", S1);
	struct range *gone = range;
	fake_drop(gone);
	cr_assert_eq(fake_live_ranges(), 1);
	fake_run_all();
	/* The finding needs two references here: give it one more. */
	range_get(gone);
	verify_poll();
	cr_assert_eq(found_count, 1);
	range = gone;
	drop();
}

Test(verify_attach, attaching_and_releasing_for_ever_needs_no_more_memory)
{
	unsigned allocations = 0;
	for (unsigned i = 0; i < 2000; i++) {
		struct range *next = attach(address(memory) + i, address(memory) + i + 1 + i * 37 % (LARGE - 4000));
		fake_drop(next);
		if (i == 0)
			allocations = fake_counts().allocations;
	}
	cr_assert_eq(fake_counts().allocations, allocations);
	drop();
}

/* Fails driver call n of an attach. Returns whether that failed the attach; else checks that the range is guarded. */
static bool attach_fails(unsigned n)
{
	void *attachment = NULL;
	fake_fail(n, CUDA_ERROR_OUT_OF_MEMORY, false);
	CUresult result = verify_attach(address(memory), address(memory) + BYTES, false, NULL, &attachment);
	fake_fail(0, CUDA_SUCCESS, false);
	cr_assert_eq(fake_mode(), CU_STREAM_CAPTURE_MODE_GLOBAL);
	cr_assert_eq(fake_current(), FAKE_CONTEXT(0));
	cr_assert_eq(attachment != NULL, result == CUDA_SUCCESS);
	cr_assert_eq(verify.waiting, NULL);
	if (result != CUDA_SUCCESS)
		return true;
	struct range *attached = fake_range(address(memory), address(memory) + BYTES, attachment);
	size_t before = found_count;
	fake_write(S1, attached->start + 3, (uint8_t)(n + 100), 1);
	check_range(attached, "a", S1);
	verify_poll();
	cr_assert_eq(found_count, before + 1);
	cr_assert_eq(found[before].start, 3);
	fake_drop(attached);
	return false;
}

Test(verify_attach, every_failing_driver_call_of_an_attach_is_survived)
{
	unsigned failed = 0;
	for (unsigned n = 1; n < 40; n++) {
		verify_context_gone(FAKE_CONTEXT(0));
		failed += attach_fails(n);
	}
	cr_assert_geq(failed, 10, "fewer calls failed than an attach needs");
	cr_assert_lt(failed, 30);
	drop();
}

Test(verify_attach, an_attach_that_failed_is_gone_on_with_and_not_begun_again)
{
	verify_context_gone(FAKE_CONTEXT(0));
	unsigned allocations = fake_counts().allocations, live = fake_counts().live;
	unsigned n = 1;
	while (attach_fails(n))
		n++;
	while (attach_fails(n + 1) || attach_fails(n + 2) || attach_fails(n + 3))
		n++;
	cr_assert_gt(fake_counts().allocations, allocations);
	cr_assert_leq(fake_counts().live, live + 2, "tables were made twice");
	drop();
}

Test(verify_attach, every_failing_driver_call_of_a_check_is_survived)
{
	for (unsigned sticky = 0; sticky < 2; sticky++)
		for (unsigned n = 1; n < 8; n++) {
			unsigned before = (unsigned)verify_counts().unverified;
			fake_fail(n, sticky ? CUDA_ERROR_LAUNCH_FAILED : CUDA_ERROR_INVALID_VALUE, sticky);
			size_t issued = check("a", S1);
			fake_fail(0, CUDA_SUCCESS, false);
			verify_poll();
			cr_assert_eq(verify_counts().unverified - before, issued ? 0 : 1);
			cr_assert_eq(found_count, 0);
			cr_assert_eq(fake_mode(), CU_STREAM_CAPTURE_MODE_GLOBAL);
			cr_assert_eq(fake_current(), FAKE_CONTEXT(0));
		}
	drop();
}

Test(verify_attach, every_failing_driver_call_of_a_check_now_is_survived)
{
	struct verify_writer writer = {.api = "now"};
	for (unsigned n = 1; n < 10; n++) {
		bool changed = false;
		fake_fail(n, CUDA_ERROR_INVALID_VALUE, false);
		verify_now(range, &writer, &changed);
		fake_fail(0, CUDA_SUCCESS, false);
		cr_assert_not(changed);
		cr_assert_eq(fake_current(), FAKE_CONTEXT(0));
	}
	cr_assert_eq(found_count, 0);
	drop();
}

Test(verify_attach, a_driver_that_registers_no_memory_serves_as_well)
{
	fake_refuse_register(true);
	fake_set_current(FAKE_CONTEXT(3));
	struct range *second = attach(address(memory) + 8192, address(memory) + 8200);
	fake_write(S1, second->start, 1, 1);
	check_range(second, "a", S1);
	verify_poll();
	cr_assert_eq(found_count, 1);
	fake_drop(second);
	drop();
}

Test(verify_attach, errno_is_left_alone)
{
	errno = 77;
	check("a", S1);
	refresh(S1);
	verify_poll();
	bool changed;
	struct verify_writer writer = {.api = "now"};
	verify_now(range, &writer, &changed);
	struct range *second = attach(address(memory) + 8192, address(memory) + 8200);
	cr_assert_eq(errno, 77);
	fake_drop(second);
	drop();
}

/* ---- captures */

Test(verify_attach, a_baseline_is_put_off_by_a_capture)
{
	fake_capture(S1, true);
	verify_capture_began();
	verify_capture_began();
	unsigned calls = fake_counts().launches;
	struct range *second = attach(address(memory) + 8192, address(memory) + 8200);
	cr_assert_eq(fake_counts().launches, calls);
	cr_assert_eq(check_range(second, "early", S2), 0);
	verify_refresh(&second, 1, S2);
	cr_assert_eq(verify_counts().unverified, 1);
	bool changed = false;
	struct verify_writer writer = {.api = "now"};
	cr_assert_eq(verify_now(second, &writer, &changed), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	verify_capture_ended();
	cr_assert_eq(check_range(second, "still", S2), 0);
	fake_capture(S1, false);
	/* It ends where another context is current. */
	fake_set_current(FAKE_CONTEXT(5));
	verify_capture_ended();
	cr_assert_eq(fake_current(), FAKE_CONTEXT(5));
	fake_set_current(FAKE_CONTEXT(0));
	cr_assert_eq(check_range(second, "a", S2), 1);
	fake_write(S2, second->start, 1, 1);
	cr_assert_eq(check_range(second, "b", S2), 1);
	verify_poll();
	cr_assert_eq(found_count, 1);
	cr_assert_str_eq(found[0].api, "b");
	cr_assert_eq(found[0].unverified, 0, "a check without finding came between");
	fake_drop(second);
	drop();
}

Test(verify_attach, a_capturing_stream_puts_off_its_baseline)
{
	fake_capture(S1, true);
	void *attachment = NULL;
	cr_assert_eq(verify_attach(address(memory), address(memory) + 8, true, S1, &attachment), CUDA_SUCCESS);
	fake_capture(S1, false);
	struct range *second = fake_range(address(memory), address(memory) + 8, attachment);
	struct verify_writer writer = {.api = "now"};
	bool changed = true;
	/* The first call that may wait takes it, and then compares. */
	cr_assert_eq(verify_now(second, &writer, &changed), CUDA_SUCCESS);
	cr_assert_not(changed);
	cr_assert_eq(check_range(second, "a", S1), 1);
	verify_poll();
	fake_drop(second);
	drop();
}

Test(verify_attach, other_streams_are_checked_during_a_capture)
{
	fake_capture(S1, true);
	verify_capture_began();
	fake_write(S2, range->start, 1, 1);
	cr_assert_eq(check("a", S2), 1);
	verify_poll();
	cr_assert_eq(found_count, 1);
	fake_capture(S1, false);
	verify_capture_ended();
	verify_capture_ended();
	cr_assert_eq(verify.captures, 0, "one end too many counted");
	drop();
}

Test(verify_attach, what_waits_may_be_released)
{
	verify_capture_began();
	struct range *a = attach(address(memory), address(memory) + 8);
	struct range *b = attach(address(memory) + 8, address(memory) + 16);
	struct range *c = attach(address(memory) + 16, address(memory) + 24);
	fake_drop(b);
	fake_drop(c);
	verify_capture_ended();
	cr_assert_eq(check_range(a, "a", S1), 1);
	verify_poll();
	fake_drop(a);
	drop();
}

Test(verify_attach, what_waits_for_a_context_that_goes_is_lost)
{
	verify_capture_began();
	fake_set_current(FAKE_CONTEXT(4));
	struct range *second = attach(address(memory), address(memory) + 8);
	fake_set_current(FAKE_CONTEXT(0));
	verify_context_gone(FAKE_CONTEXT(4));
	unsigned launches = fake_counts().launches;
	verify_capture_ended();
	cr_assert_eq(fake_counts().launches, launches);
	cr_assert_eq(check_range(second, "a", S1), 0);
	fake_drop(second);
	drop();
}

Test(verify_attach, what_could_not_be_taken_waits_on_and_blocks_nobody)
{
	verify_capture_began();
	struct range *a = attach(address(memory), address(memory) + 8);
	struct range *b = attach(address(memory) + 8, address(memory) + 16);
	fake_fail_launches(CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
	verify_capture_ended();
	cr_assert_eq(check_range(a, "a", S1) + check_range(b, "b", S1), 0);
	fake_fail_launches(CUDA_SUCCESS);
	struct range *c = attach(address(memory) + 16, address(memory) + 24);
	cr_assert_eq(check_range(a, "a", S1) + check_range(b, "b", S1) + check_range(c, "c", S1), 3);
	verify_poll();
	cr_assert_eq(found_count, 0);
	fake_drop(a);
	fake_drop(b);
	fake_drop(c);
	drop();
}
