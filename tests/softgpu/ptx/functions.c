/* Functions: their heads, tuning directives, and the statements of their bodies. */
#include <string.h>

#include "tests/softgpu/ptx/load.h"

static struct ptx_function *function_named(struct loader *loader, struct slice name, bool entry)
{
	struct symbol *symbol = ptx_symbol_find(loader, name);
	struct ptx_function *function;

	if (symbol && symbol->kind == SYMBOL_FUNCTION && symbol->function->entry == entry && !symbol->function->defined)
		return symbol->function;
	symbol = ptx_symbol_add(loader, name, SYMBOL_FUNCTION);
	function = symbol ? ptx_load_keep(loader, sizeof(*function)) : NULL;
	if (!function)
		return NULL;
	symbol->function = function;
	*function = (struct ptx_function){
		.module = loader->module, .entry = entry, .line = text_of(loader)->line, .register_count = 1};
	function->name = ptx_load_keep_string(loader, name);
	*loader->module->functions_end = function;
	loader->module->functions_end = &function->next;
	return function->name ? function : NULL;
}

/* A list of formals in parentheses, laid out behind *used. */
static bool read_formals(struct loader *loader, bool entry, size_t *used, struct formal **ret_formals, unsigned *ret_count)
{
	struct ptx_text *text = text_of(loader);
	struct formal formals[512];
	unsigned count = 0;

	*ret_count = 0;
	if (!ptx_text_need(text, '('))
		return false;
	while (!ptx_text_take(text, ')')) {
		struct declaration declaration;
		struct symbol *symbol;

		if (count == sizeof(formals) / sizeof(formals[0]))
			return ptx_text_fail(text, PTX_UNSUPPORTED, "more than %u parameters", count);
		if (count && !ptx_text_need(text, ','))
			return false;
		struct slice word = ptx_take_dot(loader);
		if (slice_is(word, "reg"))
			return ptx_text_fail(text, PTX_UNSUPPORTED, "parameters in .reg");
		if (!slice_is(word, "param"))
			return ptx_text_fail(text, PTX_INVALID, "a parameter begins with .param");
		if (!ptx_declaration_read(loader, &declaration))
			return false;
		if (declaration.open)
			return ptx_text_fail(text, PTX_UNSUPPORTED, "a parameter of unknown size");
		size_t at = (*used + declaration.align - 1) & ~(declaration.align - 1);
		if (declaration.bytes > PARAM_LIMIT || at + declaration.bytes > PARAM_LIMIT)
			return ptx_text_fail(text, PTX_INVALID, "parameters of more than %u bytes", PARAM_LIMIT);
		formals[count++] = (struct formal){at, declaration.bytes};
		*used = at + declaration.bytes;
		if (slice_is(declaration.name, "_"))
			continue;
		symbol = ptx_symbol_add(loader, declaration.name, SYMBOL_VARIABLE);
		if (!symbol)
			return false;
		symbol->space = entry ? SPACE_PARAM : SPACE_LOCAL;
		symbol->is_entry_param = entry;
		symbol->address = at;
		symbol->bytes = declaration.bytes;
	}
	*ret_formals = ptx_load_keep(loader, (count + 1) * sizeof(formals[0]));
	if (!*ret_formals)
		return false;
	memcpy(*ret_formals, formals, count * sizeof(formals[0]));
	*ret_count = count;
	return true;
}

static bool read_dims(struct loader *loader, uint32_t dims[3])
{
	struct ptx_text *text = text_of(loader);

	dims[0] = dims[1] = dims[2] = 1;
	for (unsigned n = 0; n < 3; n++) {
		if (text->token != TOKEN_INT || !text->bits || text->bits > 65536)
			return ptx_text_fail(text, PTX_INVALID, "a block dimension is due here");
		dims[n] = (uint32_t)text->bits;
		ptx_text_next(text);
		if (!ptx_text_take(text, ','))
			return true;
	}
	return ptx_text_fail(text, PTX_INVALID, "more than three dimensions");
}

/* .maxntid, .pragma and the like between head and body. */
static bool read_tuning(struct loader *loader, struct ptx_function *function)
{
	struct ptx_text *text = text_of(loader);
	uint32_t dims[3];

	while (text->token == TOKEN_DOT) {
		struct slice word = ptx_take_dot(loader);

		if (slice_is(word, "maxntid")) {
			if (!read_dims(loader, dims))
				return false;
			uint64_t threads = (uint64_t)dims[0] * dims[1] * dims[2];
			function->max_threads = threads > 1024 ? 1024 : (uint32_t)threads;
		} else if (slice_is(word, "reqntid")) {
			if (!read_dims(loader, function->required))
				return false;
		} else if (slice_is(word, "reqnctapercluster")) {
			if (!read_dims(loader, function->cluster))
				return false;
		} else if (slice_is(word, "explicitcluster")) {
			continue; /* the launch says its shape; the hardware refuses launches that do not */
		} else if (slice_is(word, "minnctapersm") || slice_is(word, "maxnctapersm") ||
		           slice_is(word, "maxnreg") || slice_is(word, "maxclusterrank")) {
			uint64_t ignored;

			if (!ptx_integer(loader, &ignored))
				return false;
		} else if (slice_is(word, "pragma")) {
			while (text->token == TOKEN_STRING || text_is(text, ','))
				ptx_text_next(text);
			if (!ptx_text_need(text, ';'))
				return false;
		} else if (!slice_is(word, "noreturn")) {
			return ptx_text_fail(text, PTX_UNSUPPORTED, "directive .%.*s", SLICE(word));
		}
	}
	return true;
}

static bool read_body(struct loader *loader, struct ptx_function *function)
{
	struct insn end = INSN_INIT;

	if (function->defined)
		return ptx_text_fail(text_of(loader), PTX_INVALID, "'%.64s' has two bodies", function->name);
	function->defined = true;
	if (!ptx_text_need(text_of(loader), '{') || !ptx_body_read(loader))
		return false;
	/* Running off the end returns; a label at the very end needs an instruction too. */
	end.run = ptx_step_control(CONTROL_RETURN);
	if (!ptx_emit(loader, NULL, end) || !ptx_scope_leave(loader) || !ptx_constants_finish(loader))
		return false;
	if (!function->entry && function->local_bytes > loader->module->max_func_local)
		loader->module->max_func_local = function->local_bytes;
	return true;
}

bool ptx_function_read(struct loader *loader, bool entry, bool is_extern)
{
	struct ptx_text *text = text_of(loader);
	struct formal *results = NULL, *formals = NULL;
	unsigned result_count = 0, formal_count = 0;
	size_t used = 0;
	struct slice name;
	struct scope *outer = loader->scope;

	if (!ptx_scope_enter(loader))
		return false;
	if (!entry && text_is(text, '(') && !read_formals(loader, false, &used, &results, &result_count))
		return false;
	name = text->word;
	if (text->token != TOKEN_NAME)
		return ptx_text_fail(text, PTX_INVALID, "a function's name is due here");
	/* The function belongs to the module's scope, its formals to its own. */
	struct scope *inner = loader->scope;
	loader->scope = outer;
	struct ptx_function *function = function_named(loader, name, entry);
	loader->scope = inner;
	if (!function)
		return false;
	ptx_text_next(text);
	if (text_is(text, '(') && !read_formals(loader, entry, &used, &formals, &formal_count))
		return false;
	if ((function->formals || function->results) &&
	    (function->formal_count != formal_count || function->result_count != result_count))
		return ptx_text_fail(text, PTX_INVALID, "'%.*s' is declared with other parameters", SLICE(name));
	function->formals = formals;
	function->results = results;
	function->formal_count = formal_count;
	function->result_count = result_count;
	if (entry)
		function->params_bytes = used;
	else
		function->local_bytes = used;
	if (!read_tuning(loader, function))
		return false;
	if (ptx_text_take(text, ';'))
		return ptx_scope_leave(loader);
	loader->function = function;
	loader->carry = 0;
	loader->declared = 0;
	bool done = read_body(loader, function);
	loader->function = NULL;
	return done;
}
