/*
 * The interval tree: a B+tree over (start, handle) in which every entry of an inner node carries the least start
 * and the greatest end beneath it. Private to registry/. README.md says how readers get along with the writer.
 */
#ifndef CUCONST_REGISTRY_TREE_H
#define CUCONST_REGISTRY_TREE_H

#include "registry/ranges.h"

/*
 * Entries of a node: with 64 only the leaves of a tree of 10^6 ranges are too many for the second-level cache.
 * Tests build the registry with 4 as well, to have deep trees from few ranges.
 */
#ifndef TREE_FANOUT
#define TREE_FANOUT 64
#endif
/* Entries are searched by blocks of one cache line. */
#define TREE_BLOCK (TREE_FANOUT % 8 ? 1u : 8u)
/*
 * A node but the root holds at least this many; after a removal, two neighbours that hold no more than TREE_MERGE
 * become one.
 */
#define TREE_LEAST (TREE_FANOUT / 4 < 2 ? 2 : TREE_FANOUT / 4)
#define TREE_MERGE (TREE_FANOUT * 3 / 4)
/* At least two entries everywhere and at most 2^32 ranges. */
#define TREE_LEVELS 32

/*
 * What readers look at is atomic; `count`, `level` and `next` are the writer's. Entries past `count` have start and
 * reach UINT64_MAX, so readers look at whole, sorted arrays and need no count.
 */
struct node {
	_Atomic uint64_t start[TREE_FANOUT];
	_Atomic uint64_t reach[TREE_FANOUT]; /* the greatest end of the entries up to this one: never falls */
	_Atomic uint64_t end[TREE_FANOUT];
	_Atomic uint64_t handle[TREE_FANOUT]; /* inner nodes: that of the least range beneath, which orders equal starts */
	unsigned count;
	unsigned level; /* 0: a leaf */
	struct node *next;
	_Atomic(struct node *) child[]; /* inner nodes only */
} __attribute__((aligned(64)));

/*
 * Follows a leaf in memory: its starts and reaches once more, as 32-bit distances from `base`, so that a lookup needs
 * two cache lines of a leaf and all of these lines together are a third of the starts and reaches. Distances past the
 * leaf's `count` are BRIEF_NONE. Where one does not fit, `base` is BRIEF_NONE_BASE: the arrays are to be read.
 */
#define BRIEF_BLOCKS (TREE_FANOUT / TREE_BLOCK)
#define BRIEF_NONE UINT32_MAX
#define BRIEF_NONE_BASE UINT64_MAX
struct brief {
	_Atomic uint64_t base; /* the first start */
	_Atomic uint32_t first[BRIEF_BLOCKS];
	struct {
		_Atomic uint32_t start[TREE_BLOCK], reach[TREE_BLOCK];
	} __attribute__((aligned(TREE_BLOCK * 8))) block[BRIEF_BLOCKS];
} __attribute__((aligned(64)));

#define LEAF_BYTES (sizeof(struct node) + sizeof(struct brief))

static inline struct brief *leaf_brief(const struct node *leaf)
{
	return (struct brief *)(uintptr_t)(leaf + 1);
}

/* Nodes of one kind: never given back while the tree lives, so that a reader may always look at one. */
struct arena {
	size_t node_bytes;
	struct node *free; /* given back */
	size_t free_count;
	char *fresh; /* never used yet */
	size_t fresh_count;
	struct arena_chunk *chunks; /* newest first */
};

struct tree {
	_Atomic uint64_t sequence; /* odd while the writer changes something */
	_Atomic(struct node *) root;
	_Atomic unsigned height; /* level of the root */
	struct arena leaves, inners;
};

void tree_init(struct tree *tree);
void tree_destroy(struct tree *tree);

/* Makes sure that the next tree_insert() needs no memory: 0 or -ENOMEM. Writer's lock. */
int tree_reserve(struct tree *tree);

/*
 * Both between tree_write_begin() and tree_write_end(), with the writer's lock held. The entry must be absent, or
 * present.
 */
void tree_insert(struct tree *tree, uint64_t start, uint64_t end, registry_handle handle);
void tree_remove(struct tree *tree, uint64_t start, registry_handle handle);

/* The least start and the greatest end: UINT64_MAX and 0 when empty. Writer's lock. */
void tree_bounds(const struct tree *tree, uint64_t *ret_low, uint64_t *ret_high);

/*
 * The writer's fields are stored with release and read with acquire. A reader that sees any store of a writer
 * therefore also sees that the sequence left the value it had before; x86-64 makes all of this plain loads and
 * stores.
 */
static inline void tree_write_begin(struct tree *tree)
{
	uint64_t sequence = atomic_load_explicit(&tree->sequence, memory_order_relaxed);

	atomic_store_explicit(&tree->sequence, sequence + 1, memory_order_relaxed);
}

static inline void tree_write_end(struct tree *tree)
{
	uint64_t sequence = atomic_load_explicit(&tree->sequence, memory_order_relaxed);

	atomic_store_explicit(&tree->sequence, sequence + 1, memory_order_release);
}

#endif
