/*
 * The readers' side of the tree: walks that see the tree of one instant or say that they did not. Private to
 * registry/.
 */
#ifndef CUCONST_REGISTRY_QUERY_H
#define CUCONST_REGISTRY_QUERY_H

#include "registry/tree.h"

/* One attempt at reading. */
struct reading {
	struct tree *tree;
	struct ranges *ranges;
	uint64_t sequence; /* of the instant that is looked at; even */
	size_t visited;    /* nodes */
};

/* Starts an attempt; false when a writer is at work. */
bool reading_begin(struct reading *reading);

/* Has nothing changed since reading_begin()? Only then is what was read since true. */
bool reading_holds(const struct reading *reading);

/*
 * All three return false when the tree changed under them: outputs are untouched then, and no reference was taken.
 * An empty interval, end <= start, overlaps nothing.
 */
bool query_hits(struct reading *reading, uint64_t start, uint64_t end, bool *ret_hit);
bool query_overlaps(struct reading *reading, uint64_t start, uint64_t end, struct range **out, size_t max,
                    size_t *ret_total);
bool query_nearest(struct reading *reading, uint64_t address, struct range **ret_range);

#endif
