/*
 * Answers for given values of the parameters, on as few of them as can be: runs an analysis with all values, and where that says more than the answer for any
 * values does, leaves out one part of them after the other as long as the answer stays.
 */
#ifndef CUCONST_KERNELS_SPECIAL_H
#define CUCONST_KERNELS_SPECIAL_H

#include "shim/kernels/paths.h"

/* One run; notes in values->used what decided something, sets nothing else of it. 0 with *ret_paths filled, or a negative error. */
typedef int (*special_run)(void *ctx, struct paths_values *values, struct kernel_paths *ret_paths);

/* As paths_for_cubin(); `cost` of a run, in instructions. *ret_paths is empty where it is not better. */
int special_paths(special_run run, void *ctx, size_t cost, struct paths_values *values, struct kernel_paths *ret_paths,
                  bool *ret_better);

/* Do the two give each slot the same verdict? */
bool special_same(const struct kernel_paths *a, const struct kernel_paths *b);

#endif
