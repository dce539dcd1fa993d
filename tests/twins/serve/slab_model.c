/*
 * A slab against a naive model: an array with the owner of each unit. `slab_model [ROUNDS [SEED]]`.
 *
 * After every step: pieces never overlap, take succeeds exactly when the model has a run that is long enough, and in
 * the first of them; find and next say what the model says, for any byte.
 */
#include <string.h>

#include "shim/twins/slab.h"
#include "tests/twins/serve/check.h"

static uint64_t seed;
static uint64_t owner[SLAB_UNITS]; /* id of the piece, 0: free */
static struct {
	uint32_t offset;
	size_t bytes;
	uint64_t id;
} pieces[SLAB_UNITS];
static unsigned count;

static unsigned units_of(size_t bytes)
{
	return (unsigned)((bytes + SLAB_UNIT - 1) / SLAB_UNIT);
}

/* The first run of free units that is long enough; -1: none. */
static int first_fit(unsigned units)
{
	unsigned run = 0;

	for (unsigned i = 0; i < SLAB_UNITS; i++) {
		run = owner[i] ? 0 : run + 1;
		if (run == units)
			return (int)(i + 1 - units);
	}
	return -1;
}

static size_t random_size(void)
{
	switch (next_random(&seed) % 8) {
	case 0:
		return 1 + next_random(&seed) % SLAB_PIECE_MAX;
	case 1:
		return (1 + next_random(&seed) % 64) * SLAB_UNIT;
	case 2:
		return 1;
	default:
		return 1 + next_random(&seed) % 8192;
	}
}

static void take(struct slab *slab, uint64_t id)
{
	size_t bytes = random_size();
	int at = first_fit(units_of(bytes));
	uint32_t offset = 77;

	CHECK_EQUAL(slab_take(slab, bytes, id, &offset), at >= 0);
	if (at < 0) {
		CHECK_EQUAL(offset, 77);
		CHECK(slab_room(slab) < units_of(bytes) * SLAB_UNIT);
		return;
	}
	CHECK_EQUAL(offset, (unsigned)at * SLAB_UNIT);
	for (unsigned i = 0; i < units_of(bytes); i++)
		owner[(unsigned)at + i] = id;
	pieces[count].offset = offset;
	pieces[count].bytes = bytes;
	pieces[count++].id = id;
}

static void give(struct slab *slab)
{
	unsigned which = (unsigned)(next_random(&seed) % count);

	slab_give(slab, pieces[which].offset);
	for (unsigned i = 0; i < units_of(pieces[which].bytes); i++)
		owner[pieces[which].offset / SLAB_UNIT + i] = 0;
	pieces[which] = pieces[--count];
}

/* The piece that holds the byte, by looking at all. */
static int holder(uint32_t offset)
{
	for (unsigned i = 0; i < count; i++)
		if (offset >= pieces[i].offset && offset - pieces[i].offset < pieces[i].bytes)
			return (int)i;
	return -1;
}

static void ask(struct slab *slab)
{
	uint32_t offset = (uint32_t)(next_random(&seed) % (SLAB_BYTES + SLAB_UNIT)), start = 0;
	if (count && next_random(&seed) % 2) { /* near an edge, where mistakes live */
		unsigned which = (unsigned)(next_random(&seed) % count);
		offset = pieces[which].offset + (uint32_t)pieces[which].bytes - 2 + (uint32_t)(next_random(&seed) % 4);
	}
	int held = holder(offset);
	struct piece *piece = slab_find(slab, offset, &start);

	CHECK_EQUAL(piece != NULL, held >= 0);
	if (piece) {
		CHECK_EQUAL(start, pieces[held].offset);
		CHECK_EQUAL(piece->bytes, pieces[held].bytes);
		CHECK_EQUAL(piece->id, pieces[held].id);
		CHECK(!piece->mark && !piece->sync);
	}
	uint32_t best = SLAB_BYTES;
	for (unsigned i = 0; i < count; i++)
		if (pieces[i].offset >= offset && pieces[i].offset < best)
			best = pieces[i].offset;
	piece = slab_next(slab, offset, &start);
	CHECK_EQUAL(piece != NULL, best < SLAB_BYTES);
	CHECK(!piece || start == best);
}

int main(int argc, char **argv)
{
	long rounds = argc > 1 ? atol(argv[1]) : 200000;
	struct slab *slab = slab_create();
	uint32_t offset;

	seed = argc > 2 ? strtoull(argv[2], NULL, 0) : 1;
	CHECK(slab);
	CHECK(!slab_take(slab, 0, 1, &offset) && !slab_take(slab, SLAB_PIECE_MAX + 1, 1, &offset) &&
	      !slab_take(slab, SIZE_MAX, 1, &offset));
	for (long i = 1; i <= rounds; i++) {
		/* Filled and emptied in turns, so that full and nearly empty slabs are seen, too. */
		bool grow = next_random(&seed) % 8 < (i / 4000 % 2 ? 2u : 6u);

		if (grow || !count)
			take(slab, (uint64_t)i);
		else
			give(slab);
		ask(slab);
		CHECK_EQUAL(slab_pieces(slab), count);
	}
	while (count)
		give(slab);
	CHECK_EQUAL(slab_pieces(slab), 0);
	CHECK_EQUAL(slab_room(slab), SLAB_BYTES);
	/* Exactly full, in the smallest units. */
	for (unsigned i = 0; i < SLAB_UNITS; i++)
		CHECK(slab_take(slab, 1, i + 1, &offset) && offset == i * SLAB_UNIT);
	CHECK(!slab_take(slab, 1, 1, &offset) && !slab_room(slab));
	slab_destroy(slab);
	return 0;
}
