/*
 * The outermost hooked runtime or library call on this thread, so that a record can name what the program called
 * (cufftExecC2C) and not only what that became (cuLaunchKernel). Only names: coverage comes from the driver level.
 */
#ifndef CUCONST_EFFECTS_OUTER_H
#define CUCONST_EFFECTS_OUTER_H

#include <stdint.h>

#include "shim/hook_state.h"

struct outer {
	const char *api;   /* static text; NULL: none */
	const char *note;  /* the guilty argument by the call's contract, e.g. "idata=odata"; static text or NULL */
	void *caller;      /* return address of the outermost call */
	uint64_t launches; /* hook_thread.launches when it began; in a copy how many it has made so far: outer_now() */
};

extern __thread struct outer outer_call __attribute__((tls_model("initial-exec")));

/* A copy for a record. */
static inline struct outer outer_now(void)
{
	struct outer now = outer_call;
	now.launches = now.api ? hook_thread.launches - now.launches : 0;
	return now;
}

#endif
