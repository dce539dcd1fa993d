/*
 * Which words of a parameter may lie in allocations with protected ranges: most are numbers, or addresses of other memory, and a parameter may have thousands of them.
 * Thread-safe.
 */
#ifndef CUCONST_VERDICT_WORDS_H
#define CUCONST_VERDICT_WORDS_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "shim/hook_state.h"
#include "shim/verdict/granules.h"

#define WORDS_WORD sizeof(uint64_t)
#define WORDS_EIGHT ((size_t)8)
#define WORDS_BLOCK ((size_t)64)

typedef uint32_t words_halves __attribute__((vector_size(16)));
typedef int32_t words_signed __attribute__((vector_size(16)));

/*
 * Does none of eight words lie in [low, low + bytes), by their upper halves alone? The lower halves are compared as well, to nothing: so two words take
 * one comparison, which has to be of signed numbers.
 */
static inline bool words_are_elsewhere(const char *words, uint64_t low, uint64_t bytes)
{
	const uint32_t first = (uint32_t)(low >> 32), span = (uint32_t)((low + bytes - 1) >> 32) - first;
	const uint32_t shift = first + (UINT32_C(1) << 31);
	const int32_t limit = (int32_t)(span - (UINT32_C(1) << 31));
	const words_halves shifts = {shift, shift, shift, shift};
	const words_signed limits = {limit, limit, limit, limit};
	words_signed elsewhere = {-1, -1, -1, -1};
	for (size_t i = 0; i < WORDS_EIGHT * WORDS_WORD; i += sizeof(words_halves)) {
		words_halves two;
		memcpy(&two, words + i, sizeof two);
		elsewhere &= (words_signed)(two - shifts) > limits;
	}
	uint64_t pair[2];
	memcpy(pair, &elsewhere, sizeof pair);
	return (pair[0] & pair[1]) >> 32 == UINT32_MAX;
}

struct words_bounds {
	uint64_t low, bytes; /* of all allocations with ranges */
	const struct granules *granules;
};

/* At this moment. No granules: nothing was ever protected. */
static inline struct words_bounds words_bounds(void)
{
	uint64_t low = atomic_load_explicit(&hook_line.low, memory_order_relaxed);
	return (struct words_bounds){low, atomic_load_explicit(&hook_line.high, memory_order_relaxed) - low,
	                             granules_all()};
}

/* May this word lie in one of them? Both questions without a jump between them: what a launch's words are is hard to foretell. */
static inline bool words_hit(const struct words_bounds *bounds, uint64_t value)
{
	return (value - bounds->low < bounds->bytes) & granules_hold(bounds->granules, value);
}

/* Which of eight words may be hit, a bit for each: the bounds are not asked. */
static inline uint64_t words_held_of_eight(const struct words_bounds *bounds, const char *words)
{
	uint64_t held = 0;
#pragma GCC unroll 8
	for (size_t i = 0; i < WORDS_EIGHT; i++) {
		uint64_t value;
		memcpy(&value, words + i * WORDS_WORD, sizeof value);
		held |= (uint64_t)granules_hold(bounds->granules, value) << i;
	}
	return held;
}

/*
 * The same of a block of words, from 8 on. First all are asked by their upper halves, then eight by eight those that may be near: jumps for each eight would often be foretold wrong.
 * The last eight may have some of those before, whose bits are the same.
 */
static inline uint64_t words_held(const struct words_bounds *bounds, const char *words, size_t count)
{
	const size_t last = count - WORDS_EIGHT;
	uint64_t near = 0, held = 0;
	for (size_t first = 0, nth = 0; first < count; first += WORDS_EIGHT, nth++) {
		const char *eight = words + (first < last ? first : last) * WORDS_WORD;
		near |= (uint64_t)!words_are_elsewhere(eight, bounds->low, bounds->bytes) << nth;
	}
	for (; near; near &= near - 1) {
		size_t first = WORDS_EIGHT * (size_t)__builtin_ctzll(near);
		first = first < last ? first : last;
		held |= words_held_of_eight(bounds, words + first * WORDS_WORD) << first;
	}
	return held;
}

/* Calls take(context, value, nth) for each of `count` words that is hit, in order, until it answers false: then so does this. They need no alignment. */
static inline __attribute__((always_inline)) bool words_each(const struct words_bounds *bounds, const char *words,
                                                             size_t count,
                                                             bool (*take)(void *context, uint64_t value, size_t nth),
                                                             void *context)
{
	uint64_t value;
	for (size_t nth = 0; nth < count; nth += WORDS_BLOCK) {
		const char *block = words + nth * WORDS_WORD;
		size_t left = count - nth < WORDS_BLOCK ? count - nth : WORDS_BLOCK;
		uint64_t hits = 0;
		if (left >= WORDS_EIGHT) {
			hits = words_held(bounds, block, left);
		} else {
			for (size_t i = 0; i < left; i++) {
				memcpy(&value, block + i * WORDS_WORD, sizeof value);
				hits |= (uint64_t)words_hit(bounds, value) << i;
			}
		}
		for (; hits; hits &= hits - 1) {
			size_t at = (size_t)__builtin_ctzll(hits);
			memcpy(&value, block + at * WORDS_WORD, sizeof value);
			if (words_hit(bounds, value) && !take(context, value, nth + at))
				return false;
		}
	}
	return true;
}

#endif
