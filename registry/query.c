#include "registry/query.h"

/*
 * Two rules make the walks right. A value read from a node is followed (to a child, to a range) only after
 * reading_holds() said yes: so every node that is visited belongs to the tree of the instant at which the reading
 * began, a walk is no longer than that tree is high, and only the last node looked at can be torn. And a result
 * counts only if reading_holds() says yes at the end.
 */

static inline uint64_t peek(const _Atomic uint64_t *field)
{
	return atomic_load_explicit(field, memory_order_acquire);
}

static inline uint32_t peek32(const _Atomic uint32_t *field)
{
	return atomic_load_explicit(field, memory_order_acquire);
}

bool reading_begin(struct reading *reading)
{
	reading->sequence = peek(&reading->tree->sequence);
	return (reading->sequence & 1) == 0;
}

bool reading_holds(const struct reading *reading)
{
	/* Relaxed is enough: all loads before it are acquire loads and stay before it. */
	return atomic_load_explicit(&reading->tree->sequence, memory_order_relaxed) == reading->sequence;
}

/* The root, NULL when the tree is empty; false when torn. */
static bool reading_root(struct reading *reading, const struct node **ret_root, unsigned *ret_level)
{
	const struct node *root = atomic_load_explicit(&reading->tree->root, memory_order_acquire);
	unsigned level = atomic_load_explicit(&reading->tree->height, memory_order_acquire);

	if (!reading_holds(reading))
		return false;
	*ret_root = root;
	*ret_level = level;
	return true;
}

/* NULL when torn. */
static const struct node *reading_child(struct reading *reading, const struct node *node, unsigned at)
{
	const struct node *child = atomic_load_explicit(&node->child[at], memory_order_acquire);

	reading->visited++;
	return reading_holds(reading) ? child : NULL;
}

/* Asks for all of these lines at once: one wait for memory instead of one per line. */
static inline void fetch_lines(const void *memory, size_t bytes)
{
	for (size_t at = 0; at < bytes; at += 64)
		__builtin_prefetch((const char *)memory + at);
}

/* Of a node that will be searched: all starts and reaches. */
static inline void fetch_node(const struct node *node)
{
	fetch_lines(node, offsetof(struct node, end));
}

/* The range of leaf entry `at` as a reference; NULL when torn. */
static struct range *reading_range(struct reading *reading, const struct node *leaf, unsigned at)
{
	registry_handle handle = peek(&leaf->handle[at]);
	struct range *range;

	if (!reading_holds(reading))
		return NULL;
	range = ranges_take(reading->ranges, handle);
	if (range && !reading_holds(reading)) {
		range_put(range);
		return NULL;
	}
	return range;
}

/*
 * How many values of a node's sorted array are below `limit`: they are the first ones. By blocks and then within
 * one, which is fewer loads than a scan and has no branch to guess wrong.
 */
static inline unsigned sorted_below(const _Atomic uint64_t *sorted, uint64_t limit)
{
	unsigned below = 0, from;

	for (unsigned next = TREE_BLOCK; next < TREE_FANOUT; next += TREE_BLOCK)
		below += peek(&sorted[next]) < limit ? TREE_BLOCK : 0;
	from = below;
	for (unsigned at = 0; at < TREE_BLOCK; at++)
		below += peek(&sorted[from + at]) < limit;
	return below;
}

/* How many entries start below `limit`. */
static inline unsigned node_below(const struct node *node, uint64_t limit)
{
	return sorted_below(node->start, limit);
}

/* How far the first `many` entries reach. */
static inline uint64_t node_reach(const struct node *node, unsigned many)
{
	return many > 0 ? peek(&node->reach[many - 1]) : 0;
}

/*
 * The first entry that ends above `address`, or if there is none any that is past the last: it is the first to
 * reach so far.
 */
static inline unsigned node_first_reaching(const struct node *node, uint64_t address)
{
	return sorted_below(node->reach, address + 1);
}

/* The first of the entries [from, to) that ends above `address`, or `to`; `from` if that is greater. */
static inline unsigned node_reaching(const struct node *node, unsigned from, unsigned to, uint64_t address)
{
	while (from < to && peek(&node->end[from]) <= address)
		from++;
	return from;
}

/*
 * Does one of the leaf's ranges overlap [start, end)? By its brief, or where that has no room, by its arrays. `limit`
 * is at most BRIEF_NONE, and distances of entries are less: cutting it there loses none.
 */
static bool leaf_hits(const struct node *leaf, uint64_t start, uint64_t end)
{
	const struct brief *brief = leaf_brief(leaf);
	uint64_t base = peek(&brief->base);
	unsigned block = 0, below = 0;
	uint32_t limit, reach;

	if (base == BRIEF_NONE_BASE) {
		fetch_node(leaf);
		return node_reach(leaf, node_below(leaf, end)) > start;
	}
	if (end <= base)
		return false;
	limit = end - base < BRIEF_NONE ? (uint32_t)(end - base) : BRIEF_NONE;
	for (unsigned next = 1; next < BRIEF_BLOCKS; next++)
		block += peek32(&brief->first[next]) < limit;
	for (unsigned at = 0; at < TREE_BLOCK; at++)
		below += peek32(&brief->block[block].start[at]) < limit;
	/* None only in a leaf without entries, or a torn one. */
	if (below == 0)
		return false;
	reach = peek32(&brief->block[block].reach[below - 1]);
	return start < base || start - base < reach;
}

bool query_hits(struct reading *reading, uint64_t start, uint64_t end, bool *ret_hit)
{
	const struct node *node;
	bool hit = false;
	unsigned level;

	if (!reading_root(reading, &node, &level))
		return false;
	/*
	 * One way down: everything beneath an entry starts no later than the next entry does, so among the entries that
	 * start below `end` only the last can hold ranges that start too late. For all others, to end above `start` is
	 * to hit.
	 */
	while (node && start < end) {
		unsigned below;

		if (level == 0) {
			hit = leaf_hits(node, start, end);
			break;
		}
		below = node_below(node, end);
		hit = below > 0 && node_reach(node, below - 1) > start;
		if (hit || below == 0)
			break;
		node = reading_child(reading, node, below - 1);
		if (!node)
			return false;
		level--;
		if (level > 0)
			fetch_node(node);
		else
			fetch_lines(leaf_brief(node), sizeof(struct brief));
	}
	if (!reading_holds(reading))
		return false;
	*ret_hit = hit;
	return true;
}

/* Gives back what a torn walk took. */
static void references_drop(struct range **out, size_t many)
{
	while (many-- > 0)
		range_put(out[many]);
}

/* Where a walk is on one level: the next entry to look at, and how many start below its end. */
struct step {
	const struct node *node;
	unsigned at, below;
};

static struct step step_into(const struct node *node, uint64_t start, uint64_t end)
{
	struct step step = {.node = node, .at = node_first_reaching(node, start), .below = node_below(node, end)};

	if (step.at < TREE_FANOUT) {
		__builtin_prefetch(&node->end[step.at]);
		__builtin_prefetch(&node->handle[step.at]);
	}
	return step;
}

/* query_overlaps() that stops once `enough` ranges were counted. */
static bool walk_overlaps(struct reading *reading, uint64_t start, uint64_t end, struct range **out, size_t max,
                          size_t enough, size_t *ret_total)
{
	struct step way[TREE_LEVELS];
	const struct node *root;
	size_t total = 0, taken = 0;
	unsigned level, top;

	if (!reading_root(reading, &root, &top) || top >= TREE_LEVELS)
		return false;
	if (!root || start >= end) {
		*ret_total = 0;
		return true;
	}
	level = top;
	way[level] = step_into(root, start, end);
	while (total < enough) {
		const struct node *node = way[level].node;
		unsigned at = node_reaching(node, way[level].at, way[level].below, start);

		if (at >= way[level].below) {
			if (level == top)
				break;
			level++;
			continue;
		}
		way[level].at = at + 1;
		if (level > 0) {
			node = reading_child(reading, node, at);
			if (!node)
				goto torn;
			fetch_node(node);
			level--;
			way[level] = step_into(node, start, end);
			continue;
		}
		if (taken < max) {
			out[taken] = reading_range(reading, node, at);
			if (!out[taken])
				goto torn;
			taken++;
		}
		total++;
	}
	if (!reading_holds(reading))
		goto torn;
	*ret_total = total;
	return true;
torn:
	references_drop(out, taken);
	return false;
}

bool query_overlaps(struct reading *reading, uint64_t start, uint64_t end, struct range **out, size_t max,
                    size_t *ret_total)
{
	return walk_overlaps(reading, start, end, out, max, SIZE_MAX, ret_total);
}

/* The first range that holds byte `address`, NULL if none does. */
static bool query_first(struct reading *reading, uint64_t address, struct range **ret_range)
{
	struct range *first = NULL;
	size_t total;

	/* No range holds byte UINT64_MAX, and asking for it would wrap. */
	if (address < UINT64_MAX && !walk_overlaps(reading, address, address + 1, &first, 1, 1, &total))
		return false;
	*ret_range = first;
	return true;
}

/*
 * For an address that no range holds: the greatest end of the ranges below it, 0 if there is none, and the least
 * start of those above it, UINT64_MAX if there is none.
 */
static bool query_beside(struct reading *reading, uint64_t address, uint64_t *ret_end, uint64_t *ret_start)
{
	const struct node *node;
	uint64_t greatest = 0, least = UINT64_MAX;
	unsigned level;

	if (!reading_root(reading, &node, &level))
		return false;
	while (node) {
		/* No range starts at UINT64_MAX, so cutting the limit there loses none. */
		unsigned below = node_below(node, address < UINT64_MAX ? address + 1 : address);
		unsigned certain = level > 0 && below > 0 ? below - 1 : below;

		uint64_t reach = node_reach(node, certain);

		greatest = reach > greatest ? reach : greatest;
		if (below < TREE_FANOUT) {
			uint64_t start = peek(&node->start[below]);

			least = start < least ? start : least;
		}
		if (level == 0 || below == 0)
			break;
		node = reading_child(reading, node, below - 1);
		if (!node)
			return false;
		fetch_node(node);
		level--;
	}
	*ret_end = greatest;
	*ret_start = least;
	return true;
}

bool query_nearest(struct reading *reading, uint64_t address, struct range **ret_range)
{
	struct range *range;
	uint64_t end, start;

	if (!query_first(reading, address, &range))
		return false;
	if (!range) {
		if (!query_beside(reading, address, &end, &start))
			return false;
		/*
		 * The last byte of the ranges below, or the first of those above: nothing else holds it, or it would
		 * hold `address`.
		 */
		if (end > 0 && (start == UINT64_MAX || address - (end - 1) <= start - address)) {
			if (!query_first(reading, end - 1, &range))
				return false;
		} else if (!query_first(reading, start, &range)) {
			return false;
		}
	}
	*ret_range = range;
	return true;
}
