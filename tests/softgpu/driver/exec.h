/* Instantiated graphs, for exec.c and exec_update.c. With the lock held. */
#ifndef SOFTGPU_EXEC_H
#define SOFTGPU_EXEC_H

#include "tests/softgpu/driver/graph.h"

/* INVALID_VALUE for a graph with a cycle. */
CUresult sg_exec_create(const struct sg_graph *graph, struct sg_exec **ret_exec);
/* A node's operation made ready for an exec. */
CUresult sg_exec_op(const struct sg_op *op, struct sg_op *ret_op);

#endif
