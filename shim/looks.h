/*
 * Looks at protected bytes, and which launches were made after one. A look is a check, or the moment at which a range is protected: what the next one finds changed was written by a launch
 * in between. Launches do not number themselves, which would be a locked instruction for each: they take the number of the last look, and the count of their own thread's.
 * A leaf: every folder of shim/ may include it. Thread-safe, no lock.
 */
#ifndef CUCONST_LOOKS_H
#define CUCONST_LOOKS_H

#include "shim/hook_state.h"

struct look {
	uint64_t number;   /* 0: before the first */
	uint64_t launches; /* of kernels and graphs, that this process had made until then */
};

/* The next one, now. */
static inline struct look look_next(void)
{
	uint64_t number = atomic_fetch_add_explicit(&hook_line.looks, 1, memory_order_relaxed) + 1;
	return (struct look){number, hook_counted(COUNT_LAUNCH) + hook_counted(COUNT_GRAPH_LAUNCH)};
}

/* Launches between two looks; of `behind` itself are not counted so many. */
static inline uint64_t look_launches(struct look before, struct look behind, uint64_t own)
{
	return behind.launches > before.launches + own ? behind.launches - before.launches - own : 0;
}

/* The upper bits of a launch's time count looks, the lower ones its thread's launches: of two threads' launches between the same looks nobody knows which was first. */
#define LOOK_SHIFT 24

/* The time of a launch that is made now, by the thread with these counts. Never 0. */
static inline uint64_t look_launch_time(const struct hook_counts *counts)
{
	uint64_t looks = atomic_load_explicit(&hook_line.looks, memory_order_relaxed) + 1;
	uint64_t launches = atomic_load_explicit(&counts->of[COUNT_LAUNCH], memory_order_relaxed);
	return looks << LOOK_SHIFT | (launches & ((UINT64_C(1) << LOOK_SHIFT) - 1));
}

/* The same, by this thread. */
static inline uint64_t look_own_time(void)
{
	const struct hook_counts *counts = hook_thread.counts;
	return look_launch_time(counts ? counts : &hook_counts_shared);
}

/* Launches that were made after the look have later times than this, others have not. */
static inline uint64_t look_time(struct look look)
{
	return ((look.number + 1) << LOOK_SHIFT) - 1;
}

#endif
