/*
 * Which registers can still matter, and which instructions. A register that nothing reads before it is written again, or that only goes into results of which
 * that is true, needs no set: it is not joined where paths meet, and a change of it runs no block again. Of a matrix product that leaves the addresses.
 * What the analysis says is the same with and without.
 */
#ifndef CUCONST_KERNELS_TAINT_LIVE_H
#define CUCONST_KERNELS_TAINT_LIVE_H

#include "shim/kernels/taint_effect.h"

struct taint_live {
	uint64_t bits[TAINT_REGISTERS / 64];
};

/* Registers that an instruction reads or writes, packed: see taint_range_first() and so on. */
typedef uint16_t taint_packed;
#define TAINT_RANGE_KILLS 0x8000u

/* An instruction that matters. */
struct taint_step {
	uint32_t insn;
	uint32_t ranges;  /* in taint_liveness.ranges: what it writes, then what it reads */
	uint32_t results; /* in taint_liveness.results: what it wrote when it ran last */
	uint32_t literal; /* the one it leaves in its result, if `is_literal` */
	uint8_t write_count : 4, read_count : 4;
	bool records : 1, records_only : 1; /* as in struct taint_effect; nothing else comes of it */
	bool acts : 1, again : 1, recalls : 1;
	bool is_literal : 1;
};

struct taint_liveness {
	struct taint_live *at; /* by place: at the entry of a block, where returns meet */
	struct taint_step *steps;
	uint32_t *first; /* by block, and one more: in steps */
	taint_packed *ranges;
	uint16_t *results;
};

static inline unsigned taint_range_first(taint_packed range)
{
	return range & (TAINT_REGISTERS - 1);
}
static inline unsigned taint_range_count(taint_packed range)
{
	return range >> 9 & 15;
}

static inline bool taint_live_any(const struct taint_live *live, taint_packed range)
{
	unsigned first = taint_range_first(range), count = taint_range_count(range), shift = first % 64;
	uint64_t bits = live->bits[first / 64] >> shift;
	if (shift + count > 64)
		bits |= live->bits[first / 64 + 1] << (64 - shift);
	return bits & (((uint64_t)1 << count) - 1);
}

static inline void taint_live_add(struct taint_live *live, taint_packed range)
{
	unsigned first = taint_range_first(range), count = taint_range_count(range), shift = first % 64;
	uint64_t bits = ((uint64_t)1 << count) - 1;
	live->bits[first / 64] |= bits << shift;
	if (shift + count > 64)
		live->bits[first / 64 + 1] |= bits >> (64 - shift);
}

/* 0 or -ENOMEM; to be freed in each case. */
int taint_live_find(const struct program *program, struct taint_liveness *ret_liveness);
void taint_live_free(struct taint_liveness *liveness);

#endif
