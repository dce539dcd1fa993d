/*
 * The outermost hooked runtime or library call on this thread, so that a record can name what the program called
 * (cufftExecC2C) and not only what that became (cuLaunchKernel). Only names: coverage comes from the driver level.
 */
#ifndef CUCONST_EFFECTS_OUTER_H
#define CUCONST_EFFECTS_OUTER_H

#include <stdint.h>

#include "shim/hook_state.h"

/* A copy for a record. */
static inline struct outer outer_now(void)
{
	struct outer now = hook_thread.outer;
	now.launches = now.api ? hook_thread.launches - now.launches : 0;
	return now;
}

#endif
