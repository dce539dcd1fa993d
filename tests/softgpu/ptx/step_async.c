/*
 * mbarrier objects and bulk copies. An object is 64 bits of shared memory: how many arrivals a phase expects, how many
 * are pending, the bytes that are still to come, and the phase's parity. The ISA leaves its layout open, so it is ours:
 *
 *     | 1 | parity | bytes + 2^21 (22 bits) | pending (20) | expected (20) |
 *
 * The blocks of a cluster run on one host thread, so nothing here needs to be atomic. Copies are made at once, and so
 * complete before anyone can wait.
 */
#include "tests/softgpu/ptx/machine.h"
#include "tests/softgpu/ptx/reach.h"
#include "tests/softgpu/ptx/steps.h"

#define COUNT_LIMIT ((1u << 20) - 1)
#define BYTES_BIAS (1 << 21)

struct mbarrier {
	uint32_t expected, pending;
	int32_t bytes;
	bool parity;
};

static uint64_t pack(const struct mbarrier *barrier)
{
	return UINT64_C(1) << 63 | (uint64_t)barrier->parity << 62 |
	       (uint64_t)(uint32_t)(barrier->bytes + BYTES_BIAS) << 40 | (uint64_t)barrier->pending << 20 |
	       barrier->expected;
}

static bool unpack(uint64_t bits, struct mbarrier *ret_barrier)
{
	*ret_barrier = (struct mbarrier){(uint32_t)bits & COUNT_LIMIT, (uint32_t)(bits >> 20) & COUNT_LIMIT,
	                                 (int32_t)(bits >> 40 & ((1u << 22) - 1)) - BYTES_BIAS, bits >> 62 & 1};
	return bits >> 63;
}

static enum step wrong(struct warp *warp, const struct insn *insn, unsigned lane, const char *why)
{
	return ptx_fault(warp, insn, lane, PTX_FAULT_TRAP, 0, "an mbarrier %s", why);
}

/* The phase ends when all have arrived and all bytes have come. */
static void complete(struct mbarrier *barrier)
{
	if (barrier->pending == 0 && barrier->bytes == 0) {
		barrier->parity = !barrier->parity;
		barrier->pending = barrier->expected;
	}
}

static const char *add_bytes(struct mbarrier *barrier, int64_t bytes)
{
	bytes += barrier->bytes;
	if (bytes > (int64_t)COUNT_LIMIT || bytes < -(int64_t)COUNT_LIMIT)
		return "counts more bytes than it can";
	barrier->bytes = (int32_t)bytes;
	return NULL;
}

static const char *arrive(struct mbarrier *barrier, uint32_t count, bool drop, bool no_complete)
{
	if (count == 0 || count > barrier->pending)
		return count ? "gets more arrivals than it expects" : "gets an arrival of nobody";
	barrier->pending -= count;
	if (drop)
		barrier->expected -= count;
	if (no_complete && barrier->pending == 0 && barrier->bytes == 0)
		return "completes by an arrival that must not";
	complete(barrier);
	return NULL;
}

/*
 * op: enum mbarrier_op. b: a count, bytes, a state or a parity; c: bytes of an arrival. FLAG_CLAMP: drops, FLAG_NAN:
 * noComplete, FLAG_HIGH: parity.
 */
static const char *change(struct warp *warp, const struct insn *insn, unsigned lane, uint64_t *object)
{
	uint64_t b = insn->b == NO_OPERAND ? 1 : slot(warp, insn->b)[lane],
		 *d = insn->d == NO_OPERAND ? NULL : slot(warp, insn->d);
	struct mbarrier barrier, then;
	const char *why = NULL;

	if (insn->op == MBARRIER_INIT) {
		if (b == 0 || (uint32_t)b > COUNT_LIMIT)
			return "expects no arrival, or too many";
		barrier = (struct mbarrier){(uint32_t)b, (uint32_t)b, 0, false};
		*object = pack(&barrier);
		return NULL;
	}
	if (!unpack(*object, &barrier))
		return "was not initialised";
	switch (insn->op) {
	case MBARRIER_INVALIDATE:
		*object = 0;
		return NULL;
	case MBARRIER_EXPECT:
		why = add_bytes(&barrier, (uint32_t)b);
		break;
	case MBARRIER_COMPLETE:
		why = add_bytes(&barrier, -(int64_t)(uint32_t)b);
		complete(&barrier);
		break;
	case MBARRIER_ARRIVE:
		if (d)
			d[lane] = *object;
		if (insn->c != NO_OPERAND)
			why = add_bytes(&barrier, (uint32_t)slot(warp, insn->c)[lane]);
		if (!why)
			why = arrive(&barrier, (uint32_t)b, insn->flags & FLAG_CLAMP, insn->flags & FLAG_NAN);
		break;
	default:
		if (insn->flags & FLAG_HIGH)
			then.parity = b & 1;
		else if (!unpack(b, &then))
			return "is given a state of none";
		d[lane] = barrier.parity != then.parity;
		return NULL;
	}
	if (!why)
		*object = pack(&barrier);
	return why;
}

STEP(mbarrier)
{
	struct reach reach;
	bool waits = false;

	if (ptx_reach(warp, insn, mask, sizeof(uint64_t), true, &reach) == STEP_FAULT)
		return STEP_FAULT;
	for (uint32_t rest = mask; rest; rest &= rest - 1) {
		unsigned lane = (unsigned)__builtin_ctz(rest);

		if (reach.global >> lane & 1)
			return wrong(warp, insn, lane, "is not in shared memory");
		const char *why = change(warp, insn, lane, (uint64_t *)(uintptr_t)reach.at[lane]);
		if (why)
			return wrong(warp, insn, lane, why);
		waits = waits || (insn->op == MBARRIER_TRY_WAIT && !slot(warp, insn->d)[lane]);
	}
	if (!waits)
		return STEP_NEXT;
	settle(warp, warp->group, warp->pc);
	warp->rotate = true;
	return STEP_YIELD;
}

STEP(pending)
{
	uint64_t *d = slot(warp, insn->d);
	const uint64_t *a = slot(warp, insn->a);

	LANES(mask, d[i] = a[i] >> 20 & COUNT_LIMIT;);
	return STEP_NEXT;
}

static const char *bulk_lane(struct warp *warp, const struct insn *insn, unsigned lane, uint64_t *ret_address)
{
	const struct bulk_copy *copy = insn->extra;
	const struct block *block = warp->block;
	const struct ptx_memory *memory = block->memory;
	uint64_t to = slot(warp, insn->a)[lane] + insn->imm, from = slot(warp, copy->from)[lane] + copy->from_offset;
	size_t bytes = (uint32_t)slot(warp, insn->c)[lane];

	*ret_address = (to | bytes) % 16 ? to : from;
	if ((to | from | bytes) % 16)
		return "";
	*ret_address = from;
	const uint8_t *source = copy->from_shared ? ptx_shared_of(block, from, bytes)
	                        : !bytes || memory->check(memory->data, from, bytes, false)
	                                ? (const uint8_t *)(uintptr_t)from
	                                : NULL;
	if (!source)
		return "live memory";
	*ret_address = to;
	uint8_t *target = insn->space == SPACE_SHARED                              ? ptx_shared_of(block, to, bytes)
	                  : !bytes || memory->check(memory->data, to, bytes, true) ? (uint8_t *)(uintptr_t)to
	                                                                           : NULL;
	if (!target)
		return "writable memory";
	memmove(target, source, bytes);
	if (insn->space == SPACE_GLOBAL && bytes && memory->wrote)
		memory->wrote(memory->data, to, bytes);
	return NULL;
}

STEP(bulk)
{
	const struct bulk_copy *copy = insn->extra;

	for (uint32_t rest = mask; rest; rest &= rest - 1) {
		unsigned lane = (unsigned)__builtin_ctz(rest);
		uint64_t address;
		const char *where = bulk_lane(warp, insn, lane, &address);

		if (where && !*where)
			return ptx_fault(warp, insn, lane, PTX_FAULT_ALIGN, address,
			                 "a bulk copy's addresses and size are multiples of 16: 0x%llx, %u bytes",
			                 (unsigned long long)address, (unsigned)slot(warp, insn->c)[lane]);
		if (where)
			return ptx_fault(warp, insn, lane, PTX_FAULT_ADDRESS, address,
			                 "%u bytes at 0x%llx are outside %s", (unsigned)slot(warp, insn->c)[lane],
			                 (unsigned long long)address, where);
		if (copy->barrier == NO_OPERAND)
			continue;
		uint64_t *object = (uint64_t *)(uintptr_t)ptx_shared_of(
			warp->block, slot(warp, copy->barrier)[lane] + copy->barrier_offset, sizeof(*object));
		struct mbarrier barrier;
		if (!object || (uintptr_t)object % sizeof(*object) || !unpack(*object, &barrier))
			return wrong(warp, insn, lane, "was not initialised");
		const char *why = add_bytes(&barrier, -(int64_t)(uint32_t)slot(warp, insn->c)[lane]);
		if (why)
			return wrong(warp, insn, lane, why);
		complete(&barrier);
		*object = pack(&barrier);
	}
	return STEP_NEXT;
}

step_fn ptx_step_mbarrier(void)
{
	return mbarrier;
}

step_fn ptx_step_mbarrier_pending(void)
{
	return pending;
}

step_fn ptx_step_bulk_copy(void)
{
	return bulk;
}
