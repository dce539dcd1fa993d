/*
 * One block at work. Each lane has its own program counter; of the lanes of a warp that can run, those furthest
 * behind run first and stop where they meet others, so that lanes that went apart come together again. A group that
 * spins while others could run is set aside now and then (a lock held by another lane of the warp must be reachable),
 * and so is a warp.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/softgpu/ptx/machine.h"
#include "tests/softgpu/ptx/run.h"

#define GROUP_TURN 4096u /* instructions of a group while others of its warp could run */
#define WARP_TURN 65536u /* instructions of a warp before the next one runs */

enum step ptx_fault(struct warp *warp, const struct insn *insn, unsigned lane, enum ptx_status status, uint64_t address,
                    const char *format, ...)
{
	struct block *block = warp->block;
	struct ptx_fault *fault = &block->fault;
	const uint32_t *size = block->launch->shape->block;
	uint32_t thread = warp->index * WARP_LANES + lane;
	va_list args;

	if (fault->status != PTX_OK)
		return STEP_FAULT;
	fault->status = status;
	fault->line = (int)insn->line;
	fault->address = address;
	int used = snprintf(fault->message, sizeof(fault->message),
	                    "%.64s, ptx line %u, block (%u,%u,%u) thread (%u,%u,%u): ", block->function->name,
	                    insn->line, block->ctaid[0], block->ctaid[1], block->ctaid[2], thread % size[0],
	                    thread / size[0] % size[1], thread / size[0] / size[1]);
	va_start(args, format);
	if (used > 0 && (size_t)used < sizeof(fault->message))
		vsnprintf(fault->message + used, sizeof(fault->message) - (size_t)used, format, args);
	va_end(args);
	return STEP_FAULT;
}

struct frame *ptx_frame_enter(struct warp *warp, const struct insn *call, uint32_t lanes, uint32_t return_pc)
{
	const struct call_site *site = call->extra;
	struct frame *parent = warp->frame, *free_frame = NULL, *frame;

	for (frame = warp->frames; frame; frame = frame->next) {
		if (frame->lanes && frame->parent == parent && frame->call == call) {
			frame->lanes |= lanes;
			return frame;
		}
		if (!frame->lanes && frame->function == site->callee)
			free_frame = frame;
	}
	frame = free_frame ? free_frame : ptx_frame_new(warp, site->callee);
	if (!frame)
		return NULL;
	frame->parent = parent;
	frame->call = call;
	frame->return_pc = return_pc;
	frame->depth = parent->depth + 1;
	frame->lanes = lanes;
	frame->local_base = parent->local_base + ((parent->function->local_bytes + 15) & ~UINT64_C(15));
	for (unsigned i = 0; i < WARP_LANES; i++)
		frame->registers[i] = frame->local_base;
	return frame;
}

void ptx_warp_exit(struct warp *warp, uint32_t lanes)
{
	for (uint32_t rest = lanes; rest; rest &= rest - 1)
		for (struct frame *frame = warp->lane_frame[__builtin_ctz(rest)]; frame; frame = frame->parent)
			frame->lanes &= ~(1u << __builtin_ctz(rest));
	warp->live &= ~lanes;
	ptx_barriers_check(warp->block);
	ptx_cluster_check(warp->block->cluster);
}

static void release(struct block *block, unsigned id)
{
	struct barrier *barrier = &block->barriers[id];
	uint32_t results[] = {
		[ATOM_ADD] = barrier->ones, [ATOM_AND] = barrier->ones == barrier->votes, [ATOM_OR] = barrier->ones != 0};

	for (uint32_t n = 0; n < block->warp_count; n++) {
		struct warp *warp = &block->warps[n];

		for (uint32_t rest = warp->waiting[id]; rest; rest &= rest - 1) {
			unsigned lane = (unsigned)__builtin_ctz(rest);
			const struct frame *frame = warp->lane_frame[lane];
			const struct insn *insn = &frame->function->code[warp->lane_pc[lane]++];

			if (insn->c != NO_OPERAND)
				frame->registers[(size_t)(insn->d & 0x3fffffff) * WARP_LANES + lane] = results[insn->op];
		}
		warp->at_barrier &= ~warp->waiting[id];
		warp->waiting[id] = 0;
	}
	*barrier = (struct barrier){0};
}

void ptx_barriers_check(struct block *block)
{
	for (unsigned id = 0; id < BARRIERS; id++) {
		const struct barrier *barrier = &block->barriers[id];
		uint32_t there = barrier->arrived, live = 0;

		if (!barrier->waiters)
			continue;
		for (uint32_t n = 0; n < block->warp_count; n++) {
			const struct warp *warp = &block->warps[n];
			uint32_t waiting = warp->waiting[id];

			live += (uint32_t)__builtin_popcount(warp->live);
			there += barrier->expected && waiting && waiting == warp->live
			                 ? WARP_LANES
			                 : (uint32_t)__builtin_popcount(waiting);
		}
		if (there >= (barrier->expected ? barrier->expected : live))
			release(block, id);
	}
}

/*
 * The lane's program counter as seen from frame: its own, or that of the call it is in; -1 when it is not below
 * frame.
 */
static int64_t pc_within(const struct warp *warp, unsigned lane, const struct frame *frame)
{
	const struct frame *at = warp->lane_frame[lane];

	if (at == frame)
		return warp->lane_pc[lane];
	for (; at->parent; at = at->parent)
		if (at->parent == frame)
			return at->call - frame->function->code;
	return -1;
}

/* Which of two lanes is behind: the first difference on the way from the outermost frame decides. */
static bool is_behind(const struct warp *warp, unsigned lane, unsigned other)
{
	for (const struct frame *frame = warp->lane_frame[lane]; frame; frame = frame->parent) {
		int64_t theirs = pc_within(warp, other, frame);

		if (theirs >= 0) {
			int64_t ours = pc_within(warp, lane, frame);

			/* At the same call, the one still to enter it is behind. */
			return ours < theirs ||
			       (ours == theirs && warp->lane_frame[lane] == frame && warp->lane_frame[other] != frame);
		}
	}
	return false;
}

static uint32_t lanes_at(const struct warp *warp, uint32_t lanes, unsigned lane)
{
	uint32_t same = 0;

	for (; lanes; lanes &= lanes - 1) {
		unsigned other = (unsigned)__builtin_ctz(lanes);

		if (warp->lane_pc[other] == warp->lane_pc[lane] && warp->lane_frame[other] == warp->lane_frame[lane])
			same |= 1u << other;
	}
	return same;
}

/*
 * Of lanes that wait for each other, one whose wait is over because the lanes it waited for have ended or met it
 * elsewhere; or -1.
 */
static int sync_ready(struct warp *warp)
{
	for (uint32_t rest = warp->at_sync; rest; rest &= rest - 1) {
		unsigned lane = (unsigned)__builtin_ctz(rest);
		uint32_t same = lanes_at(warp, warp->at_sync, lane), wanted = 0;

		for (uint32_t members = same; members; members &= members - 1)
			wanted |= warp->sync_mask[__builtin_ctz(members)];
		if (!(wanted & warp->live & ~same))
			return (int)lane;
	}
	return -1;
}

/* bar.warp.sync in different places: the lanes meet when every member waits at one. */
static bool release_warp_sync(struct warp *warp)
{
	for (uint32_t rest = warp->at_sync; rest; rest &= rest - 1) {
		uint32_t members = warp->sync_mask[__builtin_ctz(rest)] & warp->live;
		bool all = members && !(members & ~warp->at_sync);

		for (uint32_t other = members; all && other; other &= other - 1) {
			unsigned lane = (unsigned)__builtin_ctz(other);

			all = ptx_is_warp_sync(&warp->lane_frame[lane]->function->code[warp->lane_pc[lane]]);
		}
		if (!all)
			continue;
		for (; members; members &= members - 1)
			warp->lane_pc[__builtin_ctz(members)]++, warp->at_sync &= ~(members & -members);
		return true;
	}
	return false;
}

/* Chooses the group that runs next and how far; false when no lane can. */
static bool choose(struct warp *warp, uint32_t *ret_stop, bool *ret_alone)
{
	uint32_t ready = warp->live & ~warp->at_barrier & ~warp->at_sync, stop = UINT32_MAX;
	unsigned lane;

	if (!ready && warp->at_sync) {
		int waiting = sync_ready(warp);

		if (waiting < 0 && release_warp_sync(warp))
			return choose(warp, ret_stop, ret_alone);
		if (waiting < 0)
			return false;
		ready = 1u << waiting;
	}
	if (!ready)
		return false;
	lane = (unsigned)__builtin_ctz(ready);
	if (warp->rotate && ready & ~warp->group) {
		uint32_t last = 31u - (uint32_t)__builtin_clz(warp->group), others = ready & ~warp->group;
		uint32_t above = last == 31 ? 0 : others & (UINT32_MAX << (last + 1));

		lane = (unsigned)__builtin_ctz(above ? above : others);
	} else {
		for (uint32_t rest = ready & (ready - 1); rest; rest &= rest - 1)
			if (is_behind(warp, (unsigned)__builtin_ctz(rest), lane))
				lane = (unsigned)__builtin_ctz(rest);
	}
	warp->rotate = false;
	warp->group = lanes_at(warp, warp->live & ~warp->at_barrier, lane);
	warp->at_sync &= ~warp->group;
	warp->frame = warp->lane_frame[lane];
	warp->pc = warp->lane_pc[lane];
	for (uint32_t rest = warp->live & ~warp->at_barrier & ~warp->group; rest; rest &= rest - 1) {
		int64_t theirs = pc_within(warp, (unsigned)__builtin_ctz(rest), warp->frame);

		if (theirs > warp->pc && theirs < stop)
			stop = (uint32_t)theirs;
	}
	*ret_stop = stop;
	*ret_alone = !(ready & ~warp->group);
	warp->banks[BANK_REGISTER] = warp->frame->registers;
	warp->banks[BANK_CONSTANT] = warp->frame->function->constants;
	return true;
}

static uint32_t guarded(const struct warp *warp, const struct insn *insn)
{
	const uint64_t *guard = slot(warp, insn->guard);
	uint32_t lanes = 0;

	if (warp->group == UINT32_MAX) {
		for (unsigned i = 0; i < WARP_LANES; i++)
			lanes |= (uint32_t)guard[i] << i;
	} else {
		for (uint32_t rest = warp->group; rest; rest &= rest - 1)
			lanes |= (uint32_t)guard[__builtin_ctz(rest)] << __builtin_ctz(rest);
	}
	return insn->guard_not ? warp->group & ~lanes : lanes;
}

enum run { RUN_ON, RUN_WAITS, RUN_FAULT };

/* Runs the chosen group until it meets or leaves other lanes, or its turn is over. */
static enum step run_group(struct warp *warp, uint32_t stop, uint32_t turn)
{
	const struct insn *code = warp->frame->function->code;
	struct block *block = warp->block;
	unsigned lanes = (unsigned)__builtin_popcount(warp->group);

	for (; turn && warp->pc < stop; turn--) {
		const struct insn *insn = &code[warp->pc++];
		uint32_t mask = insn->guard == NO_OPERAND ? warp->group : guarded(warp, insn);

		block->instructions += lanes;
		if (!mask)
			continue;
		enum step step = insn->run(warp, insn, mask);
		if (step != STEP_NEXT)
			return step;
	}
	settle(warp, warp->group, warp->pc);
	warp->rotate = !turn;
	return STEP_NEXT;
}

static enum run run_warp(struct warp *warp)
{
	struct block *block = warp->block;
	uint64_t start = block->instructions;
	uint32_t stop;
	bool alone, ran = false;

	while (warp->live && block->instructions - start < (uint64_t)WARP_TURN * WARP_LANES) {
		if (!choose(warp, &stop, &alone))
			return ran ? RUN_ON : RUN_WAITS;
		ran = true;
		enum step step = run_group(warp, stop, alone ? WARP_TURN : GROUP_TURN);
		if (step == STEP_FAULT)
			return RUN_FAULT;
		if (block->instructions > block->limit) {
			ptx_fault(warp, &warp->frame->function->code[0], (unsigned)__builtin_ctz(warp->group),
			          PTX_FAULT_LIMIT, 0, "more than %llu instructions", (unsigned long long)block->limit);
			return RUN_FAULT;
		}
		if (step == STEP_YIELD)
			return RUN_ON;
	}
	return ran ? RUN_ON : RUN_WAITS;
}

/* False when no thread of the block waits. */
static bool report_deadlock(struct block *block)
{
	for (uint32_t n = 0; n < block->warp_count; n++) {
		struct warp *warp = &block->warps[n];

		if (!warp->live)
			continue;
		unsigned lane = (unsigned)__builtin_ctz(warp->live);
		bool at_barrier = warp->at_barrier >> lane & 1;
		ptx_fault(warp, &warp->lane_frame[lane]->function->code[warp->lane_pc[lane]], lane, PTX_FAULT_BARRIER, 0,
		          at_barrier ? "waits at a barrier that the others never reach"
		                     : "waits for lanes of its warp that never come");
		return true;
	}
	return false;
}

/* Each warp that can runs its turn. */
static enum run run_block(struct block *block, bool *ret_live)
{
	bool ran = false;

	for (uint32_t n = 0; n < block->warp_count; n++) {
		struct warp *warp = &block->warps[n];

		if (!warp->live)
			continue;
		enum run run = run_warp(warp);
		if (run == RUN_FAULT)
			return run;
		ran = ran || run == RUN_ON;
		*ret_live = *ret_live || warp->live;
	}
	return ran ? RUN_ON : RUN_WAITS;
}

void ptx_cluster_run(struct cluster *cluster)
{
	for (;;) {
		bool live = false, ran = false;

		for (uint32_t n = 0; n < cluster->count; n++) {
			enum run run = run_block(&cluster->blocks[n], &live);
			if (run == RUN_FAULT)
				return;
			ran = ran || run == RUN_ON;
		}
		if (!live || block_must_stop(cluster->blocks))
			return;
		for (uint32_t n = 0; n < cluster->count && !ran; n++)
			if (report_deadlock(&cluster->blocks[n]))
				return;
	}
}
