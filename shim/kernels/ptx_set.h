/*
 * Sets of taints, each kept once: a set is a number, equal sets have equal numbers, 0 is the empty set.
 *
 * An element is an even number; the odd number behind it is the same taint after an operation that no plain address goes through (a product,
 * a shift to the left, a difference): it still counts as reaching a store, but it is no base by itself.
 */
#ifndef CUCONST_KERNELS_PTX_SET_H
#define CUCONST_KERNELS_PTX_SET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ptxa_set {
	uint32_t count;
	uint32_t hash;
	uint32_t weak, strong;    /* the same elements, all odd, all even; UINT32_MAX: not asked for yet */
	const uint32_t *elements; /* ascending */
};

struct ptxa_join {
	uint32_t left, right, result;
};

struct ptxa_sets {
	struct ptxa_set *sets;
	uint32_t count, room;
	uint32_t *table; /* open addressing: number + 1 */
	uint32_t table_room;
	struct ptxa_join *joins; /* a cache of unions, direct mapped */
	uint32_t *scratch;
	size_t scratch_room;
	size_t elements; /* in all sets */
	uint64_t work;   /* elements looked at */
	int error;       /* -ENOMEM, or -E2BIG past the limits: from then on answers mean nothing */
};

/* 0 or -ENOMEM; end it in both cases. */
int ptxa_sets_start(struct ptxa_sets *sets);
void ptxa_sets_end(struct ptxa_sets *sets);

uint32_t ptxa_set_one(struct ptxa_sets *sets, uint32_t element);
/* `count` elements from `first` on, each so much above the one before. */
uint32_t ptxa_set_row(struct ptxa_sets *sets, uint32_t first, uint32_t count, uint32_t step);
uint32_t ptxa_set_join(struct ptxa_sets *sets, uint32_t left, uint32_t right);
uint32_t ptxa_set_weak(struct ptxa_sets *sets, uint32_t set);
uint32_t ptxa_set_strong(struct ptxa_sets *sets, uint32_t set);
bool ptxa_set_has(const struct ptxa_sets *sets, uint32_t set, uint32_t element);

#endif
