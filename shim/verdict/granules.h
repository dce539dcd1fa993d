/*
 * Which parts of the address space hold allocations with protected ranges. Bounds alone say little: a framework's activations lie between its weights. So the space is
 * cut into granules, and a launch with no word in a marked one has nothing to do with any range.
 *
 * A mark may be another granule's, GRANULES further on; where none is, no such allocation is. Thread-safe: reading takes one load, marks are changed under the lock of
 * neighbours.c.
 */
#ifndef CUCONST_VERDICT_GRANULES_H
#define CUCONST_VERDICT_GRANULES_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "shim/hook_state.h"

#define GRANULE_BITS 21 /* 2 MiB, the least that a driver maps */
#define GRANULES 32768  /* marks: of 64 GiB */

struct granules {
	_Atomic uint64_t marks[GRANULES / 64];
};

/* Before the first is marked. False: no memory. */
bool granules_start(void);

/* An allocation [start, end) is about to hold ranges, and does no longer. Not in two threads at a time. */
void granules_mark(uint64_t start, uint64_t end);
void granules_clear(uint64_t start, uint64_t end);

/* NULL: not started, nothing was ever protected. */
static inline const struct granules *granules_all(void)
{
	return atomic_load_explicit(&hook_line.granules, memory_order_acquire);
}

/* May the address lie in such an allocation? `granules` is not NULL. No jump. */
static inline bool granules_hold(const struct granules *granules, uint64_t address)
{
	uint64_t granule = address >> GRANULE_BITS;
	return atomic_load_explicit(&granules->marks[granule % GRANULES / 64], memory_order_relaxed) >> granule % 64 & 1;
}

/* Most granules that one question may be about. */
#define GRANULES_AT_ONCE UINT64_C(64)

/* The same of all bytes from `first` to `last`, which lie in no more granules than that: their marks are in one word, or in two. */
static inline bool granules_hold_any(const struct granules *granules, uint64_t first, uint64_t last)
{
	uint64_t from = first >> GRANULE_BITS, to = last >> GRANULE_BITS;
	const _Atomic uint64_t *left = &granules->marks[from % GRANULES / 64],
			       *right = &granules->marks[to % GRANULES / 64];
	uint64_t begin = atomic_load_explicit(left, memory_order_relaxed) & UINT64_MAX << from % 64;
	uint64_t end = atomic_load_explicit(right, memory_order_relaxed) & UINT64_MAX >> (63 - to % 64);
	return HOOK_LIKELY(left == right) ? begin & end : begin | end;
}

#endif
