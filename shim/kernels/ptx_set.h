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

struct ptx_set {
	uint32_t count;
	uint32_t hash;
	uint32_t weak, strong; /* the same elements, all odd, all even; UINT32_MAX: not asked for yet */
	const uint32_t *elements; /* ascending */
};

struct ptx_join {
	uint32_t left, right, result;
};

struct ptx_sets {
	struct ptx_set *sets;
	uint32_t count, room;
	uint32_t *table; /* open addressing: number + 1 */
	uint32_t table_room;
	struct ptx_join *joins; /* a cache of unions, direct mapped */
	uint32_t *scratch;
	size_t scratch_room;
	size_t elements; /* in all sets */
	uint64_t work;   /* elements looked at */
	int error; /* -ENOMEM, or -E2BIG past the limits: from then on answers mean nothing */
};

/* 0 or -ENOMEM; end it in both cases. */
int ptx_sets_start(struct ptx_sets *sets);
void ptx_sets_end(struct ptx_sets *sets);

uint32_t ptx_set_one(struct ptx_sets *sets, uint32_t element);
uint32_t ptx_set_join(struct ptx_sets *sets, uint32_t left, uint32_t right);
uint32_t ptx_set_weak(struct ptx_sets *sets, uint32_t set);
uint32_t ptx_set_strong(struct ptx_sets *sets, uint32_t set);
bool ptx_set_has(const struct ptx_sets *sets, uint32_t set, uint32_t element);

#endif
