/* Reading graph nodes: parameters are copied, because the driver's own copies die with the node or its next edit. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "shim/effects/graph_order.h"
#include "shim/effects/graphs.h"
#include "shim/effects/launches.h"
#include "shim/hash.h"
#include "shim/kernels/function.h"

#define MAX_DEPTH 32 /* of child graphs and conditional bodies */

/*
 * Graphs that belong to a node and end with it: bodies of conditional nodes, which the driver tells only when the node is added, and a child
 * graph that was moved into its parent. Forgotten with the node: its handle may come again, and a dead body must not be read.
 */
struct owner {
	CUgraphNode node;
	CUgraph graph; /* that the node is in */
	unsigned count;
	CUgraph *bodies;
	UT_hash_handle hh;
};
static struct owner *owners;
static pthread_mutex_t owners_lock = PTHREAD_MUTEX_INITIALIZER;

void graph_node_clear(struct graph_node *node)
{
	free(node->block);
	free(node->extents);
	node->block = NULL;
	node->extents = NULL;
	node->extent_count = 0;
}

void graph_nodes_free(struct graph_nodes *list)
{
	for (size_t i = 0; i < list->count; i++)
		graph_node_clear(&list->nodes[i]);
	free(list->nodes);
	free(list->places);
	*list = (struct graph_nodes){0};
}

/* Where the handle is, or would be put. */
static uint32_t *place_of(const struct graph_nodes *list, CUgraphNode handle)
{
	size_t at = ((uintptr_t)handle >> 3) * 0x9e3779b97f4a7c15u >> 32;
	for (;; at++) {
		uint32_t *place = &list->places[at & (list->place_count - 1)];
		if (!*place || list->nodes[*place - 1].handle == handle)
			return place;
	}
}

/* False: no memory. */
static bool make_places(struct graph_nodes *list)
{
	size_t count = 64;
	while (count < 2 * list->count)
		count *= 2;
	list->places = list->count < UINT32_MAX ? calloc(count, sizeof *list->places) : NULL;
	list->place_count = count;
	for (size_t i = 0; list->places && i < list->count; i++)
		*place_of(list, list->nodes[i].handle) = (uint32_t)i + 1;
	return list->places;
}

struct graph_node *graph_nodes_find(struct graph_nodes *list, CUgraphNode handle)
{
	if (list->places || make_places(list)) {
		uint32_t place = *place_of(list, handle);
		return place ? &list->nodes[place - 1] : NULL;
	}
	for (size_t i = 0; i < list->count; i++)
		if (list->nodes[i].handle == handle)
			return &list->nodes[i];
	return NULL;
}

bool graph_node_kernel(struct graph_node *node, CUfunction function, void **params, void **extra)
{
	const void *block;
	size_t size;
	node->kind = "kernel";
	node->function = function_info(function);
	if (!node->function)
		return false;
	if (!params) {
		if (!launch_extra_block(extra, &block, &size))
			return true;
		size_t most = node->function->readable ? node->function->params_bytes : LAUNCH_BLOCK_MAX;
		size = size < most ? size : most;
		node->block = malloc(size + 1);
		if (!node->block)
			return false;
		memcpy(node->block, block, size);
		node->block_bytes = size;
		return true;
	}
	if (!node->function->params_bytes)
		return node->function->readable;
	node->block = calloc(1, node->function->params_bytes);
	if (!node->block)
		return false;
	node->block_bytes = node->function->params_bytes;
	for (size_t i = 0; i < node->function->param_count; i++)
		if (params[i])
			memcpy((char *)node->block + node->function->params[i].offset, params[i],
			       node->function->params[i].bytes);
	return node->function->readable;
}

static bool set_extents(struct graph_node *node, const char *kind, const struct extent *extents, size_t count)
{
	node->kind = kind;
	node->extents = count ? malloc(count * sizeof *extents) : NULL;
	if (count && !node->extents)
		return false;
	if (count)
		memcpy(node->extents, extents, count * sizeof *extents);
	node->extent_count = count;
	return true;
}

bool graph_node_memcpy(struct graph_node *node, const CUDA_MEMCPY3D *params)
{
	struct extent extent;
	return set_extents(node, "memcpy", &extent, effect_copy3d_extent(params, &extent));
}

bool graph_node_memset(struct graph_node *node, const CUDA_MEMSET_NODE_PARAMS *params)
{
	struct extent extent = {.address = params->dst,
	                        .width = (uint64_t)params->elementSize * params->width,
	                        .pitch = params->pitch,
	                        .rows = params->height,
	                        .slices = 1};
	return set_extents(node, "memset", &extent, 1);
}

bool graph_node_memops(struct graph_node *node, const CUstreamBatchMemOpParams *params, unsigned count)
{
	struct extent *extents = count <= MEMOPS_MAX ? malloc((count ? count : 1) * sizeof *extents) : NULL;
	size_t writes = 0;
	if (!extents)
		return false;
	for (unsigned i = 0; i < count; i++)
		writes += effect_memop_extent(&params[i], &extents[writes]);
	node->kind = "memop";
	node->extents = extents;
	node->extent_count = writes;
	return true;
}

static struct graph_node *append(struct graph_nodes *list, CUgraphNode handle)
{
	if (list->count == list->room) {
		size_t room = list->room ? 2 * list->room : 16;
		struct graph_node *nodes = realloc(list->nodes, room * sizeof *nodes);
		if (!nodes)
			return NULL;
		list->nodes = nodes;
		list->room = room;
	}
	struct graph_node *node = &list->nodes[list->count++];
	*node = (struct graph_node){.handle = handle, .enabled = true, .maybe = list->bodies > 0};
	return node;
}

static bool read_kernel(struct graph_node *node, CUgraphNode handle)
{
	CUDA_KERNEL_NODE_PARAMS params;
	CUDA_KERNEL_NODE_PARAMS_v1 old;
	if (drv.cuGraphKernelNodeGetParams_v2 && drv.cuGraphKernelNodeGetParams_v2(handle, &params) == CUDA_SUCCESS)
		return graph_node_kernel(node, graph_kernel_function(params.func, params.kern), params.kernelParams,
		                         params.extra);
	if (drv.cuGraphKernelNodeGetParams && drv.cuGraphKernelNodeGetParams(handle, &old) == CUDA_SUCCESS)
		return graph_node_kernel(node, old.func, old.kernelParams, old.extra);
	return false;
}

/* The launch begins a new life of memory that it allocates: with CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH it frees what the last one left. */
static bool read_alloc(struct graph_nodes *list, CUgraphNode handle)
{
	CUDA_MEM_ALLOC_NODE_PARAMS params;
	struct graph_node *node = append(list, handle);
	if (!node || !drv.cuGraphMemAllocNodeGetParams ||
	    drv.cuGraphMemAllocNodeGetParams(handle, &params) != CUDA_SUCCESS)
		return false;
	node->memory = list->memory = true;
	return set_extents(node, "memory", &(struct extent){.address = params.dptr, .width = params.bytesize}, 1);
}

static bool read_free(struct graph_nodes *list, CUgraphNode handle)
{
	CUdeviceptr address;
	struct graph_node *node = append(list, handle);
	if (!node || !drv.cuGraphMemFreeNodeGetParams || drv.cuGraphMemFreeNodeGetParams(handle, &address) != CUDA_SUCCESS)
		return false;
	node->memory = list->memory = true;
	return set_extents(node, "memory", &(struct extent){.address = address}, 1);
}

static void read_graph(struct graph_nodes *list, CUgraph graph, unsigned depth);

/* The bodies are copied out: reading them calls the driver, which must not happen under the lock. */
static void read_conditional(struct graph_nodes *list, CUgraphNode handle, unsigned depth)
{
	CUgraph *bodies = NULL;
	unsigned count = 0;
	struct owner *known;
	pthread_mutex_lock(&owners_lock);
	HASH_FIND_PTR(owners, &handle, known);
	if (known)
		bodies = malloc((known->count ? known->count : 1) * sizeof *bodies);
	for (; bodies && count < known->count; count++)
		bodies[count] = known->bodies[count];
	pthread_mutex_unlock(&owners_lock);
	list->incomplete |= !bodies;
	list->bodies++;
	for (unsigned i = 0; i < count; i++)
		read_graph(list, bodies[i], depth + 1);
	list->bodies--;
	free(bodies);
}

static void read_node(struct graph_nodes *list, CUgraphNode handle, unsigned depth)
{
	CUgraphNodeType type;
	CUgraph child;
	union {
		CUDA_MEMCPY3D copy;
		CUDA_MEMSET_NODE_PARAMS set;
		CUDA_BATCH_MEM_OP_NODE_PARAMS memops;
	} params;
	if (drv.cuGraphNodeGetType(handle, &type) != CUDA_SUCCESS) {
		list->incomplete = true;
		return;
	}
	struct graph_node *node;
	bool read = true;
	switch (type) {
	case CU_GRAPH_NODE_TYPE_KERNEL:
		node = append(list, handle);
		read = node && read_kernel(node, handle);
		break;
	case CU_GRAPH_NODE_TYPE_MEMCPY:
		node = append(list, handle);
		read = node && drv.cuGraphMemcpyNodeGetParams(handle, &params.copy) == CUDA_SUCCESS &&
		       graph_node_memcpy(node, &params.copy);
		break;
	case CU_GRAPH_NODE_TYPE_MEMSET:
		node = append(list, handle);
		read = node && drv.cuGraphMemsetNodeGetParams(handle, &params.set) == CUDA_SUCCESS &&
		       graph_node_memset(node, &params.set);
		break;
	case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
		node = append(list, handle);
		read = node && drv.cuGraphBatchMemOpNodeGetParams &&
		       drv.cuGraphBatchMemOpNodeGetParams(handle, &params.memops) == CUDA_SUCCESS &&
		       graph_node_memops(node, params.memops.paramArray, params.memops.count);
		break;
	case CU_GRAPH_NODE_TYPE_GRAPH:
		read = drv.cuGraphChildGraphNodeGetGraph(handle, &child) == CUDA_SUCCESS;
		if (read)
			read_graph(list, child, depth + 1);
		break;
	case CU_GRAPH_NODE_TYPE_CONDITIONAL:
		read_conditional(list, handle, depth);
		break;
	case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
		read = read_alloc(list, handle);
		break;
	case CU_GRAPH_NODE_TYPE_MEM_FREE:
		read = read_free(list, handle);
		break;
	default: /* host, event, semaphore and empty nodes write nothing that is protected */
		break;
	}
	list->incomplete |= !read;
}

static void read_graph(struct graph_nodes *list, CUgraph graph, unsigned depth)
{
	size_t count = 0;
	if (depth > MAX_DEPTH || drv.cuGraphGetNodes(graph, NULL, &count) != CUDA_SUCCESS) {
		list->incomplete = true;
		return;
	}
	CUgraphNode *handles = count ? malloc(count * sizeof *handles) : NULL;
	if (count && (!handles || drv.cuGraphGetNodes(graph, handles, &count) != CUDA_SUCCESS)) {
		list->incomplete = true;
		count = 0;
	}
	graph_order(handles, count);
	for (size_t i = 0; i < count; i++)
		read_node(list, handles[i], depth);
	free(handles);
}

void graph_nodes_read(struct graph_nodes *list, CUgraph graph)
{
	if (!drv.cuGraphGetNodes || !drv.cuGraphNodeGetType || !drv.cuGraphMemcpyNodeGetParams ||
	    !drv.cuGraphMemsetNodeGetParams || !drv.cuGraphChildGraphNodeGetGraph) {
		list->incomplete = true;
		return;
	}
	read_graph(list, graph, 0);
}

static void free_owner(struct owner *owner)
{
	if (!owner)
		return;
	free(owner->bodies);
	free(owner);
}

static void add_owner(CUgraphNode node, CUgraph graph, const CUgraph *bodies, unsigned count)
{
	struct owner *added = calloc(1, sizeof *added), *old;
	CUgraph *copies = malloc((count ? count : 1) * sizeof *copies);
	if (!added || !copies) {
		free(added);
		free(copies);
		return;
	}
	memcpy(copies, bodies, count * sizeof *copies);
	*added = (struct owner){.node = node, .graph = graph, .count = count, .bodies = copies};
	pthread_mutex_lock(&owners_lock);
	HASH_REPLACE_PTR(owners, node, added, old);
	bool kept = hash_took(added);
	pthread_mutex_unlock(&owners_lock);
	free_owner(old);
	if (!kept)
		free_owner(added);
}

static void add_after(struct call *call, CUresult result)
{
	const CUgraphNode *node = call->state[0].pointer;
	CUgraph graph = call->state[1].pointer;
	const CUgraphNodeParams *params = call->state[2].pointer;
	if (result != CUDA_SUCCESS || !node)
		return;
	if (params->type == CU_GRAPH_NODE_TYPE_CONDITIONAL && params->conditional.phGraph_out)
		add_owner(*node, graph, params->conditional.phGraph_out, params->conditional.size);
	else if (params->type == CU_GRAPH_NODE_TYPE_GRAPH &&
	         params->graph.ownership == CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE)
		add_owner(*node, graph, &params->graph.graph, 1);
}

/* Nodes of graphs that are not executable yet: nothing is kept of them, but deny refuses a kernel here already. */
void effect_graph_kernel_v1(struct call *call, const CUDA_KERNEL_NODE_PARAMS_v1 *params)
{
	if (params)
		launch_scan_deferred(call, params->func, params->kernelParams, params->extra);
}

void effect_graph_kernel(struct call *call, const CUDA_KERNEL_NODE_PARAMS *params)
{
	if (params)
		launch_scan_deferred(call, graph_kernel_function(params->func, params->kern), params->kernelParams,
		                     params->extra);
}

void effect_graph_node(struct call *call, const CUgraphNodeParams *params)
{
	if (params && params->type == CU_GRAPH_NODE_TYPE_KERNEL)
		launch_scan_deferred(call, graph_kernel_function(params->kernel.func, params->kernel.kern),
		                     params->kernel.kernelParams, params->kernel.extra);
}

void effect_graph_add(struct call *call, CUgraphNode *node, CUgraph graph, CUgraphNodeParams *params)
{
	if (!params)
		return;
	effect_graph_node(call, params);
	call->state[0].pointer = node;
	call->state[1].pointer = graph;
	call->state[2].pointer = params;
	call->after = add_after;
}

static void forget_graph(CUgraph graph, unsigned depth);

/* Locked. */
static void forget_owner(struct owner *owner, unsigned depth)
{
	HASH_DEL(owners, owner);
	for (unsigned i = 0; i < owner->count && depth < MAX_DEPTH; i++)
		forget_graph(owner->bodies[i], depth + 1);
	free_owner(owner);
}

/* Locked. Begins anew after each: the bodies' own nodes went with it. */
static void forget_graph(CUgraph graph, unsigned depth)
{
	struct owner *owner = owners;
	while (owner) {
		/* The analyzer does not see that HASH_DEL left no way to what was freed. NOLINTNEXTLINE(clang-analyzer-unix.Malloc) */
		if (owner->graph == graph) {
			forget_owner(owner, depth);
			owner = owners;
		} else {
			owner = owner->hh.next;
		}
	}
}

/* Before the call: when it returns, another thread may have been given the handles. */
void effect_graph_destroy(struct call *call, CUgraph graph)
{
	pthread_mutex_lock(&owners_lock);
	forget_graph(graph, 0);
	pthread_mutex_unlock(&owners_lock);
}

void effect_graph_destroy_node(struct call *call, CUgraphNode node)
{
	struct owner *owner;
	pthread_mutex_lock(&owners_lock);
	HASH_FIND_PTR(owners, &node, owner);
	if (owner)
		forget_owner(owner, 0);
	pthread_mutex_unlock(&owners_lock);
}
