#include "shim/twins/slab.h"

#include <stdlib.h>
#include <string.h>

#define WORDS (SLAB_UNITS / 64)

struct slab {
	uint64_t used[WORDS];   /* a bit for each unit */
	uint64_t starts[WORDS]; /* of these, the first of each piece */
	unsigned pieces;
	unsigned room; /* units: no free run is longer; exact after a search that failed */
	struct piece piece[SLAB_UNITS];
};

static unsigned units_of(size_t bytes)
{
	return (unsigned)((bytes + SLAB_UNIT - 1) / SLAB_UNIT);
}

struct slab *slab_create(void)
{
	struct slab *slab = calloc(1, sizeof(*slab));

	if (slab)
		slab->room = SLAB_UNITS;
	return slab;
}

void slab_destroy(struct slab *slab)
{
	free(slab);
}

static bool is_set(const uint64_t *bits, unsigned at)
{
	return bits[at / 64] >> at % 64 & 1;
}

static void set_run(uint64_t *bits, unsigned from, unsigned count, bool value)
{
	for (unsigned at = from, end = from + count; at < end;) {
		unsigned step = 64 - at % 64 < end - at ? 64 - at % 64 : end - at;
		uint64_t mask = (step == 64 ? UINT64_MAX : (UINT64_C(1) << step) - 1) << at % 64;

		if (value)
			bits[at / 64] |= mask;
		else
			bits[at / 64] &= ~mask;
		at += step;
	}
}

/* The first unit at or behind `at` whose bit is `value`; SLAB_UNITS: none. */
static unsigned next_bit(const uint64_t *bits, unsigned at, bool value)
{
	while (at < SLAB_UNITS) {
		uint64_t word = (value ? bits[at / 64] : ~bits[at / 64]) >> at % 64;

		if (word)
			return at + (unsigned)__builtin_ctzll(word);
		at += 64 - at % 64;
	}
	return SLAB_UNITS;
}

/* The last set unit at or before `at`; -1: none. */
static int previous_bit(const uint64_t *bits, unsigned at)
{
	for (int word = (int)(at / 64); word >= 0; word--) {
		uint64_t seen = bits[word];

		if (word == (int)(at / 64) && at % 64 != 63)
			seen &= (UINT64_C(1) << (at % 64 + 1)) - 1;
		if (seen)
			return word * 64 + 63 - __builtin_clzll(seen);
	}
	return -1;
}

bool slab_take(struct slab *slab, size_t bytes, uint64_t id, uint32_t *ret_offset)
{
	unsigned count = units_of(bytes), longest = 0;

	if (!bytes || bytes > SLAB_PIECE_MAX || count > slab->room)
		return false;
	for (unsigned at = next_bit(slab->used, 0, false); at < SLAB_UNITS;) {
		unsigned end = next_bit(slab->used, at, true);

		if (end - at >= count) {
			set_run(slab->used, at, count, true);
			set_run(slab->starts, at, 1, true);
			slab->piece[at] = (struct piece){.id = id, .bytes = bytes};
			slab->pieces++;
			*ret_offset = at * SLAB_UNIT;
			return true;
		}
		longest = end - at > longest ? end - at : longest;
		at = next_bit(slab->used, end, false);
	}
	slab->room = longest;
	return false;
}

void slab_give(struct slab *slab, uint32_t offset)
{
	unsigned at = offset / SLAB_UNIT, before, after;

	set_run(slab->used, at, units_of(slab->piece[at].bytes), false);
	set_run(slab->starts, at, 1, false);
	slab->pieces--;
	/* The run that the freed units are part of now. */
	before = at == 0 ? 0 : (unsigned)(previous_bit(slab->used, at) + 1);
	after = next_bit(slab->used, at, true);
	if (after - before > slab->room)
		slab->room = after - before;
}

struct piece *slab_find(struct slab *slab, uint32_t offset, uint32_t *ret_start)
{
	int start;

	if (offset >= SLAB_BYTES || !is_set(slab->used, offset / SLAB_UNIT))
		return NULL;
	start = previous_bit(slab->starts, offset / SLAB_UNIT);
	if (start < 0 || offset - (uint32_t)start * SLAB_UNIT >= slab->piece[start].bytes)
		return NULL;
	*ret_start = (uint32_t)start * SLAB_UNIT;
	return &slab->piece[start];
}

struct piece *slab_next(struct slab *slab, uint32_t offset, uint32_t *ret_start)
{
	unsigned at = next_bit(slab->starts, units_of(offset), true);

	if (at == SLAB_UNITS)
		return NULL;
	*ret_start = at * SLAB_UNIT;
	return &slab->piece[at];
}

unsigned slab_pieces(const struct slab *slab)
{
	return slab->pieces;
}

size_t slab_room(const struct slab *slab)
{
	return (size_t)slab->room * SLAB_UNIT;
}
