/*
 * Lists that say they are longer than they are: the driver refuses each such call before it looks at the list, and so
 * nothing may read beyond its end.
 *
 * expect log exit 0 ""
 * expect deny exit 0 ""
 * expect strict exit 0 ""
 */
#include "misuse.h"

#include <dlfcn.h>
#include <sys/mman.h>

#define PAGE 4096

/* Room for `bytes` with nothing behind them. */
static void *at_the_edge(const void *content, size_t bytes)
{
	char *pages = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	EXPECT(pages != MAP_FAILED && !mprotect(pages + PAGE, PAGE, PROT_NONE));
	return memcpy(pages + PAGE - bytes, content, bytes);
}

static void memory_operations(void)
{
	CUstreamBatchMemOpParams op = {
		.writeValue = {.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32, .address = q, .value = 3}};
	CUstreamBatchMemOpParams *list = at_the_edge(&op, sizeof op);
	CUDA_BATCH_MEM_OP_NODE_PARAMS params = {.ctx = context, .count = 1, .paramArray = list};
	CUgraphNodeParams generic = {.type = CU_GRAPH_NODE_TYPE_BATCH_MEM_OP,
	                             .memOp = {.ctx = context, .count = 1u << 20, .paramArray = list}};
	CUgraph graph;
	CUgraphNode node;
	CUgraphExec exec;
	CHECK(cuGraphCreate(&graph, 0));
	CHECK(cuGraphAddBatchMemOpNode(&node, graph, NULL, 0, &params));
	CHECK(cuGraphInstantiate(&exec, graph, 0));
	params.count = 1u << 20;
	EXPECT(cuStreamBatchMemOp(stream, 1u << 20, list, 0) == CUDA_ERROR_INVALID_VALUE);
	EXPECT(cuStreamBatchMemOp(stream, UINT32_MAX, list, 0) == CUDA_ERROR_INVALID_VALUE);
	EXPECT(cuGraphExecBatchMemOpNodeSetParams(exec, node, &params) == CUDA_ERROR_INVALID_VALUE);
	EXPECT(cuGraphExecNodeSetParams(exec, node, &generic) == CUDA_ERROR_INVALID_VALUE);
	/* And the graph is as it was. */
	CHECK(cuGraphLaunch(exec, stream));
	CHECK(cuStreamSynchronize(stream));
	EXPECT(byte_at(q) == 3);
}

/* What a real driver does with these is its own business; the software one looks at the attributes first. */
static void batches(void)
{
	size_t bytes = 4;
	CUdeviceptr *list = at_the_edge(&q, sizeof q);
	size_t *sizes = at_the_edge(&bytes, sizeof bytes);
	CUDA_MEMCPY3D_BATCH_OP op = {.dst = {.type = CU_MEMCPY_OPERAND_TYPE_POINTER}}, *ops = at_the_edge(&op, sizeof op);
	EXPECT(cuMemcpyBatchAsync(list, list, sizes, (size_t)1 << 40, NULL, NULL, 0, stream) != CUDA_SUCCESS);
	EXPECT(cuMemcpyBatchAsync(list, list, sizes, SIZE_MAX, NULL, NULL, 0, stream) != CUDA_SUCCESS);
	EXPECT(cuMemcpyBatchAsync(NULL, list, sizes, 1, NULL, NULL, 0, stream) != CUDA_SUCCESS);
	EXPECT(cuMemcpy3DBatchAsync((size_t)1 << 40, ops, 7, stream) != CUDA_SUCCESS);
}

int main(void)
{
	start();
	protect(p, SIZE, "p");
	memory_operations();
	if (dlsym(RTLD_DEFAULT, "softgpu_calls"))
		batches();
	return 0;
}
