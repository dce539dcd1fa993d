/*
 * What a generated hook needs. The order in every hook: real pointer there? nothing protected, or already inside a
 * hook? pass. Else: work out the effect, judge, call down with no lock held, and only then read outputs and record.
 */
#ifndef CUCONST_DOORS_HOOK_H
#define CUCONST_DOORS_HOOK_H

#include "shim/driver.h"
#include "shim/effects/call.h"
#include "shim/effects/launch_memo.h"
#include "shim/effects/writes.h"
#include "shim/hook_state.h"
#include "shim/verdict/judge.h"

#define HOOK_EXPORT __attribute__((visibility("default")))

/* doors/resolve.c: finds the driver, fills `drv`. True when *pointer is set afterwards. Re-entrant, lock-free. */
bool hook_open(void **pointer);

/* The stream a call works in, with the default stream of its ABI made explicit (the handle 0 means two things). */
static inline CUstream hook_stream(CUstream stream, bool per_thread)
{
	return stream ? stream : per_thread ? CU_STREAM_PER_THREAD : CU_STREAM_LEGACY;
}

#endif
