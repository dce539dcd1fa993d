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

/*
 * Is it a launch again that was given twins? Then it is noted, and the call has its slots, with their twins, and is `again`: nothing has to be asked for them, but their
 * ranges are not held.
 */
bool memo_gives_twins(struct call *call, CUfunction function, void **params);

/*
 * Is it such a launch again? Then all that it has to leave behind is done but what follows the driver's call (judge_again()), and this thread is inside a hook. `api`: static
 * text.
 */
bool memo_passes(CUfunction function, void **params, const char *api);

#endif
