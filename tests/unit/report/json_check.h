/*
 * Is this text one JSON value (RFC 8259, UTF-8 checked elsewhere)? A strict recogniser, written apart from the writer
 * it judges.
 */
#ifndef CUCONST_TESTS_JSON_CHECK_H
#define CUCONST_TESTS_JSON_CHECK_H

#include <stdbool.h>
#include <string.h>

static inline const char *json_value(const char *at);

static inline const char *json_text(const char *at)
{
	if (*at++ != '"')
		return NULL;
	for (; *at != '"'; at++) {
		if ((unsigned char)*at < 0x20)
			return NULL;
		if (*at != '\\')
			continue;
		at++;
		if (!*at || !strchr("\"\\/bfnrtu", *at))
			return NULL;
		if (*at == 'u') {
			if (strspn(at + 1, "0123456789abcdefABCDEF") < 4)
				return NULL;
			at += 4;
		}
	}
	return at + 1;
}

static inline const char *json_list(const char *at, char end, bool keys)
{
	if (*++at == end)
		return at + 1;
	for (;;) {
		if (keys) {
			at = json_text(at);
			if (!at || *at++ != ':')
				return NULL;
		}
		at = json_value(at);
		if (!at)
			return NULL;
		if (*at == end)
			return at + 1;
		if (*at++ != ',')
			return NULL;
	}
}

static inline const char *json_value(const char *at)
{
	static const char *const words[] = {"true", "false", "null"};
	size_t digits;

	if (*at == '{')
		return json_list(at, '}', true);
	if (*at == '[')
		return json_list(at, ']', false);
	if (*at == '"')
		return json_text(at);
	for (size_t i = 0; i < 3; i++)
		if (!strncmp(at, words[i], strlen(words[i])))
			return at + strlen(words[i]);
	at += *at == '-';
	digits = strspn(at, "0123456789");
	return digits && !(digits > 1 && *at == '0') ? at + digits : NULL;
}

/* One object and a newline, nothing else; *ret_next is the next line. */
static inline bool json_line(const char *line, const char **ret_next)
{
	const char *end = *line == '{' ? json_value(line) : NULL;

	if (!end || *end != '\n')
		return false;
	*ret_next = end + 1;
	return true;
}

#endif
