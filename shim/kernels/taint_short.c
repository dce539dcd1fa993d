#include "shim/kernels/taint_short.h"

/*
 * Most instructions join what a few registers hold into one. How they do it is worked out when they run first, and kept
 * with the step: literals in registers are the same each time, since they come from the same block.
 */

#define NOTHING TAINT_REGISTERS /* as a source: the empty set */

/* Sets of single members, and all that may be loaded, have low numbers. */
static uint16_t source_set(struct taint_step *step, set_id set)
{
	if (set > UINT16_MAX - TAINT_REGISTERS)
		step->plan = TAINT_IN_FULL;
	return (uint16_t)(TAINT_REGISTERS + set);
}

static uint16_t constant_source(struct taint *t, const struct sass_operand *operand, bool high, struct taint_step *step)
{
	if (operand->kind == OPERAND_CONST)
		return source_set(step, taint_const(t, operand->bank, operand->offset + 4 * high));
	if (t->program->marks[t->insn] & MARK_GLOBAL)
		return source_set(step, taint_one(t, FROM_GLOBAL));
	if (t->program->marks[t->insn] & MARK_FUNCTION)
		return source_set(step, taint_one(t, FROM_FUNCTION));
	return NOTHING;
}

/* Once the plan is chosen: it may turn out not to do. */
static inline uint16_t source_of(struct taint *t, const struct sass_operand *operand, bool high, struct taint_step *step)
{
	unsigned reg = operand->reg + high;
	if (operand->kind == OPERAND_REGISTER)
		return (uint16_t)(reg < SASS_RZ ? reg : NOTHING);
	if (operand->kind == OPERAND_UNIFORM)
		return (uint16_t)(reg < t->program->machine.uniform_zero ? TAINT_UNIFORM + reg : NOTHING);
	return operand->kind == OPERAND_NONE ? NOTHING : constant_source(t, operand, high, step);
}

static void plan_sources(struct taint *t, const struct sass_operand operands[3], struct taint_step *step)
{
	step->plan = TAINT_JOINS;
	for (unsigned i = 0; i < 3; i++)
		step->from[i] = source_of(t, &operands[i], false, step);
}

static void plan_one(struct taint_step *step, uint16_t from)
{
	step->plan = TAINT_JOINS;
	step->from[0] = from;
	step->from[1] = step->from[2] = NOTHING;
}

/* What a difference leaves of its operands. */
static enum taint_turn made_plain(enum taint_turn turn)
{
	return turn == TURN_UNDO ? TURN_UNDO : TURN_PLAIN;
}

static void plan_sum(const struct sass_insn *insn, const struct sass_operand operands[3], struct taint_step *step)
{
	for (unsigned i = 0; i < 3; i++)
		if (taint_negated(insn, operands, i)) {
			step->turn[i] = TURN_PLAIN;
			step->tells = true;
		}
}

/* As product() and multiply() of taint_alu.c. */
static void plan_product(const struct taint *t, const struct sass_insn *insn, const struct sass_operand operands[3],
                         struct taint_step *step)
{
	bool is_known = false,
	     negative = sass_field(insn, 63, 64) || sass_field(insn, 75, 76) || sass_field(insn, 72, 73);
	step->turn[0] = step->turn[1] = TURN_AGAIN;
	for (unsigned i = 0; i < 2; i++) {
		uint32_t value;
		if (!taint_is_literal(t, &operands[i], &value))
			continue;
		negative |= value >> 31;
		if (is_known)
			continue;
		is_known = true;
		step->from[i] = NOTHING;
		step->turn[!i] = value == 1 ? TURN_NONE : taint_may_undo(value) ? TURN_UNDO : TURN_SCALED;
	}
	step->tells = negative;
	for (unsigned i = 0; i < 2 && negative; i++)
		step->turn[i] = made_plain(step->turn[i]);
}

/* A product of 64 bits. By a large power of two its high word is a shift to the right. */
static void plan_wide(struct taint *t, const struct sass_insn *insn, struct taint_step *step)
{
	struct sass_operand operands[3];
	uint32_t value;
	sass_operands(&t->program->machine, insn, operands);
	if (taint_is_literal(t, &operands[0], &value) || taint_is_literal(t, &operands[1], &value)) {
		if (value >= 256 && !(value & (value - 1)))
			return;
		step->extends = value == 1;
	}
	plan_sources(t, operands, step);
	step->from[3] = source_of(t, &operands[2], true, step);
	plan_product(t, insn, operands, step);
	if (step->plan == TAINT_JOINS)
		step->plan = TAINT_WIDE;
}

static void plan_address(const struct sass_insn *insn, struct taint_step *step)
{
	bool difference = sass_field(insn, 72, 73) || sass_field(insn, 63, 64);
	if (sass_field(insn, 73, 81) == 0x87)
		step->turn[0] = TURN_SIGN;
	else if (sass_field(insn, 75, 80))
		step->turn[0] = step->turn[2] = TURN_SCALED;
	step->tells = difference;
	for (unsigned i = 0; i < 3 && difference; i++)
		step->turn[i] = made_plain(step->turn[i]);
}

/* Of one word; where both words may hold something, what becomes of them is seen when it runs. */
static void plan_shift(const struct taint *t, const struct sass_insn *insn, const struct sass_operand operands[3],
                       struct taint_step *step)
{
	uint32_t count = 0;
	bool is_known = taint_is_literal(t, &operands[1], &count), right = sass_field(insn, 76, 77),
	     moves = !is_known || (count != 0 && count != 32), low_empty = step->from[0] == NOTHING;
	enum taint_turn turn = TURN_NONE;
	if (!low_empty && step->from[2] != NOTHING) {
		step->plan = TAINT_IN_FULL;
		return;
	}
	if (right && low_empty && is_known && count == 31)
		turn = TURN_SIGN;
	else if (right && low_empty && is_known && count && count < 32 && sass_field(insn, 73, 75) < 2 &&
	         !sass_field(insn, 80, 81))
		turn = TURN_SCALED;
	else if (right && moves)
		turn = TURN_UNDO;
	else if (!right && is_known && moves)
		turn = TURN_SCALED;
	step->turn[0] = step->turn[2] = turn;
}

static void plan_comparison(struct taint *t, const struct sass_operand operands[3], struct taint_step *step)
{
	step->plan = TAINT_COMPARES;
	for (unsigned i = 0; i < 4; i++)
		step->from[i] = source_of(t, &operands[i % 2], i / 2, step);
}

static void plan_arithmetic(struct taint *t, const struct sass_insn *insn, struct taint_step *step)
{
	struct sass_operand operands[3];
	enum sass_class class = insn->row->class;
	if (sass_wide_modifier(&t->program->machine, insn))
		return;
	sass_operands(&t->program->machine, insn, operands);
	if (class == SASS_COMPARE) {
		plan_comparison(t, operands, step);
		return;
	}
	if (class == SASS_MOVE) {
		plan_one(step, NOTHING);
		step->from[0] = source_of(t, &operands[taint_moved(insn)], false, step);
		return;
	}
	plan_sources(t, operands, step);
	if (class == SASS_ADD)
		plan_sum(insn, operands, step);
	else if (class == SASS_MULTIPLY)
		plan_product(t, insn, operands, step);
	else if (class == SASS_LEA)
		plan_address(insn, step);
	else if (class == SASS_SHIFT)
		plan_shift(t, insn, operands, step);
	else {
		step->compares = taint_mix_compares(insn);
		step->plain = taint_mix_negates(insn);
	}
}

void taint_plan(struct taint *t, const struct sass_insn *insn, struct taint_step *step)
{
	bool uniform = insn->uniform || insn->row->class == SASS_TO_UNIFORM;
	unsigned d = uniform ? insn->d & t->program->machine.uniform_mask : insn->d;
	step->plan = TAINT_IN_FULL;
	if (insn->row->class != SASS_COMPARE &&
	    (d >= (uniform ? t->program->machine.uniform_zero : SASS_RZ) || (insn->d == 1 && !uniform)))
		return;
	if (taint_fact(t, t->insn) & ~FACT_ALWAYS)
		return;
	switch (insn->row->class) {
	case SASS_CLEAR:
		if (insn->row->words < 2)
			plan_one(step, NOTHING);
		break;
	case SASS_SHUFFLE:
	case SASS_TO_UNIFORM:
		if (!insn->uniform)
			plan_one(step, insn->a < SASS_RZ ? insn->a : NOTHING);
		break;
	case SASS_MULTIPLY_WIDE:
		/* Of R0 and R1 the second is the stack pointer. */
		if (d > 1 || uniform)
			plan_wide(t, insn, step);
		break;
	case SASS_COMPARE:
	case SASS_MOVE:
	case SASS_SELECT:
	case SASS_MIX:
	case SASS_ADD:
	case SASS_MULTIPLY:
	case SASS_LEA:
	case SASS_SHIFT:
		plan_arithmetic(t, insn, step);
		break;
	default:
		return;
	}
	if (step->plan == TAINT_JOINS || step->plan == TAINT_WIDE)
		step->result = (uint16_t)(uniform ? TAINT_UNIFORM + d : d);
	if (step->plan != TAINT_JOINS)
		return;
	for (unsigned i = 0; i < 3; i++)
		if (step->from[i] != NOTHING) {
			step->from[step->from_count] = step->from[i];
			step->turn[step->from_count++] = step->turn[i];
		}
	for (unsigned i = step->from_count; i < 3; i++)
		step->from[i] = NOTHING, step->turn[i] = TURN_NONE;
}

static set_id read_source(const struct taint *t, const struct sass_insn *insn, uint16_t from)
{
	if (from >= TAINT_REGISTERS)
		return (set_id)(from - TAINT_REGISTERS);
	if (insn->guard == 7 || (from >= TAINT_UNIFORM && !insn->uniform))
		return t->now.registers[from];
	return taint_read_guarded(t, insn, from >= TAINT_UNIFORM, from % TAINT_UNIFORM);
}

static set_id read_turned(struct taint *t, const struct sass_insn *insn, const struct taint_step *step, unsigned i)
{
	set_id set = read_source(t, insn, step->from[i]);
	return set && step->turn[i] ? taint_turned(t, set, step->turn[i]) : set;
}

static void run_wide(struct taint *t, const struct sass_insn *insn, const struct taint_step *step)
{
	set_id factor = taint_join(t, read_turned(t, insn, step, 0), read_turned(t, insn, step, 1)),
	       high = factor && step->extends ? taint_turned(t, factor, TURN_SIGN) : factor,
	       low = taint_join(t, factor, read_source(t, insn, step->from[2]));
	high = taint_join(t, high, read_source(t, insn, step->from[3]));
	if (step->result >= TAINT_UNIFORM) {
		taint_write_uniform(t, insn, step->result - TAINT_UNIFORM, low);
		taint_write_uniform(t, insn, step->result - TAINT_UNIFORM + 1u, high);
	} else {
		taint_write(t, insn, step->result, low);
		taint_write(t, insn, step->result + 1u, high);
	}
}

static void compare(struct taint *t, const struct sass_insn *insn, const struct taint_step *step)
{
	taint_compared(t, read_source(t, insn, step->from[0]), read_source(t, insn, step->from[1]));
	taint_compared(t, read_source(t, insn, step->from[2]), read_source(t, insn, step->from[3]));
}

void taint_run_short(struct taint *t, const struct sass_insn *insn, const struct taint_step *step)
{
	set_id sets[3] = {0}, result = 0;
	if (step->plan == TAINT_COMPARES) {
		if (t->recording)
			compare(t, insn, step);
		return;
	}
	if (step->plan == TAINT_WIDE) {
		run_wide(t, insn, step);
		return;
	}
	for (unsigned i = 0; i < step->from_count; i++) {
		sets[i] = read_turned(t, insn, step, i);
		result = taint_join(t, result, sets[i]);
	}
	if (step->compares && t->recording) {
		taint_compared(t, sets[0], sets[1]);
		taint_compared(t, sets[0], sets[2]);
		taint_compared(t, sets[1], sets[2]);
	}
	if (step->plain && result)
		result = taint_turned(t, result, TURN_PLAIN);
	taint_write_either(t, insn, step->result >= TAINT_UNIFORM, step->result % TAINT_UNIFORM, result);
}
