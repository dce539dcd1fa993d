#include "tests/softgpu/driver/context.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/softgpu/driver/arena.h"
#include "tests/softgpu/driver/array.h"
#include "tests/softgpu/driver/capture.h"
#include "tests/softgpu/driver/graph.h"
#include "tests/softgpu/driver/memory.h"
#include "tests/softgpu/driver/module.h"
#include "tests/softgpu/driver/stream.h"

/* Contexts are never freed, only ended: streams' threads, events and graph nodes may name one that has ended. */
static struct sg_context *primaries[SG_DEVICES_MAX];
static unsigned primary_flags[SG_DEVICES_MAX];
static uint64_t context_ids = 1;
static struct sg_context *ended; /* created contexts that were destroyed */
/*
 * The first fault of the process, which ends it for CUDA: every context answers it from then on, and none can be made.
 * So do real drivers. CUDA_SUCCESS for ever with SOFTGPU_FAULT=context.
 */
static _Atomic int lost;

bool sg_is_device(CUdevice device)
{
	return device >= 0 && device < sg_device_count();
}

struct sg_context *sg_context_of(CUcontext handle)
{
	return sg_is(handle, SG_CONTEXT) ? (struct sg_context *)handle : NULL;
}

struct sg_context *sg_context_current(void)
{
	return sg_thread.depth > 0 ? sg_context_of(sg_thread.stack[sg_thread.depth - 1]) : NULL;
}

CUresult sg_context_health(bool required)
{
	CUresult status = CUDA_SUCCESS;

	if (sg_thread.depth == 0 || sg_thread.stack[sg_thread.depth - 1] == NULL)
		return required ? CUDA_ERROR_INVALID_CONTEXT : CUDA_SUCCESS;
	sg_lock();
	struct sg_context *context = sg_context_current();
	if (context != NULL)
		status = sg_context_error(context);
	else if (required)
		status = CUDA_ERROR_CONTEXT_IS_DESTROYED;
	sg_unlock();
	return status;
}

void sg_context_fault(struct sg_context *context, CUresult status)
{
	unsigned wait = sg_fault_us();
	int none = CUDA_SUCCESS;

	if (wait != 0 && atomic_load(&context->sticky) == CUDA_SUCCESS)
		nanosleep(&(struct timespec){wait / 1000000, (long)(wait % 1000000) * 1000}, NULL);
	atomic_compare_exchange_strong(&context->sticky, &none, status);
	none = CUDA_SUCCESS;
	if (!sg_fault_stays_in_context())
		atomic_compare_exchange_strong(&lost, &none, status);
}

CUresult sg_context_error(struct sg_context *context)
{
	int own = atomic_load_explicit(&context->sticky, memory_order_acquire);

	return (CUresult)(own != CUDA_SUCCESS ? own : atomic_load_explicit(&lost, memory_order_acquire));
}

static void drain(struct sg_context *context, bool non_blocking_too)
{
	/* Streams may end while this waits: take the points first. */
	struct sg_points points = {0};

	for (struct sg_stream *stream = context->streams; stream != NULL; stream = stream->next)
		if (non_blocking_too || !(stream->flags & CU_STREAM_NON_BLOCKING))
			sg_points_add(&points, sg_point_of(stream));
	for (size_t i = 0; i < points.count; i++)
		sg_point_await(&points.list[i]);
	sg_points_clear(&points);
}

CUresult sg_context_drain(struct sg_context *context)
{
	drain(context, true);
	return sg_context_error(context);
}

CUresult sg_context_drain_blocking(struct sg_context *context)
{
	drain(context, false);
	return sg_context_error(context);
}

/* Makes a context ready for use; it may have ended before (primary contexts come back). */
static bool begin(struct sg_context *context, int device, unsigned flags)
{
	context->device = device;
	context->flags = flags;
	context->api_version = 3020;
	context->id = context_ids++;
	atomic_store(&context->sticky, CUDA_SUCCESS);
	atomic_store(&context->peers, 1u << device);
	memset(context->limits, 0, sizeof(context->limits));
	context->limits[CU_LIMIT_STACK_SIZE] = 1024;
	context->limits[CU_LIMIT_PRINTF_FIFO_SIZE] = 1 << 20;
	context->limits[CU_LIMIT_MALLOC_HEAP_SIZE] = 8 << 20;
	context->limits[CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH] = 2;
	context->limits[CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT] = 2048;
	context->limits[CU_LIMIT_MAX_L2_FETCH_GRANULARITY] = 64;
	context->cache = CU_FUNC_CACHE_PREFER_NONE;
	context->memory = (struct ptx_memory){
		sg_kernel_check,     sg_kernel_alloc,     sg_kernel_free,        sg_kernel_wrote,  context,
		sg_kernel_heap_take, sg_kernel_heap_give, sg_kernel_conditional, sg_kernel_texture};
	context->legacy = sg_stream_create(context, CU_STREAM_DEFAULT, 0);
	if (context->legacy == NULL)
		return false;
	context->legacy->is_default = true;
	sg_remove(context); /* what is known of its end */
	if (sg_add(context, SG_CONTEXT))
		return true;
	sg_stream_close(context->legacy);
	context->legacy = NULL;
	return false;
}

struct remains {
	struct sg_context *context;
	void *list[256];
	size_t count;
};

static void collect_streams(void *handle, void *data)
{
	struct remains *remains = data;

	if (((struct sg_stream *)handle)->context == remains->context &&
	    remains->count < sizeof(remains->list) / sizeof(*remains->list))
		remains->list[remains->count++] = handle;
}

/* Lock held. Ends everything that lives in the context; its handle is worth nothing from the start. */
static void end(struct sg_context *context)
{
	struct remains remains = {.context = context};

	sg_remove(context);
	sg_add(context, SG_CONTEXT_ENDED);
	do {
		remains.count = 0;
		sg_each(SG_STREAM, collect_streams, &remains);
		for (size_t i = 0; i < remains.count; i++) {
			sg_remove(remains.list[i]);
			sg_stream_close(remains.list[i]);
		}
	} while (remains.count > 0);
	drain(context, true);
	for (struct sg_stream *stream = context->streams, *next; stream != NULL; stream = next) {
		next = stream->next;
		if (stream->is_default && !stream->closing)
			sg_stream_close(stream);
	}
	context->legacy = NULL;
	while (context->streams != NULL)
		sg_wait_changed();
	sg_modules_end(context);
	sg_textures_end(context);
	sg_arrays_end(context);
	sg_memory_end(context);
	if (!context->primary) {
		context->next_ended = ended;
		ended = context;
	}
}

struct sg_context *sg_context_primary(int device)
{
	struct sg_context *context = primaries[device];

	if (context == NULL) {
		context = calloc(1, sizeof(*context));
		if (context == NULL)
			return NULL;
		context->primary = true;
		primaries[device] = context;
	}
	return sg_is(context, SG_CONTEXT) || begin(context, device, primary_flags[device]) ? context : NULL;
}

CUresult sg_cuDevicePrimaryCtxRetain(CUcontext *pctx, CUdevice dev)
{
	if (pctx == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	if (!sg_is_device(dev))
		return CUDA_ERROR_INVALID_DEVICE;
	if (atomic_load(&lost) != CUDA_SUCCESS)
		return (CUresult)atomic_load(&lost);
	sg_lock();
	struct sg_context *context = sg_context_primary(dev);
	if (context != NULL)
		context->retained++;
	sg_unlock();
	if (context == NULL)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*pctx = (CUcontext)context;
	return CUDA_SUCCESS;
}

CUresult sg_cuDevicePrimaryCtxRelease_v2(CUdevice dev)
{
	CUresult status = CUDA_SUCCESS;

	if (!sg_is_device(dev))
		return CUDA_ERROR_INVALID_DEVICE;
	sg_lock();
	struct sg_context *context = primaries[dev];
	if (context == NULL || context->retained == 0)
		status = CUDA_ERROR_INVALID_CONTEXT;
	else if (--context->retained == 0 && sg_is(context, SG_CONTEXT))
		end(context);
	sg_unlock();
	return status;
}

CUresult sg_cuDevicePrimaryCtxRelease(CUdevice dev)
{
	return sg_cuDevicePrimaryCtxRelease_v2(dev);
}

/* Whoever retained it may release it still; it comes back, empty, with the same handle, when it is retained again. */
CUresult sg_cuDevicePrimaryCtxReset_v2(CUdevice dev)
{
	if (!sg_is_device(dev))
		return CUDA_ERROR_INVALID_DEVICE;
	sg_lock();
	struct sg_context *context = primaries[dev];
	if (context != NULL && sg_is(context, SG_CONTEXT))
		end(context);
	sg_unlock();
	return CUDA_SUCCESS;
}

CUresult sg_cuDevicePrimaryCtxReset(CUdevice dev)
{
	return sg_cuDevicePrimaryCtxReset_v2(dev);
}

static bool bad_flags(unsigned flags)
{
	unsigned scheduling = flags & CU_CTX_SCHED_MASK;

	return (flags & ~(unsigned)CU_CTX_FLAGS_MASK) != 0 || (scheduling & (scheduling - 1)) != 0;
}

CUresult sg_cuDevicePrimaryCtxSetFlags_v2(CUdevice dev, unsigned int flags)
{
	if (!sg_is_device(dev))
		return CUDA_ERROR_INVALID_DEVICE;
	if (bad_flags(flags))
		return CUDA_ERROR_INVALID_VALUE;
	sg_lock();
	primary_flags[dev] = flags;
	if (primaries[dev] != NULL)
		primaries[dev]->flags = flags;
	sg_unlock();
	return CUDA_SUCCESS;
}

CUresult sg_cuDevicePrimaryCtxSetFlags(CUdevice dev, unsigned int flags)
{
	return sg_cuDevicePrimaryCtxSetFlags_v2(dev, flags);
}

CUresult sg_cuDevicePrimaryCtxGetState(CUdevice dev, unsigned int *flags, int *active)
{
	if (!sg_is_device(dev))
		return CUDA_ERROR_INVALID_DEVICE;
	if (flags == NULL || active == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	sg_lock();
	*flags = primary_flags[dev];
	*active = primaries[dev] != NULL && sg_is(primaries[dev], SG_CONTEXT);
	sg_unlock();
	return CUDA_SUCCESS;
}

static CUresult push(CUcontext context)
{
	if (sg_thread.depth == SG_CONTEXT_STACK)
		return CUDA_ERROR_OUT_OF_MEMORY;
	sg_thread.stack[sg_thread.depth++] = context;
	return CUDA_SUCCESS;
}

CUresult sg_cuCtxCreate_v2(CUcontext *pctx, unsigned int flags, CUdevice dev)
{
	if (pctx == NULL || bad_flags(flags))
		return CUDA_ERROR_INVALID_VALUE;
	if (!sg_is_device(dev))
		return CUDA_ERROR_INVALID_DEVICE;
	if (atomic_load(&lost) != CUDA_SUCCESS)
		return (CUresult)atomic_load(&lost);
	if (sg_thread.depth == SG_CONTEXT_STACK)
		return CUDA_ERROR_OUT_OF_MEMORY;
	struct sg_context *context = calloc(1, sizeof(*context));
	if (context == NULL)
		return CUDA_ERROR_OUT_OF_MEMORY;
	context->retained = 1;
	sg_lock();
	bool begun = begin(context, dev, flags);
	sg_unlock();
	if (!begun) {
		free(context);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	push((CUcontext)context);
	*pctx = (CUcontext)context;
	return CUDA_SUCCESS;
}

CUresult sg_cuCtxCreate(CUcontext *pctx, unsigned int flags, CUdevice dev)
{
	return sg_cuCtxCreate_v2(pctx, flags, dev);
}

CUresult sg_cuCtxCreate_v3(CUcontext *pctx, CUexecAffinityParam *paramsArray, int numParams, unsigned int flags,
                           CUdevice dev)
{
	if (numParams != 0 || paramsArray != NULL)
		return CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY;
	return sg_cuCtxCreate_v2(pctx, flags, dev);
}

CUresult sg_cuCtxCreate_v4(CUcontext *pctx, CUctxCreateParams *ctxCreateParams, unsigned int flags, CUdevice dev)
{
	if (ctxCreateParams != NULL && ctxCreateParams->cigParams != NULL)
		return CUDA_ERROR_NOT_SUPPORTED;
	if (ctxCreateParams != NULL && ctxCreateParams->numExecAffinityParams != 0)
		return CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY;
	return sg_cuCtxCreate_v2(pctx, flags, dev);
}

CUresult sg_cuCtxDestroy_v2(CUcontext ctx)
{
	CUresult status = CUDA_ERROR_INVALID_CONTEXT;

	if (ctx == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	sg_lock();
	struct sg_context *context = sg_context_of(ctx);
	if (context != NULL && !context->primary) {
		end(context);
		status = CUDA_SUCCESS;
	} else if (sg_is(ctx, SG_CONTEXT_ENDED)) {
		status = CUDA_ERROR_CONTEXT_IS_DESTROYED;
	}
	sg_unlock();
	/* On top of this thread's stack it is popped; elsewhere the stale handle answers CONTEXT_IS_DESTROYED. */
	if (status == CUDA_SUCCESS && sg_thread.depth > 0 && sg_thread.stack[sg_thread.depth - 1] == ctx)
		sg_thread.depth--;
	return status;
}

CUresult sg_cuCtxDestroy(CUcontext ctx)
{
	return sg_cuCtxDestroy_v2(ctx);
}

/* One that has ended can be made current; what needs it then answers CONTEXT_IS_DESTROYED. */
static bool was_context(CUcontext handle)
{
	sg_lock();
	bool known = sg_is(handle, SG_CONTEXT) || sg_is(handle, SG_CONTEXT_ENDED);
	sg_unlock();
	return known;
}

CUresult sg_cuCtxPushCurrent_v2(CUcontext ctx)
{
	if (ctx == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	return was_context(ctx) ? push(ctx) : CUDA_ERROR_INVALID_CONTEXT;
}

CUresult sg_cuCtxPushCurrent(CUcontext ctx)
{
	return sg_cuCtxPushCurrent_v2(ctx);
}

CUresult sg_cuCtxPopCurrent_v2(CUcontext *pctx)
{
	if (sg_thread.depth == 0)
		return CUDA_ERROR_INVALID_CONTEXT;
	sg_thread.depth--;
	if (pctx != NULL)
		*pctx = sg_thread.stack[sg_thread.depth];
	return CUDA_SUCCESS;
}

CUresult sg_cuCtxPopCurrent(CUcontext *pctx)
{
	return sg_cuCtxPopCurrent_v2(pctx);
}

CUresult sg_cuCtxSetCurrent(CUcontext ctx)
{
	if (ctx == NULL) {
		if (sg_thread.depth > 0)
			sg_thread.depth--;
		return CUDA_SUCCESS;
	}
	if (!was_context(ctx))
		return CUDA_ERROR_INVALID_CONTEXT;
	if (sg_thread.depth == 0)
		return push(ctx);
	sg_thread.stack[sg_thread.depth - 1] = ctx;
	return CUDA_SUCCESS;
}

CUresult sg_cuCtxGetCurrent(CUcontext *pctx)
{
	if (pctx == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	*pctx = sg_thread.depth > 0 ? sg_thread.stack[sg_thread.depth - 1] : NULL;
	return CUDA_SUCCESS;
}

CUresult sg_cuCtxSynchronize_v2(CUcontext ctx)
{
	sg_lock();
	struct sg_context *context = ctx == NULL ? sg_context_current() : sg_context_of(ctx);
	CUresult status = context == NULL ? CUDA_ERROR_INVALID_CONTEXT : sg_capture_unsafe();
	if (status == CUDA_SUCCESS)
		status = sg_capture_in_context(context);
	if (status == CUDA_SUCCESS)
		status = sg_context_drain(context);
	sg_unlock();
	return status;
}

CUresult sg_cuCtxSynchronize(void)
{
	return sg_cuCtxSynchronize_v2(NULL);
}

/* Other threads may have the context current still: only the last reference ends it. */
CUresult sg_cuCtxAttach(CUcontext *pctx, unsigned int flags)
{
	if (pctx == NULL || flags != 0)
		return CUDA_ERROR_INVALID_VALUE;
	sg_lock();
	struct sg_context *context = sg_context_current();
	if (context != NULL)
		context->retained++;
	sg_unlock();
	if (context == NULL)
		return CUDA_ERROR_INVALID_CONTEXT;
	*pctx = (CUcontext)context;
	return CUDA_SUCCESS;
}

CUresult sg_cuCtxDetach(CUcontext ctx)
{
	sg_lock();
	struct sg_context *context = sg_context_of(ctx);
	bool last = context != NULL && !context->primary && context->retained == 1;
	if (context != NULL && !last && context->retained > 0)
		context->retained--;
	sg_unlock();
	return context == NULL ? CUDA_ERROR_INVALID_CONTEXT : last ? sg_cuCtxDestroy_v2(ctx) : CUDA_SUCCESS;
}
