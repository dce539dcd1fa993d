/* Memory that launches look into: shim/hot_page.h. Each test is a process of its own, so each has a page of its own. */
#include "shim/hot_page.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/resource.h>

#define PAGE ((size_t)2 << 20)

static bool is_zero(const unsigned char *bytes, size_t count)
{
	return !bytes[0] && !memcmp(bytes, bytes + 1, count - 1);
}

Test(hot_page, pieces_are_zero_apart_and_begin_lines)
{
	static const size_t sizes[] = {1, 63, 64, 65, 1000, 65536};
	uintptr_t last = 0;
	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		unsigned char *piece = hot_page_take(sizes[i]);
		cr_assert_not_null(piece);
		cr_expect_eq((uintptr_t)piece % 64, 0);
		cr_expect_geq((uintptr_t)piece, last);
		cr_expect(is_zero(piece, sizes[i]));
		memset(piece, 0xff, sizes[i]);
		last = (uintptr_t)piece + sizes[i];
	}
}

Test(hot_page, all_lie_in_one_large_page)
{
	uintptr_t first = (uintptr_t)hot_page_take(64), last = first;
	cr_assert_neq(first, 0);
	cr_expect_eq(first % PAGE, 0);
	for (uintptr_t piece; (piece = (uintptr_t)hot_page_take(4096)); last = piece)
		cr_assert_eq(piece / PAGE, first / PAGE);
	cr_expect_geq(last + 2 * 4096, first + PAGE);
}

Test(hot_page, what_does_not_fit_leaves_the_rest)
{
	cr_expect_null(hot_page_take(PAGE + 1));
	cr_expect_null(hot_page_take(SIZE_MAX));
	cr_expect_not_null(hot_page_take(PAGE - 64));
	cr_expect_null(hot_page_take(65));
	cr_expect_not_null(hot_page_take(64));
	cr_expect_null(hot_page_take(1));
}

Test(hot_page, without_address_space_there_is_none)
{
	struct rlimit before, none;
	cr_assert_eq(getrlimit(RLIMIT_AS, &before), 0);
	none = (struct rlimit){0, before.rlim_max};
	cr_assert_eq(setrlimit(RLIMIT_AS, &none), 0);
	errno = 42;
	bool taken = hot_page_take(64) != NULL;
	int seen = errno;
	setrlimit(RLIMIT_AS, &before); /* the test's own end needs some */
	cr_expect(!taken && seen == 42);
	cr_expect_not_null(hot_page_take(64));
}
