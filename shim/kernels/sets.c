#include "shim/kernels/sets.h"

#include <errno.h>
#include <immintrin.h>
#include <string.h>

#include "shim/kernels/wide.h"

#define FIRST_ROOM 256
#define LARGE_ROOM 1024
#define LEAST_ROOM 64
#define FIRST_JOIN_BITS 10
#define MOST_JOIN_BITS 12
#define SETS_MOST 65000               /* names behind are free for others' marks */
#define BYTES_LIMIT ((size_t)8 << 20) /* of all sets of one kernel */

/* Two words of a set at a time: it has an even number of them, and SSE2 is part of x86-64. */
static inline __m128i two(const uint64_t *bits)
{
	return _mm_loadu_si128((const __m128i *)(const void *)bits);
}

static uint64_t stir(uint64_t h)
{
	h = (h ^ h >> 32) * 0xff51afd7ed558ccdu;
	return h ^ h >> 32;
}

/* Of each word, with a key of its own, both halves times one another: no product waits for another. */
static uint64_t hash_narrow(const uint64_t *bits, size_t count)
{
	const __m128i step = _mm_set_epi64x((long long)0xd1342543de82ef96u, (long long)0x2545f4914f6cdd1du);
	__m128i key = _mm_set_epi64x((long long)0x9e3779b97f4a7c15u, (long long)0xff51afd7ed558ccdu), sum = key;
	for (size_t i = 0; i < count; i += 2) {
		__m128i word = two(bits + i), mixed = _mm_xor_si128(word, key);
		sum = _mm_add_epi64(sum, _mm_add_epi64(word, _mm_mul_epu32(mixed, _mm_srli_epi64(mixed, 32))));
		key = _mm_add_epi64(key, step);
	}
	return stir((uint64_t)_mm_cvtsi128_si64(sum) * 0x9e3779b97f4a7c15u +
	            (uint64_t)_mm_cvtsi128_si64(_mm_unpackhi_epi64(sum, sum)));
}

/* Of the next eight words, or fewer at the end, those that are there. */
static inline unsigned eight_at(size_t i, size_t count)
{
	return count - i < 8 ? (1u << (count - i)) - 1 : 0xff;
}

static const uint64_t keys[8] = {0x9e3779b97f4a7c15u, 0xff51afd7ed558ccdu, 0xc4ceb9fe1a85ec53u, 0xd1342543de82ef95u,
                                 0x2545f4914f6cdd1du, 0xbf58476d1ce4e5b9u, 0x94d049bb133111ebu, 0xda942042e4dd58b5u};

/* Of eight words: added up they are the hash. */
WIDE static inline __m512i hash_eight(__m512i word, __m512i key)
{
	__m512i mixed = _mm512_xor_si512(word, key);
	return _mm512_add_epi64(word, _mm512_mul_epu32(mixed, _mm512_srli_epi64(mixed, 32)));
}

/* (_mm512_reduce_add_epi64() adds signed numbers.) */
WIDE static inline uint32_t finish(__m512i sum)
{
	uint64_t lanes[8], h = 0;
	_mm512_storeu_si512(lanes, sum);
	for (unsigned i = 0; i < 8; i++)
		h += lanes[i];
	return (uint32_t)stir(h);
}

WIDE static uint32_t hash_wide(const uint64_t *bits, size_t count)
{
	const __m512i step = _mm512_set1_epi64((long long)0xa0761d6478bd642fu);
	__m512i key = _mm512_loadu_si512(keys), sum = _mm512_setzero_si512();
	for (size_t i = 0; i < count; i += 8) {
		__m512i word = _mm512_maskz_loadu_epi64((__mmask8)eight_at(i, count), bits + i);
		sum = _mm512_add_epi64(sum, hash_eight(word, key));
		key = _mm512_add_epi64(key, step);
	}
	return finish(sum);
}

static uint32_t hash(const struct sets *sets, const uint64_t *bits)
{
	return sets->wide ? hash_wide(bits, 2 * sets->half) : (uint32_t)hash_narrow(bits, 2 * sets->half);
}

/* One set more than there is room for: the scratch a new set is built in. */
static size_t bits_bytes(const struct sets *sets, uint32_t room)
{
	return (room + (size_t)1) * 2 * sets->half * sizeof *sets->bits;
}

int sets_init(struct sets *sets, struct arena *arena, size_t universe, bool many)
{
	uint32_t room = many ? LARGE_ROOM : FIRST_ROOM;
	*sets = (struct sets){.arena = arena,
	                      .half = (universe + 63) / 64,
	                      .count = 1,
	                      .wide = wide_is_there(),
	                      .room = room,
	                      .place_count = 4 * room,
	                      .join_bits = many ? MOST_JOIN_BITS : FIRST_JOIN_BITS};
	sets->half += !sets->half;
	/* Wide sets begin with fewer: the limit is that of grow(). */
	while (sets->room > LEAST_ROOM && sets->room * 2 * sets->half * sizeof *sets->bits > BYTES_LIMIT) {
		sets->room /= 2;
		sets->place_count /= 2;
	}
	sets->bits = arena_get(arena, bits_bytes(sets, sets->room));
	sets->derived = arena_get(arena, sets->room * sizeof *sets->derived);
	sets->hashes = arena_get(arena, sets->room * sizeof *sets->hashes);
	sets->places = arena_get_zeroed(arena, sets->place_count, sizeof *sets->places);
	sets->marks = arena_get(arena, sets->room * sizeof *sets->marks);
	sets->joins = arena_get_zeroed(arena, (size_t)1 << sets->join_bits, sizeof *sets->joins);
	if (!sets->marks || !sets->bits || !sets->hashes || !sets->derived || !sets->places || !sets->joins)
		return -ENOMEM;
	/* Of the empty set; others are there once they are made. */
	memset(sets->bits, 0, 2 * sets->half * sizeof *sets->bits);
	sets->derived[0] = (struct sets_derived){{0}};
	sets->marks[0] = 0;
	return 0;
}

static uint64_t *scratch(struct sets *sets)
{
	uint64_t *bits = sets->bits + (size_t)sets->count * 2 * sets->half;
	memset(bits, 0, 2 * sets->half * sizeof *bits);
	return bits;
}

static int grow_joins(struct sets *sets)
{
	uint64_t *old = sets->joins, *joins = arena_get_zeroed(sets->arena, (size_t)4 << sets->join_bits, sizeof *joins);
	size_t count = (size_t)1 << sets->join_bits;
	if (!joins)
		return -ENOMEM;
	sets->joins = joins;
	sets->join_bits += 2;
	for (size_t i = 0; i < count; i++)
		if (old[i])
			*sets_join_place(sets, (uint32_t)old[i]) = old[i];
	arena_put(sets->arena, old, count * sizeof *old);
	return 0;
}

static int grow(struct sets *sets)
{
	size_t width = 2 * sets->half;
	uint32_t room = sets->room < SETS_MOST / 2 ? 2 * sets->room : SETS_MOST;
	if (room == sets->room || room * width * sizeof(uint64_t) > BYTES_LIMIT)
		return -E2BIG;
	uint64_t *bits = arena_grow(sets->arena, sets->bits, bits_bytes(sets, sets->room), bits_bytes(sets, room));
	if (!bits)
		return -ENOMEM;
	sets->bits = bits;
	struct sets_derived *derived =
		arena_grow(sets->arena, sets->derived, sets->room * sizeof *derived, room * sizeof *derived);
	if (!derived)
		return -ENOMEM;
	sets->derived = derived;
	uint32_t *hashes = arena_grow(sets->arena, sets->hashes, sets->room * sizeof *hashes, room * sizeof *hashes);
	if (!hashes)
		return -ENOMEM;
	sets->hashes = hashes;
	uint8_t *marks = arena_grow(sets->arena, sets->marks, sets->room * sizeof *marks, room * sizeof *marks);
	if (!marks)
		return -ENOMEM;
	sets->marks = marks;
	sets->room = room;
	if (sets->join_bits < MOST_JOIN_BITS && grow_joins(sets))
		return -ENOMEM;
	set_id *places = arena_get_zeroed(sets->arena, 2 * sets->place_count, sizeof *places);
	if (!places)
		return -ENOMEM;
	arena_put(sets->arena, sets->places, sets->place_count * sizeof *places);
	sets->places = places;
	sets->place_count *= 2;
	for (uint32_t i = 1; i < sets->count; i++) {
		size_t at = sets->hashes[i] & (sets->place_count - 1);
		while (places[at])
			at = (at + 1) & (sets->place_count - 1);
		places[at] = (set_id)i;
	}
	return 0;
}

/* The set in the scratch, which is new, has a name now: that which belongs at `at`. */
static set_id name(struct sets *sets, uint32_t hashed, size_t at)
{
	set_id id = (set_id)sets->count;
	sets->places[at] = id;
	sets->hashes[id] = hashed;
	memset(&sets->derived[id], 0xff, sizeof sets->derived[id]);
	sets->derived[id].of[SETS_ITSELF] = id;
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

/* The name of the set in the scratch, which is not empty. */
static set_id keep(struct sets *sets)
{
	size_t width = 2 * sets->half;
	const uint64_t *bits = sets_bits(sets, (set_id)sets->count);
	uint32_t hashed = hash(sets, bits);
	size_t at = hashed & (sets->place_count - 1);
	for (; sets->places[at]; at = (at + 1) & (sets->place_count - 1))
		if (sets->hashes[sets->places[at]] == hashed &&
		    !memcmp(sets_bits(sets, sets->places[at]), bits, width * sizeof *bits))
			return sets->places[at];
	return name(sets, hashed, at);
}

set_id sets_range(struct sets *sets, size_t first, size_t end)
{
	uint64_t *bits = scratch(sets);
	for (size_t i = first; i < end && i < sets->half * 64; i++)
		bits[i / 64] |= (uint64_t)1 << i % 64;
	return first < end && first < sets->half * 64 ? keep(sets) : 0;
}

set_id sets_one(struct sets *sets, size_t member)
{
	return sets_range(sets, member, member + 1);
}

enum beyond { BEYOND_X = 1, BEYOND_Y = 2 };

static inline bool is_zero(__m128i words)
{
	return _mm_movemask_epi8(_mm_cmpeq_epi8(words, _mm_setzero_si128())) == 0xffff;
}

/* What is in either. Is it more than what is in x, or in y: enum beyond. */
static unsigned unite_narrow(uint64_t *bits, const uint64_t *x, const uint64_t *y, size_t count)
{
	__m128i beyond_x = _mm_setzero_si128(), beyond_y = beyond_x;
	for (size_t i = 0; i < count; i += 2) {
		__m128i of_x = two(x + i), of_y = two(y + i);
		_mm_storeu_si128((__m128i *)(void *)(bits + i), _mm_or_si128(of_x, of_y));
		beyond_x = _mm_or_si128(beyond_x, _mm_andnot_si128(of_x, of_y));
		beyond_y = _mm_or_si128(beyond_y, _mm_andnot_si128(of_y, of_x));
	}
	return (is_zero(beyond_x) ? 0 : BEYOND_X) | (is_zero(beyond_y) ? 0u : BEYOND_Y);
}

WIDE static unsigned unite_wide(uint64_t *bits, const uint64_t *x, const uint64_t *y, size_t count)
{
	__m512i beyond_x = _mm512_setzero_si512(), beyond_y = beyond_x;
	for (size_t i = 0; i < count; i += 8) {
		__mmask8 there = (__mmask8)eight_at(i, count);
		__m512i of_x = _mm512_maskz_loadu_epi64(there, x + i), of_y = _mm512_maskz_loadu_epi64(there, y + i);
		_mm512_mask_storeu_epi64(bits + i, there, _mm512_or_si512(of_x, of_y));
		beyond_x = _mm512_or_si512(beyond_x, _mm512_andnot_si512(of_x, of_y));
		beyond_y = _mm512_or_si512(beyond_y, _mm512_andnot_si512(of_y, of_x));
	}
	return (_mm512_test_epi64_mask(beyond_x, beyond_x) ? BEYOND_X : 0) |
	       (_mm512_test_epi64_mask(beyond_y, beyond_y) ? BEYOND_Y : 0u);
}

/* What two sets are together, that fit into one register each. */
WIDE static set_id join_eight(struct sets *sets, set_id a, set_id b)
{
	size_t width = 2 * sets->half;
	__mmask8 there = (__mmask8)eight_at(0, width);
	__m512i x = _mm512_maskz_loadu_epi64(there, sets_bits(sets, a)),
		y = _mm512_maskz_loadu_epi64(there, sets_bits(sets, b)), both = _mm512_or_si512(x, y);
	if (!_mm512_cmpneq_epi64_mask(both, x))
		return a;
	if (!_mm512_cmpneq_epi64_mask(both, y))
		return b;
	uint32_t hashed = finish(hash_eight(both, _mm512_loadu_si512(keys)));
	size_t at = hashed & (sets->place_count - 1);
	for (; sets->places[at]; at = (at + 1) & (sets->place_count - 1)) {
		set_id id = sets->places[at];
		if (sets->hashes[id] == hashed &&
		    !_mm512_cmpneq_epi64_mask(_mm512_maskz_loadu_epi64(there, sets_bits(sets, id)), both))
			return id;
	}
	_mm512_mask_storeu_epi64(sets->bits + (size_t)sets->count * width, there, both);
	return name(sets, hashed, at);
}

static set_id join_many(struct sets *sets, set_id a, set_id b)
{
	size_t width = 2 * sets->half;
	uint64_t *bits = sets->bits + (size_t)sets->count * width;
	const uint64_t *x = sets_bits(sets, a), *y = sets_bits(sets, b);
	unsigned beyond = sets->wide ? unite_wide(bits, x, y, width) : unite_narrow(bits, x, y, width);
	/* Mostly one of them is all of it. */
	return !(beyond & BEYOND_X) ? a : !(beyond & BEYOND_Y) ? b : keep(sets);
}

set_id sets_join_anew(struct sets *sets, set_id a, set_id b)
{
	set_id result = sets->wide && sets->half <= 4 ? join_eight(sets, a, b) : join_many(sets, a, b);
	uint32_t pair = (uint32_t)a << 16 | b;
	*sets_join_place(sets, pair) = (uint64_t)result << 32 | pair;
	return result;
}

set_id sets_turn(struct sets *sets, set_id set, enum sets_form form)
{
	if (!set || sets->derived[set].of[form] != SETS_NONE)
		return set ? sets->derived[set].of[form] : 0;
	uint64_t *bits = scratch(sets);
	const uint64_t *plain = sets_bits(sets, set), *scaled = plain + sets->half;
	for (size_t i = 0; i < sets->half; i++) {
		uint64_t either = plain[i] | scaled[i];
		bits[i] = form == SETS_SCALED ? 0 : form == SETS_PLAIN ? either : scaled[i];
		bits[sets->half + i] = form == SETS_SCALED ? either : form == SETS_PLAIN ? 0 : plain[i];
	}
	set_id result = keep(sets);
	return sets->derived[set].of[form] = result;
}
