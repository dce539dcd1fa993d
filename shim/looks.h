/*
 * Looks at protected bytes, and which launches were made after one. A look is a check, or the moment at which a range is protected: what the next one finds changed was written by a launch
 * in between. Launches do not number themselves, which would be a locked instruction for each: those that are noted take the number of the last look, and count themselves roughly.
 * A leaf: every folder of shim/ may include it. Thread-safe, no lock.
 */
#ifndef CUCONST_LOOKS_H
#define CUCONST_LOOKS_H

#include "shim/hook_state.h"

struct look {
	uint64_t number;   /* 0: before the first */
	uint64_t launches; /* of kernels and graphs, that this process had made until then */
};

/* The next one, now. A launch that comes between may be one of the later ones and not be counted for them, never the other way round. */
static inline struct look look_next(void)
{
	uint64_t launches = hook_counted(COUNT_LAUNCH) + hook_counted(COUNT_GRAPH_LAUNCH);
	uint64_t number = atomic_fetch_add_explicit(&hook_line.looks, 1, memory_order_relaxed) + 1;
	atomic_store_explicit(&hook_line.noted, 0, memory_order_relaxed);
	return (struct look){number, launches};
}

/* Launches between two looks; of `behind` itself are not counted so many. */
static inline uint64_t look_launches(struct look before, struct look behind, uint64_t own)
{
	return behind.launches > before.launches + own ? behind.launches - before.launches - own : 0;
}

/*
 * The time of a launch that is made now: looks in the upper bits, launches since then in the lower ones. Which look came before is certain. Of the latter, two that come at once may get the same number, or one of
 * them an earlier one: they say in which order launches are told. Never 0.
 */
#define LOOK_SHIFT 24

static inline uint64_t look_launch_time(void)
{
	uint64_t looks = atomic_load_explicit(&hook_line.looks, memory_order_relaxed) + 1;
	uint64_t noted = atomic_load_explicit(&hook_line.noted, memory_order_relaxed) + 1;
	noted -= noted >> LOOK_SHIFT; /* the last one stays */
	atomic_store_explicit(&hook_line.noted, noted, memory_order_relaxed);
	return looks << LOOK_SHIFT | noted;
}

/* Launches that were made after the look have later times than this, others have not. */
static inline uint64_t look_time(struct look look)
{
	return ((look.number + 1) << LOOK_SHIFT) - 1;
}

#endif
