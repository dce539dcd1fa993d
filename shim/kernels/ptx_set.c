#include "shim/kernels/ptx_set.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define JOINS 4096u
#define ELEMENTS_MAX (4u << 20)
#define SETS_MAX (1u << 18)

int ptxa_sets_start(struct ptxa_sets *sets)
{
	*sets = (struct ptxa_sets){.room = 256, .table_room = 1024, .count = 1};
	sets->sets = calloc(sets->room, sizeof(*sets->sets));
	sets->table = calloc(sets->table_room, sizeof(*sets->table));
	sets->joins = calloc(JOINS, sizeof(*sets->joins));
	return sets->sets && sets->table && sets->joins ? 0 : -ENOMEM;
}

void ptxa_sets_end(struct ptxa_sets *sets)
{
	for (uint32_t i = 0; sets->sets && i < sets->count; i++)
		free((void *)(uintptr_t)sets->sets[i].elements);
	free(sets->sets);
	free(sets->table);
	free(sets->joins);
	free(sets->scratch);
	*sets = (struct ptxa_sets){.count = 0};
}

static uint32_t hash_of(const uint32_t *elements, size_t count)
{
	uint32_t hash = 2166136261u;

	for (size_t i = 0; i < count; i++)
		hash = (hash ^ elements[i]) * 16777619u ^ (hash >> 15);
	return hash;
}

static bool grow(struct ptxa_sets *sets)
{
	if (sets->count == sets->room) {
		struct ptxa_set *more = realloc(sets->sets, 2 * sets->room * sizeof(*more));

		if (!more)
			return false;
		sets->sets = more;
		sets->room *= 2;
	}
	if (2 * sets->count >= sets->table_room) {
		uint32_t room = 4 * sets->table_room;
		uint32_t *table = calloc(room, sizeof(*table));

		if (!table)
			return false;
		for (uint32_t i = 1; i < sets->count; i++) {
			uint32_t at = sets->sets[i].hash & (room - 1);

			while (table[at])
				at = (at + 1) & (room - 1);
			table[at] = i + 1;
		}
		free(sets->table);
		sets->table = table;
		sets->table_room = room;
	}
	return true;
}

static uint32_t fail(struct ptxa_sets *sets, int error)
{
	if (!sets->error)
		sets->error = error;
	return 0;
}

/* Elements ascend. */
static uint32_t intern(struct ptxa_sets *sets, const uint32_t *elements, size_t count)
{
	uint32_t hash = hash_of(elements, count);
	uint32_t *copy, at;

	if (count == 0)
		return 0;
	for (at = hash & (sets->table_room - 1); sets->table[at]; at = (at + 1) & (sets->table_room - 1)) {
		const struct ptxa_set *set = &sets->sets[sets->table[at] - 1];

		if (set->hash == hash && set->count == count &&
		    memcmp(set->elements, elements, count * sizeof(*elements)) == 0)
			return sets->table[at] - 1;
	}
	if (sets->count >= SETS_MAX || sets->elements + count > ELEMENTS_MAX)
		return fail(sets, -E2BIG);
	if (!grow(sets))
		return fail(sets, -ENOMEM);
	copy = malloc(count * sizeof(*copy));
	if (!copy)
		return fail(sets, -ENOMEM);
	memcpy(copy, elements, count * sizeof(*copy));
	at = hash & (sets->table_room - 1);
	while (sets->table[at])
		at = (at + 1) & (sets->table_room - 1);
	sets->table[at] = sets->count + 1;
	sets->sets[sets->count] = (struct ptxa_set){(uint32_t)count, hash, UINT32_MAX, UINT32_MAX, copy};
	sets->elements += count;
	return sets->count++;
}

static bool make_scratch(struct ptxa_sets *sets, size_t count)
{
	if (count > sets->scratch_room) {
		uint32_t *more = realloc(sets->scratch, 2 * count * sizeof(*more));

		if (!more)
			return fail(sets, -ENOMEM), false;
		sets->scratch = more;
		sets->scratch_room = 2 * count;
	}
	return true;
}

uint32_t ptxa_set_one(struct ptxa_sets *sets, uint32_t element)
{
	return intern(sets, &element, 1);
}

uint32_t ptxa_set_row(struct ptxa_sets *sets, uint32_t first, uint32_t count, uint32_t step)
{
	if (!make_scratch(sets, count))
		return 0;
	for (uint32_t i = 0; i < count; i++)
		sets->scratch[i] = first + i * step;
	return intern(sets, sets->scratch, count);
}

uint32_t ptxa_set_join(struct ptxa_sets *sets, uint32_t left, uint32_t right)
{
	const struct ptxa_set *a, *b;
	struct ptxa_join *cached;
	uint32_t i = 0, j = 0;
	size_t count = 0;

	if (left == right || right == 0)
		return left;
	if (left == 0)
		return right;
	cached = &sets->joins[(left * 2654435761u ^ right * 40503u) % JOINS];
	if (cached->left == left && cached->right == right)
		return cached->result;
	a = &sets->sets[left];
	b = &sets->sets[right];
	sets->work += a->count + b->count;
	if (!make_scratch(sets, (size_t)a->count + b->count))
		return 0;
	while (i < a->count || j < b->count) {
		uint32_t x = i < a->count ? a->elements[i] : UINT32_MAX, y = j < b->count ? b->elements[j] : UINT32_MAX;

		sets->scratch[count++] = x < y ? x : y;
		i += x <= y;
		j += y <= x;
	}
	*cached = (struct ptxa_join){left, right, intern(sets, sets->scratch, count)};
	return cached->result;
}

static uint32_t graded(struct ptxa_sets *sets, uint32_t set, uint32_t grade)
{
	const struct ptxa_set *from = &sets->sets[set];
	size_t count = 0;

	if (!make_scratch(sets, from->count))
		return 0;
	for (uint32_t i = 0; i < from->count; i++) {
		uint32_t element = (from->elements[i] & ~1u) | grade;

		if (count == 0 || sets->scratch[count - 1] != element)
			sets->scratch[count++] = element;
	}
	return intern(sets, sets->scratch, count);
}

uint32_t ptxa_set_weak(struct ptxa_sets *sets, uint32_t set)
{
	uint32_t result;

	if (set == 0 || sets->sets[set].weak != UINT32_MAX)
		return set ? sets->sets[set].weak : 0;
	result = graded(sets, set, 1);
	return sets->sets[set].weak = result;
}

uint32_t ptxa_set_strong(struct ptxa_sets *sets, uint32_t set)
{
	uint32_t result;

	if (set == 0 || sets->sets[set].strong != UINT32_MAX)
		return set ? sets->sets[set].strong : 0;
	result = graded(sets, set, 0);
	return sets->sets[set].strong = result;
}

bool ptxa_set_has(const struct ptxa_sets *sets, uint32_t set, uint32_t element)
{
	const struct ptxa_set *in = &sets->sets[set];
	uint32_t low = 0, high = in->count;

	while (low < high) {
		uint32_t middle = (low + high) / 2;

		if (in->elements[middle] < element)
			low = middle + 1;
		else
			high = middle;
	}
	return low < in->count && in->elements[low] == element;
}
