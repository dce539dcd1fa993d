/*
 * What a generated hook needs. The order in every hook: real pointer there? nothing protected, or already inside a hook? pass.
 * Else: work out the effect, judge, call down with no lock held, and only then read outputs and record.
 */
#ifndef CUCONST_DOORS_HOOK_H
#define CUCONST_DOORS_HOOK_H

#include <stdatomic.h>
#include <stdint.h>

#include "shim/driver.h"
#include "shim/effects/call.h"
#include "shim/verdict/judge.h"

#define HOOK_EXPORT __attribute__((visibility("default")))
#define HOOK_UNLIKELY(x) __builtin_expect(!!(x), 0)

/* doors/resolve.c: finds the driver, fills `drv`. True when *pointer is set afterwards. Re-entrant, lock-free. */
bool hook_open(void **pointer);

enum hook_counter { COUNT_CALL, COUNT_LAUNCH, COUNT_GRAPH_LAUNCH, COUNT_UNJUDGED, COUNT_KINDS };

/* One thread's counts: written by that thread alone, so an increment needs no locked instruction. */
struct hook_counts {
	_Atomic uint64_t of[COUNT_KINDS];
};

/* This thread's state; initial-exec, so that reaching it costs one instruction. */
struct hook_thread {
	struct hook_counts *counts; /* NULL before the first call */
	unsigned depth;             /* inside a hook: the driver called us back */
};
extern __thread struct hook_thread hook_thread __attribute__((tls_model("initial-exec")));

/* Gives this thread counts of its own; returned when the thread ends. */
struct hook_counts *hook_counts_claim(void);
/* The sum over all threads, living and dead. */
uint64_t hook_counted(enum hook_counter counter);

static inline void hook_count(enum hook_counter counter)
{
	struct hook_counts *counts = hook_thread.counts;
	if (HOOK_UNLIKELY(!counts))
		counts = hook_counts_claim();
	uint64_t value = atomic_load_explicit(&counts->of[counter], memory_order_relaxed);
	atomic_store_explicit(&counts->of[counter], value + 1, memory_order_relaxed);
}

/* Something is protected and the shim is active in this process. */
extern _Atomic bool hook_armed;
/* Nothing is tracked or judged: could not start, or a fork child of a process that used CUDA. */
extern _Atomic bool hook_disabled;

/* Nothing to judge: one relaxed load, and this thread's depth. */
static inline bool hook_idle(void)
{
	return !atomic_load_explicit(&hook_armed, memory_order_relaxed) || hook_thread.depth;
}

/* Nothing to track either. */
static inline bool hook_bypassed(void)
{
	return atomic_load_explicit(&hook_disabled, memory_order_relaxed) || hook_thread.depth;
}

/* The stream a call works in, with the default stream of its ABI made explicit (the handle 0 means two things). */
static inline CUstream hook_stream(CUstream stream, bool per_thread)
{
	return stream ? stream : per_thread ? CU_STREAM_PER_THREAD : CU_STREAM_LEGACY;
}

#endif
