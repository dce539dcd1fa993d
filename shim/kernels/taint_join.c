#include <immintrin.h>

#include "shim/kernels/taint.h"
#include "shim/kernels/wide.h"

/*
 * Registers of a state that flow into another one, a row of 64 after the other: by what each machine that runs x86-64 has, or 32 at a time where there is AVX-512.
 * Both come to the same; the test `rows` holds them to it.
 */

static inline __m128i eight(const set_id *sets)
{
	return _mm_loadu_si128((const __m128i *)(const void *)sets);
}

/* A bit for each register that differs between two rows. */
static inline uint64_t find_differing(const set_id *a, const set_id *b)
{
	uint64_t differing = 0;
	for (unsigned i = 0; i < 64; i += 16) {
		__m128i low = _mm_cmpeq_epi16(eight(a + i), eight(b + i)),
			high = _mm_cmpeq_epi16(eight(a + i + 8), eight(b + i + 8));
		differing |= (uint64_t)(uint16_t)~_mm_movemask_epi8(_mm_packs_epi16(low, high)) << i;
	}
	return differing;
}

/* Of eight registers those that are wanted grow as they did last, where they do. A bit for each that does not. */
static inline unsigned grow_eight(const struct taint_growth *growth, unsigned first, set_id *into, const set_id *from,
                                  unsigned wanted)
{
	__m128i bits = _mm_set_epi16(128, 64, 32, 16, 8, 4, 2, 1), before = eight(into), after = eight(from),
		chosen = _mm_cmpeq_epi16(_mm_and_si128(_mm_set1_epi16((short)wanted), bits), bits),
		alike = _mm_and_si128(_mm_cmpeq_epi16(before, eight(growth->before + first)),
	                              _mm_cmpeq_epi16(after, eight(growth->after + first)));
	chosen = _mm_and_si128(chosen, alike);
	before = _mm_or_si128(_mm_andnot_si128(chosen, before), _mm_and_si128(chosen, after));
	_mm_storeu_si128((__m128i *)(void *)into, before);
	return wanted & ~(unsigned)_mm_movemask_epi8(_mm_packs_epi16(chosen, _mm_setzero_si128()));
}

/* Registers of a row, the first of which is `first`, one by one. Which are what they were? (Not inline: seldom come by, it would take the registers of the loop.) */
static __attribute__((noinline)) uint64_t join_one_by_one(struct taint *t, unsigned first, set_id *into,
                                                          const set_id *from, uint64_t registers)
{
	uint64_t unchanged = 0;
	for (; registers; registers &= registers - 1) {
		unsigned at = (unsigned)__builtin_ctzll(registers);
		set_id before = into[at], after = from[at], joined = sets_join(&t->sets, before, after);
		into[at] = joined;
		if (joined == after) {
			t->growth.before[first + at] = before;
			t->growth.after[first + at] = after;
		}
		unchanged |= (uint64_t)(joined == before) << at;
	}
	return unchanged;
}

/* From one row of registers, the first of which is `first`, into another: those that are wanted. Which have changed? */
static inline uint64_t join_row(struct taint *t, unsigned first, set_id *into, const set_id *from, uint64_t wanted)
{
	uint64_t changed = find_differing(into, from) & wanted, others = 0;
	for (uint64_t bits = changed; bits;) {
		unsigned at = (unsigned)__builtin_ctzll(bits) & ~7u;
		others |= (uint64_t)grow_eight(&t->growth, first + at, into + at, from + at, bits >> at & 0xff) << at;
		bits &= ~((uint64_t)0xff << at);
	}
	return others ? changed & ~join_one_by_one(t, first, into, from, others) : changed;
}

bool taint_join_narrow(struct taint *t, uint32_t place, const struct taint_live *chosen)
{
	struct taint_entry *entry = &t->entries[place];
	const struct taint_live *live = &t->live.at[place];
	uint64_t any = 0;
	for (unsigned i = 0; i < t->row_count; i++) {
		unsigned row = t->rows[i];
		uint64_t wanted = live->bits[row] & chosen->bits[row];
		if (!wanted)
			continue;
		uint64_t changed = join_row(t, row * 64, entry->sets + (size_t)i * 64, t->source.rows[i], wanted);
		entry->changed.bits[row] |= changed;
		any |= changed;
	}
	return any != 0;
}

WIDE static inline uint64_t join_row_wide(struct taint *t, unsigned first, set_id *into, const set_id *from,
                                          uint64_t wanted)
{
	const set_id *before = t->growth.before + first, *after = t->growth.after + first;
	__m512i into_low = _mm512_loadu_si512(into), into_high = _mm512_loadu_si512(into + 32),
		from_low = _mm512_loadu_si512(from), from_high = _mm512_loadu_si512(from + 32);
	__mmask32 low = _mm512_mask_cmpneq_epi16_mask((__mmask32)wanted, into_low, from_low),
		  high = _mm512_mask_cmpneq_epi16_mask((__mmask32)(wanted >> 32), into_high, from_high);
	uint64_t changed = low | (uint64_t)high << 32;
	if (!changed)
		return 0;
	/* Those that grow as they did last take what comes. */
	low = _mm512_mask_cmpeq_epi16_mask(low, into_low, _mm512_loadu_si512(before));
	high = _mm512_mask_cmpeq_epi16_mask(high, into_high, _mm512_loadu_si512(before + 32));
	low = _mm512_mask_cmpeq_epi16_mask(low, from_low, _mm512_loadu_si512(after));
	high = _mm512_mask_cmpeq_epi16_mask(high, from_high, _mm512_loadu_si512(after + 32));
	_mm512_storeu_si512(into, _mm512_mask_mov_epi16(into_low, low, from_low));
	_mm512_storeu_si512(into + 32, _mm512_mask_mov_epi16(into_high, high, from_high));
	uint64_t others = changed & ~(low | (uint64_t)high << 32);
	return others ? changed & ~join_one_by_one(t, first, into, from, others) : changed;
}

WIDE bool taint_join_wide(struct taint *t, uint32_t place, const struct taint_live *chosen)
{
	struct taint_entry *entry = &t->entries[place];
	const struct taint_live *live = &t->live.at[place];
	const uint8_t *rows = t->rows;
	set_id *sets = entry->sets;
	uint64_t any = 0;
	unsigned count = t->row_count;
	for (unsigned i = 0; i < count; i++, sets += 64) {
		unsigned row = rows[i];
		uint64_t wanted = live->bits[row] & chosen->bits[row];
		if (!wanted)
			continue;
		uint64_t changed = join_row_wide(t, row * 64, sets, t->source.rows[i], wanted);
		entry->changed.bits[row] |= changed;
		any |= changed;
	}
	return any != 0;
}
