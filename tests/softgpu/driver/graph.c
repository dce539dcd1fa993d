#include "tests/softgpu/driver/graph.h"

#include <stdlib.h>
#include <string.h>

#include "tests/softgpu/driver/capture.h"
#include "tests/softgpu/driver/conditional.h"
#include "tests/softgpu/driver/graph_memory.h"

struct sg_graph *sg_graph_of(CUgraph handle)
{
	return sg_is(handle, SG_GRAPH) ? (struct sg_graph *)handle : NULL;
}

struct sg_node *sg_node_of(CUgraphNode handle)
{
	return sg_is(handle, SG_NODE) ? (struct sg_node *)handle : NULL;
}

struct sg_graph *sg_graph_create(void)
{
	struct sg_graph *graph = calloc(1, sizeof(*graph));

	if (graph != NULL && !sg_add(graph, SG_GRAPH)) {
		free(graph);
		return NULL;
	}
	return graph;
}

static void free_node(struct sg_node *node)
{
	sg_capture_forget(node);
	sg_remove(node);
	sg_op_clear(&node->op);
	free(node->needs);
	free(node);
}

void sg_graph_free(struct sg_graph *graph)
{
	struct sg_user_reference *references = graph->user_references;

	sg_remove(graph);
	sg_conditional_end(graph->conditionals);
	for (size_t i = 0; i < graph->count; i++)
		free_node(graph->nodes[i]);
	free(graph->nodes);
	free(graph);
	sg_user_objects_drop(references);
}

bool sg_node_reaches(const struct sg_node *from, const struct sg_node *node)
{
	if (from == node)
		return true;
	for (size_t i = 0; i < from->needs_count; i++)
		if (sg_node_reaches(from->needs[i], node))
			return true;
	return false;
}

static bool add_need(struct sg_node *node, struct sg_node *need)
{
	struct sg_node **bigger = realloc(node->needs, (node->needs_count + 1) * sizeof(*bigger));

	if (bigger == NULL)
		return false;
	node->needs = bigger;
	node->needs[node->needs_count++] = need;
	return true;
}

CUresult sg_graph_add(struct sg_graph *graph, CUgraphNodeType type, struct sg_op *op, struct sg_node *const *needs,
                      size_t count, struct sg_node **ret_node)
{
	struct sg_node *node = calloc(1, sizeof(*node));
	bool refused = (op->kind == SG_OP_FREE && sg_graph_frees(graph, op->block)) ||
	               (op->kind == SG_OP_CONDITIONAL && !sg_conditional_fits(op, graph));
	CUresult status = refused ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;

	for (size_t i = 0; i < count && status == CUDA_SUCCESS; i++) {
		if (!sg_is(needs[i], SG_NODE) || needs[i]->graph != graph)
			status = CUDA_ERROR_INVALID_VALUE;
		for (size_t before = 0; before < i; before++)
			if (needs[before] == needs[i])
				status = CUDA_ERROR_INVALID_VALUE;
	}
	if (node == NULL)
		status = CUDA_ERROR_OUT_OF_MEMORY;
	for (size_t i = 0; i < count && status == CUDA_SUCCESS; i++)
		if (!add_need(node, needs[i]))
			status = CUDA_ERROR_OUT_OF_MEMORY;
	if (status == CUDA_SUCCESS && graph->count == graph->capacity) {
		size_t capacity = graph->capacity == 0 ? 8 : graph->capacity * 2;
		struct sg_node **bigger = realloc(graph->nodes, capacity * sizeof(*bigger));
		if (bigger != NULL) {
			graph->nodes = bigger;
			graph->capacity = capacity;
		} else {
			status = CUDA_ERROR_OUT_OF_MEMORY;
		}
	}
	if (status == CUDA_SUCCESS && !sg_add(node, SG_NODE))
		status = CUDA_ERROR_OUT_OF_MEMORY;
	if (status != CUDA_SUCCESS) {
		sg_op_clear(op);
		if (node != NULL)
			free(node->needs);
		free(node);
		return status;
	}
	node->graph = graph;
	node->type = type;
	node->op = *op;
	if (op->kind == SG_OP_GRAPH && op->child.graph != NULL)
		op->child.graph->parent = node;
	if (op->kind == SG_OP_CONDITIONAL)
		sg_conditional_added(node);
	graph->nodes[graph->count++] = node;
	if (ret_node != NULL)
		*ret_node = node;
	return CUDA_SUCCESS;
}

static size_t index_in(const struct sg_graph *graph, const struct sg_node *node)
{
	size_t i = 0;

	while (graph->nodes[i] != node)
		i++;
	return i;
}

struct sg_graph *sg_graph_clone(const struct sg_graph *graph)
{
	struct sg_graph *clone = sg_graph_create();
	bool good = clone != NULL && sg_user_objects_clone(graph->user_references, &clone->user_references);

	for (size_t i = 0; i < graph->count && good; i++) {
		const struct sg_node *node = graph->nodes[i];
		struct sg_op op;
		struct sg_node *fresh;
		good = sg_op_clone(&node->op, &op);
		if (good && op.kind == SG_OP_GRAPH) {
			op.child.graph = sg_graph_clone(node->op.child.graph);
			good = op.child.graph != NULL;
		}
		good = good && sg_graph_add(clone, node->type, &op, NULL, 0, &fresh) == CUDA_SUCCESS;
		if (good)
			fresh->origin = graph->nodes[i];
	}
	for (size_t i = 0; i < graph->count && good; i++)
		for (size_t n = 0; n < graph->nodes[i]->needs_count && good; n++)
			good = add_need(clone->nodes[i], clone->nodes[index_in(graph, graph->nodes[i]->needs[n])]);
	if (clone != NULL && !good) {
		sg_graph_free(clone);
		return NULL;
	}
	if (good)
		clone->origin = (struct sg_graph *)(uintptr_t)graph;
	return clone;
}

CUresult sg_cuGraphCreate(CUgraph *phGraph, unsigned int flags)
{
	if (phGraph == NULL || flags != 0)
		return CUDA_ERROR_INVALID_VALUE;
	sg_lock();
	struct sg_graph *graph = sg_graph_create();
	sg_unlock();
	if (graph == NULL)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*phGraph = (CUgraph)graph;
	return CUDA_SUCCESS;
}

CUresult sg_cuGraphDestroy(CUgraph hGraph)
{
	CUresult status = CUDA_ERROR_INVALID_VALUE;

	sg_lock();
	struct sg_graph *graph = sg_graph_of(hGraph);
	if (graph != NULL && graph->parent == NULL && graph->capture == NULL) {
		sg_graph_free(graph);
		status = CUDA_SUCCESS;
	}
	sg_unlock();
	return status;
}

CUresult sg_cuGraphClone(CUgraph *phGraphClone, CUgraph originalGraph)
{
	struct sg_graph *clone = NULL;

	if (phGraphClone == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	sg_lock();
	struct sg_graph *graph = sg_graph_of(originalGraph);
	CUresult status = graph == NULL                                                    ? CUDA_ERROR_INVALID_VALUE
	                  : sg_graph_has_memory(graph) || sg_graph_has_conditionals(graph) ? CUDA_ERROR_NOT_SUPPORTED
	                                                                                   : CUDA_SUCCESS;
	if (status == CUDA_SUCCESS) {
		clone = sg_graph_clone(graph);
		status = clone != NULL ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
	}
	sg_unlock();
	if (status != CUDA_SUCCESS)
		return status;
	*phGraphClone = (CUgraph)clone;
	return CUDA_SUCCESS;
}

CUresult sg_cuGraphNodeFindInClone(CUgraphNode *phNode, CUgraphNode hOriginalNode, CUgraph hClonedGraph)
{
	CUresult status = CUDA_ERROR_INVALID_VALUE;

	sg_lock();
	struct sg_graph *clone = sg_graph_of(hClonedGraph);
	for (size_t i = 0; phNode != NULL && clone != NULL && i < clone->count; i++)
		if (clone->nodes[i]->origin == (struct sg_node *)hOriginalNode) {
			*phNode = (CUgraphNode)clone->nodes[i];
			status = CUDA_SUCCESS;
		}
	sg_unlock();
	return status;
}

CUresult sg_cuGraphNodeGetType(CUgraphNode hNode, CUgraphNodeType *type)
{
	if (type == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	sg_lock();
	const struct sg_node *node = sg_node_of(hNode);
	if (node != NULL)
		*type = node->type;
	sg_unlock();
	return node != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/*
 * An answer of handles: how many there are when `list` is NULL, else as many as fit; places that are left over become
 * NULL.
 */
struct answer {
	CUgraphNode *list;
	size_t room, count;
};

static void give(struct answer *answer, const struct sg_node *node)
{
	if (answer->list != NULL && answer->count < answer->room)
		answer->list[answer->count] = (CUgraphNode)(uintptr_t)node;
	answer->count++;
}

static void finish(struct answer *answer, size_t *ret_count)
{
	if (answer->list != NULL) {
		for (size_t i = answer->count; i < answer->room; i++)
			answer->list[i] = NULL;
		if (answer->count > answer->room)
			answer->count = answer->room;
	}
	*ret_count = answer->count;
}

static CUresult list_nodes(CUgraph handle, CUgraphNode *nodes, size_t *count, bool roots_only)
{
	if (count == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	sg_lock();
	const struct sg_graph *graph = sg_graph_of(handle);
	if (graph != NULL) {
		struct answer answer = {nodes, *count, 0};
		for (size_t i = 0; i < graph->count; i++)
			if (!roots_only || graph->nodes[i]->needs_count == 0)
				give(&answer, graph->nodes[i]);
		finish(&answer, count);
	}
	sg_unlock();
	return graph != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult sg_cuGraphGetNodes(CUgraph hGraph, CUgraphNode *nodes, size_t *numNodes)
{
	return list_nodes(hGraph, nodes, numNodes, false);
}

CUresult sg_cuGraphGetRootNodes(CUgraph hGraph, CUgraphNode *rootNodes, size_t *numRootNodes)
{
	return list_nodes(hGraph, rootNodes, numRootNodes, true);
}

/* All edges are of the ordinary kind, whose data is zero. */
static void clear_edges(CUgraphEdgeData *edges, size_t count)
{
	if (edges != NULL)
		memset(edges, 0, count * sizeof(*edges));
}

CUresult sg_cuGraphGetEdges_v2(CUgraph hGraph, CUgraphNode *from, CUgraphNode *to, CUgraphEdgeData *edgeData,
                               size_t *numEdges)
{
	if (numEdges == NULL || (from == NULL) != (to == NULL))
		return CUDA_ERROR_INVALID_VALUE;
	sg_lock();
	const struct sg_graph *graph = sg_graph_of(hGraph);
	if (graph != NULL) {
		struct answer starts = {from, *numEdges, 0}, ends = {to, *numEdges, 0};
		for (size_t i = 0; i < graph->count; i++)
			for (size_t n = 0; n < graph->nodes[i]->needs_count; n++) {
				give(&starts, graph->nodes[i]->needs[n]);
				give(&ends, graph->nodes[i]);
			}
		finish(&starts, numEdges);
		finish(&ends, numEdges);
		if (from != NULL)
			clear_edges(edgeData, *numEdges);
	}
	sg_unlock();
	return graph != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult sg_cuGraphGetEdges(CUgraph hGraph, CUgraphNode *from, CUgraphNode *to, size_t *numEdges)
{
	return sg_cuGraphGetEdges_v2(hGraph, from, to, NULL, numEdges);
}

static CUresult list_neighbours(CUgraphNode handle, CUgraphNode *nodes, CUgraphEdgeData *edges, size_t *count,
                                bool dependents)
{
	if (count == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	sg_lock();
	const struct sg_node *node = sg_node_of(handle);
	if (node != NULL) {
		struct answer answer = {nodes, *count, 0};
		for (size_t n = 0; !dependents && n < node->needs_count; n++)
			give(&answer, node->needs[n]);
		for (size_t i = 0; dependents && i < node->graph->count; i++)
			for (size_t n = 0; n < node->graph->nodes[i]->needs_count; n++)
				if (node->graph->nodes[i]->needs[n] == node)
					give(&answer, node->graph->nodes[i]);
		finish(&answer, count);
		if (nodes != NULL)
			clear_edges(edges, *count);
	}
	sg_unlock();
	return node != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult sg_cuGraphNodeGetDependencies_v2(CUgraphNode hNode, CUgraphNode *dependencies, CUgraphEdgeData *edgeData,
                                          size_t *numDependencies)
{
	return list_neighbours(hNode, dependencies, edgeData, numDependencies, false);
}

CUresult sg_cuGraphNodeGetDependencies(CUgraphNode hNode, CUgraphNode *dependencies, size_t *numDependencies)
{
	return list_neighbours(hNode, dependencies, NULL, numDependencies, false);
}

CUresult sg_cuGraphNodeGetDependentNodes_v2(CUgraphNode hNode, CUgraphNode *dependentNodes, CUgraphEdgeData *edgeData,
                                            size_t *numDependentNodes)
{
	return list_neighbours(hNode, dependentNodes, edgeData, numDependentNodes, true);
}

CUresult sg_cuGraphNodeGetDependentNodes(CUgraphNode hNode, CUgraphNode *dependentNodes, size_t *numDependentNodes)
{
	return list_neighbours(hNode, dependentNodes, NULL, numDependentNodes, true);
}

static size_t need_index(const struct sg_node *node, const struct sg_node *need)
{
	size_t i = 0;

	while (i < node->needs_count && node->needs[i] != need)
		i++;
	return i;
}

static void remove_need(struct sg_node *node, size_t index)
{
	node->needs_count--;
	memmove(&node->needs[index], &node->needs[index + 1], (node->needs_count - index) * sizeof(*node->needs));
}

static bool plain(const CUgraphEdgeData *edges, size_t count)
{
	static const CUgraphEdgeData zero;

	for (size_t i = 0; edges != NULL && i < count; i++)
		if (memcmp(&edges[i], &zero, sizeof(zero)) != 0)
			return false;
	return true;
}

static CUresult change_edges(CUgraph handle, const CUgraphNode *from, const CUgraphNode *to, size_t count, bool add)
{
	CUresult status = CUDA_SUCCESS;

	if (count > 0 && (from == NULL || to == NULL))
		return CUDA_ERROR_INVALID_VALUE;
	sg_lock();
	const struct sg_graph *graph = sg_graph_of(handle);
	/* All are checked before any is changed. */
	for (size_t i = 0; i < count && status == CUDA_SUCCESS; i++) {
		struct sg_node *need = sg_node_of(from[i]), *node = sg_node_of(to[i]);
		bool valid = graph != NULL && need != NULL && node != NULL && need->graph == graph &&
		             node->graph == graph;
		if (!valid || (add ? sg_node_reaches(need, node) || need_index(node, need) < node->needs_count
		                   : need_index(node, need) == node->needs_count))
			status = CUDA_ERROR_INVALID_VALUE;
	}
	if (graph == NULL)
		status = CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; i < count && status == CUDA_SUCCESS; i++) {
		struct sg_node *need = sg_node_of(from[i]), *node = sg_node_of(to[i]);
		if (!add)
			remove_need(node, need_index(node, need));
		else if (!add_need(node, need))
			status = CUDA_ERROR_OUT_OF_MEMORY;
	}
	sg_unlock();
	return status;
}

CUresult sg_cuGraphAddDependencies_v2(CUgraph hGraph, const CUgraphNode *from, const CUgraphNode *to,
                                      const CUgraphEdgeData *edgeData, size_t numDependencies)
{
	return !plain(edgeData, numDependencies) ? CUDA_ERROR_NOT_SUPPORTED
	                                         : change_edges(hGraph, from, to, numDependencies, true);
}

CUresult sg_cuGraphAddDependencies(CUgraph hGraph, const CUgraphNode *from, const CUgraphNode *to, size_t numDependencies)
{
	return change_edges(hGraph, from, to, numDependencies, true);
}

CUresult sg_cuGraphRemoveDependencies_v2(CUgraph hGraph, const CUgraphNode *from, const CUgraphNode *to,
                                         const CUgraphEdgeData *edgeData, size_t numDependencies)
{
	return !plain(edgeData, numDependencies) ? CUDA_ERROR_NOT_SUPPORTED
	                                         : change_edges(hGraph, from, to, numDependencies, false);
}

CUresult sg_cuGraphRemoveDependencies(CUgraph hGraph, const CUgraphNode *from, const CUgraphNode *to,
                                      size_t numDependencies)
{
	return change_edges(hGraph, from, to, numDependencies, false);
}

CUresult sg_cuGraphDestroyNode(CUgraphNode hNode)
{
	sg_lock();
	struct sg_node *node = sg_node_of(hNode);
	bool fixed = node != NULL && (node->op.kind == SG_OP_ALLOC || node->op.kind == SG_OP_FREE);
	if (node != NULL && !fixed) {
		struct sg_graph *graph = node->graph;
		size_t index = index_in(graph, node);
		graph->count--;
		memmove(&graph->nodes[index], &graph->nodes[index + 1], (graph->count - index) * sizeof(*graph->nodes));
		for (size_t i = 0; i < graph->count; i++) {
			size_t need = need_index(graph->nodes[i], node);
			if (need < graph->nodes[i]->needs_count)
				remove_need(graph->nodes[i], need);
		}
		free_node(node);
	}
	sg_unlock();
	if (fixed)
		return CUDA_ERROR_NOT_SUPPORTED;
	return node != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
