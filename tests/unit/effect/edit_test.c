/*
 * Edits of executable graphs that cannot be followed, on a driver of a few functions: for want of memory, or since they
 * name a node that nobody knows. The launches that come after such an edit are counted as not judged, and no others
 * are.
 */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "shim/effects/graphs.h"
#include "shim/hook_state.h"
#include "tests/unit/effect/fake_graph.h"

#define EXEC ((CUgraphExec)(uintptr_t)0x3000)

/* Linked in place of the allocator's, by --wrap. */
void *__real_malloc(size_t bytes);
void *__real_calloc(size_t count, size_t bytes);
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes);

static bool no_malloc, no_calloc, no_child;

void *__wrap_malloc(size_t bytes)
{
	return no_malloc ? NULL : __real_malloc(bytes);
}

void *__wrap_calloc(size_t count, size_t bytes)
{
	return no_calloc ? NULL : __real_calloc(count, bytes);
}

/* Graph 0 holds memset 0 and graph 1 as its child, which holds memset 1; graph 2, of another shape, is empty. */
static CUresult get_nodes(CUgraph graph, CUgraphNode *nodes, size_t *count)
{
	*count = graph == GRAPH(0) ? 2 : graph == GRAPH(1) ? 1 : 0;
	if (nodes && graph == GRAPH(0))
		nodes[1] = NODE(7);
	if (nodes)
		nodes[0] = graph == GRAPH(0) ? NODE(0) : NODE(1);
	return CUDA_SUCCESS;
}

static CUresult get_type(CUgraphNode node, CUgraphNodeType *type)
{
	*type = node == NODE(7) ? CU_GRAPH_NODE_TYPE_GRAPH : CU_GRAPH_NODE_TYPE_MEMSET;
	return CUDA_SUCCESS;
}

static CUresult get_child(CUgraphNode node, CUgraph *graph)
{
	*graph = GRAPH(1);
	return no_child ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

static void instantiate(void)
{
	CUgraphExec exec = EXEC;
	struct call call = {0};
	fake_graph_start(get_nodes, get_type, get_child);
	effect_instantiate(&call, &exec, GRAPH(0));
	call.after(&call, CUDA_SUCCESS);
}

static void set_memset(CUgraphNode node, CUresult result)
{
	const CUDA_MEMSET_NODE_PARAMS params = {.dst = 8192, .elementSize = 1, .width = 64, .height = 1};
	struct call call = {0};
	effect_exec_memset(&call, EXEC, node, &params);
	no_malloc = no_calloc = false;
	if (call.after)
		call.after(&call, result);
}

static void set_child(CUgraph child)
{
	struct call call = {0};
	effect_exec_child(&call, EXEC, NODE(7), child);
	call.after(&call, CUDA_SUCCESS);
}

/* How many of three launches are counted as not judged. */
static unsigned unjudged(void)
{
	uint64_t before = hook_counted(COUNT_UNJUDGED);
	for (int i = 0; i < 3; i++) {
		struct call call = {.stream = CU_STREAM_PER_THREAD};
		effect_graph_launch(&call, EXEC);
	}
	return (unsigned)(hook_counted(COUNT_UNJUDGED) - before);
}

Test(edit, followed)
{
	instantiate();
	cr_assert_eq(unjudged(), 0);
	set_memset(NODE(0), CUDA_SUCCESS);
	set_memset(NODE(1), CUDA_SUCCESS);
	set_child(GRAPH(1));
	cr_assert_eq(unjudged(), 0);
}

Test(edit, refused_by_the_driver)
{
	instantiate();
	set_memset(NODE(5), CUDA_ERROR_INVALID_VALUE);
	no_calloc = true;
	set_memset(NODE(0), CUDA_ERROR_INVALID_VALUE);
	cr_assert_eq(unjudged(), 0);
}

Test(edit, of_an_unknown_node)
{
	instantiate();
	set_memset(NODE(5), CUDA_SUCCESS);
	cr_assert_eq(unjudged(), 3);
}

Test(edit, without_memory)
{
	instantiate();
	no_calloc = true;
	set_memset(NODE(0), CUDA_SUCCESS);
	cr_assert_eq(unjudged(), 3);
}

Test(edit, without_memory_for_its_effect)
{
	instantiate();
	no_malloc = true;
	set_memset(NODE(0), CUDA_SUCCESS);
	cr_assert_eq(unjudged(), 3);
}

Test(edit, of_a_child_of_another_shape)
{
	instantiate();
	set_child(GRAPH(2));
	cr_assert_eq(unjudged(), 3);
}

Test(edit, of_a_child_that_is_not_told)
{
	instantiate();
	no_child = true;
	set_child(GRAPH(1));
	cr_assert_eq(unjudged(), 3);
}
