/*
 * Device memory for baselines: slabs that came from one mem_alloc each, cut into blocks, given back to the arena and
 * never to the driver. Only addresses are handled here: no driver call, no lock (the caller's guards it).
 */
#ifndef CUCONST_VERDICT_VERIFY_ARENA_H
#define CUCONST_VERDICT_VERIFY_ARENA_H

#include <stdint.h>

#define VERIFY_ARENA_ALIGN 256u
#define VERIFY_ARENA_BINS 40

struct verify_block;

/* Valid when zero. */
struct verify_arena {
	struct verify_block *bin[VERIFY_ARENA_BINS]; /* free blocks by the power of two of their size */
	struct verify_block *slabs;                  /* first blocks, for verify_arena_clear() */
	uint64_t slab_bytes;                         /* all slabs together */
	uint64_t used_bytes;
};

/*
 * Adds memory [address, address + bytes). Returns 0 or -ENOMEM. `address` and `bytes` are multiples of
 * VERIFY_ARENA_ALIGN.
 */
int verify_arena_add(struct verify_arena *arena, uint64_t address, uint64_t bytes);

/* Returns a block of at least `bytes` (more than 0), NULL when no slab has room or host memory is short. */
struct verify_block *verify_arena_take(struct verify_arena *arena, uint64_t bytes);

/* Cannot fail: no allocation. NULL is fine. */
void verify_arena_give(struct verify_arena *arena, struct verify_block *block);

uint64_t verify_block_address(const struct verify_block *block);

/* How large the next slab should be so that `bytes` fit: grows with what there is, so that few slabs are needed. */
uint64_t verify_arena_next(const struct verify_arena *arena, uint64_t bytes);

/* Forgets all memory and frees all blocks, also those still taken. */
void verify_arena_clear(struct verify_arena *arena);

#endif
