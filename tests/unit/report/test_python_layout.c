#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "shim/report/python_layout.h"

static int line(const char *table, size_t size, int64_t at)
{
	return python_line(PYTHON_LINES_311, (const unsigned char *)table, size, 10, at);
}

Test(python_layout, lines_of_311)
{
	/*
	 * one instruction on line 10 (short form); two on 11 (code 11); one on 10 - 3 (long form, svarint 7 = -3); one
	 * without a line
	 */
	static const char table[] = "\x80\x11"
				    "\xd9\x01\x02"
				    "\xf0\x07\x01\x01\x01"
				    "\xf8";
	size_t size = sizeof(table) - 1;

	cr_assert_eq(line(table, size, -2), 10, "not begun yet");
	cr_assert_eq(line(table, size, 0), 10);
	cr_assert_eq(line(table, size, 2), 11);
	cr_assert_eq(line(table, size, 4), 11);
	cr_assert_eq(line(table, size, 6), 8);
	cr_assert_eq(line(table, size, 8), 0);
	cr_assert_eq(line(table, size, 1000), 0);
}

Test(python_layout, damaged_tables_end)
{
	char bytes[64];

	memset(bytes, 0xff, sizeof(bytes));
	cr_assert_eq(line(bytes, sizeof(bytes), 100000), 0);
	memset(bytes, 0, sizeof(bytes));
	cr_assert_eq(line(bytes, sizeof(bytes), 0), 0);
	cr_assert_eq(line(bytes, 0, 0), 0);
	cr_assert_eq(line("\xf0\x7f\x7f\x7f\x7f\x7f\x7f\x7f", 8, 4), 0, "a number without an end");
}

/* Whatever the bytes, nothing outside them is read: AddressSanitizer watches the end of each block. */
Test(python_layout, random_tables)
{
	unsigned seed = 1;

	for (int i = 0; i < 20000; i++) {
		size_t size = (size_t)(rand_r(&seed) % 24);
		unsigned char *bytes = malloc(size ? size : 1);

		for (size_t n = 0; n < size; n++)
			bytes[n] = (unsigned char)rand_r(&seed);
		for (int64_t at = -2; at < 200; at += 7) {
			python_line(PYTHON_LINES_311, bytes, size, 10, at);
			python_line(PYTHON_LINES_310, bytes, size, 10, at);
		}
		cr_assert_eq(python_line(PYTHON_LINES_311, bytes, size, 10, 1 << 20), 0,
		             "beyond the table there is no line");
		free(bytes);
	}
}

Test(python_layout, lines_of_310)
{
	/* 4 bytes on line 10, 2 without a line, 6 on line 9 */
	static const unsigned char table[] = {4, 0, 2, 0x80, 6, 0xff};

	cr_assert_eq(python_line(PYTHON_LINES_310, table, 6, 10, 2), 10);
	cr_assert_eq(python_line(PYTHON_LINES_310, table, 6, 10, 4), 0);
	cr_assert_eq(python_line(PYTHON_LINES_310, table, 6, 10, 6), 9);
	cr_assert_eq(python_line(PYTHON_LINES_310, table, 6, 10, 12), 0);
	cr_assert_eq(python_line(PYTHON_LINES_310, table, 5, 10, 6), 0, "an odd byte is not read");
}

/* Tables that take each other's place, of all sizes, with one bit changed each time: none has another's line. */
Test(python_layout, a_known_line_is_this_tables)
{
	static unsigned char bytes[200];
	unsigned seed = 3;

	for (size_t n = 0; n < sizeof(bytes); n++)
		bytes[n] = (unsigned char)(rand_r(&seed) % 3 ? 0x80 | rand_r(&seed) : rand_r(&seed) & 63);
	for (int i = 0; i < 1000000; i++) {
		size_t size = i % 8 ? sizeof(bytes) : (size_t)rand_r(&seed) % sizeof(bytes);
		int first = 10 + rand_r(&seed) % 2;
		int64_t at = rand_r(&seed) % 8 ? 40 : rand_r(&seed) % 400;

		bytes[(size_t)rand_r(&seed) % (i % 3 ? 20 : sizeof(bytes))] ^= (unsigned char)(1 << rand_r(&seed) % 8);
		int line = python_line(PYTHON_LINES_311, bytes, size, first, at);
		for (int times = 0; times < 2; times++)
			cr_assert_eq(python_line_known(PYTHON_LINES_311, bytes, size, first, at), line);
	}
}

Test(python_layout, unknown_versions_are_refused)
{
	struct python_layout layout = {.type = 99};
	uint64_t table[128] = {0};

	cr_assert(!python_layout_find(0x03090000, table, &layout));
	cr_assert(!python_layout_find(0x04000000, table, &layout));
	cr_assert(!python_layout_find(0x030d00f0, NULL, &layout));
	cr_assert(!python_layout_find(0x030d00f0, table, &layout), "no cookie");
	memcpy(table, "xdebugpy", 8);
	table[1] = 0x030e00f0;
	cr_assert(!python_layout_find(0x030d00f0, table, &layout), "the table is of another version");
	table[1] = 0x030d00f0;
	table[23] = 1 << 20;
	cr_assert(!python_layout_find(0x030d00f0, table, &layout), "an offset that cannot be");
	cr_assert_eq(layout.type, 99, "untouched on failure");
	cr_assert(python_layout_find(0x030a0df0, NULL, &layout));
	cr_assert(python_layout_find(0x030b07f0, NULL, &layout));
	cr_assert(python_layout_find(0x030c01f0, NULL, &layout));
}
