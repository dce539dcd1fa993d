/* The table of executable graphs: made at instantiation, kept up with edits, judged at each launch. */
#include "shim/effects/graphs.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "shim/effects/capture.h"
#include "shim/effects/frees.h"
#include "shim/effects/launches.h"
#include "shim/hash.h"
#include "shim/hook_state.h"
#include "shim/kernels/function.h"
#include "shim/looks.h"
#include "shim/verdict/allocation.h"

struct graph_exec {
	CUgraphExec exec;
	struct graph_nodes list;
	UT_hash_handle hh;
};

static struct graph_exec *execs;
/* Innermost: no driver call and no record is made under it, and the registry's readers take no lock. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static struct graph_exec *find(CUgraphExec exec)
{
	struct graph_exec *found;
	HASH_FIND_PTR(execs, &exec, found);
	return found;
}

/* Takes an entry out of the table; the caller owns it. NULL: there is none. */
static struct graph_exec *take_out(CUgraphExec exec)
{
	pthread_mutex_lock(&lock);
	struct graph_exec *found = find(exec);
	if (found)
		HASH_DEL(execs, found);
	pthread_mutex_unlock(&lock);
	return found;
}

static void free_entry(struct graph_exec *entry)
{
	if (!entry)
		return;
	graph_nodes_free(&entry->list);
	free(entry);
}

/* Takes it over. What the table has under that handle went with its context. Without memory it is lost, and its launches are counted. */
static void put_in(struct graph_exec *entry)
{
	struct graph_exec *old;
	pthread_mutex_lock(&lock);
	HASH_REPLACE_PTR(execs, exec, entry, old);
	bool added = hash_took(entry);
	pthread_mutex_unlock(&lock);
	free_entry(old);
	if (!added)
		free_entry(entry);
}

static void instantiate_after(struct call *call, CUresult result)
{
	const CUgraphExec *exec = call->state[0].pointer;
	if (result != CUDA_SUCCESS || !exec || !*exec)
		return;
	struct graph_exec *added = calloc(1, sizeof *added);
	if (!added)
		return;
	added->exec = *exec;
	graph_nodes_read(&added->list, call->state[1].pointer);
	put_in(added);
}

void effect_instantiate(struct call *call, CUgraphExec *exec, CUgraph graph)
{
	call->state[0].pointer = exec;
	call->state[1].pointer = graph;
	call->after = instantiate_after;
}

static void destroy_after(struct call *call, CUresult result)
{
	if (result == CUDA_SUCCESS)
		free_entry(call->state[0].pointer);
	else if (call->state[0].pointer)
		put_in(call->state[0].pointer);
}

/* Taken out before the call: when it returns, another thread may have been given the handle, and have put its own graph in. */
void effect_exec_destroy(struct call *call, CUgraphExec exec)
{
	call->state[0].pointer = take_out(exec);
	call->after = destroy_after;
}

/* deny: kernels of a graph whose nodes are to take the place of others, which would be refused at each launch. */
static void scan_graph(struct call *call, CUgraph graph)
{
	struct graph_nodes nodes = {0};
	if (!launch_may_refuse())
		return;
	call->deferred = true;
	graph_nodes_read(&nodes, graph);
	for (size_t i = 0; i < nodes.count; i++) {
		const struct graph_node *node = &nodes.nodes[i];
		if (node->function && node->block && launch_concerns(node->block, node->block_bytes))
			launch_scan_block(call, node->function,
			                  launch_paths_for(node->function, node->block, node->block_bytes), node->block,
			                  node->block_bytes);
	}
	graph_nodes_free(&nodes);
}

static void set_enabled(CUgraphExec exec, CUgraphNode node, bool enabled)
{
	pthread_mutex_lock(&lock);
	struct graph_exec *found = find(exec);
	struct graph_node *known = found ? graph_nodes_find(&found->list, node) : NULL;
	if (known)
		known->enabled = enabled;
	pthread_mutex_unlock(&lock);
}

/* Whether an update leaves a node switched off is the driver's to say. */
static void ask_enabled(CUgraphExec exec, const CUgraphNode *off, size_t count)
{
	unsigned enabled;
	for (size_t i = 0; i < count; i++)
		if (drv.cuGraphNodeGetEnabled && drv.cuGraphNodeGetEnabled(exec, off[i], &enabled) == CUDA_SUCCESS)
			set_enabled(exec, off[i], enabled);
}

static void update_after(struct call *call, CUresult result)
{
	struct graph_nodes fresh = {0};
	CUgraphNode *off = NULL;
	size_t off_count = 0;
	if (result != CUDA_SUCCESS)
		return;
	graph_nodes_read(&fresh, call->state[1].pointer);
	pthread_mutex_lock(&lock);
	struct graph_exec *found = find(call->state[0].pointer);
	if (found && fresh.count == found->list.count)
		off = malloc((fresh.count + 1) * sizeof *off);
	if (found) {
		/* Later edits go on naming the nodes of the graph that was instantiated; the two have the same shape. */
		for (size_t i = 0; i < fresh.count && fresh.count == found->list.count; i++) {
			fresh.nodes[i].handle = found->list.nodes[i].handle;
			/* Without room to ask it counts as switched on. */
			fresh.nodes[i].enabled = found->list.nodes[i].enabled || !off;
			if (!fresh.nodes[i].enabled)
				off[off_count++] = fresh.nodes[i].handle;
		}
		struct graph_nodes old = found->list;
		found->list = fresh;
		fresh = old;
	}
	pthread_mutex_unlock(&lock);
	graph_nodes_free(&fresh);
	ask_enabled(call->state[0].pointer, off, off_count);
	free(off);
}

static void update(struct call *call, CUgraphExec exec, CUgraph graph)
{
	call->state[0].pointer = exec;
	call->state[1].pointer = graph;
	scan_graph(call, graph);
}

/* An update that deny refuses says why not in the driver's words, as any does that fails: programs print it. */
static void update_info_after(struct call *call, CUresult result)
{
	CUgraphExecUpdateResultInfo *info = call->state[2].pointer;
	if (result == CUDA_ERROR_NOT_PERMITTED && info)
		*info = (CUgraphExecUpdateResultInfo){.result = CU_GRAPH_EXEC_UPDATE_ERROR};
	update_after(call, result);
}

void effect_exec_update(struct call *call, CUgraphExec exec, CUgraph graph, CUgraphExecUpdateResultInfo *info)
{
	call->state[2].pointer = info;
	call->after = update_info_after;
	update(call, exec, graph);
}

static void update_v1_after(struct call *call, CUresult result)
{
	CUgraphExecUpdateResult *why = call->state[2].pointer;
	CUgraphNode *error = call->state[3].pointer;
	if (result == CUDA_ERROR_NOT_PERMITTED && why)
		*why = CU_GRAPH_EXEC_UPDATE_ERROR;
	if (result == CUDA_ERROR_NOT_PERMITTED && error)
		*error = NULL;
	update_after(call, result);
}

void effect_exec_update_v1(struct call *call, CUgraphExec exec, CUgraph graph, CUgraphNode *error,
                           CUgraphExecUpdateResult *why)
{
	call->state[2].pointer = why;
	call->state[3].pointer = error;
	call->after = update_v1_after;
	update(call, exec, graph);
}

/*
 * An edit of one node: its new effect was read before the call and takes the old one's place when the driver agreed. Where it could not be read, or the node is none of
 * those that are known, the launches from here on are not judged as a whole, and are counted.
 */
static void edit_after(struct call *call, CUresult result)
{
	struct graph_node *fresh = call->state[2].pointer;
	bool placed = false;
	pthread_mutex_lock(&lock);
	struct graph_exec *found = result == CUDA_SUCCESS ? find(call->state[0].pointer) : NULL;
	struct graph_node *node = found && fresh ? graph_nodes_find(&found->list, fresh->handle) : NULL;
	if (node) {
		struct graph_node old = *node;
		*node = *fresh;
		node->enabled = old.enabled;
		node->maybe = old.maybe;
		placed = !node->unread;
		*fresh = old;
	}
	if (found && !placed)
		found->list.incomplete = true;
	pthread_mutex_unlock(&lock);
	if (fresh)
		graph_node_clear(fresh);
	free(fresh);
}

/* NULL: no memory. */
static struct graph_node *edit(struct call *call, CUgraphExec exec, CUgraphNode node)
{
	struct graph_node *fresh = calloc(1, sizeof *fresh);
	if (fresh)
		fresh->handle = node;
	call->state[0].pointer = exec;
	call->state[2].pointer = fresh;
	call->after = edit_after;
	return fresh;
}

static void edit_kernel(struct call *call, CUgraphExec exec, CUgraphNode node, CUfunction function, void **params,
                        void **extra)
{
	struct graph_node *fresh = edit(call, exec, node);
	if (fresh)
		fresh->unread = !graph_node_kernel(fresh, function, params, extra);
	launch_scan_deferred(call, function, params, extra);
}

void effect_exec_kernel_v1(struct call *call, CUgraphExec exec, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v1 *params)
{
	if (params)
		edit_kernel(call, exec, node, params->func, params->kernelParams, params->extra);
}

void effect_exec_kernel(struct call *call, CUgraphExec exec, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS *params)
{
	if (params)
		edit_kernel(call, exec, node, graph_kernel_function(params->func, params->kern), params->kernelParams,
		            params->extra);
}

void effect_exec_memcpy(struct call *call, CUgraphExec exec, CUgraphNode node, const CUDA_MEMCPY3D *params)
{
	struct graph_node *fresh = params ? edit(call, exec, node) : NULL;
	if (fresh)
		fresh->unread = !graph_node_memcpy(fresh, params);
}

void effect_exec_memset(struct call *call, CUgraphExec exec, CUgraphNode node, const CUDA_MEMSET_NODE_PARAMS *params)
{
	struct graph_node *fresh = params ? edit(call, exec, node) : NULL;
	if (fresh)
		fresh->unread = !graph_node_memset(fresh, params);
}

void effect_exec_memops(struct call *call, CUgraphExec exec, CUgraphNode node, const CUDA_BATCH_MEM_OP_NODE_PARAMS *params)
{
	struct graph_node *fresh = params && params->paramArray ? edit(call, exec, node) : NULL;
	if (fresh)
		fresh->unread = !graph_node_memops(fresh, params->paramArray, params->count);
}

void effect_exec_node(struct call *call, CUgraphExec exec, CUgraphNode node, CUgraphNodeParams *params)
{
	if (!params)
		return;
	switch (params->type) {
	case CU_GRAPH_NODE_TYPE_KERNEL:
		edit_kernel(call, exec, node, graph_kernel_function(params->kernel.func, params->kernel.kern),
		            params->kernel.kernelParams, params->kernel.extra);
		break;
	case CU_GRAPH_NODE_TYPE_MEMCPY:
		effect_exec_memcpy(call, exec, node, &params->memcpy.copyParams);
		break;
	case CU_GRAPH_NODE_TYPE_MEMSET: {
		CUDA_MEMSET_NODE_PARAMS set = {.dst = params->memset.dst,
		                               .pitch = params->memset.pitch,
		                               .elementSize = params->memset.elementSize,
		                               .width = params->memset.width,
		                               .height = params->memset.height};
		effect_exec_memset(call, exec, node, &set);
		break;
	}
	case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP: {
		struct graph_node *fresh = params->memOp.paramArray ? edit(call, exec, node) : NULL;
		if (fresh)
			fresh->unread = !graph_node_memops(fresh, params->memOp.paramArray, params->memOp.count);
		break;
	}
	case CU_GRAPH_NODE_TYPE_GRAPH:
		effect_exec_child(call, exec, node, params->graph.graph);
		break;
	default:
		break;
	}
}

/*
 * A child graph's nodes are replaced by those of a graph of the same shape: the nodes that were read from the child keep their
 * handles and take the new effects, in order.
 */
static void child_after(struct call *call, CUresult result)
{
	struct graph_nodes fresh = {0}, handles = {0};
	CUgraph embedded;
	if (result != CUDA_SUCCESS)
		return;
	graph_nodes_read(&fresh, call->state[2].pointer);
	handles.incomplete = drv.cuGraphChildGraphNodeGetGraph(call->state[1].pointer, &embedded) != CUDA_SUCCESS;
	if (!handles.incomplete)
		graph_nodes_read(&handles, embedded);
	pthread_mutex_lock(&lock);
	struct graph_exec *found = find(call->state[0].pointer);
	if (found && (fresh.incomplete || handles.incomplete || fresh.count != handles.count))
		found->list.incomplete = true;
	for (size_t i = 0; found && i < fresh.count && i < handles.count; i++) {
		struct graph_node *node = graph_nodes_find(&found->list, handles.nodes[i].handle);
		if (!node)
			continue;
		struct graph_node old = *node;
		*node = fresh.nodes[i];
		node->handle = old.handle;
		node->enabled = old.enabled;
		node->maybe |= old.maybe;
		fresh.nodes[i] = old;
	}
	pthread_mutex_unlock(&lock);
	graph_nodes_free(&fresh);
	graph_nodes_free(&handles);
}

void effect_exec_child(struct call *call, CUgraphExec exec, CUgraphNode node, CUgraph child)
{
	call->state[0].pointer = exec;
	call->state[1].pointer = node;
	call->state[2].pointer = child;
	call->after = child_after;
	scan_graph(call, child);
}

static void enable_after(struct call *call, CUresult result)
{
	if (result == CUDA_SUCCESS)
		set_enabled(call->state[0].pointer, call->state[1].pointer, call->state[2].number);
}

void effect_exec_enable(struct call *call, CUgraphExec exec, CUgraphNode node, unsigned enabled)
{
	call->state[0].pointer = exec;
	call->state[1].pointer = node;
	call->state[2].number = enabled;
	call->after = enable_after;
}

/* Locked. */
static bool runs_kernel(const struct graph_node *node)
{
	return node->enabled && node->function && node->block;
}

/* What a kernel of the graph is asked about: its function, and a copy of its parameters. */
struct question {
	const struct function_info *function;
	void *block;
	size_t bytes;
};

/* Of the next node from *at on with an address that concerns a range, whose code nobody was asked about. False: none (any more), or no memory. */
static bool next_question(CUgraphExec exec, size_t *at, struct question *ret_question)
{
	*ret_question = (struct question){0};
	pthread_mutex_lock(&lock);
	struct graph_exec *found = find(exec);
	for (; found && *at < found->list.count && !ret_question->block; ++*at) {
		const struct graph_node *node = &found->list.nodes[*at];
		if (!runs_kernel(node) || node->asked || !launch_concerns(node->block, node->block_bytes))
			continue;
		ret_question->block = malloc(node->block_bytes + 1);
		if (!ret_question->block)
			break;
		memcpy(ret_question->block, node->block, node->block_bytes);
		ret_question->function = node->function;
		ret_question->bytes = node->block_bytes;
	}
	pthread_mutex_unlock(&lock);
	return ret_question->block;
}

/* Reading code calls the driver, which must not happen under the lock. Nodes with the same parameters have the same answer. */
static void ask_paths(CUgraphExec exec)
{
	struct question question;
	size_t at = 0;
	while (next_question(exec, &at, &question)) {
		const struct kernel_paths *paths = launch_paths_for(question.function, question.block, question.bytes);
		pthread_mutex_lock(&lock);
		struct graph_exec *found = find(exec);
		for (size_t i = at - 1; found && i < found->list.count; i++) {
			struct graph_node *node = &found->list.nodes[i];
			if (node->function != question.function || node->block_bytes != question.bytes ||
			    !node->block || memcmp(node->block, question.block, question.bytes) != 0)
				continue;
			node->paths = paths;
			node->asked = true;
		}
		pthread_mutex_unlock(&lock);
		free(question.block);
	}
}

/* What the graph's nodes allocate and free, one extent each. The caller frees the list; NULL: none, or no memory. */
static struct extent *memory_of(CUgraphExec exec, size_t *ret_count)
{
	struct extent *list = NULL;
	*ret_count = 0;
	pthread_mutex_lock(&lock);
	struct graph_exec *found = find(exec);
	if (found && found->list.memory)
		list = malloc(found->list.count * sizeof *list);
	for (size_t i = 0; list && i < found->list.count; i++)
		if (found->list.nodes[i].memory && found->list.nodes[i].extent_count)
			list[(*ret_count)++] = found->list.nodes[i].extents[0];
	pthread_mutex_unlock(&lock);
	return list;
}

/* Protections of memory that the launch frees, or allocates anew, end before its other nodes are judged: they write into what it becomes. */
static void end_memory(struct call *call, CUgraphExec exec)
{
	CUdeviceptr base;
	size_t count, bytes;
	struct extent *list = memory_of(exec, &count);
	for (size_t i = 0; i < count; i++) {
		if (list[i].width)
			frees_begin(call, list[i].address, list[i].address + list[i].width, ANY_DEVICE);
		else if (allocation_range(&base, &bytes, list[i].address) == CUDA_SUCCESS)
			frees_begin(call, base, base + bytes, ANY_DEVICE);
	}
	free(list);
}

void effect_graph_launch(struct call *call, CUgraphExec exec)
{
	call->graph = address_of(exec);
	call->time = look_launch_time();
	call->deferred = capture_is_running(call->stream);
	if (!call->deferred)
		end_memory(call, exec);
	ask_paths(exec);
	pthread_mutex_lock(&lock);
	struct graph_exec *found = find(exec);
	if (!found || found->list.incomplete)
		hook_count(COUNT_UNJUDGED);
	for (size_t i = 0; found && i < found->list.count; i++) {
		const struct graph_node *node = &found->list.nodes[i];
		if (!node->enabled || node->memory)
			continue;
		for (size_t k = 0; k < node->extent_count; k++)
			(node->maybe ? call_add_maybe : call_add_write)(call, &node->extents[k], node->kind);
		if (runs_kernel(node))
			launch_scan_block(call, node->function, node->paths, node->block, node->block_bytes);
	}
	pthread_mutex_unlock(&lock);
}

void graphs_reset(void)
{
	/* The lock may have been held by a thread the child does not have; the table is left where it is. */
	pthread_mutex_init(&lock, NULL);
	execs = NULL;
}
