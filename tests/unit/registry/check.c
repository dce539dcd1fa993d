#include "tests/unit/registry/check.h"

#include "registry/tree.h"

/* The tree is the first member of what registry.c keeps, so that it can be looked at from here. */
static const struct tree *tree_of(const struct registry *reg)
{
	return (const struct tree *)(const void *)reg->tree;
}

struct seen {
	uint64_t low, high, many;
	uint64_t last_start;
	registry_handle last_handle;
};

/* A leaf's brief says what its arrays say, or nothing where a distance has no room. */
static const char *check_brief(const struct node *leaf)
{
	const struct brief *brief = leaf_brief(leaf);
	uint64_t base = atomic_load(&leaf->start[0]), reach = atomic_load(&leaf->reach[leaf->count - 1]);

	if (reach - base >= BRIEF_NONE)
		return atomic_load(&brief->base) == BRIEF_NONE_BASE ? NULL : "brief of a wide leaf";
	if (atomic_load(&brief->base) != base)
		return "base of a brief";
	for (unsigned at = 0; at < TREE_FANOUT; at++) {
		unsigned block = at / TREE_BLOCK, within = at % TREE_BLOCK;
		bool there = at < leaf->count;
		uint64_t start = there ? atomic_load(&leaf->start[at]) - base : BRIEF_NONE;

		reach = there ? atomic_load(&leaf->reach[at]) - base : BRIEF_NONE;
		if (atomic_load(&brief->block[block].start[within]) != start ||
		    atomic_load(&brief->block[block].reach[within]) != reach ||
		    (within == 0 && atomic_load(&brief->first[block]) != start))
			return "distances of a brief";
	}
	return NULL;
}

static const char *check_node(const struct node *node, unsigned level, bool root, struct seen *seen)
{
	uint64_t reach = 0;

	if (node->level != level)
		return "level";
	if (node->count > TREE_FANOUT || node->count < (root ? (level ? 2u : 1u) : (unsigned)TREE_LEAST))
		return "fill";
	for (unsigned at = node->count; at < TREE_FANOUT; at++) {
		if (atomic_load(&node->start[at]) != UINT64_MAX || atomic_load(&node->reach[at]) != UINT64_MAX)
			return "padding";
	}
	if (level == 0 && check_brief(node))
		return check_brief(node);
	for (unsigned at = 0; at < node->count; at++) {
		uint64_t start = atomic_load(&node->start[at]), end = atomic_load(&node->end[at]);
		registry_handle handle = atomic_load(&node->handle[at]);
		struct seen below = *seen;

		reach = end > reach ? end : reach;
		if (atomic_load(&node->reach[at]) != reach)
			return "reach";
		if (level > 0) {
			const struct node *child = atomic_load(&node->child[at]);
			const char *broken;

			below.low = UINT64_MAX;
			below.high = 0;
			broken = check_node(child, level - 1, false, &below);
			if (broken)
				return broken;
			if (below.low != start || atomic_load(&child->handle[0]) != handle)
				return "least start of an inner entry";
			if (below.high != end)
				return "greatest end of an inner entry";
		} else {
			if (seen->many > 0 &&
			    (start < seen->last_start || (start == seen->last_start && handle <= seen->last_handle)))
				return "order";
			below.last_start = start;
			below.last_handle = handle;
			below.many++;
		}
		below.low = seen->low < start ? seen->low : start;
		below.high = seen->high > end ? seen->high : end;
		*seen = below;
	}
	return NULL;
}

const char *check_registry(const struct registry *reg)
{
	const struct tree *tree = tree_of(reg);
	const struct node *root = atomic_load(&tree->root);
	struct seen seen = {.low = UINT64_MAX};

	if (atomic_load(&tree->sequence) & 1)
		return "sequence";
	if (root) {
		const char *broken = check_node(root, atomic_load(&tree->height), true, &seen);

		if (broken)
			return broken;
	}
	if (atomic_load(&reg->live) != seen.many)
		return "live";
	if (atomic_load(&reg->low) != seen.low || atomic_load(&reg->high) != seen.high)
		return "bounds";
	return NULL;
}

unsigned check_height(const struct registry *reg)
{
	return atomic_load(&tree_of(reg)->height);
}
