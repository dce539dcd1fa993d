/*
 * Hands out pieces of a range of addresses: a sorted list of free extents, first fit, neighbours merged. Not
 * thread-safe: the caller locks.
 */
#ifndef SOFTGPU_RANGES_H
#define SOFTGPU_RANGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sg_extent {
	uint64_t at, bytes;
};

struct sg_ranges {
	struct sg_extent *free;
	size_t count, capacity;
	uint64_t free_bytes;
};

/* Starts with one free extent. False without memory. */
bool sg_ranges_init(struct sg_ranges *ranges, uint64_t at, uint64_t bytes);
/* `align` is a power of two. False when no extent is large enough. */
bool sg_ranges_take(struct sg_ranges *ranges, uint64_t bytes, uint64_t align, uint64_t *ret_at);
/* Exactly this place; false when a part of it is taken. */
bool sg_ranges_take_at(struct sg_ranges *ranges, uint64_t at, uint64_t bytes);
/* Gives back what was taken, whole or in pieces. */
void sg_ranges_give(struct sg_ranges *ranges, uint64_t at, uint64_t bytes);

#endif
