#include "shim/effects/capture.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "shim/effects/call.h"
#include "shim/hook_state.h"
#include "shim/verdict/fault.h"
#include "shim/verdict/verify.h"

struct capture {
	CUstream stream;
	CUcontext context; /* that was current when it began */
	struct capture *next;
};
static struct capture *captures;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* nothing is called under it */
static _Atomic int unlisted; /* of the running ones: begun when there was no memory for an entry */

HOOK_HOT bool capture_anywhere(void)
{
	return atomic_load_explicit(&hook_line.captures, memory_order_relaxed) > 0;
}

HOOK_HOT bool capture_is_running(CUstream stream)
{
	CUstreamCaptureStatus status;
	if (!capture_anywhere() || !drv.cuStreamIsCapturing)
		return false;
	/* The legacy stream cannot capture; asking about it during a global-mode capture would invalidate that capture. */
	if (stream == CU_STREAM_LEGACY)
		return false;
	return drv.cuStreamIsCapturing(stream, &status) == CUDA_SUCCESS && status != CU_STREAM_CAPTURE_STATUS_NONE;
}

static void put_in(struct capture *capture)
{
	pthread_mutex_lock(&lock);
	capture->next = captures;
	captures = capture;
	pthread_mutex_unlock(&lock);
}

/* The first capture in this stream, or with NULL in this context. The caller owns it. */
static struct capture *take_out(CUstream stream, CUcontext context)
{
	struct capture *found = NULL;
	pthread_mutex_lock(&lock);
	for (struct capture **at = &captures; *at && !found;) {
		if (stream ? (*at)->stream == stream : (*at)->context == context) {
			found = *at;
			*at = found->next;
		} else {
			at = &(*at)->next;
		}
	}
	pthread_mutex_unlock(&lock);
	return found;
}

static void over(struct capture *capture)
{
	free(capture);
	atomic_fetch_sub(&hook_line.captures, 1);
	verify_capture_ended();
}

static void begin_after(struct call *call, CUresult result)
{
	struct capture *capture = call->state[0].pointer;
	if (result != CUDA_SUCCESS) {
		free(capture);
		verify_capture_ended();
		return;
	}
	if (capture && drv.cuCtxGetCurrent(&capture->context) != CUDA_SUCCESS)
		capture->context = NULL;
	atomic_fetch_add(&hook_line.captures, 1);
	if (capture)
		put_in(capture);
	else
		atomic_fetch_add(&unlisted, 1);
}

void effect_capture_begin(struct call *call)
{
	struct capture *capture = calloc(1, sizeof *capture);
	/* Without an entry it counts all the same: what is captured would be taken for writes. */
	if (capture)
		capture->stream = call->stream;
	call->state[0].pointer = capture;
	call->after = begin_after;
	verify_capture_began(); /* before the driver knows: no baseline must be in the middle of a wait for the device */
}

static bool take_unlisted(void)
{
	int count = atomic_load(&unlisted);
	while (count > 0 && !atomic_compare_exchange_weak(&unlisted, &count, count - 1))
		continue;
	return count > 0;
}

/* A capture that was invalidated, or whose forks did not join, has ended all the same. */
static void end_after(struct call *call, CUresult result)
{
	if (result == CUDA_SUCCESS || result == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED ||
	    result == CUDA_ERROR_STREAM_CAPTURE_UNJOINED) {
		struct capture *capture = take_out(call->stream, NULL);
		if (capture || take_unlisted())
			over(capture);
	}
}

void effect_capture_end(struct call *call)
{
	call->after = end_after;
}

static void destroy_after(struct call *call, CUresult result)
{
	if (result == CUDA_SUCCESS)
		over(call->state[0].pointer);
	else
		put_in(call->state[0].pointer);
}

/* A program that gave up in the middle of a capture. Taken out before the call: the handle may come again for another thread's capture. */
void effect_stream_destroy(struct call *call, CUstream stream)
{
	struct capture *capture = stream && capture_anywhere() ? take_out(stream, NULL) : NULL;
	fault_stream_ends(stream, call->entry->name);
	if (!capture)
		return;
	call->state[0].pointer = capture;
	call->after = destroy_after;
}

void capture_context_ended(CUcontext context)
{
	struct capture *capture;
	while (context && capture_anywhere() && (capture = take_out(NULL, context)))
		over(capture);
}

void capture_reset(void)
{
	/* The lock may have been held by a thread the child does not have; the list is left where it is. */
	pthread_mutex_init(&lock, NULL);
	captures = NULL;
	atomic_store(&hook_line.captures, 0);
	atomic_store(&unlisted, 0);
}
