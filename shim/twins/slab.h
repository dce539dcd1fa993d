/*
 * A slab: SLAB_BYTES of device memory that small allocations share. Pure bookkeeping: it knows offsets, and neither
 * addresses nor the driver.
 *
 * Memory is handed out in units of SLAB_UNIT bytes, first fit, so what was freed last is not far. A piece keeps its
 * units until slab_give(), also while it is retired: no allocation any more, but work in flight may still use its
 * bytes. Not thread-safe.
 */
#ifndef CUCONST_TWINS_SLAB_H
#define CUCONST_TWINS_SLAB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SLAB_BYTES (2u << 20)
#define SLAB_UNIT 512u /* the alignment that cuMemAlloc gives */
#define SLAB_UNITS (SLAB_BYTES / SLAB_UNIT)
#define SLAB_PIECE_MAX (SLAB_BYTES / 2) /* beyond it two pieces would not fit */

struct slab;

/* What is known of a piece; also of one that has a mapping to itself. */
struct piece {
	uint64_t id;
	size_t bytes;  /* as asked for */
	uint32_t mark; /* 0: live; else retired, and when: its owner's own count */
	bool sync;     /* copies and sets of it are to be synchronous */
};

/* An empty slab, or NULL without memory. */
struct slab *slab_create(void);
void slab_destroy(struct slab *slab);

/* A piece of 1 to SLAB_PIECE_MAX bytes; false when no run of free units is long enough. */
bool slab_take(struct slab *slab, size_t bytes, uint64_t id, uint32_t *ret_offset);

/* Frees the units of the piece that starts at `offset`. */
void slab_give(struct slab *slab, uint32_t offset);

/*
 * The live or retired piece whose bytes (not only whose units) hold `offset`: its start goes to *ret_start. NULL: none.
 */
struct piece *slab_find(struct slab *slab, uint32_t offset, uint32_t *ret_start);

/* The first piece, live or retired, that starts at or behind `offset`. NULL: none. */
struct piece *slab_next(struct slab *slab, uint32_t offset, uint32_t *ret_start);

/* Pieces that hold units; and a length that no free run exceeds, in bytes. */
unsigned slab_pieces(const struct slab *slab);
size_t slab_room(const struct slab *slab);

#endif
