#include "tests/softgpu/driver/event.h"

#include <stdlib.h>
#include <time.h>

#include "tests/softgpu/driver/capture.h"

uint64_t sg_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

struct sg_event *sg_event_hold(struct sg_event *event)
{
	event->references++;
	return event;
}

void sg_event_drop(struct sg_event *event)
{
	if (event == NULL || --event->references > 0)
		return;
	sg_point_drop(&event->point);
	free(event->tips);
	free(event);
}

struct sg_event *sg_event_of(CUevent handle)
{
	return sg_is(handle, SG_EVENT) ? (struct sg_event *)handle : NULL;
}

void sg_event_begin_record(struct sg_event *event, struct sg_op *ret_op)
{
	event->capture_id = 0;
	event->timed = false;
	*ret_op = (struct sg_op){.kind = SG_OP_RECORD, .record = {sg_event_hold(event), ++event->recording}};
}

void sg_event_reached(struct sg_event *event, uint64_t recording)
{
	uint64_t now = sg_now();

	sg_lock();
	if (event->recording == recording) {
		event->time = now;
		event->timed = true;
	}
	sg_unlock();
}

CUresult sg_cuEventCreate(CUevent *phEvent, unsigned int Flags)
{
	if (phEvent == NULL ||
	    (Flags & ~(unsigned)(CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS)) != 0 ||
	    ((Flags & CU_EVENT_INTERPROCESS) && !(Flags & CU_EVENT_DISABLE_TIMING)))
		return CUDA_ERROR_INVALID_VALUE;
	struct sg_event *event = calloc(1, sizeof(*event));
	if (event == NULL)
		return CUDA_ERROR_OUT_OF_MEMORY;
	sg_lock();
	event->context = sg_context_current();
	event->references = 1;
	event->flags = Flags;
	bool alive = event->context != NULL, added = alive && sg_add(event, SG_EVENT);
	sg_unlock();
	if (!added) {
		free(event);
		return alive ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_ERROR_CONTEXT_IS_DESTROYED;
	}
	*phEvent = (CUevent)event;
	return CUDA_SUCCESS;
}

/* Events stay in their process: one that was made for another is refused, one that was not is the caller's mistake. */
CUresult sg_cuIpcGetEventHandle(CUipcEventHandle *pHandle, CUevent handle)
{
	if (pHandle == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	sg_lock();
	const struct sg_event *event = sg_event_of(handle);
	bool between = event != NULL && (event->flags & CU_EVENT_INTERPROCESS) != 0;
	sg_unlock();
	return between ? CUDA_ERROR_NOT_SUPPORTED : CUDA_ERROR_INVALID_HANDLE;
}

CUresult sg_cuEventDestroy_v2(CUevent hEvent)
{
	sg_lock();
	struct sg_event *event = sg_event_of(hEvent);
	if (event != NULL) {
		sg_remove(event);
		sg_event_drop(event);
	}
	sg_unlock();
	return event != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult sg_cuEventDestroy(CUevent hEvent)
{
	return sg_cuEventDestroy_v2(hEvent);
}

CUresult sg_cuEventRecordWithFlags(CUevent hEvent, CUstream hStream, unsigned int flags)
{
	struct sg_stream *stream;
	struct sg_op op;

	if ((flags & ~(unsigned)CU_EVENT_RECORD_EXTERNAL) != 0)
		return CUDA_ERROR_INVALID_VALUE;
	sg_lock();
	struct sg_event *event = sg_event_of(hEvent);
	CUresult status = sg_stream_of(hStream, &stream);
	if (event == NULL)
		status = CUDA_ERROR_INVALID_HANDLE;
	else if (status == CUDA_SUCCESS && event->context != stream->context)
		status = CUDA_ERROR_INVALID_HANDLE;
	if (status == CUDA_SUCCESS && stream->capture != NULL && !(flags & CU_EVENT_RECORD_EXTERNAL)) {
		status = sg_capture_record(stream, event);
	} else if (status == CUDA_SUCCESS && stream->capture != NULL) {
		op = (struct sg_op){.kind = SG_OP_RECORD, .record = {sg_event_hold(event), 0}};
		status = sg_submit(stream, &op, false);
	} else if (status == CUDA_SUCCESS && (flags & CU_EVENT_RECORD_EXTERNAL) != 0) {
		status = CUDA_ERROR_ILLEGAL_STATE;
	} else if (status == CUDA_SUCCESS) {
		sg_event_begin_record(event, &op);
		status = sg_submit(stream, &op, false);
		if (status == CUDA_SUCCESS) {
			sg_point_drop(&event->point);
			event->point = sg_point_of(stream);
		}
	}
	sg_unlock();
	return status;
}

CUresult sg_cuEventRecord(CUevent hEvent, CUstream hStream)
{
	return sg_cuEventRecordWithFlags(hEvent, hStream, CU_EVENT_RECORD_DEFAULT);
}

static CUresult wait_or_look(CUevent handle, bool wait)
{
	CUresult status = CUDA_ERROR_INVALID_HANDLE;

	sg_lock();
	sg_stream_step();
	struct sg_event *event = sg_event_of(handle);
	if (event != NULL && sg_capture_owns(event)) {
		sg_capture_invalidate(event);
		status = CUDA_ERROR_CAPTURED_EVENT;
	} else if (event != NULL && event->capture_id != 0) {
		status = CUDA_ERROR_INVALID_VALUE; /* of a capture that has ended */
	} else if (event != NULL && sg_capture_unsafe() != CUDA_SUCCESS) {
		status = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
	} else if (event != NULL) {
		struct sg_context *context = event->context;
		struct sg_point point = event->point;
		if (point.timeline != NULL)
			point.timeline->references++;
		if (wait)
			sg_point_await(&point);
		status = !sg_point_reached(&point) ? CUDA_ERROR_NOT_READY : sg_context_error(context);
		sg_point_drop(&point);
	}
	sg_unlock();
	return status;
}

CUresult sg_cuEventQuery(CUevent hEvent)
{
	return wait_or_look(hEvent, false);
}

CUresult sg_cuEventSynchronize(CUevent hEvent)
{
	return wait_or_look(hEvent, true);
}

CUresult sg_cuEventElapsedTime_v2(float *pMilliseconds, CUevent hStart, CUevent hEnd)
{
	CUresult status = CUDA_SUCCESS;

	sg_lock();
	struct sg_event *start = sg_event_of(hStart), *stop = sg_event_of(hEnd);
	if (start != NULL && stop != NULL && (start->capture_id != 0 || stop->capture_id != 0))
		status = CUDA_ERROR_INVALID_VALUE;
	else if (pMilliseconds == NULL || start == NULL || stop == NULL ||
	         ((start->flags | stop->flags) & CU_EVENT_DISABLE_TIMING) || start->recording == 0 ||
	         stop->recording == 0)
		status = CUDA_ERROR_INVALID_HANDLE;
	else if (!start->timed || !stop->timed)
		status = CUDA_ERROR_NOT_READY;
	else
		*pMilliseconds = (float)((double)(int64_t)(stop->time - start->time) / 1e6);
	sg_unlock();
	return status;
}

CUresult sg_cuEventElapsedTime(float *pMilliseconds, CUevent hStart, CUevent hEnd)
{
	return sg_cuEventElapsedTime_v2(pMilliseconds, hStart, hEnd);
}

/* Records what all streams of the context have been given so far: in its legacy stream, which waits for the others. */
CUresult sg_cuCtxRecordEvent(CUcontext hCtx, CUevent hEvent)
{
	struct sg_op op;

	sg_lock();
	struct sg_context *context = hCtx == NULL ? sg_context_current() : sg_context_of(hCtx);
	struct sg_event *event = sg_event_of(hEvent);
	CUresult status = context == NULL ? CUDA_ERROR_INVALID_CONTEXT : CUDA_SUCCESS;
	if (status == CUDA_SUCCESS && (event == NULL || event->context != context))
		status = CUDA_ERROR_INVALID_HANDLE;
	if (status == CUDA_SUCCESS) {
		for (struct sg_stream *stream = context->streams; stream != NULL; stream = stream->next)
			if (stream->flags & CU_STREAM_NON_BLOCKING)
				sg_points_add(&context->legacy->waits, sg_point_of(stream));
		sg_event_begin_record(event, &op);
		status = sg_submit(context->legacy, &op, false);
	}
	if (status == CUDA_SUCCESS) {
		sg_point_drop(&event->point);
		event->point = sg_point_of(context->legacy);
	}
	sg_unlock();
	return status;
}

/* Whatever the context's streams are given from now on waits for the event. */
CUresult sg_cuCtxWaitEvent(CUcontext hCtx, CUevent hEvent)
{
	sg_lock();
	struct sg_context *context = hCtx == NULL ? sg_context_current() : sg_context_of(hCtx);
	struct sg_event *event = sg_event_of(hEvent);
	CUresult status = context == NULL ? CUDA_ERROR_INVALID_CONTEXT
	                  : event == NULL ? CUDA_ERROR_INVALID_HANDLE
	                                  : CUDA_SUCCESS;
	for (struct sg_stream *stream = context != NULL ? context->streams : NULL;
	     status == CUDA_SUCCESS && stream != NULL; stream = stream->next) {
		if (event->point.timeline == NULL || stream->closing || stream->capture != NULL)
			continue;
		event->point.timeline->references++;
		if (!sg_points_add(&stream->waits, event->point))
			status = CUDA_ERROR_OUT_OF_MEMORY;
	}
	sg_unlock();
	return status;
}
