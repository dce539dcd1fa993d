/* Registers: moves and arithmetic. */
#include "shim/kernels/ptx_step.h"

bool ptxa_value_join(struct ptxa_program *program, struct ptxa_value *into, struct ptxa_value value)
{
	struct ptxa_value old = *into;

	into->low = ptxa_set_join(&program->sets, old.low, value.low);
	into->high = ptxa_set_join(&program->sets, old.high, value.high);
	if (old.variable == PTX_UNSET) {
		into->variable = value.variable;
		into->offset = value.offset;
	} else if (value.variable != PTX_UNSET && (value.variable != old.variable || value.offset != old.offset)) {
		into->variable = PTX_MIXED;
		into->offset = 0;
	}
	return into->low != old.low || into->high != old.high || into->variable != old.variable ||
	       into->offset != old.offset;
}

static struct ptxa_value variable_address(struct ptxa_step *step, const struct ptxa_operand *operand)
{
	struct ptxa_program *program = step->program;
	uint32_t element;

	switch (program->variables[operand->id].space) {
	case PTX_LOCAL:
	case PTX_PARAM:
		element = ptxa_set_one(&program->sets, ptxa_element_variable(program, operand->id));
		return (struct ptxa_value){element, element, operand->id, (uint32_t)operand->offset};
	case PTX_SHARED:
		element = ptxa_set_one(&program->sets, ptxa_element_shared(program));
		break;
	default:
		element = ptxa_set_one(&program->sets, ptxa_element_global(program));
	}
	return ptxa_plain(element, element);
}

struct ptxa_value ptxa_read(struct ptxa_step *step, const struct ptxa_operand *operand)
{
	const struct ptxa_function *function = step->function;
	struct ptxa_value value = ptxa_plain(0, 0);

	switch (operand->kind) {
	case PTX_OPERAND_REGISTER:
		value = function->registers[operand->id].state == PTX_NONE
		                ? function->values[operand->id]
		                : step->current[function->registers[operand->id].state];
		if (operand->offset && value.variable < PTX_MIXED)
			value.offset += (uint32_t)operand->offset;
		break;
	case PTX_OPERAND_VARIABLE:
		return variable_address(step, operand);
	case PTX_OPERAND_VECTOR:
		for (uint32_t i = 0; i < operand->count; i++) {
			struct ptxa_value item = ptxa_read(step, &function->operands[operand->id + i]);

			value.low = ptxa_join(step, value.low, item.low);
			value.high = ptxa_join(step, value.high, item.high);
		}
		break;
	default:
		break;
	}
	return value;
}

struct ptxa_value ptxa_source(struct ptxa_step *step, uint32_t index)
{
	return index < step->instruction->count ? ptxa_read(step, &step->operands[index]) : ptxa_plain(0, 0);
}

void ptxa_write(struct ptxa_step *step, const struct ptxa_operand *operand, struct ptxa_value value)
{
	struct ptxa_function *function = step->function;
	uint32_t state;

	if (operand->kind != PTX_OPERAND_REGISTER || operand->memory)
		return;
	state = function->registers[operand->id].state;
	if (state == PTX_NONE)
		step->program->changed |= ptxa_value_join(step->program, &function->values[operand->id], value);
	else if (step->instruction->flags & PTX_GUARDED && !(step->fact & PTX_FACT_ALWAYS))
		ptxa_value_join(step->program, &step->current[state], value);
	else
		step->current[state] = value;
}

void ptxa_write_all(struct ptxa_step *step, const struct ptxa_operand *operand, struct ptxa_value value)
{
	if (operand->kind == PTX_OPERAND_VECTOR && !operand->memory)
		for (uint32_t i = 0; i < operand->count; i++)
			ptxa_write(step, &step->function->operands[operand->id + i], value);
	else
		ptxa_write(step, operand, value);
}

static bool is_wide(const struct ptxa_step *step)
{
	return step->instruction->type.bytes >= 8 || (step->instruction->flags & PTX_WIDE);
}

/* A shift or position that is a number. */
static bool known(const struct ptxa_step *step, uint32_t index, uint64_t *ret_number)
{
	if (index >= step->instruction->count || step->operands[index].kind != PTX_OPERAND_NUMBER)
		return false;
	*ret_number = (uint64_t)step->operands[index].offset;
	return true;
}

static struct ptxa_value both(struct ptxa_step *step, struct ptxa_value a, struct ptxa_value b)
{
	return ptxa_plain(ptxa_join(step, a.low, b.low), ptxa_join(step, a.high, b.high));
}

static uint32_t whole(struct ptxa_step *step, struct ptxa_value value)
{
	return ptxa_join(step, value.low, value.high);
}

/* mov with a vector on either side: what is first is low. */
static struct ptxa_value gather(struct ptxa_step *step, const struct ptxa_operand *from)
{
	struct ptxa_value value = ptxa_plain(0, 0);

	for (uint32_t i = 0; i < from->count; i++) {
		struct ptxa_value item = ptxa_read(step, &step->function->operands[from->id + i]);
		uint32_t all = whole(step, item);

		if (step->instruction->type.bytes != 8 || i < (from->count + 1) / 2)
			value.low = ptxa_join(step, value.low, all);
		if (step->instruction->type.bytes > 8 || (step->instruction->type.bytes == 8 && i >= from->count / 2))
			value.high = ptxa_join(step, value.high, all);
	}
	return value;
}

static void scatter(struct ptxa_step *step, const struct ptxa_operand *to, struct ptxa_value value)
{
	for (uint32_t i = 0; i < to->count; i++) {
		uint32_t part = i < to->count / 2 || step->instruction->type.bytes < 8 ? value.low : value.high;

		if (step->instruction->type.bytes > 8)
			value.low = value.high = part = whole(step, value);
		ptxa_write(step, &step->function->operands[to->id + i],
		           ptxa_plain(part, step->instruction->type.bytes > 8 ? part : 0));
	}
}

static void copy(struct ptxa_step *step)
{
	const struct ptxa_operand *to = &step->operands[0], *from = &step->operands[1];
	struct ptxa_value value;

	if (step->instruction->count < 2)
		return;
	if (from->kind == PTX_OPERAND_VECTOR && to->kind == PTX_OPERAND_VECTOR) {
		value = ptxa_read(step, from);
		ptxa_write_all(step, to, ptxa_plain(whole(step, value), whole(step, value)));
		return;
	}
	value = from->kind == PTX_OPERAND_VECTOR ? gather(step, from) : ptxa_read(step, from);
	if (to->kind == PTX_OPERAND_VECTOR)
		scatter(step, to, value);
	else
		ptxa_write(step, to, value);
}

/* cvta: a number in a window becomes an address there. */
static struct ptxa_value address(struct ptxa_step *step)
{
	struct ptxa_program *program = step->program;
	struct ptxa_value value = ptxa_source(step, 1);
	uint32_t element = 0;

	if (!(step->instruction->flags & PTX_TO) && step->instruction->space == PTX_SHARED)
		element = ptxa_set_one(&program->sets, ptxa_element_shared(program));
	else if (!(step->instruction->flags & PTX_TO) && step->instruction->space == PTX_LOCAL)
		element = ptxa_set_one(&program->sets, ptxa_element_local(program));
	value.low = ptxa_join(step, value.low, element);
	value.high = ptxa_join(step, value.high, element);
	return value;
}

static struct ptxa_value add(struct ptxa_step *step)
{
	struct ptxa_value a = ptxa_source(step, 1), b = ptxa_source(step, 2), sum = both(step, a, b);
	uint64_t number;
	bool minus = step->instruction->rule->class == PTX_SUBTRACT;

	if (minus) {
		ptxa_note_compared(step, a, b);
		sum.low = ptxa_join(step, a.low, ptxa_weak(step, b.low));
		sum.high = ptxa_join(step, a.high, ptxa_weak(step, b.high));
	}
	if (known(step, 2, &number) && a.variable != PTX_MIXED) {
		sum.variable = a.variable;
		sum.offset = a.offset + (uint32_t)(minus ? -number : number);
	} else if (!minus && known(step, 1, &number) && b.variable != PTX_MIXED) {
		sum.variable = b.variable;
		sum.offset = b.offset + (uint32_t)number;
	}
	if (sum.variable == PTX_UNSET)
		sum.offset = 0;
	return sum;
}

/* An odd factor has an inverse, and of two that undo each other one is large. Indices have no such factors, and few negative ones. */
static bool may_undo(const struct ptxa_step *step)
{
	uint64_t factor;

	if (!known(step, 2, &factor) && !known(step, 1, &factor))
		return false;
	return (int64_t)factor < 0 || ((factor & 1) && factor > 0x10000);
}

static struct ptxa_value multiply(struct ptxa_step *step)
{
	struct ptxa_value a = ptxa_source(step, 1), b = ptxa_source(step, 2);
	uint32_t low = ptxa_join(step, a.low, b.low), high = ptxa_join(step, a.high, b.high);
	bool undoes = may_undo(step);

	low = undoes ? ptxa_set_strong(&step->program->sets, low) : ptxa_weak(step, low);
	high = undoes ? ptxa_set_strong(&step->program->sets, high) : ptxa_weak(step, high);

	ptxa_note_turned(step, a);
	ptxa_note_turned(step, b);
	high = ptxa_join(step, low, high);
	return ptxa_plain(step->instruction->flags & PTX_HIGH ? high : low, is_wide(step) ? high : 0);
}

static struct ptxa_value shift_left(struct ptxa_step *step)
{
	struct ptxa_value value = ptxa_source(step, 1);
	uint64_t number = 1;
	bool fixed = known(step, 2, &number);

	if (fixed && number == 0)
		return value;
	if (!is_wide(step))
		return ptxa_plain(ptxa_weak(step, value.low), 0);
	if (fixed && number == 32)
		return ptxa_plain(0, value.low);
	if (fixed && number > 32)
		return ptxa_plain(0, ptxa_weak(step, value.low));
	return ptxa_plain(ptxa_weak(step, value.low), ptxa_weak(step, whole(step, value)));
}

/* What comes down may have been shifted up before: it counts as an address again. */
static struct ptxa_value shift_right(struct ptxa_step *step)
{
	struct ptxa_sets *sets = &step->program->sets;
	struct ptxa_value value = ptxa_source(step, 1);
	uint64_t number = 1;
	bool fixed = known(step, 2, &number);

	if (!is_wide(step))
		return ptxa_plain(ptxa_set_strong(sets, value.low), 0);
	if (fixed && number == 32)
		return ptxa_plain(value.high, 0);
	if (fixed && number > 32)
		return ptxa_plain(ptxa_set_strong(sets, value.high), 0);
	return ptxa_plain(ptxa_set_strong(sets, whole(step, value)), ptxa_set_strong(sets, value.high));
}

/* bfi: inserts operand 1 into operand 2 at a position, so many bits. */
static struct ptxa_value insert(struct ptxa_step *step)
{
	struct ptxa_value bits = ptxa_source(step, 1), base = ptxa_source(step, 2);
	uint64_t position = 0, length = 0;
	uint32_t all = whole(step, bits);

	base.variable = PTX_MIXED;
	base.offset = 0;
	if (!is_wide(step) ||
	    (known(step, 3, &position) && known(step, 4, &length) && position < 32 && length <= 32 - position)) {
		base.low = ptxa_join(step, base.low, bits.low);
		return base;
	}
	if (!known(step, 3, &position) || position < 32)
		base.low = ptxa_join(step, base.low, all);
	base.high = ptxa_join(step, base.high, position >= 32 ? bits.low : all);
	return base;
}

static struct ptxa_value convert(struct ptxa_step *step)
{
	const struct ptxa_instruction *instruction = step->instruction;
	struct ptxa_value value = ptxa_source(step, 1);

	/* A double holds each address exactly, and rounding it to a whole number keeps it. */
	if (instruction->type.is_float || instruction->second_type.is_float) {
		uint32_t all = whole(step, value);

		return ptxa_plain(all, is_wide(step) ? all : 0);
	}
	if (instruction->type.bytes < 8 || (instruction->second_type.bytes && instruction->second_type.bytes < 8))
		value.high = 0;
	return value;
}

/* and, or, select and the like; masks that clear a half are told apart because compilers cut with them. */
static struct ptxa_value join(struct ptxa_step *step)
{
	const struct ptxa_rule *rule = step->instruction->rule;
	struct ptxa_value a = ptxa_source(step, 1), b = ptxa_source(step, 2), value = both(step, a, b);
	uint64_t mask;

	if (rule->class == PTX_EXTREME) {
		ptxa_note_compared(step, a, b);
		if (rule->name[0] == 'l')
			value = both(step, value, ptxa_source(step, 3));
	}
	if (rule->name[0] == 'a' && rule->name[1] == 'n' && (known(step, 2, &mask) || known(step, 1, &mask))) {
		value.low = mask & UINT32_MAX ? value.low : 0;
		value.high = mask >> 32 ? value.high : 0;
	}
	return value;
}

static struct ptxa_value all_sources(struct ptxa_step *step)
{
	uint32_t all = 0;

	for (uint32_t i = 1; i < step->instruction->count; i++)
		all = ptxa_join(step, all, whole(step, ptxa_source(step, i)));
	return ptxa_plain(all, is_wide(step) ? all : 0);
}

/* A sum or product of floats is no address any more. */
static bool is_float_arithmetic(const struct ptxa_step *step)
{
	switch (step->instruction->rule->class) {
	case PTX_ADD:
	case PTX_SUBTRACT:
	case PTX_MULTIPLY:
	case PTX_MULTIPLY_ADD:
	case PTX_PRODUCT:
		return step->instruction->type.is_float;
	default:
		return false;
	}
}

static struct ptxa_value result(struct ptxa_step *step)
{
	struct ptxa_value value;

	if (is_float_arithmetic(step))
		return ptxa_plain(0, 0);
	switch (step->instruction->rule->class) {
	case PTX_ADDRESS:
		return address(step);
	case PTX_PASS:
		return ptxa_source(step, 1);
	case PTX_UNION:
	case PTX_EXTREME:
		if (step->fact & (PTX_FACT_FIRST | PTX_FACT_SECOND))
			return ptxa_source(step, step->fact & PTX_FACT_FIRST ? 1 : 2);
		return join(step);
	case PTX_MIX:
		return all_sources(step);
	case PTX_PRODUCT:
		value = all_sources(step);
		return ptxa_plain(ptxa_weak(step, value.low), ptxa_weak(step, value.high));
	case PTX_ADD:
	case PTX_SUBTRACT:
		return add(step);
	case PTX_MULTIPLY:
		return multiply(step);
	case PTX_MULTIPLY_ADD:
		return both(step, multiply(step), ptxa_source(step, 3));
	case PTX_NEGATE:
		value = ptxa_source(step, 1);
		if (step->instruction->type.is_float)
			return value;
		ptxa_note_turned(step, value);
		return ptxa_plain(ptxa_weak(step, value.low), ptxa_weak(step, value.high));
	case PTX_SHIFT_LEFT:
		return shift_left(step);
	case PTX_SHIFT_RIGHT:
		return shift_right(step);
	case PTX_INSERT:
		return insert(step);
	case PTX_CONVERT:
		return convert(step);
	default:
		return ptxa_plain(0, 0);
	}
}

void ptxa_step_arithmetic(struct ptxa_step *step)
{
	uint32_t element;

	if (step->instruction->count == 0)
		return;
	switch (step->instruction->rule->class) {
	case PTX_COPY:
		copy(step);
		return;
	case PTX_ALLOCATE:
		element = ptxa_set_one(&step->program->sets, ptxa_element_local(step->program));
		ptxa_write_all(step, &step->operands[0], ptxa_plain(element, element));
		return;
	case PTX_COMPARE:
		if (!step->instruction->type.is_float && !step->instruction->second_type.is_float)
			ptxa_note_compared(step, ptxa_source(step, 1), ptxa_source(step, 2));
		break;
	default:
		break;
	}
	ptxa_write_all(step, &step->operands[0], result(step));
}
