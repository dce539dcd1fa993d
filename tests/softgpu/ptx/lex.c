#include "tests/softgpu/ptx/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void ptx_text_init(struct ptx_text *text, const char *at, size_t bytes, char *log, size_t log_bytes)
{
	/* The driver takes terminated text: what follows a NUL is not PTX. */
	const char *nul = bytes ? memchr(at, 0, bytes) : NULL;

	*text = (struct ptx_text){
		.at = at, .end = nul ? nul : at + bytes, .next_line = 1, .log = log, .log_bytes = log_bytes};
	if (log_bytes)
		log[0] = 0;
	ptx_text_next(text);
}

__attribute__((format(printf, 4, 0))) static void record(struct ptx_text *text, int line, enum ptx_status status,
                                                         const char *format, va_list args)
{
	if (text->status != PTX_OK)
		return;
	text->status = status;
	text->token = TOKEN_END;
	text->at = text->end;
	if (!text->log_bytes)
		return;
	int used = snprintf(text->log, text->log_bytes, "ptx line %d: ", line);
	if (used > 0 && (size_t)used < text->log_bytes)
		vsnprintf(text->log + used, text->log_bytes - (size_t)used, format, args);
}

bool ptx_text_fail(struct ptx_text *text, enum ptx_status status, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	record(text, text->line, status, format, args);
	va_end(args);
	return false;
}

bool ptx_text_fail_at(struct ptx_text *text, int line, enum ptx_status status, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	record(text, line, status, format, args);
	va_end(args);
	return false;
}

bool slice_is(struct slice slice, const char *string)
{
	return strlen(string) == slice.length && !memcmp(slice.at, string, slice.length);
}

static bool is_digit(int c)
{
	return c >= '0' && c <= '9';
}

static bool is_word(int c)
{
	return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '$';
}

static int hex_value(int c)
{
	if (is_digit(c))
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static int peek(const struct ptx_text *text, size_t ahead)
{
	return (size_t)(text->end - text->at) > ahead ? (unsigned char)text->at[ahead] : -1;
}

/* False when a comment does not end. */
static bool skip_space(struct ptx_text *text)
{
	for (;;) {
		int c = peek(text, 0);

		if (c == '\n')
			text->next_line++;
		if (c == ' ' || c == '\t' || c == '\r' || c == '\n' || c == '\f' || c == '\v') {
			text->at++;
		} else if (c == '/' && peek(text, 1) == '/') {
			while (peek(text, 0) >= 0 && peek(text, 0) != '\n')
				text->at++;
		} else if (c == '/' && peek(text, 1) == '*') {
			for (text->at += 2; !(peek(text, 0) == '*' && peek(text, 1) == '/'); text->at++) {
				if (peek(text, 0) < 0)
					return false;
				if (peek(text, 0) == '\n')
					text->next_line++;
			}
			text->at += 2;
		} else {
			return true;
		}
	}
}

/* 0f and 0d: the bits of a float in exactly 8 or 16 hexadecimal digits. */
static void lex_float_bits(struct ptx_text *text, unsigned digits)
{
	uint64_t bits = 0;

	text->at += 2;
	for (unsigned n = 0; n < digits; n++) {
		int value = hex_value(peek(text, 0));

		if (value < 0) {
			ptx_text_fail(text, PTX_INVALID, "a float constant needs %u hexadecimal digits", digits);
			return;
		}
		bits = bits << 4 | (unsigned)value;
		text->at++;
	}
	text->token = TOKEN_FLOAT;
	text->bits = bits;
	text->single = digits == 8;
}

/* Only digits, one point and an exponent are copied, so that strtod sees nothing but a decimal number. */
static void lex_decimal_float(struct ptx_text *text)
{
	char copy[64];
	size_t n = 0;
	bool exponent = false;

	while (n + 1 < sizeof(copy)) {
		int c = peek(text, n);
		bool sign = (c == '+' || c == '-') && n && (copy[n - 1] == 'e' || copy[n - 1] == 'E');

		if ((c == 'e' || c == 'E') && !exponent)
			exponent = true;
		else if (!is_digit(c) && !sign && (c != '.' || exponent))
			break;
		copy[n++] = (char)c;
	}
	copy[n] = 0;
	char *stop;
	double value = strtod(copy, &stop);
	if (*stop || n + 1 == sizeof(copy)) {
		ptx_text_fail(text, PTX_INVALID, "malformed number '%s'", copy);
		return;
	}
	text->at += n;
	text->token = TOKEN_FLOAT;
	text->single = false;
	memcpy(&text->bits, &value, sizeof(value));
}

static void lex_number(struct ptx_text *text)
{
	unsigned base = 10;
	int second = peek(text, 1) | 0x20;
	uint64_t value = 0;
	bool any = false;

	if (peek(text, 0) == '0' && (second == 'f' || second == 'd')) {
		lex_float_bits(text, second == 'f' ? 8 : 16);
		return;
	}
	if (peek(text, 0) == '0' && second == 'x')
		base = 16;
	else if (peek(text, 0) == '0' && second == 'b')
		base = 2;
	if (base == 10) {
		size_t n = 0;

		while (is_digit(peek(text, n)))
			n++;
		int c = peek(text, n);
		if ((c == '.' && (is_digit(peek(text, n + 1)) || !is_word(peek(text, n + 1)))) || c == 'e' || c == 'E') {
			lex_decimal_float(text);
			return;
		}
		if (peek(text, 0) == '0' && n > 1)
			base = 8;
	} else {
		text->at += 2;
	}
	for (;; text->at++) {
		int digit = hex_value(peek(text, 0));

		if (digit < 0 || (unsigned)digit >= base)
			break;
		if (value > (UINT64_MAX - (unsigned)digit) / base) {
			ptx_text_fail(text, PTX_INVALID, "an integer constant does not fit 64 bits");
			return;
		}
		value = value * base + (unsigned)digit;
		any = true;
	}
	if (peek(text, 0) == 'U' || peek(text, 0) == 'u')
		text->at++;
	if (!any || is_word(peek(text, 0))) {
		ptx_text_fail(text, PTX_INVALID, "malformed number");
		return;
	}
	text->token = TOKEN_INT;
	text->bits = value;
}

static void lex_name(struct ptx_text *text)
{
	const char *start = text->at++;

	while (is_word(peek(text, 0)))
		text->at++;
	if (*start == '%' && peek(text, 0) == '.' && peek(text, 1) >= 'w' && peek(text, 1) <= 'z' &&
	    !is_word(peek(text, 2)))
		text->at += 2;
	text->token = TOKEN_NAME;
	text->word = (struct slice){start, (size_t)(text->at - start)};
}

static void lex_dot(struct ptx_text *text)
{
	const char *start = ++text->at;

	while (is_word(peek(text, 0)) || (peek(text, 0) == ':' && peek(text, 1) == ':' && is_word(peek(text, 2))))
		text->at += peek(text, 0) == ':' ? 2 : 1;
	text->token = TOKEN_DOT;
	text->word = (struct slice){start, (size_t)(text->at - start)};
	if (text->at == start)
		ptx_text_fail(text, PTX_INVALID, "a dot with no word");
}

static void lex_string(struct ptx_text *text)
{
	const char *start = ++text->at;

	while (peek(text, 0) >= 0 && peek(text, 0) != '"' && peek(text, 0) != '\n')
		text->at++;
	if (peek(text, 0) != '"') {
		ptx_text_fail(text, PTX_INVALID, "a string does not end");
		return;
	}
	text->token = TOKEN_STRING;
	text->word = (struct slice){start, (size_t)(text->at++ - start)};
}

static void lex_punct(struct ptx_text *text, int c)
{
	static const char *const pairs = "<<>>==!=<=>=&&||";
	int second = peek(text, 1);

	text->token = TOKEN_PUNCT;
	text->punct = c;
	for (const char *p = pairs; *p; p += 2)
		if (c == p[0] && second == p[1])
			text->punct = PAIR(c, second);
	text->at += text->punct == c ? 1 : 2;
}

void ptx_text_next(struct ptx_text *text)
{
	if (text->status != PTX_OK) {
		text->token = TOKEN_END;
		return;
	}
	bool closed = skip_space(text);
	text->line = text->next_line;
	text->word = (struct slice){"", 0};
	if (!closed) {
		ptx_text_fail(text, PTX_INVALID, "a comment does not end");
		return;
	}
	int c = peek(text, 0);
	if (c < 0)
		text->token = TOKEN_END;
	else if (is_digit(c))
		lex_number(text);
	else if (is_word(c) || (c == '%' && is_word(peek(text, 1))))
		lex_name(text);
	else if (c == '.')
		lex_dot(text);
	else if (c == '"')
		lex_string(text);
	else if (c > ' ' && c < 127 && c != '\\' && c != '`' && c != '\'')
		lex_punct(text, c);
	else
		ptx_text_fail(text, PTX_INVALID, "character 0x%02x has no meaning here", (unsigned)c);
}

bool ptx_text_take(struct ptx_text *text, int punct)
{
	if (!text_is(text, punct))
		return false;
	ptx_text_next(text);
	return true;
}

bool ptx_text_need(struct ptx_text *text, int punct)
{
	if (ptx_text_take(text, punct))
		return true;
	if (text->token == TOKEN_END)
		return ptx_text_fail(text, PTX_INVALID, "the text ends where '%c' is due", punct);
	return ptx_text_fail(text, PTX_INVALID, "'%c' is due here", punct);
}
