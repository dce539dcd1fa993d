/* The module's outline: which functions there are and where, module variables, the entry's parameters. Bodies are skipped. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "shim/kernels/ptx_code.h"

static const struct {
	const char *name;
	struct ptxa_type type;
} types[] = {
	{"b8", {.bytes = 1}},
	{"u8", {.bytes = 1}},
	{"s8", {.is_signed = true, .bytes = 1}},
	{"b16", {.bytes = 2}},
	{"u16", {.bytes = 2}},
	{"s16", {.is_signed = true, .bytes = 2}},
	{"b32", {.bytes = 4}},
	{"u32", {.bytes = 4}},
	{"s32", {.is_signed = true, .bytes = 4}},
	{"b64", {.bytes = 8}},
	{"u64", {.bytes = 8}},
	{"s64", {.is_signed = true, .bytes = 8}},
	{"b128", {.bytes = 16}},
	{"f16", {.is_float = true, .bytes = 2}},
	{"f16x2", {.is_float = true, .bytes = 4}},
	{"bf16", {.is_float = true, .bytes = 2}},
	{"bf16x2", {.is_float = true, .bytes = 4}},
	{"f32", {.is_float = true, .bytes = 4}},
	{"f64", {.is_float = true, .bytes = 8}},
	{"tf32", {.is_float = true, .bytes = 4}},
	{"f32x2", {.is_float = true, .bytes = 8}},
	{"e4m3", {.is_float = true, .bytes = 1}},
	{"e5m2", {.is_float = true, .bytes = 1}},
	{"e4m3x2", {.is_float = true, .bytes = 2}},
	{"e5m2x2", {.is_float = true, .bytes = 2}},
	{"e4m3x4", {.is_float = true, .bytes = 4}},
	{"e5m2x4", {.is_float = true, .bytes = 4}},
	{"e2m1x2", {.is_float = true, .bytes = 1}},
	{"e2m1x4", {.is_float = true, .bytes = 2}},
	{"e2m3x2", {.is_float = true, .bytes = 2}},
	{"e3m2x2", {.is_float = true, .bytes = 2}},
	{"e2m3x4", {.is_float = true, .bytes = 4}},
	{"e3m2x4", {.is_float = true, .bytes = 4}},
	{"ue8m0x2", {.is_float = true, .bytes = 2}},
	{"u16x2", {.bytes = 4}},
	{"s16x2", {.is_signed = true, .bytes = 4}},
	{"pred", {.is_predicate = true, .bytes = 1}},
	{"texref", {.bytes = 8}},
	{"samplerref", {.bytes = 8}},
	{"surfref", {.bytes = 8}},
};

bool ptxa_type_named(struct ptxa_slice name, struct ptxa_type *ret_type)
{
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		if (ptxa_slice_is(name, types[i].name)) {
			*ret_type = types[i].type;
			return true;
		}
	}
	return false;
}

/* `shared::cta` is shared. */
bool ptxa_space_named(struct ptxa_slice name, enum ptxa_space *ret_space)
{
	static const char *const words[] = {
		[PTX_GLOBAL] = "global", [PTX_CONST] = "const", [PTX_LOCAL] = "local",
		[PTX_SHARED] = "shared", [PTX_PARAM] = "param",
	};

	for (uint32_t i = 0; i + 1 < name.length; i++)
		if (name.text[i] == ':')
			name.length = i;
	for (size_t i = 1; i < sizeof(words) / sizeof(words[0]); i++) {
		if (ptxa_slice_is(name, words[i])) {
			*ret_space = (enum ptxa_space)i;
			return true;
		}
	}
	return false;
}

static bool number(struct ptxa_program *program, struct ptxa_lexer *lexer, uint64_t most, uint64_t *ret_number)
{
	if (lexer->token.kind != PTX_TOKEN_NUMBER)
		return ptxa_stop(program, PATHS_DAMAGED, lexer->token.line);
	if (lexer->token.number > most)
		return ptxa_stop(program, PATHS_LIMIT, lexer->token.line);
	*ret_number = lexer->token.number;
	ptxa_lex_next(lexer);
	return true;
}

/* From a bracket to behind its partner; what kinds nest does not matter. */
static bool skip_nested(struct ptxa_program *program, struct ptxa_lexer *lexer, char open, char close)
{
	uint32_t depth = 0, line = lexer->token.line;

	do {
		if (lexer->token.kind == PTX_TOKEN_END || lexer->token.kind == PTX_TOKEN_BAD)
			return ptxa_stop(program, PATHS_DAMAGED, line);
		depth += ptxa_lex_is(lexer, open);
		depth -= ptxa_lex_is(lexer, close);
		ptxa_lex_next(lexer);
	} while (depth > 0);
	return true;
}

bool ptxa_declaration_type(struct ptxa_program *program, struct ptxa_lexer *lexer, struct ptxa_declaration *declaration)
{
	uint64_t value = 0;
	uint32_t lanes = 1;
	enum ptxa_space space;

	*declaration = (struct ptxa_declaration){.align = 0};
	while (lexer->token.kind == PTX_TOKEN_DOT) {
		struct ptxa_slice word = lexer->token.slice;

		ptxa_lex_next(lexer);
		if (ptxa_slice_is(word, "align")) {
			if (!number(program, lexer, 4096, &value))
				return false;
			declaration->align = declaration->align > value ? declaration->align : (uint32_t)value;
		} else if (ptxa_slice_is(word, "ptr")) {
			/* What follows tells of the memory behind the pointer. */
			while (lexer->token.kind == PTX_TOKEN_DOT) {
				bool align = ptxa_lex_dot(lexer, "align");

				ptxa_lex_next(lexer);
				if (align && !number(program, lexer, UINT32_MAX, &value))
					return false;
			}
		} else if (ptxa_slice_is(word, "attribute")) {
			if (!ptxa_lex_is(lexer, '(') || !skip_nested(program, lexer, '(', ')'))
				return ptxa_stop(program, PATHS_DAMAGED, lexer->token.line);
		} else if (ptxa_slice_is(word, "v2") || ptxa_slice_is(word, "v4") || ptxa_slice_is(word, "v8")) {
			lanes = (uint32_t)(word.text[1] - '0');
		} else if (!ptxa_type_named(word, &declaration->type) && !ptxa_space_named(word, &space)) {
			return ptxa_stop(program, PATHS_DAMAGED, lexer->token.line);
		}
	}
	if (declaration->type.bytes == 0)
		return ptxa_stop(program, PATHS_DAMAGED, lexer->token.line);
	declaration->bytes = declaration->type.bytes * lanes;
	if (declaration->align == 0)
		declaration->align = declaration->bytes;
	if (declaration->align & (declaration->align - 1))
		return ptxa_stop(program, PATHS_DAMAGED, lexer->token.line);
	return true;
}

bool ptxa_declaration_name(struct ptxa_program *program, struct ptxa_lexer *lexer, struct ptxa_declaration *declaration)
{
	uint64_t value = 0, bytes = declaration->bytes;

	if (lexer->token.kind != PTX_TOKEN_WORD)
		return ptxa_stop(program, PATHS_DAMAGED, lexer->token.line);
	declaration->name = lexer->token.slice;
	ptxa_lex_next(lexer);
	if (ptxa_lex_take(lexer, '<')) {
		if (!number(program, lexer, UINT32_MAX, &value))
			return false;
		declaration->repeat = (uint32_t)value;
		if (value == 0 || !ptxa_lex_take(lexer, '>'))
			return ptxa_stop(program, PATHS_DAMAGED, lexer->token.line);
	}
	while (ptxa_lex_take(lexer, '[')) {
		value = 0;
		if (!ptxa_lex_is(lexer, ']') && !number(program, lexer, 1u << 31, &value))
			return false;
		if (!ptxa_lex_take(lexer, ']'))
			return ptxa_stop(program, PATHS_DAMAGED, lexer->token.line);
		bytes *= value;
		if (bytes > 1u << 31)
			return ptxa_stop(program, PATHS_LIMIT, lexer->token.line);
	}
	declaration->bytes = (uint32_t)bytes;
	return true;
}

#define CELLS_MAX (1u << 20)
#define CELLS_EACH (1u << 14)

uint32_t ptxa_variable_new(struct ptxa_program *program, enum ptxa_space space, const struct ptxa_declaration *declaration)
{
	uint32_t words = (declaration->bytes + 3) / 4;
	struct ptxa_variable *variable;

	if (program->variable_count >= PTX_VARIABLES_MAX)
		return ptxa_stop(program, PATHS_LIMIT, 0), PTX_NONE;
	if (!ptxa_room(program, &program->variables, &program->variable_room, program->variable_count,
	               sizeof(*program->variables)))
		return PTX_NONE;
	variable = &program->variables[program->variable_count];
	*variable = (struct ptxa_variable){.place = PTX_NONE,
	                                   .space = (uint8_t)space,
	                                   .bytes = declaration->bytes,
	                                   .align = declaration->align,
	                                   .cells = PTX_NONE};
	if ((space == PTX_LOCAL || space == PTX_PARAM) && words && words <= CELLS_EACH &&
	    program->cell_count + words <= CELLS_MAX) {
		while (program->cell_room < program->cell_count + words)
			if (!ptxa_room(program, &program->cells, &program->cell_room, program->cell_room,
			               sizeof(*program->cells)))
				return PTX_NONE;
		variable->cells = program->cell_count;
		memset(program->cells + program->cell_count, 0, words * sizeof(*program->cells));
		program->cell_count += words;
	}
	return program->variable_count++;
}

uint32_t ptxa_function_named(const struct ptxa_program *program, struct ptxa_slice name)
{
	const struct ptxa_name *found = ptxa_names_find(program->names, name, 0);

	return found && found->meaning == PTX_NAME_FUNCTION ? found->id : PTX_NONE;
}

/* A module variable. Declared again (extern, common, weak) it is the same. */
static bool read_variables(struct ptxa_program *program, struct ptxa_lexer *lexer, enum ptxa_space space)
{
	struct ptxa_declaration declaration;
	bool twice;

	if (!ptxa_declaration_type(program, lexer, &declaration))
		return false;
	do {
		struct ptxa_declaration one = declaration;
		struct ptxa_name name = {.meaning = PTX_NAME_VARIABLE};

		if (!ptxa_declaration_name(program, lexer, &one))
			return false;
		name.slice = one.name;
		name.id = ptxa_variable_new(program, space, &one);
		if (name.id == PTX_NONE)
			return false;
		if (!ptxa_names_add(program->names, &name, &twice) && !twice)
			return ptxa_no_memory(program);
		if (ptxa_lex_take(lexer, '=')) {
			if (ptxa_lex_is(lexer, '{') && !skip_nested(program, lexer, '{', '}'))
				return false;
			while (!ptxa_lex_is(lexer, ',') && !ptxa_lex_is(lexer, ';') && lexer->token.kind != PTX_TOKEN_END)
				ptxa_lex_next(lexer);
		}
	} while (ptxa_lex_take(lexer, ','));
	return ptxa_lex_take(lexer, ';') || ptxa_stop(program, PATHS_DAMAGED, lexer->token.line);
}

static bool add_function(struct ptxa_program *program, const struct ptxa_function *function)
{
	uint32_t old = ptxa_function_named(program, function->name);
	struct ptxa_name name = {.slice = function->name, .meaning = PTX_NAME_FUNCTION, .id = program->function_count};
	bool twice;

	if (old != PTX_NONE) {
		struct ptxa_function *known = &program->functions[old];

		if (!function->has_body)
			return true;
		if (known->has_body)
			return ptxa_stop(program, PATHS_DAMAGED, function->head.token.line);
		*known = *function;
		return true;
	}
	if (program->function_count >= PTX_FUNCTIONS_MAX)
		return ptxa_stop(program, PATHS_LIMIT, function->head.token.line);
	if (!ptxa_room(program, &program->functions, &program->function_room, program->function_count,
	               sizeof(*program->functions)))
		return false;
	if (!ptxa_names_add(program->names, &name, &twice))
		return twice ? ptxa_stop(program, PATHS_DAMAGED, function->head.token.line) : ptxa_no_memory(program);
	program->functions[program->function_count++] = *function;
	return true;
}

static bool read_function(struct ptxa_program *program, struct ptxa_lexer *lexer, bool is_entry)
{
	struct ptxa_function function = {.is_entry = is_entry};

	while (ptxa_lex_dot(lexer, "attribute")) {
		ptxa_lex_next(lexer);
		if (!ptxa_lex_is(lexer, '(') || !skip_nested(program, lexer, '(', ')'))
			return ptxa_stop(program, PATHS_DAMAGED, lexer->token.line);
	}
	if (ptxa_lex_is(lexer, '(') && !is_entry) {
		function.results_head = *lexer;
		function.has_results = true;
		if (!skip_nested(program, lexer, '(', ')'))
			return false;
	}
	if (lexer->token.kind != PTX_TOKEN_WORD)
		return ptxa_stop(program, PATHS_DAMAGED, lexer->token.line);
	function.name = lexer->token.slice;
	ptxa_lex_next(lexer);
	function.head = *lexer;
	while (!ptxa_lex_is(lexer, '{') && !ptxa_lex_is(lexer, ';')) {
		if (lexer->token.kind == PTX_TOKEN_END || lexer->token.kind == PTX_TOKEN_BAD)
			return ptxa_stop(program, PATHS_DAMAGED, lexer->token.line);
		/* `.pragma` ends with a semicolon of its own. */
		if (ptxa_lex_dot(lexer, "pragma"))
			while (!ptxa_lex_is(lexer, ';') && lexer->token.kind != PTX_TOKEN_END)
				ptxa_lex_next(lexer);
		ptxa_lex_next(lexer);
	}
	function.has_body = ptxa_lex_is(lexer, '{');
	if (function.has_body) {
		if (!ptxa_lex_skip_body(lexer)) {
			/* Known all the same, so that its kernel is told to be damaged. */
			add_function(program, &function);
			return ptxa_stop(program, PATHS_DAMAGED, function.head.token.line);
		}
	} else {
		ptxa_lex_next(lexer);
	}
	return add_function(program, &function);
}

static bool read_directive(struct ptxa_program *program, struct ptxa_lexer *lexer)
{
	struct ptxa_slice word = lexer->token.slice;
	enum ptxa_space space;

	if (ptxa_slice_is(word, "version") || ptxa_slice_is(word, "target") || ptxa_slice_is(word, "file") ||
	    ptxa_slice_is(word, "loc")) {
		ptxa_lex_next_line(lexer);
		return true;
	}
	ptxa_lex_next(lexer);
	if (ptxa_slice_is(word, "address_size")) {
		if (lexer->token.kind != PTX_TOKEN_NUMBER || lexer->token.number != 64)
			return ptxa_stop(program, PATHS_ARCHITECTURE, lexer->token.line);
		ptxa_lex_next(lexer);
		return true;
	}
	if (ptxa_slice_is(word, "visible") || ptxa_slice_is(word, "extern") || ptxa_slice_is(word, "weak") ||
	    ptxa_slice_is(word, "common"))
		return true;
	if (ptxa_slice_is(word, "entry") || ptxa_slice_is(word, "func"))
		return read_function(program, lexer, word.text[0] == 'e');
	if (ptxa_space_named(word, &space) && space != PTX_PARAM)
		return read_variables(program, lexer, space);
	if (ptxa_slice_is(word, "tex"))
		return read_variables(program, lexer, PTX_GLOBAL);
	if (ptxa_slice_is(word, "section")) {
		while (!ptxa_lex_is(lexer, '{') && lexer->token.kind != PTX_TOKEN_END &&
		       lexer->token.kind != PTX_TOKEN_BAD)
			ptxa_lex_next(lexer);
		return ptxa_lex_is(lexer, '{') ? skip_nested(program, lexer, '{', '}')
		                               : ptxa_stop(program, PATHS_DAMAGED, lexer->token.line);
	}
	if (ptxa_slice_is(word, "pragma") || ptxa_slice_is(word, "alias")) {
		while (!ptxa_lex_is(lexer, ';') && lexer->token.kind != PTX_TOKEN_END &&
		       lexer->token.kind != PTX_TOKEN_BAD)
			ptxa_lex_next(lexer);
		/* An alias is a name that calls do not find: such calls go to an unknown function. */
		return ptxa_lex_take(lexer, ';') || ptxa_stop(program, PATHS_DAMAGED, lexer->token.line);
	}
	return ptxa_stop(program, PATHS_DAMAGED, lexer->token.line);
}

bool ptxa_module_read(struct ptxa_program *program)
{
	struct ptxa_lexer lexer;

	ptxa_lex_start(&lexer, program->text, program->bytes);
	while (lexer.token.kind != PTX_TOKEN_END) {
		if (ptxa_lex_take(&lexer, ';'))
			continue;
		if (lexer.token.kind != PTX_TOKEN_DOT)
			return ptxa_stop(program, PATHS_DAMAGED, lexer.token.line);
		if (!read_directive(program, &lexer))
			return false;
	}
	return true;
}
