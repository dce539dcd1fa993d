#include "shim/verdict/verify_arena.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define SLAB_MIN (1ull << 20)
#define SLAB_MAX (16ull << 20)

struct verify_block {
	uint64_t address, bytes;
	bool free;
	struct verify_block *before, *after;  /* neighbours of the same slab, by address */
	struct verify_block *previous, *next; /* of the same bin, while free */
	struct verify_block *next_slab;       /* of first blocks, which never go: merging keeps the lower one */
};

static unsigned bin_of(uint64_t bytes)
{
	unsigned bin = 63 - (unsigned)__builtin_clzll(bytes / VERIFY_ARENA_ALIGN);
	return bin < VERIFY_ARENA_BINS ? bin : VERIFY_ARENA_BINS - 1;
}

static void bin_add(struct verify_arena *arena, struct verify_block *block)
{
	struct verify_block **head = &arena->bin[bin_of(block->bytes)];
	block->free = true;
	block->previous = NULL;
	block->next = *head;
	if (*head)
		(*head)->previous = block;
	*head = block;
}

static void bin_remove(struct verify_arena *arena, struct verify_block *block)
{
	if (block->previous)
		block->previous->next = block->next;
	else
		arena->bin[bin_of(block->bytes)] = block->next;
	if (block->next)
		block->next->previous = block->previous;
	block->free = false;
}

int verify_arena_add(struct verify_arena *arena, uint64_t address, uint64_t bytes)
{
	struct verify_block *block = calloc(1, sizeof(*block));
	if (!block)
		return -ENOMEM;
	block->address = address;
	block->bytes = bytes;
	block->next_slab = arena->slabs;
	arena->slabs = block;
	arena->slab_bytes += bytes;
	bin_add(arena, block);
	return 0;
}

/* The blocks of a request's own bin may be too small; those of any higher one fit. */
static struct verify_block *find(const struct verify_arena *arena, uint64_t bytes)
{
	unsigned bin = bin_of(bytes);
	for (struct verify_block *block = arena->bin[bin]; block; block = block->next)
		if (block->bytes >= bytes)
			return block;
	while (++bin < VERIFY_ARENA_BINS)
		if (arena->bin[bin])
			return arena->bin[bin];
	return NULL;
}

struct verify_block *verify_arena_take(struct verify_arena *arena, uint64_t bytes)
{
	bytes = (bytes + VERIFY_ARENA_ALIGN - 1) & ~(uint64_t)(VERIFY_ARENA_ALIGN - 1);
	struct verify_block *block = find(arena, bytes);
	if (!block)
		return NULL;
	struct verify_block *rest = NULL;
	if (block->bytes > bytes) {
		rest = calloc(1, sizeof(*rest));
		if (!rest)
			return NULL;
	}
	bin_remove(arena, block);
	if (rest) {
		rest->address = block->address + bytes;
		rest->bytes = block->bytes - bytes;
		rest->before = block;
		rest->after = block->after;
		if (rest->after)
			rest->after->before = rest;
		block->after = rest;
		block->bytes = bytes;
		bin_add(arena, rest);
	}
	arena->used_bytes += bytes;
	return block;
}

/* Takes the block behind into `block`; neither is in a bin. */
static void merge(struct verify_block *block)
{
	struct verify_block *gone = block->after;
	block->bytes += gone->bytes;
	block->after = gone->after;
	if (block->after)
		block->after->before = block;
	free(gone);
}

void verify_arena_give(struct verify_arena *arena, struct verify_block *block)
{
	if (!block)
		return;
	arena->used_bytes -= block->bytes;
	if (block->after && block->after->free) {
		bin_remove(arena, block->after);
		merge(block);
	}
	if (block->before && block->before->free) {
		block = block->before;
		bin_remove(arena, block);
		merge(block);
	}
	bin_add(arena, block);
}

uint64_t verify_block_address(const struct verify_block *block)
{
	return block->address;
}

uint64_t verify_arena_next(const struct verify_arena *arena, uint64_t bytes)
{
	uint64_t wanted = arena->slab_bytes < SLAB_MIN ? SLAB_MIN : arena->slab_bytes;
	if (wanted > SLAB_MAX)
		wanted = SLAB_MAX;
	if (wanted < bytes)
		wanted = bytes;
	return (wanted + VERIFY_ARENA_ALIGN - 1) & ~(uint64_t)(VERIFY_ARENA_ALIGN - 1);
}

void verify_arena_clear(struct verify_arena *arena)
{
	for (struct verify_block *slab = arena->slabs, *next_slab; slab; slab = next_slab) {
		next_slab = slab->next_slab;
		for (struct verify_block *block = slab, *after; block; block = after) {
			after = block->after;
			free(block);
		}
	}
	memset(arena, 0, sizeof(*arena));
}
