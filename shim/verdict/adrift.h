/*
 * Streams that were destroyed while launches were in flight there. Those go on, and no call can ask for the stream any more; so an event behind them is kept until it
 * tells how they ended. Thread-safe; takes no lock, and never waits.
 */
#ifndef CUCONST_VERDICT_ADRIFT_H
#define CUCONST_VERDICT_ADRIFT_H

#include <stdbool.h>
#include <stdint.h>

#include "shim/driver.h"

/* What stands for the stream from now on, since its handle may come again: never a handle. */
bool adrift_is(uint64_t stream);

/* Before the stream goes, with its context current. NULL: no event can be put there. Never 0; without room or an event adrift_query() cannot tell. */
uint64_t adrift_keep(CUstream stream, CUcontext context);

/* CUDA_SUCCESS: all has ended well. CUDA_ERROR_NOT_READY: not yet. CUDA_ERROR_NOT_FOUND: nothing can tell. Else how it ended. Changes no current context for the caller. */
CUresult adrift_query(uint64_t stream);

/* Calls `tell` for each that has ended since, which is then forgotten. */
void adrift_look(void (*tell)(CUcontext context, uint64_t stream, CUresult result, const char *api), const char *api);

/* The context is gone, and its events with it. */
void adrift_context_ended(CUcontext context);

/* fork child: the events are the parent's. */
void adrift_postfork_child(void);

#endif
