#include <criterion/criterion.h>
#include <string.h>

#include "shim/report/buffer.h"

static char room[256];

static const char *text_of(struct buffer *buf)
{
	cr_assert_lt(buf->length, sizeof(room));
	room[buf->length] = '\0';
	return room;
}

static const char *json(const char *text, size_t limit)
{
	struct buffer buf = buffer_over(room, sizeof(room) - 1);

	buffer_json_string(&buf, text, limit);
	return text_of(&buf);
}

static const char *plain(const char *text, size_t limit)
{
	struct buffer buf = buffer_over(room, sizeof(room) - 1);

	buffer_plain(&buf, text, limit);
	return text_of(&buf);
}

Test(buffer, numbers)
{
	struct buffer buf = buffer_over(room, sizeof(room) - 1);

	buffer_unsigned(&buf, 0);
	buffer_string(&buf, " ");
	buffer_unsigned(&buf, UINT64_MAX);
	buffer_string(&buf, " ");
	buffer_signed(&buf, INT64_MIN);
	buffer_string(&buf, " ");
	buffer_hex(&buf, 0);
	buffer_string(&buf, " ");
	buffer_hex(&buf, 0x7f00deadbeef0123u);
	buffer_string(&buf, " ");
	buffer_padded(&buf, 42, 6);
	cr_assert_str_eq(text_of(&buf), "0 18446744073709551615 -9223372036854775808 0x0 0x7f00deadbeef0123 000042");
}

Test(buffer, a_piece_fits_whole_or_not_at_all)
{
	struct buffer buf = buffer_over(room, 5);

	memset(room, '!', sizeof(room));
	buffer_string(&buf, "abc");
	buffer_string(&buf, "defg");
	cr_assert(buf.full);
	buffer_string(&buf, "h");
	cr_assert_eq(buf.length, 3);
	cr_assert_eq(room[5], '!');
	buffer_rewind(&buf, 1);
	buffer_string(&buf, "bcde");
	cr_assert(!buf.full);
	cr_assert_eq(memcmp(room, "abcde!", 6), 0);
}

Test(buffer, json_escapes)
{
	cr_assert_str_eq(json(NULL, 10), "null");
	cr_assert_str_eq(json("", 10), "\"\"");
	cr_assert_str_eq(json("a\"b\\c", 10), "\"a\\\"b\\\\c\"");
	cr_assert_str_eq(json("\b\f\n\r\t", 10), "\"\\b\\f\\n\\r\\t\"");
	cr_assert_str_eq(json("\001\037\177", 10), "\"\\u0001\\u001f\\u007f\"");
	cr_assert_str_eq(json("Gr\xc3\xb6\xc3\x9f"
	                      "e \xe2\x82\xac \xf0\x9f\x98\x80",
	                      99),
	                 "\"Gr\xc3\xb6\xc3\x9f"
	                 "e \xe2\x82\xac \xf0\x9f\x98\x80\"");
}

#define FFFD "\xef\xbf\xbd"

Test(buffer, json_replaces_what_is_not_utf8)
{
	cr_assert_str_eq(json("a\xff"
	                      "b",
	                      10),
	                 "\"a" FFFD "b\"");
	cr_assert_str_eq(json("\xc3", 10), "\"" FFFD "\"", "cut by the end of the text");
	cr_assert_str_eq(json("\xe2\x82", 10), "\"" FFFD FFFD "\"");
	cr_assert_str_eq(json("\xf0\x9f\x98", 10), "\"" FFFD FFFD FFFD "\"");
	cr_assert_str_eq(json("\xc0\xaf", 10), "\"" FFFD FFFD "\"", "overlong");
	cr_assert_str_eq(json("\xed\xa0\x80", 10), "\"" FFFD FFFD FFFD "\"", "surrogate");
	cr_assert_str_eq(json("\xf4\x90\x80\x80", 10), "\"" FFFD FFFD FFFD FFFD "\"", "above U+10FFFF");
	cr_assert_str_eq(json("\x80x", 10), "\"" FFFD "x\"");
	cr_assert_str_eq(json("\xc3\"", 10), "\"" FFFD "\\\"\"", "the quote is not swallowed");
}

Test(buffer, json_is_cut_at_characters)
{
	cr_assert_str_eq(json("abcdef", 6), "\"abcdef\"");
	cr_assert_str_eq(json("abcdef", 5), "\"abcde...\"");
	cr_assert_str_eq(json("a\xe2\x82\xac"
	                      "b",
	                      2),
	                 "\"a\xe2\x82\xac...\"");
}

Test(buffer, plain_cannot_drive_a_terminal)
{
	cr_assert_str_eq(plain("x\033[2J\n\177y", 20), "x?[2J??y");
	cr_assert_str_eq(plain("\xc2\x9b"
	                       "31m",
	                       20),
	                 "?31m");
	cr_assert_str_eq(plain("\xc3\xb6\xff", 20), "\xc3\xb6?");
	cr_assert_str_eq(plain("abcdef", 3), "abc...");
	cr_assert_str_eq(plain(NULL, 3), "");
}
