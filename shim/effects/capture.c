#include "shim/effects/capture.h"

#include <stdatomic.h>

#include "shim/effects/call.h"
#include "shim/verdict/verify.h"

static _Atomic int running;

bool capture_anywhere(void)
{
	return atomic_load_explicit(&running, memory_order_relaxed) > 0;
}

bool capture_is_running(CUstream stream)
{
	CUstreamCaptureStatus status;
	if (!capture_anywhere() || !drv.cuStreamIsCapturing)
		return false;
	/* The legacy stream cannot capture; asking about it during a global-mode capture would invalidate that capture. */
	if (stream == CU_STREAM_LEGACY)
		return false;
	return drv.cuStreamIsCapturing(stream, &status) == CUDA_SUCCESS && status != CU_STREAM_CAPTURE_STATUS_NONE;
}

static void begin_after(struct call *call, CUresult result)
{
	if (result == CUDA_SUCCESS) {
		atomic_fetch_add(&running, 1);
		verify_capture_began();
	}
}

void effect_capture_begin(struct call *call)
{
	call->after = begin_after;
}

/* A capture that was invalidated, or whose forks did not join, has ended all the same. */
static void end_after(struct call *call, CUresult result)
{
	if (result == CUDA_SUCCESS || result == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED ||
	    result == CUDA_ERROR_STREAM_CAPTURE_UNJOINED) {
		atomic_fetch_sub(&running, 1);
		verify_capture_ended();
	}
}

void effect_capture_end(struct call *call)
{
	call->after = end_after;
}

void capture_reset(void)
{
	atomic_store(&running, 0);
}
