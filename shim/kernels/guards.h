/*
 * Which guards are alike: a number for the value that each instruction's predicate has there. Within a block equal
 * numbers are equal values, also where a predicate was moved to a register meanwhile and came back as another one.
 */
#ifndef CUCONST_KERNELS_GUARDS_H
#define CUCONST_KERNELS_GUARDS_H

#include "shim/kernels/constants.h"

#define GUARDS_UNKNOWN 0 /* like no other */

/* By instruction; only those with a guard are asked. `facts` as in taint_run(). In the program's arena. 0 or -ENOMEM. */
int guards_find(const struct program *program, const uint8_t *facts, uint32_t **ret_guards);

#endif
