/* Graphs, their nodes, and instantiated graphs. With the lock held, unless said otherwise. */
#ifndef SOFTGPU_GRAPH_H
#define SOFTGPU_GRAPH_H

#include "tests/softgpu/driver/op.h"
#include "tests/softgpu/driver/stream.h"

/* A CUgraphNode: an operation and the nodes it depends on. */
struct sg_node {
	struct sg_graph *graph;
	CUgraphNodeType type;
	struct sg_op op;
	struct sg_node **needs;
	size_t needs_count;
	struct sg_node *origin; /* in a clone: the node it is a clone of, to be compared, not followed */
};

/* References that a graph holds to a user object. */
struct sg_user_object;
struct sg_user_reference {
	struct sg_user_object *object;
	unsigned count;
	struct sg_user_reference *next;
};

/* A CUgraph. Nodes stand in the order they were added. */
struct sg_graph {
	struct sg_node **nodes;
	size_t count, capacity;
	struct sg_graph *origin;    /* what it is a clone of: compared, not followed */
	struct sg_node *parent;     /* the node whose child graph it is: cannot be destroyed by its handle */
	struct sg_capture *capture; /* that adds to it now */
	struct sg_user_reference *user_references;
	struct sg_conditional *conditionals; /* handles made for it */
};

struct sg_exec_node {
	struct sg_node *source; /* the node it was made from: compared, not followed */
	CUgraphNodeType type;
	struct sg_op op;
	bool enabled;
	size_t *needs; /* indices of nodes before it */
	size_t needs_count;
};

/*
 * A CUgraphExec: nodes in an order in which they can run. Each launch runs a copy, so that later changes do not reach
 * it.
 */
struct sg_exec {
	struct sg_exec_node *nodes;
	size_t count;
	unsigned long long flags;
	bool launched;                             /* a launch's copy, and no part of another */
	struct sg_user_reference *user_references; /* those its graph held when it was made */
	struct sg_point last;                      /* the newest launch: launches of one exec follow each other */
};

struct sg_graph *sg_graph_of(CUgraph handle);
struct sg_node *sg_node_of(CUgraphNode handle);
struct sg_exec *sg_exec_of(CUgraphExec handle);

struct sg_graph *sg_graph_create(void);
/* Deep; clones of nodes know their origin. NULL without memory. */
struct sg_graph *sg_graph_clone(const struct sg_graph *graph);
/* Takes the operation over, also on failure. Dependencies must be nodes of the graph. */
CUresult sg_graph_add(struct sg_graph *graph, CUgraphNodeType type, struct sg_op *op, struct sg_node *const *needs,
                      size_t count, struct sg_node **ret_node);
/* The type of node that an operation makes. */
CUgraphNodeType sg_node_type(const struct sg_op *op);
/* Without the lock. From the parameters of a node to its operation, checked. */
CUresult sg_node_plan(const CUgraphNodeParams *params, struct sg_op *ret_op);
/* From an operation to the parameters of a node of its type; pointers lead into the operation. */
CUresult sg_node_params(const struct sg_op *op, CUgraphNodeParams *ret_params);
/* Whether `node` is `from`, or `from` depends on it. */
bool sg_node_reaches(const struct sg_node *from, const struct sg_node *node);

/* conditional.c. Without the lock, by a kernel. Fits struct ptx_memory. */
bool sg_kernel_conditional(void *data, uint64_t handle, uint32_t value);

/* user_object.c. The lock is dropped while destructors run: take the list out of its graph first. */
void sg_user_objects_drop(struct sg_user_reference *references);
/* Puts copies in front of *ret_clone; false without memory, with what there is in *ret_clone. */
bool sg_user_objects_clone(const struct sg_user_reference *references, struct sg_user_reference **ret_clone);

#endif
