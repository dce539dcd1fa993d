/*
 * strict: launches get the read-only twin of a protected address in its place, where the kernel may store through it. Loads are the same; a store faults, whichever kernel
 * makes it, and nothing has to be compared afterwards.
 */
#ifndef CUCONST_VERDICT_SWAP_H
#define CUCONST_VERDICT_SWAP_H

#include <stdbool.h>

#include "shim/effects/call.h"

struct memo_twins;
struct range;

/*
 * Before a launch whose slots are known: replaces call->params or call->extra by a copy with twins in it, and marks the slots. What cannot be swapped stays. False: nothing was
 * swapped. The copy lives until call_end(). No driver call.
 */
bool swap_slots(struct call *call);

/* The same for a launch again (memo_asks()). `room`: SWAP_ROOM bytes, aligned to 16, which the list that it returns points into, as it does into *twins. */
#define SWAP_ROOM CALL_INLINE_COPY
void **swap_again(const struct memo_twins *twins, void **params, char *room);

/* Was every slot through which the launch may reach this range swapped? Then the hardware guards it. */
bool swap_guards(const struct call *call, const struct range *range);

#endif
