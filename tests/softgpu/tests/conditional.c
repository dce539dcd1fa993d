/* Conditional nodes: IF, ELSE, WHILE, SWITCH, nested; and what the driver provides to kernels: their heap. */
#include "tests/softgpu/tests/check.h"
#include "tests/softgpu/tests/kernels.h"

/*
 * count(n, handle, limit): ++*n, and sets the handle to *n < limit. set(handle, value). take(out, bytes, n): thread i
 * of a block of n takes `bytes` and keeps the address in out[i]; give(out, n) frees them; poke(at, value): *at = value.
 * Written as nvcc writes it.
 */
static const char text[] =
	".version 8.8\n.target sm_90\n.address_size 64\n"
	".extern .func cudaGraphSetConditional(.param .b64 h, .param .b32 v);\n"
	".extern .func (.param .b64 func_retval0) malloc(.param .b64 malloc_param_0);\n"
	".extern .func free(.param .b64 free_param_0);\n"
	".visible .entry count(.param .u64 n, .param .u64 handle, .param .u32 limit)\n{\n"
	"	.reg .pred %p<2>;\n	.reg .b32 %r<5>;\n	.reg .b64 %rd<4>;\n"
	"	ld.param.u64 %rd1, [n];\n	ld.param.u64 %rd2, [handle];\n	ld.param.u32 %r1, [limit];\n"
	"	ld.global.u32 %r2, [%rd1];\n	add.u32 %r2, %r2, 1;\n	st.global.u32 [%rd1], %r2;\n"
	"	setp.lt.u32 %p1, %r2, %r1;\n	selp.u32 %r3, 1, 0, %p1;\n"
	"	{\n	.param .b64 param0;\n	st.param.b64 [param0+0], %rd2;\n	.param .b32 param1;\n	st.param.b32 [param1+0], %r3;\n"
	"	call.uni cudaGraphSetConditional, (param0, param1);\n	}\n	ret;\n}\n"
	".visible .entry set(.param .u64 handle, .param .u32 value)\n{\n	.reg .b32 %r<2>;\n	.reg .b64 %rd<2>;\n"
	"	ld.param.u64 %rd1, [handle];\n	ld.param.u32 %r1, [value];\n"
	"	{\n	.param .b64 param0;\n	st.param.b64 [param0+0], %rd1;\n	.param .b32 param1;\n	st.param.b32 [param1+0], %r1;\n"
	"	call.uni cudaGraphSetConditional, (param0, param1);\n	}\n	ret;\n}\n"
	".visible .entry take(.param .u64 out, .param .u64 bytes)\n{\n	.reg .pred %p<2>;\n	.reg .b32 %r<3>;\n	.reg .b64 %rd<6>;\n"
	"	ld.param.u64 %rd1, [out];\n	ld.param.u64 %rd2, [bytes];\n	mov.u32 %r1, %tid.x;\n"
	"	mul.wide.u32 %rd3, %r1, 8;\n	add.u64 %rd1, %rd1, %rd3;\n"
	"	{\n	.param .b64 param0;\n	st.param.b64 [param0+0], %rd2;\n	.param .b64 retval0;\n"
	"	call.uni (retval0), malloc, (param0);\n	ld.param.b64 %rd4, [retval0+0];\n	}\n"
	"	st.global.u64 [%rd1], %rd4;\n	setp.eq.u64 %p1, %rd4, 0;\n	@%p1 ret;\n	st.u32 [%rd4], %r1;\n	ret;\n}\n"
	".visible .entry give(.param .u64 out)\n{\n	.reg .b32 %r<2>;\n	.reg .b64 %rd<5>;\n"
	"	ld.param.u64 %rd1, [out];\n	mov.u32 %r1, %tid.x;\n	mul.wide.u32 %rd3, %r1, 8;\n	add.u64 %rd1, %rd1, %rd3;\n"
	"	ld.global.u64 %rd4, [%rd1];\n"
	"	{\n	.param .b64 param0;\n	st.param.b64 [param0+0], %rd4;\n	call.uni free, (param0);\n	}\n	ret;\n}\n"
	".visible .entry poke(.param .u64 at, .param .u32 value)\n{\n	.reg .b32 %r<2>;\n	.reg .b64 %rd<2>;\n"
	"	ld.param.u64 %rd1, [at];\n	ld.param.u32 %r1, [value];\n	st.global.u32 [%rd1], %r1;\n	ret;\n}\n";

static CUmodule module;

static CUfunction get(const char *name)
{
	CUfunction function = NULL;

	OK(cuModuleGetFunction(&function, module, name));
	return function;
}

static CUcontext current(void)
{
	CUcontext context = NULL;

	OK(cuCtxGetCurrent(&context));
	return context;
}

static void begin(void)
{
	enter(0);
	OK(cuModuleLoadData(&module, text));
}

static CUgraphNode add_kernel(CUgraph graph, const char *name, void **parameters, const CUgraphNode *after)
{
	CUDA_KERNEL_NODE_PARAMS kernel = {.func = get(name),
	                                  .gridDimX = 1,
	                                  .gridDimY = 1,
	                                  .gridDimZ = 1,
	                                  .blockDimX = 1,
	                                  .blockDimY = 1,
	                                  .blockDimZ = 1,
	                                  .kernelParams = parameters};
	CUgraphNode node = NULL;

	OK(cuGraphAddKernelNode(&node, graph, after, after != NULL, &kernel));
	return node;
}

static void add_set(CUgraph graph, CUdeviceptr to, unsigned value)
{
	CUDA_MEMSET_NODE_PARAMS params = {.dst = to, .elementSize = 4, .width = 1, .height = 1, .value = value};
	CUgraphNode node;
	CUcontext context;

	OK(cuCtxGetCurrent(&context));
	OK(cuGraphAddMemsetNode(&node, graph, NULL, 0, &params, context));
}

/* The node's bodies. */
static CUgraph *add_conditional(CUgraph graph, CUgraphConditionalHandle handle, CUgraphConditionalNodeType type,
                                unsigned size, const CUgraphNode *after, CUgraphNode *ret_node)
{
	CUgraphNodeParams params;
	CUgraphNode node = NULL;

	memset(&params, 0, sizeof(params));
	params.type = CU_GRAPH_NODE_TYPE_CONDITIONAL;
	params.conditional.handle = handle;
	params.conditional.type = type;
	params.conditional.size = size;
	OK(cuCtxGetCurrent(&params.conditional.ctx));
	OK(cuGraphAddNode(&node, graph, after, NULL, after != NULL, &params));
	CHECK(params.conditional.phGraph_out != NULL);
	if (ret_node != NULL)
		*ret_node = node;
	return params.conditional.phGraph_out;
}

static unsigned word(CUdeviceptr at)
{
	unsigned value = 0;

	OK(cuMemcpyDtoH(&value, at, 4));
	return value;
}

static void launch(CUgraphExec exec, CUresult wanted)
{
	OK(cuGraphLaunch(exec, NULL));
	STATUS(wanted, cuCtxSynchronize());
}

static void if_and_else(void)
{
	CUgraph graph;
	CUgraphExec exec;
	CUgraphConditionalHandle handle;
	CUgraphNodeType type;
	CUgraphNode node;
	CUdeviceptr out;
	unsigned value = 0;
	void *parameters[] = {&handle, &value};

	begin();
	OK(cuMemAlloc(&out, 8));
	OK(cuGraphCreate(&graph, 0));
	OK(cuGraphConditionalHandleCreate(&handle, graph, current(), 1, CU_GRAPH_COND_ASSIGN_DEFAULT));
	CUgraph *bodies = add_conditional(graph, handle, CU_GRAPH_COND_TYPE_IF, 2, NULL, &node);
	OK(cuGraphNodeGetType(node, &type));
	CHECK(type == CU_GRAPH_NODE_TYPE_CONDITIONAL);
	add_set(bodies[0], out, 11);
	add_set(bodies[1], out, 22);
	STATUS(CUDA_ERROR_INVALID_VALUE, cuGraphDestroy(bodies[0]));
	OK(cuGraphInstantiate(&exec, graph, 0));
	/* The default is assigned at each launch. */
	launch(exec, CUDA_SUCCESS);
	CHECK(word(out) == 11);
	OK(cuGraphExecDestroy(exec));
	/* A kernel before it decides otherwise. */
	CUgraphNode kernel = add_kernel(graph, "set", parameters, NULL);
	OK(cuGraphAddDependencies(graph, &kernel, &node, NULL, 1));
	OK(cuGraphInstantiate(&exec, graph, 0));
	launch(exec, CUDA_SUCCESS);
	CHECK(word(out) == 22);
	/* The exec outlives its graph, the handle too. */
	OK(cuGraphDestroy(graph));
	OK(cuMemsetD32(out, 0, 1));
	launch(exec, CUDA_SUCCESS);
	CHECK(word(out) == 22);
	OK(cuGraphExecDestroy(exec));
	/* The handle is gone with its last user: a kernel that keeps it fails. */
	OK(cuLaunchKernel(get("set"), 1, 1, 1, 1, 1, 1, 0, NULL, parameters, NULL));
	STATUS(CUDA_ERROR_LAUNCH_FAILED, cuCtxSynchronize());
	leave(0);
}

static void loop(void)
{
	CUgraph graph;
	CUgraphExec exec;
	CUgraphConditionalHandle handle;
	CUdeviceptr n;
	unsigned limit = 7;
	void *parameters[] = {&n, &handle, &limit};

	begin();
	OK(cuMemAlloc(&n, 4));
	OK(cuMemsetD32(n, 0, 1));
	OK(cuGraphCreate(&graph, 0));
	OK(cuGraphConditionalHandleCreate(&handle, graph, current(), 1, CU_GRAPH_COND_ASSIGN_DEFAULT));
	CUgraph *bodies = add_conditional(graph, handle, CU_GRAPH_COND_TYPE_WHILE, 1, NULL, NULL);
	add_kernel(bodies[0], "count", parameters, NULL);
	OK(cuGraphInstantiate(&exec, graph, 0));
	launch(exec, CUDA_SUCCESS);
	CHECK(word(n) == 7);
	/* Again: the body runs once at least, since the default is 1. */
	launch(exec, CUDA_SUCCESS);
	CHECK(word(n) == 8);
	/* A body's kernel that faults ends the loop and the context. */
	OK(cuGraphExecDestroy(exec));
	CUdeviceptr wild = 0x10;
	parameters[0] = &wild;
	add_kernel(bodies[0], "count", parameters, NULL);
	OK(cuGraphInstantiate(&exec, graph, 0));
	launch(exec, CUDA_ERROR_ILLEGAL_ADDRESS);
	leave(0);
}

static void switch_and_nested(void)
{
	CUgraph graph;
	CUgraphExec exec;
	CUgraphConditionalHandle outer, inner;
	CUdeviceptr out;
	unsigned value;
	void *parameters[] = {&outer, &value};

	begin();
	OK(cuMemAlloc(&out, 16));
	OK(cuGraphCreate(&graph, 0));
	OK(cuGraphConditionalHandleCreate(&outer, graph, current(), 0, 0));
	CUgraph *bodies = add_conditional(graph, outer, CU_GRAPH_COND_TYPE_SWITCH, 3, NULL, NULL);
	add_set(bodies[0], out, 1);
	add_set(bodies[1], out, 2);
	OK(cuGraphConditionalHandleCreate(&inner, bodies[2], current(), 1, CU_GRAPH_COND_ASSIGN_DEFAULT));
	CUgraph *deep = add_conditional(bodies[2], inner, CU_GRAPH_COND_TYPE_IF, 1, NULL, NULL);
	add_set(deep[0], out, 3);
	OK(cuGraphInstantiate(&exec, graph, 0));
	for (value = 0; value < 5; value++) {
		OK(cuMemsetD32(out, 0, 1));
		OK(cuLaunchKernel(get("set"), 1, 1, 1, 1, 1, 1, 0, NULL, parameters, NULL));
		launch(exec, CUDA_SUCCESS);
		CHECK(word(out) == (value < 3 ? value + 1 : 0));
	}
	OK(cuGraphExecDestroy(exec));
	OK(cuGraphDestroy(graph));
	leave(0);
}

/* An update carries the bodies' new parameters, not another shape. */
static void updates(void)
{
	CUgraph graphs[3];
	CUgraphExec exec;
	CUgraphConditionalHandle handle;
	CUgraphExecUpdateResultInfo result;
	CUdeviceptr out;

	begin();
	OK(cuMemAlloc(&out, 16));
	for (unsigned i = 0; i < 3; i++) {
		OK(cuGraphCreate(&graphs[i], 0));
		OK(cuGraphConditionalHandleCreate(&handle, graphs[i], current(), 1, CU_GRAPH_COND_ASSIGN_DEFAULT));
		CUgraph *bodies = add_conditional(graphs[i], handle, CU_GRAPH_COND_TYPE_IF, 1, NULL, NULL);
		add_set(bodies[0], out, 1 + i);
		if (i == 2)
			add_set(bodies[0], out + 4, 9);
	}
	OK(cuGraphInstantiate(&exec, graphs[0], 0));
	OK(cuGraphExecUpdate(exec, graphs[1], &result));
	launch(exec, CUDA_SUCCESS);
	CHECK(word(out) == 2);
	STATUS(CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE, cuGraphExecUpdate(exec, graphs[2], &result));
	CHECK(result.result == CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED);
	leave(0);
}

static CUresult try_add(CUgraph graph, CUgraphConditionalHandle handle, unsigned type, unsigned size)
{
	CUgraphNodeParams params;
	CUgraphNode node;

	memset(&params, 0, sizeof(params));
	params.type = CU_GRAPH_NODE_TYPE_CONDITIONAL;
	params.conditional.handle = handle;
	params.conditional.type = (CUgraphConditionalNodeType)type;
	params.conditional.size = size;
	return cuGraphAddNode(&node, graph, NULL, NULL, 0, &params);
}

static void refused(void)
{
	CUgraph graph, other, clone;
	CUgraphExec exec;
	CUgraphNode node;
	CUgraphConditionalHandle handle, foreign;
	CUDA_HOST_NODE_PARAMS host = {(CUhostFn)(uintptr_t)abort, NULL};

	begin();
	OK(cuGraphCreate(&graph, 0));
	OK(cuGraphCreate(&other, 0));
	STATUS(CUDA_ERROR_INVALID_VALUE, cuGraphConditionalHandleCreate(NULL, graph, current(), 0, 0));
	STATUS(CUDA_ERROR_INVALID_VALUE, cuGraphConditionalHandleCreate(&handle, NULL, current(), 0, 0));
	STATUS(CUDA_ERROR_INVALID_CONTEXT, cuGraphConditionalHandleCreate(&handle, graph, NULL, 0, 0));
	STATUS(CUDA_ERROR_INVALID_VALUE, cuGraphConditionalHandleCreate(&handle, graph, current(), 0, 2));
	OK(cuGraphConditionalHandleCreate(&handle, graph, current(), 0, 0));
	OK(cuGraphConditionalHandleCreate(&foreign, other, current(), 0, 0));
	STATUS(CUDA_ERROR_INVALID_VALUE, try_add(graph, 0x1234, CU_GRAPH_COND_TYPE_IF, 1));
	STATUS(CUDA_ERROR_INVALID_VALUE, try_add(graph, foreign, CU_GRAPH_COND_TYPE_IF, 1));
	STATUS(CUDA_ERROR_INVALID_VALUE, try_add(graph, handle, CU_GRAPH_COND_TYPE_IF, 0));
	STATUS(CUDA_ERROR_INVALID_VALUE, try_add(graph, handle, CU_GRAPH_COND_TYPE_IF, 3));
	STATUS(CUDA_ERROR_INVALID_VALUE, try_add(graph, handle, CU_GRAPH_COND_TYPE_WHILE, 2));
	STATUS(CUDA_ERROR_INVALID_VALUE, try_add(graph, handle, 3, 1));
	CUgraph *bodies = add_conditional(graph, handle, CU_GRAPH_COND_TYPE_SWITCH, 5, NULL, NULL);
	STATUS(CUDA_ERROR_INVALID_VALUE, try_add(graph, handle, CU_GRAPH_COND_TYPE_IF, 1));
	STATUS(CUDA_ERROR_NOT_SUPPORTED, cuGraphClone(&clone, graph));
	STATUS(CUDA_ERROR_NOT_SUPPORTED, cuGraphAddChildGraphNode(&node, other, NULL, 0, graph));
	/* A host function has no place in a body. */
	OK(cuGraphAddHostNode(&node, bodies[4], NULL, 0, &host));
	STATUS(CUDA_ERROR_NOT_SUPPORTED, cuGraphInstantiate(&exec, graph, 0));
	OK(cuGraphDestroyNode(node));
	OK(cuGraphInstantiate(&exec, graph, 0));
	launch(exec, CUDA_SUCCESS);
	leave(0);
}

/* Kernels' malloc: each thread its own, not to be touched by calls, until some kernel frees it or the context ends. */
static void heap(void)
{
	CUdeviceptr out, back[64], first;
	unsigned value = 5;
	uint64_t bytes = 1000;
	size_t limit = 0, base_bytes;
	void *take[] = {&out, &bytes}, *give[] = {&out}, *poke[] = {&first, &value};

	begin();
	OK(cuMemAlloc(&out, sizeof(back)));
	OK(cuLaunchKernel(get("take"), 1, 1, 1, 64, 1, 1, 0, NULL, take, NULL));
	OK(cuMemcpyDtoH(back, out, sizeof(back)));
	for (int i = 0; i < 64; i++)
		for (int j = 0; j < i; j++)
			CHECK(back[i] != 0 && back[i] % 16 == 0 &&
			      (back[i] >= back[j] + bytes || back[j] >= back[i] + bytes));
	first = back[0];
	OK(cuLaunchKernel(get("poke"), 1, 1, 1, 1, 1, 1, 0, NULL, poke, NULL));
	OK(cuCtxSynchronize());
	STATUS(CUDA_ERROR_INVALID_VALUE, cuMemcpyDtoH(&value, first, 4));
	STATUS(CUDA_ERROR_INVALID_VALUE, cuMemsetD8(first, 0, 4));
	STATUS(CUDA_ERROR_INVALID_VALUE, cuMemFree(first));
	STATUS(CUDA_ERROR_NOT_FOUND, cuMemGetAddressRange(&first, &base_bytes, back[0]));
	OK(cuLaunchKernel(get("give"), 1, 1, 1, 64, 1, 1, 0, NULL, give, NULL));
	OK(cuCtxSynchronize());
	/* More than the heap has: NULL, and all of it can be had again later. */
	OK(cuCtxGetLimit(&limit, CU_LIMIT_MALLOC_HEAP_SIZE));
	bytes = limit;
	OK(cuLaunchKernel(get("take"), 1, 1, 1, 2, 1, 1, 0, NULL, take, NULL));
	OK(cuMemcpyDtoH(back, out, 16));
	CHECK((back[0] != 0) + (back[1] != 0) == 1);
	OK(cuLaunchKernel(get("give"), 1, 1, 1, 2, 1, 1, 0, NULL, give, NULL)); /* NULL may be freed */
	OK(cuCtxSynchronize());
	/* Twice, used after it, and what was never given. */
	OK(cuLaunchKernel(get("give"), 1, 1, 1, 2, 1, 1, 0, NULL, give, NULL));
	STATUS(CUDA_ERROR_ILLEGAL_ADDRESS, cuCtxSynchronize());
	leave(0);
	begin();
	bytes = 8;
	OK(cuMemAlloc(&out, sizeof(back)));
	OK(cuLaunchKernel(get("take"), 1, 1, 1, 1, 1, 1, 0, NULL, take, NULL));
	OK(cuMemcpyDtoH(&first, out, 8));
	OK(cuLaunchKernel(get("give"), 1, 1, 1, 1, 1, 1, 0, NULL, give, NULL));
	OK(cuLaunchKernel(get("poke"), 1, 1, 1, 1, 1, 1, 0, NULL, poke, NULL));
	STATUS(CUDA_ERROR_ILLEGAL_ADDRESS, cuCtxSynchronize());
	leave(0);
}

MAIN(T(if_and_else), T(loop), T(switch_and_nested), T(updates), T(refused), T(heap))
