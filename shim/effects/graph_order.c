#include "shim/effects/graph_order.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct place {
	CUgraphNode node;
	size_t index; /* in the list */
};

struct shape {
	size_t count;
	struct place *places; /* by address of the node */
	size_t *first;        /* of each node: where its dependencies begin; one more at the end */
	size_t *needs;        /* dependencies, as indices */
	bool *source;         /* somebody depends on it */
};

static int compare(const void *a, const void *b)
{
	uintptr_t left = (uintptr_t)((const struct place *)a)->node, right = (uintptr_t)((const struct place *)b)->node;
	return (left > right) - (left < right);
}

/* With room NULL: only how many there are. */
static CUresult dependencies(CUgraphNode node, CUgraphNode *room, CUgraphEdgeData *data, size_t *count)
{
	if (drv.cuGraphNodeGetDependencies_v2)
		return drv.cuGraphNodeGetDependencies_v2(node, room, room ? data : NULL, count);
	return drv.cuGraphNodeGetDependencies ? drv.cuGraphNodeGetDependencies(node, room, count) : CUDA_ERROR_NOT_FOUND;
}

/* Appends one node's dependencies. */
static bool read_needs(struct shape *shape, CUgraphNode node, size_t at, size_t count)
{
	CUgraphNode *nodes = malloc(count * sizeof *nodes);
	CUgraphEdgeData *data = malloc(count * sizeof *data);
	size_t told = count;
	bool read = nodes && data && dependencies(node, nodes, data, &told) == CUDA_SUCCESS && told == count;
	for (size_t i = 0; read && i < count; i++) {
		const struct place key = {.node = nodes[i]};
		const struct place *place = bsearch(&key, shape->places, shape->count, sizeof key, compare);
		read = place;
		if (read) {
			shape->needs[at + i] = place->index;
			shape->source[place->index] = true;
		}
	}
	free(nodes);
	free(data);
	return read;
}

static bool read_shape(struct shape *shape, const CUgraphNode *nodes)
{
	size_t edges = 0;
	for (size_t i = 0; i < shape->count; i++) {
		size_t count = 0;
		if (dependencies(nodes[i], NULL, NULL, &count) != CUDA_SUCCESS)
			return false;
		shape->places[i] = (struct place){nodes[i], i};
		shape->first[i] = edges;
		edges += count;
	}
	shape->first[shape->count] = edges;
	qsort(shape->places, shape->count, sizeof *shape->places, compare);
	shape->needs = malloc((edges ? edges : 1) * sizeof *shape->needs);
	if (!shape->needs)
		return false;
	for (size_t i = 0; i < shape->count; i++) {
		size_t count = shape->first[i + 1] - shape->first[i];
		if (count && !read_needs(shape, nodes[i], shape->first[i], count))
			return false;
	}
	return true;
}

/* From one sink down, each node after what it needs. `next` is the dependency of each to look at; beyond the last: done. */
static void walk(const struct shape *shape, size_t sink, size_t *next, size_t *stack, size_t *order, size_t *used)
{
	size_t depth = 0;
	stack[depth++] = sink;
	while (depth) {
		size_t at = stack[depth - 1];
		if (next[at] < shape->first[at + 1]) {
			size_t need = shape->needs[next[at]++];
			if (next[need] == shape->first[need] && depth < shape->count)
				stack[depth++] = need;
			continue;
		}
		depth--;
		if (next[at] == shape->first[at + 1]) {
			next[at]++;
			order[(*used)++] = at;
		}
	}
}

bool graph_order(CUgraphNode *nodes, size_t count)
{
	if (count < 2)
		return true;
	struct shape shape = {.count = count,
	                      .places = malloc(count * sizeof *shape.places),
	                      .first = malloc((count + 1) * sizeof *shape.first),
	                      .source = calloc(count, sizeof *shape.source)};
	size_t *next = malloc(count * sizeof *next), *stack = malloc(count * sizeof *stack);
	size_t *order = malloc(count * sizeof *order), used = 0;
	CUgraphNode *sorted = malloc(count * sizeof *sorted);
	bool good = shape.places && shape.first && shape.source && next && stack && order && sorted;
	good = good && read_shape(&shape, nodes);
	if (good) {
		memcpy(next, shape.first, count * sizeof *next);
		for (size_t i = 0; i < count; i++)
			if (!shape.source[i])
				walk(&shape, i, next, stack, order, &used);
		good = used == count;
	}
	for (size_t i = 0; good && i < count; i++)
		sorted[i] = nodes[order[i]];
	if (good)
		memcpy(nodes, sorted, count * sizeof *sorted);
	free(shape.places);
	free(shape.first);
	free(shape.needs);
	free(shape.source);
	free(next);
	free(stack);
	free(order);
	free(sorted);
	return good;
}
