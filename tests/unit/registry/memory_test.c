/*
 * The N-th request for memory fails: -ENOMEM, and everything as it was. The build wraps what the registry gets
 * memory from.
 */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "registry/registry.h"
#include "tests/unit/registry/check.h"

TestSuite(registry_memory, .timeout = 30);

/* Requests until one fails; negative: none does. */
static int fail_after = -1;

static bool failing(void)
{
	return fail_after >= 0 && fail_after-- == 0;
}

void *__real_malloc(size_t bytes);
void *__wrap_malloc(size_t bytes);
void *__real_aligned_alloc(size_t alignment, size_t bytes);
void *__wrap_aligned_alloc(size_t alignment, size_t bytes);
/* mmap(), under the name that 64-bit offsets give it. */
void *__real_mmap64(void *address, size_t bytes, int protection, int flags, int fd, off_t offset);
void *__wrap_mmap64(void *address, size_t bytes, int protection, int flags, int fd, off_t offset);

void *__wrap_malloc(size_t bytes)
{
	return failing() ? NULL : __real_malloc(bytes);
}

void *__wrap_aligned_alloc(size_t alignment, size_t bytes)
{
	return failing() ? NULL : __real_aligned_alloc(alignment, bytes);
}

void *__wrap_mmap64(void *address, size_t bytes, int protection, int flags, int fd, off_t offset)
{
	if (failing()) {
		errno = ENOMEM;
		return MAP_FAILED;
	}
	return __real_mmap64(address, bytes, protection, flags, fd, offset);
}

static int released;

static void count_release(void *attachment)
{
	released++;
}

static const struct registry_hooks hooks = {.release = count_release};

Test(registry_memory, creation_fails_cleanly)
{
	struct registry *const untouched = (struct registry *)&released;
	int failures = 0;

	for (int nth = 0;; nth++) {
		struct registry *reg = untouched;
		int error;

		fail_after = nth;
		error = registry_create(&hooks, &reg);
		fail_after = -1;
		if (!error) {
			registry_destroy(&reg);
			break;
		}
		cr_assert(eq(int, error, -ENOMEM));
		cr_assert(eq(ptr, reg, untouched));
		failures++;
	}
	cr_assert(eq(int, failures, 2));
}

enum { MANY = 700 };

static uint64_t nth_start(unsigned nth)
{
	return nth * UINT64_C(7919) % MANY * 16;
}

/* Inserts the nth range. A failure, if `fail_after` lets one happen, must leave no trace; then tries again. */
static registry_handle insert(struct registry *reg, unsigned nth)
{
	const struct registry_spec spec = {
		.start = nth_start(nth), .end = nth_start(nth) + 15, .label = "x", .attachment = &released};
	struct range *const untouched = (struct range *)&released;
	struct range *range = untouched;
	registry_handle handle = 77;
	int error = registry_insert(reg, &spec, &handle, &range);

	if (error) {
		cr_assert(eq(int, error, -ENOMEM));
		cr_assert(eq(int, fail_after, -1));
		cr_assert(eq(u64, handle, 77));
		cr_assert(eq(ptr, range, untouched));
		cr_assert(eq(u64, atomic_load(&reg->live), nth));
		cr_assert(eq(int, registry_hits(reg, spec.start, spec.end), 0));
		cr_assert(check_registry(reg) == NULL);
		cr_assert(eq(int, registry_insert(reg, &spec, &handle, &range), 0));
	}
	range_put(range);
	return handle;
}

/* Fills a registry in which request number `request` fails, and empties it. False: there was no such request. */
static bool fill(int request)
{
	static registry_handle handles[MANY];
	struct registry *reg = NULL;
	bool failed;

	released = 0;
	cr_assert(eq(int, registry_create(&hooks, &reg), 0));
	fail_after = request;
	for (unsigned nth = 0; nth < MANY; nth++)
		handles[nth] = insert(reg, nth);
	failed = fail_after == -1;
	cr_assert(eq(int, released, 0), "after a failure the attachment stays the caller's");
	cr_assert(check_registry(reg) == NULL);
	/* Removing needs no memory. */
	fail_after = 0;
	for (unsigned nth = 0; nth < MANY; nth++)
		cr_assert(eq(int, registry_remove(reg, handles[nth], NULL), 0));
	cr_assert(eq(int, fail_after, 0));
	fail_after = -1;
	cr_assert(eq(int, released, MANY));
	registry_destroy(&reg);
	return failed;
}

Test(registry_memory, insertion_fails_cleanly)
{
	int requests = 0;

	while (fill(requests))
		requests++;
	/* One for the strings of each; slots come in 64, 128, 256, 512; and nodes of either kind. */
	cr_assert(ge(int, requests, MANY + 4 + 2));
}

static int count_range(struct range *range, void *data)
{
	++*(int *)data;
	return 0;
}

Test(registry_memory, each_without_memory_calls_nobody)
{
	struct registry *reg = NULL;
	int seen = 0;

	cr_assert(eq(int, registry_create(&hooks, &reg), 0));
	insert(reg, 0);
	fail_after = 0;
	cr_assert(eq(int, registry_each(reg, count_range, &seen), -ENOMEM));
	fail_after = -1;
	cr_assert(eq(int, seen, 0));
	cr_assert(eq(int, registry_each(reg, count_range, &seen), 0));
	cr_assert(eq(int, seen, 1));
	registry_destroy(&reg);
}

/* Queries never ask for memory, however many nodes they visit. */
Test(registry_memory, queries_need_none)
{
	struct registry *reg = NULL;
	struct range *out[4];
	size_t total;

	cr_assert(eq(int, registry_create(&hooks, &reg), 0));
	for (unsigned at = 0; at < 200; at++)
		insert(reg, at);
	fail_after = 0;
	total = registry_overlaps(reg, 0, UINT64_MAX, out, 4);
	cr_assert(eq(int, fail_after, 0));
	fail_after = -1;
	cr_assert(eq(sz, total, 200));
	for (int at = 0; at < 4; at++)
		range_put(out[at]);
	registry_destroy(&reg);
}
