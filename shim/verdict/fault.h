/*
 * Which launch was it? A store through a read-only twin ends the context with an illegal address, at some later call, and no driver says who made it. So launches that were
 * given a twin and may store through it are noted, until they are known to have ended well.
 *
 * Noting takes no lock and no driver call but for the current context. Thread-safe.
 */
#ifndef CUCONST_VERDICT_FAULT_H
#define CUCONST_VERDICT_FAULT_H

#include <stdbool.h>
#include <stdint.h>

#include "shim/driver.h"

struct call;
struct memo_twins;

/* Before the first twin is handed out. Without memory nothing is noted, and faults stay unexplained. */
void fault_start(void);

/* The driver took a launch, or a graph, some of whose slots hold twins: notes it. False: there are none. Before call->judgement goes. */
bool fault_note(const struct call *call);

/* The same for a launch again that was given twins, from this place: `stream` and `caller` as in struct call. */
void fault_note_twins(enum entry_id entry, const struct memo_twins *twins, CUstream stream, void *caller);

/* How many were noted so far. */
uint64_t fault_noted(void);

/* What was noted up to there, in this stream or (0) in all streams of the context, has ended well. NULL context: the current one. */
void fault_ended(CUcontext context, uint64_t stream, uint64_t noted);

/*
 * The driver answered an error. If it is what a refused store leaves, the first time in this context, and noted launches are in flight there: a violation is
 * recorded, and in strict the process ends. A launch that is alone in flight is named; of several each is a candidate.
 */
void fault_seen(const char *api, CUresult result);

/*
 * The program has learnt, by an event or a copy that waited, that some of its work has ended: what is noted is asked for, stream by stream. So launches that ended are
 * not blamed for what comes after. Not while anything captures, which a question about a stream could break.
 */
void fault_look_around(const char *api);

/* Waits up to `ms` for the launch that was just noted to end, and looks how. */
void fault_wait(CUstream stream, const char *api, uint64_t ms);

/* The last look, before the driver is gone: waits up to `ms`. */
void fault_look_at_exit(uint64_t ms);

/* Before a context goes: waits up to `ms` for what is in flight there, since nobody can ask afterwards. `api`: the call that ends it. */
void fault_context_ends(CUcontext context, const char *api, uint64_t ms);

/* How what is in flight ends, in every context, as far as it has. `api`: the call that is about to end something. */
void fault_look_everywhere(const char *api);

/* It is gone. The next one may have the same handle. */
void fault_context_ended(CUcontext context);

/* Before a stream goes: how what was noted there ended, if it has. */
void fault_stream_ends(CUstream stream, const char *api);

/* fork child: nothing is in flight. */
void fault_postfork_child(void);

#endif
