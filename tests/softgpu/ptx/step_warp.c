/*
 * Instructions between the lanes of a warp. The .sync forms wait until every live lane of the member mask has
 * arrived.
 */
#include "tests/softgpu/ptx/machine.h"
#include "tests/softgpu/ptx/steps.h"

bool ptx_gathered(struct warp *warp, const struct insn *insn, uint32_t mask)
{
	if (insn->m == NO_OPERAND)
		return true;
	const uint64_t *members = slot(warp, insn->m);
	uint32_t wanted = 0;

	for (uint32_t rest = mask; rest; rest &= rest - 1)
		wanted |= (uint32_t)members[__builtin_ctz(rest)];
	if (!(wanted & warp->live & ~mask))
		return true;
	settle(warp, warp->group & ~mask, warp->pc);
	settle(warp, mask, warp->pc - 1);
	for (uint32_t rest = mask; rest; rest &= rest - 1)
		warp->sync_mask[__builtin_ctz(rest)] = (uint32_t)members[__builtin_ctz(rest)];
	warp->at_sync |= mask;
	return false;
}

#define GATHER()                                                                                                       \
	do {                                                                                                           \
		if (!ptx_gathered(warp, insn, mask))                                                                   \
			return STEP_TURN;                                                                              \
	} while (0)

STEP(sync)
{
	GATHER();
	return STEP_NEXT;
}

#define SHUFFLE(name, source, in_segment)                                                                              \
	STEP(name)                                                                                                     \
	{                                                                                                              \
		GATHER();                                                                                              \
		uint64_t *d = slot(warp, insn->d), *e = insn->e == NO_OPERAND ? NULL : slot(warp, insn->e),            \
			 from[WARP_LANES];                                                                             \
		const uint64_t *b = slot(warp, insn->b), *c = slot(warp, insn->c);                                     \
		memcpy(from, slot(warp, insn->a), sizeof(from));                                                       \
		for (uint32_t rest = mask; rest; rest &= rest - 1) {                                                   \
			int lane = __builtin_ctz(rest), by = (int)(b[lane] & 31), clamp = (int)(c[lane] & 31),         \
			    segment = (int)(c[lane] >> 8 & 31);                                                        \
			int last = (lane & segment) | (clamp & ~segment), first = lane & segment, pick = (source);     \
			bool inside = (in_segment);                                                                    \
			(void)first;                                                                                   \
			(void)last;                                                                                    \
			d[lane] = from[inside ? pick : lane];                                                          \
			if (e)                                                                                         \
				e[lane] = inside;                                                                      \
		}                                                                                                      \
		return STEP_NEXT;                                                                                      \
	}

/* For .up the clamp is the lowest lane of the segment. */
SHUFFLE(shfl_up, lane - by, pick >= last)
SHUFFLE(shfl_down, lane + by, pick <= last)
SHUFFLE(shfl_bfly, lane ^ by, pick <= last)
SHUFFLE(shfl_idx, first | (by & ~segment), pick <= last)

static uint32_t ballot(const struct warp *warp, uint32_t operand, uint32_t mask)
{
	const uint64_t *a = slot(warp, operand);
	uint32_t votes = 0;

	for (uint32_t rest = mask; rest; rest &= rest - 1)
		votes |= (uint32_t)(a[__builtin_ctz(rest)] != 0) << __builtin_ctz(rest);
	return votes;
}

#define VOTE(name, result)                                                                                             \
	STEP(name)                                                                                                     \
	{                                                                                                              \
		GATHER();                                                                                              \
		uint32_t votes = ballot(warp, insn->a, mask);                                                          \
		uint64_t *d = slot(warp, insn->d), value = (result);                                                   \
		LANES(mask, d[i] = value;);                                                                            \
		return STEP_NEXT;                                                                                      \
	}

VOTE(vote_all, votes == mask)
VOTE(vote_any, votes != 0)
VOTE(vote_uni, votes == mask || votes == 0)
VOTE(vote_ballot, votes)

static uint32_t equal_lanes(const uint64_t *values, uint64_t value, uint32_t mask)
{
	uint32_t equal = 0;

	for (uint32_t rest = mask; rest; rest &= rest - 1)
		equal |= (uint32_t)(values[__builtin_ctz(rest)] == value) << __builtin_ctz(rest);
	return equal;
}

STEP(match_any)
{
	GATHER();
	uint64_t *d = slot(warp, insn->d), from[WARP_LANES];

	memcpy(from, slot(warp, insn->a), sizeof(from));
	LANES(mask, d[i] = equal_lanes(from, from[i], mask););
	return STEP_NEXT;
}

STEP(match_all)
{
	GATHER();
	const uint64_t *a = slot(warp, insn->a);
	uint64_t *d = slot(warp, insn->d), *e = insn->e == NO_OPERAND ? NULL : slot(warp, insn->e);
	bool all = equal_lanes(a, a[__builtin_ctz(mask)], mask) == mask;

	for (uint32_t rest = mask; rest; rest &= rest - 1) {
		d[__builtin_ctz(rest)] = all ? mask : 0;
		if (e)
			e[__builtin_ctz(rest)] = all;
	}
	return STEP_NEXT;
}

static uint32_t reduce(enum atom_op op, bool is_signed, uint32_t x, uint32_t y)
{
	switch (op) {
	case ATOM_ADD:
		return x + y;
	case ATOM_AND:
		return x & y;
	case ATOM_OR:
		return x | y;
	case ATOM_XOR:
		return x ^ y;
	case ATOM_MIN:
		return (is_signed ? (int32_t)x < (int32_t)y : x < y) ? x : y;
	default:
		return (is_signed ? (int32_t)x > (int32_t)y : x > y) ? x : y;
	}
}

STEP(redux)
{
	GATHER();
	uint64_t *d = slot(warp, insn->d);
	const uint64_t *a = slot(warp, insn->a);
	uint32_t value = (uint32_t)a[__builtin_ctz(mask)];

	for (uint32_t rest = mask & (mask - 1); rest; rest &= rest - 1)
		value = reduce(insn->op, insn->type == TY_S32, value, (uint32_t)a[__builtin_ctz(rest)]);
	LANES(mask, d[i] = value;);
	return STEP_NEXT;
}

STEP(elect)
{
	GATHER();
	uint64_t *d = insn->d == NO_OPERAND ? NULL : slot(warp, insn->d), *e = slot(warp, insn->e);
	unsigned leader = (unsigned)__builtin_ctz(mask);

	for (uint32_t rest = mask; rest; rest &= rest - 1) {
		unsigned lane = (unsigned)__builtin_ctz(rest);

		if (d)
			d[lane] = leader;
		e[lane] = lane == leader;
	}
	return STEP_NEXT;
}

STEP(activemask)
{
	uint64_t *d = slot(warp, insn->d);

	LANES(mask, d[i] = mask;);
	return STEP_NEXT;
}

step_fn ptx_step_warp(enum warp_op op)
{
	static const step_fn steps[WARP_COUNT] = {
		[WARP_SYNC] = sync,           [WARP_SHFL_UP] = shfl_up,       [WARP_SHFL_DOWN] = shfl_down,
		[WARP_SHFL_BFLY] = shfl_bfly, [WARP_SHFL_IDX] = shfl_idx,     [WARP_VOTE_ALL] = vote_all,
		[WARP_VOTE_ANY] = vote_any,   [WARP_VOTE_UNI] = vote_uni,     [WARP_BALLOT] = vote_ballot,
		[WARP_MATCH_ANY] = match_any, [WARP_MATCH_ALL] = match_all,   [WARP_REDUX] = redux,
		[WARP_ELECT] = elect,         [WARP_ACTIVEMASK] = activemask,
	};

	return steps[op];
}
