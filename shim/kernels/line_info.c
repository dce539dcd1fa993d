/* What both kinds of line info share: file names that live for ever, and the queries in order. */
#include "shim/kernels/line_info.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define NAMES 4096      /* places of the table; half of them are filled at most */
#define NAME_BYTES 1024 /* of one */

/*
 * Records hold these names long after the image is gone, so they are never freed; a program has as many as it has source files. The table is
 * this folder's only state.
 */
static char *names[NAMES];
static size_t used;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* nothing is called under it */

static size_t hash(const char *text, size_t length)
{
	uint64_t value = 0xcbf29ce484222325u;
	for (size_t i = 0; i < length; i++)
		value = (value ^ (unsigned char)text[i]) * 0x100000001b3u;
	return value % NAMES;
}

static const char *keep(const char *text, size_t length)
{
	size_t at = hash(text, length);
	pthread_mutex_lock(&lock);
	while (names[at] && strcmp(names[at], text) != 0)
		at = (at + 1) % NAMES;
	if (!names[at] && used < NAMES / 2) {
		names[at] = malloc(length + 1);
		if (names[at]) {
			memcpy(names[at], text, length + 1);
			used++;
		}
	}
	const char *kept = names[at];
	pthread_mutex_unlock(&lock);
	return kept;
}

const char *line_file(struct line_text directory, struct line_text name)
{
	char text[NAME_BYTES];
	size_t length = 0;
	if (!name.length || memchr(name.text, 0, name.length))
		return NULL;
	if (directory.length && name.text[0] != '/') {
		if (directory.length >= sizeof text - 1)
			return NULL;
		memcpy(text, directory.text, directory.length);
		text[directory.length] = '/';
		length = directory.length + 1;
	}
	if (name.length >= sizeof text - length)
		return NULL;
	memcpy(text + length, name.text, name.length);
	length += name.length;
	text[length] = 0;
	return keep(text, length);
}

static int by_place(const void *left, const void *right)
{
	const struct line_query *a = left, *b = right;
	if (a->section != b->section)
		return a->section < b->section ? -1 : 1;
	return (a->offset > b->offset) - (a->offset < b->offset);
}

void line_sort(struct line_query *queries, size_t count)
{
	qsort(queries, count, sizeof *queries, by_place);
}

size_t line_first(const struct line_query *queries, size_t count, uint32_t section, uint64_t offset)
{
	const struct line_query wanted = {.section = section, .offset = offset};
	size_t low = 0;
	while (low < count) {
		size_t middle = low + (count - low) / 2;
		if (by_place(&queries[middle], &wanted) < 0)
			low = middle + 1;
		else
			count = middle;
	}
	return low;
}
