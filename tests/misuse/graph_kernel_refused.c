/*
 * Kernel nodes that would write into a range, by each way into a graph. deny refuses each, and the graph goes on as it
 * was.
 *
 * expect deny exit 0 "cuconst: denied: kernel fill (cuGraphAddKernelNode_v2, argument 0) would write read-only 'p'"
 * expect log exit 0 ""
 * expect strict exit 0 ""
 */
#include "misuse.h"

static CUgraphNode node;
static CUgraphExec exec;

static void replay(int value)
{
	CHECK(cuMemsetD8(q, 3, SIZE));
	CHECK(cuCtxSynchronize()); /* the stream does not wait for it */
	CHECK(cuGraphLaunch(exec, stream));
	CHECK(cuStreamSynchronize(stream));
	EXPECT(byte_at(q) == value);
	EXPECT(byte_at(p) == 1);
}

int main(void)
{
	start();
	CUgraph graph, other, child;
	CUgraphNode added;
	CUgraphExecUpdateResultInfo info;
	int value = 7, count = COUNT;
	void *args[] = {&q, &value, &count}, *guilty[] = {&p, &value, &count};
	CUDA_KERNEL_NODE_PARAMS params = kernel_node(kernel("fill"), COUNT, args);
	CUgraphNodeParams generic = {.type = CU_GRAPH_NODE_TYPE_KERNEL,
	                             .kernel = {.func = params.func,
	                                        .gridDimX = COUNT / 256,
	                                        .gridDimY = 1,
	                                        .gridDimZ = 1,
	                                        .blockDimX = 256,
	                                        .blockDimY = 1,
	                                        .blockDimZ = 1,
	                                        .kernelParams = guilty}};
	CHECK(cuGraphCreate(&other, 0));
	params.kernelParams = guilty;
	CHECK(cuGraphAddKernelNode(&added, other, NULL, 0, &params)); /* nothing is protected yet */
	params.kernelParams = args;
	CHECK(cuGraphCreate(&graph, 0));
	CHECK(cuGraphAddKernelNode(&node, graph, NULL, 0, &params));
	CHECK(cuGraphInstantiate(&exec, graph, 0));
	protect(p, SIZE, "p");
	replay(7);

	const char *mode = getenv("MISUSE_MODE");
	if (!mode || strcmp(mode, "deny") != 0)
		return 0;
	params.kernelParams = guilty;
	EXPECT(refused(cuGraphAddKernelNode(&added, graph, NULL, 0, &params)));
	EXPECT(refused(cuGraphAddNode(&added, graph, NULL, NULL, 0, &generic)));
	EXPECT(refused(cuGraphKernelNodeSetParams(node, &params)));
	EXPECT(refused(cuGraphNodeSetParams(node, &generic)));
	EXPECT(refused(cuGraphExecKernelNodeSetParams(exec, node, &params)));
	EXPECT(refused(cuGraphExecNodeSetParams(exec, node, &generic)));
	memset(&info, 0x55, sizeof info);
	EXPECT(refused(cuGraphExecUpdate(exec, other, &info)));
	EXPECT(info.result == CU_GRAPH_EXEC_UPDATE_ERROR && !info.errorNode && !info.errorFromNode);
	replay(7);

	/*
	 * The graph itself was not touched either: it makes the same executable as before, and edits that harm nobody
	 * go on.
	 */
	CHECK(cuGraphExecDestroy(exec));
	CHECK(cuGraphInstantiate(&exec, graph, 0));
	replay(7);
	value = 9;
	params.kernelParams = args;
	CHECK(cuGraphExecKernelNodeSetParams(exec, node, &params));
	replay(9);

	/* As part of another graph it is refused when that is launched, whole. */
	CHECK(cuGraphCreate(&child, 0));
	CHECK(cuGraphAddChildGraphNode(&added, child, NULL, 0, other));
	CHECK(cuGraphExecDestroy(exec));
	CHECK(cuGraphInstantiate(&exec, child, 0));
	EXPECT(refused(cuGraphLaunch(exec, stream)));
	expect_unharmed(p, 1);
	return 0;
}
