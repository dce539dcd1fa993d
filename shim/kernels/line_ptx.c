/* `.loc FILE LINE COLUMN` and `.file NUMBER "NAME"` of PTX text. */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "shim/kernels/line_info.h"

#define FILES 65536 /* `.file` directives that are looked at: more are no honest text */
#define STRIDE 256  /* lines of text between two marks */

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

/* Where a line of text begins, and what the last `.loc` before it said. */
struct mark {
	const char *at;
	uint32_t file, source;
};

struct named_file {
	uint32_t number;
	struct line_text name;
};

struct line_index {
	const char *end;
	struct mark *marks; /* of the lines 1, 1 + STRIDE and so on */
	size_t mark_count, mark_room;
	struct named_file *files; /* in the order of the text */
	size_t file_count, file_room;
};

static int more_room(void **array, size_t count, size_t *room, size_t bytes)
{
	if (count < *room)
		return 0;
	size_t larger = *room ? 2 * *room : 64;
	void *grown = realloc(*array, larger * bytes);
	if (!grown)
		return -ENOMEM;
	*array = grown;
	*room = larger;
	return 0;
}

static int add_mark(struct line_index *index, const struct mark *mark)
{
	void *marks = index->marks;
	int err = more_room(&marks, index->mark_count, &index->mark_room, sizeof *mark);
	index->marks = marks;
	if (!err)
		index->marks[index->mark_count++] = *mark;
	return err;
}

static int add_file(struct line_index *index, const struct named_file *file)
{
	void *files = index->files;
	if (index->file_count == FILES)
		return 0;
	int err = more_room(&files, index->file_count, &index->file_room, sizeof *file);
	index->files = files;
	if (!err)
		index->files[index->file_count++] = *file;
	return err;
}

/* The `.loc` of a line, if it is one. */
static void take_loc(struct text line, struct mark *mark)
{
	uint32_t file, source;
	if (take(&line, ".loc") && take_number(&line, &file) && take_number(&line, &source)) {
		mark->file = file;
		mark->source = source;
	}
}

static int take_file(struct text line, struct line_index *index)
{
	struct named_file file;
	if (!take(&line, ".file") || !take_number(&line, &file.number) || !take_quoted(&line, &file.name))
		return 0;
	return add_file(index, &file);
}

static int read_lines(struct line_index *index, struct text text)
{
	struct mark now = {text.at, 0, 0};
	struct text line;
	int err = 0;
	for (size_t number = 0; !err && next_line(&text, &line); number++) {
		if (number % STRIDE == 0)
			err = add_mark(index, &now);
		take_loc(line, &now);
		if (!err)
			err = take_file(line, index);
		now.at = text.at;
	}
	return err;
}

int line_index_ptx(const char *start, size_t bytes, struct line_index **ret_index)
{
	struct line_index *index = NULL;
	*ret_index = NULL;
	if (!memmem(start, bytes, ".loc", 4))
		return 0;
	index = calloc(1, sizeof *index);
	if (!index)
		return -ENOMEM;
	index->end = start + bytes;
	int err = read_lines(index, (struct text){start, start + bytes});
	if (err) {
		line_index_free(index);
		return err;
	}
	*ret_index = index;
	return 0;
}

void line_index_free(struct line_index *index)
{
	if (!index)
		return;
	free(index->marks);
	free(index->files);
	free(index);
}

/* Files are numbered anywhere in the text, mostly at its end. */
static const char *file_numbered(const struct line_index *index, uint32_t number)
{
	const char *name = NULL;
	for (size_t i = 0; i < index->file_count && !name; i++)
		if (index->files[i].number == number)
			name = line_file((struct line_text){"", 0}, index->files[i].name);
	return name;
}

/* What `.loc` said last at a line of the text that is not before the one that *number and *text are at, which go on to it. */
static void go_to(const struct line_index *index, uint64_t line_number, uint64_t *number, struct text *text,
                  struct mark *mark)
{
	struct text line;
	uint64_t nearest = (line_number - 1) / STRIDE;
	if (nearest < index->mark_count && nearest * STRIDE >= *number) {
		*mark = index->marks[nearest];
		*number = nearest * STRIDE;
		text->at = mark->at;
	}
	while (*number < line_number && next_line(text, &line)) {
		++*number;
		take_loc(line, mark);
	}
}

void line_info_ptx(const struct line_index *index, struct line_query *queries, size_t count)
{
	struct mark mark = {index->marks[0].at, 0, 0};
	struct text text = {mark.at, index->end};
	uint64_t number = 0; /* of lines that were read */
	uint32_t named = 0;
	bool is_named = false;
	const char *name = NULL;
	line_sort(queries, count);
	for (size_t i = 0; i < count; i++) {
		queries[i].line = 0;
		if (!queries[i].offset)
			continue;
		go_to(index, queries[i].offset, &number, &text, &mark);
		if (number != queries[i].offset || !mark.source)
			continue;
		if (!is_named || named != mark.file)
			name = file_numbered(index, mark.file);
		is_named = true;
		named = mark.file;
		queries[i].line = mark.source;
		queries[i].file = name;
	}
}
