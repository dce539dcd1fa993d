/* Control flow, barriers and fences. */
#include <time.h>

#include "tests/softgpu/ptx/machine.h"
#include "tests/softgpu/ptx/steps.h"

STEP(branch)
{
	uint32_t rest = warp->group & ~mask;

	if (!rest) {
		warp->pc = insn->target;
		return STEP_NEXT;
	}
	settle(warp, rest, warp->pc);
	settle(warp, mask, insn->target);
	return STEP_TURN;
}

STEP(table)
{
	const uint32_t *targets = insn->extra;
	const uint64_t *a = slot(warp, insn->a);

	settle(warp, warp->group & ~mask, warp->pc);
	for (uint32_t rest = mask; rest; rest &= rest - 1) {
		unsigned lane = (unsigned)__builtin_ctz(rest);

		if (a[lane] >= insn->imm)
			return ptx_fault(warp, insn, lane, PTX_FAULT_TRAP, 0, "brx.idx index %llu of %llu targets",
			                 (unsigned long long)a[lane], (unsigned long long)insn->imm);
		warp->lane_pc[lane] = targets[a[lane]];
	}
	return STEP_TURN;
}

STEP(call)
{
	const struct call_site *site = insn->extra;
	const struct ptx_function *callee = site->callee;
	uint64_t base = warp->frame->local_base, top = base + ((warp->frame->function->local_bytes + 15) & ~UINT64_C(15));

	if (callee->outside)
		return callee->outside(warp, insn, mask);
	if (warp->frame->depth + 1 >= CALL_DEPTH_LIMIT)
		return ptx_fault(warp, insn, (unsigned)__builtin_ctz(mask), PTX_FAULT_LIMIT, 0,
		                 "more than %u calls deep", CALL_DEPTH_LIMIT);
	if (top + callee->local_bytes > warp->block->local_bytes)
		return ptx_fault(warp, insn, (unsigned)__builtin_ctz(mask), PTX_FAULT_LIMIT, 0,
		                 "the thread's stack of %llu bytes is used up",
		                 (unsigned long long)warp->block->local_bytes);
	for (uint32_t rest = mask; rest; rest &= rest - 1) {
		unsigned lane = (unsigned)__builtin_ctz(rest);

		for (unsigned n = 0; n < site->in_count; n++) {
			const struct call_actual *actual = &site->in[n];
			const void *from = actual->slot == NO_OPERAND
			                           ? (const void *)ptx_local_of(warp, lane, base + actual->from)
			                           : (const void *)&slot(warp, actual->slot)[lane];
			memcpy(ptx_local_of(warp, lane, top + actual->to), from, actual->bytes);
		}
	}
	settle(warp, warp->group & ~mask, warp->pc);
	struct frame *frame = ptx_frame_enter(warp, insn, mask, warp->pc);
	if (!frame)
		return ptx_fault(warp, insn, (unsigned)__builtin_ctz(mask), PTX_OUT_OF_MEMORY, 0,
		                 "no memory for a call's registers");
	for (uint32_t rest = mask; rest; rest &= rest - 1) {
		warp->lane_frame[__builtin_ctz(rest)] = frame;
		warp->lane_pc[__builtin_ctz(rest)] = 0;
	}
	return STEP_TURN;
}

STEP(leave)
{
	struct frame *frame = warp->frame;

	settle(warp, warp->group & ~mask, warp->pc);
	if (!frame->parent) {
		ptx_warp_exit(warp, mask);
		return STEP_TURN;
	}
	const struct call_site *site = frame->call->extra;
	for (uint32_t rest = mask; rest; rest &= rest - 1) {
		unsigned lane = (unsigned)__builtin_ctz(rest);

		for (unsigned n = 0; n < site->out_count; n++) {
			const struct call_actual *actual = &site->out[n];
			const uint8_t *from = ptx_local_of(warp, lane, frame->local_base + actual->to);

			if (actual->slot == NO_OPERAND) {
				memcpy(ptx_local_of(warp, lane, frame->parent->local_base + actual->from), from,
				       actual->bytes);
			} else {
				uint64_t *to = frame->parent->registers + (size_t)actual->slot * WARP_LANES + lane;

				*to = 0;
				memcpy(to, from, actual->bytes);
			}
		}
		warp->lane_frame[lane] = frame->parent;
		warp->lane_pc[lane] = frame->return_pc;
	}
	frame->lanes &= ~mask;
	return STEP_TURN;
}

STEP(end)
{
	settle(warp, warp->group & ~mask, warp->pc);
	ptx_warp_exit(warp, mask);
	return STEP_TURN;
}

STEP(trap)
{
	return ptx_fault(warp, insn, (unsigned)__builtin_ctz(mask), PTX_FAULT_TRAP, 0, "trap");
}

STEP(nothing)
{
	return STEP_NEXT;
}

/*
 * Really sleeps, so that a kernel that waits for the host neither burns its instruction limit nor the host's core; at
 * most a millisecond, as the ISA allows.
 */
STEP(sleep_briefly)
{
	const uint64_t *a = slot(warp, insn->a);
	uint64_t longest = 0;

	for (uint32_t rest = mask; rest; rest &= rest - 1)
		longest = a[__builtin_ctz(rest)] > longest ? a[__builtin_ctz(rest)] : longest;
	nanosleep(&(struct timespec){.tv_nsec = longest < 1000000 ? (long)longest : 1000000}, NULL);
	return STEP_NEXT;
}

STEP(fence)
{
	atomic_thread_fence(memory_order_seq_cst);
	return STEP_NEXT;
}

/*
 * Counts as the hardware does: a warp that is there with all its live lanes counts as a full warp when a thread count
 * is given.
 */
static enum step enter_barrier(struct warp *warp, const struct insn *insn, uint32_t mask, bool wait)
{
	const uint64_t *ids = slot(warp, insn->a), *counts = insn->b == NO_OPERAND ? NULL : slot(warp, insn->b);
	struct block *block = warp->block;

	settle(warp, warp->group, warp->pc);
	for (uint32_t rest = mask; rest; rest &= rest - 1) {
		unsigned lane = (unsigned)__builtin_ctz(rest);
		uint32_t id = (uint32_t)ids[lane], count = counts ? (uint32_t)counts[lane] : 0;

		if (id >= CLUSTER_BARRIER)
			return ptx_fault(warp, insn, lane, PTX_FAULT_BARRIER, 0, "barrier %u of %u", id, CLUSTER_BARRIER);
		struct barrier *barrier = &block->barriers[id];
		if (counts && (!count || count % WARP_LANES || count > 1024))
			return ptx_fault(warp, insn, lane, PTX_FAULT_BARRIER, 0, "a barrier's thread count is %u", count);
		if (count)
			barrier->expected = count;
		if (wait) {
			warp->waiting[id] |= 1u << lane;
			barrier->waiters++;
			warp->lane_pc[lane] = warp->pc - 1; /* the release moves it on */
			warp->at_barrier |= 1u << lane;
		} else {
			barrier->arrived += mask == warp->live && lane == (unsigned)__builtin_ctz(mask)
			                            ? WARP_LANES - (uint32_t)__builtin_popcount(mask) + 1
			                            : 1;
		}
		if (insn->c != NO_OPERAND) {
			barrier->ones += slot(warp, insn->c)[lane] != 0;
			barrier->votes++;
		}
	}
	ptx_barriers_check(block);
	return STEP_TURN;
}

STEP(barrier)
{
	return enter_barrier(warp, insn, mask, true);
}

STEP(arrive)
{
	return enter_barrier(warp, insn, mask, false);
}

step_fn ptx_step_control(enum control_op op)
{
	static const step_fn steps[CONTROL_COUNT] = {
		[CONTROL_BRANCH] = branch,   [CONTROL_TABLE] = table,
		[CONTROL_CALL] = call,       [CONTROL_RETURN] = leave,
		[CONTROL_EXIT] = end,        [CONTROL_TRAP] = trap,
		[CONTROL_NOTHING] = nothing, [CONTROL_SLEEP] = sleep_briefly,
		[CONTROL_FENCE] = fence,     [CONTROL_BARRIER] = barrier,
		[CONTROL_ARRIVE] = arrive,   [CONTROL_BARRIER_RED] = barrier,
	};

	return steps[op];
}
