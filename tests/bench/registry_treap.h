/*
 * What the registry is compared with: a binary interval tree (a treap: ordered by start, heap by priority) whose
 * nodes carry the greatest end beneath them and lie wherever they were made. Single-threaded.
 */
#ifndef CUCONST_TESTS_BENCH_REGISTRY_TREAP_H
#define CUCONST_TESTS_BENCH_REGISTRY_TREAP_H

#include <stdbool.h>
#include <stdint.h>

struct treap_node {
	uint64_t start, end, greatest, priority;
	struct treap_node *left, *right;
};

/* `node` is the caller's, filled but for its links; `*root` NULL is the empty treap. */
void treap_insert(struct treap_node **root, struct treap_node *node);

/* Takes out `node`, which is in the treap; no two nodes have the same start. */
void treap_remove(struct treap_node **root, struct treap_node *node);

bool treap_hits(const struct treap_node *root, uint64_t start, uint64_t end);

#endif
