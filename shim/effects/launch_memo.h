/*
 * Launches that were judged before. Programs launch the same kernels with the same addresses again and again, and between two launches they fill the caches: so what a launch
 * of one function with these addresses came to is kept in a few cache lines, where it needs nothing but to be noted. The next such launch is answered from there.
 *
 * Kept are launches that concern no range, clean ones, those that may store beside ranges and were not due to be checked, and such as were given twins for all that they may store
 * through; never one that is checked, refused, or recorded. Of functions whose code is understood only what they may store through is looked at. README.md says what an answer hangs on. Thread-safe; no lock, no allocation.
 */
#ifndef CUCONST_EFFECTS_LAUNCH_MEMO_H
#define CUCONST_EFFECTS_LAUNCH_MEMO_H

#include "shim/effects/call.h"

/* Makes the tables, with the first protection. Without memory nothing is kept. Not in two threads at a time. */
void memo_start(void);

/*
 * The launch was judged the long way, and nothing is to be done for it; or all its slots were given twins, whatever the place that it came from. memo_keep_layout(): none of that, but where the
 * function's words are holds for others, too. `asked`: its code was, just now, as memo_is_due() said.
 */
void memo_keep(const struct call *call, const struct function_info *info, const struct memo_draft *draft, bool asked);
void memo_keep_layout(const struct function_info *info, const struct memo_draft *draft, bool asked);
void memo_keep_twins(const struct call *call);

/* Were so many words of the function's launches looked at that it is time to ask the code which of them matter? */
bool memo_is_due(const struct function_info *info, uint64_t stamp);

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

/* Is it such a launch again? `api`: static text. */
enum memo_how memo_asks(CUfunction function, void **params, const char *api);

/*
 * The twins of the launch that this thread asked for just now, until its next question; what is to be done before the driver's call is done then, and judge_swapped() follows. NULL: its place is
 * another launch's by now, or this one may begin before the one before it has ended (`config`; NULL where the call has none); nothing is done.
 */
const struct memo_twins *memo_gives_twins(const CUlaunchConfig *config, const char *api);

#endif
