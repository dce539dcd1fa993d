/* The module's own directives, and the public look-ups. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/softgpu/ptx/load.h"

struct statement *ptx_load_statement(struct loader *loader)
{
	struct statement *statement = loader->statement;

	statement->guard = NO_OPERAND;
	statement->guard_not = false;
	statement->modifier_count = statement->operand_count = 0;
	statement->has_second = false;
	memset(statement->used, 0, sizeof(statement->used));
	statement->loader = loader;
	return statement;
}

/* .section .debug_x { ... } and other blocks in braces. */
static bool skip_section(struct loader *loader)
{
	struct ptx_text *text = text_of(loader);

	while (text->token == TOKEN_DOT || text->token == TOKEN_NAME)
		ptx_text_next(text);
	if (!ptx_text_need(text, '{'))
		return false;
	while (text->token != TOKEN_END && !text_is(text, '}'))
		ptx_text_next(text);
	return ptx_text_need(text, '}');
}

/* Architectures up to those of PTX 9.x, with their variants; and what else may stand in .target. */
static bool is_target(struct slice word)
{
	static const char names[] =
		" sm_10 sm_11 sm_12 sm_13 sm_20 sm_21 sm_30 sm_32 sm_35 sm_37 sm_50 sm_52 sm_53 sm_60 sm_61 sm_62 sm_70 sm_72 "
		"sm_75 sm_80 sm_86 sm_87 sm_88 sm_89 sm_90 sm_90a sm_100 sm_100a sm_100f sm_101 sm_101a sm_101f sm_103 sm_103a "
		"sm_103f sm_110 sm_110a sm_110f sm_120 sm_120a sm_120f sm_121 sm_121a sm_121f "
		"texmode_unified texmode_independent debug map_f64_to_f32 ";
	char padded[40];

	return (size_t)snprintf(padded, sizeof(padded), " %.*s ", SLICE(word)) < sizeof(padded) && strstr(names, padded);
}

static bool read_header(struct loader *loader)
{
	struct ptx_text *text = text_of(loader);

	if (text->token != TOKEN_DOT || !slice_is(text->word, "version"))
		return ptx_text_fail(text, PTX_INVALID, "the text does not begin with .version");
	ptx_text_next(text);
	if (text->token != TOKEN_FLOAT)
		return ptx_text_fail(text, PTX_INVALID, "a version like 7.0 is due here");
	double version;
	memcpy(&version, &text->bits, sizeof(version));
	if (text->single || !(version >= 1.0))
		return ptx_text_fail(text, PTX_INVALID, "a version like 7.0 is due here");
	if (version >= 10.0)
		return ptx_text_fail(text, PTX_UNSUPPORTED_VERSION, "PTX of version 10 or newer");
	ptx_text_next(text);
	if (text->token != TOKEN_DOT || !slice_is(text->word, "target"))
		return ptx_text_fail(text, PTX_INVALID, ".target is due after .version");
	do {
		ptx_text_next(text);
		if (text->token != TOKEN_NAME)
			return ptx_text_fail(text, PTX_INVALID, "a target like sm_75 is due here");
		if (!is_target(text->word))
			return ptx_text_fail(text, PTX_INVALID, "there is no target '%.*s'", SLICE(text->word));
		ptx_text_next(text);
	} while (text_is(text, ','));
	return true;
}

static bool skip_file(struct loader *loader)
{
	struct ptx_text *text = text_of(loader);

	if (text->token != TOKEN_INT)
		return ptx_text_fail(text, PTX_INVALID, "a file's number is due here");
	while (text->token == TOKEN_INT || text->token == TOKEN_STRING || text_is(text, ','))
		ptx_text_next(text);
	return true;
}

static bool read_linked(struct loader *loader, struct slice word, bool is_extern, int line)
{
	if (slice_is(word, "entry"))
		return ptx_function_read(loader, true, is_extern);
	if (slice_is(word, "func"))
		return ptx_function_read(loader, false, is_extern);
	if (slice_is(word, "global"))
		return ptx_variable_read(loader, SPACE_GLOBAL, is_extern);
	if (slice_is(word, "const"))
		return ptx_variable_read(loader, SPACE_CONST, is_extern);
	if (slice_is(word, "shared"))
		return ptx_variable_read(loader, SPACE_SHARED, is_extern);
	return ptx_text_fail_at(text_of(loader), line, PTX_UNSUPPORTED, "directive .%.*s", SLICE(word));
}

static bool read_directive(struct loader *loader)
{
	struct ptx_text *text = text_of(loader);
	struct slice word = text->word;
	int line = text->line;
	uint64_t size;

	if (slice_is(word, "loc"))
		return ptx_loc_skip(loader);
	ptx_text_next(text);
	if (slice_is(word, "address_size")) {
		if (!ptx_integer(loader, &size))
			return false;
		return size == 64 ||
		       ptx_text_fail_at(text, line, PTX_UNSUPPORTED, "addresses of %llu bits", (unsigned long long)size);
	}
	if (slice_is(word, "file"))
		return skip_file(loader);
	if (slice_is(word, "section"))
		return skip_section(loader);
	if (slice_is(word, "pragma")) {
		while (text->token == TOKEN_STRING || text_is(text, ','))
			ptx_text_next(text);
		return ptx_text_need(text, ';');
	}
	bool is_extern = slice_is(word, "extern");
	while (slice_is(word, "visible") || slice_is(word, "weak") || slice_is(word, "extern") ||
	       slice_is(word, "common")) {
		word = ptx_take_dot(loader);
		if (text->status != PTX_OK)
			return false;
	}
	/* .func .attribute(.unified(...)) and friends are refused by name further on. */
	return read_linked(loader, word, is_extern, line);
}

static bool finish(struct loader *loader)
{
	struct ptx_module *module = loader->module;
	size_t count = 0;

	for (struct ptx_function *function = module->functions; function; function = function->next) {
		if (!function->defined && function->called)
			function->outside = ptx_step_outside(function);
		if (!function->defined && function->called && !function->outside)
			return ptx_text_fail_at(text_of(loader), function->line, PTX_UNSUPPORTED,
			                        "a call of '%.64s', which has no body", function->name);
		count += function->entry && function->defined;
	}
	module->entries = ptx_load_keep(loader, (count + 1) * sizeof(*module->entries));
	if (!module->entries)
		return false;
	for (struct ptx_function *function = module->functions; function; function = function->next)
		if (function->entry && function->defined)
			module->entries[module->entry_count++] = function;
	for (struct symbol *symbol = loader->scope->symbols; symbol; symbol = symbol->in_scope)
		if (symbol->kind == SYMBOL_VARIABLE && symbol->is_extern && symbol->space != SPACE_SHARED)
			return ptx_text_fail(text_of(loader), PTX_UNSUPPORTED,
			                     "'%.*s' is declared .extern and never defined", SLICE(symbol->name));
	return true;
}

static bool read_module(struct loader *loader)
{
	struct ptx_text *text = text_of(loader);

	loader->statement = ptx_load_scratch(loader, sizeof(*loader->statement));
	if (!loader->statement || !ptx_scope_enter(loader) || !read_header(loader))
		return false;
	while (text->token == TOKEN_DOT)
		if (!read_directive(loader))
			return false;
	if (text->status != PTX_OK)
		return false;
	if (text->token != TOKEN_END)
		return ptx_text_fail(text, PTX_INVALID, "a directive is due here");
	return finish(loader);
}

enum ptx_status ptx_load(const char *text, size_t bytes, const struct ptx_memory *memory, char *log, size_t log_bytes,
                         struct ptx_module **ret_module)
{
	struct loader *loader = calloc(1, sizeof(*loader));
	struct ptx_module *module = calloc(1, sizeof(*module));

	if (!loader || !module) {
		free(loader);
		free(module);
		if (log_bytes)
			snprintf(log, log_bytes, "no memory");
		return PTX_OUT_OF_MEMORY;
	}
	module->memory = *memory;
	module->functions_end = &module->functions;
	loader->module = module;
	ptx_text_init(&loader->text, text, bytes, log, log_bytes);
	bool done = read_module(loader);
	enum ptx_status status = loader->text.status;
	if (!done && status == PTX_OK)
		status = PTX_OUT_OF_MEMORY;
	ptx_arena_free(&loader->scratch);
	free(loader->constants);
	free(loader->constant_index);
	free(loader);
	if (status == PTX_OK)
		*ret_module = module;
	else
		ptx_unload(&module);
	return status;
}

void ptx_unload(struct ptx_module **module)
{
	struct ptx_module *gone = module ? *module : NULL;

	if (!gone)
		return;
	*module = NULL;
	for (struct variable *variable = gone->variables; variable; variable = variable->next)
		gone->memory.free(gone->memory.data, variable->address);
	for (struct ptx_function *function = gone->functions; function; function = function->next)
		free(function->code);
	ptx_arena_free(&gone->arena);
	free(gone);
}

struct ptx_function *ptx_find(struct ptx_module *module, const char *name)
{
	for (size_t n = 0; n < module->entry_count; n++)
		if (!strcmp(module->entries[n]->name, name))
			return module->entries[n];
	return NULL;
}

size_t ptx_function_count(const struct ptx_module *module)
{
	return module->entry_count;
}

struct ptx_function *ptx_function_at(struct ptx_module *module, size_t index)
{
	return module->entries[index];
}

const char *ptx_function_name(const struct ptx_function *function)
{
	return function->name;
}

bool ptx_function_param(const struct ptx_function *function, size_t index, size_t *ret_offset, size_t *ret_bytes)
{
	if (index >= function->formal_count)
		return false;
	*ret_offset = function->formals[index].offset;
	*ret_bytes = function->formals[index].bytes;
	return true;
}

size_t ptx_function_params_bytes(const struct ptx_function *function)
{
	return function->params_bytes;
}

/* Dynamic shared memory begins behind it, so it is rounded up to that one's alignment. */
size_t ptx_function_static_shared(const struct ptx_function *function)
{
	const struct ptx_module *module = function->module;
	size_t used = function->shared_bytes > module->shared_used ? function->shared_bytes : module->shared_used;
	size_t align = module->dynamic_align > 16 ? module->dynamic_align : 16;

	return (used + align - 1) & ~(align - 1);
}

bool ptx_function_cluster(const struct ptx_function *function, uint32_t ret_size[3])
{
	memcpy(ret_size, function->cluster, sizeof(function->cluster));
	return function->cluster[0] != 0;
}

unsigned ptx_function_max_threads(const struct ptx_function *function)
{
	if (function->required[0])
		return function->required[0] * function->required[1] * function->required[2];
	return function->max_threads ? function->max_threads : 1024;
}

bool ptx_global(const struct ptx_module *module, const char *name, uint64_t *ret_address, size_t *ret_bytes)
{
	for (const struct variable *variable = module->variables; variable; variable = variable->next)
		if (!strcmp(variable->name, name)) {
			*ret_address = variable->address;
			*ret_bytes = variable->bytes;
			return true;
		}
	return false;
}
