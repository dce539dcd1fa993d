/*
 * Sets of small integers, each kept once and named by a number, so that equal sets have equal names, a state of 500 registers is 1 KB, and joining two sets
 * is mostly one look into a table. Used for what a register may be made from, and for the barriers a warp may wait at.
 */
#ifndef CUCONST_KERNELS_SETS_H
#define CUCONST_KERNELS_SETS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shim/kernels/arena.h"

typedef uint16_t set_id; /* 0: the empty set */

#define SETS_NONE UINT16_MAX

#define SETS_FORMS 8

/*
 * What is made of a set, by enum sets_form, and from SETS_OWN on by the user's own; SETS_NONE: not worked out yet. Of the empty set it is the empty set.
 */
struct sets_derived {
	set_id of[SETS_FORMS];
};

struct sets {
	struct arena *arena; /* of all of this */
	size_t half;         /* 64-bit words of one half; a set has two halves, plain and scaled */
	uint32_t count, room;
	uint64_t *bits;               /* count times 2 * half */
	struct sets_derived *derived; /* by set */
	uint32_t *hashes;             /* by set: of its bits */
	set_id *places;               /* open addressing, 0: free */
	size_t place_count;
	uint8_t *marks;     /* by set: the user's, 0 at first */
	uint64_t *joins;    /* of two sets, direct-mapped, may forget: those two in the lower half, the result above */
	unsigned join_bits; /* their number is 1 << join_bits */
	bool wide;          /* gone through by wide registers (wide.h) */
	int error;          /* 0, -ENOMEM, or -E2BIG past the limit: all answers since are meaningless */
};

/*
 * `universe`: members are 0..universe-1, each also in a scaled form. `many`: some hundred sets are to come, for which there is room at once. They are gone
 * with what the arena holds. 0 or -ENOMEM.
 */
int sets_init(struct sets *sets, struct arena *arena, size_t universe, bool many);

set_id sets_one(struct sets *sets, size_t member);
/* All of [first, end). */
set_id sets_range(struct sets *sets, size_t first, size_t end);
/* As below, where it is not known. */
set_id sets_join_anew(struct sets *sets, set_id a, set_id b);
static inline uint64_t *sets_join_place(const struct sets *sets, uint32_t pair)
{
	return &sets->joins[pair * 0x9e3779b1u >> (32 - sets->join_bits)];
}
static inline set_id sets_join_two(struct sets *sets, set_id a, set_id b)
{
	uint32_t pair = (uint32_t)a << 16 | b;
	uint64_t known = *sets_join_place(sets, pair);
	return (uint32_t)known == pair ? (set_id)(known >> 32) : sets_join_anew(sets, a, b);
}
static inline set_id sets_join(struct sets *sets, set_id a, set_id b)
{
	if (a == b || !b)
		return a;
	return a ? sets_join_two(sets, a, b) : b;
}
enum sets_form {
	SETS_ITSELF,
	SETS_SCALED, /* every member in its scaled form */
	SETS_PLAIN,  /* ... in its plain form */
	SETS_AGAIN,  /* what was plain becomes scaled, what was scaled becomes plain */
	SETS_OWN,    /* the first of the user's */
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
