/*
 * What the tests of the protocol share: findings written down, one range attached, the watcher off: every step is the
 * test's.
 */
#include "tests/unit/verify/protocol.h"

struct found found[MAX_FOUND];
size_t found_count;
void (*during_finding)(void);
uint8_t *memory;
struct range *range;

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
	                       .kernel = finding->writer->kernel.name,
	                       .argument = finding->writer->kernel.argument,
	                       .offset = finding->writer->kernel.offset,
	                       .value = finding->writer->kernel.value,
	                       .launches_before = finding->writer->launches_before,
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
	if (during_finding)
		during_finding();
}

uint64_t address(const uint8_t *at)
{
	return (uint64_t)(uintptr_t)at;
}

struct range *attach(uint64_t start, uint64_t end)
{
	void *attachment = NULL;
	cr_assert_eq(verify_attach(start, end, false, NULL, &attachment), CUDA_SUCCESS);
	cr_assert_not_null(attachment);
	return fake_range(start, end, attachment);
}

void setup(void)
{
	verify.watching = true;
	fake_start(finding);
	memory = aligned_alloc(4096, LARGE);
	memset(memory, 7, LARGE);
	range = attach(address(memory), address(memory) + BYTES);
	found_count = 0;
}

void teardown(void)
{
	fake_stop();
	free(memory);
}

size_t check_range(struct range *of, const char *api, CUstream stream)
{
	struct verify_writer writer = {.api = api, .kernel = {.name = "kernel"}, .device = -1};
	return verify_after(&writer, &of, 1, stream);
}

size_t check(const char *api, CUstream stream)
{
	return check_range(range, api, stream);
}

void refresh(CUstream stream)
{
	verify_refresh(&range, 1, stream);
}

/* Ends each test (an assertion in a teardown would not fail it). */
void behaved(void)
{
	cr_assert_eq(fake_counts().forbidden, 0, "a driver call under the lock, or one that breaks a capture");
	cr_assert_eq(fake_counts().wrong_context, 0);
	cr_assert_eq(fake_mode(), CU_STREAM_CAPTURE_MODE_GLOBAL, "capture mode not restored");
}

void drop(void)
{
	behaved();
	fake_drop(range);
	cr_assert_eq(fake_live_ranges(), 0, "a reference was lost");
	cr_assert_eq(hook_line.in_flight, 0);
	for (struct verify_home *home = verify.homes; home; home = home->next) {
		cr_assert_eq(home->free_slots, VERIFY_SLOTS, "a slot was lost");
		cr_assert_eq(home->arena.used_bytes, 0, "baseline memory was lost");
	}
	cr_assert_null(verify.queues);
}
