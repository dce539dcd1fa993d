/* Memory that a call takes away: protections end with it. Shared by frees, mappings and graphs that free. */
#ifndef CUCONST_EFFECTS_FREES_H
#define CUCONST_EFFECTS_FREES_H

#include "shim/effects/call.h"

#define ANY_DEVICE (-1)

/*
 * Before the driver takes [start, end) away: remembers the ranges there, of this device's memory alone or of ANY_DEVICE. From here on calls are not judged
 * against them. May be called for several pieces.
 */
void frees_begin(struct call *call, uint64_t start, uint64_t end, int device);

/*
 * After these, for calls that take memory away without waiting for the device: checks in flight, which the program knows nothing of, get a while to be done with
 * it. They would be an illegal address.
 */
void frees_settle(const struct call *call);

/* With the driver's answer: the protections end, or go on as before. For call->after. */
void frees_end(struct call *call, CUresult result);

/* The same for a call after which the memory is there, and its device may not touch it. */
void frees_end_access(struct call *call, CUresult result);

#endif
