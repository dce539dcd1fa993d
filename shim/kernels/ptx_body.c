/* A function's parameters and body: text in, instructions out. */
#include <stdlib.h>
#include <string.h>

#include "shim/kernels/ptx_body.h"

static bool damaged(struct ptxa_body *body)
{
	return ptxa_stop(body->program, PATHS_DAMAGED, body->lexer.token.line);
}

struct ptxa_name *ptxa_body_find(struct ptxa_body *body, struct ptxa_slice slice, uint32_t scope)
{
	struct ptxa_name *name = NULL;

	while (!name && scope) {
		name = ptxa_names_find(body->names, slice, scope);
		scope = body->scopes[scope];
	}
	return name ? name : ptxa_names_find(body->program->names, slice, 0);
}

static bool add_name(struct ptxa_body *body, struct ptxa_name name)
{
	bool twice;

	if (ptxa_names_count(body->names) >= PTX_NAMES_MAX)
		return ptxa_stop(body->program, PATHS_LIMIT, body->lexer.token.line);
	name.scope = body->scope;
	if (ptxa_names_add(body->names, &name, &twice))
		return true;
	return twice ? damaged(body) : ptxa_no_memory(body->program);
}

static uint32_t new_register(struct ptxa_body *body, const struct ptxa_type *type)
{
	struct ptxa_function *function = body->function;

	if (!ptxa_room(body->program, &function->registers, &function->register_room, function->register_count,
	               sizeof(*function->registers)))
		return PTX_NONE;
	function->registers[function->register_count] = (struct ptxa_register){.is_float = type->is_float};
	return function->register_count++;
}

/* A name with digits at its end may be one of `%r<100>`; it gets a name of its own when it is first met, in the scope of its declaration. */
struct ptxa_name *ptxa_body_numbered(struct ptxa_body *body, struct ptxa_slice slice)
{
	struct ptxa_slice stem = slice;
	struct ptxa_name one = {.slice = slice, .meaning = PTX_NAME_REGISTER};
	struct ptxa_type type = {.bytes = 0};

	while (stem.length > 1 && stem.text[stem.length - 1] >= '0' && stem.text[stem.length - 1] <= '9') {
		uint64_t value = 0;
		struct ptxa_name *name;
		bool twice;

		stem.length--;
		/* No leading zeroes: %r01 is not %r1. */
		if (stem.text[stem.length] == '0' && slice.length - stem.length > 1)
			continue;
		if (slice.length - stem.length > 10)
			break;
		for (uint32_t i = stem.length; i < slice.length; i++)
			value = 10 * value + (uint64_t)(slice.text[i] - '0');
		name = ptxa_body_find(body, stem, body->scope);
		if (!name || name->meaning != PTX_NAME_REGISTERS || value >= name->count)
			continue;
		if (ptxa_names_count(body->names) >= PTX_NAMES_MAX)
			return ptxa_stop(body->program, PATHS_LIMIT, body->lexer.token.line), NULL;
		one.scope = name->scope;
		type.is_float = name->id;
		one.id = new_register(body, &type);
		if (one.id == PTX_NONE)
			return NULL;
		if (!ptxa_names_add(body->names, &one, &twice))
			return ptxa_no_memory(body->program), NULL;
		return ptxa_names_find(body->names, slice, one.scope);
	}
	return NULL;
}

static bool declare(struct ptxa_body *body, const struct ptxa_declaration *declaration, bool is_register,
                    enum ptxa_space space, uint32_t *ret_id)
{
	struct ptxa_name name = {.slice = declaration->name, .meaning = PTX_NAME_VARIABLE};

	if (is_register && declaration->repeat) {
		name.meaning = PTX_NAME_REGISTERS;
		name.id = declaration->type.is_float;
		name.count = declaration->repeat;
		*ret_id = PTX_NONE;
		return add_name(body, name);
	}
	name.meaning = is_register ? PTX_NAME_REGISTER : PTX_NAME_VARIABLE;
	name.id = is_register ? new_register(body, &declaration->type)
	                      : ptxa_variable_new(body->program, space, declaration);
	*ret_id = is_register ? name.id | PTX_IS_REGISTER : name.id;
	return name.id != PTX_NONE && add_name(body, name);
}

/* `.reg .b32 %r<5>, %x;`, `.local .align 8 .b8 depot[16];` and the like, from behind the first word. */
static bool read_declaration(struct ptxa_body *body, bool is_register, enum ptxa_space space)
{
	struct ptxa_declaration declaration;
	uint32_t id, line = body->lexer.token.line;

	if (!ptxa_declaration_type(body->program, &body->lexer, &declaration))
		return false;
	/* Vectors as registers: their components are written one by one. */
	if (is_register && declaration.bytes != declaration.type.bytes)
		ptxa_unclear(body->program, PATHS_INSTRUCTION, line);
	do {
		struct ptxa_declaration one = declaration;

		if (!ptxa_declaration_name(body->program, &body->lexer, &one) ||
		    !declare(body, &one, is_register, space, &id))
			return false;
	} while (ptxa_lex_take(&body->lexer, ','));
	if (ptxa_lex_is(&body->lexer, '='))
		while (!ptxa_lex_is(&body->lexer, ';') && body->lexer.token.kind != PTX_TOKEN_END)
			ptxa_lex_next(&body->lexer);
	return ptxa_lex_take(&body->lexer, ';') || damaged(body);
}

/* An entry's parameters lie one behind the other, each aligned; their words are what the analysis follows. */
static bool place_parameter(struct ptxa_body *body, const struct ptxa_declaration *declaration, uint32_t variable)
{
	struct ptxa_program *program = body->program;
	uint64_t start = (program->parameter_bytes + declaration->align - 1) & ~(uint64_t)(declaration->align - 1);

	if (start + declaration->bytes > PTX_PARAMETER_BYTES)
		return ptxa_stop(program, PATHS_LIMIT, body->lexer.token.line);
	program->parameter_bytes = (uint32_t)start + declaration->bytes;
	if (program->watch && program->watch->param)
		program->watch->param(program->watch->ctx, body->function->argument_count - 1, (uint32_t)start,
		                      declaration->bytes);
	program->variables[variable].stored[0] = (uint32_t)start; /* until all are placed */
	program->variables[variable].place = (uint32_t)start;
	return true;
}

static bool read_parameters(struct ptxa_body *body, uint32_t **list, uint32_t *count)
{
	uint32_t room = 0;

	if (!ptxa_lex_take(&body->lexer, '('))
		return true;
	while (!ptxa_lex_take(&body->lexer, ')')) {
		struct ptxa_declaration declaration;
		bool is_register;
		uint32_t id;

		if (*count && !ptxa_lex_take(&body->lexer, ','))
			return damaged(body);
		is_register = ptxa_lex_dot(&body->lexer, "reg");
		if (!is_register && !ptxa_lex_dot(&body->lexer, "param"))
			return damaged(body);
		ptxa_lex_next(&body->lexer);
		if (!ptxa_declaration_type(body->program, &body->lexer, &declaration) ||
		    !ptxa_declaration_name(body->program, &body->lexer, &declaration))
			return false;
		if (body->function->is_entry && is_register)
			return damaged(body);
		if (declaration.repeat)
			return damaged(body);
		if (!ptxa_room(body->program, list, &room, *count, sizeof(**list)))
			return false;
		if (!declare(body, &declaration, is_register, PTX_PARAM, &id))
			return false;
		(*list)[(*count)++] = id;
		if (body->function->is_entry && !place_parameter(body, &declaration, id))
			return false;
	}
	return true;
}

static bool open_scope(struct ptxa_body *body)
{
	if (body->depth == PTX_SCOPES_DEEP)
		return ptxa_stop(body->program, PATHS_LIMIT, body->lexer.token.line);
	if (!ptxa_room(body->program, &body->scopes, &body->scope_room, body->scope_count, sizeof(*body->scopes)))
		return false;
	body->scopes[body->scope_count] = body->scope;
	body->scope = body->scope_count++;
	body->depth++;
	return true;
}

/* From behind the word; `label` is the name that stood before `.branchtargets`, if one did. */
static bool read_targets(struct ptxa_body *body, struct ptxa_slice label)
{
	struct ptxa_function *function = body->function;
	struct ptxa_name name = {.slice = label, .meaning = PTX_NAME_TARGETS, .id = function->target_count};

	do {
		if (body->lexer.token.kind != PTX_TOKEN_WORD)
			return damaged(body);
		if (function->target_count >= PTX_TARGETS_MAX)
			return ptxa_stop(body->program, PATHS_LIMIT, body->lexer.token.line);
		if (!ptxa_room(body->program, &function->targets, &function->target_room, function->target_count,
		               sizeof(*function->targets)))
			return false;
		if (!ptxa_body_refer(body, body->lexer.token.slice, function->target_count, PTX_REFERENCE_TABLE))
			return false;
		function->targets[function->target_count++] = PTX_NONE;
		ptxa_lex_next(&body->lexer);
	} while (ptxa_lex_take(&body->lexer, ','));
	name.count = function->target_count - name.id;
	if (!ptxa_lex_take(&body->lexer, ';'))
		return damaged(body);
	return label.length ? add_name(body, name) : damaged(body);
}

static bool read_directive(struct ptxa_body *body, struct ptxa_slice label)
{
	struct ptxa_slice word = body->lexer.token.slice;
	enum ptxa_space space;

	if (ptxa_slice_is(word, "loc") || ptxa_slice_is(word, "file")) {
		ptxa_lex_next_line(&body->lexer);
		return true;
	}
	ptxa_lex_next(&body->lexer);
	if (ptxa_slice_is(word, "reg"))
		return read_declaration(body, true, PTX_GENERIC);
	if (ptxa_space_named(word, &space))
		return read_declaration(body, false, space);
	if (ptxa_slice_is(word, "branchtargets"))
		return read_targets(body, label);
	if (ptxa_slice_is(word, "pragma") || ptxa_slice_is(word, "callprototype") || ptxa_slice_is(word, "calltargets")) {
		while (!ptxa_lex_is(&body->lexer, ';') && body->lexer.token.kind != PTX_TOKEN_END)
			ptxa_lex_next(&body->lexer);
		return ptxa_lex_take(&body->lexer, ';') || damaged(body);
	}
	if (ptxa_slice_is(word, "visible") || ptxa_slice_is(word, "extern") || ptxa_slice_is(word, "weak"))
		return true;
	return damaged(body);
}

static bool read_label(struct ptxa_body *body, struct ptxa_slice slice)
{
	struct ptxa_name name = {.slice = slice, .meaning = PTX_NAME_LABEL, .id = body->function->code_count};

	/* A label of a table or a prototype is none to branch to. */
	if (ptxa_lex_dot(&body->lexer, "branchtargets") || ptxa_lex_dot(&body->lexer, "callprototype") ||
	    ptxa_lex_dot(&body->lexer, "calltargets"))
		return read_directive(body, slice);
	return add_name(body, name);
}

static bool is_label(const struct ptxa_lexer *lexer)
{
	struct ptxa_lexer ahead = *lexer;

	if (lexer->token.kind != PTX_TOKEN_WORD)
		return false;
	ptxa_lex_next(&ahead);
	return ptxa_lex_is(&ahead, ':');
}

/* From behind the opening brace of the body. */
static bool read_statements(struct ptxa_body *body)
{
	while (body->depth > 0) {
		struct ptxa_lexer *lexer = &body->lexer;

		if (ptxa_lex_take(lexer, ';')) {
			continue;
		} else if (ptxa_lex_take(lexer, '{')) {
			if (!open_scope(body))
				return false;
		} else if (ptxa_lex_is(lexer, '}')) {
			body->depth--;
			body->scope = body->scopes[body->scope];
			if (body->depth > 0)
				ptxa_lex_next(lexer);
		} else if (lexer->token.kind == PTX_TOKEN_DOT) {
			if (!read_directive(body, (struct ptxa_slice){NULL, 0}))
				return false;
		} else if (is_label(lexer)) {
			struct ptxa_slice label = lexer->token.slice;

			ptxa_lex_next(lexer);
			ptxa_lex_next(lexer);
			if (!read_label(body, label))
				return false;
		} else if (!ptxa_statement_read(body)) {
			return false;
		}
	}
	return true;
}

static bool resolve(struct ptxa_body *body)
{
	struct ptxa_function *function = body->function;

	for (uint32_t i = 0; i < body->reference_count; i++) {
		const struct ptxa_reference *reference = &body->references[i];
		const struct ptxa_name *name = ptxa_body_find(body, reference->slice, reference->scope);
		bool table = reference->kind == PTX_REFERENCE_TARGETS;

		if (!name || name->meaning != (table ? PTX_NAME_TARGETS : PTX_NAME_LABEL))
			return ptxa_stop(body->program, PATHS_DAMAGED, reference->line);
		if (reference->kind == PTX_REFERENCE_TABLE) {
			function->targets[reference->from] = name->id;
		} else {
			function->code[reference->from].target = name->id;
			function->code[reference->from].extra = name->count;
		}
	}
	return true;
}

static bool name_words(struct ptxa_body *body)
{
	struct ptxa_program *program = body->program;

	program->words = (program->parameter_bytes + 7) / 8 * 2;
	for (uint32_t i = 0; i < body->function->argument_count; i++) {
		struct ptxa_variable *variable = &program->variables[body->function->arguments[i]];
		uint32_t start = variable->stored[0];

		variable->stored[0] = 0;
		if (variable->bytes && variable->cells == PTX_NONE)
			return ptxa_stop(program, PATHS_LIMIT, 0);
		/* Narrow parameters share a word; a word that two share has both. */
		for (uint32_t byte = 0; byte < variable->bytes; byte++) {
			uint32_t set = ptxa_set_one(&program->sets, 2 * ((start + byte) / 4));
			uint32_t *cell = &program->cells[variable->cells + byte / 4];

			*cell = ptxa_set_join(&program->sets, *cell, set);
		}
		for (uint32_t parity = 0; parity < 2 && variable->bytes; parity++) {
			uint32_t first = start / 4, last = (start + variable->bytes - 1) / 4;

			first += (first & 1) != parity;
			if (first <= last)
				variable->stored[parity] =
					ptxa_set_row(&program->sets, 2 * first, (last - first) / 2 + 1, 4);
		}
	}
	return true;
}

static bool read_all(struct ptxa_body *body)
{
	struct ptxa_function *function = body->function;

	/* Scope 0 is the module's, 1 the function's with its parameters; the braces of the body open 2. */
	if (!ptxa_room(body->program, &body->scopes, &body->scope_room, 0, sizeof(*body->scopes)))
		return false;
	/* Never NULL: instructions without operands point there too. */
	if (!ptxa_room(body->program, &function->operands, &function->operand_room, 0, sizeof(*function->operands)))
		return false;
	body->scopes[0] = 0;
	body->scope_count = 1;
	if (!open_scope(body))
		return false;
	body->depth = 0;
	if (function->has_results) {
		body->lexer = function->results_head;
		if (!read_parameters(body, &function->results, &function->result_count))
			return false;
	}
	body->lexer = function->head;
	if (!read_parameters(body, &function->arguments, &function->argument_count))
		return false;
	if (function->is_entry && !name_words(body))
		return false;
	while (!ptxa_lex_is(&body->lexer, '{')) {
		if (body->lexer.token.kind == PTX_TOKEN_END)
			return damaged(body);
		ptxa_lex_next(&body->lexer);
	}
	ptxa_lex_next(&body->lexer);
	return open_scope(body) && read_statements(body) && resolve(body);
}

bool ptxa_body_read(struct ptxa_program *program, uint32_t function)
{
	struct ptxa_body body = {
		.program = program, .function = &program->functions[function], .names = ptxa_names_create()};
	bool good = body.names ? read_all(&body) : ptxa_no_memory(program);

	ptxa_names_destroy(body.names);
	free(body.scopes);
	free(body.references);
	return good && !program->stop;
}
