#include "shim/kernels/taint_short.h"

/* Arithmetic: what a result is made from. Wide operations keep low and high words apart: an address needs both halves of one slot. */

static struct taint_pair operand(struct taint *t, const struct sass_insn *insn, const struct sass_operand *operand)
{
	switch (operand->kind) {
	case OPERAND_REGISTER:
		return taint_read_pair(t, insn, operand->reg);
	case OPERAND_UNIFORM:
		return taint_read_uniform_pair(t, insn, operand->reg);
	case OPERAND_CONST:
		return (struct taint_pair){taint_const(t, operand->bank, operand->offset),
		                           taint_const(t, operand->bank, operand->offset + 4)};
	case OPERAND_IMMEDIATE:
		if (t->program->marks[t->insn] & MARK_GLOBAL)
			return (struct taint_pair){taint_one(t, FROM_GLOBAL), taint_one(t, FROM_GLOBAL)};
		if (t->program->marks[t->insn] & MARK_FUNCTION)
			return (struct taint_pair){taint_one(t, FROM_FUNCTION), taint_one(t, FROM_FUNCTION)};
		return (struct taint_pair){0, 0};
	default:
		return (struct taint_pair){0, 0};
	}
}

static struct taint_pair join_pair(struct taint *t, struct taint_pair a, struct taint_pair b)
{
	return (struct taint_pair){taint_join(t, a.low, b.low), taint_join(t, a.high, b.high)};
}

static void write_result(struct taint *t, const struct sass_insn *insn, struct taint_pair result, bool wide)
{
	if (insn->uniform) {
		unsigned d = insn->d & t->program->machine.uniform_mask;
		taint_write_uniform(t, insn, d, result.low);
		if (wide)
			taint_write_uniform(t, insn, d + 1, result.high);
		return;
	}
	taint_write(t, insn, insn->d, result.low);
	if (wide && insn->d != SASS_RZ)
		taint_write(t, insn, insn->d + 1u, result.high);
}

static void clear(struct taint *t, const struct sass_insn *insn, unsigned words)
{
	write_result(t, insn, (struct taint_pair){0, 0}, words == 2);
}

/*
 * Multiples and left shifts make an index of a number, and an index is no base: its members become scaled ones, which are not bases. What could make an
 * address of one again makes it plain again: a shift to the right, a second factor that is not known, a factor that undoes another, a negation (five times
 * less four times). Small factors that are known and shifts to the left do not, however many there are.
 */
static set_id scale(struct taint *t, set_id set)
{
	if (!set || sets_has(&t->sets, set, FROM_SHIFTED))
		return set;
	return sets_turn(&t->sets, set, SETS_SCALED);
}

/* A sign is one bit, of which no multiple makes more. */
static set_id sign(struct taint *t, set_id set)
{
	return sets_turn(&t->sets, set, SETS_SCALED);
}

static set_id unscale(struct taint *t, set_id set)
{
	return sets_turn(&t->sets, set, SETS_PLAIN);
}

static set_id scale_again(struct taint *t, set_id set)
{
	if (!set || sets_has(&t->sets, set, FROM_SHIFTED))
		return unscale(t, set);
	return sets_turn(&t->sets, set, SETS_AGAIN);
}

static set_id undo(struct taint *t, set_id set)
{
	return taint_join(t, unscale(t, set), taint_one(t, FROM_SHIFTED));
}

static set_id turn_set(struct taint *t, set_id set, enum taint_turn turn)
{
	switch (turn) {
	case TURN_SCALED:
		return scale(t, set);
	case TURN_SIGN:
		return sign(t, set);
	case TURN_PLAIN:
		return unscale(t, set);
	case TURN_AGAIN:
		return scale_again(t, set);
	case TURN_UNDO:
		return undo(t, set);
	default:
		return set;
	}
}

set_id taint_turn_anew(struct taint *t, set_id set, enum taint_turn turn)
{
	set_id result = turn_set(t, set, turn);
	return t->sets.derived[set].of[turn] = result;
}

/* An odd factor has an inverse, and of two that undo each other one is large. Indices have no such factors, and few negative ones. */
bool taint_may_undo(uint32_t factor)
{
	return factor >> 31 || ((factor & 1) && factor > 0x10000u);
}

bool taint_is_literal(const struct taint *t, const struct sass_operand *operand, uint32_t *ret_value)
{
	if (operand->kind == OPERAND_IMMEDIATE && !t->program->marks[t->insn])
		return *ret_value = operand->offset, true;
	bool uniform = operand->kind == OPERAND_UNIFORM;
	if (operand->kind != OPERAND_REGISTER && !uniform)
		return false;
	if (operand->reg == (uniform ? t->program->machine.uniform_zero : SASS_RZ))
		return *ret_value = 0, true;
	const struct taint_known *known = &t->known[uniform ? TAINT_UNIFORM + operand->reg : operand->reg];
	if (known->stamp != t->stamp)
		return false;
	return *ret_value = known->value, true;
}

/* Is the operand in slot `index` subtracted? Bit 72 negates A, bit 75 what is at 64, bit 63 what is at 32. */
bool taint_negated(const struct sass_insn *insn, const struct sass_operand operands[3], unsigned index)
{
	const struct sass_operand *operand = &operands[index];
	if (index == 0)
		return sass_field(insn, 72, 73);
	if (operand->kind == OPERAND_IMMEDIATE || operand->kind == OPERAND_NONE)
		return false;
	bool at_64 = (index == 1) == (insn->form == 2 || insn->form == 3 || insn->form == 7);
	return at_64 ? sass_field(insn, 75, 76) : sass_field(insn, 63, 64);
}

static void compare_sum(struct taint *t, const struct sass_insn *insn, const struct sass_operand operands[3],
                        struct taint_pair values[3])
{
	if (!t->recording)
		return;
	for (unsigned i = 0; i < 3; i++)
		for (unsigned j = 0; j < 3 && taint_negated(insn, operands, i); j++)
			if (i != j) {
				taint_compared(t, values[i].low, values[j].low);
				taint_compared(t, values[i].high, values[j].high);
			}
}

/* The product's part of IMAD: the factors, as they stand if one is 1. */
static set_id product(struct taint *t, const struct sass_insn *insn, const struct sass_operand operands[3], set_id a,
                      set_id b, bool *ret_unit)
{
	uint32_t value;
	*ret_unit = true;
	if (!a && !b)
		return 0;
	for (unsigned i = 0; i < 2; i++) {
		set_id other = i ? a : b;
		if (!taint_is_literal(t, &operands[i], &value))
			continue;
		if (value == 1)
			return other;
		*ret_unit = false;
		if (!other || !taint_may_undo(value))
			return scale(t, other);
		return undo(t, other);
	}
	*ret_unit = false;
	return taint_join(t, scale_again(t, a), scale_again(t, b));
}

/* The high word of a product: a shift to the right where the factor is a power of two, else a part of a division. */
static set_id high_product(struct taint *t, const struct sass_operand operands[3], const struct taint_pair v[3])
{
	uint32_t value;
	set_id product = unscale(t, taint_join(t, v[0].low, v[1].low));
	bool literal = taint_is_literal(t, &operands[0], &value) || taint_is_literal(t, &operands[1], &value);
	if (!product || !literal || value & (value - 1))
		return product;
	return taint_join(t, product, taint_one(t, FROM_SHIFTED));
}

static void multiply(struct taint *t, const struct sass_insn *insn, const struct sass_operand operands[3],
                     struct taint_pair v[3])
{
	bool unit;
	set_id factor = product(t, insn, operands, v[0].low, v[1].low, &unit);
	uint32_t value;
	bool negative = sass_field(insn, 63, 64) || sass_field(insn, 75, 76) || sass_field(insn, 72, 73) ||
	                (taint_is_literal(t, &operands[1], &value) && value >> 31) ||
	                (taint_is_literal(t, &operands[0], &value) && value >> 31);
	if (t->recording && negative) {
		taint_compared(t, factor, v[2].low);
		taint_compared(t, factor, v[2].high);
	}
	if (negative)
		factor = unscale(t, factor);
	if (insn->row->class == SASS_MULTIPLY_WIDE) {
		/* By 1 it is a sign or zero extension, whose high word is no address's. */
		set_id high = unit ? sign(t, factor) : factor;
		/* By a large power of two the high word is a shift to the right; by the size of an element it has a few bits. */
		bool literal = taint_is_literal(t, &operands[0], &value) || taint_is_literal(t, &operands[1], &value);
		if (literal && value >= 256 && !(value & (value - 1)))
			high = high_product(t, operands, v);
		write_result(t, insn,
		             (struct taint_pair){taint_join(t, factor, v[2].low), taint_join(t, high, v[2].high)}, true);
		return;
	}
	if (insn->row->class == SASS_MULTIPLY_HIGH)
		factor = taint_join(t, high_product(t, operands, v), v[2].high);
	write_result(t, insn, (struct taint_pair){taint_join(t, factor, v[2].low), 0}, false);
}

static void load_address(struct taint *t, const struct sass_insn *insn, struct taint_pair v[3])
{
	/* (C:A << shift) + B: without a shift a plain sum. .HI.X.SX32 with the shift 1: what is above the sign of A. */
	if (sass_field(insn, 73, 81) == 0x87) {
		v[0].low = sign(t, v[0].low);
	} else if (sass_field(insn, 75, 80)) {
		v[0].low = scale(t, v[0].low);
		v[2].low = scale(t, v[2].low);
	}
	if (sass_field(insn, 72, 73) || sass_field(insn, 63, 64)) {
		if (t->recording)
			taint_compared(t, v[0].low, v[1].low);
		for (unsigned i = 0; i < 3; i++)
			v[i].low = unscale(t, v[i].low);
	}
	write_result(t, insn, (struct taint_pair){taint_join(t, taint_join(t, v[0].low, v[2].low), v[1].low), 0}, false);
}

static void shift(struct taint *t, const struct sass_insn *insn, const struct sass_operand operands[3],
                  struct taint_pair v[3])
{
	set_id value = taint_join(t, v[0].low, v[2].low);
	uint32_t count;
	bool right = sass_field(insn, 76, 77), is_known = taint_is_literal(t, &operands[1], &count);
	if (value && right && is_known && count == 31 && !v[0].low)
		value = sign(t, value);
	/* .R without .HI of 64 bits, and nothing in the low word: it is the low word of a shift to the left. */
	else if (value && right && !v[0].low && is_known && count && count < 32 && sass_field(insn, 73, 75) < 2 &&
	         !sass_field(insn, 80, 81))
		value = scale(t, value);
	else if (value && right && !(is_known && (count == 0 || count == 32)))
		value = undo(t, value);
	else if (v[0].low && v[2].low && !right)
		value = is_known && (count == 0 || count == 32) ? value : scale_again(t, value); /* may turn round */
	else if (value && !right && is_known && count && count != 32)
		value = scale(t, value);
	write_result(t, insn, (struct taint_pair){taint_join(t, value, v[1].low), 0}, false);
}

static void convert(struct taint *t, const struct sass_insn *insn, struct taint_pair source)
{
	bool from_64 = insn->base >= OP_F2F_64;
	bool to_64 = from_64 && sass_field(insn, 75, 77) == 3;
	set_id all = from_64 ? taint_join(t, source.low, source.high) : source.low;
	write_result(t, insn, (struct taint_pair){all, all}, to_64);
}

/* A table of a bitwise operation in which no input counts against the result: nothing is negated. */
static bool monotone(uint32_t table)
{
	return !((table & 0x0f) << 4 & ~table) && !((table & 0x33) << 2 & ~table) && !((table & 0x55) << 1 & ~table);
}

unsigned taint_moved(const struct sass_insn *insn)
{
	return insn->form == 2 || insn->form == 3 || insn->form == 7 ? 2 : 1;
}

bool taint_mix_negates(const struct sass_insn *insn)
{
	return (insn->base == OP_LOP3 || insn->base == OP_ULOP3) && !monotone(sass_field(insn, 72, 80));
}

static void mix(struct taint *t, const struct sass_insn *insn, struct taint_pair v[3])
{
	if (t->recording && taint_mix_compares(insn)) {
		taint_compared(t, v[0].low, v[1].low);
		taint_compared(t, v[0].low, v[2].low);
		taint_compared(t, v[1].low, v[2].low);
	}
	struct taint_pair result = join_pair(t, join_pair(t, v[0], v[1]), v[2]);
	if (taint_mix_negates(insn))
		result = (struct taint_pair){unscale(t, result.low), unscale(t, result.high)};
	write_result(t, insn, result, sass_wide_modifier(&t->program->machine, insn));
}

void taint_alu(struct taint *t, const struct sass_insn *insn)
{
	struct sass_operand operands[3];
	struct taint_pair v[3];
	switch (insn->row->class) {
	case SASS_CLEAR:
		clear(t, insn, insn->row->words);
		return;
	case SASS_CLEAR_CONVERT:
		clear(t, insn, sass_field(insn, 75, 77) == 3 ? 2 : 1);
		return;
	case SASS_CLEAR_CS2R:
		clear(t, insn, sass_field(insn, 80, 81) ? 2 : 1);
		return;
	default:
		break;
	}
	sass_operands(&t->program->machine, insn, operands);
	for (unsigned i = 0; i < 3; i++)
		v[i] = operand(t, insn, &operands[i]);
	/* A number for given values of the parameters: the product is no address for its sake. */
	for (unsigned i = 0; i < 2; i++)
		if (taint_fact(t, t->insn) & (i ? FACT_NUMBER_B : FACT_NUMBER_A))
			v[i] = (struct taint_pair){0, 0};
	bool wide = sass_wide_modifier(&t->program->machine, insn);
	switch (insn->row->class) {
	case SASS_COMPARE:
		taint_compared(t, v[0].low, v[1].low);
		taint_compared(t, v[0].high, v[1].high);
		return;
	case SASS_MOVE:
		/* Slot B; in the form of a 64-bit literal the literal. */
		write_result(t, insn, v[taint_moved(insn)], wide);
		return;
	case SASS_ADD:
		compare_sum(t, insn, operands, v);
		for (unsigned i = 0; i < 3; i++)
			if (taint_negated(insn, operands, i))
				v[i] = (struct taint_pair){unscale(t, v[i].low), unscale(t, v[i].high)};
		write_result(t, insn, join_pair(t, join_pair(t, v[0], v[1]), v[2]), wide);
		return;
	case SASS_MULTIPLY:
	case SASS_MULTIPLY_WIDE:
	case SASS_MULTIPLY_HIGH:
		multiply(t, insn, operands, v);
		return;
	case SASS_LEA:
		load_address(t, insn, v);
		return;
	case SASS_SHIFT:
		shift(t, insn, operands, v);
		return;
	case SASS_CONVERT:
		convert(t, insn, v[1]);
		return;
	case SASS_SELECT:
		if (taint_fact(t, t->insn) & FACT_FIRST) {
			write_result(t, insn, v[0], wide);
			return;
		}
		if (taint_fact(t, t->insn) & FACT_SECOND) {
			write_result(t, insn, v[taint_moved(insn)], wide);
			return;
		}
		mix(t, insn, v);
		return;
	default:
		mix(t, insn, v);
	}
}
