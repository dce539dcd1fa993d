/*
 * A kernel node whose parameters say that it stores through its output, in a packed block; then new ones that say that
 * it stores through a table.
 *
 * expect log exit 0 "cuconst: violation: cuGraphLaunch wrote 1 byte of read-only 'p'"
 * expect deny exit 0 "cuconst: violation: cuGraphLaunch wrote 1 byte of read-only 'p'"
 * expect strict exit 86 "cuconst: stopped: cuGraphLaunch wrote 1 byte of read-only 'p'"
 */
#include <stddef.h>

#include "batched.h"

int main(void)
{
	start();
	CUgraph graph;
	CUgraphNode node;
	CUgraphExec exec;
	struct block {
		CUdeviceptr in, out, table;
		int mode;
	} block = {p, q, table_of(p + 64), 0};
	size_t size = offsetof(struct block, mode) + sizeof block.mode;
	void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &block, CU_LAUNCH_PARAM_BUFFER_SIZE, &size, CU_LAUNCH_PARAM_END};
	CUDA_KERNEL_NODE_PARAMS params = kernel_node(batched(), 1, NULL);
	params.extra = extra;
	protect(p, SIZE, "p");
	CHECK(cuGraphCreate(&graph, 0));
	CHECK(cuGraphAddKernelNode(&node, graph, NULL, 0, &params));
	CHECK(cuGraphInstantiate(&exec, graph, 0));
	for (int i = 0; i < 3; i++)
		CHECK(cuGraphLaunch(exec, stream));
	CHECK(cuStreamSynchronize(stream));
	EXPECT(byte_at(q) == 2);
	expect_clean(3);
	block.mode = 1;
	CHECK(cuGraphExecKernelNodeSetParams(exec, node, &params));
	CHECK(cuGraphLaunch(exec, stream));
	CHECK(cuStreamSynchronize(stream));
	EXPECT(byte_at(p + 64) == 2);
	return 0;
}
