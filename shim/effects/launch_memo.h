/*
 * Launches that were judged before. Programs launch the same kernels with the same addresses again and again, and between two launches they fill the caches: so what a launch
 * of one function with these addresses came to is kept in a few cache lines, where it needs nothing but to be noted. The next such launch is answered from there.
 *
 * Kept are launches that concern no range, clean ones, those that may store beside ranges and were not due to be checked, and such as were given twins for all that they may store
 * through; never one that is checked, refused, or recorded. README.md says what an answer hangs on. Thread-safe; no lock, no allocation.
 */
#ifndef CUCONST_EFFECTS_LAUNCH_MEMO_H
#define CUCONST_EFFECTS_LAUNCH_MEMO_H

#include "shim/effects/call.h"

/* Makes the tables, with the first protection. Without memory nothing is kept. Not in two threads at a time. */
void memo_start(void);

/* The launch was judged the long way, and nothing is to be done for it; or all its slots were given twins, whatever the place that it came from. */
void memo_keep(const struct call *call, const struct function_info *info, const struct memo_draft *draft);
void memo_keep_twins(const struct call *call);

#define MEMO_SWAPS 4 /* words of a launch that are given a twin */

/* A launch again that is given twins for all that it may store through. */
struct memo_twins {
	const struct function_info *function;
	const struct kernel_paths *paths;
	size_t count, params; /* twins, and parameters of the function */
	struct memo_twin {
		uint64_t value, twin;             /* what the launch has there, and what it gets */
		registry_handle range;            /* that the value lies in; no reference is held */
		uint16_t argument, offset, bytes; /* `offset` into the argument, which has so many bytes */
	} twin[MEMO_SWAPS];
};

enum memo_how {
	MEMO_UNKNOWN, /* not such a launch: it goes the long way */
	MEMO_PASSES,  /* all is done */
	MEMO_IS_WATCHED, /* all is done before the driver's call, and this thread is inside a hook; judge_again() follows */
	MEMO_HAS_TWINS, /* nothing is done yet; memo_gives_twins() follows */
};

/* In two registers: the hook must need no memory of its own, or each launch would pay for it. */
struct memo_answer {
	struct memo_place *twins; /* where those of this launch are */
	uint32_t sequence;        /* of the place */
	enum memo_how how;
};

/* Is it such a launch again? `api`: static text. */
struct memo_answer memo_asks(CUfunction function, void **params, const char *api);

/*
 * The twins of a launch that was asked for just now; the same is done then, and judge_swapped() follows. False: the place is another launch's by now, or this one may begin before
 * the one before it has ended (`config`; NULL where the call has none); nothing is done.
 */
bool memo_gives_twins(struct memo_answer answer, const CUlaunchConfig *config, const char *api, struct memo_twins *ret);

#endif
