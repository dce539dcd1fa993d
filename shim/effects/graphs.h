/*
 * Executable graphs: what each node writes, copied when the graph is instantiated and kept up with every edit, because a range may be
 * protected long after a graph was captured. graphs.c keeps the table and judges launches; graph_nodes.c reads nodes.
 */
#ifndef CUCONST_EFFECTS_GRAPHS_H
#define CUCONST_EFFECTS_GRAPHS_H

#include "shim/effects/call.h"

/* What one node writes. Owned by its executable graph. */
struct graph_node {
	CUgraphNode handle; /* of the graph it was instantiated from: edits name it */
	const char *kind;   /* "kernel", "memcpy", "memset", "memop", "memory"; static text */
	bool enabled;
	bool maybe; /* in the body of a condition, which may not hold */
	bool memory; /* allocates or frees its one extent, which is 0 bytes long where its end is not known, and writes nothing */
	const struct function_info *function; /* kernel; else NULL */
	const struct kernel_paths *paths;     /* kernel, once `asked` */
	bool asked;
	bool unread; /* by an edit: what it writes now is not known */
	void *block; /* kernel: its parameters, laid out as the function says; NULL: none or unreadable */
	size_t block_bytes;
	struct extent *extents; /* the others */
	size_t extent_count;
};

/* A growing list of nodes. Zero-initialised is empty. */
struct graph_nodes {
	struct graph_node *nodes;
	size_t count, room;
	uint32_t *places; /* open addressing by handle: 1 + where it is in `nodes`; NULL until somebody asks */
	size_t place_count;
	unsigned bodies; /* while it is read: of conditional nodes that we are in */
	bool memory;     /* one of them allocates or frees */
	bool incomplete; /* a node could not be read: a conditional body nobody saw, or no memory */
};

/* Appends what the nodes of `graph` write, in graph_order()'s order, child graphs and known conditional bodies included. Driver queries only. */
void graph_nodes_read(struct graph_nodes *list, CUgraph graph);

/* The node with this handle; NULL: none. The list must not grow any more. */
struct graph_node *graph_nodes_find(struct graph_nodes *list, CUgraphNode handle);

void graph_nodes_free(struct graph_nodes *list);
void graph_node_clear(struct graph_node *node); /* what it holds, not itself */

/* A node names its kernel in one of two ways. */
static inline CUfunction graph_kernel_function(CUfunction function, CUkernel kernel)
{
	return function ? function : (CUfunction)kernel;
}

/* Fills an empty node's effect from parameters. False: no memory, or more than the driver takes. */
bool graph_node_kernel(struct graph_node *node, CUfunction function, void **params, void **extra);
bool graph_node_memcpy(struct graph_node *node, const CUDA_MEMCPY3D *params);
bool graph_node_memset(struct graph_node *node, const CUDA_MEMSET_NODE_PARAMS *params);
bool graph_node_memops(struct graph_node *node, const CUstreamBatchMemOpParams *params, unsigned count);

/* fork child: forget all executable graphs. */
void graphs_reset(void);

#endif
