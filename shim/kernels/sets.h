/*
 * Sets of small integers, each kept once and named by a number, so that equal sets have equal names, a state of 500 registers is 1 KB, and joining two sets
 * is mostly one look into a table. Used for what a register may be made from, and for the barriers a warp may wait at.
 */
#ifndef CUCONST_KERNELS_SETS_H
#define CUCONST_KERNELS_SETS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef uint16_t set_id; /* 0: the empty set */

#define SETS_NONE UINT16_MAX

struct sets_join {
	set_id a, b, result;
};

struct sets {
	size_t half; /* 64-bit words of one half; a set has two halves, plain and scaled */
	uint32_t count, room;
	uint64_t *bits;     /* count times 2 * half */
	set_id *derived[3]; /* by enum sets_form and set, SETS_NONE: not worked out yet */
	set_id *places;     /* open addressing, 0: free */
	size_t place_count;
	uint8_t *marks;          /* by set: the user's, 0 at first */
	struct sets_join *joins; /* direct-mapped, may forget */
	uint32_t join_count;
	int error; /* 0, -ENOMEM, or -E2BIG past the limit: all answers since are meaningless */
};

/* `universe`: members are 0..universe-1, each also in a scaled form. 0 or -ENOMEM. */
int sets_init(struct sets *sets, size_t universe);
void sets_free(struct sets *sets);

set_id sets_one(struct sets *sets, size_t member);
/* All of [first, end). */
set_id sets_range(struct sets *sets, size_t first, size_t end);
/* Of two that are not empty, in order. */
set_id sets_join_two(struct sets *sets, set_id a, set_id b);
static inline struct sets_join *sets_known_join(const struct sets *sets, set_id a, set_id b)
{
	return &sets->joins[(a * 0x9e3779b1u ^ b * 0x85ebca6bu) >> 16 & (sets->join_count - 1)];
}
static inline set_id sets_join(struct sets *sets, set_id a, set_id b)
{
	if (a == b || !b)
		return a;
	if (!a)
		return b;
	set_id low = a < b ? a : b, high = a < b ? b : a;
	const struct sets_join *known = sets_known_join(sets, low, high);
	return known->a == low && known->b == high ? known->result : sets_join_two(sets, low, high);
}
enum sets_form {
	SETS_SCALED, /* every member in its scaled form */
	SETS_PLAIN,  /* ... in its plain form */
	SETS_AGAIN,  /* what was plain becomes scaled, what was scaled becomes plain */
};
set_id sets_turn(struct sets *sets, set_id set, enum sets_form form);

/* The plain half of a set, then the scaled one: `half` words each. Valid until the next set is made. */
static inline const uint64_t *sets_bits(const struct sets *sets, set_id set)
{
	return sets->bits + (size_t)set * 2 * sets->half;
}
static inline bool sets_has(const struct sets *sets, set_id set, size_t member)
{
	return sets_bits(sets, set)[member / 64] >> member % 64 & 1;
}
static inline bool sets_has_scaled(const struct sets *sets, set_id set, size_t member)
{
	return sets_bits(sets, set)[sets->half + member / 64] >> member % 64 & 1;
}

#endif
