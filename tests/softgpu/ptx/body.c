/* Statements of a function body. */
#include <stdlib.h>
#include <string.h>

#include "tests/softgpu/ptx/load.h"

bool ptx_emit(struct loader *loader, const struct statement *statement, struct insn insn)
{
	struct ptx_function *function = loader->function;

	if (function->code_count == function->code_room) {
		uint32_t room = function->code_room ? function->code_room * 2 : 64;
		struct insn *code = room < (1u << 28) ? realloc(function->code, room * sizeof(*code)) : NULL;

		if (!code)
			return ptx_text_fail(text_of(loader), PTX_OUT_OF_MEMORY, "no memory for instructions");
		function->code = code;
		function->code_room = room;
	}
	insn.guard = NO_OPERAND;
	insn.line = (uint32_t)text_of(loader)->line;
	if (statement) {
		insn.guard = statement->guard;
		insn.guard_not = statement->guard_not;
		insn.line = (uint32_t)statement->line;
	}
	/* Steps may look at any source, so none is left without a slot. */
	if (insn.c == NO_OPERAND && insn.run != ptx_step_control(CONTROL_BARRIER) && insn.run != ptx_step_memory(MEM_COPY))
		insn.c = 0;
	function->code[function->code_count++] = insn;
	return true;
}

/* name: .branchtargets a, b, c; */
static bool read_branch_targets(struct loader *loader, struct slice name, int line)
{
	struct ptx_text *text = text_of(loader);
	struct symbol *symbol = ptx_symbol_add(loader, name, SYMBOL_TABLE);
	uint32_t count = 0;

	if (!symbol)
		return false;
	const struct ptx_text before = *text;
	while (text->token == TOKEN_NAME) {
		count++;
		ptx_text_next(text);
		if (!ptx_text_take(text, ','))
			break;
	}
	if (!text_is(text, ';') || !count)
		return ptx_text_fail(text, PTX_INVALID, "a list of labels is due here");
	*text = before;
	symbol->targets_of_table = ptx_load_keep(loader, count * sizeof(uint32_t));
	if (!symbol->targets_of_table)
		return false;
	symbol->count = count;
	for (uint32_t n = 0; n < count; n++) {
		if (!ptx_label_use(loader, text->word, line, 0, &symbol->targets_of_table[n]))
			return false;
		ptx_text_next(text);
		ptx_text_take(text, ',');
	}
	return ptx_text_need(text, ';');
}

static bool read_label(struct loader *loader, struct slice name, int line)
{
	struct ptx_text *text = text_of(loader);
	struct symbol *symbol;

	if (text->token == TOKEN_DOT && slice_is(text->word, "branchtargets")) {
		ptx_text_next(text);
		return read_branch_targets(loader, name, line);
	}
	symbol = ptx_symbol_add(loader, name, SYMBOL_LABEL);
	if (!symbol)
		return false;
	symbol->address = loader->function->code_count;
	return true;
}

static bool read_guard(struct loader *loader, struct statement *statement)
{
	struct ptx_text *text = text_of(loader);
	enum ptx_type type = TY_NONE;

	statement->guard_not = ptx_text_take(text, '!');
	if (text->token != TOKEN_NAME)
		return ptx_text_fail(text, PTX_INVALID, "a predicate is due here");
	bool found = ptx_register_find(loader, text->word, &statement->guard, &type);
	if (text->status != PTX_OK)
		return false;
	if (!found || type != TY_PRED)
		return ptx_text_fail(text, PTX_INVALID, "'%.*s' is not a predicate", SLICE(text->word));
	ptx_text_next(text);
	return true;
}

static bool read_instruction(struct loader *loader, struct statement *statement)
{
	struct ptx_text *text = text_of(loader);

	while (text->token == TOKEN_DOT) {
		if (statement->modifier_count == MODIFIERS_LIMIT)
			return ptx_text_fail(text, PTX_INVALID, "more than %u modifiers", MODIFIERS_LIMIT);
		statement->modifiers[statement->modifier_count++] = text->word;
		ptx_text_next(text);
	}
	if (slice_is(statement->opcode, "call"))
		return ptx_call_read(loader, statement) && ptx_text_need(text, ';');
	return ptx_operands_read(loader, statement) && ptx_text_need(text, ';') && ptx_decode(loader, statement);
}

static bool read_statement(struct loader *loader)
{
	struct ptx_text *text = text_of(loader);
	struct statement *statement = ptx_load_statement(loader);

	statement->line = text->line;
	if (ptx_text_take(text, '@')) {
		if (!read_guard(loader, statement))
			return false;
	}
	if (text->token != TOKEN_NAME)
		return ptx_text_fail(text, PTX_INVALID, "an instruction is due here");
	statement->opcode = text->word;
	ptx_text_next(text);
	if (statement->guard == NO_OPERAND && ptx_text_take(text, ':'))
		return read_label(loader, statement->opcode, statement->line);
	return read_instruction(loader, statement);
}

static bool skip_to_semicolon(struct loader *loader)
{
	struct ptx_text *text = text_of(loader);

	while (text->token != TOKEN_END && !text_is(text, ';'))
		ptx_text_next(text);
	return ptx_text_need(text, ';');
}

/* .loc file line column[, function_name label[+n], inlined_at file line column] has no semicolon. */
bool ptx_loc_skip(struct loader *loader)
{
	struct ptx_text *text = text_of(loader);
	int line = text->line;

	while (text->token != TOKEN_END && text->line == line)
		ptx_text_next(text);
	return text->status == PTX_OK;
}

static bool read_directive(struct loader *loader)
{
	struct ptx_text *text = text_of(loader);
	struct slice word = text->word;
	int line = text->line;

	if (slice_is(word, "loc"))
		return ptx_loc_skip(loader);
	ptx_text_next(text);
	if (slice_is(word, "reg"))
		return ptx_registers_read(loader);
	if (slice_is(word, "local") || slice_is(word, "param"))
		return ptx_variable_read(loader, SPACE_LOCAL, false);
	if (slice_is(word, "shared") || slice_is(word, "shared::cta"))
		return ptx_variable_read(loader, SPACE_SHARED, false);
	if (slice_is(word, "global"))
		return ptx_variable_read(loader, SPACE_GLOBAL, false);
	if (slice_is(word, "const"))
		return ptx_variable_read(loader, SPACE_CONST, false);
	if (slice_is(word, "extern")) {
		if (!slice_is(ptx_take_dot(loader), "shared"))
			return ptx_text_fail_at(text, line, PTX_UNSUPPORTED, "this .extern inside a function");
		return ptx_variable_read(loader, SPACE_SHARED, true);
	}
	if (slice_is(word, "pragma"))
		return skip_to_semicolon(loader);
	return ptx_text_fail_at(text, line, PTX_UNSUPPORTED, "directive .%.*s", SLICE(word));
}

bool ptx_body_read(struct loader *loader)
{
	struct ptx_text *text = text_of(loader);
	unsigned depth = 0;

	for (;;) {
		if (ptx_text_take(text, '{')) {
			if (!ptx_scope_enter(loader))
				return false;
			depth++;
		} else if (text_is(text, '}')) {
			ptx_text_next(text);
			if (!depth)
				return text->status == PTX_OK;
			if (!ptx_scope_leave(loader))
				return false;
			depth--;
		} else if (text->token == TOKEN_DOT) {
			if (!read_directive(loader))
				return false;
		} else if (text->token == TOKEN_END) {
			return ptx_text_fail(text, PTX_INVALID, "the text ends inside a function");
		} else if (!ptx_text_take(text, ';') && !read_statement(loader)) {
			return false;
		}
	}
}
