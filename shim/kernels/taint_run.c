#include "shim/kernels/taint.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define STATE_LIMIT ((size_t)28 << 20) /* bytes of all block states of one kernel */
#define WORK_LIMIT                                                                                                     \
	1200000 /* instructions, and FLOW_WORK for each flow into a block: three times what the largest seen needs */
#define FLOW_WORK 16
#define ROUNDS_LIMIT 40 /* over memory that still changes */

/*
 * Places run in sweeps from the first to the last: what a loop brings back waits for the next sweep, so that it comes with all that changed meanwhile. (Sweeps in
 * reverse post-order were tried, and took more: code lies in an order that suits.)
 */
static void push(struct taint *t, uint32_t place)
{
	t->queue[place / 64] |= (uint64_t)1 << place % 64;
}

static bool pop(struct taint *t, uint32_t *ret_place)
{
	size_t words = program_places(t->program) / 64 + 1, word = t->sweep / 64;
	uint64_t bits = t->queue[word] & ~(uint64_t)0 << t->sweep % 64;
	for (size_t looked = 0; !bits; looked++) {
		if (looked == words)
			return false;
		word = word + 1 < words ? word + 1 : 0;
		bits = t->queue[word];
	}
	t->sweep = (uint32_t)(word * 64 + (unsigned)__builtin_ctzll(bits));
	t->queue[word] &= ~((uint64_t)1 << t->sweep % 64);
	*ret_place = t->sweep;
	return true;
}

/* Mostly nothing changed: runs of 16 registers are compared at once. */
static bool join_chosen(struct sets *sets, set_id *into, const set_id *from, const uint64_t chosen[4])
{
	bool changed = false;
	for (unsigned first = 0; first < 256; first += 16) {
		unsigned bits = chosen[first / 64] >> first % 64 & 0xffff;
		if (!bits || !memcmp(into + first, from + first, 16 * sizeof *into))
			continue;
		for (; bits; bits &= bits - 1) {
			unsigned reg = first + (unsigned)__builtin_ctz(bits);
			if (into[reg] == from[reg] || !from[reg])
				continue;
			set_id joined = sets_join(sets, into[reg], from[reg]);
			changed |= joined != into[reg];
			into[reg] = joined;
		}
	}
	return changed;
}

static const struct sass_registers all_registers = {{~UINT64_C(0), ~UINT64_C(0), ~UINT64_C(0), ~UINT64_C(0)},
                                                    {~UINT64_C(0), ~UINT64_C(0), ~UINT64_C(0), ~UINT64_C(0)}};

static bool join_armed(struct taint *t, set_id *into, const set_id *from)
{
	bool changed = false;
	for (unsigned i = 0; i < 16; i++) {
		if (into[i] == from[i] || !from[i])
			continue;
		set_id joined = sets_join(&t->targets, into[i], from[i]);
		changed |= joined != into[i];
		into[i] = joined;
	}
	return changed;
}

static bool join_stack(int32_t *into, int32_t from)
{
	if (from == STACK_NONE || *into == from || *into == STACK_ANY)
		return false;
	*into = *into == STACK_NONE ? from : STACK_ANY;
	return true;
}

static struct taint_state *state_of(struct taint *t, uint32_t block)
{
	if (!t->states[block]) {
		t->states[block] = calloc(1, sizeof *t->states[block]);
		if (t->states[block])
			t->states[block]->stack = STACK_NONE;
		else
			t->error = -ENOMEM;
	}
	return t->states[block];
}

/* What of a state flows besides registers. A return brings neither: each caller's stack pointer and barriers are what they were before the call. */
enum flow_part { FLOW_STACK = 1, FLOW_BARRIERS = 2 };

/* The state at the end of a block flows into another's entry. */
static void flow_into(struct taint *t, uint32_t block, const struct taint_state *from, unsigned parts)
{
	struct taint_state *into = state_of(t, block);
	if (!into)
		return;
	t->work += FLOW_WORK;
	bool changed = !into->reached;
	into->reached = true;
	changed |= join_chosen(&t->sets, into->r, from->r, all_registers.r);
	changed |= join_chosen(&t->sets, into->u, from->u, all_registers.u);
	if (parts & FLOW_BARRIERS)
		changed |= join_armed(t, into->armed, from->armed);
	if (parts & FLOW_STACK)
		changed |= join_stack(&into->stack, from->stack);
	if (changed && (into->stack != STACK_NONE || block >= t->program->block_count))
		push(t, block);
}

static struct taint_state *meeting_of(const struct taint *t, uint32_t function)
{
	struct taint_state *state = t->states[t->program->block_count + function];
	return state && state->reached ? state : NULL;
}

/* From where the returns of a function meet to one of its callers: what it may have written. */
static bool return_to(struct taint *t, uint32_t function, uint32_t block)
{
	struct taint_state *point = t->states[block];
	const struct taint_state *from = meeting_of(t, function);
	if (!point || !point->called || !from)
		return false;
	const struct sass_registers *written = &t->program->functions[function].written;
	t->work += FLOW_WORK;
	bool changed = !point->reached;
	point->reached = true;
	changed |= join_chosen(&t->sets, point->r, from->r, written->r);
	changed |= join_chosen(&t->sets, point->u, from->u, written->u);
	return changed;
}

/* Past a call: what the caller keeps, and what those that it calls have written so far. */
static void flow_past(struct taint *t, const struct block *call)
{
	struct taint_state *point = state_of(t, call->return_point);
	if (!point)
		return;
	struct sass_registers kept = {{0}, {0}};
	bool changed = !point->called;
	point->called = true;
	for (uint32_t i = 0; i < call->call_count; i++) {
		uint32_t function = t->program->function_of[t->program->next[call->next_first + i]];
		const struct sass_registers *written = &t->program->functions[function].written;
		for (unsigned word = 0; word < 4; word++) {
			kept.r[word] |= ~written->r[word];
			kept.u[word] |= ~written->u[word];
		}
		changed |= return_to(t, function, call->return_point);
	}
	changed |= join_chosen(&t->sets, point->r, t->now.r, kept.r);
	changed |= join_chosen(&t->sets, point->u, t->now.u, kept.u);
	changed |= join_stack(&point->stack, t->now.stack);
	changed |= join_armed(t, point->armed, t->now.armed);
	if (changed && point->reached)
		push(t, call->return_point);
}

static void flow_out(struct taint *t, const struct block *block)
{
	const struct program *program = t->program;
	uint8_t fact = taint_fact(t, block->last);
	for (uint32_t i = 0; i < block->next_count; i++)
		if (!fact || !constants_cut(program, block, i, fact))
			flow_into(t, program->next[block->next_first + i], &t->now, FLOW_STACK | FLOW_BARRIERS);
	if (block->return_point != PROGRAM_NONE)
		flow_past(t, block);
	for (uint32_t i = 0; i < block->returns_count; i++)
		flow_into(t, program->block_count + program->returns[block->returns_first + i].to, &t->now,
		          FLOW_BARRIERS);
	if (block->returns_anywhere)
		flow_into(t, program->block_count + program->function_count, &t->now, FLOW_BARRIERS);
	if (block->kind != BLOCK_WAIT)
		return;
	unsigned barrier = sass_field(&program->insns[block->last], 16, 20);
	set_id armed = t->now.armed[barrier];
	for (size_t i = 0; i < program->armed_count; i++)
		if (armed ? sets_has(&t->targets, armed, i) : program_may_wait(program, barrier, i))
			flow_into(t, program->armed[i], &t->now, FLOW_STACK | FLOW_BARRIERS);
}

/* From where the returns of a function meet to where it was called. */
static void flow_back(struct taint *t, uint32_t function)
{
	const struct program *program = t->program;
	const struct taint_state *from = t->states[program->block_count + function];
	if (function == program->function_count) {
		for (size_t i = 0; i < program->return_count; i++)
			flow_into(t, program->return_points[i], from, FLOW_BARRIERS);
		return;
	}
	const struct program_function *callers = &program->functions[function];
	for (uint32_t i = 0; i < callers->points_count; i++) {
		uint32_t point = program->points[callers->points_first + i].to;
		if (return_to(t, function, point) && t->states[point]->stack != STACK_NONE)
			push(t, point);
	}
	for (size_t i = 0; i < program->loose_count; i++)
		flow_into(t, program->loose[i], from, FLOW_BARRIERS);
}

static void run_block(struct taint *t, uint32_t id)
{
	const struct block *block = &t->program->blocks[id];
	t->states[id]->memory = t->memory_version;
	t->now = *t->states[id];
	t->stamp++;
	t->work += block->last - block->first + 1;
	for (t->insn = block->first; t->insn <= block->last && !t->stop; t->insn++)
		taint_step(t, &t->program->insns[t->insn]);
	if (t->stop) {
		t->insn--;
		return;
	}
	t->insn = block->last;
	if (block->kind == BLOCK_BROKEN)
		t->stop = PATHS_DAMAGED;
	else if (block->kind == BLOCK_TABLE_UNKNOWN)
		taint_reason(t, PATHS_CALL);
	else if (block->kind == BLOCK_CALL_UNKNOWN && t->program->insns[block->last].row->class != SASS_CALL_REGISTER)
		taint_reason(t, PATHS_CALL);
}

static void solve(struct taint *t)
{
	const struct program *program = t->program;
	uint32_t id;
	while (!t->stop && !t->error && pop(t, &id)) {
		if (t->work > WORK_LIMIT || t->sets.error == -E2BIG || t->targets.error == -E2BIG) {
			t->stop = PATHS_LIMIT;
			return;
		}
		if (id >= program->block_count) {
			flow_back(t, id - program->block_count);
			continue;
		}
		run_block(t, id);
		if (!t->stop)
			flow_out(t, &program->blocks[id]);
	}
}

static void solve_memory(struct taint *t)
{
	uint32_t entry = t->program->block_of[t->program->entry];
	struct taint_state *state = state_of(t, entry);
	if (!state)
		return;
	state->reached = true;
	state->stack = 0;
	push(t, entry);
	solve(t);
	for (unsigned round = 0; !t->stop && !t->error; round++) {
		if (round == ROUNDS_LIMIT) {
			t->stop = PATHS_LIMIT;
			return;
		}
		bool any = false;
		for (uint32_t i = 0; i < t->program->block_count; i++)
			if (t->reads_memory[i] && t->states[i] && t->states[i]->reached &&
			    t->states[i]->stack != STACK_NONE && t->states[i]->memory != t->memory_version) {
				push(t, i);
				any = true;
			}
		if (!any)
			return;
		solve(t);
	}
}

static void record(struct taint *t)
{
	t->recording = true;
	for (uint32_t i = 0; i < t->program->block_count && !t->stop && !t->error; i++)
		if (t->states[i] && t->states[i]->reached && t->states[i]->stack != STACK_NONE)
			run_block(t, i);
}

static void prepare_params(struct taint *t)
{
	const struct program *program = t->program;
	t->all_params = sets_range(&t->sets, FROM_PARAMS, FROM_PARAMS + t->word_count);
	t->loaded = sets_range(&t->sets, FROM_LOADED_LOW, FROM_LOADED_32 + 1);
	for (size_t i = 0; i < program->param_count; i++) {
		uint32_t first = program->params[i].offset, end = first + program->params[i].bytes;
		for (uint32_t slot = (first + 7) / 8; slot * 8 + 8 <= end; slot++)
			t->wide[slot] = true, t->whole[slot] = end - first == 8;
		/* Only arrays and structs can be indexed in constant memory. */
		if (program->params[i].bytes > 8)
			t->indexed_params =
				taint_join(t, t->indexed_params,
			                   sets_range(&t->sets, FROM_PARAMS + first / 4, FROM_PARAMS + (end + 3) / 4));
	}
	if (!t->indexed_params)
		t->indexed_params = t->all_params;
}

/* Does its result, or what it leaves in other memory, depend on what was stored before? */
static bool reads_memory(const struct sass_insn *insn)
{
	switch (insn->row ? insn->row->class : SASS_NOTHING) {
	case SASS_LOAD:
	case SASS_LOAD_256:
	case SASS_LOAD_LOCAL:
	case SASS_LOAD_SHARED:
	case SASS_LOAD_MATRIX:
	case SASS_LOAD_REDUCE:
	case SASS_ATOMIC:
	case SASS_ATOMIC_SHARED:
	case SASS_BULK:
	case SASS_TENSOR_STORE:
	case SASS_COPY_TO_SHARED:
		return true;
	default:
		return false;
	}
}

static int prepare(struct taint *t)
{
	uint32_t blocks = t->program->block_count;
	t->word_count = (t->program->params_bytes + 3) / 4;
	t->states = calloc(program_places(t->program), sizeof *t->states);
	t->queue = calloc(program_places(t->program) / 64 + (size_t)1, sizeof *t->queue);
	t->reads_memory = calloc(blocks + (size_t)1, sizeof *t->reads_memory);
	t->wide = calloc(t->paths->slot_count + 1, sizeof *t->wide);
	t->whole = calloc(t->paths->slot_count + 1, sizeof *t->whole);
	t->ones = calloc(FROM_PARAMS + t->word_count + (size_t)1, sizeof *t->ones);
	if (!t->states || !t->queue || !t->reads_memory || !t->wide || !t->whole || !t->ones)
		return -ENOMEM;
	for (uint32_t i = 0; i < blocks; i++)
		for (uint32_t insn = t->program->blocks[i].first; insn <= t->program->blocks[i].last; insn++)
			t->reads_memory[i] |= reads_memory(&t->program->insns[insn]);
	int err = sets_init(&t->sets, FROM_PARAMS + t->word_count + 1);
	if (!err)
		err = sets_init(&t->targets, t->program->armed_count);
	if (!err)
		prepare_params(t);
	return err;
}

int taint_run(const struct program *program, const uint8_t *facts, const struct paths_watch *watch,
              struct kernel_paths *paths)
{
	struct taint *t = calloc(1, sizeof *t);
	if (!t)
		return -ENOMEM;
	t->program = program;
	t->paths = paths;
	t->watch = watch;
	t->facts = facts;
	t->error = prepare(t);
	if (!t->error && program_places(program) * sizeof(struct taint_state) > STATE_LIMIT) {
		t->stop = PATHS_LIMIT;
		t->insn = program->entry;
	}
	if (!t->error && !t->stop)
		solve_memory(t);
	if (!t->error && !t->stop)
		record(t);
	if (t->sets.error == -ENOMEM || t->targets.error == -ENOMEM)
		t->error = -ENOMEM;
	else if (t->sets.error || t->targets.error)
		t->stop = PATHS_LIMIT;
	if (t->stop) {
		paths->reason = t->stop;
		paths->reason_offset = (t->insn - program->entry) * SASS_BYTES;
	}
	int err = t->error;
	for (uint32_t i = 0; t->states && i < program_places(program); i++)
		free(t->states[i]);
	free(t->states);
	free(t->queue);
	free(t->reads_memory);
	free(t->ones);
	free(t->wide);
	free(t->whole);
	free(t->cells);
	sets_free(&t->sets);
	sets_free(&t->targets);
	free(t);
	return err;
}
