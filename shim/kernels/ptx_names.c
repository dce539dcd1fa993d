/* Names by scope: one hash table for a module, or for one body. */
#include <stdlib.h>
#include <string.h>

#include "shim/kernels/ptx_code.h"

struct ptxa_names {
	struct ptxa_name *names;
	uint32_t *table; /* open addressing: place + 1 */
	uint32_t count, room, table_room;
};

struct ptxa_names *ptxa_names_create(void)
{
	struct ptxa_names *names = calloc(1, sizeof(*names));

	if (!names)
		return NULL;
	names->room = 64;
	names->table_room = 256;
	names->names = malloc(names->room * sizeof(*names->names));
	names->table = calloc(names->table_room, sizeof(*names->table));
	if (names->names && names->table)
		return names;
	ptxa_names_destroy(names);
	return NULL;
}

void ptxa_names_destroy(struct ptxa_names *names)
{
	if (!names)
		return;
	free(names->names);
	free(names->table);
	free(names);
}

static uint32_t hash_of(struct ptxa_slice slice, uint32_t scope)
{
	uint32_t hash = 2166136261u ^ scope * 2654435761u;

	for (uint32_t i = 0; i < slice.length; i++)
		hash = (hash ^ (unsigned char)slice.text[i]) * 16777619u;
	return hash ^ hash >> 13;
}

/* The place in the table of a name, or where it would be. */
static uint32_t probe(const struct ptxa_names *names, struct ptxa_slice slice, uint32_t scope)
{
	uint32_t at = hash_of(slice, scope) & (names->table_room - 1);

	while (names->table[at]) {
		const struct ptxa_name *name = &names->names[names->table[at] - 1];

		if (name->scope == scope && ptxa_slice_same(name->slice, slice))
			break;
		at = (at + 1) & (names->table_room - 1);
	}
	return at;
}

static bool grow(struct ptxa_names *names)
{
	if (names->count == names->room) {
		struct ptxa_name *more = realloc(names->names, 2 * names->room * sizeof(*more));

		if (!more)
			return false;
		names->names = more;
		names->room *= 2;
	}
	if (2 * names->count >= names->table_room) {
		uint32_t *old = names->table;

		names->table = calloc(4 * names->table_room, sizeof(*names->table));
		if (!names->table) {
			names->table = old;
			return false;
		}
		names->table_room *= 4;
		free(old);
		for (uint32_t i = 0; i < names->count; i++)
			names->table[probe(names, names->names[i].slice, names->names[i].scope)] = i + 1;
	}
	return true;
}

bool ptxa_names_add(struct ptxa_names *names, const struct ptxa_name *name, bool *ret_twice)
{
	uint32_t at;

	*ret_twice = false;
	if (!grow(names))
		return false;
	at = probe(names, name->slice, name->scope);
	if (names->table[at]) {
		*ret_twice = true;
		return false;
	}
	names->names[names->count++] = *name;
	names->table[at] = names->count;
	return true;
}

uint32_t ptxa_names_count(const struct ptxa_names *names)
{
	return names->count;
}

struct ptxa_name *ptxa_names_find(struct ptxa_names *names, struct ptxa_slice slice, uint32_t scope)
{
	uint32_t at = probe(names, slice, scope);

	return names->table[at] ? &names->names[names->table[at] - 1] : NULL;
}
