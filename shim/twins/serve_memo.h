/*
 * What was asked of served memory lately: areas, in each of which every write is held to its allocation. An area is the bytes of one live
 * allocation, or addresses that no block of ours holds. Programs set the same few buffers again and again, and to find an allocation takes the
 * lock, a table and a slab, each of them cold by then.
 *
 * An area stands as long as it is true: whoever makes it untrue takes it out in the same turn of serve_lock. So who frees memory has done so
 * before anybody can know that it is freed, and a late look is one that came before the free. Thread-safe: looking takes no lock, changes are made
 * with serve_lock held.
 */
#ifndef CUCONST_TWINS_SERVE_MEMO_H
#define CUCONST_TWINS_SERVE_MEMO_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shim/hook_state.h"

#define SERVE_AREAS_BITS 7
/* Areas are found by parts of the address space that a write begins in. Those of slabs have many, and large ones one. */
#define SERVE_PART_BITS 21
#define SERVE_SMALL_PART_BITS 9

/* Two in a cache line. Guarded by its sequence, odd while it is written; each member is atomic, so a torn read is seen. */
struct serve_area {
	_Atomic uint64_t sequence, start, bytes; /* 0 bytes: none */
} __attribute__((aligned(32)));

struct serve_memo {
	struct serve_area areas[1u << SERVE_AREAS_BITS];
};

/* The first context is served: hook_line.served is set from here on. With serve_lock, or while nobody looks. */
void serve_memo_start(void);

/* A write that begins at `address` was asked for, and [start, end) around it is such an area, of a slab's piece if it is `small`. With serve_lock. */
void serve_memo_keep(uint64_t address, uint64_t start, uint64_t end, bool small);

/* [start, end) is about to become another allocation's, or nobody's. With serve_lock. */
void serve_memo_forget(uint64_t start, uint64_t end);

static inline struct serve_area *serve_area_of(struct serve_memo *memo, uint64_t address, unsigned part_bits)
{
	return &memo->areas[((address >> part_bits) * UINT64_C(0x9e3779b97f4a7c15)) >> (64 - SERVE_AREAS_BITS)];
}

/* Are `first` and `last` in it, at this moment? */
static inline bool serve_area_holds(const struct serve_area *area, uint64_t first, uint64_t last)
{
	uint64_t sequence = atomic_load_explicit(&area->sequence, memory_order_acquire);
	uint64_t start = atomic_load_explicit(&area->start, memory_order_acquire);
	uint64_t bytes = atomic_load_explicit(&area->bytes, memory_order_acquire);
	uint64_t differ = (sequence & 1) | (atomic_load_explicit(&area->sequence, memory_order_relaxed) ^ sequence);
	return !differ & (first - start < bytes) & (last - start < bytes); /* one question: mostly the answer is yes */
}

/* Is a write of all bytes from `first` to `last` known to stay in its allocation, or to begin in none of ours? */
static inline bool serve_memo_holds(struct serve_memo *memo, uint64_t first, uint64_t last)
{
	return HOOK_LIKELY(serve_area_holds(serve_area_of(memo, first, SERVE_PART_BITS), first, last)) ||
	       serve_area_holds(serve_area_of(memo, first, SERVE_SMALL_PART_BITS), first, last);
}

#endif
