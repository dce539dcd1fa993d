/*
 * From a statement to instructions: the rules by name, and what every decoder needs to look at modifiers and
 * operands.
 */
#include <stdio.h>
#include <string.h>

#include "tests/softgpu/ptx/load.h"

bool ptx_bad(struct statement *statement, const char *why)
{
	return ptx_text_fail_at(text_of(statement->loader), statement->line, PTX_INVALID, "%.*s: %s",
	                        SLICE(statement->opcode), why);
}

static void spell(const struct statement *statement, char *name, size_t bytes)
{
	size_t used = (size_t)snprintf(name, bytes, "%.*s", SLICE(statement->opcode));

	for (unsigned n = 0; n < statement->modifier_count && used < bytes; n++)
		used += (size_t)snprintf(name + used, bytes - used, ".%.*s", SLICE(statement->modifiers[n]));
}

bool ptx_unsupported(struct statement *statement, const char *why)
{
	char name[160];

	spell(statement, name, sizeof(name));
	return ptx_text_fail_at(text_of(statement->loader), statement->line, PTX_UNSUPPORTED,
	                        "instruction '%s' is not supported%s%s", name, why ? ": " : "", why ? why : "");
}

bool ptx_modifier(struct statement *statement, const char *word)
{
	for (unsigned n = 0; n < statement->modifier_count; n++)
		if (!statement->used[n] && slice_is(statement->modifiers[n], word)) {
			statement->used[n] = true;
			return true;
		}
	return false;
}

enum ptx_type ptx_modifier_type(struct statement *statement)
{
	for (unsigned n = 0; n < statement->modifier_count; n++) {
		enum ptx_type type = statement->used[n] ? TY_NONE : ptx_type_named(statement->modifiers[n]);

		if (type != TY_NONE) {
			statement->used[n] = true;
			return type;
		}
	}
	return TY_NONE;
}

bool ptx_operand_count(struct statement *statement, unsigned least, unsigned most)
{
	if (statement->operand_count >= least && statement->operand_count <= most)
		return true;
	return ptx_bad(statement, "wrong number of operands");
}

bool ptx_put(struct statement *statement, struct insn insn)
{
	if (!insn.run)
		return ptx_unsupported(statement, NULL);
	for (unsigned n = 0; n < statement->modifier_count; n++)
		if (!statement->used[n])
			return ptx_unsupported(statement, NULL);
	return ptx_emit(statement->loader, statement, insn);
}

/* The same for every lane and without the statement's guard: results that only this statement reads. */
static bool put_helper(struct statement *statement, struct insn insn)
{
	struct loader *loader = statement->loader;

	if (!ptx_emit(loader, NULL, insn))
		return false;
	loader->function->code[loader->function->code_count - 1].line = (uint32_t)statement->line;
	return true;
}

/* A temporary: slot <- base + offset, in 64 bits cut to the width. */
static bool put_sum(struct statement *statement, uint32_t base, uint64_t offset, enum ptx_type type, uint32_t *ret_operand)
{
	struct insn insn = INSN_INIT;

	insn.run = ptx_step_int(INT_ADD, ptx_type_bytes(type) == 8 ? TY_U64 : TY_U32);
	insn.a = base;
	if (!ptx_constant(statement->loader, offset, &insn.b) || !ptx_register_new(statement->loader, &insn.d))
		return false;
	*ret_operand = insn.d;
	return put_helper(statement, insn);
}

static bool variable_value(struct statement *statement, const struct operand *operand, enum ptx_type type,
                           uint32_t *ret_operand)
{
	const struct symbol *symbol = operand->symbol;
	uint64_t address = symbol->address + operand->offset;
	unsigned bytes = ptx_type_bytes(type);

	if (ptx_type_is_float(type) || bytes < 4)
		return ptx_bad(statement, "an address where another type is due");
	if (bytes == 4 && (symbol->space == SPACE_GLOBAL || symbol->space == SPACE_CONST))
		return ptx_bad(statement, "a 64-bit address where 32 bits are due");
	if (symbol->is_dynamic)
		return put_sum(statement, OPERAND(BANK_SPECIAL, SP_DYNAMIC_BASE), operand->offset, type, ret_operand);
	if (symbol->space == SPACE_LOCAL && !statement->loader->function->entry)
		return put_sum(statement, LOCAL_BASE, address, type, ret_operand);
	return ptx_constant(statement->loader, address, ret_operand);
}

static bool not_declared(struct statement *statement, const struct operand *operand)
{
	return ptx_text_fail_at(text_of(statement->loader), statement->line, PTX_INVALID, "'%.*s' is not declared",
	                        SLICE(operand->name));
}

static bool negate(struct statement *statement, uint32_t *operand)
{
	struct insn insn = INSN_INIT;

	insn.run = ptx_step_bit(BIT_NOT, TY_PRED);
	insn.a = *operand;
	if (!ptx_register_new(statement->loader, &insn.d))
		return false;
	*operand = insn.d;
	return put_helper(statement, insn);
}

static bool read_clock(struct statement *statement, const struct operand *operand, uint32_t *ret_operand)
{
	struct insn insn = INSN_INIT;

	insn.run = ptx_step_misc(BIT_CLOCK);
	insn.op = (uint8_t)operand->special;
	if (!ptx_register_new(statement->loader, &insn.d))
		return false;
	*ret_operand = insn.d;
	return put_helper(statement, insn);
}

static bool source(struct statement *statement, struct operand *operand, enum ptx_type type, bool wide,
                   uint32_t *ret_operand)
{
	unsigned bytes = ptx_type_bytes(type), own = ptx_type_bytes(operand->type);
	uint64_t bits;

	switch (operand->kind) {
	case OPERAND_REGISTER:
	case OPERAND_CLOCK:
		if ((operand->type == TY_PRED) != (type == TY_PRED))
			return ptx_bad(statement, "a predicate and a number are mixed up");
		/* Special registers may be read narrower, as old code does. */
		if (own != bytes && !(wide && own > bytes) && operand->operand >> 30 != BANK_SPECIAL)
			return ptx_bad(statement, "an operand's width is not the instruction's");
		if (operand->kind == OPERAND_CLOCK)
			return read_clock(statement, operand, ret_operand);
		*ret_operand = operand->operand;
		return !operand->negated || type == TY_PRED ? !operand->negated || negate(statement, ret_operand)
		                                            : ptx_bad(statement, "'!' is for predicates");
	case OPERAND_CONSTANT:
		if (!operand->constant.is_float)
			operand->constant.bits += operand->offset;
		return ptx_constant_as(statement->loader, statement->line, &operand->constant, type, &bits) &&
		       ptx_constant(statement->loader, bits, ret_operand);
	case OPERAND_VARIABLE:
		return variable_value(statement, operand, type, ret_operand);
	case OPERAND_FUNCTION:
		return ptx_unsupported(statement, "the address of a function");
	case OPERAND_NAME:
		return not_declared(statement, operand);
	default:
		return ptx_bad(statement, "this operand cannot be read");
	}
}

bool ptx_source(struct statement *statement, unsigned index, enum ptx_type type, uint32_t *ret_operand)
{
	return source(statement, &statement->operands[index], type, false, ret_operand);
}

bool ptx_wide_source(struct statement *statement, unsigned index, enum ptx_type type, uint32_t *ret_operand)
{
	return source(statement, &statement->operands[index], type, true, ret_operand);
}

bool ptx_item_source(struct statement *statement, struct operand *operand, unsigned item, enum ptx_type type, bool wide,
                     uint32_t *ret_operand)
{
	struct operand one = {.kind = operand->item_kinds[item],
	                      .operand = operand->items[item],
	                      .type = operand->item_types[item],
	                      .constant = operand->item_constants[item]};

	return source(statement, &one, type, wide, ret_operand);
}

bool ptx_destination(struct statement *statement, unsigned index, enum ptx_type type, uint32_t *ret_operand)
{
	return ptx_destination_of(statement, &statement->operands[index], type, false, ret_operand, NULL);
}

bool ptx_wide_destination(struct statement *statement, unsigned index, enum ptx_type type, uint32_t *ret_operand,
                          unsigned *ret_bytes)
{
	return ptx_destination_of(statement, &statement->operands[index], type, true, ret_operand, ret_bytes);
}

bool ptx_destination_of(struct statement *statement, const struct operand *operand, enum ptx_type type, bool wide,
                        uint32_t *ret_operand, unsigned *ret_bytes)
{
	unsigned bytes = ptx_type_bytes(type), own = ptx_type_bytes(operand->type);

	if (operand->kind == OPERAND_SINK) {
		if (ret_bytes)
			*ret_bytes = bytes;
		return ptx_register_new(statement->loader, ret_operand);
	}
	if (operand->kind == OPERAND_NAME)
		return not_declared(statement, operand);
	if (operand->kind != OPERAND_REGISTER || operand->operand >> 30 != BANK_REGISTER || operand->negated)
		return ptx_bad(statement, "a register is due as destination");
	if ((operand->type == TY_PRED) != (type == TY_PRED))
		return ptx_bad(statement, "a predicate and a number are mixed up");
	if (own != bytes && !(wide && own > bytes))
		return ptx_bad(statement, "the destination's width is not the instruction's");
	*ret_operand = operand->operand;
	if (ret_bytes)
		*ret_bytes = own;
	return true;
}

bool ptx_address(struct statement *statement, unsigned index, struct insn *insn)
{
	const struct operand *operand = &statement->operands[index];
	const struct symbol *symbol = operand->symbol;

	if (operand->kind != OPERAND_ADDRESS || operand->count)
		return ptx_bad(statement, "an address in brackets is due");
	insn->imm = operand->offset;
	if (symbol) {
		bool constant_memory = symbol->space == SPACE_CONST && insn->space == SPACE_GLOBAL;

		if (insn->space == SPACE_PARAM)
			insn->space = symbol->is_entry_param ? SPACE_PARAM : SPACE_LOCAL;
		else if (insn->space != SPACE_GENERIC && symbol->space != insn->space && !constant_memory)
			return ptx_bad(statement, "the variable is in another state space");
		if (insn->space == SPACE_GENERIC && symbol->space != SPACE_GLOBAL && symbol->space != SPACE_CONST)
			insn->space = symbol->space;
		insn->imm += symbol->address;
		if (symbol->is_dynamic)
			insn->a = OPERAND(BANK_SPECIAL, SP_DYNAMIC_BASE);
		else if (insn->space == SPACE_LOCAL)
			insn->a = LOCAL_BASE;
		else
			return ptx_constant(statement->loader, 0, &insn->a);
		return true;
	}
	if (operand->operand == NO_OPERAND)
		return ptx_constant(statement->loader, 0, &insn->a);
	if (operand->type == TY_PRED || ptx_type_bytes(operand->type) < 4)
		return ptx_bad(statement, "an address is a register of 32 or 64 bits");
	/* The address of a .func's parameter is a local one. */
	if (insn->space == SPACE_PARAM && !statement->loader->function->entry)
		insn->space = SPACE_LOCAL;
	insn->a = operand->operand;
	return true;
}

/* What the ISA has, 9.0 included, and this interpreter has not. All other names are mistakes in the text. */
static bool is_known(struct slice opcode)
{
	static const char names[] = " alloca clusterlaunchcontrol istypep movmatrix multimem "
				    "setmaxnreg stackrestore stacksave stmatrix sured tcgen05 tensormap tld4 "
				    "vabsdiff vadd vavrg2 vavrg4 vmad vmax vmin vset vshl vshr vsub wgmma wmma ";
	char word[40];

	return (size_t)snprintf(word, sizeof(word), " %.*s ", SLICE(opcode)) < sizeof(word) && strstr(names, word);
}

bool ptx_decode(struct loader *loader, struct statement *statement)
{
	const struct rule *const sets[] = {ptx_rules_arithmetic, ptx_rules_bits,  ptx_rules_memory, ptx_rules_control,
	                                   ptx_rules_matrix,     ptx_rules_async, ptx_rules_texture};

	for (size_t set = 0; set < sizeof(sets) / sizeof(sets[0]); set++)
		for (const struct rule *rule = sets[set]; rule->name; rule++)
			if (slice_is(statement->opcode, rule->name))
				return rule->decode(statement, rule->op);
	return is_known(statement->opcode) ? ptx_unsupported(statement, NULL)
	                                   : ptx_bad(statement, "there is no such instruction");
}
