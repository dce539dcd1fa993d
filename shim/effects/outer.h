/*
 * The outermost hooked runtime or library call on this thread, so that a record can name what the program called
 * (cufftExecC2C) and not only what that became (cuLaunchKernel). Only names: coverage comes from the driver level.
 */
#ifndef CUCONST_EFFECTS_OUTER_H
#define CUCONST_EFFECTS_OUTER_H

#include <stdint.h>

struct outer {
	const char *api;   /* static text; NULL: none */
	const char *note;  /* the guilty argument by the call's contract, e.g. "idata=odata"; static text or NULL */
	void *caller;      /* return address of the outermost call */
	uint64_t launches; /* of kernels and graphs, that this call has made so far */
};

extern __thread struct outer outer_call __attribute__((tls_model("initial-exec")));

#endif
