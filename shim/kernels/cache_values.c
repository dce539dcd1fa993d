/*
 * Answers for given values of a kernel's parameters, on disk: in one file for each kernel, each with the conditions that
 * it holds under.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "shim/kernels/cache_internal.h"

#define RECORDS 24    /* of one kernel, the newest first */
#define CONDITIONS 64 /* of one answer: one that hangs on more is not met again */

/* In front of each answer; then its conditions, and its store paths where it is better. */
struct record {
	uint32_t bytes; /* all of it */
	uint16_t conditions, better;
};

/* Of a word of the parameters: what of it must be known how (enum paths_knowledge), and what it must be. */
struct condition {
	uint32_t offset;
	uint8_t used[4], bytes[4];
};

static struct condition condition_at(const unsigned char *record, unsigned number)
{
	struct condition condition;
	memcpy(&condition, record + sizeof(struct record) + number * sizeof condition, sizeof condition);
	return condition;
}

/* Does it hold? All bytes of a word that must be small have to be known. */
static bool holds(const struct condition *condition, const struct paths_values *values)
{
	uint32_t word;
	if (condition->offset % 4 || condition->offset >= values->count || values->count - condition->offset < 4)
		return false;
	const uint8_t *known = values->known + condition->offset, *bytes = values->bytes + condition->offset;
	memcpy(&word, bytes, sizeof word);
	for (unsigned i = 0; i < 4; i++) {
		bool small = condition->used[i] == VALUE_SMALL;
		if (condition->used[i] > VALUE_SMALL || (condition->used[i] && known[i] != VALUE_EXACT) ||
		    (condition->used[i] == VALUE_EXACT && bytes[i] != condition->bytes[i]) ||
		    (small && (word >= PATHS_SMALL || memcmp(condition->used, "\2\2\2\2", 4) != 0)))
			return false;
	}
	return true;
}

static bool fits(const unsigned char *at, const struct record *record, const struct paths_values *values)
{
	for (unsigned i = 0; i < record->conditions; i++) {
		struct condition condition = condition_at(at, i);
		if (!holds(&condition, values))
			return false;
	}
	return true;
}

/* The record at the beginning of what is left, and its store paths. False: there is none. */
static bool next_record(const unsigned char *at, size_t left, struct record *ret_record, size_t *ret_paths)
{
	if (left < sizeof *ret_record)
		return false;
	memcpy(ret_record, at, sizeof *ret_record);
	*ret_paths = sizeof *ret_record + (size_t)ret_record->conditions * sizeof(struct condition);
	return ret_record->bytes >= *ret_paths && ret_record->bytes <= left && ret_record->conditions <= CONDITIONS &&
	       ret_record->better <= 1;
}

static void tell_used(const unsigned char *at, const struct record *record, struct paths_values *values)
{
	memset(values->used, VALUE_UNKNOWN, values->count);
	for (unsigned i = 0; i < record->conditions; i++) {
		struct condition condition = condition_at(at, i);
		memcpy(values->used + condition.offset, condition.used, 4);
	}
}

static bool find(const unsigned char *at, size_t left, struct paths_values *values, struct kernel_paths *ret_paths,
                 bool *ret_better)
{
	struct record record;
	for (size_t paths; next_record(at, left, &record, &paths); at += record.bytes, left -= record.bytes) {
		if (!fits(at, &record, values))
			continue;
		if (record.better && !cache_unpack(at + paths, record.bytes - paths, ret_paths))
			return false;
		*ret_better = record.better;
		tell_used(at, &record, values);
		return true;
	}
	return false;
}

bool cache_get_values(const struct cache_hash *image, const char *kernel, struct paths_values *values,
                      struct kernel_paths *ret_paths, bool *ret_better)
{
	const struct cache_key key = {image, kernel, CACHE_VALUES};
	const unsigned char *content;
	int saved = errno;
	unsigned char *buffer = cache_in_use() ? malloc(CACHE_FILE_BYTES) : NULL;
	size_t bytes = buffer ? cache_read(&key, buffer, &content) : 0;
	bool found = bytes && find(content, bytes, values, ret_paths, ret_better);
	free(buffer);
	errno = saved;
	return found;
}

/* Bytes taken; 0: it is too large. */
static size_t write_record(const struct paths_values *values, const struct kernel_paths *paths, unsigned char *to,
                           size_t room)
{
	struct record record = {.bytes = sizeof record, .better = paths != NULL};
	for (uint32_t offset = 0; offset + 4 <= values->count; offset += 4) {
		struct condition condition = {.offset = offset};
		memcpy(condition.used, values->used + offset, 4);
		memcpy(condition.bytes, values->bytes + offset, 4);
		if (!memcmp(condition.used, "\0\0\0\0", 4))
			continue;
		if (record.conditions == CONDITIONS || room - record.bytes < sizeof condition)
			return 0;
		memcpy(to + record.bytes, &condition, sizeof condition);
		record.bytes += (uint32_t)sizeof condition;
		record.conditions++;
	}
	size_t more = paths ? cache_pack(paths, to + record.bytes, room - record.bytes) : 0;
	if (paths && !more)
		return 0;
	record.bytes += (uint32_t)more;
	memcpy(to, &record, sizeof record);
	return record.bytes;
}

/* Behind the new one those that were there, but for what the new one says for these values. */
static size_t copy_others(const unsigned char *at, size_t left, const struct paths_values *values, unsigned char *to,
                          size_t room)
{
	struct record record;
	size_t taken = 0, paths;
	for (unsigned count = 1; count < RECORDS && next_record(at, left, &record, &paths);
	     at += record.bytes, left -= record.bytes) {
		if (record.bytes > room - taken)
			break;
		if (fits(at, &record, values))
			continue;
		memcpy(to + taken, at, record.bytes);
		taken += record.bytes;
		count++;
	}
	return taken;
}

void cache_put_values(const struct cache_hash *image, const char *kernel, const struct paths_values *values,
                      const struct kernel_paths *paths)
{
	const struct cache_key key = {image, kernel, CACHE_VALUES};
	size_t room;
	const unsigned char *old;
	int saved = errno;
	unsigned char *buffers = cache_in_use() ? malloc(2 * (size_t)CACHE_FILE_BYTES) : NULL;
	unsigned char *content = buffers ? cache_content(&key, buffers, &room) : NULL;
	size_t bytes = content && room >= sizeof(struct record) ? write_record(values, paths, content, room) : 0;
	if (bytes) {
		size_t there = cache_read(&key, buffers + CACHE_FILE_BYTES, &old);
		bytes += there ? copy_others(old, there, values, content + bytes, room - bytes) : 0;
		cache_write(&key, buffers, bytes);
	}
	free(buffers);
	errno = saved;
}
