/* Registers: moves and arithmetic. */
#include "shim/kernels/ptx_step.h"

bool ptx_value_join(struct ptx_program *program, struct ptx_value *into, struct ptx_value value)
{
	struct ptx_value old = *into;

	into->low = ptx_set_join(&program->sets, old.low, value.low);
	into->high = ptx_set_join(&program->sets, old.high, value.high);
	if (old.variable == PTX_UNSET) {
		into->variable = value.variable;
		into->offset = value.offset;
	} else if (value.variable != PTX_UNSET && (value.variable != old.variable || value.offset != old.offset)) {
		into->variable = PTX_MIXED;
		into->offset = 0;
	}
	return into->low != old.low || into->high != old.high || into->variable != old.variable || into->offset != old.offset;
}

static struct ptx_value variable_address(struct ptx_step *step, const struct ptx_operand *operand)
{
	struct ptx_program *program = step->program;
	uint32_t element;

	switch (program->variables[operand->id].space) {
	case PTX_LOCAL:
	case PTX_PARAM:
		element = ptx_set_one(&program->sets, ptx_element_variable(program, operand->id));
		return (struct ptx_value){element, element, operand->id, (uint32_t)operand->offset};
	case PTX_SHARED:
		element = ptx_set_one(&program->sets, ptx_element_shared(program));
		break;
	default:
		element = ptx_set_one(&program->sets, ptx_element_global(program));
	}
	return ptx_plain(element, element);
}

struct ptx_value ptx_read(struct ptx_step *step, const struct ptx_operand *operand)
{
	const struct ptx_function *function = step->function;
	struct ptx_value value = ptx_plain(0, 0);

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
			struct ptx_value item = ptx_read(step, &function->operands[operand->id + i]);

			value.low = ptx_join(step, value.low, item.low);
			value.high = ptx_join(step, value.high, item.high);
		}
		break;
	default:
		break;
	}
	return value;
}

struct ptx_value ptx_source(struct ptx_step *step, uint32_t index)
{
	return index < step->instruction->count ? ptx_read(step, &step->operands[index]) : ptx_plain(0, 0);
}

void ptx_write(struct ptx_step *step, const struct ptx_operand *operand, struct ptx_value value)
{
	struct ptx_function *function = step->function;
	uint32_t state;

	if (operand->kind != PTX_OPERAND_REGISTER || operand->memory)
		return;
	state = function->registers[operand->id].state;
	if (state == PTX_NONE)
		step->program->changed |= ptx_value_join(step->program, &function->values[operand->id], value);
	else if (step->instruction->flags & PTX_GUARDED)
		ptx_value_join(step->program, &step->current[state], value);
	else
		step->current[state] = value;
}

void ptx_write_all(struct ptx_step *step, const struct ptx_operand *operand, struct ptx_value value)
{
	if (operand->kind == PTX_OPERAND_VECTOR && !operand->memory)
		for (uint32_t i = 0; i < operand->count; i++)
			ptx_write(step, &step->function->operands[operand->id + i], value);
	else
		ptx_write(step, operand, value);
}

static bool is_wide(const struct ptx_step *step)
{
	return step->instruction->type.bytes >= 8 || (step->instruction->flags & PTX_WIDE);
}

/* A shift or position that is a number. */
static bool known(const struct ptx_step *step, uint32_t index, uint64_t *ret_number)
{
	if (index >= step->instruction->count || step->operands[index].kind != PTX_OPERAND_NUMBER)
		return false;
	*ret_number = (uint64_t)step->operands[index].offset;
	return true;
}

static struct ptx_value both(struct ptx_step *step, struct ptx_value a, struct ptx_value b)
{
	return ptx_plain(ptx_join(step, a.low, b.low), ptx_join(step, a.high, b.high));
}

static uint32_t whole(struct ptx_step *step, struct ptx_value value)
{
	return ptx_join(step, value.low, value.high);
}

/* mov with a vector on either side: what is first is low. */
static struct ptx_value gather(struct ptx_step *step, const struct ptx_operand *from)
{
	struct ptx_value value = ptx_plain(0, 0);

	for (uint32_t i = 0; i < from->count; i++) {
		struct ptx_value item = ptx_read(step, &step->function->operands[from->id + i]);
		uint32_t all = whole(step, item);

		if (step->instruction->type.bytes != 8 || i < (from->count + 1) / 2)
			value.low = ptx_join(step, value.low, all);
		if (step->instruction->type.bytes > 8 || (step->instruction->type.bytes == 8 && i >= from->count / 2))
			value.high = ptx_join(step, value.high, all);
	}
	return value;
}

static void scatter(struct ptx_step *step, const struct ptx_operand *to, struct ptx_value value)
{
	for (uint32_t i = 0; i < to->count; i++) {
		uint32_t part = i < to->count / 2 || step->instruction->type.bytes < 8 ? value.low : value.high;

		if (step->instruction->type.bytes > 8)
			value.low = value.high = part = whole(step, value);
		ptx_write(step, &step->function->operands[to->id + i],
		          ptx_plain(part, step->instruction->type.bytes > 8 ? part : 0));
	}
}

static void copy(struct ptx_step *step)
{
	const struct ptx_operand *to = &step->operands[0], *from = &step->operands[1];
	struct ptx_value value;

	if (step->instruction->count < 2)
		return;
	if (from->kind == PTX_OPERAND_VECTOR && to->kind == PTX_OPERAND_VECTOR) {
		value = ptx_read(step, from);
		ptx_write_all(step, to, ptx_plain(whole(step, value), whole(step, value)));
		return;
	}
	value = from->kind == PTX_OPERAND_VECTOR ? gather(step, from) : ptx_read(step, from);
	if (to->kind == PTX_OPERAND_VECTOR)
		scatter(step, to, value);
	else
		ptx_write(step, to, value);
}

/* cvta: a number in a window becomes an address there. */
static struct ptx_value address(struct ptx_step *step)
{
	struct ptx_program *program = step->program;
	struct ptx_value value = ptx_source(step, 1);
	uint32_t element = 0;

	if (!(step->instruction->flags & PTX_TO) && step->instruction->space == PTX_SHARED)
		element = ptx_set_one(&program->sets, ptx_element_shared(program));
	else if (!(step->instruction->flags & PTX_TO) && step->instruction->space == PTX_LOCAL)
		element = ptx_set_one(&program->sets, ptx_element_local(program));
	value.low = ptx_join(step, value.low, element);
	value.high = ptx_join(step, value.high, element);
	return value;
}

static struct ptx_value add(struct ptx_step *step)
{
	struct ptx_value a = ptx_source(step, 1), b = ptx_source(step, 2), sum = both(step, a, b);
	uint64_t number;
	bool minus = step->instruction->rule->class == PTX_SUBTRACT;

	if (minus) {
		ptx_note_compared(step, a, b);
		sum.low = ptx_join(step, a.low, ptx_weak(step, b.low));
		sum.high = ptx_join(step, a.high, ptx_weak(step, b.high));
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

static struct ptx_value multiply(struct ptx_step *step)
{
	struct ptx_value a = ptx_source(step, 1), b = ptx_source(step, 2);
	uint32_t low = ptx_weak(step, ptx_join(step, a.low, b.low));
	uint32_t high = ptx_weak(step, ptx_join(step, a.high, b.high));

	ptx_note_turned(step, a);
	ptx_note_turned(step, b);
	high = ptx_join(step, low, high);
	return ptx_plain(step->instruction->flags & PTX_HIGH ? high : low, is_wide(step) ? high : 0);
}

static struct ptx_value shift_left(struct ptx_step *step)
{
	struct ptx_value value = ptx_source(step, 1);
	uint64_t number = 1;
	bool fixed = known(step, 2, &number);

	if (fixed && number == 0)
		return value;
	if (!is_wide(step))
		return ptx_plain(ptx_weak(step, value.low), 0);
	if (fixed && number == 32)
		return ptx_plain(0, value.low);
	if (fixed && number > 32)
		return ptx_plain(0, ptx_weak(step, value.low));
	return ptx_plain(ptx_weak(step, value.low), ptx_weak(step, whole(step, value)));
}

/* What comes down may have been shifted up before: it counts as an address again. */
static struct ptx_value shift_right(struct ptx_step *step)
{
	struct ptx_sets *sets = &step->program->sets;
	struct ptx_value value = ptx_source(step, 1);
	uint64_t number = 1;
	bool fixed = known(step, 2, &number);

	if (!is_wide(step))
		return ptx_plain(ptx_set_strong(sets, value.low), 0);
	if (fixed && number == 32)
		return ptx_plain(value.high, 0);
	if (fixed && number > 32)
		return ptx_plain(ptx_set_strong(sets, value.high), 0);
	return ptx_plain(ptx_set_strong(sets, whole(step, value)), ptx_set_strong(sets, value.high));
}

/* bfi: inserts operand 1 into operand 2 at a position, so many bits. */
static struct ptx_value insert(struct ptx_step *step)
{
	struct ptx_value bits = ptx_source(step, 1), base = ptx_source(step, 2);
	uint64_t position = 0, length = 0;
	uint32_t all = whole(step, bits);

	base.variable = PTX_MIXED;
	base.offset = 0;
	if (!is_wide(step) || (known(step, 3, &position) && known(step, 4, &length) && position < 32 && length <= 32 - position)) {
		base.low = ptx_join(step, base.low, bits.low);
		return base;
	}
	if (!known(step, 3, &position) || position < 32)
		base.low = ptx_join(step, base.low, all);
	base.high = ptx_join(step, base.high, position >= 32 ? bits.low : all);
	return base;
}

static struct ptx_value convert(struct ptx_step *step)
{
	const struct ptx_instruction *instruction = step->instruction;
	struct ptx_value value = ptx_source(step, 1);

	if (instruction->type.is_float || instruction->second_type.is_float)
		return ptx_plain(0, 0);
	if (instruction->type.bytes < 8 || (instruction->second_type.bytes && instruction->second_type.bytes < 8))
		value.high = 0;
	return value;
}

/* and, or, select and the like; masks that clear a half are told apart because compilers cut with them. */
static struct ptx_value join(struct ptx_step *step)
{
	const struct ptx_rule *rule = step->instruction->rule;
	struct ptx_value a = ptx_source(step, 1), b = ptx_source(step, 2), value = both(step, a, b);
	uint64_t mask;

	if (rule->class == PTX_EXTREME) {
		ptx_note_compared(step, a, b);
		if (rule->name[0] == 'l')
			value = both(step, value, ptx_source(step, 3));
	}
	if (rule->name[0] == 'a' && rule->name[1] == 'n' && (known(step, 2, &mask) || known(step, 1, &mask))) {
		value.low = mask & UINT32_MAX ? value.low : 0;
		value.high = mask >> 32 ? value.high : 0;
	}
	return value;
}

static struct ptx_value all_sources(struct ptx_step *step)
{
	uint32_t all = 0;

	for (uint32_t i = 1; i < step->instruction->count; i++)
		all = ptx_join(step, all, whole(step, ptx_source(step, i)));
	return ptx_plain(all, is_wide(step) ? all : 0);
}

/* A sum or product of floats is no address any more. */
static bool is_float_arithmetic(const struct ptx_step *step)
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

static struct ptx_value result(struct ptx_step *step)
{
	struct ptx_value value;

	if (is_float_arithmetic(step))
		return ptx_plain(0, 0);
	switch (step->instruction->rule->class) {
	case PTX_ADDRESS:
		return address(step);
	case PTX_PASS:
		return ptx_source(step, 1);
	case PTX_UNION:
	case PTX_EXTREME:
		return join(step);
	case PTX_MIX:
		return all_sources(step);
	case PTX_PRODUCT:
		value = all_sources(step);
		return ptx_plain(ptx_weak(step, value.low), ptx_weak(step, value.high));
	case PTX_ADD:
	case PTX_SUBTRACT:
		return add(step);
	case PTX_MULTIPLY:
		return multiply(step);
	case PTX_MULTIPLY_ADD:
		return both(step, multiply(step), ptx_source(step, 3));
	case PTX_NEGATE:
		value = ptx_source(step, 1);
		if (step->instruction->type.is_float)
			return value;
		ptx_note_turned(step, value);
		return ptx_plain(ptx_weak(step, value.low), ptx_weak(step, value.high));
	case PTX_SHIFT_LEFT:
		return shift_left(step);
	case PTX_SHIFT_RIGHT:
		return shift_right(step);
	case PTX_INSERT:
		return insert(step);
	case PTX_CONVERT:
		return convert(step);
	default:
		return ptx_plain(0, 0);
	}
}

void ptx_step_arithmetic(struct ptx_step *step)
{
	uint32_t element;

	if (step->instruction->count == 0)
		return;
	switch (step->instruction->rule->class) {
	case PTX_COPY:
		copy(step);
		return;
	case PTX_ALLOCATE:
		element = ptx_set_one(&step->program->sets, ptx_element_local(step->program));
		ptx_write_all(step, &step->operands[0], ptx_plain(element, element));
		return;
	case PTX_COMPARE:
		if (!step->instruction->type.is_float && !step->instruction->second_type.is_float)
			ptx_note_compared(step, ptx_source(step, 1), ptx_source(step, 2));
		break;
	default:
		break;
	}
	ptx_write_all(step, &step->operands[0], result(step));
}
