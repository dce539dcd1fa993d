/*
 * Thread-instructions a second and core, for loops of the kinds that matter. Prints one line for each; fails below
 * the floor.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "tests/softgpu/tests/ptx_rig.h"

#define HEAD ".version 8.0\n.target sm_80\n.address_size 64\n"
#define ROUNDS 20000u
/* A loop of count instructions around the body's. */
#define LOOP(body)                                                                                                                               \
	HEAD ".entry k(.param .u64 p) { .reg .b32 %r<16>; .reg .b64 %d<9>; .reg .f32 %f<9>; .reg .pred %p<4>; .shared .b32 s[1024];"             \
	     "ld.param.u64 %d1, [p]; mov.u32 %r1, %tid.x; mul.wide.u32 %d2, %r1, 4; add.u64 %d1, %d1, %d2; shl.b32 %r3, %r1, 2; mov.u32 %r2, 0;" \
	     "mov.f32 %f1, 0f3F800000; mov.u64 %d3, %d1; mov.u32 %r9, s; add.u32 %r3, %r3, %r9;"                                                 \
	     "again: " body                                                                                                                      \
	     " add.u32 %r2, %r2, 1; setp.lt.u32 %p1, %r2, 20000; @%p1 bra again; st.global.u32 [%d1], %r4; }"

static const struct {
	const char *name, *text;
	unsigned instructions, threads;
} loops[] = {
	{"integer",
         LOOP("add.u32 %r4, %r4, %r1; xor.b32 %r5, %r4, %r2; mad.lo.u32 %r6, %r5, %r4, 7; shl.b32 %r7, %r6, 3;"), 7, 256},
	{"float",
         LOOP("fma.rn.f32 %f2, %f1, %f1, %f2; add.f32 %f3, %f2, %f1; mul.f32 %f4, %f3, %f1; max.f32 %f5, %f4, %f3;"), 7,
         256},
	{"hash64",
         LOOP("mul.wide.u32 %d4, %r2, 77; mad.lo.u64 %d5, %d5, 31, %d4; shr.u64 %d6, %d5, 29; xor.b64 %d5, %d5, %d6;"),
         7, 256},
	{"global", LOOP("ld.global.u32 %r4, [%d1]; add.u32 %r4, %r4, 1; st.global.u32 [%d1], %r4;"), 6, 256},
	{"shared", LOOP("ld.shared.u32 %r4, [%r3]; add.u32 %r4, %r4, 1; st.shared.u32 [%r3], %r4;"), 6, 256},
	{"shuffle", LOOP("shfl.sync.bfly.b32 %r5, %r4, 1, 31, -1; add.u32 %r4, %r5, %r1;"), 5, 256},
	{"divergent",
         LOOP("and.b32 %r5, %r1, 3; setp.eq.u32 %p2, %r5, 0; @%p2 bra other; add.u32 %r4, %r4, 1; other: add.u32 %r4, %r4, 2;"),
         8, 256},
	{"one thread",
         LOOP("add.u32 %r4, %r4, %r1; xor.b32 %r5, %r4, %r2; mad.lo.u32 %r6, %r5, %r4, 7; shl.b32 %r7, %r6, 3;"), 7, 1},
};

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

int main(void)
{
	const double floor_rate = 30e6;
	int failed = 0;

	for (size_t n = 0; n < sizeof(loops) / sizeof(loops[0]); n++) {
		struct rig rig;
		double best = 1e9;

		rig_create(&rig);
		rig.host_threads = 1;
		if (rig_load(&rig, loops[n].text) != PTX_OK) {
			fprintf(stderr, "%s: %s\n", loops[n].name, rig.log);
			return 1;
		}
		uint64_t data = rig_alloc(&rig, 4096);
		for (int repeat = 0; repeat < 3; repeat++) {
			double start = now();

			if (RIG_RUN(&rig, "k", 1, loops[n].threads, 0, data) != PTX_OK) {
				fprintf(stderr, "%s: %s\n", loops[n].name, rig.fault.message);
				return 1;
			}
			double time = now() - start;
			best = time < best ? time : best;
		}
		double rate = (double)loops[n].instructions * ROUNDS * loops[n].threads / best;
		/* One lane of 32 at work is not what the floor is about. */
		bool counts = loops[n].threads >= 32;
		printf("%-12s %8.1f million thread-instructions a second%s\n", loops[n].name, rate * 1e-6,
		       counts && rate < floor_rate ? "  BELOW THE FLOOR" : "");
		failed |= counts && rate < floor_rate;
		rig_destroy(&rig);
	}
	return failed;
}
