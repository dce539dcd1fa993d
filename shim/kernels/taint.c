#include "shim/kernels/taint_short.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Was it written under the guard of the instruction being run, in this block? */
static bool is_current(const struct taint *t, const struct taint_guarded *entry)
{
	/* Without branches: whether it was is not foreseen. */
	return (entry->stamp == t->stamp) & (entry->guard == t->guards[t->insn]) & (entry->guard != GUARDS_UNKNOWN);
}

/* A register is read under the guard of the instruction: only what it holds when that is true counts. */
set_id taint_read_guarded(const struct taint *t, const struct sass_insn *insn, bool uniform, unsigned reg)
{
	const struct taint_guarded *entry = &t->guarded[uniform ? TAINT_UNIFORM + reg : reg];
	if (is_current(t, entry))
		return entry->when[!insn->guard_negated];
	return uniform ? t->now.u[reg] : t->now.r[reg];
}

void taint_write_guarded(struct taint *t, const struct sass_insn *insn, bool uniform, unsigned reg, set_id set)
{
	set_id *place = uniform ? &t->now.u[reg] : &t->now.r[reg];
	struct taint_guarded *entry = &t->guarded[uniform ? TAINT_UNIFORM + reg : reg];
	/* An ordinary instruction that writes a UR: which file its guard is of is not known. */
	if (uniform && !insn->uniform) {
		entry->stamp = 0;
		*place = taint_join(t, *place, set);
		return;
	}
	if (!is_current(t, entry))
		*entry = (struct taint_guarded){t->stamp, t->guards[t->insn], {*place, *place}};
	entry->when[!insn->guard_negated] = set;
	*place = taint_join(t, entry->when[0], entry->when[1]);
}

static bool window_offset(const struct sass_machine *machine, uint32_t offset)
{
	if (machine->sm >= 100)
		return offset == 0x2f8 || offset == 0x2fc;
	return offset == 0x18 || offset == 0x1c || offset == 0x20 || offset == 0x24;
}

set_id taint_const(struct taint *t, uint32_t bank, uint32_t offset)
{
	const struct program *program = t->program;
	uint32_t pointer = program->machine.params_pointer;
	switch (bank) {
	case 0:
		if (offset >= program->params_at && offset < program->params_at + program->params_bytes)
			return taint_one(t, FROM_PARAMS + (offset - program->params_at) / 4);
		if (offset >= pointer && offset < pointer + 8)
			return taint_one(t, FROM_BLOCK);
		if (window_offset(&program->machine, offset))
			return taint_one(t, FROM_WINDOW);
		return offset < program->params_at ? 0 : t->loaded;
	case 2:
		return taint_join(t, program->bank2_global ? taint_one(t, FROM_GLOBAL) : 0,
		                  program->bank2_function ? taint_one(t, FROM_FUNCTION) : 0);
	case 4:
		return taint_one(t, program_bank4_function(program, offset) ? FROM_FUNCTION : FROM_GLOBAL);
	default:
		/* User constants may hold addresses. */
		return bank == 3 && offset != UINT32_MAX
		               ? taint_one(t, offset / 4 % 2 ? FROM_LOADED_HIGH : FROM_LOADED_LOW)
		               : t->loaded;
	}
}

/* A literal in a register, by the number in a field of the instruction. */
static bool is_known(const struct taint *t, bool uniform, unsigned field, uint32_t *ret_value)
{
	unsigned reg = uniform ? field & t->program->machine.uniform_mask : field;
	const struct taint_known *known = &t->known[uniform ? TAINT_UNIFORM + reg : reg];
	if (reg == (uniform ? t->program->machine.uniform_zero : SASS_RZ))
		return *ret_value = 0, true;
	return known->stamp == t->stamp && (*ret_value = known->value, true);
}

/* The literal that an instruction leaves in its destination, if it does. */
static bool makes_known(const struct taint *t, const struct sass_insn *insn, uint32_t *ret_value)
{
	bool a_zero = insn->a == SASS_RZ, b_zero = insn->b == SASS_RZ, c_zero = insn->c == SASS_RZ;
	switch (insn->row->base) {
	case OP_MOV:
	case OP_UMOV:
		if (t->program->machine.sm >= 120 && sass_field(insn, 80, 81))
			return false; /* 64 bits */
		if (insn->form == 4)
			return *ret_value = insn->immediate, true;
		return (insn->form == 1 || insn->form == 6) &&
		       is_known(t, insn->uniform || insn->form == 6, insn->b, ret_value);
	case OP_IMAD:
		if (insn->form == 2 && a_zero && c_zero)
			return *ret_value = insn->immediate, true;
		return insn->form == 1 && a_zero && b_zero && is_known(t, false, insn->c, ret_value);
	case OP_HFMA2:
	case OP_IADD:
		return insn->row->class == SASS_CLEAR && insn->form == 2 && a_zero && c_zero &&
		       (*ret_value = insn->immediate, true);
	case OP_IADD3:
	case OP_VIADD:
		if (insn->form != 4 || a_zero || (insn->base == OP_IADD3 && !c_zero) || sass_field(insn, 72, 73) ||
		    !is_known(t, false, insn->a, ret_value))
			return false;
		return *ret_value += insn->immediate, true;
	default:
		return false;
	}
}

/* Literals in registers: indices of constant loads, factors, shift counts. Only within a block. */
static bool note_known(const struct taint *t, const struct sass_insn *insn, uint32_t *ret_value)
{
	if (insn->base > OP_UMOV || insn->guard != 7 || t->program->marks[t->insn] ||
	    (!insn->uniform && insn->d == SASS_RZ))
		return false;
	return (!insn->uniform || insn->base == OP_UMOV) && makes_known(t, insn, ret_value);
}

/* R1 is the stack pointer: set once from the driver's constant, moved by literals. */
static int32_t stack_after(const struct taint *t, const struct sass_insn *insn)
{
	int64_t stack = t->now.stack;
	bool constant = (insn->row->class == SASS_LOAD_CONST || (insn->base == OP_MOV && insn->form == 5) ||
	                 (insn->base == OP_IMAD && insn->form == 3 && insn->a == SASS_RZ)) &&
	                sass_field(insn, 54, 59) == 0 && !insn->bit91;
	uint32_t offset = sass_field(insn, 38, 54);
	if (insn->guard != 7)
		return STACK_ANY;
	if (constant && offset == (t->program->machine.sm >= 100 ? 0x37cu : 0x28u))
		return 0;
	bool adds = (insn->base == OP_IADD3 && insn->form == 4 && insn->c == SASS_RZ) ||
	            (insn->base == OP_VIADD && insn->form == 4) ||
	            (insn->base == OP_IADD && insn->form == 4 && t->program->machine.sm >= 100);
	if (!adds || insn->a != 1 || stack == STACK_ANY || stack == STACK_NONE || sass_field(insn, 72, 73))
		return STACK_ANY;
	stack += (int32_t)insn->immediate;
	return stack > INT32_MAX / 2 || stack < INT32_MIN / 2 ? STACK_ANY : (int32_t)stack;
}

static bool writes_stack(const struct sass_insn *insn)
{
	switch (insn->row->class) {
	case SASS_MOVE:
	case SASS_SELECT:
	case SASS_MIX:
	case SASS_ADD:
	case SASS_MULTIPLY:
	case SASS_LEA:
	case SASS_SHIFT:
	case SASS_LOAD_CONST:
	case SASS_LOAD:
	case SASS_LOAD_LOCAL:
	case SASS_LOAD_SHARED:
	case SASS_CLEAR:
	case SASS_CONVERT:
		return insn->d == 1 && !insn->uniform;
	case SASS_MULTIPLY_WIDE:
		return insn->d <= 1 && !insn->uniform;
	default:
		return false;
	}
}

static void arm(struct taint *t, const struct sass_insn *insn)
{
	uint32_t place = t->program->links[t->insn];
	set_id *armed = &t->now.armed[sass_field(insn, 16, 20)];
	set_id target = 0;
	if (place != PROGRAM_NONE && !t->arms[place])
		t->arms[place] = sets_one(&t->targets, place);
	if (place != PROGRAM_NONE)
		target = t->arms[place];
	*armed = sass_always(insn) ? target : sets_join(&t->targets, *armed, target);
}

static void call_register(struct taint *t, const struct sass_insn *insn)
{
	struct taint_pair target = taint_read_pair(t, insn, insn->a);
	set_id function = taint_one(t, FROM_FUNCTION);
	if (target.low != function || (target.high != function && target.high))
		taint_reason(t, PATHS_CALL);
}

static void after_external(struct taint *t, const struct sass_insn *insn)
{
	/* R4 and R5 may be what malloc gave. */
	for (unsigned reg = 4; reg < 6; reg++)
		taint_write(t, insn, reg, taint_join(t, taint_read(t, insn, reg), t->loaded));
}

static void dispatch(struct taint *t, const struct sass_insn *insn)
{
	unsigned special = sass_field(insn, 72, 80);
	unsigned uniform_d = insn->d & t->program->machine.uniform_mask;
	switch (insn->row->class) {
	case SASS_NOTHING:
	case SASS_TO_PREDICATES:
	case SASS_BRANCH:
	case SASS_BRANCH_TABLE:
	case SASS_RETURN:
	case SASS_EXIT:
	case SASS_WAIT:
	case SASS_WARP_SYNC:
	case SASS_TENSOR:
		if (insn->row->class == SASS_TENSOR && insn->row->words)
			taint_write(t, insn, insn->d, 0);
		return;
	case SASS_ARM:
		arm(t, insn);
		return;
	case SASS_ARM_FROM_REGISTER:
		t->now.armed[sass_field(insn, 24, 28)] = sets_range(&t->targets, 0, t->program->armed_count);
		return;
	case SASS_CALL:
	case SASS_CALL_ABSOLUTE:
		if (t->program->marks[t->insn] & MARK_UNKNOWN)
			taint_reason(t, PATHS_CALL);
		if (t->program->marks[t->insn] & MARK_EXTERNAL)
			after_external(t, insn);
		return;
	case SASS_CALL_REGISTER:
		call_register(t, insn);
		after_external(t, insn);
		return;
	case SASS_CALL_LOCAL_REGISTER:
		return;
	case SASS_TO_UNIFORM:
		taint_write_uniform(t, insn, uniform_d, taint_read(t, insn, insn->a));
		return;
	case SASS_UNIFORM_CLEAR:
		taint_write_uniform(t, insn, uniform_d, 0);
		return;
	case SASS_UNIFORM_SPECIAL:
		taint_write_uniform(t, insn, uniform_d, special == 47 || special == 48 ? taint_one(t, FROM_WINDOW) : 0);
		return;
	case SASS_SPECIAL:
		taint_write(t, insn, insn->d, special == 47 || special == 48 ? taint_one(t, FROM_WINDOW) : 0);
		return;
	case SASS_SHUFFLE:
		taint_write(t, insn, insn->d, taint_read(t, insn, insn->a));
		return;
	case SASS_PC:
		taint_write(t, insn, insn->d, taint_one(t, FROM_FUNCTION));
		taint_write(t, insn, insn->d + 1u, taint_one(t, FROM_FUNCTION));
		return;
	case SASS_SYNC_UNIT:
		taint_write_uniform(t, insn, uniform_d, 0);
		taint_write_uniform(t, insn, uniform_d + 1, 0);
		return;
	case SASS_SYNC_REGISTER:
		taint_write(t, insn, insn->d, 0);
		taint_write(t, insn, insn->d + 1u, 0);
		return;
	default:
		if (insn->row->class >= SASS_LOAD_CONST)
			taint_memory(t, insn);
		else
			taint_alu(t, insn);
	}
}

static void run_in_full(struct taint *t, const struct sass_insn *insn)
{
	int32_t stack = insn->d <= 1 && writes_stack(insn) ? stack_after(t, insn) : t->now.stack;
	dispatch(t, insn);
	t->now.stack = stack;
}

static void keep_literal(struct taint *t, const struct taint_step *step)
{
	if (step->is_literal)
		t->known[step->result] = (struct taint_known){t->stamp, step->literal};
}

/* The instruction of a step; without its guard where that is decided. */
static const struct sass_insn *insn_of(const struct taint *t, const struct taint_step *step, struct sass_insn *room)
{
	const struct sass_insn *insn = &t->program->insns[step->insn];
	if (insn->guard == 7 || !(taint_fact(t, step->insn) & FACT_ALWAYS))
		return insn;
	*room = *insn;
	room->guard = 7;
	return room;
}

static void plan(struct taint *t, struct taint_step *step)
{
	struct sass_insn room;
	const struct sass_insn *insn = insn_of(t, step, &room);
	uint8_t pace[2] = {PACE_ASK, PACE_ASK};
	t->insn = step->insn;
	if (!insn->row) {
		t->stop = PATHS_INSTRUCTION;
		return;
	}
	if (!step->plan) {
		taint_plan(t, insn, step);
		step->is_literal = note_known(t, insn, &step->literal);
	}
	/* What it leaves where its predicate is true is kept of one result. */
	if (step->guarded && step->write_count && step->plan != TAINT_JOINS)
		step->when |= WHEN_ANY;
	if (step->plan == TAINT_JOINS && step->single && !step->guarded) {
		pace[0] = PACE_SHORT;
		pace[1] = step->tells || step->compares ? PACE_ASK : PACE_SHORT;
	}
	for (unsigned i = 0; i < 2; i++)
		if (step->pace[i] != PACE_SKIP)
			step->pace[i] = pace[i];
}

static void run_insn(struct taint *t, const struct sass_insn *insn, struct taint_step *step)
{
	if (step->plan == TAINT_IN_FULL || (step->tells && t->recording))
		run_in_full(t, insn);
	else
		taint_run_short(t, insn, step);
	keep_literal(t, step);
}

/* Is what it does now what it did when it ran last, in this block? */
static inline bool unchanged(const struct taint *t, const struct taint_step *step)
{
	/* What a result that keeps some of what was there before comes of, it reads as well. */
	const taint_packed *range = t->live.ranges + step->ranges, *end = range + step->write_count + step->read_count;
	if (t->when & step->when)
		return false;
	if (t->recording)
		return true;
	for (range += step->kill_count; range < end; range++)
		if (taint_live_any(&t->changed, *range) || (step->guarded && taint_live_any(&t->changed_guarded, *range)))
			return false;
	return true;
}

static inline void note_change(struct taint_live *changed, unsigned reg, bool is_changed)
{
	uint64_t bit = (uint64_t)1 << reg % 64, *word = &changed->bits[reg / 64];
	*word = (*word & ~bit) | (uint64_t)is_changed << reg % 64;
}

/* What a guarded step in short left where its predicate is true, and where it is not: behind its one result. */
static void repeat_guarded(struct taint *t, const struct taint_step *step)
{
	const set_id *result = t->live.results + step->results;
	struct taint_guarded *entry = &t->guarded[step->result];
	if (result[1] != SETS_NONE)
		*entry = (struct taint_guarded){t->stamp, t->guards[step->insn], {result[1], result[2]}};
	note_change(&t->changed_guarded, step->result, false);
}

static void note_guarded(struct taint *t, const struct taint_step *step)
{
	set_id *result = t->live.results + step->results;
	const struct taint_guarded *entry = &t->guarded[step->result];
	set_id when[2] = {SETS_NONE, SETS_NONE};
	if (entry->stamp == t->stamp)
		memcpy(when, entry->when, sizeof when);
	note_change(&t->changed_guarded, step->result, t->first || memcmp(result + 1, when, sizeof when) != 0);
	memcpy(result + 1, when, sizeof when);
}

/* The one result of a step that has just run. */
static inline void take_result(struct taint *t, const struct taint_step *step, set_id result)
{
	unsigned reg = step->result;
	set_id *last = t->live.results + step->results;
	t->guarded[reg].stamp = 0;
	t->known[reg].stamp = 0;
	t->now.registers[reg] = result;
	note_change(&t->changed, reg, *last != result);
	*last = result;
}

static inline void repeat_register(struct taint *t, unsigned reg, set_id result)
{
	t->guarded[reg].stamp = 0;
	t->known[reg].stamp = 0;
	t->now.registers[reg] = result;
	note_change(&t->changed, reg, false);
}

/* Takes the results from when it ran last. */
static inline void repeat(struct taint *t, const struct taint_step *step)
{
	const set_id *result = t->live.results + step->results;
	if (step->single) {
		repeat_register(t, step->result, *result);
	} else {
		for (unsigned i = 0; i < step->write_count; i++) {
			taint_packed range = t->live.ranges[step->ranges + i];
			unsigned first = taint_range_first(range), end = first + taint_range_count(range);
			for (unsigned reg = first; reg < end; reg++)
				repeat_register(t, reg, *result++);
		}
		if (step->guarded && step->write_count)
			repeat_guarded(t, step);
	}
	keep_literal(t, step);
}

static inline void note_register(struct taint *t, unsigned reg, set_id *result)
{
	note_change(&t->changed, reg, *result != t->now.registers[reg]);
	*result = t->now.registers[reg];
}

/* Which of its results are others than when it ran last? */
static inline void note_results(struct taint *t, const struct taint_step *step)
{
	set_id *result = t->live.results + step->results;
	if (step->single) {
		note_register(t, step->result, result);
		return;
	}
	for (unsigned i = 0; i < step->write_count; i++) {
		taint_packed range = t->live.ranges[step->ranges + i];
		unsigned first = taint_range_first(range), end = first + taint_range_count(range);
		for (unsigned reg = first; reg < end; reg++)
			note_register(t, reg, result++);
		if (step->guarded)
			taint_live_add(&t->changed_guarded, range);
	}
	if (step->guarded && step->write_count && step->plan == TAINT_JOINS)
		note_guarded(t, step);
}

static void ask_step(struct taint *t, struct taint_step *step)
{
	struct sass_insn room;
	t->insn = step->insn;
	if (unchanged(t, step)) {
		repeat(t, step);
		return;
	}
	run_insn(t, insn_of(t, step, &room), step);
	note_results(t, step);
}

void taint_steps(struct taint *t, struct taint_step *step, struct taint_step *end)
{
	unsigned recording = t->recording;
	for (; step < end; step++) {
		if (step->pace[recording] == PACE_UNPLANNED) {
			plan(t, step);
			if (t->stop)
				return;
		}
		if (step->pace[recording] == PACE_SHORT) {
			take_result(t, step, taint_short_result(t, step));
			keep_literal(t, step);
		} else if (step->pace[recording] == PACE_ASK) {
			ask_step(t, step);
			if (t->stop)
				return;
		}
	}
}
