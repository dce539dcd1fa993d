#include "shim/kernels/sets.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define FORMS 3 /* of enum sets_form */
#define FIRST_JOINS 256
#define MOST_JOINS 4096
#define SETS_MOST 65000               /* names behind are free for others' marks */
#define BYTES_LIMIT ((size_t)8 << 20) /* of all sets of one kernel */

/* Each word by a factor of its own, so that no product waits for another. */
static uint64_t hash(const uint64_t *bits, size_t count)
{
	uint64_t h = 0, factor = 0x9e3779b97f4a7c15u;
	for (size_t i = 0; i < count; i++, factor += 0xd1342543de82ef96u)
		h += (bits[i] ^ bits[i] >> 32) * factor;
	h = (h ^ h >> 32) * 0xff51afd7ed558ccdu;
	return h ^ h >> 32;
}

int sets_init(struct sets *sets, size_t universe)
{
	*sets = (struct sets){
		.half = (universe + 63) / 64, .count = 1, .room = 64, .place_count = 256, .join_count = FIRST_JOINS};
	sets->half += !sets->half;
	/* One set more than there is room for: the scratch a new set is built in. */
	sets->bits = calloc((sets->room + 1) * 2 * sets->half, sizeof *sets->bits);
	for (size_t i = 0; i < FORMS; i++)
		sets->derived[i] = calloc(sets->room, sizeof *sets->derived[i]);
	sets->places = calloc(sets->place_count, sizeof *sets->places);
	sets->marks = calloc(sets->room, sizeof *sets->marks);
	sets->joins = calloc(sets->join_count, sizeof *sets->joins);
	if (sets->marks && sets->bits && sets->derived[0] && sets->derived[1] && sets->derived[2] && sets->places &&
	    sets->joins)
		return 0;
	sets_free(sets);
	return -ENOMEM;
}

void sets_free(struct sets *sets)
{
	free(sets->bits);
	for (size_t i = 0; i < FORMS; i++)
		free(sets->derived[i]);
	free(sets->places);
	free(sets->marks);
	free(sets->joins);
	*sets = (struct sets){0};
}

static uint64_t *scratch(struct sets *sets)
{
	uint64_t *bits = sets->bits + (size_t)sets->count * 2 * sets->half;
	memset(bits, 0, 2 * sets->half * sizeof *bits);
	return bits;
}

static int grow(struct sets *sets)
{
	size_t width = 2 * sets->half;
	uint32_t room = sets->room < SETS_MOST / 2 ? 2 * sets->room : SETS_MOST;
	if (room == sets->room || room * width * sizeof(uint64_t) > BYTES_LIMIT)
		return -E2BIG;
	uint64_t *bits = realloc(sets->bits, (room + 1) * width * sizeof *bits);
	if (!bits)
		return -ENOMEM;
	sets->bits = bits;
	for (size_t i = 0; i < FORMS; i++) {
		set_id *derived = realloc(sets->derived[i], room * sizeof *derived);
		if (!derived)
			return -ENOMEM;
		sets->derived[i] = derived;
	}
	uint8_t *marks = realloc(sets->marks, room * sizeof *marks);
	if (!marks)
		return -ENOMEM;
	sets->marks = marks;
	sets->room = room;
	if (sets->join_count < MOST_JOINS) {
		struct sets_join *joins = calloc(4 * sets->join_count, sizeof *joins);
		if (!joins)
			return -ENOMEM;
		free(sets->joins);
		sets->joins = joins;
		sets->join_count *= 4;
	}
	set_id *places = calloc(2 * sets->place_count, sizeof *places);
	if (!places)
		return -ENOMEM;
	free(sets->places);
	sets->places = places;
	sets->place_count *= 2;
	for (uint32_t i = 1; i < sets->count; i++) {
		size_t at = hash(sets_bits(sets, (set_id)i), width) & (sets->place_count - 1);
		while (places[at])
			at = (at + 1) & (sets->place_count - 1);
		places[at] = (set_id)i;
	}
	return 0;
}

/* The name of the set in the scratch. */
static set_id keep(struct sets *sets)
{
	size_t width = 2 * sets->half;
	const uint64_t *bits = sets_bits(sets, sets->count);
	if (!memcmp(bits, sets->bits, width * sizeof *bits))
		return 0;
	size_t at = hash(bits, width) & (sets->place_count - 1);
	for (; sets->places[at]; at = (at + 1) & (sets->place_count - 1))
		if (!memcmp(sets_bits(sets, sets->places[at]), bits, width * sizeof *bits))
			return sets->places[at];
	set_id id = (set_id)sets->count;
	sets->places[at] = id;
	for (size_t i = 0; i < FORMS; i++)
		sets->derived[i][id] = SETS_NONE;
	sets->marks[id] = 0;
	if (++sets->count == sets->room) {
		int err = grow(sets);
		if (err) {
			sets->error = err;
			sets->places[at] = 0;
			sets->count--;
			return 0;
		}
	}
	return id;
}

set_id sets_range(struct sets *sets, size_t first, size_t end)
{
	uint64_t *bits = scratch(sets);
	for (size_t i = first; i < end && i < sets->half * 64; i++)
		bits[i / 64] |= (uint64_t)1 << i % 64;
	return keep(sets);
}

set_id sets_one(struct sets *sets, size_t member)
{
	return sets_range(sets, member, member + 1);
}

set_id sets_join_two(struct sets *sets, set_id a, set_id b)
{
	uint64_t *bits = sets->bits + (size_t)sets->count * 2 * sets->half;
	const uint64_t *x = sets_bits(sets, a), *y = sets_bits(sets, b);
	for (size_t i = 0; i < 2 * sets->half; i++)
		bits[i] = x[i] | y[i];
	set_id result = keep(sets);
	*sets_known_join(sets, a, b) = (struct sets_join){a, b, result};
	return result;
}

set_id sets_turn(struct sets *sets, set_id set, enum sets_form form)
{
	if (!set || sets->derived[form][set] != SETS_NONE)
		return set ? sets->derived[form][set] : 0;
	uint64_t *bits = scratch(sets);
	const uint64_t *plain = sets_bits(sets, set), *scaled = plain + sets->half;
	for (size_t i = 0; i < sets->half; i++) {
		uint64_t either = plain[i] | scaled[i];
		bits[i] = form == SETS_SCALED ? 0 : form == SETS_PLAIN ? either : scaled[i];
		bits[sets->half + i] = form == SETS_SCALED ? either : form == SETS_PLAIN ? 0 : plain[i];
	}
	set_id result = keep(sets);
	return sets->derived[form][set] = result;
}
