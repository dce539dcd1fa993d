/*
 * Memory of graphs: what an allocation node allocates. Its address is fixed when the node is made. Here the bytes are
 * there from then on, until the last graph and instantiated graph that names them is gone and whoever has them has
 * freed them; on a real device they come and go with each launch.
 */
#ifndef SOFTGPU_GRAPH_MEMORY_H
#define SOFTGPU_GRAPH_MEMORY_H

#include "tests/softgpu/driver/graph.h"

struct sg_block {
	unsigned references; /* one for each operation, and one while it is out */
	bool out;            /* a launch allocated it, and nobody has freed it since */
	CUDA_MEM_ALLOC_NODE_PARAMS_v2 asked;
	uint64_t address;
};

/* With the lock held, all. */
CUresult sg_block_create(const CUDA_MEM_ALLOC_NODE_PARAMS_v2 *asked, struct sg_block **ret_block);
struct sg_block *sg_block_hold(struct sg_block *block);
void sg_block_drop(struct sg_block *block);
/* The block that starts there, or NULL. */
struct sg_block *sg_block_of(uint64_t address);
/* Freed by a call: CUDA_ERROR_INVALID_VALUE when it is not out. */
CUresult sg_block_free(struct sg_block *block);

/* Whether a graph allocates or frees: it can then be neither cloned nor embedded. */
bool sg_graph_has_memory(const struct sg_graph *graph);
/* Whether it frees this block already. */
bool sg_graph_frees(const struct sg_graph *graph, const struct sg_block *block);
/*
 * A launch: what it allocates must be free, and is out then unless the launch frees it too; what it only frees must be
 * out.
 */
CUresult sg_exec_take_blocks(struct sg_exec *exec);

#endif
