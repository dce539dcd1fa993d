/*
 * New parameters for a kernel node of the executable graph.
 *
 * expect log exit 0 "cuconst: violation: cuGraphLaunch wrote 4096 bytes of read-only 'p'"
 * expect deny exit 0 "cuconst: denied: kernel fill (cuGraphExecKernelNodeSetParams_v2, argument 0) would write read-only 'p'"
 * expect strict exit 86 "cuconst: stopped: cuGraphLaunch wrote 4096 bytes of read-only 'p'"
 */
#include "misuse.h"

int main(void)
{
	start();
	CUgraph graph;
	CUgraphNode node;
	CUgraphExec exec;
	CHECK(cuGraphCreate(&graph, 0));
	int value = 7, count = COUNT;
	void *args[] = {&q, &value, &count};
	CUDA_KERNEL_NODE_PARAMS params = kernel_node(kernel("fill"), COUNT, args);
	CHECK(cuGraphAddKernelNode(&node, graph, NULL, 0, &params));
	CHECK(cuGraphInstantiate(&exec, graph, 0));
	protect(p, SIZE, "p");
	CHECK(cuGraphLaunch(exec, stream));
	args[0] = &p;
	EXPECT(refused(cuGraphExecKernelNodeSetParams(exec, node, &params)));
	CHECK(cuGraphLaunch(exec, stream));
	CHECK(cuStreamSynchronize(stream));
	EXPECT(byte_at(q) == 7); /* refused, the graph runs as it was */
	expect_unharmed(p, 1);
	return 0;
}
