#include "registry/tree.h"

#include <assert.h>
#include <errno.h>

#include "registry/pages.h"

/* Chunks of an arena double from the first size to the last, in bytes. */
#define ARENA_FIRST ((size_t)64 << 10)
#define ARENA_LAST ((size_t)4 << 20)

struct arena_chunk {
	struct arena_chunk *next;
	size_t bytes;
} __attribute__((aligned(64)));

/* What a parent's entry says about a child, or a leaf's entry about a range. */
struct entry {
	uint64_t start, end;
	registry_handle handle;
	struct node *child; /* NULL for a range */
};

/*
 * The way from the root to a leaf, by level; at[] is the child's index, in the leaf the number of entries up to the
 * key.
 */
struct path {
	struct node *node[TREE_LEVELS];
	unsigned at[TREE_LEVELS];
};

/* The writer reads its own stores. */
static inline uint64_t peek(const _Atomic uint64_t *field)
{
	return atomic_load_explicit(field, memory_order_relaxed);
}

static inline void poke(_Atomic uint64_t *field, uint64_t value)
{
	atomic_store_explicit(field, value, memory_order_release);
}

static struct node *child_at(const struct node *node, unsigned at)
{
	return atomic_load_explicit(&node->child[at], memory_order_relaxed);
}

static struct node *tree_root(const struct tree *tree)
{
	return atomic_load_explicit(&tree->root, memory_order_relaxed);
}

static void tree_set_root(struct tree *tree, struct node *root)
{
	atomic_store_explicit(&tree->root, root, memory_order_release);
	atomic_store_explicit(&tree->height, root ? root->level : 0, memory_order_release);
}

/* Arenas. */

static void arena_init(struct arena *arena, size_t node_bytes)
{
	size_t align = _Alignof(struct node);

	*arena = (struct arena){.node_bytes = (node_bytes + align - 1) / align * align};
}

static void arena_destroy(struct arena *arena)
{
	struct arena_chunk *next;

	for (struct arena_chunk *chunk = arena->chunks; chunk; chunk = next) {
		next = chunk->next;
		pages_unmap(chunk, chunk->bytes);
	}
}

static void arena_give(struct arena *arena, struct node *node)
{
	node->next = arena->free;
	arena->free = node;
	arena->free_count++;
}

/*
 * The next node of the newest chunk. Chunks are used up from the front: touching all of one at once would be a
 * pause.
 */
static struct node *arena_fresh(struct arena *arena)
{
	struct node *node = (struct node *)arena->fresh;

	arena->fresh += arena->node_bytes;
	arena->fresh_count--;
	return node;
}

/* `nodes` is at most TREE_LEVELS, which fit in any chunk. */
static int arena_reserve(struct arena *arena, size_t nodes)
{
	size_t bytes = arena->chunks ? arena->chunks->bytes * 2 : ARENA_FIRST;
	struct arena_chunk *chunk;

	if (arena->free_count + arena->fresh_count >= nodes)
		return 0;
	bytes = bytes > ARENA_LAST ? ARENA_LAST : bytes;
	chunk = pages_map(bytes);
	if (!chunk)
		return -ENOMEM;
	while (arena->fresh_count > 0)
		arena_give(arena, arena_fresh(arena));
	chunk->bytes = bytes;
	chunk->next = arena->chunks;
	arena->chunks = chunk;
	arena->fresh = (char *)(chunk + 1);
	arena->fresh_count = (bytes - sizeof *chunk) / arena->node_bytes;
	return 0;
}

static struct node *arena_take(struct arena *arena)
{
	struct node *node = arena->free;

	if (!node) {
		assert(arena->fresh_count > 0 && "tree_reserve() was called");
		return arena_fresh(arena);
	}
	arena->free = node->next;
	arena->free_count--;
	return node;
}

static struct node *node_new(struct tree *tree, unsigned level)
{
	struct node *node = arena_take(level ? &tree->inners : &tree->leaves);

	node->count = 0;
	node->level = level;
	for (unsigned at = 0; at < TREE_FANOUT; at++) {
		poke(&node->start[at], UINT64_MAX);
		poke(&node->reach[at], UINT64_MAX);
		poke(&node->end[at], 0);
		poke(&node->handle[at], 0);
		if (level)
			atomic_store_explicit(&node->child[at], NULL, memory_order_release);
	}
	if (level == 0)
		poke(&leaf_brief(node)->base, BRIEF_NONE_BASE); /* so the first entry writes all of it */
	return node;
}

/* A reader may still be looking: the entries stay as they are, and so does the memory. */
static void node_free(struct tree *tree, struct node *node)
{
	arena_give(node->level ? &tree->inners : &tree->leaves, node);
}

/* Nodes. */

static void node_set(struct node *node, unsigned at, const struct entry *entry)
{
	poke(&node->start[at], entry->start);
	poke(&node->end[at], entry->end);
	poke(&node->handle[at], entry->handle);
	if (node->level)
		atomic_store_explicit(&node->child[at], entry->child, memory_order_release);
}

static struct entry node_get(const struct node *node, unsigned at)
{
	return (struct entry){
		.start = peek(&node->start[at]),
		.end = peek(&node->end[at]),
		.handle = peek(&node->handle[at]),
		.child = node->level ? child_at(node, at) : NULL,
	};
}

/* Copies `many` entries, also within one node. */
static void node_copy(struct node *to, unsigned to_at, const struct node *from, unsigned from_at, unsigned many)
{
	bool backwards = to == from && to_at > from_at;

	for (unsigned step = 0; step < many; step++) {
		unsigned offset = backwards ? many - 1 - step : step;
		struct entry entry = node_get(from, from_at + offset);

		node_set(to, to_at + offset, &entry);
	}
}

/* After the entries of a leaf from `changed` on changed. */
static void leaf_abridge(const struct node *leaf, unsigned changed)
{
	struct brief *brief = leaf_brief(leaf);
	uint64_t base = leaf->count > 0 ? peek(&leaf->start[0]) : 0;

	if (leaf->count > 0 && peek(&leaf->reach[leaf->count - 1]) - base >= BRIEF_NONE) {
		poke(&brief->base, BRIEF_NONE_BASE);
		return;
	}
	if (peek(&brief->base) != base)
		changed = 0;
	poke(&brief->base, base);
	for (unsigned at = changed; at < TREE_FANOUT; at++) {
		unsigned block = at / TREE_BLOCK, within = at % TREE_BLOCK;
		bool there = at < leaf->count;
		uint32_t start = there ? (uint32_t)(peek(&leaf->start[at]) - base) : BRIEF_NONE;
		uint32_t reach = there ? (uint32_t)(peek(&leaf->reach[at]) - base) : BRIEF_NONE;

		if (within == 0)
			atomic_store_explicit(&brief->first[block], start, memory_order_release);
		atomic_store_explicit(&brief->block[block].start[within], start, memory_order_release);
		atomic_store_explicit(&brief->block[block].reach[within], reach, memory_order_release);
	}
}

/* Sets the number of entries, after those from `changed` on changed. */
static void node_resize(struct node *node, unsigned count, unsigned changed)
{
	uint64_t reach = changed > 0 ? peek(&node->reach[changed - 1]) : 0;

	for (unsigned at = changed; at < count; at++) {
		uint64_t end = peek(&node->end[at]);

		reach = end > reach ? end : reach;
		if (peek(&node->reach[at]) != reach)
			poke(&node->reach[at], reach);
	}
	for (unsigned at = count; at < node->count; at++) {
		poke(&node->start[at], UINT64_MAX);
		poke(&node->reach[at], UINT64_MAX);
	}
	node->count = count;
	if (node->level == 0)
		leaf_abridge(node, changed);
}

static struct entry node_summary(struct node *node)
{
	return (struct entry){
		.start = peek(&node->start[0]),
		.end = node->count > 0 ? peek(&node->reach[node->count - 1]) : 0,
		.handle = peek(&node->handle[0]),
		.child = node,
	};
}

/*
 * Brings entry `at` of an inner node up to date with its child; does not dirty a line that readers share for
 * nothing.
 */
static void node_refresh(struct node *node, unsigned at)
{
	struct entry before = node_get(node, at);
	assert(before.child && "an inner node's entries have children");
	struct entry after = node_summary(before.child);

	if (before.start == after.start && before.end == after.end && before.handle == after.handle)
		return;
	node_set(node, at, &after);
	if (before.end != after.end)
		node_resize(node, node->count, at);
}

/* How many entries are not above the key. */
static unsigned node_rank(const struct node *node, uint64_t start, registry_handle handle)
{
	unsigned rank = 0;

	while (rank < node->count && peek(&node->start[rank]) < start)
		rank++;
	while (rank < node->count && peek(&node->start[rank]) == start && peek(&node->handle[rank]) <= handle)
		rank++;
	return rank;
}

static void node_put(struct node *node, unsigned at, const struct entry *entry)
{
	node_copy(node, at + 1, node, at, node->count - at);
	node_set(node, at, entry);
	node_resize(node, node->count + 1, at);
}

static void node_drop(struct node *node, unsigned at)
{
	node_copy(node, at, node, at + 1, node->count - at - 1);
	node_resize(node, node->count - 1, at);
}

/* Puts an entry in. If the node had to be split, returns true and turns *entry into that of the new right neighbour. */
static bool node_insert(struct tree *tree, struct node *node, unsigned at, struct entry *entry)
{
	unsigned half = TREE_FANOUT / 2;
	struct node *right;

	if (node->count < TREE_FANOUT) {
		node_put(node, at, entry);
		return false;
	}
	right = node_new(tree, node->level);
	node_copy(right, 0, node, half, TREE_FANOUT - half);
	node_resize(right, TREE_FANOUT - half, 0);
	node_resize(node, half, half);
	if (at <= half)
		node_put(node, at, entry);
	else
		node_put(right, at - half, entry);
	*entry = node_summary(right);
	return true;
}

/* Child `at` holds too little: makes one node of it and a neighbour, or shares their entries out evenly. */
static void node_balance(struct tree *tree, struct node *parent, unsigned at)
{
	unsigned left_at = at > 0 ? at - 1 : at;
	struct node *left = child_at(parent, left_at), *right = child_at(parent, left_at + 1);
	unsigned total = left->count + right->count, share = total <= TREE_MERGE ? total : total / 2;

	if (left->count < share) {
		unsigned many = share - left->count;

		node_copy(left, left->count, right, 0, many);
		node_resize(left, share, left->count);
		node_copy(right, 0, right, many, right->count - many);
		node_resize(right, right->count - many, 0);
	} else {
		unsigned many = left->count - share;

		node_copy(right, many, right, 0, right->count);
		node_copy(right, 0, left, share, many);
		node_resize(right, right->count + many, 0);
		node_resize(left, share, share);
	}
	node_refresh(parent, left_at);
	if (right->count > 0) {
		node_refresh(parent, left_at + 1);
	} else {
		node_drop(parent, left_at + 1);
		node_free(tree, right);
	}
}

/* The tree. */

static void tree_descend(const struct tree *tree, uint64_t start, registry_handle handle, struct path *ret_path)
{
	struct node *node = tree_root(tree);

	for (;;) {
		unsigned rank = node_rank(node, start, handle);

		ret_path->node[node->level] = node;
		if (node->level == 0) {
			ret_path->at[0] = rank;
			return;
		}
		rank = rank > 0 ? rank - 1 : 0;
		ret_path->at[node->level] = rank;
		node = child_at(node, rank);
	}
}

void tree_init(struct tree *tree)
{
	atomic_init(&tree->sequence, 0);
	atomic_init(&tree->root, NULL);
	atomic_init(&tree->height, 0);
	arena_init(&tree->leaves, LEAF_BYTES);
	arena_init(&tree->inners, offsetof(struct node, child) + TREE_FANOUT * sizeof(struct node *));
}

void tree_destroy(struct tree *tree)
{
	arena_destroy(&tree->leaves);
	arena_destroy(&tree->inners);
}

int tree_reserve(struct tree *tree)
{
	const struct node *root = tree_root(tree);
	int error = arena_reserve(&tree->leaves, 1);

	/* At worst every inner level splits and a new root goes on top. */
	return error ? error : arena_reserve(&tree->inners, (root ? root->level : 0) + 1);
}

void tree_insert(struct tree *tree, uint64_t start, uint64_t end, registry_handle handle)
{
	struct entry entry = {.start = start, .end = end, .handle = handle};
	struct node *root;
	struct path path;
	bool split;

	if (!tree_root(tree))
		tree_set_root(tree, node_new(tree, 0));
	root = tree_root(tree);
	tree_descend(tree, start, handle, &path);
	split = node_insert(tree, path.node[0], path.at[0], &entry);
	for (unsigned level = 1; level <= root->level; level++) {
		node_refresh(path.node[level], path.at[level]);
		if (split)
			split = node_insert(tree, path.node[level], path.at[level] + 1, &entry);
	}
	if (split) {
		struct node *top = node_new(tree, root->level + 1);
		struct entry left = node_summary(root);

		node_put(top, 0, &left);
		node_put(top, 1, &entry);
		tree_set_root(tree, top);
	}
}

void tree_remove(struct tree *tree, uint64_t start, registry_handle handle)
{
	struct node *root = tree_root(tree);
	struct path path;

	tree_descend(tree, start, handle, &path);
	assert(path.at[0] > 0 && peek(&path.node[0]->handle[path.at[0] - 1]) == handle);
	node_drop(path.node[0], path.at[0] - 1);
	for (unsigned level = 1; level <= root->level; level++) {
		if (path.node[level - 1]->count < TREE_LEAST)
			node_balance(tree, path.node[level], path.at[level]);
		else
			node_refresh(path.node[level], path.at[level]);
	}
	while (root->level > 0 && root->count == 1) {
		struct node *below = child_at(root, 0);

		tree_set_root(tree, below);
		node_free(tree, root);
		root = below;
	}
	if (root->count == 0) {
		tree_set_root(tree, NULL);
		node_free(tree, root);
	}
}

void tree_bounds(const struct tree *tree, uint64_t *ret_low, uint64_t *ret_high)
{
	struct node *root = tree_root(tree);
	struct entry all = root ? node_summary(root) : (struct entry){.start = UINT64_MAX};

	*ret_low = all.start;
	*ret_high = all.end;
}
