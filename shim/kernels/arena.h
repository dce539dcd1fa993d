/*
 * Memory of one analysis. It comes from one region, which the next analysis takes over: pages that an analysis touches for the first time would be a third of
 * its time. What does not fit there is allocated. All is given back at once by arena_close(); what is given back before is used again.
 *
 * An arena is its analysis' own: one thread at a time. Any threads may open and close rooms at once, and fork: the region that is kept has one owner at a time, and who
 * finds none maps another one. With AddressSanitizer each piece is allocated, so that it sees where one ends.
 */
#ifndef CUCONST_KERNELS_ARENA_H
#define CUCONST_KERNELS_ARENA_H

#include <stddef.h>

#define ARENA_KEPT ((size_t)4 << 20) /* bytes of the region: what a process keeps at most, once it is touched */

struct arena;

/* NULL: no memory. To be closed. */
struct arena *arena_open(void);
/* NULL is fine. */
void arena_close(struct arena *arena);

/* Not zeroed, aligned for any type. NULL: no memory. It is the arena's, and gone when that is closed, or given back to a mark before. */
void *arena_get(struct arena *arena, size_t bytes);
void *arena_get_zeroed(struct arena *arena, size_t count, size_t bytes);
/* As realloc(): what was there is moved, and gone where it was. NULL: no memory, and it still is. `old` may be NULL. */
void *arena_grow(struct arena *arena, void *old, size_t old_bytes, size_t bytes);
/* A piece, of as many bytes as it was got with, to be used again. NULL is fine. */
void arena_put(struct arena *arena, void *piece, size_t bytes);

#define ARENA_PIECES 16

struct arena_piece {
	char *at;
	size_t bytes;
};

/* What an arena holds at a time. All that was got since is gone at arena_reset(); nothing that was got before may be put, or grow, in between. */
struct arena_mark {
	char *free;
	struct arena_piece put[ARENA_PIECES];
	unsigned put_count;
	struct arena_beyond *beyond;
};
void arena_mark(const struct arena *arena, struct arena_mark *ret_mark);
void arena_reset(struct arena *arena, const struct arena_mark *mark);

#endif
