/* Names, scopes, labels, and the slots that registers and constants get. */
#include <stdlib.h>
#include <string.h>

#include "tests/softgpu/ptx/load.h"

#define ARENA_BLOCK 65536u

struct arena_block {
	struct arena_block *next;
	size_t used, room;
	_Alignas(16) unsigned char bytes[];
};

void *ptx_arena_take(struct arena *arena, size_t bytes)
{
	struct arena_block *block = arena->blocks;

	if (bytes > SIZE_MAX / 2)
		return NULL;
	bytes = (bytes + 15) & ~(size_t)15;
	if (!block || block->room - block->used < bytes) {
		size_t room = bytes > ARENA_BLOCK ? bytes : ARENA_BLOCK;

		block = calloc(1, sizeof(*block) + room);
		if (!block)
			return NULL;
		block->room = room;
		block->next = arena->blocks;
		arena->blocks = block;
	}
	void *at = block->bytes + block->used;
	block->used += bytes;
	return at;
}

void ptx_arena_free(struct arena *arena)
{
	while (arena->blocks) {
		struct arena_block *next = arena->blocks->next;

		free(arena->blocks);
		arena->blocks = next;
	}
}

static void *from_arena(struct loader *loader, struct arena *arena, size_t bytes)
{
	void *at = ptx_arena_take(arena, bytes);

	if (!at)
		ptx_text_fail(text_of(loader), PTX_OUT_OF_MEMORY, "no memory");
	return at;
}

void *ptx_load_scratch(struct loader *loader, size_t bytes)
{
	return from_arena(loader, &loader->scratch, bytes);
}

void *ptx_load_keep(struct loader *loader, size_t bytes)
{
	return from_arena(loader, &loader->module->arena, bytes);
}

char *ptx_load_keep_string(struct loader *loader, struct slice slice)
{
	char *copy = ptx_load_keep(loader, slice.length + 1);

	if (copy)
		memcpy(copy, slice.at, slice.length);
	return copy;
}

static uint32_t bucket_of(struct slice name)
{
	uint32_t hash = 2166136261u;

	for (size_t n = 0; n < name.length; n++)
		hash = (hash ^ (unsigned char)name.at[n]) * 16777619u;
	return (hash ^ hash >> 15) % SYMBOL_BUCKETS;
}

static bool same(struct slice a, struct slice b)
{
	return a.length == b.length && !memcmp(a.at, b.at, a.length);
}

struct symbol *ptx_symbol_find(struct loader *loader, struct slice name)
{
	struct symbol *symbol = loader->buckets[bucket_of(name)];

	while (symbol && !same(symbol->name, name))
		symbol = symbol->in_bucket;
	return symbol;
}

struct symbol *ptx_symbol_add(struct loader *loader, struct slice name, enum symbol_kind kind)
{
	uint32_t bucket = bucket_of(name);
	struct symbol *symbol = ptx_symbol_find(loader, name);

	if (symbol && symbol->scope == loader->scope) {
		ptx_text_fail(text_of(loader), PTX_INVALID, "'%.*s' is declared twice", SLICE(name));
		return NULL;
	}
	symbol = ptx_load_scratch(loader, sizeof(*symbol));
	if (!symbol)
		return NULL;
	*symbol = (struct symbol){.name = name,
	                          .kind = kind,
	                          .scope = loader->scope,
	                          .in_bucket = loader->buckets[bucket],
	                          .in_scope = loader->scope->symbols};
	loader->buckets[bucket] = symbol;
	loader->scope->symbols = symbol;
	return symbol;
}

bool ptx_scope_enter(struct loader *loader)
{
	struct scope *scope = ptx_load_scratch(loader, sizeof(*scope));

	if (!scope)
		return false;
	if (++loader->depth > NESTING_LIMIT)
		return ptx_text_fail(text_of(loader), PTX_INVALID, "braces nest deeper than %u", NESTING_LIMIT);
	scope->outer = loader->scope;
	loader->scope = scope;
	return true;
}

bool ptx_label_use(struct loader *loader, struct slice name, int line, uint32_t insn, uint32_t *target)
{
	struct fixup *fixup = ptx_load_scratch(loader, sizeof(*fixup));

	if (!fixup)
		return false;
	*fixup = (struct fixup){.name = name, .line = line, .insn = insn, .target = target, .next = loader->scope->fixups};
	loader->scope->fixups = fixup;
	return true;
}

bool ptx_scope_leave(struct loader *loader)
{
	struct scope *scope = loader->scope;
	struct fixup *fixup = scope->fixups, *next;

	for (; fixup; fixup = next) {
		struct symbol *label = ptx_symbol_find(loader, fixup->name);

		next = fixup->next;
		if (label && label->kind == SYMBOL_LABEL && label->scope == scope) {
			if (fixup->target)
				*fixup->target = (uint32_t)label->address;
			else
				loader->function->code[fixup->insn].target = (uint32_t)label->address;
		} else if (scope->outer && scope->outer->outer) {
			fixup->next = scope->outer->fixups;
			scope->outer->fixups = fixup;
		} else {
			return ptx_text_fail_at(text_of(loader), fixup->line, PTX_INVALID, "there is no label '%.*s'",
			                        SLICE(fixup->name));
		}
	}
	for (struct symbol *symbol = scope->symbols; symbol; symbol = symbol->in_scope) {
		struct symbol **at = &loader->buckets[bucket_of(symbol->name)];

		/* A function's name is newer than its results', and stays. */
		while (*at != symbol)
			at = &(*at)->in_bucket;
		*at = symbol->in_bucket;
	}
	loader->scope = scope->outer;
	loader->depth--;
	return true;
}

bool ptx_register_new(struct loader *loader, uint32_t *ret_operand)
{
	struct ptx_function *function = loader->function;

	if (function->register_count >= REGISTER_LIMIT)
		return ptx_text_fail(text_of(loader), PTX_UNSUPPORTED, "more than %u registers", REGISTER_LIMIT);
	*ret_operand = OPERAND(BANK_REGISTER, function->register_count++);
	return true;
}

/* "%r12" of the range "%r<20>". */
static struct symbol *range_of(struct loader *loader, struct slice name, uint32_t *ret_index)
{
	size_t digits = 0;
	uint64_t index = 0;

	while (digits < name.length && name.at[name.length - 1 - digits] >= '0' &&
	       name.at[name.length - 1 - digits] <= '9')
		digits++;
	if (!digits || digits > 9)
		return NULL;
	/* The range's own name may end in a digit: try every split, the shortest index last. */
	for (; digits; digits--) {
		const char *number = name.at + name.length - digits;
		struct symbol *symbol = ptx_symbol_find(loader, (struct slice){name.at, name.length - digits});

		if (!symbol || symbol->kind != SYMBOL_RANGE || (number[0] == '0' && digits > 1))
			continue;
		index = 0;
		for (size_t n = 0; n < digits; n++)
			index = index * 10 + (uint64_t)(number[n] - '0');
		if (index < symbol->count) {
			*ret_index = (uint32_t)index;
			return symbol;
		}
	}
	return NULL;
}

bool ptx_register_find(struct loader *loader, struct slice name, uint32_t *ret_operand, enum ptx_type *ret_type)
{
	struct symbol *symbol = ptx_symbol_find(loader, name);
	uint32_t index = 0, *slot = NULL;

	if (symbol && symbol->kind == SYMBOL_REGISTER) {
		slot = &symbol->slot;
	} else if (!symbol) {
		symbol = range_of(loader, name, &index);
		if (symbol)
			slot = &symbol->slots[index];
	}
	if (!slot || (!*slot && !ptx_register_new(loader, slot)))
		return false;
	*ret_operand = *slot;
	*ret_type = symbol->type;
	return true;
}

static bool grow_constants(struct loader *loader)
{
	uint32_t room = loader->constant_room ? loader->constant_room * 2 : 64;
	uint64_t *values = realloc(loader->constants, room * sizeof(*values));

	if (values)
		loader->constants = values;
	uint32_t *buckets = calloc(room * 2, sizeof(*buckets));
	if (!values || !buckets) {
		free(buckets);
		return ptx_text_fail(text_of(loader), PTX_OUT_OF_MEMORY, "no memory");
	}
	free(loader->constant_index);
	loader->constant_room = room;
	loader->constant_buckets = room * 2;
	loader->constant_index = buckets;
	for (uint32_t n = 0; n < loader->constant_count; n++) {
		uint32_t at = (uint32_t)((loader->constants[n] * UINT64_C(0x9e3779b97f4a7c15)) >> 32) %
		              loader->constant_buckets;

		while (buckets[at])
			at = (at + 1) % loader->constant_buckets;
		buckets[at] = n + 1;
	}
	return true;
}

bool ptx_constant(struct loader *loader, uint64_t value, uint32_t *ret_operand)
{
	if (loader->constant_count == loader->constant_room && !grow_constants(loader))
		return false;
	uint32_t at = (uint32_t)((value * UINT64_C(0x9e3779b97f4a7c15)) >> 32) % loader->constant_buckets;

	for (; loader->constant_index[at]; at = (at + 1) % loader->constant_buckets) {
		uint32_t index = loader->constant_index[at] - 1;

		if (loader->constants[index] == value) {
			*ret_operand = OPERAND(BANK_CONSTANT, index);
			return true;
		}
	}
	loader->constants[loader->constant_count++] = value;
	loader->constant_index[at] = loader->constant_count;
	*ret_operand = OPERAND(BANK_CONSTANT, loader->constant_count - 1);
	return true;
}

bool ptx_constants_finish(struct loader *loader)
{
	struct ptx_function *function = loader->function;

	function->constants = ptx_load_keep(loader, (size_t)(loader->constant_count + 1) * WARP_LANES * sizeof(uint64_t));
	if (!function->constants)
		return false;
	function->constant_count = loader->constant_count;
	for (size_t n = 0; n < (size_t)loader->constant_count * WARP_LANES; n++)
		function->constants[n] = loader->constants[n / WARP_LANES];
	loader->constant_count = 0;
	if (loader->constant_buckets)
		memset(loader->constant_index, 0, loader->constant_buckets * sizeof(*loader->constant_index));
	return true;
}
