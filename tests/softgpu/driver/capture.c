/* No stream captures yet: cuStreamBeginCapture is refused as not implemented, and so there are no graphs either. */
#include "tests/softgpu/driver/capture.h"

CUresult sg_capture_unsafe(void)
{
	return CUDA_SUCCESS;
}

CUresult sg_capture_refuse(struct sg_stream *stream)
{
	return CUDA_SUCCESS;
}

CUresult sg_capture_implicit(struct sg_stream *legacy)
{
	return CUDA_SUCCESS;
}

CUresult sg_capture_add(struct sg_stream *stream, struct sg_op *op)
{
	return CUDA_SUCCESS;
}

CUresult sg_capture_join(struct sg_stream *stream, struct sg_event *event)
{
	return CUDA_SUCCESS;
}

CUresult sg_capture_record(struct sg_stream *stream, struct sg_event *event)
{
	return CUDA_SUCCESS;
}

bool sg_capture_owns(const struct sg_event *event)
{
	return false;
}

void sg_capture_abandon(struct sg_stream *stream)
{
}

CUresult sg_exec_run(struct sg_exec *exec, struct sg_stream *stream)
{
	return CUDA_SUCCESS;
}

void sg_exec_free(struct sg_exec *exec)
{
}

struct sg_exec *sg_exec_clone(const struct sg_exec *exec)
{
	return NULL;
}

void sg_graph_free(struct sg_graph *graph)
{
}
