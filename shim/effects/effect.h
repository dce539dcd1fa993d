/*
 * What one call writes. Built in the hook, judged by verdict/, freed by nobody: extents live on the hook's stack or
 * in its scratch.
 */
#ifndef CUCONST_EFFECTS_EFFECT_H
#define CUCONST_EFFECTS_EFFECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * A pitched box of device memory: `slices` times `rows` rows of `width` bytes, row r of slice s at
 * address + s * slice_pitch + r * pitch. The gaps between rows are not written. Plain copies have rows = slices = 1.
 * Empty when width, rows or slices is 0.
 */
struct extent {
	uint64_t address;
	uint64_t width; /* bytes */
	uint64_t pitch; /* bytes from row to row */
	uint64_t rows;
	uint64_t slice_pitch; /* bytes from slice to slice */
	uint64_t slices;
};

/*
 * Does the box write a byte of [start, end)? *ret_start, *ret_end (may be NULL): first and last + 1 written byte
 * inside. Never wraps. Exact for any pitches, even overlapping ones, but where more than 4096 slices interleave:
 * then gaps between rows count as written.
 */
bool extent_overlaps(const struct extent *extent, uint64_t start, uint64_t end, uint64_t *ret_start, uint64_t *ret_end);

/* How many bytes of [start, end) the box writes; 0 also when it is not known: slices that interleave. */
uint64_t extent_bytes(const struct extent *extent, uint64_t start, uint64_t end);

/* The bounding bytes [*ret_start, *ret_end) of a box, cut at UINT64_MAX; false when it is empty. */
bool extent_bounds(const struct extent *extent, uint64_t *ret_start, uint64_t *ret_end);

#endif
