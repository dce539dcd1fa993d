/* Conditional nodes: their handles, bodies and runs. */
#ifndef SOFTGPU_CONDITIONAL_H
#define SOFTGPU_CONDITIONAL_H

#include "tests/softgpu/driver/graph.h"

/* With the lock held, unless said otherwise. */

/* The operation of a node, with empty bodies. */
CUresult sg_conditional_plan(const CUDA_CONDITIONAL_NODE_PARAMS *params, struct sg_op *ret_op);
/* Whether a node of this operation may be added to the graph: its handle is the graph's and has no node yet. */
bool sg_conditional_fits(const struct sg_op *op, const struct sg_graph *graph);
/* The node is there: its bodies are its own from now on. */
void sg_conditional_added(struct sg_node *node);
/* op.h's clone and clear, of such an operation. */
bool sg_conditional_clone(const struct sg_op *op, struct sg_op *ret_op);
void sg_conditional_clear(struct sg_op *op);
/* Makes execs of the bodies of `from`. */
CUresult sg_conditional_instantiate(const struct sg_op *from, struct sg_op *op);
/* Without the lock. Runs the bodies as the handle's value says. */
CUresult sg_conditional_run(const struct sg_op *op, struct sg_stream *stream);
/* Without the lock. A launch begins: handles get their default values, those of bodies and child graphs too. */
void sg_conditional_begin(const struct sg_exec *exec);
/* Drops what a graph holds of its handles. */
void sg_conditional_end(struct sg_conditional *handles);
bool sg_graph_has_conditionals(const struct sg_graph *graph);

#endif
