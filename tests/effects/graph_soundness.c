/*
 * Random graphs, edited in every way that there is: graph_soundness FIRST COUNT. A few buffers are protected around
 * each launch, and the software GPU's write log says which of them it wrote. In deny a launch that was let through
 * wrote none of them, and one that was refused does write one when nothing is protected any more. In log all that have
 * changed are told of, and none where none was written.
 */
#include <dlfcn.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include <cuda.h>

#include "tests/effects/random_run.h"

#define BUFFERS 8
#define BYTES 1024u
#define GRAPHS 6
#define EXECS 6
#define NODES 64 /* of one graph, child graphs and bodies included */
#define STEPS 60

static const char kernels[] = ".version 7.0\n.target sm_75\n.address_size 64\n"
			      ".visible .entry store(.param .u64 out, .param .u64 in, .param .u32 value)\n{\n"
			      "	.reg .b64 %rd<5>;\n	.reg .b32 %r<3>;\n"
			      "	ld.param.u64 %rd1, [out];\n	cvta.to.global.u64 %rd2, %rd1;\n"
			      "	ld.param.u64 %rd3, [in];\n	cvta.to.global.u64 %rd4, %rd3;\n"
			      "	ld.param.u32 %r1, [value];\n	ld.global.u32 %r2, [%rd4];\n"
			      "	st.global.u32 [%rd2], %r1;\n	ret;\n}\n";

static CUcontext context;
static CUstream stream, other;
static CUevent forked, joined;
static CUfunction store;
static CUdeviceptr buffers[BUFFERS];
static bool deny;
static unsigned launches, refused, wrote, harmless, failures, pattern;
static CUgraph graphs[GRAPHS];
static CUgraphExec execs[EXECS];
static CUgraphNode known[EXECS][NODES]; /* what may be edited in each */
static size_t known_count[EXECS];

static void failed(const char *what, CUresult result)
{
	fprintf(stderr, "seed %" PRIu64 ", launch %u: %s (%d)\n", seed, launches, what, (int)result);
	failures++;
}

static CUdeviceptr some(void)
{
	return buffers[below(BUFFERS)];
}

/* One node's parameters, of any kind that writes. What they point to lasts until the next. */
static CUgraphNodeParams *random_params(CUgraphNodeType type)
{
	static CUgraphNodeParams params;
	static CUdeviceptr out, in;
	static unsigned value;
	static void *arguments[] = {&out, &in, &value};
	static CUstreamBatchMemOpParams operation;
	out = some();
	in = some();
	value = below(1000);
	memset(&params, 0, sizeof params);
	params.type = type;
	switch (type) {
	case CU_GRAPH_NODE_TYPE_KERNEL:
		params.kernel = (CUDA_KERNEL_NODE_PARAMS_v3){.func = store,
		                                             .gridDimX = 1,
		                                             .gridDimY = 1,
		                                             .gridDimZ = 1,
		                                             .blockDimX = 1,
		                                             .blockDimY = 1,
		                                             .blockDimZ = 1,
		                                             .kernelParams = arguments};
		break;
	case CU_GRAPH_NODE_TYPE_MEMCPY:
		params.memcpy.copyCtx = context;
		params.memcpy.copyParams = (CUDA_MEMCPY3D){.srcMemoryType = CU_MEMORYTYPE_DEVICE,
		                                           .srcDevice = in,
		                                           .dstMemoryType = CU_MEMORYTYPE_DEVICE,
		                                           .dstDevice = out,
		                                           .WidthInBytes = 16,
		                                           .Height = 1,
		                                           .Depth = 1};
		break;
	case CU_GRAPH_NODE_TYPE_MEMSET:
		params.memset = (CUDA_MEMSET_NODE_PARAMS_v2){
			.dst = out, .value = value, .elementSize = 4, .width = 4, .height = 1, .ctx = context};
		break;
	default:
		params.type = CU_GRAPH_NODE_TYPE_BATCH_MEM_OP;
		operation = (CUstreamBatchMemOpParams){
			.writeValue = {.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32, .address = out, .value = value}};
		params.memOp = (CUDA_BATCH_MEM_OP_NODE_PARAMS_v2){.ctx = context, .count = 1, .paramArray = &operation};
	}
	return &params;
}

static CUgraphNodeType random_type(void)
{
	static const CUgraphNodeType types[] = {CU_GRAPH_NODE_TYPE_KERNEL, CU_GRAPH_NODE_TYPE_MEMCPY,
	                                        CU_GRAPH_NODE_TYPE_MEMSET, CU_GRAPH_NODE_TYPE_BATCH_MEM_OP};
	return types[below(4)];
}

/* Up to two of the graph's nodes. */
static size_t dependencies(CUgraph graph, CUgraphNode *ret_nodes)
{
	CUgraphNode all[NODES];
	size_t count = NODES;
	CHECK(cuGraphGetNodes(graph, all, &count));
	if (!count)
		return 0;
	ret_nodes[0] = all[below((uint32_t)count)];
	ret_nodes[1] = all[below((uint32_t)count)];
	return ret_nodes[0] == ret_nodes[1] ? 1 : below(3);
}

static void add_old(CUgraph graph, const CUgraphNode *needs, size_t count, CUgraphNodeParams *params)
{
	CUgraphNode node;
	switch (params->type) {
	case CU_GRAPH_NODE_TYPE_KERNEL: {
		CUDA_KERNEL_NODE_PARAMS old = {.func = store,
		                               .gridDimX = 1,
		                               .gridDimY = 1,
		                               .gridDimZ = 1,
		                               .blockDimX = 1,
		                               .blockDimY = 1,
		                               .blockDimZ = 1,
		                               .kernelParams = params->kernel.kernelParams};
		CHECK(cuGraphAddKernelNode(&node, graph, needs, count, &old));
		break;
	}
	case CU_GRAPH_NODE_TYPE_MEMCPY:
		CHECK(cuGraphAddMemcpyNode(&node, graph, needs, count, &params->memcpy.copyParams, context));
		break;
	case CU_GRAPH_NODE_TYPE_MEMSET: {
		CUDA_MEMSET_NODE_PARAMS old = {.dst = params->memset.dst,
		                               .value = params->memset.value,
		                               .elementSize = 4,
		                               .width = 4,
		                               .height = 1};
		CHECK(cuGraphAddMemsetNode(&node, graph, needs, count, &old, context));
		break;
	}
	default: {
		CUDA_BATCH_MEM_OP_NODE_PARAMS old = {.ctx = context, .count = 1, .paramArray = params->memOp.paramArray};
		CHECK(cuGraphAddBatchMemOpNode(&node, graph, needs, count, &old));
	}
	}
}

static size_t node_count(CUgraph graph)
{
	size_t count = 0;
	CHECK(cuGraphGetNodes(graph, NULL, &count));
	return count;
}

static void add_node(CUgraph graph)
{
	CUgraphNode needs[2], node;
	size_t count = dependencies(graph, needs);
	CUgraphNodeParams *params = random_params(random_type());
	if (below(2))
		add_old(graph, needs, count, params);
	else
		CHECK(cuGraphAddNode(&node, graph, needs, NULL, count, params));
}

/* A body, and a condition that holds or not. deny refuses what may run, so there it does. */
static void add_conditional(CUgraph graph)
{
	CUgraphConditionalHandle handle;
	CUgraphNode needs[2], node;
	size_t count = dependencies(graph, needs);
	CHECK(cuGraphConditionalHandleCreate(&handle, graph, context, deny || below(2), CU_GRAPH_COND_ASSIGN_DEFAULT));
	CUgraphNodeParams params = {
		.type = CU_GRAPH_NODE_TYPE_CONDITIONAL,
		.conditional = {.handle = handle, .type = CU_GRAPH_COND_TYPE_IF, .size = 1, .ctx = context}};
	if (cuGraphAddNode(&node, graph, needs, NULL, count, &params) == CUDA_SUCCESS)
		for (unsigned i = below(3); i > 0; i--)
			add_node(params.conditional.phGraph_out[0]);
}

/* With a branch in another stream. */
static void capture(CUgraph *graph)
{
	CUdeviceptr out = some(), in = some();
	unsigned value = below(1000);
	void *arguments[] = {&out, &in, &value};
	if (*graph && below(2)) {
		CHECK(cuStreamBeginCaptureToGraph(stream, *graph, NULL, NULL, 0, CU_STREAM_CAPTURE_MODE_GLOBAL));
	} else {
		if (*graph)
			CHECK(cuGraphDestroy(*graph));
		CHECK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
	}
	CHECK(cuMemsetD32Async(some(), value, 4, stream));
	CHECK(cuEventRecord(forked, stream));
	CHECK(cuStreamWaitEvent(other, forked, 0));
	CHECK(cuLaunchKernel(store, 1, 1, 1, 1, 1, 1, 0, other, arguments, NULL));
	CHECK(cuMemcpyDtoDAsync(some(), some(), 16, stream));
	CHECK(cuStreamWriteValue32(stream, some(), value, 0));
	CHECK(cuEventRecord(joined, other));
	CHECK(cuStreamWaitEvent(stream, joined, 0));
	CHECK(cuStreamEndCapture(stream, graph));
}

/* All nodes of a graph that may be edited in what is made of it. */
static void collect(CUgraph graph, CUgraphNode *ret_nodes, size_t *count)
{
	CUgraphNode nodes[NODES];
	size_t all = NODES;
	CHECK(cuGraphGetNodes(graph, nodes, &all));
	for (size_t i = 0; i < all && *count < NODES; i++) {
		CUgraphNodeType type;
		CUgraph child;
		CHECK(cuGraphNodeGetType(nodes[i], &type));
		if (type == CU_GRAPH_NODE_TYPE_GRAPH && !cuGraphChildGraphNodeGetGraph(nodes[i], &child))
			collect(child, ret_nodes, count);
		if (*count < NODES)
			ret_nodes[(*count)++] = nodes[i];
	}
}

static void instantiate(size_t at, CUgraph graph)
{
	if (execs[at])
		CHECK(cuGraphExecDestroy(execs[at]));
	execs[at] = NULL;
	if (cuGraphInstantiate(&execs[at], graph, 0) != CUDA_SUCCESS) {
		execs[at] = NULL;
		return;
	}
	known_count[at] = 0;
	collect(graph, known[at], &known_count[at]);
}

/* Of a live graph: an executable's nodes may be gone with theirs. */
static bool node_lives(CUgraphNode node)
{
	CUgraphNode nodes[NODES];
	for (size_t i = 0; i < GRAPHS; i++) {
		size_t count = 0;
		if (graphs[i])
			collect(graphs[i], nodes, &count);
		for (size_t k = 0; k < count; k++)
			if (nodes[k] == node)
				return true;
	}
	return false;
}

/* The driver may refuse: a handle may have come again, in another graph. */
static void edit_exec(size_t at)
{
	CUgraphNodeType type;
	if (!execs[at] || !known_count[at])
		return;
	CUgraphNode node = known[at][below((uint32_t)known_count[at])];
	if (!node_lives(node) || cuGraphNodeGetType(node, &type) != CUDA_SUCCESS)
		return;
	CUgraphNodeParams *params = random_params(type);
	CUDA_MEMSET_NODE_PARAMS set = {
		.dst = params->memset.dst, .value = params->memset.value, .elementSize = 4, .width = 4, .height = 1};
	if (type == CU_GRAPH_NODE_TYPE_GRAPH)
		(void)cuGraphExecChildGraphNodeSetParams(execs[at], node, graphs[below(GRAPHS)]);
	else if (params->type != type)
		return;
	else if (type != CU_GRAPH_NODE_TYPE_BATCH_MEM_OP && below(3) == 0)
		(void)cuGraphNodeSetEnabled(execs[at], node, below(2));
	else if (type == CU_GRAPH_NODE_TYPE_MEMSET && below(2))
		(void)cuGraphExecMemsetNodeSetParams(execs[at], node, &set, context);
	else if (type == CU_GRAPH_NODE_TYPE_MEMCPY && below(2))
		(void)cuGraphExecMemcpyNodeSetParams(execs[at], node, &params->memcpy.copyParams, context);
	else
		(void)cuGraphExecNodeSetParams(execs[at], node, params);
}

static void edit_graph(CUgraph graph)
{
	CUgraphNode nodes[NODES];
	CUgraphNodeType type;
	size_t count = 0;
	collect(graph, nodes, &count);
	if (!count)
		return;
	CUgraphNode node = nodes[below((uint32_t)count)];
	CHECK(cuGraphNodeGetType(node, &type));
	CUgraphNodeParams *params = random_params(type);
	if (params->type == type)
		CHECK(cuGraphNodeSetParams(node, params));
	else if (below(4) == 0)
		(void)cuGraphDestroyNode(node);
}

static bool is_protected(uint32_t set, size_t buffer)
{
	return set >> buffer & 1;
}

static unsigned count_written(uint32_t set)
{
	unsigned count = 0;
	for (size_t i = 0; i < BUFFERS; i++)
		count += is_protected(set, i) && was_written(buffers[i], BYTES);
	return count;
}

/*
 * Whose bytes are other ones than before: copies and stores of what was there are told of where they are certain alone.
 */
static unsigned count_changed(uint32_t set, const unsigned *was)
{
	unsigned count = 0;
	for (size_t i = 0; i < BUFFERS; i++) {
		unsigned now[BYTES / 4], changed = 0;
		CHECK(cuMemcpyDtoH(now, buffers[i], BYTES));
		for (size_t k = 0; k < BYTES / 4; k++)
			changed |= now[k] != was[i];
		count += is_protected(set, i) && changed;
	}
	return count;
}

/* As it would have been, had nothing been protected. */
static void launch_again(CUgraphExec exec, uint32_t set)
{
	log_writes(true);
	CHECK(cuGraphLaunch(exec, stream));
	CHECK(cuStreamSynchronize(stream));
	if (!count_written(set))
		failed("refused, and writes nothing protected", 0);
	log_writes(false);
}

static void launch(CUgraphExec exec)
{
	uint32_t set = below(1u << BUFFERS);
	set &= below(1u << BUFFERS); /* few of them */
	cuconst_handle handles[BUFFERS] = {0};
	unsigned was[BUFFERS];
	for (size_t i = 0; i < BUFFERS; i++)
		CHECK(cuMemsetD32(buffers[i], was[i] = 0xa5000000u + pattern++, BYTES / 4));
	CHECK(cuCtxSynchronize());
	for (size_t i = 0; i < BUFFERS; i++)
		if (is_protected(set, i))
			CHECK(cuconst_protect(buffers[i], BYTES, "", 0, NULL, &handles[i]));
	uint64_t before = stats().violations;
	log_writes(true);
	CUresult result = cuGraphLaunch(exec, stream);
	CHECK(cuStreamSynchronize(stream));
	unsigned written = count_written(set), changed = count_changed(set, was);
	uint64_t told = stats().violations - before;
	/* Another thread may be in the middle of telling. */
	for (unsigned i = 0; !deny && told < changed && i < 2000; i++) {
		usleep(1000);
		told = stats().violations - before;
	}
	log_writes(false);
	launches++;
	if (deny && written)
		failed("a protected buffer was written", result);
	if (!deny && told < changed)
		failed("fewer were told of than were changed", result);
	if (!deny && !written && told)
		failed("told of a write that was none", result);
	for (size_t i = 0; i < BUFFERS; i++)
		if (handles[i])
			(void)cuconst_unprotect(handles[i]);
	refused += result == CUDA_ERROR_NOT_PERMITTED;
	wrote += written > 0;
	harmless += !written && result == CUDA_SUCCESS;
	if (result == CUDA_ERROR_NOT_PERMITTED && deny)
		launch_again(exec, set);
	else if (result != CUDA_SUCCESS)
		failed("no launch", result);
}

static void step(void)
{
	CUgraph *graph = &graphs[below(GRAPHS)], source = graphs[below(GRAPHS)], clone;
	CUgraphExecUpdateResultInfo info;
	CUgraphNode needs[2], node;
	size_t at = below(EXECS), count;
	if (!*graph)
		CHECK(cuGraphCreate(graph, 0));
	switch (below(14)) {
	case 0:
	case 1:
		if (node_count(*graph) < 12)
			add_node(*graph);
		break;
	case 2:
		if (node_count(*graph) < 12)
			add_conditional(*graph);
		break;
	case 3:
		count = dependencies(*graph, needs);
		if (source && source != *graph && node_count(*graph) < 12 && node_count(source) < 4)
			(void)cuGraphAddChildGraphNode(&node, *graph, needs, count, source);
		break;
	case 4:
		capture(graph);
		break;
	case 5:
	case 6:
		instantiate(at, *graph);
		break;
	case 7:
	case 8:
		edit_exec(at);
		break;
	case 9:
		edit_graph(*graph);
		break;
	case 10:
		if (execs[at])
			(void)cuGraphExecUpdate(execs[at], *graph, &info);
		break;
	case 11:
		if (below(3) == 0) {
			CHECK(cuGraphDestroy(*graph));
			*graph = NULL;
		} else if (execs[at] && cuGraphClone(&clone, *graph) == CUDA_SUCCESS) {
			(void)cuGraphExecUpdate(execs[at], clone, &info);
			CHECK(cuGraphDestroy(clone));
		}
		break;
	default:
		if (execs[at])
			launch(execs[at]);
	}
}

static void end_all(void)
{
	for (size_t i = 0; i < EXECS; i++)
		if (execs[i])
			CHECK(cuGraphExecDestroy(execs[i]));
	for (size_t i = 0; i < GRAPHS; i++)
		if (graphs[i])
			CHECK(cuGraphDestroy(graphs[i]));
	memset(execs, 0, sizeof execs);
	memset(graphs, 0, sizeof graphs);
}

static void start(void)
{
	CUdevice device;
	CUmodule module;
	const char *options = getenv("CUCONST_OPTIONS");
	deny = options && strstr(options, "mode=deny");
	log_writes = (__typeof__(log_writes))dlsym(RTLD_DEFAULT, "softgpu_log_writes");
	was_written = (__typeof__(was_written))dlsym(RTLD_DEFAULT, "softgpu_wrote");
	CHECK(!log_writes || !was_written);
	CHECK(cuInit(0));
	CHECK(cuDeviceGet(&device, 0));
	CHECK(cuDevicePrimaryCtxRetain(&context, device));
	CHECK(cuCtxSetCurrent(context));
	CHECK(cuModuleLoadData(&module, kernels));
	CHECK(cuModuleGetFunction(&store, module, "store"));
	CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	CHECK(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
	CHECK(cuEventCreate(&forked, CU_EVENT_DISABLE_TIMING));
	CHECK(cuEventCreate(&joined, CU_EVENT_DISABLE_TIMING));
	for (size_t i = 0; i < BUFFERS; i++)
		CHECK(cuMemAlloc(&buffers[i], BYTES));
}

int main(int argc, char **argv)
{
	uint64_t first = argc > 1 ? strtoull(argv[1], NULL, 10) : 1, count = argc > 2 ? strtoull(argv[2], NULL, 10) : 100;
	start();
	for (seed = first; seed < first + count && failures < 5; seed++) {
		random_state = seed * 0x9e3779b97f4a7c15u;
		for (unsigned i = 0; i < STEPS; i++)
			step();
		end_all();
	}
	printf("%u launches: %u refused, %u wrote, %u harmless; %u failures\n", launches, refused, wrote, harmless,
	       failures);
	return failures > 0 || !launches || !harmless || !(deny ? refused : wrote);
}
