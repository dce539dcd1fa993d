/*
 * What serving holds: blocks of mapped memory by address, and for each context an arena they belong to. For serve*.c
 * and their tests.
 *
 * Everything here is called with serve_lock held, and calls no driver. Work that needs the driver takes what it must
 * know with it (struct view), or holds the block by its `users`, and looks again afterwards: contexts end and memory is
 * freed meanwhile.
 */
#ifndef CUCONST_TWINS_SERVE_BLOCKS_H
#define CUCONST_TWINS_SERVE_BLOCKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "registry/lock.h"
#include "shim/driver.h"
#include "shim/twins/slab.h"

#define SERVE_DEVICES_MAX 64

extern struct lock serve_lock;

struct arena;

/* One mapping, alone in its reservation: a slab of many pieces, or one large piece. */
struct block {
	CUdeviceptr base;
	size_t bytes;
	CUmemGenericAllocationHandle handle;
	struct arena *arena; /* NULL: out of the table */
	struct slab *slab;   /* NULL: one piece, at base */
	struct piece piece;  /* that one */
	unsigned pieces;     /* that are live */
	unsigned syncs;      /* of these, with `sync` */
	unsigned users; /* work on its mapping without the lock: the last of them takes a block down that is out of the table */
	bool full;          /* a slab in arena->full */
	struct block *next; /* in arena->open or arena->full, or in a list of blocks to take down */
};

/* A context that may reach the arena's memory from another device. */
struct peer {
	CUcontext context;
	CUdevice device;
};

/* What a context was given. */
struct arena {
	CUcontext context;
	CUdevice device;
	uint64_t serial; /* no two arenas of a process share one, though contexts share handles over time */
	bool capable;    /* its device has virtual memory management, of a granularity that slabs fit */
	CUmemAllocationProp prop;
	size_t grain;
	struct peer *peers;
	size_t peer_count;
	uint32_t access_version;   /* counts changes of `peers` */
	uint32_t epoch;            /* counts synchronisations, never 0: a piece that is retired is marked with it */
	unsigned waiting;          /* retired pieces */
	struct block *open, *full; /* slabs, with room and without */
	struct block *kept;        /* of the open ones, an empty one: the next small piece needs no mapping */
	struct arena *next;
};

/* What is needed of an arena to make a mapping for it. */
struct view {
	CUcontext context;
	CUdevice device;
	uint64_t serial;
	bool capable;
	CUmemAllocationProp prop;
	size_t grain;
	uint32_t access_version;
	size_t access_count;
	CUmemAccessDesc access[SERVE_DEVICES_MAX]; /* its own device first */
};

/* A place in memory that a program was given. */
struct place {
	struct block *block;
	struct piece *piece;
	CUdeviceptr start;
};

/* The arenas, newest first. */
extern struct arena *serve_arenas;
struct arena *arena_of(CUcontext context);
struct arena *arena_numbered(uint64_t serial);
/* False: no memory. `made` is copied but for its serial, which is given here. */
bool arena_add(const struct arena *made);
/*
 * Takes it and its blocks out; the blocks that nobody uses go to the list *taken, the others to their last user. Frees
 * the arena.
 */
void arena_remove(struct arena *arena, struct block **taken);
void arena_view(const struct arena *arena, struct view *ret_view);
/* False: no memory, or more than SERVE_DEVICES_MAX devices. Knowing it already is fine. */
bool arena_add_peer(struct arena *arena, CUcontext context, CUdevice device);
bool arena_remove_peer(struct arena *arena, CUcontext context);

/* Every block, in order of address. */
size_t block_count(void);
struct block *block_number(size_t i);
/* The block that holds the address; NULL: not served. */
struct block *block_at(CUdeviceptr address);
/* The addresses around one that no block holds, of which none is held. */
void block_gap(CUdeviceptr address, CUdeviceptr *ret_start, CUdeviceptr *ret_end);
/*
 * A mapping comes to its arena: as a slab with `slab`, else with `piece` in it. NULL: no memory; nothing has changed.
 */
struct block *block_add(struct arena *arena, CUdeviceptr base, size_t bytes, CUmemGenericAllocationHandle handle,
                        struct slab *slab, const struct piece *piece);
/* Out of the table. To *taken, or to its last user. */
void block_remove(struct block *block, struct block **taken);

/* A small piece from the arena's slabs; false: none has room. */
bool piece_take(struct arena *arena, size_t bytes, uint64_t id, struct place *ret_place);
/* The live piece that holds the address; false: none, though a block may. */
bool piece_at(CUdeviceptr address, struct place *ret_place);
/* The retired piece that starts there. */
bool piece_retired_at(CUdeviceptr start, struct place *ret_place);
/* Retires a live piece, or (mark 0) makes it live again. */
void piece_mark(const struct place *place, uint32_t mark);
/* Was the piece retired with `limit` or before it? Counts wrap. */
bool piece_before(const struct piece *piece, uint32_t limit);
/*
 * A retired piece's bytes are free. Its block goes to *taken when it is empty, unless it is kept: at most one slab an
 * arena.
 */
void piece_give(const struct place *place, struct block **taken);
/* Gives the arena's retired pieces whose mark is not after `limit`. */
void arena_reclaim(struct arena *arena, uint32_t limit, struct block **taken);

#endif
