/* Stream capture: what may be captured, what ends a capture, and how. */
#include "tests/softgpu/conformance/conformance.h"

static CUstream capturing(CUstreamCaptureMode mode)
{
	CUstream s;

	NEED(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	NEED(cuStreamBeginCapture(s, mode));
	return s;
}

static void end(const char *question, CUstream s)
{
	CUgraph graph = NULL;

	answer_status(question, cuStreamEndCapture(s, &graph));
	if (graph != NULL)
		cuGraphDestroy(graph);
}

static void begin_and_end(void)
{
	CUstream s;
	CUgraph graph = NULL;
	CUstreamCaptureStatus status = (CUstreamCaptureStatus)77;
	cuuint64_t id = 0;
	size_t nodes = 77, dependencies = 77;
	const CUgraphNode *list = NULL;
	CUgraph inside = NULL;
	const CUgraphEdgeData *edges = NULL;

	NEED(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	CUdeviceptr memory = device_memory(64);
	kernels();
	answer_status("begin_null_stream", cuStreamBeginCapture(NULL, CU_STREAM_CAPTURE_MODE_GLOBAL));
	answer_status("begin_legacy", cuStreamBeginCapture(CU_STREAM_LEGACY, CU_STREAM_CAPTURE_MODE_GLOBAL));
	answer_status("begin_mode", cuStreamBeginCapture(s, (CUstreamCaptureMode)77));
	answer_status("end_not_capturing", cuStreamEndCapture(s, &graph));
	answer_status("is_not_capturing", cuStreamIsCapturing(s, &status));
	answer_number("is_not_capturing_value", status);
	answer_status("begin", cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
	answer_status("is_capturing", cuStreamIsCapturing(s, &status));
	answer_number("is_capturing_value", status);
	answer_status("launch", launch_store(s, memory, 5));
	answer_status("set", cuMemsetD8Async(memory, 1, 64, s));
	answer_status("info", cuStreamGetCaptureInfo(s, &status, &id, &inside, &list, &edges, &dependencies));
	answer_number("info_status", status);
	answer_yes("info_graph", inside != NULL);
	answer_number("info_dependencies", (long long)dependencies);
	answer_yes("info_edges_null", edges == NULL);
	answer_status("end", cuStreamEndCapture(s, &graph));
	answer_status("nodes", cuGraphGetNodes(graph, NULL, &nodes));
	answer_number("nodes_count", (long long)nodes);
	answer_number("nothing_ran", word_at(memory));
	answer_status("empty_begin", cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_RELAXED));
	answer_status("empty_end", cuStreamEndCapture(s, &graph));
	answer_yes("empty_graph", graph != NULL);
	NEED(cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_RELAXED));
	answer_status("begin_twice", cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_RELAXED));
	end("end_after_begin_twice", s);
	NEED(cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_RELAXED));
	answer_status("end_null", cuStreamEndCapture(s, NULL));
	answer_status("still_capturing", cuStreamIsCapturing(s, &status));
	answer_number("still_capturing_value", status);
	end("end_after_null", s);
}

/* Each forbidden call in a capture of its own, and how that capture then ends. */
static void forbidden(CUstreamCaptureMode mode, const char *prefix)
{
	CUdeviceptr memory = device_memory(64), other;
	uint32_t word = 0;
	char question[96];
	void *host;
	CUevent event, recorded;
	CUstream another;
	CUmodule module;

	NEED(cuEventCreate(&event, 0));
	NEED(cuEventCreate(&recorded, 0));
	NEED(cuEventRecord(recorded, NULL));
	NEED(cuCtxSynchronize());
	kernels();
	for (int i = 0; i < 16; i++) {
		CUstream s = capturing(mode);
		const char *what = NULL;
		CUresult status = CUDA_SUCCESS;

		switch (i) {
		case 0:
			what = "alloc", status = cuMemAlloc(&other, 64);
			break;
		case 1:
			what = "free", status = cuMemFree(0);
			break;
		case 2:
			what = "host_alloc", status = cuMemHostAlloc(&host, 64, 0);
			break;
		case 3:
			what = "copy", status = cuMemcpyHtoD(memory, &word, 4);
			break;
		case 4:
			what = "copy_back", status = cuMemcpyDtoH(&word, memory, 4);
			break;
		case 5:
			what = "set", status = cuMemsetD8(memory, 0, 4);
			break;
		case 6:
			what = "synchronize_context", status = cuCtxSynchronize();
			break;
		case 7:
			what = "synchronize_itself", status = cuStreamSynchronize(s);
			break;
		case 8:
			what = "query_itself", status = cuStreamQuery(s);
			break;
		case 9:
			what = "set_on_null_stream", status = cuMemsetD8Async(memory, 0, 4, NULL);
			break;
		case 10:
			what = "query_event", status = cuEventQuery(recorded);
			break;
		case 11:
			what = "synchronize_event", status = cuEventSynchronize(recorded);
			break;
		case 12:
			what = "stream_create", status = cuStreamCreate(&another, 0);
			break;
		case 13:
			what = "module_load", status = cuModuleLoadData(&module, conformance_ptx);
			break;
		case 14:
			what = "context_limit", status = cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 2048);
			break;
		default:
			what = "copy_async_pageable";
			status = cuMemcpyHtoDAsync(memory, &word, 4, s);
			break;
		}
		snprintf(question, sizeof(question), "%s.%s", prefix, what);
		answer_status(question, status);
		snprintf(question, sizeof(question), "%s.%s_end", prefix, what);
		end(question, s);
		cuStreamDestroy(s);
	}
}

static void forbidden_global(void)
{
	forbidden(CU_STREAM_CAPTURE_MODE_GLOBAL, "global");
}

static void forbidden_thread(void)
{
	forbidden(CU_STREAM_CAPTURE_MODE_THREAD_LOCAL, "thread");
}

static void forbidden_relaxed(void)
{
	forbidden(CU_STREAM_CAPTURE_MODE_RELAXED, "relaxed");
}

static void forks(void)
{
	CUstream s = capturing(CU_STREAM_CAPTURE_MODE_GLOBAL), t, blocking;
	CUevent fork, join, before;
	CUdeviceptr memory;
	CUgraph graph = NULL;
	CUstreamCaptureStatus status = (CUstreamCaptureStatus)77;
	float ms;

	NEED(cuStreamEndCapture(s, &graph));
	memory = device_memory(64);
	NEED(cuStreamCreate(&t, CU_STREAM_NON_BLOCKING));
	NEED(cuStreamCreate(&blocking, 0));
	NEED(cuEventCreate(&fork, 0));
	NEED(cuEventCreate(&join, 0));
	NEED(cuEventCreate(&before, 0));
	NEED(cuEventRecord(before, t));
	NEED(cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
	answer_status("fork_record", cuEventRecord(fork, s));
	answer_status("captured_event_query", cuEventQuery(fork));
	answer_status("captured_event_query_end", cuStreamEndCapture(s, &graph));
	NEED(cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
	NEED(cuEventRecord(fork, s));
	answer_status("captured_event_synchronize", cuEventSynchronize(fork));
	answer_status("captured_event_elapsed", cuEventElapsedTime(&ms, fork, fork));
	end("captured_event_end", s);
	NEED(cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
	NEED(cuEventRecord(fork, s));
	answer_status("fork_wait", cuStreamWaitEvent(t, fork, 0));
	NEED(cuStreamIsCapturing(t, &status));
	answer_number("fork_is_capturing", status);
	answer_status("end_on_fork", cuStreamEndCapture(t, &graph));
	answer_status("end_after_end_on_fork", cuStreamEndCapture(s, &graph));
	NEED(cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
	NEED(cuEventRecord(fork, s));
	NEED(cuStreamWaitEvent(t, fork, 0));
	NEED(cuMemsetD8Async(memory, 1, 4, t));
	answer_status("end_unjoined", cuStreamEndCapture(s, &graph));
	answer_yes("end_unjoined_null", graph == NULL);
	NEED(cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
	NEED(cuEventRecord(fork, s));
	NEED(cuStreamWaitEvent(t, fork, 0));
	answer_status("end_fork_without_work", cuStreamEndCapture(s, &graph));
	NEED(cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
	NEED(cuEventRecord(fork, s));
	NEED(cuStreamWaitEvent(t, fork, 0));
	NEED(cuMemsetD8Async(memory, 1, 4, t));
	NEED(cuEventRecord(join, t));
	answer_status("join_wait", cuStreamWaitEvent(s, join, 0));
	answer_status("end_joined", cuStreamEndCapture(s, &graph));
	NEED(cuStreamIsCapturing(t, &status));
	answer_number("fork_after_end", status);
	answer_status("query_event_of_ended", cuEventQuery(fork));
	answer_status("wait_event_of_ended", cuStreamWaitEvent(t, fork, 0));
	NEED(cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
	answer_status("wait_event_from_before", cuStreamWaitEvent(s, before, 0));
	end("wait_event_from_before_end", s);
	NEED(cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
	answer_status("wait_external", cuStreamWaitEvent(s, before, CU_EVENT_WAIT_EXTERNAL));
	answer_status("record_external", cuEventRecordWithFlags(join, s, CU_EVENT_RECORD_EXTERNAL));
	end("external_end", s);
	NEED(cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
	NEED(cuStreamBeginCapture(t, CU_STREAM_CAPTURE_MODE_GLOBAL));
	NEED(cuEventRecord(fork, s));
	answer_status("wait_across_captures", cuStreamWaitEvent(t, fork, 0));
	end("across_end_one", s);
	end("across_end_two", t);
	/* A blocking stream that captures, and the legacy stream. */
	NEED(cuStreamBeginCapture(blocking, CU_STREAM_CAPTURE_MODE_RELAXED));
	answer_status("legacy_set", cuMemsetD8Async(memory, 1, 4, NULL));
	answer_status("legacy_is_capturing", cuStreamIsCapturing(NULL, &status));
	answer_status("legacy_query", cuStreamQuery(NULL));
	end("legacy_end", blocking);
	NEED(cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_RELAXED));
	answer_status("destroy_capturing", cuStreamDestroy(s));
	answer_status("synchronize", cuCtxSynchronize());
}

static void nothing(void *unused)
{
	(void)unused;
}

static void on_stream(CUstream stream, CUresult status, void *unused)
{
	(void)stream;
	(void)status;
	(void)unused;
}

static void allowed(void)
{
	CUstream s = capturing(CU_STREAM_CAPTURE_MODE_GLOBAL);
	CUdeviceptr pooled = 0;
	CUgraph graph = NULL, child = NULL;
	CUgraphExec exec = NULL;
	CUgraphNode nodes[8];
	size_t count = 8;
	CUgraphNodeType type = (CUgraphNodeType)77;
	CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;

	NEED(cuStreamEndCapture(s, &graph));
	CUdeviceptr memory = device_memory(64);
	NEED(cuGraphCreate(&child, 0));
	NEED(cuGraphAddEmptyNode(&nodes[0], child, NULL, 0));
	NEED(cuGraphInstantiate(&exec, child, 0));
	NEED(cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
	answer_status("host_function", cuLaunchHostFunc(s, nothing, NULL));
	answer_status("write_value", cuStreamWriteValue32(s, memory, 1, 0));
	answer_status("graph_launch", cuGraphLaunch(exec, s));
	end("graph_launch_end", s);
	NEED(cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
	answer_status("graph_launch_alone", cuGraphLaunch(exec, s));
	graph = NULL;
	answer_status("graph_launch_alone_end", cuStreamEndCapture(s, &graph));
	count = 8;
	if (graph != NULL && cuGraphGetNodes(graph, nodes, &count) == CUDA_SUCCESS && count > 0)
		cuGraphNodeGetType(nodes[0], &type);
	answer_number("graph_launch_node_type", type);
	NEED(cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
	answer_status("pool_alloc", cuMemAllocAsync(&pooled, 4096, s));
	answer_status("pool_set", cuMemsetD8Async(pooled, 1, 4096, s));
	answer_status("pool_free", cuMemFreeAsync(pooled, s));
	graph = NULL;
	answer_status("pool_end", cuStreamEndCapture(s, &graph));
	count = 8;
	if (graph != NULL && cuGraphGetNodes(graph, nodes, &count) == CUDA_SUCCESS)
		answer_number("pool_nodes", (long long)count);
	if (graph != NULL)
		answer_status("pool_instantiate", cuGraphInstantiate(&exec, graph, 0));
	if (graph != NULL)
		answer_status("pool_launch", cuGraphLaunch(exec, s));
	answer_status("pool_synchronize", cuStreamSynchronize(s));
	NEED(cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
	answer_status("exchange_mode", cuThreadExchangeStreamCaptureMode(&mode));
	answer_number("exchange_mode_was", mode);
	answer_status("alloc_relaxed_thread", cuMemAlloc(&pooled, 64));
	cuThreadExchangeStreamCaptureMode(&mode);
	end("alloc_relaxed_thread_end", s);
	answer_status("callback_in_capture_begin", cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
	answer_status("callback_in_capture", cuStreamAddCallback(s, on_stream, NULL, 0));
	end("callback_in_capture_end", s);
}

static void to_graph(void)
{
	CUstream s;
	CUgraph graph, ended = NULL;
	CUgraphNode first;
	size_t count = 0;

	NEED(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	CUdeviceptr memory = device_memory(64);
	NEED(cuGraphCreate(&graph, 0));
	NEED(cuGraphAddEmptyNode(&first, graph, NULL, 0));
	answer_status("to_graph", cuStreamBeginCaptureToGraph(s, graph, &first, NULL, 1, CU_STREAM_CAPTURE_MODE_GLOBAL));
	answer_status("to_graph_set", cuMemsetD8Async(memory, 1, 4, s));
	answer_status("update_dependencies",
	              cuStreamUpdateCaptureDependencies(s, &first, NULL, 1, CU_STREAM_SET_CAPTURE_DEPENDENCIES));
	answer_status("update_flags", cuStreamUpdateCaptureDependencies(s, &first, NULL, 1, 77));
	answer_status("to_graph_end", cuStreamEndCapture(s, &ended));
	answer_yes("to_graph_same", ended == graph);
	NEED(cuGraphGetNodes(graph, NULL, &count));
	answer_number("to_graph_nodes", (long long)count);
	answer_status("update_not_capturing",
	              cuStreamUpdateCaptureDependencies(s, &first, NULL, 1, CU_STREAM_SET_CAPTURE_DEPENDENCIES));
	answer_status("to_no_graph", cuStreamBeginCaptureToGraph(s, NULL, NULL, NULL, 0, CU_STREAM_CAPTURE_MODE_GLOBAL));
}

static const struct topic topics[] = {
	{.name = "begin_and_end", .ask = begin_and_end},
	{.name = "forbidden_global", .ask = forbidden_global, .alone = true},
	{.name = "forbidden_thread", .ask = forbidden_thread, .alone = true},
	{.name = "forbidden_relaxed", .ask = forbidden_relaxed, .alone = true},
	{.name = "forks", .ask = forks, .alone = true},
	{.name = "allowed", .ask = allowed, .alone = true},
	{.name = "to_graph", .ask = to_graph, .alone = true},
	{.name = NULL},
};
const struct family capture_family = {.name = "capture", .topics = topics};
