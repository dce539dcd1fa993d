#include "tests/softgpu/driver/ranges.h"

#include <stdlib.h>
#include <string.h>

static bool make_room(struct sg_ranges *ranges)
{
	if (ranges->count < ranges->capacity)
		return true;
	size_t capacity = ranges->capacity == 0 ? 64 : ranges->capacity * 2;
	struct sg_extent *bigger = realloc(ranges->free, capacity * sizeof(*bigger));
	if (bigger == NULL)
		return false;
	ranges->free = bigger;
	ranges->capacity = capacity;
	return true;
}

static void insert(struct sg_ranges *ranges, size_t index, uint64_t at, uint64_t bytes)
{
	memmove(&ranges->free[index + 1], &ranges->free[index], (ranges->count - index) * sizeof(*ranges->free));
	ranges->free[index] = (struct sg_extent){at, bytes};
	ranges->count++;
}

static void erase(struct sg_ranges *ranges, size_t index)
{
	ranges->count--;
	memmove(&ranges->free[index], &ranges->free[index + 1], (ranges->count - index) * sizeof(*ranges->free));
}

bool sg_ranges_init(struct sg_ranges *ranges, uint64_t at, uint64_t bytes)
{
	*ranges = (struct sg_ranges){0};
	if (!make_room(ranges))
		return false;
	insert(ranges, 0, at, bytes);
	ranges->free_bytes = bytes;
	return true;
}

/* Cuts [at, at + bytes) out of the extent that holds it. */
static bool cut(struct sg_ranges *ranges, size_t index, uint64_t at, uint64_t bytes)
{
	struct sg_extent whole = ranges->free[index];
	uint64_t before = at - whole.at, after = whole.at + whole.bytes - (at + bytes);

	/*
	 * Room is made even if no extent is added: giving back must never need memory beyond one more extent per piece
	 * taken.
	 */
	if (!make_room(ranges))
		return false;
	if (before == 0 && after == 0) {
		erase(ranges, index);
	} else if (before == 0) {
		ranges->free[index] = (struct sg_extent){at + bytes, after};
	} else {
		ranges->free[index].bytes = before;
		if (after != 0)
			insert(ranges, index + 1, at + bytes, after);
	}
	ranges->free_bytes -= bytes;
	return true;
}

bool sg_ranges_take(struct sg_ranges *ranges, uint64_t bytes, uint64_t align, uint64_t *ret_at)
{
	if (bytes == 0)
		return false;
	for (size_t i = 0; i < ranges->count; i++) {
		uint64_t at = (ranges->free[i].at + align - 1) & ~(align - 1);
		uint64_t skipped = at - ranges->free[i].at;
		if (skipped > ranges->free[i].bytes || ranges->free[i].bytes - skipped < bytes)
			continue;
		if (!cut(ranges, i, at, bytes))
			return false;
		*ret_at = at;
		return true;
	}
	return false;
}

/* The first extent that ends after `at`. */
static size_t find(const struct sg_ranges *ranges, uint64_t at)
{
	size_t low = 0, high = ranges->count;

	while (low < high) {
		size_t middle = (low + high) / 2;
		if (ranges->free[middle].at + ranges->free[middle].bytes <= at)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

bool sg_ranges_take_at(struct sg_ranges *ranges, uint64_t at, uint64_t bytes)
{
	size_t i = find(ranges, at);

	if (bytes == 0 || i == ranges->count || ranges->free[i].at > at ||
	    ranges->free[i].at + ranges->free[i].bytes - at < bytes)
		return false;
	return cut(ranges, i, at, bytes);
}

void sg_ranges_give(struct sg_ranges *ranges, uint64_t at, uint64_t bytes)
{
	size_t i = find(ranges, at);
	bool joins_before = i > 0 && ranges->free[i - 1].at + ranges->free[i - 1].bytes == at;
	bool joins_after = i < ranges->count && ranges->free[i].at == at + bytes;

	ranges->free_bytes += bytes;
	if (joins_before && joins_after) {
		ranges->free[i - 1].bytes += bytes + ranges->free[i].bytes;
		erase(ranges, i);
	} else if (joins_before) {
		ranges->free[i - 1].bytes += bytes;
	} else if (joins_after) {
		ranges->free[i] = (struct sg_extent){at, ranges->free[i].bytes + bytes};
	} else if (make_room(ranges)) {
		insert(ranges, i, at, bytes);
	} else {
		ranges->free_bytes -= bytes; /* without memory for the list the piece is lost, never handed out twice */
	}
}
