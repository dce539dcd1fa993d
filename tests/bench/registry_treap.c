#include "tests/bench/registry_treap.h"

#include <stddef.h>

static uint64_t greatest_of(const struct treap_node *node)
{
	return node ? node->greatest : 0;
}

static void refresh(struct treap_node *node)
{
	uint64_t left = greatest_of(node->left), right = greatest_of(node->right);

	node->greatest = node->end;
	node->greatest = left > node->greatest ? left : node->greatest;
	node->greatest = right > node->greatest ? right : node->greatest;
}

/* Everything that starts below `start` goes left. */
static void split(struct treap_node *node, uint64_t start, struct treap_node **left, struct treap_node **right)
{
	if (!node) {
		*left = *right = NULL;
	} else if (node->start < start) {
		split(node->right, start, &node->right, right);
		*left = node;
		refresh(node);
	} else {
		split(node->left, start, left, &node->left);
		*right = node;
		refresh(node);
	}
}

static struct treap_node *merge(struct treap_node *left, struct treap_node *right)
{
	if (!left || !right)
		return left ? left : right;
	if (left->priority > right->priority) {
		left->right = merge(left->right, right);
		refresh(left);
		return left;
	}
	right->left = merge(left, right->left);
	refresh(right);
	return right;
}

void treap_insert(struct treap_node **root, struct treap_node *node)
{
	if (*root && (*root)->priority > node->priority) {
		treap_insert(node->start > (*root)->start ? &(*root)->right : &(*root)->left, node);
		refresh(*root);
		return;
	}
	split(*root, node->start, &node->left, &node->right);
	refresh(node);
	*root = node;
}

void treap_remove(struct treap_node **root, struct treap_node *node)
{
	if (*root == node) {
		*root = merge(node->left, node->right);
		return;
	}
	treap_remove(node->start > (*root)->start ? &(*root)->right : &(*root)->left, node);
	refresh(*root);
}

bool treap_hits(const struct treap_node *root, uint64_t start, uint64_t end)
{
	while (root && root->greatest > start) {
		if (root->start < end && root->end > start)
			return true;
		root = greatest_of(root->left) > start ? root->left : root->right;
	}
	return false;
}
