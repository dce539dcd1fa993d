/* `.loc FILE LINE COLUMN` and `.file NUMBER "NAME"` of PTX text. */
#include <stdbool.h>
#include <string.h>

#include "shim/kernels/line_info.h"

#define FILES 65536 /* `.file` directives that are looked at: more are no honest text */

struct text {
	const char *at, *end;
};

static void skip_blanks(struct text *text)
{
	while (text->at < text->end && (*text->at == ' ' || *text->at == '\t'))
		text->at++;
}

/* A directive and the blank behind it. */
static bool take(struct text *text, const char *word)
{
	size_t length = strlen(word);
	skip_blanks(text);
	if ((size_t)(text->end - text->at) <= length || memcmp(text->at, word, length) != 0 ||
	    (text->at[length] != ' ' && text->at[length] != '\t'))
		return false;
	text->at += length;
	return true;
}

static bool take_number(struct text *text, uint32_t *ret)
{
	uint32_t number = 0;
	skip_blanks(text);
	const char *first = text->at;
	for (; text->at < text->end && *text->at >= '0' && *text->at <= '9'; text->at++)
		if (__builtin_mul_overflow(number, 10u, &number) ||
		    __builtin_add_overflow(number, (uint32_t)(*text->at - '0'), &number))
			return false;
	*ret = number;
	return text->at > first;
}

static bool take_quoted(struct text *text, struct line_text *ret)
{
	skip_blanks(text);
	if (text->at == text->end || *text->at != '"')
		return false;
	const char *first = ++text->at, *last = memchr(first, '"', (size_t)(text->end - first));
	if (!last)
		return false;
	*ret = (struct line_text){first, (size_t)(last - first)};
	return true;
}

/* The next line without its end; false: no more. */
static bool next_line(struct text *text, struct text *ret_line)
{
	if (text->at == text->end)
		return false;
	const char *end = memchr(text->at, '\n', (size_t)(text->end - text->at));
	*ret_line = (struct text){text->at, end ? end : text->end};
	text->at = end ? end + 1 : text->end;
	return true;
}

/* Files are numbered anywhere in the text, mostly at its end: only those that a query met are looked for. */
static void name_files(struct text text, struct line_query *queries, size_t count, const uint32_t *files)
{
	struct text line;
	for (size_t seen = 0; seen < FILES && next_line(&text, &line);) {
		uint32_t number;
		struct line_text name;
		if (!take(&line, ".file") || !take_number(&line, &number) || !take_quoted(&line, &name))
			continue;
		seen++;
		for (size_t i = 0; i < count; i++)
			if (queries[i].line && files[i] == number && !queries[i].file)
				queries[i].file = line_file((struct line_text){"", 0}, name);
	}
}

void line_info_ptx(const char *start, size_t bytes, struct line_query *queries, size_t count)
{
	struct text text = {start, start + bytes}, line;
	uint32_t files[LINE_QUERIES], file = 0, source = 0;
	uint64_t number = 0;
	size_t next = 0;
	if (count > LINE_QUERIES || !memmem(start, bytes, ".loc", 4))
		return;
	line_sort(queries, count);
	while (next < count && next_line(&text, &line)) {
		uint32_t new_file, new_source;
		struct text directive = line;
		number++;
		if (take(&directive, ".loc") && take_number(&directive, &new_file) &&
		    take_number(&directive, &new_source)) {
			file = new_file;
			source = new_source;
		}
		for (; next < count && queries[next].offset <= number; next++) {
			bool here = queries[next].offset == number && source;
			files[next] = file;
			queries[next].line = here ? source : 0;
		}
	}
	name_files((struct text){start, start + bytes}, queries, next, files);
}
