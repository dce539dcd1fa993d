/*
 * Registers of 512 bits, for what goes through rows of words. Where a machine has none there is a second way, by what each one has that runs x86-64; both come to the
 * same.
 */
#ifndef CUCONST_KERNELS_WIDE_H
#define CUCONST_KERNELS_WIDE_H

#include <stdbool.h>

/* Of a function that uses them. */
#define WIDE __attribute__((target("avx512f,avx512bw")))

/* Has the machine that this runs on such registers? Safe from any thread. */
bool wide_is_there(void);

#endif
