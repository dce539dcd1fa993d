/*
 * Bodies of conditional nodes, on a driver of a few functions: what was destroyed is never asked about again, though
 * its node's handle comes back for a node of which nobody saw the bodies (a clone's).
 */
#include <criterion/criterion.h>

#include "shim/effects/graphs.h"
#include "tests/unit/effect/fake_graph.h"

/* Graph n holds node n: graph 0 and 1 a conditional one, graph 2 a memset. */
static bool alive[8];

static CUresult get_nodes(CUgraph graph, CUgraphNode *nodes, size_t *count)
{
	unsigned n = (unsigned)((uintptr_t)graph - 0x1000);
	cr_assert(n < 8 && alive[n], "graph %u is dead", n);
	if (nodes)
		nodes[0] = NODE(n);
	*count = 1;
	return CUDA_SUCCESS;
}

static CUresult get_type(CUgraphNode node, CUgraphNodeType *type)
{
	*type = node == NODE(2) ? CU_GRAPH_NODE_TYPE_MEMSET : CU_GRAPH_NODE_TYPE_CONDITIONAL;
	return CUDA_SUCCESS;
}

static CUresult get_child(CUgraphNode node, CUgraph *graph)
{
	return CUDA_ERROR_INVALID_VALUE;
}

/* graph -> conditional node -> body -> conditional node -> inner body -> memset */
static void build(void)
{
	fake_graph_start(get_nodes, get_type, get_child);
	for (unsigned n = 0; n < 2; n++) {
		CUgraph body = GRAPH(n + 1);
		CUgraphNode node = NODE(n);
		CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_CONDITIONAL};
		params.conditional.size = 1;
		params.conditional.phGraph_out = &body;
		struct call call = {0};
		effect_graph_add(&call, &node, GRAPH(n), &params);
		call.after(&call, CUDA_SUCCESS);
	}
	alive[0] = alive[1] = alive[2] = true;
}

static struct graph_nodes read(void)
{
	struct graph_nodes list = {0};
	graph_nodes_read(&list, GRAPH(0));
	return list;
}

Test(conditional, bodies_are_read)
{
	build();
	struct graph_nodes list = read();
	cr_assert(list.count == 1 && !list.incomplete, "%zu nodes, incomplete %d", list.count, list.incomplete);
	cr_assert_eq(list.nodes[0].extents[0].address, 4096);
	graph_nodes_free(&list);
}

Test(conditional, destroyed_with_the_graph)
{
	struct call call = {0};
	build();
	effect_graph_destroy(&call, GRAPH(0));
	alive[1] = alive[2] = false;
	struct graph_nodes list = read();
	cr_assert(list.count == 0 && list.incomplete);
	/* The inner node's handle too. */
	alive[1] = true;
	graph_nodes_read(&list, GRAPH(1));
	cr_assert(list.count == 0 && list.incomplete);
}

Test(conditional, destroyed_with_the_node)
{
	struct call call = {0};
	build();
	effect_graph_destroy_node(&call, NODE(0));
	alive[1] = alive[2] = false;
	struct graph_nodes list = read();
	cr_assert(list.count == 0 && list.incomplete);
}
