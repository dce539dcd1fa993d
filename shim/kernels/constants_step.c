#include "shim/kernels/constants.h"

/* What instructions compute from known values. Only what is modelled exactly is known afterwards. */

static const struct constant unknown = {0, CONSTANT_UNKNOWN};
static const struct constant zero = {0, 0};

static struct constant make(struct constants *c, uint32_t value, struct constant a, struct constant b)
{
	return (struct constant){value, sets_join(&c->sets, a.from, b.from)};
}

/* `bytes` of the parameters from a place in bank 0; with a sign where they are fewer than 4. */
static struct constant param(struct constants *c, uint32_t offset, unsigned bytes, bool sign)
{
	const struct program *program = c->program;
	const struct paths_values *values = c->values;
	struct constant result = zero;
	if (offset % bytes || offset < program->params_at || offset - program->params_at + bytes > program->params_bytes ||
	    offset - program->params_at + bytes > values->count)
		return unknown;
	offset -= program->params_at;
	unsigned exact = 0, small = 0;
	for (unsigned i = 0; i < bytes; i++) {
		exact += values->known[offset + i] == VALUE_EXACT;
		small += values->known[offset + i] == VALUE_SMALL;
		result.value |= (uint32_t)values->bytes[offset + i] << 8 * i;
	}
	/* A byte is small, whatever it is. */
	if (exact < bytes && bytes == 1)
		return sign ? unknown : (struct constant){0, CONSTANT_SMALL};
	if (exact < bytes && small < bytes)
		return unknown;
	if (sign && bytes < 4 && result.value >> (8 * bytes - 1))
		result.value |= ~(uint32_t)0 << 8 * bytes;
	/* That a part of a word is small hangs on the word. */
	if (exact < bytes)
		offset &= ~(uint32_t)3, bytes = 4;
	result.from = sets_range(&c->sets, offset, offset + bytes);
	return exact == bytes ? result : constant_smaller(result);
}

/* Either of two. */
static struct constant meet(struct constants *c, struct constant a, struct constant b)
{
	constants_meet(c, &a, b);
	return a;
}

static struct constant read_register(const struct constants *c, unsigned reg)
{
	return reg >= SASS_RZ ? zero : c->now.r[reg];
}

static struct constant read_uniform(const struct constants *c, unsigned reg)
{
	return reg >= c->program->machine.uniform_zero ? zero : c->now.u[reg];
}

static struct constant read_operand(struct constants *c, const struct sass_operand *operand)
{
	switch (operand->kind) {
	case OPERAND_REGISTER:
		return read_register(c, operand->reg);
	case OPERAND_UNIFORM:
		return read_uniform(c, operand->reg);
	case OPERAND_IMMEDIATE:
		return c->program->marks[c->insn] ? unknown : (struct constant){operand->offset, 0};
	case OPERAND_CONST:
		return operand->bank ? unknown : param(c, operand->offset, 4, false);
	default:
		return unknown;
	}
}

/* A predicate as 0 or 1; `at`: its 3 bits, with the negation behind them. */
static struct constant read_predicate(const struct constants *c, const struct sass_insn *insn, unsigned at, bool uniform)
{
	struct constant result = c->now.p[sass_field(insn, at, at + 3) + (uniform ? CONSTANTS_UNIFORM : 0)];
	result.value ^= sass_field(insn, at + 3, at + 4);
	return result;
}

static struct constant guard_of(const struct constants *c, const struct sass_insn *insn)
{
	if (insn->guard == 7)
		return (struct constant){!insn->guard_negated, 0};
	if (!constants_guard_sure(insn))
		return unknown;
	struct constant result = c->now.p[insn->guard + (insn->uniform ? CONSTANTS_UNIFORM : 0u)];
	result.value ^= insn->guard_negated;
	return result;
}

/* An operand of what is not known for the sake of another one. */
static struct constant miss(struct constants *c, uint32_t from)
{
	if (c->final && from)
		c->missed = sets_join(&c->sets, c->missed, from);
	return unknown;
}

static struct constant both(struct constants *c, struct constant a, struct constant b)
{
	if (constant_known(a) && !a.value)
		return a;
	if (constant_known(b) && !b.value)
		return b;
	if (constant_known(a) && constant_known(b))
		return make(c, 1, a, b);
	return miss(c, constant_known(a) ? a.from : constant_known(b) ? b.from : 0);
}

static struct constant not(struct constant a)
{
	return (struct constant){!a.value, a.from};
}

static struct constant either(struct constants *c, struct constant a, struct constant b)
{
	return not(both(c, not(a), not(b)));
}

static bool compare(unsigned how, bool is_signed, uint32_t a, uint32_t b)
{
	bool less = is_signed ? (int32_t)a < (int32_t)b : a < b;
	return (how & 1 && less) || (how & 2 && a == b) || (how & 4 && !less && a != b);
}

/* ISETP: bit 72 .EX, where the low words decide between equal high ones; 73 signed; 74 how it is combined; 76 the relation; 80 of 64 bits (sm_120). */
static struct constant set_predicate(struct constants *c, const struct sass_insn *insn, struct constant a,
                                     struct constant b)
{
	struct constant accumulated = read_predicate(c, insn, 87, insn->uniform), result = unknown;
	unsigned relation = sass_field(insn, 76, 79);
	if (sass_field(insn, 79, 81))
		return unknown;
	if (constant_known(a) && constant_known(b))
		result = make(c, compare(relation, sass_field(insn, 73, 74), a.value, b.value), a, b);
	if (sass_field(insn, 72, 73) && constant_known(result) && a.value == b.value) {
		struct constant low = read_predicate(c, insn, 68, insn->uniform);
		if (!constant_known(low) || relation == 0 || relation == 7)
			return unknown;
		result = make(c, low.value, result, low);
	}
	switch (sass_field(insn, 74, 76)) {
	case 0:
		return both(c, result, accumulated);
	case 1:
		return either(c, result, accumulated);
	case 2:
		return constant_known(result) && constant_known(accumulated)
		               ? make(c, result.value ^ accumulated.value, result, accumulated)
		               : unknown;
	default:
		return unknown;
	}
}

/* Of a table of three inputs: where each is 1, and how far that is from where it is 0. */
static const uint8_t ones[3] = {0xf0, 0xcc, 0xaa}, steps[3] = {4, 2, 1};

/* Does the table give the same whatever that input is? */
static bool ignores(unsigned table, unsigned input)
{
	return (table & ~ones[input] & 0xff) == (table & ones[input]) >> steps[input];
}

/* Three predicates looked up in a table; those that do not matter to it need not be known. */
static struct constant look_up(struct constants *c, unsigned table, const struct constant inputs[3])
{
	struct constant result = zero;
	unsigned possible = 0xff;
	for (unsigned i = 0; i < 3; i++) {
		if (ignores(table, i) || !constant_known(inputs[i]))
			continue;
		possible &= inputs[i].value ? ones[i] : (uint8_t)~ones[i];
		result.from = sets_join(&c->sets, result.from, inputs[i].from);
	}
	if ((table & possible) && (table & possible) != possible)
		return miss(c, result.from);
	result.value = (table & possible) != 0;
	return result;
}

static struct constant predicate_logic(struct constants *c, const struct sass_insn *insn)
{
	bool uniform = insn->uniform;
	const struct constant inputs[3] = {read_predicate(c, insn, 87, uniform), read_predicate(c, insn, 77, uniform),
	                                   read_predicate(c, insn, 68, uniform || sass_field(insn, 67, 68))};
	return look_up(c, sass_field(insn, 64, 67) | sass_field(insn, 72, 77) << 3, inputs);
}

static uint32_t bitwise(unsigned table, uint32_t a, uint32_t b, uint32_t c)
{
	uint32_t result = 0;
	for (unsigned i = 0; i < 8; i++)
		if (table >> i & 1)
			result |= (i & 4 ? a : ~a) & (i & 2 ? b : ~b) & (i & 1 ? c : ~c);
	return result;
}

static struct constant logic(struct constants *c, const struct sass_insn *insn, struct constant v[3])
{
	unsigned table = sass_field(insn, 72, 80);
	struct constant result = zero;
	for (unsigned i = 0; i < 3; i++) {
		if (ignores(table, i))
			v[i] = zero;
		else if (!constant_known(v[i]))
			return unknown;
		result.from = sets_join(&c->sets, result.from, v[i].from);
	}
	result.value = bitwise(table, v[0].value, v[1].value, v[2].value);
	return result;
}

/* Without a carry in; a negation is one of the whole operand. */
static struct constant sum(struct constants *c, const struct sass_insn *insn, const struct sass_operand operands[3],
                           const struct constant v[3])
{
	struct constant result = zero;
	bool swapped = insn->form == 2 || insn->form == 3 || insn->form == 7;
	if (sass_field(insn, 73, 75) || sass_field(insn, 76, 77))
		return unknown;
	for (unsigned i = 0; i < 3; i++) {
		bool literal = operands[i].kind == OPERAND_IMMEDIATE;
		bool negative = i == 0                ? sass_field(insn, 72, 73)
		                : literal             ? false
		                : (i == 1) == swapped ? sass_field(insn, 75, 76)
		                                      : sass_field(insn, 63, 64);
		if (!constant_known(v[i]))
			return unknown;
		result = make(c, negative ? result.value - v[i].value : result.value + v[i].value, result, v[i]);
	}
	return result;
}

static bool no_modifier(const struct sass_insn *insn, const struct sass_operand operands[3])
{
	bool literal = operands[1].kind == OPERAND_IMMEDIATE || operands[2].kind == OPERAND_IMMEDIATE;
	return !sass_field(insn, 72, 73) && !sass_field(insn, 74, 77) && (literal || !sass_field(insn, 63, 64));
}

static struct constant product(struct constants *c, const struct sass_insn *insn, const struct sass_operand operands[3],
                               const struct constant v[3])
{
	struct constant factor = unknown;
	if (!no_modifier(insn, operands))
		return unknown;
	for (unsigned i = 0; i < 2; i++)
		if (constant_known(v[i]) && !v[i].value)
			factor = v[i];
	if (!constant_known(factor) && constant_known(v[0]) && constant_known(v[1]))
		factor = make(c, v[0].value * v[1].value, v[0], v[1]);
	if (constant_known(factor) && !factor.value && !constant_known(v[2]) && constant_small(v[2]))
		return (struct constant){0, constants_join_from(c, factor.from, v[2].from)};
	return constant_known(factor) && constant_known(v[2]) ? make(c, factor.value + v[2].value, factor, v[2])
	                                                      : unknown;
}

/* The forms with one word: C >> count of .R.U32.HI and .R.S32.HI, A << count of .L.U32 and .L.S32. */
static struct constant shift(struct constants *c, const struct sass_insn *insn, const struct sass_operand operands[3],
                             const struct constant v[3])
{
	unsigned type = sass_field(insn, 73, 75);
	bool right = sass_field(insn, 76, 77), high = sass_field(insn, 80, 81);
	const struct constant *value = right ? &v[2] : &v[0];
	const struct sass_operand *beside = right ? &operands[0] : &operands[2];
	bool none = beside->kind == OPERAND_REGISTER
	                    ? beside->reg == SASS_RZ
	                    : beside->kind == OPERAND_UNIFORM && beside->reg == c->program->machine.uniform_zero;
	if (type < 2 || right != high || sass_field(insn, 77, 78) || !none || !constant_known(*value) ||
	    !constant_known(v[1]) || v[1].value > 31)
		return unknown;
	uint32_t result = !right      ? value->value << v[1].value
	                  : type == 3 ? value->value >> v[1].value
	                              : (uint32_t)((int32_t)value->value >> v[1].value);
	return make(c, result, *value, v[1]);
}

static struct constant permute(struct constants *c, const struct sass_insn *insn, const struct constant v[3])
{
	if (sass_field(insn, 72, 75) || !constant_known(v[1]))
		return unknown;
	struct constant result = {0, v[1].from};
	for (unsigned i = 0; i < 4; i++) {
		unsigned pick = v[1].value >> 4 * i & 15;
		const struct constant *source = pick & 4 ? &v[2] : &v[0];
		if (!constant_known(*source))
			return unknown;
		uint8_t byte = (uint8_t)(source->value >> 8 * (pick & 3));
		if (pick & 8)
			byte = byte >> 7 ? 0xff : 0;
		result = make(c, result.value | (uint32_t)byte << 8 * i, result, *source);
	}
	return result;
}

static struct constant selection(struct constants *c, const struct sass_insn *insn, const struct constant v[3],
                                 unsigned second)
{
	struct constant chosen = read_predicate(c, insn, 87, insn->uniform);
	if (sass_field(insn, 72, 81))
		return unknown;
	if (!constant_known(chosen))
		return meet(c, v[0], v[second]);
	c->fact |= chosen.value ? FACT_FIRST : FACT_SECOND;
	c->fact_from = sets_join(&c->sets, c->fact_from, chosen.from);
	struct constant value = chosen.value ? v[0] : v[second];
	if (constant_known(value))
		return make(c, value.value, value, chosen);
	return constant_small(value) ? (struct constant){0, constants_join_from(c, value.from, chosen.from)} : unknown;
}

/* An instruction that is not 64 bits wide, of the numbers that uniform ones share with ordinary ones, from 0x80 on. */
static struct constant arithmetic(struct constants *c, const struct sass_insn *insn, struct constant v[3],
                                  const struct sass_operand operands[3])
{
	bool swapped = insn->form == 2 || insn->form == 3 || insn->form == 7;
	switch (insn->base) {
	case OP_MOV:
		if (sass_field(insn, 72, 76) != 0xf)
			return unknown;
		return swapped ? unknown : v[1];
	case OP_UMOV:
		return swapped ? unknown : v[1];
	case OP_SEL:
	case OP_USEL:
		return selection(c, insn, v, swapped ? 2 : 1);
	case OP_IADD3:
	case OP_UIADD3:
		return sum(c, insn, operands, v);
	case OP_VIADD:
		v[2] = zero;
		return c->program->machine.sm >= 80 && !swapped && !sass_field(insn, 73, 74) &&
		                       no_modifier(insn, operands)
		               ? sum(c, insn, operands, v)
		               : unknown;
	case OP_LOP3:
	case OP_ULOP3:
		return logic(c, insn, v);
	case OP_PRMT:
	case OP_UPRMT:
		return permute(c, insn, v);
	case OP_SHF:
	case OP_USHF:
		return shift(c, insn, operands, v);
	case OP_IMAD:
	case OP_UIMAD:
		return product(c, insn, operands, v);
	default:
		return unknown;
	}
}

/* The first predicate that an instruction sets, by 0x00c, 0x01c and 0x012 and their uniform ones. */
static struct constant predicate_result(struct constants *c, const struct sass_insn *insn, const struct constant v[3],
                                        struct constant result)
{
	bool swapped = insn->form == 2 || insn->form == 3 || insn->form == 7;
	switch (insn->base) {
	case OP_ISETP:
	case OP_UISETP:
		return set_predicate(c, insn, v[0], swapped ? v[2] : v[1]);
	case OP_PLOP3:
	case OP_UPLOP3:
		return predicate_logic(c, insn);
	case OP_LOP3:
	case OP_ULOP3:
		/* Is there a bit in the result? Combined with nothing: or with !PT. */
		if (sass_field(insn, 87, 91) != 15 || sass_field(insn, 80, 81) || !constant_known(result))
			return unknown;
		return (struct constant){result.value != 0, result.from};
	default:
		return unknown;
	}
}

struct results {
	struct constant *place[5], value[5];
	unsigned count;
};

static void give(struct results *results, struct constant *place, struct constant value)
{
	results->place[results->count] = place;
	results->value[results->count++] = value;
}

static void give_register(struct constants *c, struct results *results, bool uniform, unsigned reg, struct constant value)
{
	if (uniform ? reg < c->program->machine.uniform_zero : reg < SASS_RZ)
		give(results, uniform ? &c->now.u[reg] : &c->now.r[reg], value);
}

/* Of bank 0, at a fixed place. */
static void load_constant(struct constants *c, const struct sass_insn *insn, struct results *results)
{
	static const uint8_t bytes[8] = {1, 1, 2, 2, 4, 4, 4, 4}, words[8] = {1, 1, 1, 1, 1, 2, 4, 0};
	bool uniform = insn->row->class == SASS_LOAD_CONST_UNIFORM, new = insn->base == OP_LDCU;
	unsigned size = sass_field(insn, 73, 76), mask = uniform ? c->program->machine.uniform_mask : 0xff;
	unsigned none = uniform ? c->program->machine.uniform_zero : SASS_RZ;
	uint32_t offset = new ? sass_field(insn, 37, 54) : sass_field(insn, 38, 54);
	bool fixed = insn->base == OP_ULDC || (insn->a & mask) == none;
	bool bound = new ? insn->form == 3 : insn->form == 5 && !insn->bit91;
	if (insn->base == OP_ULDC_INDEXED || !fixed || !bound || sass_field(insn, 54, 59) || sass_field(insn, 78, 82))
		return;
	for (unsigned i = 0; i < words[size]; i++)
		give_register(c, results, uniform, (insn->d & mask) + i,
		              param(c, offset + 4 * i, bytes[size], size == 1 || size == 3));
}

/* Can a product be the one factor as it stands? A factor that nothing is known of is taken for one that is not 1, as everywhere (README.md). */
static bool may_be_one(struct constant factor)
{
	return constant_known(factor) ? factor.value == 1 : constant_small(factor);
}

static void note_number(struct constants *c, struct constant operand, enum constants_fact fact)
{
	/* A literal of the code is seen as one anyway. */
	if (!constant_small(operand) || !operand.from)
		return;
	c->fact |= fact;
	c->fact_from = sets_join(&c->sets, c->fact_from, operand.from & ~CONSTANT_SMALL);
}

/* Factors, and counts of shifts. */
static void note_numbers(struct constants *c, const struct sass_insn *insn, const struct constant v[3])
{
	enum sass_class class = insn->row->class;
	bool multiplies = class == SASS_MULTIPLY || class == SASS_MULTIPLY_WIDE || class == SASS_MULTIPLY_HIGH;
	if (multiplies && !may_be_one(v[1]))
		note_number(c, v[0], FACT_NUMBER_A);
	if ((multiplies && !may_be_one(v[0])) || class == SASS_SHIFT)
		note_number(c, v[1], FACT_NUMBER_B);
}

/* CS2R of the register that is always 0. */
static void clear_registers(struct constants *c, const struct sass_insn *insn, struct results *results)
{
	if (sass_field(insn, 72, 80) != SASS_RZ)
		return;
	give_register(c, results, false, insn->d, zero);
	if (sass_field(insn, 80, 81))
		give_register(c, results, false, insn->d + 1u, zero);
}

/* The first bytes of the address space belong to nobody. */
static void note_null(struct constants *c, const struct sass_insn *insn)
{
	struct constant low = read_register(c, insn->a), high = read_register(c, insn->a + 1u);
	if (!constant_known(low) || !constant_known(high) || high.value || low.value >= PATHS_SMALL)
		return;
	c->fact |= FACT_NULL;
	c->fact_from = sets_join(&c->sets, c->fact_from, sets_join(&c->sets, low.from, high.from));
}

static void evaluate(struct constants *c, const struct sass_insn *insn, struct results *results)
{
	struct sass_operand operands[3];
	struct constant v[3];
	const struct sass_machine *machine = &c->program->machine;
	enum sass_class class = insn->row->class;
	if (class == SASS_LOAD_CONST || class == SASS_LOAD_CONST_UNIFORM) {
		load_constant(c, insn, results);
		return;
	}
	if ((insn->base == OP_R2UR || insn->base == OP_R2UR_EARLIER) && class == SASS_TO_UNIFORM) {
		if (insn->form == 1 && !sass_field(insn, 84, 85))
			give_register(c, results, true, insn->d & machine->uniform_mask, read_register(c, insn->a));
		return;
	}
	if (class == SASS_CLEAR_CS2R)
		clear_registers(c, insn, results);
	if (class == SASS_STORE || class == SASS_STORE_GENERIC || class == SASS_ATOMIC)
		note_null(c, insn);
	if (insn->base >= OP_UNIFORM_END || class == SASS_CLEAR_CS2R || (insn->uniform && insn->base < OP_UNIFORM) ||
	    sass_wide_modifier(machine, insn))
		return;
	sass_operands(machine, insn, operands);
	for (unsigned i = 0; i < 3; i++)
		v[i] = read_operand(c, &operands[i]);
	note_numbers(c, insn, v);
	struct constant result = arithmetic(c, insn, v, operands);
	if (class != SASS_COMPARE && class != SASS_NOTHING)
		give_register(c, results, insn->uniform, insn->uniform ? insn->d & machine->uniform_mask : insn->d,
		              result);
	struct constant predicate = predicate_result(c, insn, v, result);
	unsigned first = sass_field(insn, 81, 84);
	/* Two results in one predicate: which is the last is not known. */
	if (constant_known(predicate) && first != CONSTANTS_TRUE && first != sass_field(insn, 84, 87))
		give(results, &c->now.p[first + (insn->uniform ? CONSTANTS_UNIFORM : 0)], predicate);
}

/* Is it taken? A branch and an exit have a second predicate. */
static struct constant condition(struct constants *c, const struct sass_insn *insn)
{
	struct constant guard = guard_of(c, insn);
	if (insn->row->class != SASS_BRANCH && insn->row->class != SASS_EXIT)
		return guard;
	if (insn->row->class == SASS_BRANCH && (insn->form != 4 || insn->bit91))
		return unknown;
	return both(c, guard, read_predicate(c, insn, 87, false));
}

static void note_barrier(struct constants *c, const struct sass_insn *insn, bool certain)
{
	if (insn->row->class == SASS_ARM)
		c->now.armed[sass_field(insn, 16, 20)] =
			certain && sass_field(insn, 87, 91) == 7 ? c->program->links[c->insn] : CONSTANTS_ARMED_ANY;
	else if (insn->row->class == SASS_ARM_FROM_REGISTER)
		c->now.armed[sass_field(insn, 24, 28)] = CONSTANTS_ARMED_ANY;
}

void constants_step(struct constants *c, const struct sass_insn *insn)
{
	struct results results = {.count = 0};
	struct constant old[5];
	c->fact = 0;
	c->fact_from = 0;
	if (insn->never)
		return;
	struct constant runs = condition(c, insn);
	if (constant_known(runs)) {
		c->fact = runs.value ? FACT_ALWAYS : FACT_NEVER;
		c->fact_from = runs.from;
		if (!runs.value)
			return;
	}
	evaluate(c, insn, &results);
	for (unsigned i = 0; i < results.count; i++)
		old[i] = *results.place[i];
	constants_forget_written(c, insn);
	/* A guard that is not known, also of one whose condition is more than that: what it writes may stay. */
	for (unsigned i = 0; i < results.count; i++)
		*results.place[i] = constant_known(runs) ? results.value[i] : meet(c, old[i], results.value[i]);
	note_barrier(c, insn, constant_known(runs));
}
