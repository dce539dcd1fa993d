/*
 * What every file of the software driver shares: the entry of a call, the lock, and the table of live handles.
 *
 * One lock, sg_lock, guards all state of the driver. It is never held while an operation runs, a user's function is
 * called, or a wait other than sg_wait_changed() goes on. Only the checks of device memory (arena.h) read without it.
 */
#ifndef SOFTGPU_CORE_H
#define SOFTGPU_CORE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sg_implementations.h"

enum { SG_DRIVER_VERSION = 13000, SG_DEVICES_MAX = 8, SG_CONTEXT_STACK = 128 };

enum sg_needs {
	SG_NEEDS_NOTHING,
	SG_NEEDS_INIT,    /* cuInit was called in this process */
	SG_NEEDS_HEALTH,  /* also: no sticky error in the current context, if there is one */
	SG_NEEDS_CONTEXT, /* also: there is a current context */
};

/* What a handle given to the application points to. A handle is only followed after sg_is() confirmed it. */
enum sg_kind {
	SG_NONE,
	SG_CONTEXT,
	SG_CONTEXT_ENDED, /* may be current still; most calls there say so */
	SG_STREAM,
	SG_EVENT,
	SG_MODULE,
	SG_FUNCTION,
	SG_LIBRARY,
	SG_KERNEL,
	SG_GRAPH,
	SG_NODE,
	SG_EXEC,
	SG_POOL,
	SG_PHYSICAL, /* memory of cuMemCreate */
	SG_USER_OBJECT,
	SG_LINK,
	SG_ARRAY,
	SG_TEXTURE,     /* an object of a texture or surface */
	SG_CONDITIONAL, /* of a graph's conditional node */
};

struct sg_thread {
	bool per_thread_default; /* this call came by a _ptds or _ptsz name */
	bool in_callback;        /* this thread runs a host function or stream callback: CUDA calls are refused */
	int depth;
	CUcontext stack[SG_CONTEXT_STACK];
	CUstreamCaptureMode capture_mode; /* 0 is CU_STREAM_CAPTURE_MODE_GLOBAL, the default */
};

extern __thread struct sg_thread sg_thread;

/*
 * First thing in every exported function: counts, traces, injects faults, and checks what the call needs. `index` is a
 * row of sg_symbols.
 */
CUresult sg_enter(size_t index, enum sg_needs needs);
/* For functions without an implementation: counts, says so once on stderr, CUDA_ERROR_NOT_SUPPORTED. */
CUresult sg_unimplemented(size_t index);

/* cuInit's effect, once per process. */
CUresult sg_initialise(void);
/* Whole microseconds that each stream operation must wait before it runs. */
unsigned sg_delay_us(void);
/* Whole microseconds from a kernel's fault to when calls answer it; until then the stream is busy. */
unsigned sg_fault_us(void);
/* Does a fault end its context alone, and not the process? */
bool sg_fault_stays_in_context(void);
/* A decimal environment variable, or `otherwise` where it is unset or malformed. */
uint64_t sg_environment(const char *name, uint64_t otherwise);

void sg_lock(void);
void sg_unlock(void);
/* With the lock held: sleep until somebody calls sg_changed(). */
void sg_wait_changed(void);
void sg_changed(void);

/* The table of live handles; the lock must be held. sg_add returns false without memory. */
bool sg_add(const void *handle, enum sg_kind kind);
void sg_remove(const void *handle);
bool sg_is(const void *handle, enum sg_kind kind);
/* Calls `visit` for every live handle of a kind; `visit` must not add or remove. */
void sg_each(enum sg_kind kind, void (*visit)(void *handle, void *data), void *data);

#endif
