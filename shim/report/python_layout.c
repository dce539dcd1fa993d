#include "shim/report/python_layout.h"

#include <stddef.h>
#include <string.h>

#define OFFSET_MAX 4096 /* no member that we read lies further in: a table with more is not what we take it for */

static const struct python_layout layout_310 = {
	.thread_frame = 24,
	.frame_previous = 24,
	.frame_code = 32,
	.frame_position = 96,
	.code_filename = 104,
	.code_name = 112,
	.code_linetable = 120,
	.code_firstlineno = 40,
	.type = 8,
	.bytes_size = 16,
	.bytes_value = 32,
	.text_length = 16,
	.text_state = 32,
	.text_ascii = 48,
	.text_compact = 72,
	.lines = PYTHON_LINES_310,
};

static const struct python_layout layout_311 = {
	.thread_frame = 56,
	.has_cframe = true,
	.cframe_frame = 8,
	.frame_previous = 48,
	.frame_code = 32,
	.frame_position = 56,
	.frame_owner = 69,
	.code_filename = 112,
	.code_name = 128,
	.code_linetable = 136,
	.code_firstlineno = 72,
	.code_bytes = 184,
	.type = 8,
	.bytes_size = 16,
	.bytes_value = 32,
	.text_length = 16,
	.text_state = 32,
	.text_ascii = 48,
	.text_compact = 72,
	.lines = PYTHON_LINES_311,
};

static const struct python_layout layout_312 = {
	.thread_frame = 56,
	.has_cframe = true,
	.cframe_frame = 0,
	.frame_previous = 8,
	.frame_code = 0,
	.frame_position = 56,
	.frame_owner = 70,
	.code_filename = 112,
	.code_name = 128,
	.code_linetable = 136,
	.code_firstlineno = 68,
	.code_bytes = 192,
	.type = 8,
	.bytes_size = 16,
	.bytes_value = 32,
	.text_length = 16,
	.text_state = 32,
	.text_ascii = 40,
	.text_compact = 56,
	.lines = PYTHON_LINES_311,
};

/*
 * Since 3.13 _PyRuntime begins with a table of offsets, all uint64_t: a cookie, the version, a flag for free threading,
 * then groups. Its order is fixed within a minor version. 3.14 put three members into the interpreter's group, two into
 * the frame's, one into the code object's and four for sets.
 */
enum { TABLE_COOKIE, TABLE_VERSION, TABLE_WORDS = 81 };

struct table_order {
	unsigned char current_frame, previous, executable, position, owner;
	unsigned char filename, qualname, linetable, firstlineno, code_bytes, type;
	unsigned char bytes_size, bytes_value, text_size, text_state, text_length, text_ascii;
};

static const struct table_order order_313 = {
	.current_frame = 23,
	.previous = 29,
	.executable = 30,
	.position = 31,
	.owner = 33,
	.filename = 35,
	.qualname = 37,
	.linetable = 38,
	.firstlineno = 39,
	.code_bytes = 43,
	.type = 45,
	.bytes_size = 65,
	.bytes_value = 66,
	.text_size = 67,
	.text_state = 68,
	.text_length = 69,
	.text_ascii = 70,
};

static const struct table_order order_314 = {
	.current_frame = 26,
	.previous = 32,
	.executable = 33,
	.position = 34,
	.owner = 36,
	.filename = 40,
	.qualname = 42,
	.linetable = 43,
	.firstlineno = 44,
	.code_bytes = 48,
	.type = 51,
	.bytes_size = 75,
	.bytes_value = 76,
	.text_size = 77,
	.text_state = 78,
	.text_length = 79,
	.text_ascii = 80,
};

static bool from_table(uint32_t version, const void *runtime, struct python_layout *ret_layout)
{
	const struct table_order *order = version >> 16 == 0x030d ? &order_313 : &order_314;
	struct python_layout layout = {.lines = PYTHON_LINES_311};
	uint64_t table[TABLE_WORDS];
	const struct {
		uint16_t *to;
		unsigned char from;
	} moves[] = {
		{&layout.thread_frame, order->current_frame},
		{&layout.frame_previous, order->previous},
		{&layout.frame_code, order->executable},
		{&layout.frame_position, order->position},
		{&layout.frame_owner, order->owner},
		{&layout.code_filename, order->filename},
		{&layout.code_name, order->qualname},
		{&layout.code_linetable, order->linetable},
		{&layout.code_firstlineno, order->firstlineno},
		{&layout.code_bytes, order->code_bytes},
		{&layout.type, order->type},
		{&layout.bytes_size, order->bytes_size},
		{&layout.bytes_value, order->bytes_value},
		{&layout.text_state, order->text_state},
		{&layout.text_length, order->text_length},
		{&layout.text_ascii, order->text_ascii},
	};

	if (!runtime)
		return false;
	memcpy(table, runtime, sizeof(table)); /* _PyRuntime is far larger */
	if (memcmp(&table[TABLE_COOKIE], "xdebugpy", 8) || table[TABLE_VERSION] >> 16 != version >> 16)
		return false;
	for (size_t i = 0; i < sizeof(moves) / sizeof(*moves); i++) {
		if (table[moves[i].from] > OFFSET_MAX)
			return false;
		*moves[i].to = (uint16_t)table[moves[i].from];
	}
	/* PyUnicodeObject is the compact header and one pointer. */
	if (table[order->text_size] <= layout.text_ascii || table[order->text_size] > OFFSET_MAX)
		return false;
	layout.text_compact = (uint16_t)(table[order->text_size] - sizeof(void *));
	*ret_layout = layout;
	return true;
}

bool python_layout_find(uint32_t version, const void *runtime, struct python_layout *ret_layout)
{
	switch (version >> 16) {
	case 0x030a:
		*ret_layout = layout_310;
		return true;
	case 0x030b:
		*ret_layout = layout_311;
		return true;
	case 0x030c:
		*ret_layout = layout_312;
		return true;
	default:
		return version >= 0x030d0000 && version < 0x04000000 && from_table(version, runtime, ret_layout);
	}
}

/* 3.10: unsigned bytes covered, signed line delta that comes before them; -128: no line. */
static int line_310(const unsigned char *table, uint64_t size, int line, int64_t at)
{
	int64_t end = 0;

	for (uint64_t i = 0; i + 1 < size; i += 2) {
		signed char delta = (signed char)table[i + 1];

		end += table[i];
		line += delta == -128 ? 0 : delta;
		if (at < end)
			return delta == -128 ? 0 : line;
	}
	return 0;
}

static const unsigned char *read_signed(const unsigned char *at, const unsigned char *end, int *ret_value)
{
	unsigned value = 0, shift = 0;

	while (at < end && shift < 30) {
		unsigned char byte = *at++;

		value |= (unsigned)(byte & 63) << shift;
		shift += 6;
		if (!(byte & 64))
			break;
	}
	*ret_value = value & 1 ? -(int)(value >> 1) : (int)(value >> 1);
	return at;
}

/*
 * 3.11 and newer: an entry's first byte has its high bit set, then four bits of code and three of length - 1 in
 * instructions of two bytes; the bytes that follow have the high bit clear. Codes 0-9: same line. 10-12: line + code -
 * 10. 13, 14: a signed delta follows. 15: no line.
 */
static int line_311(const unsigned char *table, uint64_t size, int line, int64_t at)
{
	const unsigned char *entry = table, *end = table + size;
	int64_t covered = 0;

	while (entry < end) {
		unsigned char first = *entry++;
		unsigned code = first >> 3 & 15;
		int delta = 0;

		if (!(first & 128))
			return 0;
		if (code == 13 || code == 14)
			read_signed(entry, end, &delta);
		else if (code >= 10 && code <= 12)
			delta = (int)code - 10;
		line += delta;
		covered += ((first & 7) + 1) * 2;
		if (at < covered)
			return code == 15 ? 0 : line;
		while (entry < end && !(*entry & 128))
			entry++;
	}
	return 0;
}

int python_line(enum python_lines format, const unsigned char *table, uint64_t size, int first_line, int64_t at)
{
	if (at < 0) /* the frame has not begun: a call being traced (3.10), a finalizer that runs while it is set up */
		return first_line;
	return format == PYTHON_LINES_310 ? line_310(table, size, first_line, at) : line_311(table, size, first_line, at);
}
