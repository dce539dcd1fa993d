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

/* With the driver's answer: the protections end, or go on as before. For call->after. */
void frees_end(struct call *call, CUresult result);

#endif
