/*
 * Twelve graphs store beside a range, each a kernel of its own; the last one to be launched runs over, at a launch that is not checked. More than eight are not named, but the last is the
 * first of these (test_misuse.py reads them).
 *
 * expect log exit 0 "cuconst: violation: an unknown writer wrote 2048 bytes of read-only 'behind', found by cuconst_unprotect"
 * expect deny exit 0 "cuconst: violation: an unknown writer wrote 2048 bytes of read-only 'behind', found by cuconst_unprotect"
 * expect strict exit 86 "cuconst: stopped: an unknown writer wrote 2048 bytes of read-only 'behind', found by cuconst_unprotect"
 */
#include "misuse.h"

#define GRAPHS 12
#define ROUNDS 4 /* the 1st, 2nd and 4th launch are checked */

static CUgraphExec filling(CUfunction function, CUdeviceptr at, int count)
{
	int value = 7;
	void *params[] = {&at, &value, &count};
	CUDA_KERNEL_NODE_PARAMS node = kernel_node(function, COUNT, params);
	CUgraph graph;
	CUgraphNode added;
	CUgraphExec made;
	CHECK(cuGraphCreate(&graph, 0));
	CHECK(cuGraphAddKernelNode(&added, graph, NULL, 0, &node));
	CHECK(cuGraphInstantiate(&made, graph, 0));
	CHECK(cuGraphDestroy(graph));
	return made;
}

/* The same kernel, from a module of its own. */
static CUfunction another_fill(void)
{
	CUmodule loaded;
	CUfunction function;
	CHECK(cuModuleLoad(&loaded, getenv("MISUSE_PTX")));
	CHECK(cuModuleGetFunction(&function, loaded, "fill"));
	return function;
}

int main(void)
{
	CUgraphExec graphs[GRAPHS];
	CUfunction last = NULL;
	start();
	for (int i = 0; i < GRAPHS; i++) {
		last = another_fill();
		graphs[i] = filling(last, p, 100);
	}
	cuconst_handle handle = protect(p + 2048, 2048, "behind");
	for (int round = 0; round < ROUNDS; round++)
		for (int i = 0; i < GRAPHS; i++)
			CHECK(cuGraphLaunch(graphs[i], stream));
	for (int i = 0; i + 1 < GRAPHS; i++)
		CHECK(cuGraphLaunch(graphs[i], stream));
	CHECK(cuGraphLaunch(filling(last, p + 4, COUNT - 1), stream));
	CHECK(cuStreamSynchronize(stream));
	EXPECT(cuconst_unprotect(handle) == CUCONST_ERROR_CHANGED);
	return 0;
}
