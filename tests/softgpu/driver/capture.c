#include "tests/softgpu/driver/capture.h"

#include <stdlib.h>
#include <string.h>

#include "tests/softgpu/driver/event.h"
#include "tests/softgpu/driver/graph.h"

/* One running capture: a graph that grows, the stream it began in, and those that joined it. */
struct sg_capture {
	uint64_t id;
	struct sg_graph *graph;
	bool own_graph; /* made for this capture: it goes if the capture fails */
	bool invalid;
	CUstreamCaptureMode mode;
	const struct sg_thread *thread; /* that began it */
	struct sg_stream *origin;
	struct sg_capture *next;
};

static struct sg_capture *captures;
static uint64_t ids = 1;

static struct sg_capture *capture_with(uint64_t id)
{
	struct sg_capture *capture = captures;

	while (id != 0 && capture != NULL && capture->id != id)
		capture = capture->next;
	return id != 0 ? capture : NULL;
}

CUresult sg_capture_unsafe(void)
{
	CUresult status = CUDA_SUCCESS;

	if (sg_thread.capture_mode == CU_STREAM_CAPTURE_MODE_RELAXED)
		return CUDA_SUCCESS;
	for (struct sg_capture *capture = captures; capture != NULL; capture = capture->next) {
		bool own = capture->thread == &sg_thread && capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED;
		bool any = capture->mode == CU_STREAM_CAPTURE_MODE_GLOBAL &&
		           sg_thread.capture_mode == CU_STREAM_CAPTURE_MODE_GLOBAL;
		if (own || any) {
			capture->invalid = true;
			status = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
		}
	}
	return status;
}

CUresult sg_capture_refuse(struct sg_stream *stream)
{
	stream->capture->invalid = true;
	return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
}

static struct sg_capture *blocking_capture(const struct sg_stream *legacy)
{
	for (struct sg_stream *stream = legacy->context->streams; stream != NULL; stream = stream->next)
		if (stream->capture != NULL && !(stream->flags & CU_STREAM_NON_BLOCKING))
			return stream->capture;
	return NULL;
}

CUresult sg_capture_implicit(struct sg_stream *legacy)
{
	struct sg_capture *capture = captures != NULL ? blocking_capture(legacy) : NULL;

	if (capture == NULL)
		return CUDA_SUCCESS;
	capture->invalid = true;
	return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
}

static bool set_tips(struct sg_node ***tips, size_t *count, struct sg_node *const *from, size_t from_count)
{
	struct sg_node **copy = malloc((from_count + 1) * sizeof(*copy));

	if (copy == NULL)
		return false;
	if (from_count > 0)
		memcpy(copy, from, from_count * sizeof(*copy));
	free(*tips);
	*tips = copy;
	*count = from_count;
	return true;
}

static bool add_tips(struct sg_stream *stream, struct sg_node *const *from, size_t count)
{
	struct sg_node **all = malloc((stream->tip_count + count + 1) * sizeof(*all));
	size_t have = 0;

	if (all == NULL)
		return false;
	for (size_t i = 0; i < stream->tip_count; i++)
		all[have++] = stream->tips[i];
	for (size_t i = 0; i < count; i++) {
		size_t before = 0;
		while (before < have && all[before] != from[i])
			before++;
		if (before == have)
			all[have++] = from[i];
	}
	free(stream->tips);
	stream->tips = all;
	stream->tip_count = have;
	return true;
}

CUresult sg_capture_add(struct sg_stream *stream, struct sg_op *op)
{
	struct sg_capture *capture = stream->capture;
	struct sg_node *node;

	if (capture->invalid) {
		sg_op_clear(op);
		return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
	}
	CUresult status = sg_graph_add(capture->graph, sg_node_type(op), op, stream->tips, stream->tip_count, &node);
	if (status == CUDA_SUCCESS && !set_tips(&stream->tips, &stream->tip_count, &node, 1))
		status = CUDA_ERROR_OUT_OF_MEMORY;
	if (status != CUDA_SUCCESS)
		capture->invalid = true;
	return status;
}

bool sg_capture_owns(const struct sg_event *event)
{
	return capture_with(event->capture_id) != NULL;
}

void sg_capture_invalidate(const struct sg_event *event)
{
	capture_with(event->capture_id)->invalid = true;
}

CUresult sg_capture_in_context(const struct sg_context *context)
{
	CUresult status = CUDA_SUCCESS;

	for (struct sg_stream *stream = captures != NULL ? context->streams : NULL; stream != NULL; stream = stream->next)
		if (stream->capture != NULL) {
			stream->capture->invalid = true;
			status = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
		}
	return status;
}

CUresult sg_capture_join(struct sg_stream *stream, struct sg_event *event)
{
	struct sg_capture *capture = capture_with(event->capture_id);

	if (capture->invalid)
		return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
	if (stream == stream->context->legacy) {
		capture->invalid = true;
		return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
	}
	if (stream->capture != NULL && stream->capture != capture) {
		stream->capture->invalid = capture->invalid = true;
		return CUDA_ERROR_STREAM_CAPTURE_MERGE;
	}
	stream->capture = capture;
	return add_tips(stream, event->tips, event->tip_count) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult sg_capture_record(struct sg_stream *stream, struct sg_event *event)
{
	if (stream->capture->invalid)
		return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
	if (!set_tips(&event->tips, &event->tip_count, stream->tips, stream->tip_count))
		return CUDA_ERROR_OUT_OF_MEMORY;
	event->capture_id = stream->capture->id;
	return CUDA_SUCCESS;
}

static void leave(struct sg_stream *stream)
{
	stream->capture = NULL;
	free(stream->tips);
	stream->tips = NULL;
	stream->tip_count = 0;
}

/* One step over every stream of every context, default ones included. */
struct walk {
	struct sg_capture *capture;
	const struct sg_node *node;
	const struct sg_stream *leaver;
	bool unjoined, covered;
	void (*step)(struct walk *walk, struct sg_stream *stream);
};

static void walk_context(void *handle, void *data)
{
	struct walk *walk = data;

	for (struct sg_stream *stream = ((struct sg_context *)handle)->streams; stream != NULL; stream = stream->next)
		if (stream->capture != NULL && (walk->capture == NULL || stream->capture == walk->capture))
			walk->step(walk, stream);
}

static void step_leave(struct walk *walk, struct sg_stream *stream)
{
	(void)walk;
	leave(stream);
}

/* Whatever another stream did last must lie before what the origin did last. */
static void step_joined(struct walk *walk, struct sg_stream *stream)
{
	const struct sg_stream *origin = walk->capture->origin;

	for (size_t i = 0; i < stream->tip_count; i++) {
		bool reached = false;
		for (size_t tip = 0; tip < origin->tip_count && !reached; tip++)
			reached = sg_node_reaches(origin->tips[tip], stream->tips[i]);
		walk->unjoined |= !reached;
	}
}

static void step_forget(struct walk *walk, struct sg_stream *stream)
{
	size_t kept = 0;

	for (size_t i = 0; i < stream->tip_count; i++)
		if (stream->tips[i] != walk->node)
			stream->tips[kept++] = stream->tips[i];
	stream->tip_count = kept;
}

static void forget_in_event(void *handle, void *data)
{
	struct sg_event *event = handle;
	size_t kept = 0;

	for (size_t i = 0; i < event->tip_count; i++)
		if (event->tips[i] != data)
			event->tips[kept++] = event->tips[i];
	event->tip_count = kept;
}

void sg_capture_forget(const struct sg_node *node)
{
	struct walk walk = {.node = node, .step = step_forget};

	if (captures == NULL)
		return;
	sg_each(SG_CONTEXT, walk_context, &walk);
	sg_each(SG_EVENT, forget_in_event, (void *)(uintptr_t)node);
}

/* Takes the capture down; its graph is the caller's. */
static struct sg_graph *finish(struct sg_capture *capture)
{
	struct walk walk = {.capture = capture, .step = step_leave};
	struct sg_capture **link = &captures;
	struct sg_graph *graph = capture->graph;

	sg_each(SG_CONTEXT, walk_context, &walk);
	while (*link != capture)
		link = &(*link)->next;
	*link = capture->next;
	graph->capture = NULL;
	free(capture);
	return graph;
}

/* Whether another stream of the capture has joined what this one did last. */
static void step_covers(struct walk *walk, struct sg_stream *stream)
{
	for (size_t i = 0; stream != walk->leaver && i < stream->tip_count; i++)
		walk->covered |= sg_node_reaches(stream->tips[i], walk->node);
}

static bool joined_elsewhere(struct sg_stream *stream)
{
	for (size_t i = 0; i < stream->tip_count; i++) {
		struct walk walk = {
			.capture = stream->capture, .node = stream->tips[i], .leaver = stream, .step = step_covers};
		sg_each(SG_CONTEXT, walk_context, &walk);
		if (!walk.covered)
			return false;
	}
	return true;
}

void sg_capture_abandon(struct sg_stream *stream)
{
	struct sg_capture *capture = stream->capture;

	/* A fork that was joined again has done its part. */
	if (capture->origin == stream || !joined_elsewhere(stream))
		capture->invalid = true;
	leave(stream);
	if (capture->origin == stream) {
		bool own = capture->own_graph;
		struct sg_graph *graph = finish(capture);
		if (own)
			sg_graph_free(graph);
	}
}

static CUresult begin(CUstream handle, struct sg_graph *graph, struct sg_node *const *needs, size_t count,
                      CUstreamCaptureMode mode)
{
	struct sg_stream *stream;

	if ((unsigned)mode > CU_STREAM_CAPTURE_MODE_RELAXED)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult status = sg_stream_of(handle, &stream);
	if (status != CUDA_SUCCESS)
		return status;
	if (stream == stream->context->legacy)
		return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
	if (stream->capture != NULL || (graph != NULL && graph->capture != NULL))
		return CUDA_ERROR_ILLEGAL_STATE;
	struct sg_capture *capture = calloc(1, sizeof(*capture));
	bool own = graph == NULL;
	if (own)
		graph = sg_graph_create();
	if (capture == NULL || graph == NULL || !set_tips(&stream->tips, &stream->tip_count, needs, count)) {
		free(capture);
		if (own && graph != NULL)
			sg_graph_free(graph);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	*capture = (struct sg_capture){ids++, graph, own, false, mode, &sg_thread, stream, captures};
	captures = capture;
	graph->capture = capture;
	stream->capture = capture;
	return CUDA_SUCCESS;
}

CUresult sg_cuStreamBeginCapture_v2(CUstream hStream, CUstreamCaptureMode mode)
{
	sg_lock();
	CUresult status = begin(hStream, NULL, NULL, 0, mode);
	sg_unlock();
	return status;
}

CUresult sg_cuStreamBeginCapture(CUstream hStream)
{
	return sg_cuStreamBeginCapture_v2(hStream, CU_STREAM_CAPTURE_MODE_GLOBAL);
}

CUresult sg_cuStreamBeginCaptureToGraph(CUstream hStream, CUgraph hGraph, const CUgraphNode *dependencies,
                                        const CUgraphEdgeData *dependencyData, size_t numDependencies,
                                        CUstreamCaptureMode mode)
{
	if (numDependencies > 0 && dependencies == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	if (dependencyData != NULL && numDependencies > 0)
		return CUDA_ERROR_NOT_SUPPORTED;
	sg_lock();
	struct sg_graph *graph = sg_graph_of(hGraph);
	CUresult status = graph != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; i < numDependencies && status == CUDA_SUCCESS; i++)
		if (sg_node_of(dependencies[i]) == NULL || sg_node_of(dependencies[i])->graph != graph)
			status = CUDA_ERROR_INVALID_VALUE;
	if (status == CUDA_SUCCESS)
		status = begin(hStream, graph, (struct sg_node *const *)dependencies, numDependencies, mode);
	sg_unlock();
	return status;
}

static CUresult end(struct sg_stream *stream, CUgraph *ret_graph)
{
	struct sg_capture *capture = stream->capture;
	struct walk walk = {.capture = capture, .step = step_joined};
	CUresult status = CUDA_SUCCESS;

	if (capture == NULL)
		return CUDA_ERROR_ILLEGAL_STATE;
	if (capture->origin != stream) {
		capture->invalid = true;
		return CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
	}
	if (capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED && capture->thread != &sg_thread)
		return CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
	sg_each(SG_CONTEXT, walk_context, &walk);
	if (capture->invalid)
		status = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
	else if (walk.unjoined)
		status = CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
	bool own = capture->own_graph;
	struct sg_graph *graph = finish(capture);
	if (status != CUDA_SUCCESS && own)
		sg_graph_free(graph);
	*ret_graph = status == CUDA_SUCCESS ? (CUgraph)graph : NULL;
	return status;
}

CUresult sg_cuStreamEndCapture(CUstream hStream, CUgraph *phGraph)
{
	struct sg_stream *stream;
	CUgraph unwanted = NULL;

	sg_lock();
	CUresult status = sg_stream_of(hStream, &stream);
	if (status == CUDA_SUCCESS)
		status = end(stream, phGraph != NULL ? phGraph : &unwanted);
	if (unwanted != NULL)
		sg_graph_free(sg_graph_of(unwanted));
	sg_unlock();
	return status;
}

CUresult sg_cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode)
{
	if (mode == NULL || (unsigned)*mode > CU_STREAM_CAPTURE_MODE_RELAXED)
		return CUDA_ERROR_INVALID_VALUE;
	CUstreamCaptureMode before = sg_thread.capture_mode;
	sg_thread.capture_mode = *mode;
	*mode = before;
	return CUDA_SUCCESS;
}

CUresult sg_cuStreamGetCaptureInfo_v3(CUstream hStream, CUstreamCaptureStatus *captureStatus_out, cuuint64_t *id_out,
                                      CUgraph *graph_out, const CUgraphNode **dependencies_out,
                                      const CUgraphEdgeData **edgeData_out, size_t *numDependencies_out)
{
	struct sg_stream *stream;

	if (captureStatus_out == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	sg_lock();
	CUresult status = sg_stream_of(hStream, &stream);
	if (status == CUDA_SUCCESS && stream == stream->context->legacy && blocking_capture(stream) != NULL)
		status = CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
	if (status == CUDA_SUCCESS) {
		const struct sg_capture *capture = stream->capture;
		*captureStatus_out = capture == NULL    ? CU_STREAM_CAPTURE_STATUS_NONE
		                     : capture->invalid ? CU_STREAM_CAPTURE_STATUS_INVALIDATED
		                                        : CU_STREAM_CAPTURE_STATUS_ACTIVE;
		bool active = *captureStatus_out == CU_STREAM_CAPTURE_STATUS_ACTIVE;
		if (id_out != NULL && active)
			*id_out = capture->id;
		if (graph_out != NULL && active)
			*graph_out = (CUgraph)capture->graph;
		if (dependencies_out != NULL && active)
			*dependencies_out = (const CUgraphNode *)stream->tips;
		if (edgeData_out != NULL && active)
			*edgeData_out = NULL;
		if (numDependencies_out != NULL && active)
			*numDependencies_out = stream->tip_count;
	}
	sg_unlock();
	return status;
}

CUresult sg_cuStreamGetCaptureInfo_v2(CUstream hStream, CUstreamCaptureStatus *captureStatus_out, cuuint64_t *id_out,
                                      CUgraph *graph_out, const CUgraphNode **dependencies_out,
                                      size_t *numDependencies_out)
{
	return sg_cuStreamGetCaptureInfo_v3(hStream, captureStatus_out, id_out, graph_out, dependencies_out, NULL,
	                                    numDependencies_out);
}

CUresult sg_cuStreamGetCaptureInfo(CUstream hStream, CUstreamCaptureStatus *captureStatus_out, cuuint64_t *id_out)
{
	return sg_cuStreamGetCaptureInfo_v3(hStream, captureStatus_out, id_out, NULL, NULL, NULL, NULL);
}

CUresult sg_cuStreamIsCapturing(CUstream hStream, CUstreamCaptureStatus *captureStatus)
{
	return sg_cuStreamGetCaptureInfo_v3(hStream, captureStatus, NULL, NULL, NULL, NULL, NULL);
}

CUresult sg_cuStreamUpdateCaptureDependencies_v2(CUstream hStream, CUgraphNode *dependencies,
                                                 const CUgraphEdgeData *dependencyData, size_t numDependencies,
                                                 unsigned int flags)
{
	struct sg_stream *stream;

	if ((numDependencies > 0 && dependencies == NULL) || flags > CU_STREAM_SET_CAPTURE_DEPENDENCIES)
		return CUDA_ERROR_INVALID_VALUE;
	if (dependencyData != NULL && numDependencies > 0)
		return CUDA_ERROR_NOT_SUPPORTED;
	sg_lock();
	CUresult status = sg_stream_of(hStream, &stream);
	if (status == CUDA_SUCCESS && stream->capture == NULL)
		status = CUDA_ERROR_ILLEGAL_STATE;
	for (size_t i = 0; i < numDependencies && status == CUDA_SUCCESS; i++)
		if (sg_node_of(dependencies[i]) == NULL || sg_node_of(dependencies[i])->graph != stream->capture->graph)
			status = CUDA_ERROR_INVALID_VALUE;
	if (status == CUDA_SUCCESS) {
		struct sg_node *const *nodes = (struct sg_node *const *)dependencies;
		bool done = flags == CU_STREAM_SET_CAPTURE_DEPENDENCIES
		                    ? set_tips(&stream->tips, &stream->tip_count, nodes, numDependencies)
		                    : add_tips(stream, nodes, numDependencies);
		status = done ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
	}
	sg_unlock();
	return status;
}

CUresult sg_cuStreamUpdateCaptureDependencies(CUstream hStream, CUgraphNode *dependencies, size_t numDependencies,
                                              unsigned int flags)
{
	return sg_cuStreamUpdateCaptureDependencies_v2(hStream, dependencies, NULL, numDependencies, flags);
}
