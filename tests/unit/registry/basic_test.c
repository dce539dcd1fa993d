/* What registry.h promises, case by case. */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "registry/registry.h"
#include "tests/unit/registry/check.h"

TestSuite(registry, .timeout = 10);

static int released;

static void count_release(void *attachment)
{
	released++;
	*(int *)attachment += 1;
}

static struct registry *make(void)
{
	struct registry *reg = NULL;
	const struct registry_hooks hooks = {.release = count_release};

	cr_assert(eq(int, registry_create(&hooks, &reg), 0));
	return reg;
}

static registry_handle add(struct registry *reg, uint64_t start, uint64_t end)
{
	const struct registry_spec spec = {.start = start, .end = end};
	registry_handle handle = 0;

	cr_assert(eq(int, registry_insert(reg, &spec, &handle, NULL), 0));
	cr_assert(ne(u64, handle, 0));
	return handle;
}

static bool same(const char *text, const char *wanted)
{
	return text && strcmp(text, wanted) == 0;
}

/* The handles that overlap, as a string of what add() returned in order, e.g. "02". */
static char *hits(struct registry *reg, uint64_t start, uint64_t end, const registry_handle *known, size_t many)
{
	static char text[64];
	struct range *out[32];
	size_t total = registry_overlaps(reg, start, end, out, 32), length = 0;

	cr_assert(le(sz, total, 32));
	cr_assert(eq(int, registry_hits(reg, start, end), total > 0));
	for (size_t at = 0; at < total; at++) {
		for (size_t which = 0; which < many; which++) {
			if (known[which] == out[at]->handle)
				text[length++] = (char)('0' + which);
		}
		range_put(out[at]);
	}
	text[length] = 0;
	return text;
}

Test(registry, empty_registry_answers_nothing)
{
	struct registry *reg = make();
	uint64_t distance = 77;

	cr_assert(registry_empty(reg));
	cr_assert(not(registry_in_bounds(reg, 0, UINT64_MAX)));
	cr_assert(not(registry_hits(reg, 0, UINT64_MAX)));
	cr_assert(eq(sz, registry_overlaps(reg, 0, UINT64_MAX, NULL, 0), 0));
	cr_assert(eq(sz, registry_stab(reg, UINT64_MAX, NULL, 0), 0));
	cr_assert(eq(ptr, registry_nearest(reg, 5, &distance), NULL));
	cr_assert(eq(u64, distance, 77));
	cr_assert(eq(ptr, registry_find(reg, 0), NULL));
	cr_assert(check_registry(reg) == NULL);
	registry_destroy(&reg);
	cr_assert(eq(ptr, reg, NULL));
	registry_destroy(&reg);
	registry_destroy(NULL);
}

Test(registry, empty_and_wrapping_ranges_are_refused)
{
	static const struct {
		uint64_t start, end;
	} bad[] = {{0, 0}, {5, 5}, {6, 5}, {UINT64_MAX, UINT64_MAX}, {UINT64_MAX, 0}, {UINT64_MAX - 3, 4}};
	struct registry *reg = make();
	int attachment = 0;

	for (size_t at = 0; at < sizeof bad / sizeof *bad; at++) {
		const struct registry_spec spec = {.start = bad[at].start, .end = bad[at].end, .attachment = &attachment};
		struct range *range = (struct range *)&attachment;
		registry_handle handle = 77;

		cr_assert(eq(int, registry_insert(reg, &spec, &handle, &range), -EINVAL));
		cr_assert(eq(u64, handle, 77));
		cr_assert(eq(ptr, range, &attachment));
	}
	cr_assert(registry_empty(reg));
	registry_destroy(&reg);
	cr_assert(eq(int, released, 0));
}

Test(registry, bounds_are_half_open)
{
	struct registry *reg = make();
	registry_handle known[] = {add(reg, 100, 200)};

	cr_assert(eq(str, hits(reg, 99, 100, known, 1), ""));
	cr_assert(eq(str, hits(reg, 99, 101, known, 1), "0"));
	cr_assert(eq(str, hits(reg, 199, 200, known, 1), "0"));
	cr_assert(eq(str, hits(reg, 200, 201, known, 1), ""));
	cr_assert(eq(str, hits(reg, 150, 150, known, 1), ""), "an empty query overlaps nothing");
	cr_assert(eq(str, hits(reg, 160, 150, known, 1), ""), "nor does a wrapping one");
	cr_assert(registry_in_bounds(reg, 199, 300));
	cr_assert(not(registry_in_bounds(reg, 200, 300)));
	cr_assert(not(registry_in_bounds(reg, 0, 100)));
	registry_destroy(&reg);
}

Test(registry, ends_of_the_address_space)
{
	struct registry *reg = make();
	registry_handle known[] = {add(reg, 0, 1), add(reg, UINT64_MAX - 1, UINT64_MAX)};
	struct range *out[2], *near;
	uint64_t distance;

	cr_assert(eq(str, hits(reg, 0, UINT64_MAX, known, 2), "01"));
	cr_assert(eq(str, hits(reg, 0, 1, known, 2), "0"));
	cr_assert(eq(str, hits(reg, UINT64_MAX - 1, UINT64_MAX, known, 2), "1"));
	cr_assert(eq(str, hits(reg, 1, UINT64_MAX - 1, known, 2), ""));
	cr_assert(eq(sz, registry_stab(reg, UINT64_MAX, out, 2), 0), "no range holds the last byte");
	near = registry_nearest(reg, UINT64_MAX, &distance);
	cr_assert(eq(u64, near->handle, known[1]));
	cr_assert(eq(u64, distance, 1));
	range_put(near);
	near = registry_nearest(reg, 1, &distance);
	cr_assert(eq(u64, near->handle, known[0]));
	cr_assert(eq(u64, distance, 1));
	range_put(near);
	registry_destroy(&reg);
}

Test(registry, nested_overlapping_and_identical_ranges)
{
	struct registry *reg = make();
	registry_handle known[] = {add(reg, 0, 1000), add(reg, 100, 200), add(reg, 100, 200), add(reg, 150, 300),
	                           add(reg, 999, 2000)};

	cr_assert(eq(str, hits(reg, 150, 151, known, 5), "0123"));
	cr_assert(eq(str, hits(reg, 250, 260, known, 5), "03"));
	cr_assert(eq(str, hits(reg, 500, 501, known, 5), "0"));
	cr_assert(eq(str, hits(reg, 1500, 1501, known, 5), "4"));
	cr_assert(eq(int, registry_remove(reg, known[1], NULL), 0));
	cr_assert(eq(str, hits(reg, 150, 151, known, 5), "023"));
	cr_assert(eq(int, registry_remove(reg, known[0], NULL), 0));
	cr_assert(eq(str, hits(reg, 500, 501, known, 5), ""));
	cr_assert(check_registry(reg) == NULL);
	registry_destroy(&reg);
}

Test(registry, generation_changes_with_each_change_alone)
{
	struct registry *reg = make();
	uint64_t first = registry_generation(reg), second;
	struct registry_spec spec = {.start = 100, .end = 200};
	registry_handle handle;

	registry_hits(reg, 0, 1000);
	cr_assert_eq(registry_generation(reg), first);
	cr_assert_eq(registry_insert(reg, &spec, &handle, NULL), 0);
	second = registry_generation(reg);
	cr_assert(second != first);
	spec.end = spec.start;
	cr_assert(registry_insert(reg, &spec, NULL, NULL) != 0);
	cr_assert_eq(registry_generation(reg), second);
	cr_assert_eq(registry_remove(reg, handle, NULL), 0);
	cr_assert(registry_generation(reg) != second && registry_generation(reg) != first);
	cr_assert(registry_remove(reg, handle, NULL) != 0);
	registry_destroy(&reg);
}

Test(registry, handles_never_given_are_told_from_removed_ones)
{
	struct registry *reg = make();
	registry_handle first = add(reg, 10, 20), second;

	cr_assert(eq(int, registry_remove(reg, 0, NULL), -ENOENT));
	cr_assert(eq(int, registry_remove(reg, UINT64_MAX, NULL), -ENOENT));
	cr_assert(eq(int, registry_remove(reg, first + 1, NULL), -ENOENT), "a slot never used");
	cr_assert(eq(int, registry_remove(reg, first + (UINT64_C(1) << 32), NULL), -ENOENT), "a generation to come");
	cr_assert(eq(int, registry_remove(reg, (uint32_t)first, NULL), -ENOENT), "generation 0 is never given");
	cr_assert(eq(int, registry_remove(reg, first, NULL), 0));
	cr_assert(eq(int, registry_remove(reg, first, NULL), -ESTALE), "removed twice");
	cr_assert(eq(ptr, registry_find(reg, first), NULL));
	second = add(reg, 10, 20);
	cr_assert(ne(u64, second, first));
	cr_assert(eq(int, registry_remove(reg, first, NULL), -ESTALE),
	          "a stale handle does not end another's protection");
	cr_assert(registry_hits(reg, 10, 11));
	cr_assert(eq(int, registry_remove(reg, second, NULL), 0));
	cr_assert(not(registry_hits(reg, 10, 11)));
	cr_assert(registry_empty(reg));
	registry_destroy(&reg);
}

Test(registry, failed_removal_leaves_output_untouched)
{
	struct registry *reg = make();
	int nothing;
	struct range *range = (struct range *)&nothing;

	cr_assert(eq(int, registry_remove(reg, 42, &range), -ENOENT));
	cr_assert(eq(ptr, range, &nothing));
	registry_destroy(&reg);
}

Test(registry, more_ranges_than_room)
{
	struct registry *reg = make();
	struct range *out[4] = {NULL, NULL, NULL, (struct range *)&released};

	for (uint64_t at = 0; at < 500; at++)
		add(reg, at * 10, at * 10 + 10);
	cr_assert(eq(sz, registry_overlaps(reg, 5, 4005, out, 3), 401));
	for (uint64_t at = 0; at < 3; at++) {
		cr_assert(eq(u64, out[at]->start, at * 10), "ascending");
		range_put(out[at]);
	}
	cr_assert(eq(ptr, out[3], &released), "no more than asked for is written");
	cr_assert(eq(sz, registry_overlaps(reg, 5, 4005, NULL, 0), 401));
	registry_destroy(&reg);
}

Test(registry, everything_is_copied)
{
	struct registry *reg = make();
	char label[] = "weights", owner[] = "libxla*", file[] = "train.py", function[] = "main";
	struct registry_spec spec = {.start = 1,
	                             .end = 9,
	                             .flags = 0xabcd,
	                             .label = label,
	                             .owner = owner,
	                             .site = {.file = file, .function = function, .line = 17}};
	struct range *range, *found;
	registry_handle handle;

	cr_assert(eq(int, registry_insert(reg, &spec, &handle, &range), 0));
	label[0] = owner[0] = file[0] = function[0] = '!';
	cr_assert(same(range->label, "weights"));
	cr_assert(same(range->owner, "libxla*"));
	cr_assert(same(range->site.file, "train.py"));
	cr_assert(same(range->site.function, "main"));
	cr_assert(eq(int, range->site.line, 17));
	cr_assert(eq(u32, range->flags, 0xabcd));
	cr_assert(eq(u64, range->handle, handle));
	cr_assert(eq(u64, atomic_load(&range->checks), 0));
	atomic_fetch_add(&range->checks, 3);
	atomic_fetch_add(&range->violations, 2);
	found = registry_find(reg, handle);
	cr_assert(eq(ptr, found, range), "one range, one struct");
	range_put(found);
	range_put(range);
	/* The slot's next range begins with fresh counters, and without what was not given. */
	cr_assert(eq(int, registry_remove(reg, handle, NULL), 0));
	spec = (struct registry_spec){.start = 1, .end = 9};
	cr_assert(eq(int, registry_insert(reg, &spec, &handle, &range), 0));
	cr_assert(same(range->label, ""));
	cr_assert(range->owner == NULL);
	cr_assert(range->site.file == NULL);
	cr_assert(range->site.function == NULL);
	cr_assert(eq(u64, atomic_load(&range->checks), 0));
	cr_assert(eq(u64, atomic_load(&range->violations), 0));
	cr_assert(not(atomic_load(&range->removed)));
	range_put(range);
	registry_destroy(&reg);
}

Test(registry, nearest)
{
	struct registry *reg = make();
	registry_handle low = add(reg, 100, 200), inner = add(reg, 120, 130);
	registry_handle high = add(reg, 300, 400), twin = add(reg, 300, 350);
	static const struct {
		uint64_t address, distance;
		int which;
	} cases[] = {
		{0, 100, 0},  {99, 1, 0},   {100, 0, 0}, {125, 0, 0}, {199, 0, 0}, {200, 1, 0},
		{249, 50, 0}, {250, 50, 2}, {299, 1, 2}, {399, 0, 2}, {400, 1, 2}, {1000, 601, 2},
	};
	const registry_handle known[] = {low, inner, high, twin};

	for (size_t at = 0; at < sizeof cases / sizeof *cases; at++) {
		uint64_t distance;
		struct range *range = registry_nearest(reg, cases[at].address, &distance);

		cr_assert(eq(u64, distance, cases[at].distance), "address %lu", (unsigned long)cases[at].address);
		cr_assert(eq(u64, range->handle, known[cases[at].which]), "address %lu",
		          (unsigned long)cases[at].address);
		range_put(range);
	}
	range_put(registry_nearest(reg, 0, NULL));
	registry_destroy(&reg);
}

Test(registry, attachment_is_released_once_after_the_last_reference)
{
	struct registry *reg = make();
	int attachment = 0;
	const struct registry_spec spec = {.start = 1, .end = 2, .attachment = &attachment};
	struct range *inserted, *removed, *more;
	registry_handle handle;

	cr_assert(eq(int, registry_insert(reg, &spec, &handle, &inserted), 0));
	more = range_get(inserted);
	cr_assert(eq(int, registry_remove(reg, handle, &removed), 0));
	cr_assert(eq(ptr, removed, inserted));
	cr_assert(atomic_load(&removed->removed));
	cr_assert(same(removed->label, ""), "still readable");
	range_put(inserted);
	range_put(removed);
	cr_assert(eq(int, released, 0));
	/* The slot is still in use, so nothing else may get it. */
	cr_assert(ne(u32, (uint32_t)add(reg, 1, 2), (uint32_t)handle));
	range_put(more);
	cr_assert(eq(int, released, 1));
	cr_assert(eq(int, attachment, 1));
	range_put(NULL);
	registry_destroy(&reg);
	cr_assert(eq(int, released, 1));
}

Test(registry, destroy_releases_live_ranges_and_those_still_held)
{
	struct registry *reg = make();
	int attachments[3] = {0};
	struct range *held;
	registry_handle handle;

	for (int at = 0; at < 3; at++) {
		const struct registry_spec spec = {.start = 1, .end = 2, .attachment = &attachments[at]};

		cr_assert(eq(int, registry_insert(reg, &spec, &handle, NULL), 0));
	}
	cr_assert(eq(int, registry_remove(reg, handle, &held), 0));
	registry_destroy(&reg);
	for (int at = 0; at < 3; at++)
		cr_assert(eq(int, attachments[at], 1));
}

Test(registry, hooks_are_optional)
{
	struct registry *reg = NULL;
	int attachment = 0;
	const struct registry_spec spec = {.start = 1, .end = 2, .attachment = &attachment};
	const struct registry_hooks none = {NULL};
	registry_handle handle;

	cr_assert(eq(int, registry_create(NULL, &reg), 0));
	cr_assert(eq(int, registry_insert(reg, &spec, &handle, NULL), 0));
	cr_assert(eq(int, registry_remove(reg, handle, NULL), 0));
	registry_destroy(&reg);
	cr_assert(eq(int, registry_create(&none, &reg), 0));
	cr_assert(eq(int, registry_insert(reg, &spec, NULL, NULL), 0));
	registry_destroy(&reg);
	cr_assert(eq(int, attachment, 0));
}

struct visit {
	struct registry *reg;
	uint64_t last;
	size_t seen, stop_after;
	registry_handle victim;
};

static int visit(struct range *range, void *data)
{
	struct visit *state = data;

	cr_assert(ge(u64, range->start, state->last));
	state->last = range->start;
	if (state->victim)
		cr_assert(eq(int, registry_remove(state->reg, state->victim, NULL), 0));
	state->victim = 0;
	add(state->reg, 1, 2);
	return ++state->seen == state->stop_after ? 42 : 0;
}

Test(registry, each_sees_a_snapshot)
{
	struct registry *reg = make();
	struct visit state = {.reg = reg};

	for (uint64_t at = 0; at < 300; at++)
		state.victim = add(reg, 10 + at, 20 + at);
	cr_assert(eq(int, registry_each(reg, visit, &state), 0));
	cr_assert(eq(sz, state.seen, 299), "not what fn inserts, nor what it removed");
	state = (struct visit){.reg = reg, .stop_after = 7};
	cr_assert(eq(int, registry_each(reg, visit, &state), 42));
	cr_assert(eq(sz, state.seen, 7));
	registry_destroy(&reg);
}

Test(registry, fork_child_goes_on_without_the_parent)
{
	struct registry *reg = make();
	registry_handle handle = add(reg, 1, 2);
	pid_t child;
	int status;

	registry_prefork(reg);
	child = fork();
	if (child == 0) {
		registry_postfork_child(reg);
		_exit(registry_hits(reg, 1, 2) && registry_remove(reg, handle, NULL) == 0 && registry_empty(reg) ? 0 : 1);
	}
	registry_postfork_parent(reg);
	cr_assert(gt(int, child, 0));
	cr_assert(eq(int, waitpid(child, &status, 0), child));
	cr_assert(eq(int, status, 0));
	cr_assert(registry_hits(reg, 1, 2), "the parent's stays");
	cr_assert(eq(int, registry_remove(reg, handle, NULL), 0));
	registry_destroy(&reg);
}

/* Leaves hold 32-bit distances where they can: right up to the last one that fits, past it, and back. */
Test(registry, four_gibibytes_in_one_leaf)
{
	static const uint64_t widths[] = {UINT32_MAX - 1, UINT32_MAX, UINT64_C(1) << 32, (UINT64_C(1) << 32) + 1,
	                                  UINT64_C(1) << 46};
	const uint64_t base = UINT64_C(0x7f0000000000);

	for (size_t at = 0; at < sizeof widths / sizeof *widths; at++) {
		uint64_t end = base + widths[at];
		struct registry *reg = make();
		registry_handle far;

		add(reg, base, base + 16);
		far = add(reg, end - 8, end);
		cr_assert(check_registry(reg) == NULL, "%s", check_registry(reg));
		cr_assert(registry_hits(reg, end - 1, end));
		cr_assert(registry_hits(reg, end - 9, end - 7));
		cr_assert(registry_hits(reg, base - 5, end + 5));
		cr_assert(registry_hits(reg, base + 15, base + 16));
		cr_assert(registry_hits(reg, 0, base + 1));
		cr_assert(not(registry_hits(reg, end, UINT64_MAX)));
		cr_assert(not(registry_hits(reg, end - 10, end - 8)));
		cr_assert(not(registry_hits(reg, base + 16, end - 8)));
		cr_assert(not(registry_hits(reg, 0, base)));
		cr_assert(eq(int, registry_remove(reg, far, NULL), 0));
		cr_assert(check_registry(reg) == NULL, "%s", check_registry(reg));
		cr_assert(not(registry_hits(reg, end - 8, end)));
		cr_assert(registry_hits(reg, base + 15, end));
		registry_destroy(&reg);
	}
}
