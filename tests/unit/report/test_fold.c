#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "shim/report/fold.h"
#include "tests/unit/report/events.h"

static struct fold_site mentioned;

Test(fold, full_records_then_powers_of_ten)
{
	struct report_event event = sample_launch();
	size_t written = 0, mentions = 0;

	for (int i = 1; i <= 100000; i++) {
		enum fold_answer answer = fold_count(&event, 10, &mentioned);

		written += answer == FOLD_WRITE;
		mentions += answer == FOLD_MENTION;
		if (answer == FOLD_MENTION)
			cr_assert_eq(mentioned.count, (uint64_t)i);
	}
	cr_assert_eq(written, 10);
	cr_assert_eq(mentions, 4, "at 100, 1000, 10000 and 100000");
	cr_assert_eq(fold_total(), 99990);
	cr_assert_str_eq(mentioned.kernel, "fill5");
	cr_assert_str_eq(mentioned.label, "x");
	cr_assert_str_eq(mentioned.frame.file, "train.py");
	cr_assert_eq(mentioned.frame.line, 12);
}

static bool is_new(const struct report_event *event)
{
	return fold_count(event, 1, &mentioned) == FOLD_WRITE;
}

Test(fold, what_makes_a_site)
{
	struct report_event event = sample_launch();
	struct report_kernel kernel = sample_kernel;
	struct range range = {.start = 1, .end = 2, .handle = 5, .label = "y"};
	struct site site = sample_site;
	char label[2] = "x";

	cr_assert(is_new(&event));
	cr_assert(!is_new(&event));
	event.kernel = &kernel;
	event.written_start++;
	event.stream = 7;
	cr_assert(!is_new(&event), "extent and stream do not tell sites apart");
	sample_range.handle = 18;
	sample_range.label = label;
	cr_assert(!is_new(&event), "a labelled range is its label");
	kernel.name = "other";
	cr_assert(is_new(&event));
	event.range = &range;
	cr_assert(is_new(&event));
	range.label = "";
	cr_assert(is_new(&event));
	range.handle = 6;
	cr_assert(is_new(&event), "an unlabelled range is its handle");
	site.python[1].line = 13;
	event.site = &site;
	cr_assert(is_new(&event));
	event.kind = REPORT_INCONCLUSIVE;
	cr_assert(is_new(&event));
	event.api = "cuLaunchKernelEx";
	cr_assert(is_new(&event));
	event.action = ACTION_DENIED;
	cr_assert(is_new(&event));
	cr_assert(!is_new(&event));
}

Test(fold, native_frames_where_there_is_no_python)
{
	struct report_event event = sample_copy();
	struct site site = {.native = {(void *)16, (void *)32}, .native_count = 2};

	event.site = &site;
	cr_assert(is_new(&event));
	cr_assert(!is_new(&event));
	site.native[1] = (void *)48;
	cr_assert(is_new(&event));
}

Test(fold, limit_zero_writes_nothing_in_full)
{
	struct report_event event = sample_copy();

	cr_assert_eq(fold_count(&event, 0, &mentioned), FOLD_MENTION);
	cr_assert_eq(fold_count(&event, 0, &mentioned), FOLD_DROP);
	cr_assert_eq(fold_total(), 2);
}

Test(fold, a_full_table_counts_on)
{
	struct report_event event = sample_copy();
	struct range range = {.start = 1, .end = 2, .label = ""};
	uint64_t written = 0, counted = 0;
	unsigned index = 0;
	bool other = false;

	event.range = &range;
	for (uint64_t i = 0; i < FOLD_SITES * 3; i++) {
		range.handle = i + 1;
		for (int n = 0; n < 3; n++)
			written += fold_count(&event, 2, &mentioned) == FOLD_WRITE;
	}
	cr_assert_eq(written, FOLD_SITES * 2 + 2, "the sites beyond the table share one limit");
	cr_assert_eq(fold_total(), FOLD_SITES * 9 - written);
	while (fold_next(&index, 2, &mentioned)) {
		counted += mentioned.count;
		other |= mentioned.other;
	}
	/* The shared entry's count is not a power of ten, so it was not yet said. */
	cr_assert(other);
	cr_assert_eq(counted, FOLD_SITES * 9);
	index = 0;
	cr_assert(!fold_next(&index, 2, &mentioned), "everything is said once");
}

Test(fold, next_says_only_what_grew)
{
	struct report_event event = sample_copy();
	unsigned index = 0;

	for (int i = 0; i < 100; i++)
		fold_count(&event, 10, &mentioned);
	cr_assert(!fold_next(&index, 10, &mentioned), "said at 100");
	fold_count(&event, 10, &mentioned);
	index = 0;
	cr_assert(fold_next(&index, 10, &mentioned));
	cr_assert_eq(mentioned.count, 101);
	cr_assert(!fold_next(&index, 10, &mentioned));
}

Test(fold, child_starts_at_zero)
{
	struct report_event event = sample_copy();

	cr_assert(is_new(&event));
	cr_assert(!is_new(&event));
	fold_postfork_child();
	cr_assert_eq(fold_total(), 0);
	cr_assert(is_new(&event));
}

Test(fold, long_labels_are_cut)
{
	static char label[4000];
	struct report_event event = sample_copy();
	struct range range = {.start = 1, .end = 2, .label = label};

	memset(label, 'l', sizeof(label) - 1);
	event.range = &range;
	fold_count(&event, 0, &mentioned);
	cr_assert_eq(strlen(mentioned.label), FOLD_LABEL - 1);
}
