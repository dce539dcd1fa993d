/* Stream capture. With the lock held throughout. */
#ifndef SOFTGPU_CAPTURE_H
#define SOFTGPU_CAPTURE_H

#include "tests/softgpu/driver/stream.h"

struct sg_event;
struct sg_node;

/* A call that would disturb a capture (allocations, frees, module loading, waiting):
 * CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED if the calling thread may not make it now, and the captures it would have
 * disturbed are invalidated. */
CUresult sg_capture_unsafe(void);
/*
 * A call that may not be made on this stream while it captures (synchronize, query): refused, and its capture is
 * invalidated.
 */
CUresult sg_capture_refuse(struct sg_stream *stream);
/*
 * Work for the legacy stream while a blocking stream of its context captures: CUDA_ERROR_STREAM_CAPTURE_IMPLICIT,
 * capture invalidated.
 */
CUresult sg_capture_implicit(struct sg_stream *legacy);
/*
 * Makes a node of the operation, which depends on the stream's tips and becomes its only tip. Takes the operation over.
 */
CUresult sg_capture_add(struct sg_stream *stream, struct sg_op *op);
/* The stream waits for an event that was recorded in a capture: the stream joins it. */
CUresult sg_capture_join(struct sg_stream *stream, struct sg_event *event);
/* The event is recorded in the capturing stream. */
CUresult sg_capture_record(struct sg_stream *stream, struct sg_event *event);
/* The event's capture, if it goes on. */
bool sg_capture_owns(const struct sg_event *event);
/* A call that an event of a running capture may not be asked in: the capture is invalidated. */
void sg_capture_invalidate(const struct sg_event *event);
/*
 * A call that waits for a whole context: refused while one of its streams captures, whatever the mode, and its capture
 * is invalidated.
 */
CUresult sg_capture_in_context(const struct sg_context *context);
/* The stream ends before its capture does. */
void sg_capture_abandon(struct sg_stream *stream);
/* A node is destroyed: no tip may point to it. */
void sg_capture_forget(const struct sg_node *node);

#endif
