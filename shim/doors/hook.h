/*
 * What a generated hook needs. The order in every hook: real pointer there? nothing protected, or already inside a
 * hook? pass. Else: work out the effect, judge, call down with no lock held, and only then read outputs and record.
 */
#ifndef CUCONST_DOORS_HOOK_H
#define CUCONST_DOORS_HOOK_H

#include <stddef.h>

#include "shim/doors/launch.h"
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

_Static_assert(offsetof(struct hook_line, armed) == LAUNCH_ARMED && sizeof(hook_line.armed) == 1 &&
                       offsetof(struct hook_thread, counts) == LAUNCH_COUNTS &&
                       offsetof(struct hook_thread, depth) == LAUNCH_DEPTH && sizeof(hook_thread.depth) == 4 &&
                       offsetof(struct hook_counts, of[COUNT_LAUNCH]) == LAUNCH_COUNT,
               "as launch.S has them");
_Static_assert(MEMO_PASSES == LAUNCH_PASSES && MEMO_IS_WATCHED == LAUNCH_IS_WATCHED &&
                       MEMO_HAS_TWINS == LAUNCH_HAS_TWINS && sizeof(enum memo_how) == 4,
               "as launch.S has them");

#endif
