/* Read-only views: the C API of ../cuconst.h for them, and what twins tell. */
#ifndef CUCONST_VERDICT_VIEW_H
#define CUCONST_VERDICT_VIEW_H

#include <stdint.h>

/* Call once, after protect_start(): from here on twins are followed, by the option. */
void view_start(void);

/*
 * A range was protected whose kernels' arguments are to be swapped: makes its twin, so that no launch has to. Where there can be none, its kernels are
 * verified; when that is for want of room, it is said once. Needs a current context.
 */
void view_prepare_swap(uint64_t start, uint64_t bytes);

#endif
