/*
 * Launches of one function from several host threads at a time, each on several more. A plain program, so that it
 * runs under the thread sanitizer.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/softgpu/tests/ptx_rig.h"

#define CALLERS 4u
#define LAUNCHES 20u

static const char *const text =
	".version 8.0\n.target sm_90\n.address_size 64\n"
	".entry k(.param .u64 sum, .param .u64 most, .param .u64 plain) { .reg .b32 %r<8>; .reg .b64 %d<8>; .shared .b32 s[64];\n"
	"ld.param.u64 %d1, [sum]; ld.param.u64 %d2, [most]; ld.param.u64 %d3, [plain]; mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x;\n"
	"shl.b32 %r3, %r1, 2; mov.u32 %r4, s; add.u32 %r3, %r3, %r4; st.shared.u32 [%r3], %r1; bar.sync 0;\n"
	"red.shared.add.u32 [s], 1; bar.sync 0; ld.shared.u32 %r5, [s];\n"
	"cvt.u64.u32 %d4, %r5; red.global.add.u64 [%d1], %d4; mad.lo.u32 %r6, %r2, 64, %r1; atom.global.max.u32 %r7, [%d2], %r6;\n"
	/* Every block stores the same here, on purpose. */
	"st.global.u32 [%d3], 77; membar.sys; ret; }";

static struct rig rig;
static uint64_t sum, most, plain;

static void *call(void *data)
{
	uintptr_t failed = 0;
	const struct ptx_function *function = ptx_find(rig.module, "k");

	for (unsigned n = 0; n < LAUNCHES; n++) {
		const uint64_t params[] = {sum, most, plain};
		struct ptx_launch launch = {.grid = {7, 1, 1},
		                            .block = {64, 1, 1},
		                            .params = params,
		                            .params_bytes = sizeof(params),
		                            .host_threads = 3};
		struct ptx_fault fault;

		if (ptx_run(function, &launch, &fault) != PTX_OK) {
			fprintf(stderr, "%s\n", fault.message);
			failed++;
		}
	}
	return (void *)failed;
}

int main(void)
{
	pthread_t callers[CALLERS];
	uintptr_t failed = 0;

	rig_create(&rig);
	if (rig_load(&rig, text) != PTX_OK) {
		fprintf(stderr, "%s\n", rig.log);
		return 1;
	}
	sum = rig_alloc(&rig, 8);
	most = rig_alloc(&rig, 4);
	plain = rig_alloc(&rig, 4);
	for (unsigned n = 0; n < CALLERS; n++)
		if (pthread_create(&callers[n], NULL, call, NULL))
			return 1;
	for (unsigned n = 0; n < CALLERS; n++) {
		void *result;

		pthread_join(callers[n], &result);
		failed += (uintptr_t)result;
	}
	uint64_t expected = UINT64_C(64) * 64 * 7 * LAUNCHES * CALLERS;
	if (*RIG_AT(uint64_t, sum) != expected || *RIG_AT(uint32_t, most) != 7 * 64 - 1 ||
	    *RIG_AT(uint32_t, plain) != 77) {
		fprintf(stderr, "sum %llu, not %llu; most %u; plain %u\n", (unsigned long long)*RIG_AT(uint64_t, sum),
		        (unsigned long long)expected, *RIG_AT(uint32_t, most), *RIG_AT(uint32_t, plain));
		failed++;
	}
	rig_destroy(&rig);
	return failed != 0;
}
