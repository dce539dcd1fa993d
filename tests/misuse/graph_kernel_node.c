/*
 * A kernel node, instantiated before the range was protected.
 *
 * expect log exit 0 "cuconst: violation: cuGraphLaunch wrote 4096 bytes of read-only 'p'"
 * expect deny exit 0 "cuconst: denied: kernel fill (cuGraphLaunch, argument 0, kernel node) would write read-only 'p'"
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
	void *args[] = {&p, &value, &count};
	CUDA_KERNEL_NODE_PARAMS params = kernel_node(kernel("fill"), COUNT, args);
	CHECK(cuGraphAddKernelNode(&node, graph, NULL, 0, &params));
	CHECK(cuGraphInstantiate(&exec, graph, 0));
	protect(p, SIZE, "p");
	EXPECT(refused(cuGraphLaunch(exec, stream)));
	CHECK(cuStreamSynchronize(stream));
	expect_unharmed(p, 1);
	return 0;
}
