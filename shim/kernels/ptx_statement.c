/* One instruction: guard, name, modifiers, operands. */
#include <string.h>

#include "shim/kernels/ptx_body.h"

#define MODIFIERS_MAX 24
#define OPERANDS_MAX 64
#define ITEMS_MAX 512 /* of a vector or a call; wgmma has vectors of 128 */

static bool damaged(struct ptxa_body *body)
{
	return ptxa_stop(body->program, PATHS_DAMAGED, body->lexer.token.line);
}

bool ptxa_body_refer(struct ptxa_body *body, struct ptxa_slice slice, uint32_t from, int kind)
{
	if (!ptxa_room(body->program, &body->references, &body->reference_room, body->reference_count,
	               sizeof(*body->references)))
		return false;
	body->references[body->reference_count++] = (struct ptxa_reference){
		.slice = slice, .scope = body->scope, .line = body->lexer.token.line, .from = from, .kind = kind};
	return true;
}

static bool is_special(struct ptxa_slice slice)
{
	static const char *const names[] = {
		"tid",
		"ntid",
		"laneid",
		"warpid",
		"nwarpid",
		"ctaid",
		"nctaid",
		"smid",
		"nsmid",
		"gridid",
		"is_explicit_cluster",
		"clusterid",
		"nclusterid",
		"cluster_ctaid",
		"cluster_nctaid",
		"cluster_ctarank",
		"cluster_nctarank",
		"lanemask_eq",
		"lanemask_le",
		"lanemask_lt",
		"lanemask_ge",
		"lanemask_gt",
		"clock",
		"clock_hi",
		"clock64",
		"globaltimer",
		"globaltimer_lo",
		"globaltimer_hi",
		"total_smem_size",
		"aggr_smem_size",
		"dynamic_smem_size",
		"reserved_smem_offset_begin",
		"reserved_smem_offset_end",
		"reserved_smem_offset_cap",
		"current_graph_exec",
	};

	if (ptxa_slice_is(slice, "WARP_SZ"))
		return true;
	if (slice.text[0] != '%')
		return false;
	slice.text++;
	slice.length--;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (ptxa_slice_is(slice, names[i]))
			return true;
	return (slice.length > 2 && memcmp(slice.text, "pm", 2) == 0) ||
	       (slice.length > 6 && memcmp(slice.text, "envreg", 6) == 0);
}

/* [+-] NUMBER ..., added up. */
static bool read_offset(struct ptxa_body *body, int64_t *offset)
{
	struct ptxa_lexer *lexer = &body->lexer;

	while (ptxa_lex_is(lexer, '+') || ptxa_lex_is(lexer, '-')) {
		bool minus = ptxa_lex_is(lexer, '-');

		ptxa_lex_next(lexer);
		if (!minus && ptxa_lex_take(lexer, '-'))
			minus = true;
		if (lexer->token.kind != PTX_TOKEN_NUMBER)
			return damaged(body);
		*offset = (int64_t)((uint64_t)*offset + (minus ? -lexer->token.number : lexer->token.number));
		ptxa_lex_next(lexer);
	}
	return true;
}

static bool name_operand(struct ptxa_body *body, struct ptxa_operand *operand)
{
	struct ptxa_slice slice = body->lexer.token.slice;
	struct ptxa_name *name = ptxa_body_find(body, slice, body->scope);

	if (!name)
		name = ptxa_body_numbered(body, slice);
	if (body->program->stop || body->program->error)
		return false;
	operand->kind = PTX_OPERAND_OTHER;
	if (!name && !is_special(slice) && !ptxa_slice_is(slice, "_")) {
		return damaged(body);
	} else if (name && name->meaning == PTX_NAME_REGISTER) {
		operand->kind = PTX_OPERAND_REGISTER;
		operand->id = name->id;
	} else if (name && name->meaning == PTX_NAME_VARIABLE) {
		operand->kind = PTX_OPERAND_VARIABLE;
		operand->id = name->id;
	}
	ptxa_lex_next(&body->lexer);
	while (body->lexer.token.kind == PTX_TOKEN_DOT)
		ptxa_lex_next(&body->lexer); /* %tid.x, and the parts of video instructions */
	return read_offset(body, &operand->offset);
}

static bool scalar(struct ptxa_body *body, struct ptxa_operand *operand)
{
	struct ptxa_lexer *lexer = &body->lexer;
	bool minus = false;

	while (ptxa_lex_is(lexer, '!') || ptxa_lex_is(lexer, '-') || ptxa_lex_is(lexer, '+') || ptxa_lex_is(lexer, '~')) {
		minus ^= ptxa_lex_is(lexer, '-');
		operand->inverted |= ptxa_lex_is(lexer, '!') || ptxa_lex_is(lexer, '~');
		ptxa_lex_next(lexer);
	}
	if (lexer->token.kind == PTX_TOKEN_NUMBER) {
		operand->kind = PTX_OPERAND_NUMBER;
		operand->offset = (int64_t)(minus ? -lexer->token.number : lexer->token.number);
		ptxa_lex_next(lexer);
		return read_offset(body, &operand->offset);
	}
	if (lexer->token.kind != PTX_TOKEN_WORD)
		return damaged(body);
	if (ptxa_slice_is(lexer->token.slice, "generic")) {
		bool good;

		ptxa_lex_next(lexer);
		if (!ptxa_lex_take(lexer, '(') || lexer->token.kind != PTX_TOKEN_WORD)
			return damaged(body);
		good = name_operand(body, operand);
		return good && (ptxa_lex_take(lexer, ')') || damaged(body));
	}
	return name_operand(body, operand);
}

/* Adds to the function's operands. */
static bool keep(struct ptxa_body *body, struct ptxa_operand operand)
{
	struct ptxa_function *function = body->function;

	if (function->operand_count >= PTX_OPERANDS_MAX)
		return ptxa_stop(body->program, PATHS_LIMIT, body->lexer.token.line);
	if (!ptxa_room(body->program, &function->operands, &function->operand_room, function->operand_count,
	               sizeof(*function->operands)))
		return false;
	function->operands[function->operand_count++] = operand;
	return true;
}

/* {a, b, ...}: its items are kept at once, the vector itself by who asked. */
static bool vector(struct ptxa_body *body, struct ptxa_operand *operand)
{
	struct ptxa_operand item;

	operand->kind = PTX_OPERAND_VECTOR;
	operand->id = body->function->operand_count;
	ptxa_lex_next(&body->lexer);
	do {
		item = (struct ptxa_operand){.kind = PTX_OPERAND_OTHER};
		if (operand->count == ITEMS_MAX || !scalar(body, &item) || !keep(body, item))
			return damaged(body);
		operand->count++;
	} while (ptxa_lex_take(&body->lexer, ','));
	return ptxa_lex_take(&body->lexer, '}') || damaged(body);
}

/* [base + offset], or [map, {coordinates}]: what follows the base is read and dropped. */
static bool memory(struct ptxa_body *body, struct ptxa_operand *operand)
{
	struct ptxa_operand rest;

	ptxa_lex_next(&body->lexer);
	if (ptxa_lex_is(&body->lexer, '{') ? !vector(body, operand) : !scalar(body, operand))
		return false;
	while (ptxa_lex_take(&body->lexer, ',')) {
		rest = (struct ptxa_operand){.kind = PTX_OPERAND_OTHER};
		if (ptxa_lex_is(&body->lexer, '{') ? !vector(body, &rest) : !scalar(body, &rest))
			return false;
	}
	operand->memory = true;
	return ptxa_lex_take(&body->lexer, ']') || damaged(body);
}

static bool operand_read(struct ptxa_body *body, struct ptxa_operand *operand)
{
	*operand = (struct ptxa_operand){.kind = PTX_OPERAND_OTHER};
	if (ptxa_lex_is(&body->lexer, '['))
		return memory(body, operand);
	if (ptxa_lex_is(&body->lexer, '{'))
		return vector(body, operand);
	if (!scalar(body, operand))
		return false;
	if (ptxa_lex_is(&body->lexer, '|')) {
		struct ptxa_operand pair = {.kind = PTX_OPERAND_VECTOR, .id = body->function->operand_count, .count = 2},
				    second = {.id = 0};

		ptxa_lex_next(&body->lexer);
		if (!scalar(body, &second) || !keep(body, *operand) || !keep(body, second))
			return false;
		*operand = pair;
	}
	return true;
}

/* Operands stand together behind the items of their vectors. */
static bool operands_read(struct ptxa_body *body, struct ptxa_instruction *instruction)
{
	struct ptxa_operand list[OPERANDS_MAX];
	uint32_t count = 0;

	while (!ptxa_lex_is(&body->lexer, ';')) {
		if (count && !ptxa_lex_take(&body->lexer, ','))
			return damaged(body);
		if (count == sizeof(list) / sizeof(list[0]))
			return ptxa_stop(body->program, PATHS_LIMIT, instruction->line);
		if (!operand_read(body, &list[count++]))
			return false;
	}
	ptxa_lex_next(&body->lexer);
	instruction->first = body->function->operand_count;
	instruction->count = count;
	for (uint32_t i = 0; i < count; i++)
		if (!keep(body, list[i]))
			return false;
	return true;
}

/* (a, b): results or arguments of a call, kept one by one. */
static bool call_list(struct ptxa_body *body, uint32_t *count)
{
	struct ptxa_operand operand;

	*count = 0;
	ptxa_lex_next(&body->lexer);
	while (!ptxa_lex_take(&body->lexer, ')')) {
		operand = (struct ptxa_operand){.kind = PTX_OPERAND_OTHER};
		if (*count && !ptxa_lex_take(&body->lexer, ','))
			return damaged(body);
		if (*count == ITEMS_MAX)
			return ptxa_stop(body->program, PATHS_LIMIT, body->lexer.token.line);
		if (!scalar(body, &operand) || !keep(body, operand))
			return false;
		++*count;
	}
	return true;
}

/* call (results), function, (arguments), prototype; */
static bool call_read(struct ptxa_body *body, struct ptxa_instruction *instruction)
{
	struct ptxa_lexer *lexer = &body->lexer;
	struct ptxa_program *program = body->program;
	uint32_t arguments = 0;

	instruction->first = body->function->operand_count;
	instruction->target = PTX_NONE;
	if (ptxa_lex_is(lexer, '(') && (!call_list(body, &instruction->extra) || !ptxa_lex_take(lexer, ',')))
		return damaged(body);
	if (lexer->token.kind != PTX_TOKEN_WORD)
		return damaged(body);
	instruction->target = ptxa_function_named(program, lexer->token.slice);
	if (instruction->target != PTX_NONE)
		program->functions[instruction->target].wanted |= program->functions[instruction->target].has_body;
	ptxa_lex_next(lexer);
	if (ptxa_lex_take(lexer, ',') && ptxa_lex_is(lexer, '(')) {
		if (!call_list(body, &arguments))
			return false;
		if (ptxa_lex_take(lexer, ',') && lexer->token.kind == PTX_TOKEN_WORD)
			ptxa_lex_next(lexer);
	} else if (lexer->token.kind == PTX_TOKEN_WORD) {
		ptxa_lex_next(lexer); /* a prototype without arguments */
	}
	instruction->count = instruction->extra + arguments;
	return ptxa_lex_take(lexer, ';') || damaged(body);
}

static bool branch_read(struct ptxa_body *body, struct ptxa_instruction *instruction)
{
	struct ptxa_operand index;
	bool table = instruction->rule->class == PTX_BRANCH_TABLE;

	if (table && (!operand_read(body, &index) || !ptxa_lex_take(&body->lexer, ',')))
		return damaged(body);
	if (body->lexer.token.kind != PTX_TOKEN_WORD)
		return damaged(body);
	if (!ptxa_body_refer(body, body->lexer.token.slice, body->function->code_count,
	                     table ? PTX_REFERENCE_TARGETS : PTX_REFERENCE_BRANCH))
		return false;
	ptxa_lex_next(&body->lexer);
	return ptxa_lex_take(&body->lexer, ';') || damaged(body);
}

static void note_modifier(struct ptxa_instruction *instruction, struct ptxa_slice word)
{
	static const struct {
		const char *word;
		uint16_t flag;
	} flags[] = {
		{"wide", PTX_WIDE},
		{"hi", PTX_HIGH},
		{"tensor", PTX_TENSOR},
		{"to", PTX_TO},
		{"mbarrier::complete_tx::bytes", PTX_MBARRIER},
	};
	struct ptxa_type type;
	enum ptxa_space space;

	for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++)
		if (ptxa_slice_is(word, flags[i].word))
			instruction->flags |= flags[i].flag;
	if (ptxa_space_named(word, &space)) {
		if (!instruction->has_space)
			instruction->space = (uint8_t)space;
		else
			instruction->second_space = (uint8_t)space;
		instruction->has_second |= instruction->has_space;
		instruction->has_space = true;
	} else if (ptxa_type_named(word, &type)) {
		if (!instruction->type.bytes)
			instruction->type = type;
		else
			instruction->second_type = type;
	}
}

static bool guard_read(struct ptxa_body *body, struct ptxa_instruction *instruction)
{
	struct ptxa_operand predicate = {.kind = PTX_OPERAND_OTHER};

	if (!ptxa_lex_take(&body->lexer, '@'))
		return true;
	instruction->flags |= PTX_GUARDED;
	if (!scalar(body, &predicate))
		return false;
	if (predicate.kind == PTX_OPERAND_REGISTER)
		instruction->guard = predicate.id;
	instruction->guard_inverted = predicate.inverted;
	return true;
}

static void count_definitions(struct ptxa_function *function, const struct ptxa_instruction *instruction)
{
	const struct ptxa_operand *operand = &function->operands[instruction->first];
	enum ptxa_class class = instruction->rule->class;
	uint32_t count = class == PTX_CALL ? instruction->extra : class != PTX_NOTHING && instruction->count > 0;

	for (uint32_t i = 0; i < count; i++, operand++) {
		if (operand->memory)
			continue;
		if (operand->kind == PTX_OPERAND_REGISTER)
			function->registers[operand->id].definitions++;
		for (uint32_t j = 0; operand->kind == PTX_OPERAND_VECTOR && j < operand->count; j++)
			if (function->operands[operand->id + j].kind == PTX_OPERAND_REGISTER)
				function->registers[function->operands[operand->id + j].id].definitions++;
	}
}

bool ptxa_statement_read(struct ptxa_body *body)
{
	struct ptxa_function *function = body->function;
	struct ptxa_instruction instruction = {.line = body->lexer.token.line, .guard = PTX_NONE};
	struct ptxa_slice name, modifiers[MODIFIERS_MAX];
	unsigned count = 0;
	bool good;

	if (!guard_read(body, &instruction))
		return false;
	if (body->lexer.token.kind != PTX_TOKEN_WORD)
		return damaged(body);
	name = body->lexer.token.slice;
	instruction.text = name.text;
	for (ptxa_lex_next(&body->lexer); body->lexer.token.kind == PTX_TOKEN_DOT; ptxa_lex_next(&body->lexer)) {
		if (count == MODIFIERS_MAX)
			return damaged(body);
		modifiers[count++] = body->lexer.token.slice;
		note_modifier(&instruction, body->lexer.token.slice);
	}
	instruction.rule = ptxa_rule_find(name, modifiers, count);
	if (!instruction.rule) {
		ptxa_unclear(body->program, PATHS_INSTRUCTION, instruction.line);
		while (!ptxa_lex_is(&body->lexer, ';') && body->lexer.token.kind != PTX_TOKEN_END)
			ptxa_lex_next(&body->lexer);
		return ptxa_lex_take(&body->lexer, ';') || damaged(body);
	}
	if (++body->program->instructions > PTX_INSTRUCTIONS_MAX)
		return ptxa_stop(body->program, PATHS_LIMIT, instruction.line);
	switch (instruction.rule->class) {
	case PTX_CALL:
		good = call_read(body, &instruction);
		break;
	case PTX_BRANCH:
	case PTX_BRANCH_TABLE:
		good = branch_read(body, &instruction);
		break;
	default:
		good = operands_read(body, &instruction);
	}
	if (!good || !ptxa_room(body->program, &function->code, &function->code_room, function->code_count,
	                        sizeof(*function->code)))
		return false;
	count_definitions(function, &instruction);
	function->code[function->code_count++] = instruction;
	return true;
}
