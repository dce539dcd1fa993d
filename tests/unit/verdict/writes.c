/*
 * Writes that concern nothing: which pass, and that the hooks let them. While a write goes the long way its thread is inside a hook, and while one passes it is not:
 * so the driver sees which way it was.
 */
#include <criterion/criterion.h>

#include "shim/doors/hook.h"
#include "shim/effects/writes.h"
#include "shim/twins/serve_memo.h"
#include "shim/verdict/granules.h"
#include "shim/verdict/neighbours.h"
#include "shim/verdict/protect.h"

#define GRANULE (UINT64_C(1) << GRANULE_BITS)
#define ALL (GRANULES * GRANULE)
#define BASE (UINT64_C(0x7f00) << 32)
#define ROUNDS 200000

static unsigned depth; /* of the hook, when the driver was called last */
static CUresult answer;

static CUresult driver_set(CUdeviceptr memory, unsigned char value, size_t bytes)
{
	depth = hook_thread.depth;
	return answer;
}

static CUresult driver_set_async(CUdeviceptr memory, unsigned char value, size_t bytes, CUstream stream)
{
	return driver_set(memory, value, bytes);
}

static CUresult driver_copy_async(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream)
{
	return driver_set(to, 0, bytes);
}

static CUresult driver_fetch_async(void *to, CUdeviceptr from, size_t bytes, CUstream stream)
{
	return driver_set((uintptr_t)to, 0, bytes);
}

static void set_up(void)
{
	cr_assert_eq(protect_start(), 0);
	drv.cuMemsetD8_v2 = driver_set;
	drv.cuMemsetD8Async = driver_set_async;
	drv.cuMemcpyAsync = driver_copy_async;
	drv.cuMemcpyDtoHAsync_v2 = driver_fetch_async;
	hook_counts_claim();
	atomic_store(&hook_line.armed, true);
}

/* Ends what a write that is watched began. */
static enum write_how asked(uint64_t address, uint64_t bytes)
{
	enum write_how how = write_asks(address, bytes, false);
	hook_thread.depth -= how == WRITE_IS_WATCHED;
	cr_assert_eq(hook_thread.depth, 0);
	return how;
}

static bool passes(uint64_t address, uint64_t bytes)
{
	return asked(address, bytes) == WRITE_PASSES;
}

Test(writes, those_beside_a_range_go_the_long_way, .init = set_up)
{
	cr_assert(passes(BASE, 64));
	cr_assert(neighbours_join(BASE + 4096, BASE + 8192));
	cr_assert(neighbours_join(BASE + 9 * GRANULE, BASE + 9 * GRANULE + 1));
	cr_assert(neighbours_join(BASE - 9 * GRANULE, BASE - 9 * GRANULE + 1));
	cr_assert(!passes(BASE + 4096, 64) && !passes(BASE, 64) && !passes(BASE + GRANULE - 1, 1));
	cr_assert(passes(BASE + GRANULE, GRANULE) && passes(BASE - GRANULE, GRANULE));
	neighbours_leave(BASE + 4096);
	cr_assert(passes(BASE + 4096, 64) && !passes(BASE + 9 * GRANULE, 64));
	neighbours_leave(BASE + 9 * GRANULE);
	cr_assert(passes(BASE + 9 * GRANULE, 64));
}

Test(writes, each_granule_that_one_crosses_counts, .init = set_up)
{
	cr_assert(neighbours_join(BASE, BASE + 1));
	cr_assert(neighbours_join(BASE + 100 * GRANULE, BASE + 100 * GRANULE + 1));
	for (uint64_t granules = 1; granules <= 40; granules++) {
		cr_assert(passes(BASE + 50 * GRANULE, granules * GRANULE));
		cr_assert(!passes(BASE + (101 - granules) * GRANULE - 1, (granules - 1) * GRANULE + 2));
		cr_assert(!passes(BASE + 1, granules * GRANULE));
	}
	/* The bounds alone say nothing of one that begins below them and reaches in. */
	cr_assert(passes(BASE - GRANULE, GRANULE) && !passes(BASE - GRANULE, GRANULE + 1));
}

Test(writes, what_is_long_or_empty_or_wraps_is_not_asked_about, .init = set_up)
{
	const uint64_t most = (GRANULES_AT_ONCE - 1) << GRANULE_BITS;
	cr_assert(passes(BASE + 77, most));
	cr_assert(!passes(BASE, most + 1) && !passes(BASE, UINT64_MAX) && !passes(BASE, 0) && !passes(0, 0));
	cr_assert(!passes(UINT64_MAX, 2) && !passes(UINT64_MAX - 62, 64));
}

Test(writes, a_mark_may_be_of_another_address, .init = set_up)
{
	cr_assert(neighbours_join(BASE, BASE + 1));
	/* Beyond the bounds no mark says anything. */
	cr_assert(passes(BASE + ALL, 64));
	cr_assert(neighbours_join(BASE + 3 * ALL + GRANULE, BASE + 3 * ALL + GRANULE + 1));
	cr_assert(!passes(BASE + ALL, 64) && !passes(BASE + ALL + GRANULE, 64) && passes(BASE + ALL + 2 * GRANULE, 64));
	cr_assert(!passes(BASE + 2 * ALL - 1, 2) && passes(BASE + 2 * ALL - 1, 1));
}

Test(writes, marks_of_many_granules_are_looked_at_at_once, .init = set_up)
{
	uint64_t random = 1;
	for (unsigned i = 0; i < GRANULES / 40; i++) {
		random = random * 6364136223846793005u + 1442695040888963407u;
		granules_mark(BASE + (random >> 40) % GRANULES * GRANULE, BASE + (random >> 40) % GRANULES * GRANULE + 1);
	}
	for (unsigned i = 0; i < ROUNDS; i++) {
		random = random * 6364136223846793005u + 1442695040888963407u;
		uint64_t first = BASE + (random >> 20) % ALL;
		uint64_t last = (first & ~(GRANULE - 1)) + (random >> 11) % (GRANULES_AT_ONCE * GRANULE);
		bool any = false;
		last = last < first ? first : last;
		for (uint64_t granule = first >> GRANULE_BITS; granule <= last >> GRANULE_BITS; granule++)
			any |= granules_hold(granules_all(), granule << GRANULE_BITS);
		cr_assert_eq(granules_hold_any(granules_all(), first, last), any);
	}
}

Test(writes, one_that_passes_is_counted_once, .init = set_up)
{
	cr_assert(neighbours_join(BASE, BASE + 1));
	cr_assert(!passes(BASE, 64) && hook_counted(COUNT_CALL) == 0);
	cr_assert(passes(BASE + GRANULE, 64) && hook_counted(COUNT_CALL) == 1);
	atomic_store(&hook_line.in_flight, 1);
	cr_assert(asked(BASE + GRANULE, 64) == WRITE_IS_WATCHED && hook_counted(COUNT_CALL) == 2);
	cr_assert(write_asks(BASE + GRANULE, 64, true) == WRITE_UNKNOWN && hook_counted(COUNT_CALL) == 2);
	/* A thread that shares its counts. */
	hook_thread.counts = &hook_counts_shared;
	cr_assert(asked(BASE + GRANULE, 64) == WRITE_UNKNOWN && hook_counted(COUNT_CALL) == 2);
}

Test(writes, results_and_errors_are_waited_for, .init = set_up)
{
	atomic_store(&hook_line.in_flight, 1);
	cr_assert_eq(asked(BASE, 64), WRITE_IS_WATCHED);
	atomic_store(&hook_line.in_flight, 0);
	cr_assert_eq(asked(BASE, 64), WRITE_PASSES);
	atomic_store(&hook_line.twins_noted, true);
	cr_assert_eq(asked(BASE, 64), WRITE_IS_WATCHED);
	cr_assert_eq(write_asks(BASE, 64, true), WRITE_UNKNOWN);
}

Test(writes, captures_and_library_calls_make_no_difference, .init = set_up)
{
	atomic_store(&hook_line.captures, 1);
	hook_thread.outer.api = "cudaMemsetAsync";
	cr_assert(passes(BASE, 64));
}

Test(writes, served_memory_is_held_to_what_is_known_of_it, .init = set_up)
{
	serve_memo_start();
	cr_assert(!passes(BASE, 64));
	serve_memo_keep(BASE, BASE, BASE + 3 * GRANULE, false);
	cr_assert(passes(BASE, 64) && passes(BASE + GRANULE - 1, GRANULE) && passes(BASE, 3 * GRANULE));
	cr_assert(!passes(BASE, 3 * GRANULE + 1) && !passes(BASE - 1, 2));
	cr_assert_eq(write_asks(BASE, 64, true), WRITE_UNKNOWN);
	serve_memo_keep(BASE + 4 * GRANULE + 512, BASE + 4 * GRANULE, BASE + 4 * GRANULE + 700, true);
	cr_assert(passes(BASE + 4 * GRANULE + 512, 188) && !passes(BASE + 4 * GRANULE + 512, 189));
	serve_memo_forget(BASE + 4 * GRANULE - 1, BASE + 4 * GRANULE);
	cr_assert(passes(BASE + 4 * GRANULE + 512, 188) && passes(BASE, 64));
	serve_memo_forget(BASE + 3 * GRANULE - 1, BASE + 4 * GRANULE);
	cr_assert(passes(BASE + 4 * GRANULE + 512, 188) && !passes(BASE, 64));
	serve_memo_forget(BASE + 4 * GRANULE + 699, BASE + 5 * GRANULE);
	cr_assert(!passes(BASE + 4 * GRANULE + 512, 188));
}

Test(writes, hooks_hand_them_to_the_driver, .init = set_up)
{
	char host[64];
	cr_assert(neighbours_join(BASE, BASE + 4096));
	cr_assert(neighbours_join(BASE + 9 * GRANULE, BASE + 9 * GRANULE + 1));
	cr_assert_eq(cuMemsetD8Async(BASE + GRANULE, 0, 64, NULL), CUDA_SUCCESS);
	cr_assert_eq(depth, 0);
	cr_assert_eq(cuMemsetD8_v2(BASE + GRANULE, 0, 64), CUDA_SUCCESS);
	cr_assert_eq(depth, 0);
	cr_assert_eq(cuMemcpyAsync(BASE + GRANULE, BASE, 64, NULL), CUDA_SUCCESS);
	cr_assert_eq(depth, 0);
	cr_assert_eq(cuMemcpyDtoHAsync_v2(host, BASE, 64, NULL), CUDA_SUCCESS);
	cr_assert_eq(depth, 0);
	cr_assert_eq(hook_counted(COUNT_CALL), 4);
	cr_assert_eq(cuMemsetD8Async(BASE + 4096, 0, 64, NULL), CUDA_SUCCESS);
	cr_assert_eq(depth, 1);
	cr_assert_eq(cuMemcpyAsync(BASE + 4096, BASE, 64, NULL), CUDA_SUCCESS);
	cr_assert_eq(depth, 1);
	cr_assert_eq(hook_counted(COUNT_CALL), 6);
	/* Inside a hook, and when nothing is protected, nothing is asked. */
	hook_thread.depth = 3;
	cr_assert_eq(cuMemsetD8Async(BASE + 4096, 0, 64, NULL), CUDA_SUCCESS);
	cr_assert_eq(depth, 3);
	hook_thread.depth = 0;
	atomic_store(&hook_line.armed, false);
	cr_assert_eq(cuMemsetD8Async(BASE + 4096, 0, 64, NULL), CUDA_SUCCESS);
	cr_assert(depth == 0 && hook_thread.depth == 0 && hook_counted(COUNT_CALL) == 8);
}

Test(writes, an_error_is_the_driver_s, .init = set_up)
{
	answer = CUDA_ERROR_INVALID_VALUE;
	cr_assert_eq(cuMemsetD8Async(BASE, 0, 64, NULL), CUDA_ERROR_INVALID_VALUE);
	cr_assert_eq(depth, 0);
	atomic_store(&hook_line.twins_noted, true);
	cr_assert_eq(cuMemsetD8Async(BASE, 0, 64, NULL), CUDA_ERROR_INVALID_VALUE);
	cr_assert(depth == 1 && hook_thread.depth == 0 && hook_counted(COUNT_CALL) == 2);
	answer = CUDA_SUCCESS;
	cr_assert_eq(cuMemsetD8Async(BASE, 0, 64, NULL), CUDA_SUCCESS);
	cr_assert(depth == 1 && hook_thread.depth == 0 && hook_thread.launches == 0);
}
