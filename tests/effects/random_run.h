/*
 * What the programs of random runs share: numbers that a seed decides, answers that must be right, and the library's
 * counters.
 */
#ifndef CUCONST_TESTS_EFFECTS_RANDOM_RUN_H
#define CUCONST_TESTS_EFFECTS_RANDOM_RUN_H

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "shim/cuconst.h"
#include "tests/softgpu/softgpu.h"

#define CHECK(call)                                                                                                    \
	do {                                                                                                           \
		int result_ = (int)(call);                                                                             \
		if (result_) {                                                                                         \
			fprintf(stderr, "seed %" PRIu64 ": %s: %d\n", seed, #call, result_);                           \
			exit(1);                                                                                       \
		}                                                                                                      \
	} while (0)

static uint64_t seed, random_state;

/* Of the software GPU: which bytes kernels really wrote. */
static __typeof__(&softgpu_log_writes) log_writes;
static __typeof__(&softgpu_wrote) was_written;

static uint32_t below(uint32_t limit)
{
	random_state = random_state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(random_state >> 33) % limit;
}

static struct cuconst_stats stats(void)
{
	struct cuconst_stats now = {.size = sizeof now};
	CHECK(cuconst_stats(&now));
	return now;
}

#endif
