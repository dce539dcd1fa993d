/* Declarations: registers, and variables of every state space with their initial values. */
#include <string.h>

#include "tests/softgpu/ptx/load.h"
#include "tests/softgpu/ptx/machine.h"

#define DIMENSIONS_LIMIT 8u

static const struct {
	const char *name;
	uint8_t bytes;
} types[TY_COUNT] = {
	[TY_PRED] = {"pred", 1},     [TY_B8] = {"b8", 1},   [TY_B16] = {"b16", 2},     [TY_B32] = {"b32", 4},
	[TY_B64] = {"b64", 8},       [TY_U8] = {"u8", 1},   [TY_U16] = {"u16", 2},     [TY_U32] = {"u32", 4},
	[TY_U64] = {"u64", 8},       [TY_S8] = {"s8", 1},   [TY_S16] = {"s16", 2},     [TY_S32] = {"s32", 4},
	[TY_S64] = {"s64", 8},       [TY_F16] = {"f16", 2}, [TY_F16X2] = {"f16x2", 4}, [TY_BF16] = {"bf16", 2},
	[TY_BF16X2] = {"bf16x2", 4}, [TY_F32] = {"f32", 4}, [TY_F64] = {"f64", 8},
};

unsigned ptx_type_bytes(enum ptx_type type)
{
	return types[type].bytes;
}

bool ptx_type_is_float(enum ptx_type type)
{
	return type >= TY_F16 && type <= TY_F64;
}

bool ptx_type_is_signed(enum ptx_type type)
{
	return type >= TY_S8 && type <= TY_S64;
}

enum ptx_type ptx_type_named(struct slice word)
{
	for (enum ptx_type type = TY_PRED; type < TY_COUNT; type++)
		if (slice_is(word, types[type].name))
			return type;
	return TY_NONE;
}

struct slice ptx_take_dot(struct loader *loader)
{
	struct ptx_text *text = text_of(loader);
	struct slice word = text->word;

	if (text->token != TOKEN_DOT) {
		ptx_text_fail(text, PTX_INVALID, "a word that begins with a dot is due here");
		return (struct slice){"", 0};
	}
	ptx_text_next(text);
	return word;
}

static bool take_name(struct loader *loader, struct slice *ret_name)
{
	struct ptx_text *text = text_of(loader);

	if (text->token != TOKEN_NAME)
		return ptx_text_fail(text, PTX_INVALID, "a name is due here");
	*ret_name = text->word;
	ptx_text_next(text);
	return true;
}

bool ptx_registers_read(struct loader *loader)
{
	struct ptx_text *text = text_of(loader);
	struct slice word = ptx_take_dot(loader);
	enum ptx_type type = ptx_type_named(word);

	if (text->status != PTX_OK)
		return false;
	if (type == TY_NONE)
		return ptx_text_fail(text, PTX_UNSUPPORTED, "registers of type .%.*s", SLICE(word));
	do {
		struct slice name;
		struct symbol *symbol;
		uint64_t count = 1;

		if (!take_name(loader, &name))
			return false;
		bool range = ptx_text_take(text, '<');
		if (range) {
			if (text->token != TOKEN_INT)
				return ptx_text_fail(text, PTX_INVALID, "a number of registers is due here");
			count = text->bits;
			ptx_text_next(text);
			if (!ptx_text_need(text, '>'))
				return false;
		}
		if (count > REGISTER_LIMIT - loader->declared)
			return ptx_text_fail(text, PTX_UNSUPPORTED, "more than %u registers", REGISTER_LIMIT);
		loader->declared += (uint32_t)count;
		symbol = ptx_symbol_add(loader, name, range ? SYMBOL_RANGE : SYMBOL_REGISTER);
		if (!symbol)
			return false;
		symbol->type = type;
		symbol->count = (uint32_t)count;
		if (range) {
			symbol->slots = ptx_load_scratch(loader, (size_t)(count + 1) * sizeof(*symbol->slots));
			if (!symbol->slots)
				return false;
		}
	} while (ptx_text_take(text, ','));
	return ptx_text_need(text, ';');
}

static bool read_dimensions(struct loader *loader, struct declaration *declaration)
{
	struct ptx_text *text = text_of(loader);

	for (unsigned n = 0; ptx_text_take(text, '['); n++) {
		uint64_t count = 0;

		if (n == DIMENSIONS_LIMIT)
			return ptx_text_fail(text, PTX_UNSUPPORTED, "more than %u dimensions", DIMENSIONS_LIMIT);
		if (!n && ptx_text_take(text, ']')) {
			declaration->open = true;
			continue;
		}
		if (!ptx_integer(loader, &count) || !ptx_text_need(text, ']'))
			return false;
		if (!count || __builtin_mul_overflow(declaration->bytes, count, &declaration->bytes) ||
		    declaration->bytes > SIZE_MAX / 4)
			return ptx_text_fail(text, PTX_INVALID, "an array's size is out of range");
	}
	return true;
}

bool ptx_declaration_read(struct loader *loader, struct declaration *ret_declaration)
{
	struct ptx_text *text = text_of(loader);
	struct declaration declaration = {0};
	unsigned vector = 1;

	while (text->token == TOKEN_DOT) {
		struct slice word = ptx_take_dot(loader);
		enum ptx_type type = ptx_type_named(word);

		if (slice_is(word, "align")) {
			uint64_t align;

			if (text->token != TOKEN_INT)
				return ptx_text_fail(text, PTX_INVALID, "an alignment is due here");
			align = text->bits;
			ptx_text_next(text);
			if (!align || align & (align - 1) || align > 1u << 20)
				return ptx_text_fail(text, PTX_INVALID, "the alignment is not a power of two up to 2^20");
			declaration.align = align;
		} else if (slice_is(word, "attribute")) {
			/* Device addresses are host addresses, so managed memory is like any other. */
			if (!ptx_text_need(text, '(') || !slice_is(ptx_take_dot(loader), "managed"))
				return ptx_text_fail(text, PTX_UNSUPPORTED, "an .attribute other than .managed");
			if (!ptx_text_need(text, ')'))
				return false;
		} else if (slice_is(word, "v2") || slice_is(word, "v4") || slice_is(word, "v8")) {
			vector = (unsigned)(word.at[1] - '0');
		} else if (slice_is(word, "ptr") || slice_is(word, "global") || slice_is(word, "const") ||
		           slice_is(word, "shared") || slice_is(word, "local") || slice_is(word, "param")) {
			/* What a pointer parameter points to: a promise that needs no keeping here. */
			continue;
		} else if (type != TY_NONE && type != TY_PRED && declaration.type == TY_NONE) {
			declaration.type = type;
		} else {
			return ptx_text_fail(text, type == TY_NONE ? PTX_UNSUPPORTED : PTX_INVALID,
			                     "variables of type .%.*s", SLICE(word));
		}
	}
	if (!take_name(loader, &declaration.name))
		return false;
	if (declaration.type == TY_NONE)
		return ptx_text_fail(text, PTX_INVALID, "'%.*s' has no type", SLICE(declaration.name));
	declaration.element = ptx_type_bytes(declaration.type);
	declaration.bytes = declaration.element * vector;
	if (!declaration.align)
		declaration.align = declaration.bytes;
	if (!read_dimensions(loader, &declaration))
		return false;
	*ret_declaration = declaration;
	return true;
}

/* Initial values, written in order into the variable; nested braces follow the text only. */
struct initial {
	const struct declaration *declaration;
	uint8_t *at;
	size_t used, bytes;
};

static bool write_initial(struct loader *loader, struct initial *initial, uint64_t bits)
{
	size_t element = initial->declaration->element;

	if (initial->bytes - initial->used < element)
		return ptx_text_fail(text_of(loader), PTX_INVALID, "more initial values than '%.*s' holds",
		                     SLICE(initial->declaration->name));
	memcpy(initial->at + initial->used, &bits, element);
	initial->used += element;
	return true;
}

/* name, name + n, generic(name) + n. */
static bool read_address(struct loader *loader, const struct initial *initial, uint64_t *ret_bits)
{
	struct ptx_text *text = text_of(loader);
	bool generic = slice_is(text->word, "generic");
	struct slice name = {0};
	uint64_t offset = 0;

	if (generic) {
		ptx_text_next(text);
		if (!ptx_text_need(text, '('))
			return false;
	}
	if (!take_name(loader, &name))
		return false;
	struct symbol *symbol = ptx_symbol_find(loader, name);
	if (!symbol)
		return ptx_text_fail(text, PTX_INVALID, "'%.*s' is not declared", SLICE(name));
	if (symbol->kind != SYMBOL_VARIABLE || (symbol->space != SPACE_GLOBAL && symbol->space != SPACE_CONST))
		return ptx_text_fail(text, PTX_UNSUPPORTED, "the address of '%.*s' as an initial value", SLICE(name));
	if (initial->declaration->element != 8)
		return ptx_text_fail(text, PTX_UNSUPPORTED, "an address in fewer than 64 bits");
	if (generic && !ptx_text_need(text, ')'))
		return false;
	if ((text_is(text, '+') || text_is(text, '-')) && !ptx_integer(loader, &offset))
		return false;
	*ret_bits = symbol->address + offset;
	return true;
}

static bool read_initial(struct loader *loader, struct initial *initial, unsigned depth)
{
	struct ptx_text *text = text_of(loader);
	struct constant value;
	uint64_t bits;

	if (depth > DIMENSIONS_LIMIT)
		return ptx_text_fail(text, PTX_INVALID, "braces nest deeper than %u", DIMENSIONS_LIMIT);
	if (ptx_text_take(text, '{')) {
		while (!ptx_text_take(text, '}'))
			if (!read_initial(loader, initial, depth + 1) ||
			    (!text_is(text, '}') && !ptx_text_need(text, ',')))
				return false;
		return true;
	}
	if (text->token == TOKEN_NAME)
		return read_address(loader, initial, &bits) && write_initial(loader, initial, bits);
	return ptx_expression(loader, &value) &&
	       ptx_constant_as(loader, text->line, &value, initial->declaration->type, &bits) &&
	       write_initial(loader, initial, bits);
}

/* Device memory for a module's variable; a name declared extern before keeps the memory it got then. */
static bool place_global(struct loader *loader, const struct declaration *declaration, struct symbol *symbol)
{
	struct ptx_module *module = loader->module;
	struct variable *variable = ptx_load_keep(loader, sizeof(*variable));

	if (!variable)
		return false;
	variable->name = ptx_load_keep_string(loader, declaration->name);
	if (!variable->name)
		return false;
	variable->bytes = declaration->bytes;
	variable->address = module->memory.alloc(module->memory.data, declaration->bytes, declaration->align);
	if (!variable->address)
		return ptx_text_fail(text_of(loader), PTX_OUT_OF_MEMORY, "no device memory for '%.*s' of %zu bytes",
		                     SLICE(declaration->name), declaration->bytes);
	variable->next = module->variables;
	module->variables = variable;
	symbol->address = variable->address;
	return true;
}

static bool place(struct loader *loader, uint64_t *used, uint64_t limit, const struct declaration *declaration,
                  struct symbol *symbol)
{
	uint64_t at = (*used + declaration->align - 1) & ~(uint64_t)(declaration->align - 1);

	if (declaration->bytes > limit || at > limit - declaration->bytes)
		return ptx_text_fail(text_of(loader), PTX_INVALID, "'%.*s' does not fit: the limit is %llu bytes",
		                     SLICE(declaration->name), (unsigned long long)limit);
	symbol->address = at;
	*used = at + declaration->bytes;
	return true;
}

static bool place_local(struct loader *loader, const struct declaration *declaration, struct symbol *symbol)
{
	uint64_t used = loader->function->local_bytes;
	bool done = place(loader, &used, LOCAL_LIMIT, declaration, symbol);

	loader->function->local_bytes = used;
	return done;
}

/*
 * A kernel's own shared variables begin behind the module's. Those of the module, and of a .func, which any kernel
 * may call, are in nobody's way: behind all that there is so far.
 */
static bool place_shared(struct loader *loader, const struct declaration *declaration, struct symbol *symbol)
{
	struct ptx_module *module = loader->module;
	struct ptx_function *entry = loader->function && loader->function->entry ? loader->function : NULL;
	uint64_t used = entry ? entry->shared_bytes : module->shared_top;

	if (declaration->open) {
		symbol->is_dynamic = true;
		if (declaration->align > module->dynamic_align)
			module->dynamic_align = declaration->align;
		return true;
	}
	if (entry && used < module->shared_used)
		used = module->shared_used;
	if (!place(loader, &used, SHARED_LIMIT, declaration, symbol))
		return false;
	if (entry)
		entry->shared_bytes = used;
	else
		module->shared_used = used;
	if (used > module->shared_top)
		module->shared_top = used;
	return true;
}

static bool place_variable(struct loader *loader, const struct declaration *declaration, struct symbol *symbol)
{
	switch (symbol->space) {
	case SPACE_GLOBAL:
	case SPACE_CONST:
		return place_global(loader, declaration, symbol);
	case SPACE_SHARED:
		return place_shared(loader, declaration, symbol);
	default:
		/* .local, and .param inside a body. */
		if (!loader->function)
			return ptx_text_fail(text_of(loader), PTX_INVALID, "'%.*s' is outside a function",
			                     SLICE(declaration->name));
		return place_local(loader, declaration, symbol);
	}
}

/* int a[] = {1, 2}: the text is read once for its length, and again for its values. */
static bool measure_open(struct loader *loader, struct declaration *declaration)
{
	struct ptx_text *text = text_of(loader);
	const struct ptx_text before = *text;
	size_t count = 0;
	unsigned depth = 0;

	for (bool item = false; text->token != TOKEN_END && !text_is(text, ';'); ptx_text_next(text)) {
		bool brace = text_is(text, '{') || text_is(text, '}'), comma = text_is(text, ',');

		if ((brace || comma) && item)
			count++;
		item = !brace && !comma && depth;
		if (brace)
			depth += text_is(text, '{') ? 1 : -1u;
	}
	if (text->status != PTX_OK)
		return false;
	*text = before;
	if (!count || __builtin_mul_overflow(declaration->bytes, count, &declaration->bytes))
		return ptx_text_fail(text, PTX_INVALID, "'%.*s' has no size", SLICE(declaration->name));
	return true;
}

bool ptx_variable_read(struct loader *loader, enum ptx_space space, bool is_extern)
{
	struct ptx_text *text = text_of(loader);
	struct declaration declaration;
	struct symbol *symbol;

	do {
		if (!ptx_declaration_read(loader, &declaration))
			return false;
		bool has_values = text_is(text, '=');
		if (has_values)
			ptx_text_next(text);
		if (declaration.open && has_values && !measure_open(loader, &declaration))
			return false;
		if (declaration.open && !has_values && space != SPACE_SHARED)
			return ptx_text_fail(text, is_extern ? PTX_UNSUPPORTED : PTX_INVALID, "'%.*s' has no size",
			                     SLICE(declaration.name));
		symbol = ptx_symbol_find(loader, declaration.name);
		if (symbol && symbol->scope == loader->scope && symbol->kind == SYMBOL_VARIABLE && symbol->is_extern &&
		    symbol->space == space && symbol->bytes == declaration.bytes &&
		    (space == SPACE_GLOBAL || space == SPACE_CONST)) {
			symbol->is_extern = is_extern;
		} else {
			symbol = ptx_symbol_add(loader, declaration.name, SYMBOL_VARIABLE);
			if (!symbol)
				return false;
			symbol->space = space;
			symbol->bytes = declaration.bytes;
			symbol->is_extern = is_extern;
			if (!place_variable(loader, &declaration, symbol))
				return false;
		}
		if (has_values) {
			struct initial initial = {&declaration, (uint8_t *)(uintptr_t)symbol->address, 0,
			                          declaration.bytes};

			if (space != SPACE_GLOBAL && space != SPACE_CONST)
				return ptx_text_fail(text, PTX_INVALID, "'%.*s' cannot have initial values",
				                     SLICE(declaration.name));
			if (!read_initial(loader, &initial, 0))
				return false;
		}
	} while (ptx_text_take(text, ','));
	return ptx_text_need(text, ';');
}
