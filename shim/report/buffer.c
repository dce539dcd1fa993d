#include "shim/report/buffer.h"

#include <string.h>

struct buffer buffer_over(char *text, size_t size)
{
	return (struct buffer){.text = text, .size = size};
}

void buffer_bytes(struct buffer *buf, const char *text, size_t length)
{
	if (buf->full || length > buf->size - buf->length) {
		buf->full = true;
		return;
	}
	memcpy(buf->text + buf->length, text, length);
	buf->length += length;
}

void buffer_string(struct buffer *buf, const char *text)
{
	if (text)
		buffer_bytes(buf, text, strlen(text));
}

void buffer_padded(struct buffer *buf, uint64_t value, unsigned digits)
{
	char text[24];
	size_t at = sizeof(text);

	do {
		text[--at] = (char)('0' + value % 10);
		value /= 10;
	} while (value || (at > 0 && sizeof(text) - at < digits));
	buffer_bytes(buf, text + at, sizeof(text) - at);
}

void buffer_unsigned(struct buffer *buf, uint64_t value)
{
	buffer_padded(buf, value, 1);
}

void buffer_signed(struct buffer *buf, int64_t value)
{
	if (value < 0)
		buffer_string(buf, "-");
	buffer_unsigned(buf, value < 0 ? 0 - (uint64_t)value : (uint64_t)value);
}

void buffer_hex(struct buffer *buf, uint64_t value)
{
	char text[18];
	size_t at = sizeof(text);

	do {
		text[--at] = "0123456789abcdef"[value & 15];
		value >>= 4;
	} while (value);
	text[--at] = 'x';
	text[--at] = '0';
	buffer_bytes(buf, text + at, sizeof(text) - at);
}

void buffer_rewind(struct buffer *buf, size_t length)
{
	buf->length = length;
	buf->full = false;
}

/*
 * Length of the valid UTF-8 character at `text`, 0 when there is none: overlong forms, surrogates and what is above
 * U+10FFFF are not valid.
 */
static size_t utf8_length(const unsigned char *text)
{
	unsigned char low = 0x80, high = 0xbf;
	size_t more;

	if (text[0] < 0x80)
		return 1;
	if (text[0] < 0xc2 || text[0] > 0xf4)
		return 0;
	more = text[0] < 0xe0 ? 1 : text[0] < 0xf0 ? 2 : 3;
	if (text[0] == 0xe0)
		low = 0xa0;
	else if (text[0] == 0xed)
		high = 0x9f;
	else if (text[0] == 0xf0)
		low = 0x90;
	else if (text[0] == 0xf4)
		high = 0x8f;
	/* A terminator ends every test below, so nothing behind it is read. */
	if (text[1] < low || text[1] > high)
		return 0;
	for (size_t i = 2; i <= more; i++)
		if ((text[i] & 0xc0) != 0x80)
			return 0;
	return more + 1;
}

static void json_escape(struct buffer *buf, unsigned char c)
{
	static const char names[] = "\b\f\n\r\t\"\\";
	static const char letters[] = "bfnrt\"\\";
	const char *name = c ? strchr(names, c) : NULL;
	char text[6] = {'\\', 'u', '0', '0', "0123456789abcdef"[c >> 4], "0123456789abcdef"[c & 15]};

	if (name)
		text[1] = letters[name - names];
	buffer_bytes(buf, text, name ? 2 : sizeof(text));
}

void buffer_json_string(struct buffer *buf, const char *text, size_t limit)
{
	const unsigned char *at = (const unsigned char *)text;
	size_t left = limit;

	if (!text) {
		buffer_string(buf, "null");
		return;
	}
	buffer_string(buf, "\"");
	while (*at && left) {
		size_t length = utf8_length(at);

		if (length == 0)
			buffer_string(buf, "\xef\xbf\xbd");
		else if (*at < 0x20 || *at == '"' || *at == '\\' || *at == 0x7f)
			json_escape(buf, *at);
		else
			buffer_bytes(buf, (const char *)at, length);
		length = length ? length : 1;
		at += length;
		left -= length < left ? length : left;
	}
	buffer_string(buf, *at ? "...\"" : "\"");
}

void buffer_plain(struct buffer *buf, const char *text, size_t limit)
{
	const unsigned char *at = (const unsigned char *)text;
	size_t left = limit;

	if (!text)
		return;
	while (*at && left) {
		size_t length = utf8_length(at);

		if (length == 0 || *at < 0x20 || *at == 0x7f)
			buffer_string(buf, "?");
		else if (length == 2 && at[0] == 0xc2 && at[1] < 0xa0)
			buffer_string(buf, "?"); /* C1 controls drive terminals too */
		else
			buffer_bytes(buf, (const char *)at, length);
		length = length ? length : 1;
		at += length;
		left -= length < left ? length : left;
	}
	if (*at)
		buffer_string(buf, "...");
}
