/*
 * A driver of the calls that serving makes, without a GPU and without memory: it keeps books on reservations, handles,
 * mappings and who may access them, and ends the program when they are used wrongly or when a lock of serving's is held
 * around a call.
 *
 * Contexts are 1 to FAKE_CONTEXTS; context c is on device c % FAKE_DEVICES.
 */
#ifndef SERVE_FAKE_H
#define SERVE_FAKE_H

#include <stdbool.h>

#include "shim/twins/serve.h"
#include "shim/twins/serve_calls.h"

enum { FAKE_CONTEXTS = 9, FAKE_DEVICES = 3 };

struct fake_state {
	unsigned reservations, handles, mappings; /* that are there */
	unsigned told;                            /* mappings that the events know */
	unsigned plain;                           /* allocations of cuMemAlloc and cuMemAllocPitch */
	uint64_t bytes;                           /* mapped or plain */
	uint64_t synchronized;                    /* cuCtxSynchronize */
	uint64_t calls;
};

/* Fills `drv` and starts serving. */
void fake_start(void);
struct fake_state fake_state(void);

/* Call number `nth` from now fails with `status`, and every `step`-th one after it (0: none). 0: nothing fails. */
void fake_fail(uint64_t nth, uint64_t step, CUresult status);
/* What a failed call left behind is forgotten: reservations, handles, mappings. */
void fake_forget(void);
/* From now on addresses are anywhere in this space, also where others were before. 0: behind all that there were. */
#define FAKE_SPACE UINT64_C(0x600000000000)
#define FAKE_SPACE_BYTES (UINT64_C(400) << 20)
void fake_scatter(uint64_t seed);
/* The next one is this, and the others come behind it. */
void fake_next(uint64_t address);
/* Bytes that there are. */
void fake_set_memory(uint64_t bytes);
/* Devices without virtual memory management. */
void fake_set_capable(bool capable);
/* The context cannot be used any more: everything but what ends it answers this. */
void fake_set_sick(CUresult status);

/* This thread's current context; 0: none. */
void fake_enter(unsigned context);
CUcontext fake_context(unsigned context);
static inline int fake_device(unsigned context)
{
	return (int)(context % FAKE_DEVICES);
}

/* Which devices may access the address, a bit each; all that may must be able to write. */
unsigned fake_access(CUdeviceptr address);

#endif
