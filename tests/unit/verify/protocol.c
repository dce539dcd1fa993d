/* The protocol of verification on the fake driver: who is blamed, what is inconclusive, what is counted. The watcher is off: every step is the test's. */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "shim/verdict/verify_internal.h"
#include "tests/unit/verify/fake.h"

#define S1 FAKE_STREAM(1)
#define S2 FAKE_STREAM(2)
#define S3 FAKE_STREAM(3)
#define BYTES 4096u
#define LARGE (1u << 20)
#define MAX_FOUND (3 * VERIFY_SLOTS)

struct found {
	const struct range *range;
	const char *api;
	const char *others[VERIFY_OTHERS];
	char candidate[32];
	size_t other_count, candidate_count;
	uint64_t start, end, bytes, unverified;
	bool exact, inconclusive;
};

static struct found found[MAX_FOUND];
static size_t found_count;
static uint8_t *memory;
static struct range *range;

static void finding(const struct verify_finding *finding)
{
	cr_assert_eq(pthread_mutex_trylock(&verify.lock), 0, "called with the lock held");
	pthread_mutex_unlock(&verify.lock);
	cr_assert_geq(fake_references(finding->range), 2, "no reference held for the call");
	struct found *here = &found[found_count++];
	*here = (struct found){.range = finding->range,
	                       .api = finding->writer->api,
	                       .other_count = finding->other_count,
	                       .candidate_count = finding->writer->candidate_count,
	                       .start = finding->written_start - finding->range->start,
	                       .end = finding->written_end - finding->range->start,
	                       .bytes = finding->written_bytes,
	                       .unverified = finding->unverified_launches,
	                       .exact = finding->exact,
	                       .inconclusive = finding->inconclusive};
	for (size_t i = 0; i < finding->other_count; i++)
		here->others[i] = finding->others[i].api;
	for (size_t i = 0; i < finding->writer->candidate_count; i++)
		strncat(here->candidate, finding->writer->candidates[i].name, 15);
}

static uint64_t address(const uint8_t *at)
{
	return (uint64_t)(uintptr_t)at;
}

static struct range *attach(uint64_t start, uint64_t end)
{
	void *attachment = NULL;
	cr_assert_eq(verify_attach(start, end, false, NULL, &attachment), CUDA_SUCCESS);
	cr_assert_not_null(attachment);
	return fake_range(start, end, attachment);
}

static void setup(void)
{
	verify.watching = true;
	fake_start(finding);
	memory = aligned_alloc(4096, LARGE);
	memset(memory, 7, LARGE);
	range = attach(address(memory), address(memory) + BYTES);
	found_count = 0;
}

static void teardown(void)
{
	cr_assert_eq(fake_counts().forbidden, 0, "a driver call under the lock, or one that breaks a capture");
	cr_assert_eq(fake_counts().wrong_context, 0);
	cr_assert_eq(fake_mode(), CU_STREAM_CAPTURE_MODE_GLOBAL, "capture mode not restored");
	fake_stop();
	free(memory);
}

TestSuite(verify, .init = setup, .fini = teardown, .timeout = 20);

static size_t check_range(struct range *of, const char *api, CUstream stream)
{
	struct verify_writer writer = {.api = api, .kernel = {.name = "kernel"}, .device = -1};
	return verify_after(&writer, &of, 1, stream);
}

static size_t check(const char *api, CUstream stream)
{
	return check_range(range, api, stream);
}

static void refresh(CUstream stream)
{
	verify_refresh(&range, 1, stream);
}

static void drop(void)
{
	fake_drop(range);
	cr_assert_eq(fake_live_ranges(), 0, "a reference was lost");
	cr_assert_eq(verify.in_flight, 0);
	for (struct verify_home *home = verify.homes; home; home = home->next) {
		cr_assert_eq(home->free_slots, VERIFY_SLOTS, "a slot was lost");
		cr_assert_eq(home->arena.used_bytes, 0, "baseline memory was lost");
	}
	cr_assert_null(verify.queues);
}

Test(verify, unchanged_is_silent)
{
	cr_assert_eq(check("a", S1), 1);
	cr_assert_eq(verify_poll(), 1);
	cr_assert_eq(found_count, 0);
	cr_assert_eq(verify_counts().verified, 1);
	cr_assert_eq(verify_counts().pending, 0);
	drop();
}

Test(verify, one_byte_is_found_exactly_once)
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

Test(verify, an_equal_value_is_not_a_change)
{
	fake_write(S1, range->start, 7, BYTES);
	check("a", S1);
	verify_poll();
	cr_assert_eq(found_count, 0);
	drop();
}

Test(verify, bytes_beside_the_range_do_not_count)
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

Test(verify, a_large_range_is_found_to_its_chunks)
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

Test(verify, the_snapshot_limit_is_the_last_exact_size)
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

Test(verify, each_launch_in_a_stream_has_its_own_changes)
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

Test(verify, results_of_other_streams_need_not_wait)
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

Test(verify, the_writer_is_copied)
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

Test(verify, many_ranges_share_launches)
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

Test(verify, a_range_named_twice_is_never_twice_in_one_launch)
{
	struct range *twice[2] = {range, range};
	struct verify_writer writer = {.api = "a"};
	unsigned before = fake_counts().launches;
	cr_assert_eq(verify_after(&writer, twice, 2, S1), 2);
	cr_assert_eq(fake_counts().launches - before, 2);
	verify_poll();
	drop();
}

Test(verify, ranges_without_attachment_are_skipped)
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

Test(verify, checks_at_the_same_time_name_each_other)
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

Test(verify, the_later_one_names_the_earlier_one_too)
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

Test(verify, what_has_arrived_is_no_overlap)
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

Test(verify, more_writers_than_fit_are_cut)
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

Test(verify, a_refresh_in_the_same_stream_is_exact)
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

Test(verify, a_refresh_while_a_check_is_pending_elsewhere_is_inconclusive)
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

Test(verify, a_check_while_a_refresh_is_pending_elsewhere_is_inconclusive)
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

Test(verify, an_overlap_that_finds_nothing_says_nothing)
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

/* The refresh of S1 runs before the later write of S2 and its refresh, and writes the baseline last: an old digest is left. */
Test(verify, after_two_refreshes_at_once_the_first_difference_proves_nothing)
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

Test(verify, a_doubt_is_over_after_one_lone_refresh)
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

Test(verify, a_doubt_that_arises_while_a_check_is_pending_reaches_it)
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

Test(verify, a_refresh_that_could_not_be_issued_leaves_a_doubt)
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

/* ---- what cannot be checked */

Test(verify, nothing_is_issued_into_a_capturing_stream)
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

Test(verify, a_full_ring_counts)
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

Test(verify, slots_are_used_again)
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

Test(verify, a_failed_launch_is_counted_and_no_violation)
{
	fake_write(S1, range->start, 1, 1);
	fake_fail_launches(CUDA_ERROR_INVALID_HANDLE);
	cr_assert_eq(check("a", S1), 0);
	fake_fail_launches(CUDA_SUCCESS);
	cr_assert_eq(verify_counts().unverified, 1);
	cr_assert_eq(verify_counts().pending, 0);
	cr_assert_eq(verify_poll(), 0);
	/* The next check that works finds the change, and says that it may be the other's. */
	check("b", S1);
	verify_poll();
	cr_assert_eq(found_count, 1);
	cr_assert_str_eq(found[0].api, "b");
	cr_assert_eq(found[0].unverified, 1);
	drop();
}

Test(verify, a_sticky_error_ends_checking_quietly)
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

Test(verify, the_ranges_context_is_entered_and_left)
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

Test(verify, default_streams_belong_to_the_current_context)
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

Test(verify, both_names_of_the_legacy_stream_are_one_stream)
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

Test(verify, each_context_has_its_own_tables)
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

Test(verify, a_destroyed_context_takes_its_checks_along)
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

Test(verify, an_unknown_context_may_go)
{
	verify_context_gone(FAKE_CONTEXT(7));
	verify_context_gone(NULL);
	check("a", S1);
	cr_assert_eq(verify_poll(), 1);
	drop();
}

/* ---- attaching and releasing */

Test(verify, attaching_waits_for_what_produces_the_bytes)
{
	fake_defer(true);
	uint64_t start = address(memory) + 8192;
	fake_write(S1, start, 1, 16);
	fake_write(S2, start + 16, 2, 16);
	struct range *all = attach(start, start + 64);
	cr_assert_eq(memory[8192 + 16], 2, "not all streams were waited for");
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

Test(verify, bad_ranges_are_refused)
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

Test(verify, memory_of_a_range_is_used_again_only_when_its_checks_are_through)
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

Test(verify, a_range_removed_while_checked_lives_until_the_result)
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

Test(verify, attaching_and_releasing_for_ever_needs_no_more_memory)
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

Test(verify, every_failing_driver_call_of_an_attach_is_survived)
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

Test(verify, an_attach_that_failed_is_gone_on_with_and_not_begun_again)
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

Test(verify, every_failing_driver_call_of_a_check_is_survived)
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

Test(verify, every_failing_driver_call_of_a_check_now_is_survived)
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

Test(verify, a_driver_that_registers_no_memory_serves_as_well)
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

Test(verify, errno_is_left_alone)
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

Test(verify, a_baseline_is_put_off_by_a_capture)
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

Test(verify, a_capturing_stream_puts_off_its_baseline)
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

Test(verify, other_streams_are_checked_during_a_capture)
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

Test(verify, what_waits_may_be_released)
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

Test(verify, what_waits_for_a_context_that_goes_is_lost)
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

Test(verify, what_could_not_be_taken_waits_on_and_blocks_nobody)
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

/* ---- waiting */

Test(verify, now_tells_pending_findings_first)
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

Test(verify, drain_gives_up_in_time)
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

Test(verify, a_poll_inside_a_finding_keeps_the_order)
{
	fake_defer(true);
	struct range *second = attach(address(memory) + 8192, address(memory) + 8200);
	fake_write(S1, range->start, 1, 1);
	check("a", S1);
	fake_write(S1, second->start, 1, 1);
	check_range(second, "b", S1);
	fake_run_all();
	cr_assert_eq(verify_poll(), 2);
	cr_assert_eq(found_count, 2);
	cr_assert_str_eq(found[0].api, "a");
	cr_assert_str_eq(found[1].api, "b");
	fake_drop(second);
	drop();
}

Test(verify, a_child_forgets_everything)
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
}
