/* What ends a launch early, what a text that is wrong is told, and how threads wait for each other. */
#include <criterion/criterion.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "tests/softgpu/tests/ptx_rig.h"

#define HEAD ".version 8.0\n.target sm_90\n.address_size 64\n"
/* The body is on line 5. */
#define KERNEL(body)                                                                                                                         \
	HEAD ".visible .entry k(.param .u64 p, .param .u64 q) { .reg .b32 %r<9>; .reg .b64 %d<9>; .reg .pred %p<9>; ld.param.u64 %d1, [p]; " \
	     "ld.param.u64 %d2, [q]; mov.u32 %r1, %tid.x;\n" body "\n}\n"

static struct rig rig;

static void load(const char *text)
{
	rig_create(&rig);
	enum ptx_status status = rig_load(&rig, text);
	cr_assert_eq(status, PTX_OK, "%d: %s", status, rig.log);
}

static enum ptx_status run(unsigned grid, unsigned block, uint64_t p, uint64_t q)
{
	return RIG_RUN(&rig, "k", grid, block, 0, p, q);
}

Test(ptx_faults, address_outside, .timeout = 10)
{
	load(KERNEL("mul.wide.u32 %d3, %r1, 4; add.u64 %d3, %d1, %d3; st.global.u32 [%d3], %r1; ret;"));
	uint64_t out = rig_alloc(&rig, 40);
	cr_assert_eq(run(1, 11, out, 0), PTX_FAULT_ADDRESS);
	cr_assert_eq(rig.fault.address, out + 40);
	cr_assert_eq(rig.fault.line, 5);
	cr_assert_not_null(strstr(rig.fault.message, "thread (10,0,0)"), "%s", rig.fault.message);
	/* Nothing of the faulting instruction was stored. */
	cr_assert_eq(RIG_AT(uint32_t, out)[1], 0);
	cr_assert_eq(rig.wrote_calls, 0);
	cr_assert_eq(run(1, 10, out, 0), PTX_OK);
	cr_assert_eq(RIG_AT(uint32_t, out)[9], 9);
	cr_assert_eq(rig.wrote_bytes, 40);
	rig_destroy(&rig);
}

Test(ptx_faults, neighbouring_allocations, .timeout = 10)
{
	/* The lanes' bytes are one run, but two allocations: neither is enough for all, both are. */
	load(KERNEL("mul.wide.u32 %d3, %r1, 4; add.u64 %d3, %d1, %d3; st.global.u32 [%d3], %r1; ret;"));
	uint64_t out = rig_alloc(&rig, 128);
	rig_alloc(&rig, 64);
	rig.ranges[rig.range_count - 2].end = out + 64;
	rig.ranges[rig.range_count - 1] = (struct rig_range){out + 64, out + 128, false};
	cr_assert_eq(run(1, 32, out, 0), PTX_OK, "%s", rig.fault.message);
	for (unsigned i = 0; i < 32; i++)
		cr_assert_eq(RIG_AT(uint32_t, out)[i], i);
	rig_read_only(&rig, out + 64);
	cr_assert_eq(run(1, 32, out, 0), PTX_FAULT_ADDRESS);
	cr_assert_eq(rig.fault.address, out + 64);
	rig_destroy(&rig);
}

Test(ptx_faults, stores_without_a_listener, .timeout = 10)
{
	rig_create(&rig);
	rig.memory.wrote = NULL;
	cr_assert_eq(rig_load(&rig, KERNEL("st.global.u32 [%d1], 5; red.global.add.u32 [%d1], 1; ret;")), PTX_OK);
	uint64_t out = rig_alloc(&rig, 4);
	cr_assert_eq(run(1, 1, out, 0), PTX_OK);
	cr_assert_eq(*RIG_AT(uint32_t, out), 6);
	cr_assert_eq(rig.wrote_calls, 0);
	rig_destroy(&rig);
}

Test(ptx_faults, null_and_wild, .timeout = 10)
{
	static const uint64_t wild[] = {0, 8, UINT64_MAX & ~UINT64_C(7), UINT64_C(1) << 63, 0xdead0000};

	load(KERNEL("ld.global.u64 %d3, [%d1]; ret;"));
	for (size_t n = 0; n < sizeof(wild) / sizeof(wild[0]); n++) {
		cr_assert_eq(run(1, 1, wild[n], 0), PTX_FAULT_ADDRESS);
		cr_assert_eq(rig.fault.address, wild[n]);
	}
	rig_destroy(&rig);
}

Test(ptx_faults, read_only, .timeout = 10)
{
	load(KERNEL(
		"ld.global.u32 %r2, [%d1]; setp.ne.u64 %p1, %d2, 0; @%p1 bra store; @!%p1 bra end; store: st.global.u32 [%d1], 7; end: ret;"));
	uint64_t data = rig_alloc(&rig, 4);
	rig_read_only(&rig, data);
	cr_assert_eq(run(1, 1, data, 0), PTX_OK);
	cr_assert_eq(run(1, 1, data, 1), PTX_FAULT_ADDRESS);
	cr_assert_eq(*RIG_AT(uint32_t, data), 0);
	rig_destroy(&rig);
}

Test(ptx_faults, read_only_atomics, .timeout = 10)
{
	static const char *const bodies[] = {
		KERNEL("atom.global.add.u32 %r2, [%d1], 1; ret;"),
		KERNEL("red.global.max.u32 [%d1], 1; ret;"),
		KERNEL("atom.cas.b32 %r2, [%d1], 0, 1; ret;"),
		KERNEL("st.volatile.u32 [%d1], 1; ret;"),
	};

	for (size_t n = 0; n < sizeof(bodies) / sizeof(bodies[0]); n++) {
		load(bodies[n]);
		uint64_t data = rig_alloc(&rig, 4);
		rig_read_only(&rig, data);
		cr_assert_eq(run(1, 1, data, 0), PTX_FAULT_ADDRESS, "%zu", n);
		cr_assert_eq(*RIG_AT(uint32_t, data), 0);
		rig_destroy(&rig);
	}
}

Test(ptx_faults, misaligned, .timeout = 10)
{
	load(KERNEL("ld.global.v4.u32 {%r2, %r3, %r4, %r5}, [%d1]; ret;"));
	uint64_t data = rig_alloc(&rig, 64);
	cr_assert_eq(run(1, 1, data, 0), PTX_OK);
	cr_assert_eq(run(1, 1, data + 4, 0), PTX_FAULT_ALIGN);
	cr_assert_eq(rig.fault.address, data + 4);
	rig_destroy(&rig);
}

Test(ptx_faults, shared_and_local_bounds, .timeout = 10)
{
	static const char *const bodies[] = {
		KERNEL(".shared .b32 s[4]; st.shared.u32 [s+16], 1; ret;"),
		KERNEL(".local .b32 l[4]; st.local.u32 [l+16], 1; ret;"),
		KERNEL(".shared .b32 s[4]; st.shared.u32 [s+-4], 1; ret;"),
		KERNEL(".shared .b32 s[4]; mov.u32 %r2, 0xfffffffc; st.shared.u32 [%r2], 1; ret;"),
		KERNEL("ld.param.u64 %d3, [p+16]; ret;"),
		KERNEL("ld.shared.u32 %r2, [0]; ret;"),
		KERNEL(".shared .b32 s[4]; cvta.shared.u64 %d3, s; st.u32 [%d3+16], 1; ret;"),
	};

	for (size_t n = 0; n < sizeof(bodies) / sizeof(bodies[0]); n++) {
		load(bodies[n]);
		cr_assert_eq(run(1, 1, 0, 0), PTX_FAULT_ADDRESS, "%zu", n);
		rig_destroy(&rig);
	}
}

Test(ptx_faults, async_copies_check_only_what_they_read, .timeout = 10)
{
	load(KERNEL(
		".shared .align 16 .b32 s[4]; cvt.u32.u64 %r3, %d2; cp.async.cg.shared.global [s], [%d1], 16, %r3; cp.async.wait_all;"
		"ld.shared.v2.u32 {%r4, %r5}, [s]; setp.eq.u32 %p1, %r3, 0; @!%p1 st.global.v2.u32 [%d1], {%r5, %r4}; ret;"));
	uint64_t data = rig_alloc(&rig, 8);
	RIG_AT(uint32_t, data)[0] = 1;
	RIG_AT(uint32_t, data)[1] = 2;
	cr_assert_eq(run(1, 1, 16, 0), PTX_OK, "%s", rig.fault.message);
	cr_assert_eq(run(1, 1, 16, 4), PTX_FAULT_ADDRESS);
	cr_assert_eq(run(1, 1, data, 16), PTX_FAULT_ADDRESS);
	cr_assert_eq(run(1, 1, data + 4, 4), PTX_FAULT_ALIGN);
	cr_assert_eq(run(1, 1, data, 4), PTX_OK, "%s", rig.fault.message);
	cr_assert_eq(RIG_AT(uint32_t, data)[0], 0);
	cr_assert_eq(RIG_AT(uint32_t, data)[1], 1);
	rig_destroy(&rig);
}

Test(ptx_faults, limit, .timeout = 20)
{
	load(KERNEL("again: bra again;"));
	rig.limit = 100000;
	cr_assert_eq(run(1, 1, 0, 0), PTX_FAULT_LIMIT);
	cr_assert_eq(run(8, 64, 0, 0), PTX_FAULT_LIMIT);
	rig_destroy(&rig);
}

Test(ptx_faults, endless_recursion, .timeout = 20)
{
	load(HEAD ".func f() { call f; ret; } .entry k(.param .u64 p, .param .u64 q) { call f; ret; }");
	cr_assert_eq(run(1, 32, 0, 0), PTX_FAULT_LIMIT);
	rig_destroy(&rig);
	load(HEAD ".func f() { .local .b8 big[8192]; st.local.u8 [big], 1; call f; ret; }"
	          ".entry k(.param .u64 p, .param .u64 q) { call f; ret; }");
	cr_assert_eq(run(1, 32, 0, 0), PTX_FAULT_LIMIT);
	cr_assert_not_null(strstr(rig.fault.message, "stack"), "%s", rig.fault.message);
	rig_destroy(&rig);
}

Test(ptx_faults, barrier_divergence, .timeout = 20)
{
	static const char *const bodies[] = {
		KERNEL("setp.eq.u32 %p1, %r1, 0; @%p1 bar.sync 0; @!%p1 bar.sync 1; ret;"),
		KERNEL("bar.sync 1, 128; ret;"),
		KERNEL("setp.eq.u32 %p1, %r1, 0; @%p1 bra wait; bar.sync 0; ret; wait: bar.warp.sync 3; ret;"),
		KERNEL("bar.sync 16; ret;"),
		KERNEL("bar.sync 1, 33; ret;"),
	};

	for (size_t n = 0; n < sizeof(bodies) / sizeof(bodies[0]); n++) {
		load(bodies[n]);
		cr_assert_eq(run(1, 64, 0, 0), PTX_FAULT_BARRIER, "%zu", n);
		cr_assert_eq(rig.fault.line, 5);
		rig_destroy(&rig);
	}
}

Test(ptx_faults, trap, .timeout = 10)
{
	load(KERNEL("setp.eq.u32 %p1, %r1, 33; @%p1 trap; ret;"));
	cr_assert_eq(run(1, 33, 0, 0), PTX_OK);
	cr_assert_eq(run(4, 64, 0, 0), PTX_FAULT_TRAP);
	rig_destroy(&rig);
}

Test(ptx_faults, launch_shapes, .timeout = 10)
{
	static const struct {
		uint32_t grid[3], block[3], shared;
		size_t bytes;
	} bad[] = {
		{{0, 1, 1}, {1, 1, 1}, 0, 16},
		{{1, 1, 1}, {1, 0, 1}, 0, 16},
		{{1, 65536, 1}, {1, 1, 1}, 0, 16},
		{{1, 1, 1}, {1025, 1, 1}, 0, 16},
		{{1, 1, 1}, {1, 1, 65}, 0, 16},
		{{1, 1, 1}, {64, 32, 1}, 0, 16},
		{{1, 1, 1}, {1, 1, 1}, 232449, 16},
		{{1, 1, 1}, {1, 1, 1}, 0, 15},
		{{1, 1, 1}, {UINT32_MAX, UINT32_MAX, 1}, 0, 16},
		{{1, 1, 1}, {1, 1, 1}, UINT32_MAX, 16},
		{{UINT32_MAX, 1, 1}, {1, 1, 1}, 0, 16},
	};
	uint64_t params[2] = {0};

	load(KERNEL("ret;"));
	for (size_t n = 0; n < sizeof(bad) / sizeof(bad[0]); n++) {
		struct ptx_launch launch = {.shared_bytes = bad[n].shared, .params = params, .params_bytes = bad[n].bytes};
		memcpy(launch.grid, bad[n].grid, sizeof(launch.grid));
		memcpy(launch.block, bad[n].block, sizeof(launch.block));
		cr_assert_eq(ptx_run(ptx_find(rig.module, "k"), &launch, &rig.fault), PTX_BAD_LAUNCH, "%zu", n);
		cr_assert_eq(ptx_run(ptx_find(rig.module, "k"), &launch, NULL), PTX_BAD_LAUNCH, "%zu", n);
	}
	rig_destroy(&rig);
	load(HEAD ".entry k() .reqntid 32, 2 { ret; } .entry m() .maxntid 64 { ret; }");
	cr_assert_eq(rig_run(&rig, "k", 1, 64, 0, NULL, 0), PTX_BAD_LAUNCH);
	cr_assert_eq(rig_run(&rig, "m", 1, 65, 0, NULL, 0), PTX_BAD_LAUNCH);
	cr_assert_eq(rig_run(&rig, "m", 1, 64, 0, NULL, 0), PTX_OK);
	rig_destroy(&rig);
}

Test(ptx_waits, barriers_order_stores, .timeout = 20)
{
	/* 256 threads pass a value around by shared memory, 16 rounds; and a reduction at a barrier. */
	load(HEAD
	     ".entry k(.param .u64 p) { .reg .b32 %r<12>; .reg .b64 %d<4>; .reg .pred %p<3>; .shared .b32 s[256];\n"
	     "ld.param.u64 %d1, [p]; mov.u32 %r1, %tid.x; shl.b32 %r2, %r1, 2; mov.u32 %r3, s; add.u32 %r3, %r3, %r2; mov.u32 %r4, %r1;\n"
	     "add.u32 %r5, %r1, 33; and.b32 %r5, %r5, 255; shl.b32 %r5, %r5, 2; mov.u32 %r6, s; add.u32 %r5, %r5, %r6; mov.u32 %r7, 0;\n"
	     "loop: st.shared.u32 [%r3], %r4; bar.sync 0; ld.shared.u32 %r4, [%r5]; barrier.sync.aligned 0; add.u32 %r7, %r7, 1;\n"
	     "setp.lt.u32 %p1, %r7, 16; @%p1 bra loop;\n"
	     "and.b32 %r8, %r4, 1; setp.eq.u32 %p2, %r8, 1; bar.red.popc.u32 %r8, 0, %p2; add.u32 %r4, %r4, %r8;\n"
	     "mul.wide.u32 %d2, %r1, 4; add.u64 %d1, %d1, %d2; st.global.u32 [%d1], %r4; }");
	uint64_t out = rig_alloc(&rig, 1024);
	cr_assert_eq(RIG_RUN(&rig, "k", 1, 256, 0, out), PTX_OK, "%s", rig.fault.message);
	for (unsigned i = 0; i < 256; i++)
		cr_assert_eq(RIG_AT(uint32_t, out)[i], ((i + 16 * 33) & 255) + 128);
	rig_destroy(&rig);
}

Test(ptx_waits, exited_threads_do_not_hold_a_barrier, .timeout = 10)
{
	load(KERNEL("setp.ge.u32 %p1, %r1, 40; @%p1 exit; bar.sync 0; red.global.add.u32 [%d1], 1; ret;"));
	uint64_t out = rig_alloc(&rig, 4);
	cr_assert_eq(run(1, 96, out, 0), PTX_OK, "%s", rig.fault.message);
	cr_assert_eq(*RIG_AT(uint32_t, out), 40);
	rig_destroy(&rig);
}

Test(ptx_waits, arrive_and_sync, .timeout = 10)
{
	/* The second warp produces, the first waits: 64 threads, of which 32 only arrive. */
	load(KERNEL(
		".shared .b32 s; setp.ge.u32 %p1, %r1, 32; @%p1 bra producer; bar.sync 1, 64; ld.shared.u32 %r2, [s];"
		"setp.eq.u32 %p2, %r1, 0; @%p2 st.global.u32 [%d1], %r2; ret; producer: st.shared.u32 [s], 42; bar.arrive 1, 64; ret;"));
	uint64_t out = rig_alloc(&rig, 4);
	cr_assert_eq(run(1, 64, out, 0), PTX_OK, "%s", rig.fault.message);
	cr_assert_eq(*RIG_AT(uint32_t, out), 42);
	rig_destroy(&rig);
}

Test(ptx_waits, shuffles_votes_and_matches, .timeout = 10)
{
	load(HEAD
	     ".entry k(.param .u64 p) { .reg .b32 %r<20>; .reg .b64 %d<4>; .reg .pred %p<6>;\n"
	     "ld.param.u64 %d1, [p]; mov.u32 %r1, %laneid; mul.wide.u32 %d2, %r1, 48; add.u64 %d1, %d1, %d2;\n"
	     "shfl.sync.up.b32 %r2|%p1, %r1, 3, 0, -1; st.global.u32 [%d1], %r2; selp.u32 %r3, 1, 0, %p1; st.global.u32 [%d1+4], %r3;\n"
	     "shfl.sync.down.b32 %r2, %r1, 5, 0x181f, -1; st.global.u32 [%d1+8], %r2;\n"
	     "shfl.sync.bfly.b32 %r2, %r1, 16, 31, -1; st.global.u32 [%d1+12], %r2;\n"
	     "shfl.sync.idx.b32 %r2, %r1, 9, 0x1c1f, -1; st.global.u32 [%d1+16], %r2;\n"
	     "setp.lt.u32 %p2, %r1, 5; vote.sync.ballot.b32 %r2, %p2, -1; st.global.u32 [%d1+20], %r2;\n"
	     "vote.sync.any.pred %p3, %p2, -1; vote.sync.all.pred %p4, !%p2, -1; selp.u32 %r2, 1, 0, %p3; selp.u32 %r3, 2, 0, %p4;\n"
	     "or.b32 %r2, %r2, %r3; st.global.u32 [%d1+24], %r2;\n"
	     "and.b32 %r4, %r1, 3; match.any.sync.b32 %r2, %r4, -1; st.global.u32 [%d1+28], %r2;\n"
	     "redux.sync.add.s32 %r2, %r1, -1; st.global.u32 [%d1+32], %r2; redux.sync.max.u32 %r2, %r1, -1; st.global.u32 [%d1+36], %r2;\n"
	     /* Only the odd lanes come here, with their own mask. */
	     "and.b32 %r5, %r1, 1; setp.eq.u32 %p5, %r5, 0; @%p5 bra end; activemask.b32 %r6; st.global.u32 [%d1+40], %r6;\n"
	     "elect.sync %r7|%p1, 0xaaaaaaaa; selp.u32 %r8, 100, 0, %p1; add.u32 %r7, %r7, %r8; st.global.u32 [%d1+44], %r7; end: ret; }");
	uint64_t out = rig_alloc(&rig, 32 * 48);
	cr_assert_eq(RIG_RUN(&rig, "k", 1, 32, 0, out), PTX_OK, "%s", rig.fault.message);
	for (uint32_t i = 0; i < 32; i++) {
		const uint32_t *got = RIG_AT(uint32_t, out) + i * 12;
		const uint32_t expected[12] = {i >= 3 ? i - 3 : i,
		                               i >= 3,
		                               (i & 7) + 5 <= 7 ? i + 5 : i,
		                               i ^ 16,
		                               (i & 28) | (9 & 3),
		                               31,
		                               1,
		                               0x11111111u << (i & 3),
		                               496,
		                               31,
		                               i & 1 ? 0xaaaaaaaa : 0,
		                               i & 1 ? (i == 1 ? 101u : 1u) : 0};
		for (unsigned n = 0; n < 12; n++)
			cr_expect_eq(got[n], expected[n], "lane %u, %u: %x, not %x", i, n, got[n], expected[n]);
	}
	rig_destroy(&rig);
}

Test(ptx_waits, shuffle_across_divergence, .timeout = 10)
{
	/* Half of the warp takes a detour through a call; all meet at the shuffle inside another call. */
	load(HEAD
	     ".func (.param .b32 r) twist(.param .b32 x) { .reg .b32 %r<4>; ld.param.b32 %r1, [x]; shfl.sync.bfly.b32 %r2, %r1, 1, 31, -1;"
	     "st.param.b32 [r], %r2; ret; }\n"
	     ".entry k(.param .u64 p) { .reg .b32 %r<8>; .reg .b64 %d<4>; .reg .pred %p<3>; ld.param.u64 %d1, [p]; mov.u32 %r1, %tid.x;\n"
	     "and.b32 %r2, %r1, 1; setp.eq.u32 %p1, %r2, 0; mov.u32 %r3, 0; @%p1 bra join;\n"
	     "slow: add.u32 %r3, %r3, 1; setp.lt.u32 %p2, %r3, 50; @%p2 bra slow;\n"
	     "join: add.u32 %r3, %r3, %r1; { .param .b32 a; .param .b32 b; st.param.b32 [a], %r3; call (b), twist, (a); ld.param.b32 %r4, [b]; }\n"
	     "mul.wide.u32 %d2, %r1, 4; add.u64 %d1, %d1, %d2; st.global.u32 [%d1], %r4; }");
	uint64_t out = rig_alloc(&rig, 128);
	cr_assert_eq(RIG_RUN(&rig, "k", 1, 32, 0, out), PTX_OK, "%s", rig.fault.message);
	for (uint32_t i = 0; i < 32; i++)
		cr_assert_eq(RIG_AT(uint32_t, out)[i], (i ^ 1) + ((i ^ 1) & 1 ? 50 : 0));
	rig_destroy(&rig);
}

Test(ptx_waits, warps_spin_on_each_other, .timeout = 20)
{
	/* Warp 0 waits for a flag in memory that the last warp sets. */
	load(KERNEL("setp.ge.u32 %p1, %r1, 96; @%p1 st.volatile.global.u32 [%d1], 1; @%p1 ret;\n"
	            "wait: ld.volatile.global.u32 %r2, [%d1]; setp.eq.u32 %p2, %r2, 0; @%p2 bra wait; ret;"));
	uint64_t flag = rig_alloc(&rig, 4);
	cr_assert_eq(run(1, 128, flag, 0), PTX_OK, "%s", rig.fault.message);
	rig_destroy(&rig);
}

static void *raise_flag(void *data)
{
	uint32_t *flag = data;

	while (!__atomic_load_n(&flag[1], __ATOMIC_ACQUIRE))
		;
	__atomic_store_n(&flag[0], 1, __ATOMIC_RELEASE);
	return NULL;
}

Test(ptx_waits, kernel_and_host_talk, .timeout = 20)
{
	pthread_t host;

	load(KERNEL("st.release.sys.global.u32 [%d1+4], 1; membar.sys;\n"
	            "wait: ld.acquire.sys.global.u32 %r2, [%d1]; setp.eq.u32 %p2, %r2, 0; @%p2 bra wait; ret;"));
	uint64_t flag = rig_alloc(&rig, 8);
	cr_assert_eq(pthread_create(&host, NULL, raise_flag, RIG_AT(void, flag)), 0);
	cr_assert_eq(run(1, 1, flag, 0), PTX_OK, "%s", rig.fault.message);
	pthread_join(host, NULL);
	rig_destroy(&rig);
}

Test(ptx_waits, sleeping_spares_the_limit, .timeout = 20)
{
	/* A hundred rounds of a millisecond; as spinning that would be far more instructions than the limit. */
	load(KERNEL(
		"mov.u32 %r2, 0; again: nanosleep.u32 4000000000; add.u32 %r2, %r2, 1; setp.lt.u32 %p1, %r2, 100; @%p1 bra again; ret;"));
	rig.limit = 1000;
	struct timespec start, end;
	clock_gettime(CLOCK_MONOTONIC, &start);
	cr_assert_eq(run(1, 1, 0, 0), PTX_OK, "%s", rig.fault.message);
	clock_gettime(CLOCK_MONOTONIC, &end);
	cr_assert_geq((end.tv_sec - start.tv_sec) * 1000 + (end.tv_nsec - start.tv_nsec) / 1000000, 99);
	rig_destroy(&rig);
}

Test(ptx_waits, three_dimensions, .timeout = 10)
{
	load(HEAD
	     ".entry k(.param .u64 p) { .reg .b32 %r<20>; .reg .b64 %d<4>; ld.param.u64 %d1, [p];\n"
	     "mov.u32 %r1, %tid.x; mov.u32 %r2, %tid.y; mov.u32 %r3, %tid.z; mov.u32 %r4, %ntid.x; mov.u32 %r5, %ntid.y;\n"
	     "mad.lo.u32 %r6, %r3, %r5, %r2; mad.lo.u32 %r6, %r6, %r4, %r1; mov.u32 %r7, %ctaid.z; mov.u32 %r8, %nctaid.y;\n"
	     "mad.lo.u32 %r7, %r7, %r8, %ctaid.y; mov.u32 %r8, %nctaid.x; mad.lo.u32 %r7, %r7, %r8, %ctaid.x; mul.lo.u32 %r9, %r4, %r5;\n"
	     "mul.lo.u32 %r9, %r9, %ntid.z; mad.lo.u32 %r6, %r7, %r9, %r6; mul.wide.u32 %d2, %r6, 4; add.u64 %d1, %d1, %d2;\n"
	     "red.global.add.u32 [%d1], %r6; }");
	uint64_t out = rig_alloc(&rig, 2 * 3 * 4 * 5 * 6 * 7 * 4);
	struct ptx_launch launch = {
		.grid = {2, 3, 4}, .block = {5, 6, 7}, .params = &out, .params_bytes = 8, .host_threads = 2};
	cr_assert_eq(ptx_run(ptx_find(rig.module, "k"), &launch, &rig.fault), PTX_OK, "%s", rig.fault.message);
	for (uint32_t n = 0; n < 2 * 3 * 4 * 5 * 6 * 7; n++)
		cr_assert_eq(RIG_AT(uint32_t, out)[n], n);
	rig_destroy(&rig);
}
