/*
 * For given values of the parameters: which guards and selections of the entry they decide. Registers that are assigned in one place, without a guard, have one value
 * wherever it may be read: that of the expression they stand for, down to parameters and numbers. Others are not known.
 */
#include <stdlib.h>
#include <string.h>

#include "shim/kernels/ptx_code.h"

#define DEEP 64 /* of one expression */

struct constant {
	bool known;
	uint64_t value; /* that of its register; above that copies of its sign, or 0: who reads it cuts it to a type */
	uint32_t from;  /* a set of bytes of the parameters */
};

struct expressions {
	struct ptxa_program *program;
	const struct ptxa_function *entry;
	struct ptxa_sets sets;
	uint32_t *definition; /* register: the instruction that assigns it, PTX_NONE: none, or not known */
	struct constant *values;
	bool *visited;
	unsigned depth;
	uint32_t missed; /* a set, as paths_values.missed */
};

static const struct constant unknown = {false, 0, 0};

static struct constant evaluate(struct expressions *e, uint32_t number);

static uint64_t cut(uint64_t value, unsigned bytes)
{
	return bytes < 8 ? value & (((uint64_t)1 << 8 * bytes) - 1) : value;
}

static int64_t extend(uint64_t value, unsigned bytes)
{
	unsigned left = 64 - 8 * bytes;

	return (int64_t)(value << left) >> left;
}

static struct constant made(struct expressions *e, uint64_t value, struct constant a, struct constant b)
{
	if (!a.known || !b.known)
		return unknown;
	return (struct constant){true, value, ptxa_set_join(&e->sets, a.from, b.from)};
}

static struct constant read(struct expressions *e, const struct ptxa_operand *operand)
{
	if (operand->memory || operand->inverted)
		return unknown;
	if (operand->kind == PTX_OPERAND_NUMBER)
		return (struct constant){true, (uint64_t)operand->offset, 0};
	return operand->kind == PTX_OPERAND_REGISTER && !operand->offset ? evaluate(e, operand->id) : unknown;
}

static struct constant source(struct expressions *e, const struct ptxa_instruction *instruction, uint32_t index)
{
	return index < instruction->count ? read(e, &e->entry->operands[instruction->first + index]) : unknown;
}

/* ld.param of a number. */
static struct constant load(struct expressions *e, const struct ptxa_instruction *instruction)
{
	const struct paths_values *values = e->program->values;
	const struct ptxa_operand *from = &e->entry->operands[instruction->first + 1];
	unsigned bytes = instruction->type.bytes;
	struct constant result = {true, 0, 0};
	uint64_t place;

	if (instruction->count != 2 || instruction->space != PTX_PARAM || instruction->has_second || !from->memory ||
	    from->kind != PTX_OPERAND_VARIABLE || from->inverted || from->offset < 0 || bytes > 8 || !bytes)
		return unknown;
	const struct ptxa_variable *variable = &e->program->variables[from->id];
	place = (uint64_t)variable->place + (uint64_t)from->offset;
	if (variable->place == PTX_NONE || place + bytes > values->count ||
	    (uint64_t)from->offset + bytes > variable->bytes)
		return unknown;
	for (unsigned i = 0; i < bytes; i++) {
		if (values->known[place + i] != VALUE_EXACT)
			return unknown;
		result.value |= (uint64_t)values->bytes[place + i] << 8 * i;
	}
	if (instruction->type.is_signed)
		result.value = (uint64_t)extend(result.value, bytes);
	result.from = ptxa_set_row(&e->sets, (uint32_t)place, bytes, 1);
	return result;
}

/* A type of those kinds at `text`: .u32, .s64, .pred... NULL: another word; else what follows. Texts do not end within an instruction. */
static const char *type_at(const char *text, const char *kinds)
{
	static const char *const widths[] = {"8", "16", "32", "64"};

	if (*text++ != '.')
		return NULL;
	if (strchr(kinds, 'p') && !strncmp(text, "pred", 4))
		return text + 4;
	if (*text != 'u' && *text != 's' && *text != 'b')
		return NULL;
	for (size_t i = 0; strchr(kinds, *text) && i < sizeof(widths) / sizeof(widths[0]); i++)
		if (!strncmp(text + 1, widths[i], strlen(widths[i])))
			return text + 1 + strlen(widths[i]);
	return NULL;
}

/* Nothing but a type follows the name: no carry, saturation, second comparison, or halves of a word by themselves. */
static bool plain(const char *text, const char *name, const char *kinds)
{
	if (strncmp(text, name, strlen(name)) != 0)
		return false;
	text = type_at(text + strlen(name), kinds);
	return text && strchr(" \t\r\n", *text) && *text;
}

static struct constant compare(struct expressions *e, const struct ptxa_instruction *instruction)
{
	static const struct {
		const char *name;
		bool less, equal, more, is_unsigned;
	} relations[] = {
		{"eq", false, true, false, false}, {"ne", true, false, true, false},  {"lt", true, false, false, false},
		{"le", true, true, false, false},  {"gt", false, false, true, false}, {"ge", false, true, true, false},
		{"lo", true, false, false, true},  {"ls", true, true, false, true},   {"hi", false, false, true, true},
		{"hs", false, true, true, true},
	};
	struct constant a = source(e, instruction, 1), b = source(e, instruction, 2);
	unsigned bytes = instruction->type.bytes;
	const char *text = instruction->text;

	if (!a.known || !b.known || instruction->count != 3 || strncmp(text, "setp.", 5) != 0)
		return unknown;
	for (size_t i = 0; i < sizeof(relations) / sizeof(relations[0]); i++) {
		if (!plain(text + 5, relations[i].name, "usb"))
			continue;
		uint64_t x = cut(a.value, bytes), y = cut(b.value, bytes);
		bool less = instruction->type.is_signed && !relations[i].is_unsigned
		                    ? extend(x, bytes) < extend(y, bytes)
		                    : x < y;
		bool is = x == y ? relations[i].equal : less ? relations[i].less : relations[i].more;

		return made(e, is, a, b);
	}
	return unknown;
}

static struct constant both(struct expressions *e, struct constant a, struct constant b, bool stops)
{
	/* One of the two may be enough. */
	if (a.known && (a.value & 1) == stops)
		return (struct constant){true, stops, a.from};
	if (b.known && (b.value & 1) == stops)
		return (struct constant){true, stops, b.from};
	if (a.known != b.known)
		e->missed = ptxa_set_join(&e->sets, e->missed, a.known ? a.from : b.from);
	return made(e, !stops, a, b);
}

static struct constant logic(struct expressions *e, const struct ptxa_instruction *instruction)
{
	struct constant a = source(e, instruction, 1), b = source(e, instruction, 2);
	bool predicates = instruction->type.is_predicate;

	if (instruction->count != 3)
		return unknown;
	if (plain(instruction->text, "and", "bp"))
		return predicates ? both(e, a, b, false) : made(e, a.value & b.value, a, b);
	if (plain(instruction->text, "or", "bp"))
		return predicates ? both(e, a, b, true) : made(e, a.value | b.value, a, b);
	if (plain(instruction->text, "xor", "bp"))
		return made(e, a.value ^ b.value, a, b);
	return unknown;
}

/* Of registers' widths: what is cut to its type afterwards. */
static struct constant result(struct expressions *e, const struct ptxa_instruction *instruction)
{
	struct constant a, b;
	unsigned bytes = instruction->type.bytes;
	const char *text = instruction->text;

	switch (instruction->rule->class) {
	case PTX_LOAD:
		return load(e, instruction);
	case PTX_COMPARE:
		return compare(e, instruction);
	case PTX_COPY:
		return instruction->count == 2 && plain(text, "mov", "usbp") ? source(e, instruction, 1) : unknown;
	case PTX_CONVERT:
		a = source(e, instruction, 1);
		if (instruction->count != 2 || !a.known || strncmp(text, "cvt", 3) != 0)
			return unknown;
		/* cvt.TO.FROM, without a rounding or a saturation. */
		text = type_at(text + 3, "us");
		if (!text || !plain(text, "", "us"))
			return unknown;
		a.value = cut(a.value, instruction->second_type.bytes);
		if (instruction->second_type.is_signed)
			a.value = (uint64_t)extend(a.value, instruction->second_type.bytes);
		/* The register may be wider than the type that it is cut to: cvt.s8.s32 fills it with the sign. */
		a.value = instruction->type.is_signed ? (uint64_t)extend(a.value, bytes) : cut(a.value, bytes);
		return a;
	case PTX_ADD:
	case PTX_SUBTRACT:
		a = source(e, instruction, 1), b = source(e, instruction, 2);
		if (instruction->count != 3 || (!plain(text, "add", "us") && !plain(text, "sub", "us")))
			return unknown;
		return made(e, text[0] == 'a' ? a.value + b.value : a.value - b.value, a, b);
	case PTX_SHIFT_LEFT:
	case PTX_SHIFT_RIGHT:
		a = source(e, instruction, 1), b = source(e, instruction, 2);
		if (instruction->count != 3 || (!plain(text, "shl", "b") && !plain(text, "shr", "usb")) || !b.known ||
		    b.value >= 8 * bytes)
			return unknown;
		if (text[2] == 'l')
			return made(e, a.value << b.value, a, b);
		return made(e,
		            instruction->type.is_signed ? (uint64_t)(extend(a.value, bytes) >> b.value)
		                                        : cut(a.value, bytes) >> b.value,
		            a, b);
	case PTX_NEGATE:
		a = source(e, instruction, 1);
		return instruction->count == 2 && plain(text, "not", "bp") ? made(e, ~a.value, a, a) : unknown;
	case PTX_UNION:
	case PTX_EXTREME:
		if (!plain(text, "selp", "usb"))
			return logic(e, instruction);
		a = source(e, instruction, 3);
		b = source(e, instruction, a.value & 1 ? 1 : 2);
		return instruction->count == 4 ? made(e, b.value, a, b) : unknown;
	default:
		return unknown;
	}
}

static struct constant evaluate(struct expressions *e, uint32_t number)
{
	const struct ptxa_instruction *instruction;
	struct constant value;

	/* What is being worked out is not known meanwhile: a register that depends on itself. */
	if (e->visited[number] || e->definition[number] == PTX_NONE || e->depth == DEEP)
		return e->visited[number] ? e->values[number] : unknown;
	e->visited[number] = true;
	e->depth++;
	instruction = &e->entry->code[e->definition[number]];
	value = result(e, instruction);
	e->depth--;
	if (instruction->type.is_predicate || instruction->rule->class == PTX_COMPARE)
		value.value &= 1;
	else if (instruction->rule->class != PTX_LOAD && instruction->rule->class != PTX_CONVERT)
		value.value = cut(value.value, instruction->type.bytes);
	e->values[number] = value;
	return value;
}

/* No vectors, no floats, no results of calls: one register, one instruction that always assigns it. */
static void find_definitions(struct expressions *e)
{
	const struct ptxa_function *entry = e->entry;

	for (uint32_t i = 0; i < entry->register_count; i++)
		e->definition[i] = PTX_NONE;
	for (uint32_t i = 0; i < entry->code_count; i++) {
		const struct ptxa_instruction *instruction = &entry->code[i];
		const struct ptxa_operand *to = &entry->operands[instruction->first];

		if (!instruction->count || to->kind != PTX_OPERAND_REGISTER || to->memory || to->inverted ||
		    instruction->flags & PTX_GUARDED || instruction->type.is_float || instruction->second_type.is_float ||
		    !instruction->type.bytes || instruction->type.bytes > 8 || entry->registers[to->id].definitions != 1)
			continue;
		e->definition[to->id] = i;
	}
}

static void decide(struct expressions *e)
{
	struct ptxa_program *program = e->program;
	uint32_t used = 0;

	for (uint32_t i = 0; i < e->entry->code_count; i++) {
		const struct ptxa_instruction *instruction = &e->entry->code[i];
		struct constant guard = unknown, choice = unknown;

		if (instruction->guard != PTX_NONE)
			guard = evaluate(e, instruction->guard);
		if (plain(instruction->text, "selp", "usb") && instruction->count == 4)
			choice = source(e, instruction, 3);
		if (guard.known) {
			bool runs = (guard.value & 1) != instruction->guard_inverted;

			program->facts[i] |= runs ? PTX_FACT_ALWAYS : PTX_FACT_NEVER;
			used = ptxa_set_join(&e->sets, used, guard.from);
		}
		if (choice.known) {
			program->facts[i] |= choice.value & 1 ? PTX_FACT_FIRST : PTX_FACT_SECOND;
			used = ptxa_set_join(&e->sets, used, choice.from);
		}
	}
	for (size_t i = 0; i < program->values->count; i++) {
		program->values->used[i] = ptxa_set_has(&e->sets, used, (uint32_t)i) ? VALUE_EXACT : VALUE_UNKNOWN;
		if (program->values->missed)
			program->values->missed[i] = ptxa_set_has(&e->sets, e->missed, (uint32_t)i) ? VALUE_EXACT
			                                                                            : VALUE_UNKNOWN;
	}
}

bool ptxa_constants(struct ptxa_program *program)
{
	const struct ptxa_function *entry = &program->functions[program->entry];
	struct expressions e = {.program = program, .entry = entry};
	size_t registers = entry->register_count + (size_t)1;
	bool good;

	program->facts = calloc(entry->code_count + (size_t)1, 1);
	e.definition = calloc(registers, sizeof(*e.definition));
	e.values = calloc(registers, sizeof(*e.values));
	e.visited = calloc(registers, sizeof(*e.visited));
	good = !ptxa_sets_start(&e.sets) && program->facts && e.definition && e.values && e.visited;
	if (good) {
		find_definitions(&e);
		decide(&e);
	}
	/* Past a limit of sets nothing is decided. */
	if (good && e.sets.error) {
		memset(program->facts, 0, entry->code_count);
		memset(program->values->used, 0, program->values->count);
		if (program->values->missed)
			memset(program->values->missed, 0, program->values->count);
	}
	ptxa_sets_end(&e.sets);
	free(e.definition);
	free(e.values);
	free(e.visited);
	return good || ptxa_no_memory(program);
}
