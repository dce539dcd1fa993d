#include "shim/kernels/taint.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define STATE_LIMIT ((size_t)28 << 20) /* bytes of the entries of all blocks of one kernel */
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

static const struct taint_live all_registers = {{~UINT64_C(0), ~UINT64_C(0), ~UINT64_C(0), ~UINT64_C(0), ~UINT64_C(0),
                                                 ~UINT64_C(0), ~UINT64_C(0), ~UINT64_C(0)}};

static uint64_t chosen_row(const struct sass_registers *chosen, unsigned row)
{
	return row < 4 ? chosen->r[row] : chosen->u[row - 4];
}

static bool join_set(struct taint *t, set_id *into, set_id from)
{
	if (*into == from || !from)
		return false;
	set_id joined = sets_join(&t->sets, *into, from);
	bool changed = joined != *into;
	*into = joined;
	return changed;
}

/*
 * From one row of registers into another, those that are wanted. Mostly nothing changed: eight are compared at once.
 */
static uint64_t join_row(struct taint *t, set_id *into, const set_id *from, uint64_t wanted)
{
	uint64_t changed = 0;
	for (unsigned at = 0; wanted; into += 8, from += 8, wanted >>= 8, at += 8) {
		uint64_t a[2], b[2];
		memcpy(a, into, sizeof a);
		memcpy(b, from, sizeof b);
		if (!(wanted & 0xff) || !((a[0] ^ b[0]) | (a[1] ^ b[1])))
			continue;
		for (unsigned bits = wanted & 0xff; bits; bits &= bits - 1)
			if (join_set(t, into + __builtin_ctz(bits), from[__builtin_ctz(bits)]))
				changed |= (uint64_t)(bits & -bits) << at;
	}
	return changed;
}

/* What the registers hold now, those that are chosen, into the entry of a place: those that are live there. */
static bool join_now(struct taint *t, uint32_t place, const struct taint_live *chosen)
{
	struct taint_entry *entry = &t->entries[place];
	set_id *into = entry->sets;
	uint64_t any = 0;
	for (unsigned i = 0; i < t->row_count; i++, into += 64) {
		unsigned row = t->rows[i];
		uint64_t changed = join_row(t, into, t->now.registers + (size_t)row * 64,
		                            t->live.at[place].bits[row] & chosen->bits[row]);
		entry->changed.bits[row] |= changed;
		any |= changed;
	}
	return any != 0;
}

/* ... from where returns meet: what is live at a return point is live there. */
static bool join_met(struct taint *t, uint32_t place, uint32_t meeting, const struct sass_registers *chosen)
{
	struct taint_entry *entry = &t->entries[place];
	set_id *into = entry->sets;
	const set_id *from = t->entries[meeting].sets;
	uint64_t any = 0;
	for (unsigned i = 0; i < t->row_count; i++, into += 64, from += 64) {
		unsigned row = t->rows[i];
		uint64_t changed = join_row(t, into, from, t->live.at[place].bits[row] & chosen_row(chosen, row));
		entry->changed.bits[row] |= changed;
		any |= changed;
	}
	return any != 0;
}

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

/* What of a state flows besides registers. A return brings neither: each caller's stack pointer and barriers are what they were before the call. */
enum flow_part { FLOW_STACK = 1, FLOW_BARRIERS = 2 };

/* The state at the end of a block flows into another's entry. */
static void flow_into(struct taint *t, uint32_t place, unsigned parts, const struct taint_live *chosen)
{
	struct taint_entry *into = &t->entries[place];
	t->work += FLOW_WORK;
	bool changed = !into->reached;
	into->reached = true;
	changed |= join_now(t, place, chosen);
	if (parts & FLOW_BARRIERS)
		changed |= join_armed(t, into->armed, t->now.armed);
	if (parts & FLOW_STACK)
		changed |= join_stack(&into->stack, t->now.stack);
	if (changed && (into->stack != STACK_NONE || place >= t->program->block_count))
		push(t, place);
}

/* From where the returns of a function meet to one of its callers: what it may have written. */
static bool return_to(struct taint *t, uint32_t function, uint32_t block)
{
	struct taint_entry *point = &t->entries[block];
	uint32_t meeting = t->program->block_count + function;
	if (!point->called || !t->entries[meeting].reached)
		return false;
	t->work += FLOW_WORK;
	bool changed = !point->reached;
	point->reached = true;
	return changed | join_met(t, block, meeting, &t->program->functions[function].written);
}

/* Past a call: what the caller keeps, and what those that it calls have written so far. */
static void flow_past(struct taint *t, const struct block *call)
{
	struct taint_entry *point = &t->entries[call->return_point];
	struct taint_live kept = {{0}};
	bool changed = !point->called;
	point->called = true;
	for (uint32_t i = 0; i < call->call_count; i++) {
		uint32_t function = t->program->function_of[t->program->next[call->next_first + i]];
		const struct sass_registers *written = &t->program->functions[function].written;
		for (unsigned word = 0; word < 4; word++) {
			kept.bits[word] |= ~written->r[word];
			kept.bits[word + 4] |= ~written->u[word];
		}
		changed |= return_to(t, function, call->return_point);
	}
	changed |= join_now(t, call->return_point, &kept);
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
			flow_into(t, program->next[block->next_first + i], FLOW_STACK | FLOW_BARRIERS, &t->changed);
	if (block->return_point != PROGRAM_NONE)
		flow_past(t, block);
	for (uint32_t i = 0; i < block->returns_count; i++)
		flow_into(t, program->block_count + program->returns[block->returns_first + i].to, FLOW_BARRIERS,
		          &all_registers);
	if (block->returns_anywhere)
		flow_into(t, program->block_count + program->function_count, FLOW_BARRIERS, &all_registers);
	if (block->kind != BLOCK_WAIT)
		return;
	unsigned barrier = sass_field(&program->insns[block->last], 16, 20);
	set_id armed = t->now.armed[barrier];
	for (size_t i = 0; i < program->armed_count; i++)
		if (armed ? sets_has(&t->targets, armed, i) : program_may_wait(program, barrier, i))
			flow_into(t, program->armed[i], FLOW_STACK | FLOW_BARRIERS, &all_registers);
}

/* What a place begins with becomes what the registers hold now. */
static void enter(struct taint *t, uint32_t place)
{
	const struct taint_entry *entry = &t->entries[place];
	for (unsigned i = 0; i < t->row_count; i++)
		memcpy(t->now.registers + (size_t)t->rows[i] * 64, entry->sets + (size_t)i * 64,
		       64 * sizeof *entry->sets);
	memcpy(t->now.armed, entry->armed, sizeof t->now.armed);
	t->now.stack = entry->stack;
}

/* From where the returns of a function meet to where it was called. */
static void flow_back(struct taint *t, uint32_t function)
{
	const struct program *program = t->program;
	enter(t, program->block_count + function);
	if (function == program->function_count) {
		for (size_t i = 0; i < program->return_count; i++)
			flow_into(t, program->return_points[i], FLOW_BARRIERS, &all_registers);
		return;
	}
	const struct program_function *callers = &program->functions[function];
	for (uint32_t i = 0; i < callers->points_count; i++) {
		uint32_t point = program->points[callers->points_first + i].to;
		if (return_to(t, function, point) && t->entries[point].stack != STACK_NONE)
			push(t, point);
	}
	for (size_t i = 0; i < program->loose_count; i++)
		flow_into(t, program->loose[i], FLOW_BARRIERS, &all_registers);
}

static void run_block(struct taint *t, uint32_t id)
{
	const struct block *block = &t->program->blocks[id];
	struct taint_step *step = t->live.steps + t->live.first[id], *end = t->live.steps + t->live.first[id + 1];
	struct taint_entry *entry = &t->entries[id];
	enter(t, id);
	t->first = !entry->ran;
	t->recalled = entry->ran && entry->memory == t->memory_version;
	t->changed = entry->changed;
	if (!entry->ran)
		memset(&t->changed, 0xff, sizeof t->changed);
	entry->changed = (struct taint_live){{0}};
	entry->ran = true;
	entry->memory = t->memory_version;
	t->stamp++;
	t->work += (uint32_t)(end - step) + 1;
	for (; step < end && !t->stop; step++)
		taint_step(t, step);
	if (t->stop)
		return;
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

static bool runs(const struct taint *t, uint32_t block)
{
	return t->entries[block].reached && t->entries[block].stack != STACK_NONE;
}

static void solve_memory(struct taint *t)
{
	uint32_t entry = t->program->block_of[t->program->entry];
	t->entries[entry].reached = true;
	t->entries[entry].stack = 0;
	push(t, entry);
	solve(t);
	for (unsigned round = 0; !t->stop && !t->error; round++) {
		if (round == ROUNDS_LIMIT) {
			t->stop = PATHS_LIMIT;
			return;
		}
		bool any = false;
		for (uint32_t i = 0; i < t->program->block_count; i++)
			if (t->reads_memory[i] && runs(t, i) && t->entries[i].memory != t->memory_version) {
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
		if (runs(t, i))
			run_block(t, i);
}

static void find_rows(struct taint *t)
{
	uint64_t used[TAINT_REGISTERS / 64] = {0};
	for (uint32_t place = 0; place < program_places(t->program); place++)
		for (unsigned row = 0; row < TAINT_REGISTERS / 64; row++)
			used[row] |= t->live.at[place].bits[row];
	for (unsigned row = 0; row < TAINT_REGISTERS / 64; row++)
		if (used[row])
			t->rows[t->row_count++] = (uint8_t)row;
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

/* The entries of all places, once it is known what is live there. */
static int prepare_entries(struct taint *t)
{
	size_t places = program_places(t->program);
	find_rows(t);
	size_t sets = (size_t)t->row_count * 64;
	if (places * (sizeof *t->entries + sets * sizeof *t->entry_sets) > STATE_LIMIT) {
		t->stop = PATHS_LIMIT;
		t->insn = t->program->entry;
		return 0;
	}
	t->entries = calloc(places, sizeof *t->entries);
	t->entry_sets = calloc(places * sets + 1, sizeof *t->entry_sets);
	if (!t->entries || !t->entry_sets)
		return -ENOMEM;
	for (size_t place = 0; place < places; place++) {
		t->entries[place].stack = STACK_NONE;
		t->entries[place].sets = t->entry_sets + place * sets;
	}
	return 0;
}

static int prepare(struct taint *t)
{
	uint32_t blocks = t->program->block_count;
	t->word_count = (t->program->params_bytes + 3) / 4;
	t->queue = calloc(program_places(t->program) / 64 + (size_t)1, sizeof *t->queue);
	t->reads_memory = calloc(blocks + (size_t)1, sizeof *t->reads_memory);
	t->wide = calloc(t->paths->slot_count + 1, sizeof *t->wide);
	t->whole = calloc(t->paths->slot_count + 1, sizeof *t->whole);
	t->ones = calloc(FROM_PARAMS + t->word_count + (size_t)1, sizeof *t->ones);
	if (!t->queue || !t->reads_memory || !t->wide || !t->whole || !t->ones)
		return -ENOMEM;
	int err = taint_live_find(t->program, &t->live);
	if (!err)
		err = guards_find(t->program, t->facts, &t->guards);
	if (!err)
		err = prepare_entries(t);
	if (!err)
		err = sets_init(&t->sets, FROM_PARAMS + t->word_count + 1);
	if (!err)
		err = sets_init(&t->targets, t->program->armed_count);
	if (err)
		return err;
	for (uint32_t i = 0; i < blocks; i++)
		for (uint32_t k = t->live.first[i]; k < t->live.first[i + 1]; k++)
			t->reads_memory[i] |= t->live.steps[k].recalls;
	prepare_params(t);
	return 0;
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
	free(t->entries);
	free(t->entry_sets);
	taint_live_free(&t->live);
	free(t->guards);
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
