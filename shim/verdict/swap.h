/*
 * strict: launches get the read-only twin of a protected address in its place, where the kernel may store through it. Loads are the same; a store faults, whichever kernel
 * makes it, and nothing has to be compared afterwards.
 */
#ifndef CUCONST_VERDICT_SWAP_H
#define CUCONST_VERDICT_SWAP_H

#include <stdbool.h>

struct call;
struct range;

/*
 * Before a launch whose slots are known: replaces call->params or call->extra by a copy with twins in it, and marks the slots. What cannot be swapped stays. False: nothing was
 * swapped. The copy lives until call_end(). No driver call.
 */
bool swap_slots(struct call *call);

/* The same for a launch that has its twins already (call->again): they go into a copy of its parameters, which fits into the call. */
void swap_again(struct call *call);

/* Was every slot through which the launch may reach this range swapped? Then the hardware guards it. */
bool swap_guards(const struct call *call, const struct range *range);

#endif
