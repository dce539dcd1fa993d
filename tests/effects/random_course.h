/*
 * What the programs share that take the same random course twice, by two ways: numbers that a seed decides, answers that must be right, what is told every few steps.
 */
#ifndef CUCONST_TESTS_EFFECTS_RANDOM_COURSE_H
#define CUCONST_TESTS_EFFECTS_RANDOM_COURSE_H

#include <dlfcn.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include <cuda.h>

#include "shim/cuconst.h"

#define COURSE_CANNOT 77 /* status: the driver is a real one */
#define CHECK(call)                                                                                                    \
	do {                                                                                                           \
		int result_ = (int)(call);                                                                             \
		if (result_) {                                                                                         \
			fprintf(stderr, "step %" PRIu64 ": %s: %d\n", step, #call, result_);                           \
			exit(1);                                                                                       \
		}                                                                                                      \
	} while (0)

static uint64_t step, random_state;
static CUcontext context;
static CUstream streams[3]; /* the last one is the legacy stream */

static uint32_t below(uint32_t limit)
{
	random_state = random_state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(random_state >> 33) % limit;
}

static void course_say(const char *what)
{
	struct cuconst_stats now = {.size = sizeof now};
	CHECK(cuCtxSynchronize());
	CHECK(cuconst_stats(&now));
	printf("%" PRIu64 " %s: ranges %" PRIu64 " calls %" PRIu64 " launches %" PRIu64 " checked %" PRIu64
	       " verified %" PRIu64 " violations %" PRIu64 " denied %" PRIu64 " inconclusive %" PRIu64
	       " unverified %" PRIu64 " clean %" PRIu64 " near %" PRIu64 " unknown %" PRIu64 " stores %" PRIu64 "\n",
	       step, what, now.ranges, now.calls, now.launches, now.checked, now.verified, now.violations, now.denied,
	       now.inconclusive, now.unverified, now.clean, now.near, now.unknown, now.stores);
}

/* Context and streams are there when `start` is called; each `every` steps the counters are told. The program's status. */
static int course_run(uint64_t steps, uint64_t every, void (*start)(void), void (*play)(void))
{
	CUdevice device;
	if (!dlsym(RTLD_DEFAULT, "softgpu_calls")) {
		/* Elsewhere addresses and the moments of writes differ from run to run, and a store that strays faults. */
		printf("only the software GPU takes the same course twice\n");
		return COURSE_CANNOT;
	}
	CHECK(cuInit(0));
	CHECK(cuDeviceGet(&device, 0));
	CHECK(cuDevicePrimaryCtxRetain(&context, device));
	CHECK(cuCtxSetCurrent(context));
	CHECK(cuStreamCreate(&streams[0], CU_STREAM_NON_BLOCKING));
	CHECK(cuStreamCreate(&streams[1], CU_STREAM_NON_BLOCKING));
	start();
	for (step = 1; step <= steps; step++) {
		play();
		if (step % every == 0)
			course_say("so far");
	}
	course_say("at the end");
	return 0;
}

#endif
