#include "shim/kernels/arena.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define HUGE_PAGE ((size_t)2 << 20)
#define LINE 64 /* of the caches */

#ifdef __SANITIZE_ADDRESS__
#define EACH_ALLOCATED true
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define EACH_ALLOCATED true
#endif
#endif
#ifndef EACH_ALLOCATED
#define EACH_ALLOCATED false
#endif

/* What lies beyond the region, in front of each piece. */
struct arena_beyond {
	_Alignas(max_align_t) struct arena_beyond *next, *previous;
};

/* It lies at the beginning of its region, where there is one. */
struct arena {
	_Alignas(LINE) char *begin;
	char *end;             /* of the region: where it begins, if there is none */
	struct arena_mark now; /* put: pieces of the region, none of which ends where another begins */
};

static _Atomic(struct arena *) kept;

/* A region of whole huge pages, where the machine has them: one fault for each. */
static char *map(void)
{
	size_t bytes = ARENA_KEPT + HUGE_PAGE;
	char *mapped = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (mapped == MAP_FAILED)
		return NULL;
	size_t before = -(uintptr_t)mapped & (HUGE_PAGE - 1), behind = HUGE_PAGE - before;
	if (before)
		munmap(mapped, before);
	if (behind)
		munmap(mapped + before + ARENA_KEPT, behind);
	int error = errno;
	madvise(mapped + before, ARENA_KEPT, MADV_HUGEPAGE);
	errno = error; /* a kernel may have none */
	return mapped + before;
}

static struct arena *make(void)
{
	char *region = EACH_ALLOCATED ? NULL : map();
	struct arena *arena = region ? (struct arena *)(void *)region : aligned_alloc(LINE, sizeof *arena);
	if (!arena)
		return NULL;
	*arena = (struct arena){.begin = (char *)(arena + 1), .end = (char *)(arena + 1)};
	if (region)
		arena->end = region + ARENA_KEPT;
	return arena;
}

static void unmake(struct arena *arena)
{
	if (arena->end == arena->begin)
		free(arena);
	else
		munmap(arena, ARENA_KEPT);
}

struct arena *arena_open(void)
{
	struct arena *arena = atomic_exchange_explicit(&kept, NULL, memory_order_acquire);
	if (!arena)
		arena = make();
	if (arena)
		arena->now = (struct arena_mark){.free = arena->begin};
	return arena;
}

static void free_beyond(struct arena *arena, const struct arena_beyond *last)
{
	while (arena->now.beyond != last) {
		struct arena_beyond *beyond = arena->now.beyond;
		arena->now.beyond = beyond->next;
		free(beyond);
	}
	if (arena->now.beyond)
		arena->now.beyond->previous = NULL;
}

void arena_close(struct arena *arena)
{
	if (!arena)
		return;
	free_beyond(arena, NULL);
	struct arena *none = NULL;
	if (arena->end == arena->begin ||
	    !atomic_compare_exchange_strong_explicit(&kept, &none, arena, memory_order_release, memory_order_relaxed))
		unmake(arena);
}

static size_t rounded(size_t bytes)
{
	return (bytes + !bytes + LINE - 1) & ~(size_t)(LINE - 1);
}

/* Of the pieces that were put the smallest that is large enough. */
static void *get_put(struct arena *arena, size_t bytes)
{
	struct arena_piece *best = NULL, *end = arena->now.put + arena->now.put_count;
	for (struct arena_piece *piece = arena->now.put; piece < end; piece++)
		if (piece->bytes >= bytes && (!best || piece->bytes < best->bytes))
			best = piece;
	if (!best)
		return NULL;
	char *at = best->at;
	best->at += bytes;
	best->bytes -= bytes;
	if (!best->bytes)
		*best = arena->now.put[--arena->now.put_count];
	return at;
}

static void *get_beyond(struct arena *arena, size_t bytes)
{
	struct arena_beyond *beyond = bytes < SIZE_MAX / 2 ? malloc(sizeof *beyond + bytes) : NULL;
	if (!beyond)
		return NULL;
	*beyond = (struct arena_beyond){.next = arena->now.beyond};
	if (beyond->next)
		beyond->next->previous = beyond;
	arena->now.beyond = beyond;
	return beyond + 1;
}

void *arena_get(struct arena *arena, size_t bytes)
{
	if (arena->end == arena->begin || bytes > ARENA_KEPT)
		return get_beyond(arena, bytes);
	size_t line_bytes = rounded(bytes);
	void *piece = get_put(arena, line_bytes);
	if (piece)
		return piece;
	if (line_bytes > (size_t)(arena->end - arena->now.free))
		return get_beyond(arena, bytes);
	arena->now.free += line_bytes;
	return arena->now.free - line_bytes;
}

void *arena_get_zeroed(struct arena *arena, size_t count, size_t bytes)
{
	size_t all;
	if (__builtin_mul_overflow(count, bytes, &all))
		return NULL;
	void *piece = arena_get(arena, all);
	return piece ? memset(piece, 0, all) : NULL;
}

static bool is_beyond(const struct arena *arena, const char *piece)
{
	return (uintptr_t)piece - (uintptr_t)arena->begin >= (uintptr_t)arena->end - (uintptr_t)arena->begin;
}

static void put_beyond(struct arena *arena, void *piece)
{
	struct arena_beyond *beyond = (struct arena_beyond *)piece - 1;
	if (beyond->next)
		beyond->next->previous = beyond->previous;
	if (beyond->previous)
		beyond->previous->next = beyond->next;
	else
		arena->now.beyond = beyond->next;
	free(beyond);
}

/* A piece that ends where this one begins, or begins where it ends, becomes part of it. */
static void unite(struct arena *arena, struct arena_piece *piece)
{
	for (unsigned i = 0; i < arena->now.put_count;) {
		struct arena_piece *other = &arena->now.put[i];
		bool before = other->at + other->bytes == piece->at, behind = piece->at + piece->bytes == other->at;
		if (!before && !behind) {
			i++;
			continue;
		}
		piece->at = before ? other->at : piece->at;
		piece->bytes += other->bytes;
		*other = arena->now.put[--arena->now.put_count];
	}
}

void arena_put(struct arena *arena, void *old, size_t bytes)
{
	if (!old)
		return;
	if (is_beyond(arena, old)) {
		put_beyond(arena, old);
		return;
	}
	struct arena_piece piece = {old, rounded(bytes)};
	unite(arena, &piece);
	if (piece.at + piece.bytes == arena->now.free)
		arena->now.free = piece.at;
	else if (arena->now.put_count < ARENA_PIECES)
		arena->now.put[arena->now.put_count++] = piece;
}

void *arena_grow(struct arena *arena, void *old, size_t old_bytes, size_t bytes)
{
	size_t more = rounded(bytes) - rounded(old_bytes);
	if (old && !is_beyond(arena, old) && bytes >= old_bytes && bytes <= ARENA_KEPT &&
	    (char *)old + rounded(old_bytes) == arena->now.free && more <= (size_t)(arena->end - arena->now.free)) {
		arena->now.free += more;
		return old;
	}
	void *grown = arena_get(arena, bytes);
	if (grown && old) {
		memcpy(grown, old, old_bytes < bytes ? old_bytes : bytes);
		arena_put(arena, old, old_bytes);
	}
	return grown;
}

void arena_mark(const struct arena *arena, struct arena_mark *ret_mark)
{
	*ret_mark = arena->now;
}

void arena_reset(struct arena *arena, const struct arena_mark *mark)
{
	free_beyond(arena, mark->beyond);
	arena->now = *mark;
}
