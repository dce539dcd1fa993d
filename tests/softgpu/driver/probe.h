/* What tests ask of the software GPU and tell it: counters, trace, faults, delays, the write log (softgpu.h). */
#ifndef SOFTGPU_PROBE_H
#define SOFTGPU_PROBE_H

#include <cuda.h>
#include <stddef.h>
#include <stdint.h>

/* Counts a call; returns the injected error when it is this call's turn. */
CUresult sg_probe_call(size_t index);
/* One line on stderr, unless SOFTGPU_QUIET=1. */
void sg_say(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* An operation wrote these bytes; cheap while the write log is off. Lock-free callers only: takes a lock of its own. */
void sg_probe_wrote(uint64_t address, size_t bytes);
/* Whether sg_probe_wrote does anything. */
_Bool sg_probe_logs_writes(void);

#endif
