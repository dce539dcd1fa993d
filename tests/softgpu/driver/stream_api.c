#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "tests/softgpu/driver/capture.h"
#include "tests/softgpu/driver/event.h"
#include "tests/softgpu/driver/stream.h"

/* A thread's own default streams, one for each context it used one in. */
struct own_stream {
	uint64_t context_id;
	CUcontext context;
	struct sg_stream *stream;
	struct own_stream *next;
};

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t key;

static void close_own_streams(void *argument)
{
	struct own_stream *own = argument;

	sg_lock();
	while (own != NULL) {
		struct own_stream *next = own->next;
		struct sg_context *context = sg_context_of(own->context);
		if (context != NULL && context->id == own->context_id)
			sg_stream_close(own->stream);
		free(own);
		own = next;
	}
	sg_unlock();
}

static void create_key(void)
{
	pthread_key_create(&key, close_own_streams);
}

static struct sg_stream *own_stream(struct sg_context *context)
{
	pthread_once(&once, create_key);
	struct own_stream *first = pthread_getspecific(key);
	for (struct own_stream *own = first; own != NULL; own = own->next)
		if (own->context_id == context->id)
			return own->stream;
	struct own_stream *fresh = malloc(sizeof(*fresh));
	struct sg_stream *stream = fresh != NULL ? sg_stream_create(context, CU_STREAM_DEFAULT, 0) : NULL;
	if (stream == NULL) {
		free(fresh);
		return NULL;
	}
	stream->is_default = true;
	*fresh = (struct own_stream){context->id, (CUcontext)context, stream, first};
	pthread_setspecific(key, fresh);
	return stream;
}

CUresult sg_stream_of(CUstream handle, struct sg_stream **ret_stream)
{
	bool own = handle == CU_STREAM_PER_THREAD || (handle == NULL && sg_thread.per_thread_default);

	if (handle != NULL && handle != CU_STREAM_LEGACY && !own) {
		if (!sg_is(handle, SG_STREAM))
			return CUDA_ERROR_INVALID_HANDLE;
		*ret_stream = (struct sg_stream *)handle;
		return CUDA_SUCCESS;
	}
	struct sg_context *context = sg_context_current();
	if (context == NULL)
		return CUDA_ERROR_INVALID_CONTEXT;
	struct sg_stream *stream = own ? own_stream(context) : context->legacy;
	if (stream == NULL)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*ret_stream = stream;
	return CUDA_SUCCESS;
}

CUresult sg_cuStreamCreateWithPriority(CUstream *phStream, unsigned int flags, int priority)
{
	if (phStream == NULL || (flags & ~(unsigned)CU_STREAM_NON_BLOCKING) != 0)
		return CUDA_ERROR_INVALID_VALUE;
	if (priority > 0)
		priority = 0;
	else if (priority < -5)
		priority = -5;
	sg_lock();
	struct sg_context *context = sg_context_current(); /* another thread may have ended it just now */
	struct sg_stream *stream = context != NULL ? sg_stream_create(context, flags, priority) : NULL;
	bool added = stream != NULL && sg_add(stream, SG_STREAM);
	if (stream != NULL && !added)
		sg_stream_close(stream);
	sg_unlock();
	if (!added)
		return context != NULL ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_ERROR_CONTEXT_IS_DESTROYED;
	*phStream = (CUstream)stream;
	return CUDA_SUCCESS;
}

CUresult sg_cuStreamCreate(CUstream *phStream, unsigned int Flags)
{
	return sg_cuStreamCreateWithPriority(phStream, Flags, 0);
}

CUresult sg_cuStreamDestroy_v2(CUstream hStream)
{
	CUresult status = CUDA_ERROR_INVALID_HANDLE;

	sg_lock();
	if (sg_is(hStream, SG_STREAM)) {
		sg_remove(hStream);
		sg_stream_close((struct sg_stream *)hStream);
		status = CUDA_SUCCESS;
	}
	sg_unlock();
	return status;
}

CUresult sg_cuStreamDestroy(CUstream hStream)
{
	return sg_cuStreamDestroy_v2(hStream);
}

CUresult sg_cuStreamSynchronize(CUstream hStream)
{
	struct sg_stream *stream;

	sg_lock();
	CUresult status = sg_stream_of(hStream, &stream);
	if (status == CUDA_SUCCESS && stream->capture != NULL)
		status = sg_capture_refuse(stream);
	if (status == CUDA_SUCCESS && stream == stream->context->legacy)
		status = sg_capture_implicit(stream);
	if (status == CUDA_SUCCESS) {
		/*
		 * Once its work is done the stream may be gone; contexts are not freed while a thread can wait in one.
		 */
		struct sg_context *context = stream->context;
		if (stream == context->legacy) {
			status = sg_context_drain_blocking(context);
		} else {
			sg_stream_drain(stream);
			status = sg_context_error(context);
		}
	}
	sg_unlock();
	return status;
}

CUresult sg_cuStreamQuery(CUstream hStream)
{
	struct sg_stream *stream;

	sg_lock();
	sg_stream_step();
	CUresult status = sg_stream_of(hStream, &stream);
	if (status == CUDA_SUCCESS && stream->capture != NULL)
		status = sg_capture_refuse(stream);
	else if (status == CUDA_SUCCESS && stream == stream->context->legacy)
		status = sg_capture_implicit(stream);
	if (status == CUDA_SUCCESS) {
		bool done = stream->timeline->completed == stream->timeline->submitted;
		for (struct sg_stream *other = stream->context->streams;
		     stream == stream->context->legacy && other != NULL; other = other->next)
			if (!(other->flags & CU_STREAM_NON_BLOCKING) &&
			    other->timeline->completed != other->timeline->submitted)
				done = false;
		status = sg_context_error(stream->context);
		if (status == CUDA_SUCCESS && !done)
			status = CUDA_ERROR_NOT_READY;
	}
	sg_unlock();
	return status;
}

CUresult sg_cuStreamWaitEvent(CUstream hStream, CUevent hEvent, unsigned int Flags)
{
	struct sg_stream *stream;

	if ((Flags & ~(unsigned)CU_EVENT_WAIT_EXTERNAL) != 0)
		return CUDA_ERROR_INVALID_VALUE;
	sg_lock();
	struct sg_event *event = sg_event_of(hEvent);
	CUresult status = sg_stream_of(hStream, &stream);
	if (event == NULL)
		status = CUDA_ERROR_INVALID_HANDLE;
	if (status == CUDA_SUCCESS && sg_capture_owns(event) && Flags == 0) {
		status = sg_capture_join(stream, event);
	} else if (status == CUDA_SUCCESS && event->capture_id != 0 && Flags == 0) {
		status = CUDA_ERROR_INVALID_VALUE; /* of a capture that has ended */
	} else if (status == CUDA_SUCCESS && stream->capture != NULL && Flags == 0) {
		/* An event from outside the capture: the dependency could not be replayed. */
		sg_capture_refuse(stream);
		status = CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
	} else if (status == CUDA_SUCCESS && stream->capture != NULL) {
		struct sg_op op = {.kind = SG_OP_WAIT, .wait = {sg_event_hold(event), 0}};
		status = sg_submit(stream, &op, false);
	} else if (status == CUDA_SUCCESS && event->point.timeline != NULL) {
		event->point.timeline->references++;
		if (!sg_points_add(&stream->waits, event->point))
			status = CUDA_ERROR_OUT_OF_MEMORY;
		/* The wait is an operation of its own: whoever synchronises with the stream waits for the event too. */
		struct sg_op op = {.kind = SG_OP_EMPTY};
		if (status == CUDA_SUCCESS && stream->waits.count > 0)
			status = sg_submit(stream, &op, false);
	}
	sg_unlock();
	return status;
}

static CUresult submit_call(CUstream handle, struct sg_op *op)
{
	struct sg_stream *stream;

	sg_lock();
	CUresult status = sg_stream_of(handle, &stream);
	if (status == CUDA_SUCCESS)
		status = sg_submit(stream, op, false);
	sg_unlock();
	return status;
}

CUresult sg_cuLaunchHostFunc(CUstream hStream, CUhostFn fn, void *userData)
{
	struct sg_op op = {.kind = SG_OP_HOST, .host = {fn, userData}};

	return fn == NULL ? CUDA_ERROR_INVALID_VALUE : submit_call(hStream, &op);
}

CUresult sg_cuStreamAddCallback(CUstream hStream, CUstreamCallback callback, void *userData, unsigned int flags)
{
	struct sg_op op = {.kind = SG_OP_CALLBACK, .callback = {callback, hStream, userData}};
	struct sg_stream *stream;

	if (callback == NULL || flags != 0)
		return CUDA_ERROR_INVALID_VALUE;
	sg_lock();
	CUresult status = sg_stream_of(hStream, &stream);
	if (status == CUDA_SUCCESS)
		status = stream->capture != NULL ? sg_capture_refuse(stream) : sg_submit(stream, &op, false);
	sg_unlock();
	return status;
}

CUresult sg_cuStreamAttachMemAsync(CUstream hStream, CUdeviceptr dptr, size_t length, unsigned int flags)
{
	struct sg_op op = {.kind = SG_OP_EMPTY};

	(void)dptr;
	(void)length;
	return flags == 0 || flags > CU_MEM_ATTACH_SINGLE ? CUDA_ERROR_INVALID_VALUE : submit_call(hStream, &op);
}

/* What a handle tells about its stream; `read` is called with the lock held. */
static CUresult ask(CUstream handle, void (*read)(const struct sg_stream *stream, void *answer), void *answer)
{
	struct sg_stream *stream;

	if (answer == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	sg_lock();
	CUresult status = sg_stream_of(handle, &stream);
	if (status == CUDA_SUCCESS)
		read(stream, answer);
	sg_unlock();
	return status;
}

static void read_priority(const struct sg_stream *stream, void *answer)
{
	*(int *)answer = stream->priority;
}

static void read_flags(const struct sg_stream *stream, void *answer)
{
	*(unsigned *)answer = stream->flags;
}

static void read_id(const struct sg_stream *stream, void *answer)
{
	*(unsigned long long *)answer = stream->id;
}

static void read_device(const struct sg_stream *stream, void *answer)
{
	*(CUdevice *)answer = stream->context->device;
}

static void read_context(const struct sg_stream *stream, void *answer)
{
	*(CUcontext *)answer = (CUcontext)stream->context;
}

CUresult sg_cuStreamGetPriority(CUstream hStream, int *priority)
{
	return ask(hStream, read_priority, priority);
}

CUresult sg_cuStreamGetFlags(CUstream hStream, unsigned int *flags)
{
	return ask(hStream, read_flags, flags);
}

CUresult sg_cuStreamGetId(CUstream hStream, unsigned long long *streamId)
{
	return ask(hStream, read_id, streamId);
}

CUresult sg_cuStreamGetDevice(CUstream hStream, CUdevice *device)
{
	return ask(hStream, read_device, device);
}

CUresult sg_cuStreamGetCtx(CUstream hStream, CUcontext *pctx)
{
	return ask(hStream, read_context, pctx);
}

CUresult sg_cuStreamGetCtx_v2(CUstream hStream, CUcontext *pCtx, CUgreenCtx *pGreenCtx)
{
	CUresult status = ask(hStream, read_context, pCtx);

	if (status == CUDA_SUCCESS && pGreenCtx != NULL)
		*pGreenCtx = NULL;
	return status;
}

static void read_sync_policy(const struct sg_stream *stream, void *answer)
{
	*(CUsynchronizationPolicy *)answer = stream->sync_policy;
}

CUresult sg_cuStreamGetAttribute(CUstream hStream, CUstreamAttrID attr, CUstreamAttrValue *value)
{
	CUstreamAttrValue answer;

	memset(&answer, 0, sizeof(answer));
	if (value == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult status = CUDA_SUCCESS;
	if (attr == CU_LAUNCH_ATTRIBUTE_PRIORITY)
		status = ask(hStream, read_priority, &answer.priority);
	else if (attr == CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY)
		status = ask(hStream, read_sync_policy, &answer.syncPolicy);
	else if (attr != CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW && attr != CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN &&
	         attr != CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP)
		status = CUDA_ERROR_INVALID_VALUE;
	if (status == CUDA_SUCCESS)
		*value = answer;
	return status;
}

/* The attributes are hints to hardware that is not there: all but one are checked and forgotten. */
CUresult sg_cuStreamSetAttribute(CUstream hStream, CUstreamAttrID attr, const CUstreamAttrValue *value)
{
	CUstreamAttrValue present;
	struct sg_stream *stream;
	CUresult status = value == NULL ? CUDA_ERROR_INVALID_VALUE : sg_cuStreamGetAttribute(hStream, attr, &present);

	if (status != CUDA_SUCCESS || attr != CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY)
		return status;
	sg_lock();
	status = sg_stream_of(hStream, &stream);
	if (status == CUDA_SUCCESS)
		stream->sync_policy = value->syncPolicy;
	sg_unlock();
	return status;
}

CUresult sg_cuStreamCopyAttributes(CUstream dst, CUstream src)
{
	int priority;
	CUresult status = ask(src, read_priority, &priority);

	return status != CUDA_SUCCESS ? status : ask(dst, read_priority, &priority);
}
