/* Devices' contexts: the primary ones, created ones, and each thread's stack of current ones. */
#ifndef SOFTGPU_CONTEXT_H
#define SOFTGPU_CONTEXT_H

#include "tests/softgpu/driver/core.h"
#include "tests/softgpu/ptx.h"

struct sg_stream;

/* A CUcontext. Primary contexts are never freed: their handle stays the same when they are reset and retained again. */
struct sg_context {
	int device;
	bool primary;
	unsigned flags;
	unsigned api_version;
	unsigned retained; /* primary: cuDevicePrimaryCtxRetain calls; others: cuCtxAttach and creation */
	uint64_t id;
	_Atomic int sticky;     /* the error of its own that every later call returns, or CUDA_SUCCESS */
	_Atomic unsigned peers; /* bit d: kernels may access the memory of device d */
	size_t limits[CU_LIMIT_MAX];
	size_t heap_used; /* of CU_LIMIT_MALLOC_HEAP_SIZE, by kernels */
	CUfunc_cache cache;
	struct sg_stream *streams; /* all of them, the default ones and those that finish after their destruction included */
	struct sg_stream *legacy;
	struct sg_context *next_ended;
	struct ptx_memory memory; /* what kernels of this context may touch; its data is this context */
};

/* Without the lock. CUDA_SUCCESS, or why a call cannot go on: INVALID_CONTEXT only when one is required. */
CUresult sg_context_health(bool required);
/* With the lock held. The current context, alive; NULL when there is none. */
struct sg_context *sg_context_current(void);
/* With the lock held: the live context of this handle, or NULL. */
struct sg_context *sg_context_of(CUcontext handle);
/* The first fault stays, in the context and in the process. Without the lock: it takes its time. Thread-safe. */
void sg_context_fault(struct sg_context *context, CUresult status);
/* What calls answer there: the context's own error, else that of the process, else CUDA_SUCCESS. Thread-safe. */
CUresult sg_context_error(struct sg_context *context);
/* With the lock held: drains every stream of the context; returns the sticky error. */
CUresult sg_context_drain(struct sg_context *context);
/* With the lock held: waits for the legacy stream and all blocking ones; returns the sticky error. */
CUresult sg_context_drain_blocking(struct sg_context *context);
/*
 * With the lock held: the primary context of a device, made alive if it is not, retained or not. NULL without memory.
 */
struct sg_context *sg_context_primary(int device);
bool sg_is_device(CUdevice device);

#endif
