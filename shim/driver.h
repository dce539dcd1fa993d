/*
 * The real driver: one typed pointer for each entry point that is hooked or that the shim itself calls.
 *
 * Pointers are filled by doors/resolve.c at first use and never change afterwards; one that the loaded driver lacks
 * stays NULL (an older driver), so check before calling what is newer than CUDA 11. Calling through `drv` never enters
 * a hook. A leaf: every folder of shim/ may include it.
 */
#ifndef CUCONST_DRIVER_H
#define CUCONST_DRIVER_H

/* All versions of every prototype (cuMemAlloc and cuMemAlloc_v2), and no macro that renames one to the other. */
#ifndef __CUDA_API_VERSION_INTERNAL
#define __CUDA_API_VERSION_INTERNAL 1
#endif
#include <cuda.h>
#include <stdbool.h>

#include "entrypoints.h"

/* One hooked entry point. */
struct entrypoint {
	const char *name; /* exported symbol, static */
	void *hook;       /* our function */
	void **real;      /* where its pointer lives in `drv` */
	bool launch;      /* launches a kernel */
	bool blocks;      /* a copy or set that is not asynchronous, though it may return early */
};

extern struct driver drv;
extern const struct entrypoint entrypoints[ENTRY_COUNT];

#endif
