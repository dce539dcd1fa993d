/* Who is blamed for a change: extents, streams, overlaps, doubt. */
#include "tests/unit/verify/protocol.h"

TestSuite(verify_blame, .init = setup, .fini = teardown, .timeout = 20);

Test(verify_blame, unchanged_is_silent)
{
	cr_assert_eq(check("a", S1), 1);
	cr_assert_eq(verify_poll(), 1);
	cr_assert_eq(found_count, 0);
	cr_assert_eq(verify_counts().verified, 1);
	cr_assert_eq(verify_counts().pending, 0);
	drop();
}

Test(verify_blame, one_byte_is_found_exactly_once)
{
	fake_write(S1, range->start + 1234, 9, 1);
	check("a", S1);
	check("b", S1);
	verify_poll();
	cr_assert_eq(found_count, 1);
	cr_assert_str_eq(found[0].api, "a");
	cr_assert_eq(found[0].start, 1234);
	cr_assert_eq(found[0].end, 1235);
	cr_assert_eq(found[0].bytes, 1);
	cr_assert(found[0].exact);
	cr_assert_not(found[0].inconclusive);
	cr_assert_eq(found[0].other_count, 0);
	drop();
}

Test(verify_blame, an_equal_value_is_not_a_change)
{
	fake_write(S1, range->start, 7, BYTES);
	check("a", S1);
	verify_poll();
	cr_assert_eq(found_count, 0);
	drop();
}

Test(verify_blame, bytes_beside_the_range_do_not_count)
{
	struct range *odd = attach(address(memory) + 8193, address(memory) + 8200);
	fake_write(S1, odd->start - 1, 9, 1);
	fake_write(S1, odd->end, 9, 1);
	check_range(odd, "a", S1);
	verify_poll();
	cr_assert_eq(found_count, 0);
	fake_write(S1, odd->start, 9, 1);
	fake_write(S1, odd->end - 1, 9, 1);
	check_range(odd, "b", S1);
	verify_poll();
	cr_assert_eq(found_count, 1);
	cr_assert_eq(found[0].start, 0);
	cr_assert_eq(found[0].end, 7);
	cr_assert_eq(found[0].bytes, 2);
	fake_drop(odd);
	drop();
}

Test(verify_blame, a_large_range_is_found_to_its_chunks)
{
	struct range *large = attach(address(memory) + 4096 + 5, address(memory) + LARGE - 3);
	fake_write(S1, address(memory) + 3 * 4096 + 17, 9, 1);
	check_range(large, "a", S1);
	verify_poll();
	cr_assert_eq(found_count, 1);
	cr_assert_not(found[0].exact);
	cr_assert_eq(found[0].bytes, 0);
	cr_assert_eq(large->start + found[0].start, address(memory) + 3 * 4096);
	cr_assert_eq(large->start + found[0].end, address(memory) + 4 * 4096);
	/* The cut chunks at both ends are reported as what of them belongs to the range. */
	fake_write(S1, large->start, 9, 1);
	fake_write(S1, large->end - 1, 9, 1);
	check_range(large, "b", S1);
	verify_poll();
	cr_assert_eq(found_count, 2);
	cr_assert_eq(found[1].start, 0);
	cr_assert_eq(found[1].end, large->end - large->start);
	fake_drop(large);
	drop();
}

Test(verify_blame, the_snapshot_limit_is_the_last_exact_size)
{
	struct range *small = attach(address(memory) + 1, address(memory) + 1 + VERIFY_SNAPSHOT_MAX);
	struct range *large = attach(address(memory) + 1, address(memory) + 2 + VERIFY_SNAPSHOT_MAX);
	fake_write(S1, small->end - 1, 9, 1);
	check_range(small, "a", S1);
	check_range(large, "b", S1);
	verify_poll();
	cr_assert_eq(found_count, 2);
	cr_assert(found[0].exact);
	cr_assert_eq(found[0].bytes, 1);
	cr_assert_not(found[1].exact);
	fake_drop(small);
	fake_drop(large);
	drop();
}

Test(verify_blame, each_launch_in_a_stream_has_its_own_changes)
{
	fake_defer(true);
	fake_write(S1, range->start + 1, 1, 1);
	check("a", S1);
	fake_write(S1, range->start + 1, 2, 2);
	check("b", S1);
	check("c", S1);
	fake_write(S1, range->start + 2, 3, 1);
	check("d", S1);
	cr_assert_eq(verify_poll(), 0);
	cr_assert_eq(verify_counts().pending, 4);
	fake_run_all();
	cr_assert_eq(verify_poll(), 4);
	cr_assert_eq(found_count, 3);
	cr_assert_str_eq(found[0].api, "a");
	cr_assert_str_eq(found[1].api, "b");
	cr_assert_str_eq(found[2].api, "d");
	cr_assert_eq(found[1].start, 1);
	cr_assert_eq(found[1].end, 3);
	for (int i = 0; i < 3; i++) {
		cr_assert_not(found[i].inconclusive);
		cr_assert_eq(found[i].other_count, 0);
	}
	drop();
}

Test(verify_blame, results_of_other_streams_need_not_wait)
{
	struct range *second = attach(address(memory) + 8192, address(memory) + 8200);
	fake_defer(true);
	check("slow", S1);
	fake_write(S2, second->start, 1, 1);
	check_range(second, "fast", S2);
	fake_run(S2, 2);
	cr_assert_eq(verify_poll(), 1);
	cr_assert_eq(found_count, 1);
	cr_assert_str_eq(found[0].api, "fast");
	cr_assert_eq(verify_counts().pending, 1);
	fake_run_all();
	cr_assert_eq(verify_poll(), 1);
	fake_drop(second);
	drop();
}

Test(verify_blame, the_writer_is_copied)
{
	struct report_kernel candidates[2] = {{.name = "one"}, {.name = "two"}};
	struct verify_writer writer = {.api = "cuGraphLaunch", .candidates = candidates, .candidate_count = 2};
	fake_defer(true);
	fake_write(S1, range->start, 1, 1);
	verify_after(&writer, &range, 1, S1);
	candidates[0].name = candidates[1].name = "gone";
	memset(&writer, 0, sizeof(writer));
	fake_run_all();
	verify_poll();
	cr_assert_eq(found_count, 1);
	cr_assert_str_eq(found[0].api, "cuGraphLaunch");
	cr_assert_eq(found[0].candidate_count, 2);
	cr_assert_str_eq(found[0].candidate, "onetwo");
	drop();
}

Test(verify_blame, many_ranges_share_launches)
{
	struct range *ranges[41];
	for (unsigned i = 0; i < 40; i++)
		ranges[i] = attach(address(memory) + 8192 + i * 1000, address(memory) + 8192 + i * 1000 + 999);
	ranges[40] = attach(address(memory) + 65536, address(memory) + LARGE);
	struct verify_writer writer = {.api = "foreach"};
	unsigned before = fake_counts().launches;
	for (unsigned i = 0; i < 41; i += 2)
		fake_write(S1, ranges[i]->start + 10, 1, 1);
	cr_assert_eq(verify_after(&writer, ranges, 41, S1), 41);
	cr_assert_eq(fake_counts().launches - before, (41 + VERIFY_JOBS - 1) / VERIFY_JOBS);
	cr_assert_eq(verify_poll(), 41);
	cr_assert_eq(found_count, 21);
	for (unsigned i = 0; i < 21; i++)
		cr_assert_eq(found[i].range, ranges[i * 2]);
	for (unsigned i = 0; i < 41; i++)
		fake_drop(ranges[i]);
	drop();
}

Test(verify_blame, each_range_of_a_launch_has_its_own_argument)
{
	enum { MANY = 40 };
	struct range *ranges[MANY];
	struct verify_target targets[MANY];
	struct report_kernel candidate = {.name = "node"};
	struct verify_writer writer = {
		.api = "cuLaunchKernel", .kernel = {.name = "nobody", .argument = -1}, .launches_before = 99};
	unsigned before;
	fake_defer(true);
	for (unsigned i = 0; i < MANY; i++) {
		ranges[i] = attach(address(memory) + 8192 + i * 512, address(memory) + 8192 + i * 512 + 400);
		targets[i] = (struct verify_target){.range = ranges[i],
		                                    .kernel = i % 2 ? "odd" : "even",
		                                    .argument = (int)i / 8,
		                                    .offset = i % 8 * 8,
		                                    .value = ranges[i]->start + i,
		                                    .launches_before = i};
		fake_write(S1, ranges[i]->start + i, 1, 1);
	}
	targets[7].kernel = NULL;
	targets[7].candidates = &candidate;
	targets[7].candidate_count = 1;
	before = fake_counts().launches;
	cr_assert_eq(verify_after_each(&writer, targets, MANY, S1), MANY);
	cr_assert_eq(fake_counts().launches - before, (MANY + VERIFY_JOBS - 1) / VERIFY_JOBS);
	memset(targets, 0, sizeof(targets));
	candidate.name = "gone";
	fake_run_all();
	cr_assert_eq(verify_poll(), MANY);
	cr_assert_eq(found_count, MANY);
	for (unsigned i = 0; i < MANY; i++) {
		cr_assert_eq(found[i].range, ranges[i]);
		cr_assert_eq(found[i].start, i);
		cr_assert_eq(found[i].launches_before, i);
		if (i == 7) {
			cr_assert_null(found[i].kernel);
			cr_assert_str_eq(found[i].candidate, "node");
			continue;
		}
		cr_assert_str_eq(found[i].kernel, i % 2 ? "odd" : "even");
		cr_assert_eq(found[i].argument, (int)i / 8);
		cr_assert_eq(found[i].offset, i % 8 * 8);
		cr_assert_eq(found[i].value, ranges[i]->start + i);
		cr_assert_eq(found[i].candidate_count, 0);
	}
	for (unsigned i = 0; i < MANY; i++)
		fake_drop(ranges[i]);
	drop();
}

Test(verify_blame, a_range_named_twice_is_never_twice_in_one_launch)
{
	struct range *twice[2] = {range, range};
	struct verify_writer writer = {.api = "a"};
	unsigned before = fake_counts().launches;
	cr_assert_eq(verify_after(&writer, twice, 2, S1), 2);
	cr_assert_eq(fake_counts().launches - before, 2);
	verify_poll();
	drop();
}

Test(verify_blame, ranges_without_attachment_are_skipped)
{
	struct range *bare = fake_range(1, 2, NULL);
	unsigned before = fake_counts().calls;
	cr_assert_eq(check_range(bare, "a", S1), 0);
	verify_refresh(&bare, 1, S1);
	cr_assert_eq(fake_counts().calls, before, "cost driver calls");
	bool changed = false;
	struct verify_writer writer = {.api = "now"};
	cr_assert_eq(verify_now(bare, &writer, &changed), CUDA_ERROR_NOT_SUPPORTED);
	cr_assert_eq(verify_after(&writer, NULL, 0, S1), 0);
	verify_release(NULL);
	fake_drop(bare);
	drop();
}

/* ---- overlaps */

Test(verify_blame, checks_at_the_same_time_name_each_other)
{
	fake_defer(true);
	fake_write(S1, range->start, 1, 1);
	check("a", S1);
	check("b", S2);
	fake_run(S1, 2);
	verify_poll();
	fake_write(S2, range->start + 9, 1, 1);
	fake_run_all();
	verify_poll();
	cr_assert_eq(found_count, 1);
	cr_assert_str_eq(found[0].api, "a");
	cr_assert_eq(found[0].other_count, 1);
	cr_assert_str_eq(found[0].others[0], "b");
	cr_assert_not(found[0].inconclusive);
	drop();
}

Test(verify_blame, the_later_one_names_the_earlier_one_too)
{
	fake_defer(true);
	check("a", S1);
	fake_write(S2, range->start, 1, 1);
	check("b", S2);
	fake_run(S2, 2);
	fake_run_all();
	verify_poll();
	cr_assert_eq(found_count, 1);
	cr_assert_str_eq(found[0].api, "b");
	cr_assert_eq(found[0].other_count, 1);
	cr_assert_str_eq(found[0].others[0], "a");
	drop();
}

Test(verify_blame, what_has_arrived_is_no_overlap)
{
	fake_defer(true);
	check("a", S1);
	fake_run_all();
	fake_write(S2, range->start, 1, 1);
	check("b", S2);
	fake_run_all();
	verify_poll();
	cr_assert_eq(found_count, 1);
	cr_assert_eq(found[0].other_count, 0);
	drop();
}

static void check_meanwhile(void)
{
	fake_during_launch(NULL);
	check("b", S1);
}

/* Two threads, one stream: nobody knows whose launch is first. */
Test(verify_blame, checks_issued_at_once_into_one_stream_name_each_other)
{
	fake_defer(true);
	fake_write(S1, range->start, 1, 1);
	fake_during_launch(check_meanwhile);
	check("a", S1);
	fake_run_all();
	verify_poll();
	cr_assert_eq(found_count, 1);
	cr_assert_eq(found[0].other_count, 1);
	drop();
}

static size_t handled_meanwhile;

static void poll_meanwhile(void)
{
	handled_meanwhile += verify_poll();
}

Test(verify_blame, a_result_that_comes_before_its_launch_returns_is_left_to_the_issuer)
{
	fake_write(S1, range->start, 1, 1);
	fake_during_launch(poll_meanwhile);
	cr_assert_eq(check("a", S1), 1);
	fake_during_launch(NULL);
	cr_assert_eq(handled_meanwhile, 0);
	cr_assert_eq(verify_poll(), 1);
	cr_assert_eq(found_count, 1);
	drop();
}

static void context_goes(void)
{
	fake_during_launch(NULL);
	verify_context_gone(FAKE_CONTEXT(0));
}

Test(verify_blame, a_context_that_goes_while_a_check_is_issued)
{
	fake_defer(true);
	fake_during_launch(context_goes);
	cr_assert_eq(check("a", S1), 0);
	cr_assert_eq(verify_counts().unverified, 1);
	cr_assert_eq(verify_counts().pending, 0);
	drop();
}

Test(verify_blame, more_writers_than_fit_are_cut)
{
	fake_defer(true);
	for (unsigned i = 0; i < VERIFY_OTHERS + 4; i++)
		check("other", FAKE_STREAM(20 + i));
	fake_write(S1, range->start, 1, 1);
	check("a", S1);
	fake_run(S1, 2);
	fake_run_all();
	verify_poll();
	cr_assert_eq(found_count, 1);
	cr_assert_eq(found[0].other_count, VERIFY_OTHERS);
	drop();
}

Test(verify_blame, a_refresh_in_the_same_stream_is_exact)
{
	fake_defer(true);
	fake_write(S1, range->start, 1, 1);
	check("a", S1);
	fake_write(S1, range->start, 2, 1);
	refresh(S1);
	check("b", S1);
	fake_write(S1, range->start, 3, 1);
	check("c", S1);
	fake_run_all();
	verify_poll();
	cr_assert_eq(found_count, 2);
	cr_assert_str_eq(found[0].api, "a");
	cr_assert_str_eq(found[1].api, "c");
	cr_assert_not(found[0].inconclusive || found[1].inconclusive);
	drop();
}

Test(verify_blame, a_refresh_while_a_check_is_pending_elsewhere_is_inconclusive)
{
	fake_defer(true);
	check("a", S2);
	fake_write(S1, range->start, 1, 1);
	refresh(S1);
	fake_run(S1, 1);
	fake_run(S2, 1);
	fake_run_all();
	verify_poll();
	cr_assert_eq(found_count, 1);
	cr_assert(found[0].inconclusive);
	cr_assert_eq(verify_counts().inconclusive, 1);
	drop();
}

Test(verify_blame, a_check_while_a_refresh_is_pending_elsewhere_is_inconclusive)
{
	fake_defer(true);
	fake_write(S1, range->start, 1, 1);
	refresh(S1);
	fake_run(S1, 1);
	check("a", S2);
	fake_run(S2, 1);
	fake_run_all();
	verify_poll();
	cr_assert_eq(found_count, 1);
	cr_assert(found[0].inconclusive);
	drop();
}

Test(verify_blame, an_overlap_that_finds_nothing_says_nothing)
{
	fake_defer(true);
	refresh(S1);
	check("a", S2);
	fake_run_all();
	verify_poll();
	cr_assert_eq(found_count, 0);
	cr_assert_eq(verify_counts().inconclusive, 0);
	drop();
}

/*
 * The refresh of S1 runs before the later write of S2 and its refresh, and writes the baseline last: an old digest is
 * left.
 */
Test(verify_blame, after_two_refreshes_at_once_the_first_difference_proves_nothing)
{
	fake_defer(true);
	refresh(S1);
	refresh(S2);
	fake_run_all();
	verify_poll();
	memory[3] = 9;
	check("a", S3);
	fake_run_all();
	verify_poll();
	cr_assert_eq(found_count, 1);
	cr_assert(found[0].inconclusive);
	/* That check had the baseline to itself: the doubt is over. */
	fake_write(S3, range->start, 1, 1);
	check("b", S3);
	fake_run_all();
	verify_poll();
	cr_assert_eq(found_count, 2);
	cr_assert_not(found[1].inconclusive);
	drop();
}

Test(verify_blame, a_doubt_is_over_after_one_lone_refresh)
{
	fake_defer(true);
	refresh(S1);
	refresh(S2);
	fake_run_all();
	verify_poll();
	fake_write(S1, range->start, 4, 1);
	refresh(S1);
	fake_write(S1, range->start, 5, 1);
	check("a", S1);
	fake_run_all();
	verify_poll();
	cr_assert_eq(found_count, 1);
	cr_assert_not(found[0].inconclusive);
	drop();
}

Test(verify_blame, a_doubt_that_arises_while_a_check_is_pending_reaches_it)
{
	fake_defer(true);
	refresh(S1);
	refresh(S2);
	fake_run(S1, 1);
	fake_run(S2, 1);
	/* Both have arrived, neither was handled: no overlap with this check, but its baseline is in doubt. */
	memory[3] = 9;
	check("a", S3);
	fake_run_all();
	verify_poll();
	cr_assert_eq(found_count, 1);
	cr_assert(found[0].inconclusive);
	drop();
}

Test(verify_blame, a_refresh_that_could_not_be_issued_leaves_a_doubt)
{
	fake_fail_launches(CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
	fake_write(S1, range->start, 1, 1);
	refresh(S1);
	fake_fail_launches(CUDA_SUCCESS);
	check("a", S1);
	verify_poll();
	cr_assert_eq(found_count, 1);
	cr_assert(found[0].inconclusive);
	drop();
}
