/*
 * Did the program, or a child of it, map the CUDA driver? Asked now and then while it runs, and only until the answer
 * is yes.
 */
#ifndef CUCONST_TOOLS_WATCH_H
#define CUCONST_TOOLS_WATCH_H

#include <stdbool.h>
#include <sys/types.h>

/*
 * True when `pid` or one of its descendants (16 at most) has libcuda.so mapped. What cannot be read counts as no: a
 * sample, not a proof. Costs about as much as reading the files of /proc it needs.
 */
bool watch_maps_cuda(pid_t pid);

#endif
