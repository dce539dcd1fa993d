/*
 * Serving on a driver that keeps books: what is left behind after failures, who may access what, what a free waits for.
 * One thread.
 */
#include <string.h>

#include "tests/twins/serve/check.h"
#include "tests/twins/serve/fake.h"

#define MIB ((size_t)1 << 20)

static CUdeviceptr get(size_t bytes)
{
	CUdeviceptr at = 0;

	NEED(serve_cuMemAlloc_v2(&at, bytes));
	return at;
}

static void end_all_contexts(void)
{
	for (unsigned context = 1; context <= FAKE_CONTEXTS; context++)
		serve_context_ended(fake_context(context));
}

static void nothing_is_left(void)
{
	struct fake_state left = fake_state();
	struct serve_counts counts = serve_counts();

	CHECK_EQUAL(left.reservations, 0);
	CHECK_EQUAL(left.mappings, 0);
	CHECK_EQUAL(left.handles, 0);
	CHECK_EQUAL(left.told, 0);
	CHECK_EQUAL(left.bytes, 0);
	CHECK_EQUAL(counts.blocks + counts.pieces + counts.waiting, 0);
}

static void small_ones_share_and_large_ones_do_not(void)
{
	fake_enter(1);
	CUdeviceptr small = get(1000), other = get(512), large = get(3 * MIB + 1), full = get(2 * MIB);
	struct serve_counts counts = serve_counts();
	CUdeviceptr base;
	size_t bytes;

	CHECK_EQUAL(other, small + 1024);
	CHECK_EQUAL(counts.blocks, 3);
	CHECK_EQUAL(counts.block_bytes, 2 * MIB + 4 * MIB + 2 * MIB);
	CHECK_EQUAL(counts.pieces, 4);
	CHECK_EQUAL(counts.piece_bytes, 1000 + 512 + 3 * MIB + 1 + 2 * MIB);
	NEED(serve_range(&base, &bytes, small + 999));
	CHECK(base == small && bytes == 1000);
	CHECK_EQUAL(serve_range(&base, &bytes, small + 1000), CUDA_ERROR_NOT_FOUND);
	NEED(serve_range(&base, &bytes, large + 3 * MIB));
	CHECK(base == large && bytes == 3 * MIB + 1);
	CHECK_EQUAL(serve_range(NULL, NULL, large + 3 * MIB + 1), CUDA_ERROR_NOT_FOUND);
	CHECK(serve_context(small) == fake_context(1) && !serve_context(small + 1000));
	CHECK_EQUAL(serve_cuMemFree_v2(small + 4), CUDA_ERROR_INVALID_VALUE);
	CHECK_EQUAL(serve_cuMemFree_v2(small + 512), CUDA_ERROR_INVALID_VALUE);
	NEED(serve_cuMemFree_v2(small));
	CHECK_EQUAL(serve_cuMemFree_v2(small), CUDA_ERROR_INVALID_VALUE);
	CHECK_EQUAL(get(700), small);
	NEED(serve_cuMemFree_v2(large));
	NEED(serve_cuMemFree_v2(full));
	CHECK_EQUAL(serve_counts().block_bytes, 2 * MIB);
}

static void one_empty_slab_is_kept(void)
{
	fake_enter(1);
	CUdeviceptr first = get(MIB), second = get(MIB), third = get(MIB);

	CHECK_EQUAL(serve_counts().blocks, 2);
	NEED(serve_cuMemFree_v2(first));
	NEED(serve_cuMemFree_v2(second));
	CHECK_EQUAL(serve_counts().kept_bytes, 2 * MIB);
	NEED(serve_cuMemFree_v2(third));
	CHECK_EQUAL(serve_counts().blocks, 1);
	CHECK_EQUAL(serve_counts().kept_bytes, 2 * MIB);
	uint64_t calls = fake_state().calls;
	first = get(1);
	CHECK_EQUAL(serve_counts().kept_bytes, 0);
	CHECK_EQUAL(fake_state().calls, calls + 1); /* is the context healthy? */
	NEED(serve_cuMemFree_v2(first));
}

/*
 * All that is there is taken, also by what is kept; then it is out of memory, and what is freed can be taken again in
 * another shape.
 */
static void out_of_memory_and_after(void)
{
	CUdeviceptr at, more[4];

	fake_enter(1);
	NEED(serve_cuMemFree_v2(get(1)));
	fake_enter(4); /* on the same device */
	NEED(serve_cuMemFree_v2(get(1)));
	CHECK_EQUAL(serve_counts().kept_bytes, 4 * MIB);
	fake_set_memory(8 * MIB);
	at = get(8 * MIB);
	CHECK_EQUAL(serve_counts().kept_bytes, 0);
	more[0] = 77;
	CHECK_EQUAL(serve_cuMemAlloc_v2(&more[0], 1), CUDA_ERROR_OUT_OF_MEMORY);
	CHECK_EQUAL(more[0], 0);
	CHECK_EQUAL(serve_cuMemAlloc_v2(&more[0], SIZE_MAX), CUDA_ERROR_OUT_OF_MEMORY);
	CHECK_EQUAL(serve_cuMemAlloc_v2(&more[0], SIZE_MAX - 2 * MIB), CUDA_ERROR_OUT_OF_MEMORY);
	NEED(serve_cuMemFree_v2(at));
	for (int i = 0; i < 4; i++)
		more[i] = get(2 * MIB);
	for (int i = 0; i < 4; i++)
		NEED(serve_cuMemFree_v2(more[i]));
	CHECK_EQUAL(fake_state().plain, 0);
	fake_set_memory(UINT64_MAX);
}

static void a_free_waits_and_fails_whole(void)
{
	fake_enter(2);
	CUdeviceptr at = get(100);
	uint64_t waits = fake_state().synchronized;

	fake_fail(1, 0, CUDA_ERROR_ILLEGAL_ADDRESS);
	CHECK_EQUAL(serve_cuMemFree_v2(at), CUDA_ERROR_ILLEGAL_ADDRESS);
	CHECK(serve_context(at) == fake_context(2));
	NEED(serve_cuMemFree_v2(at));
	CHECK_EQUAL(fake_state().synchronized, waits + 1);
	/*
	 * From another context of the device: both are waited for; from one of another device, or from none: the owner.
	 */
	at = get(100);
	fake_enter(5);
	NEED(serve_cuMemFree_v2(at));
	CHECK_EQUAL(fake_state().synchronized, waits + 3);
	for (unsigned context = 0; context <= 3; context += 3) {
		fake_enter(2);
		at = get(100);
		fake_enter(context);
		NEED(serve_cuMemFree_v2(at));
	}
	CHECK_EQUAL(fake_state().synchronized, waits + 5);
}

static void a_sick_context_gets_nothing(void)
{
	CUdeviceptr at = 77;

	fake_enter(1);
	NEED(serve_cuMemFree_v2(get(1)));
	fake_set_sick(CUDA_ERROR_ILLEGAL_ADDRESS);
	CHECK_EQUAL(serve_cuMemAlloc_v2(&at, 1), CUDA_ERROR_ILLEGAL_ADDRESS);
	CHECK_EQUAL(serve_cuMemAlloc_v2(&at, 4 * MIB), CUDA_ERROR_ILLEGAL_ADDRESS);
	CHECK_EQUAL(at, 0);
	fake_set_sick(CUDA_SUCCESS);
	CHECK_EQUAL(serve_counts().pieces, 0);
}

/* Devices by bits: context 1 and 4 are on device 1, 2 on device 2, 3 on device 0. */
static void peers_reach_what_was_and_what_comes(void)
{
	fake_enter(1);
	CUdeviceptr before = get(100), large = get(5 * MIB);
	CHECK_EQUAL(fake_access(before), 2);
	fake_enter(2);
	NEED(serve_cuCtxEnablePeerAccess(fake_context(1), 0));
	CHECK_EQUAL(fake_access(before), 2 | 4);
	CHECK_EQUAL(fake_access(large), 2 | 4);
	fake_enter(1);
	CUdeviceptr after = get(5 * MIB);
	CHECK_EQUAL(fake_access(after), 2 | 4);
	/* Another context of device 2: the device keeps access until both are shut out. */
	fake_enter(5);
	NEED(serve_cuCtxEnablePeerAccess(fake_context(1), 0));
	fake_enter(3);
	NEED(serve_cuCtxEnablePeerAccess(fake_context(1), 0));
	CHECK_EQUAL(fake_access(after), 1 | 2 | 4);
	fake_enter(2);
	NEED(serve_cuCtxDisablePeerAccess(fake_context(1)));
	CHECK_EQUAL(fake_access(after), 1 | 2 | 4);
	fake_enter(5);
	NEED(serve_cuCtxDisablePeerAccess(fake_context(1)));
	CHECK_EQUAL(fake_access(before), 1 | 2);
	CHECK_EQUAL(fake_access(after), 1 | 2);
	/* A free waits for its context and for the peer's. */
	fake_enter(1);
	uint64_t waits = fake_state().synchronized;
	NEED(serve_cuMemFree_v2(large));
	CHECK_EQUAL(fake_state().synchronized, waits + 2);
	serve_context_ended(fake_context(3));
	CHECK_EQUAL(fake_access(after), 2);
	CHECK_EQUAL(fake_access(get(1)), 2);
}

/* A context that was given nothing yet. */
static void peers_enabled_first(void)
{
	fake_enter(2);
	NEED(serve_cuCtxEnablePeerAccess(fake_context(1), 0));
	fake_enter(1);
	CHECK_EQUAL(fake_access(get(1)), 2 | 4);
	fake_enter(4);
	CHECK_EQUAL(fake_access(get(1)), 2);
}

static void peer_access_fails_whole(void)
{
	fake_enter(1);
	CUdeviceptr first = get(2 * MIB), second = get(2 * MIB);
	fake_enter(2);
	for (uint64_t nth = 1; nth <= 8; nth++) {
		fake_fail(nth, 0, CUDA_ERROR_OUT_OF_MEMORY);
		CUresult result = serve_cuCtxEnablePeerAccess(fake_context(1), 0);
		fake_fail(0, 0, CUDA_SUCCESS);
		if (result == CUDA_SUCCESS) {
			CHECK(nth > 2);
			CHECK_EQUAL(fake_access(first), 2 | 4);
			CHECK_EQUAL(fake_access(second), 2 | 4);
			NEED(serve_cuCtxDisablePeerAccess(fake_context(1)));
		}
		CHECK_EQUAL(fake_access(first), 2);
		CHECK_EQUAL(fake_access(second), 2);
	}
}

static void devices_without_mapped_memory(void)
{
	fake_set_capable(false);
	fake_enter(7);
	CUdeviceptr at = get(100);
	CHECK_EQUAL(fake_state().plain, 1);
	CHECK(!serve_context(at));
	NEED(serve_cuMemFree_v2(at));
	CHECK_EQUAL(fake_state().plain, 0);
	fake_set_capable(true);
}

/* One context: everything that can be asked of it, in a fixed order. Failures are fine, lies are not. */
static void use_everything(unsigned context)
{
	static const size_t sizes[] = {1, 512, MIB, MIB, MIB, MIB + 1, 2 * MIB, 7 * MIB, 300};
	enum { SIZES = sizeof sizes / sizeof *sizes };
	CUdeviceptr at[SIZES];
	CUdeviceptr base;
	size_t bytes;

	fake_enter(context);
	for (int i = 0; i < SIZES; i++)
		if (serve_cuMemAlloc_v2(&at[i], sizes[i]) != CUDA_SUCCESS)
			at[i] = 0;
	fake_enter(context + 1);
	serve_cuCtxEnablePeerAccess(fake_context(context), 0);
	fake_enter(context);
	for (int i = 0; i < SIZES; i++) {
		for (int k = 0; k < i; k++)
			CHECK(!at[i] || !at[k] || at[i] + sizes[i] <= at[k] || at[k] + sizes[k] <= at[i]);
		if (at[i] && serve_range(&base, &bytes, at[i] + sizes[i] - 1) == CUDA_SUCCESS)
			CHECK(base == at[i] && bytes == sizes[i]);
		if (i % 2 && at[i] && serve_cuMemFree_v2(at[i]) == CUDA_SUCCESS)
			at[i] = 0;
	}
	fake_enter(context + 1);
	serve_cuCtxDisablePeerAccess(fake_context(context));
	fake_enter(context);
	fake_fail(0, 0, CUDA_SUCCESS);
	for (int i = 0; i < SIZES; i++)
		if (at[i])
			NEED(serve_cuMemFree_v2(at[i]));
}

/*
 * Each driver call fails once, with each of the errors; afterwards everything is given back. Ending calls do not fail:
 * what a driver that cannot unmap leaves is its own.
 */
static void every_call_fails_once(void)
{
	static const CUresult errors[] = {CUDA_ERROR_OUT_OF_MEMORY, CUDA_ERROR_INVALID_VALUE, CUDA_ERROR_NOT_SUPPORTED};

	use_everything(1);
	end_all_contexts();
	uint64_t start = fake_state().calls;
	use_everything(1);
	end_all_contexts();
	uint64_t calls = fake_state().calls - start;
	CHECK(calls > 60);
	for (size_t e = 0; e < sizeof errors / sizeof *errors; e++)
		for (uint64_t nth = 1; nth <= calls; nth++) {
			fake_fail(nth, 0, errors[e]);
			use_everything(1);
			fake_fail(0, 0, CUDA_SUCCESS);
			end_all_contexts();
			struct fake_state left = fake_state();
			/*
			 * A failed unmap, release or unreserve leaves that one thing, and nothing that the events still
			 * hold.
			 */
			CHECK(left.told == 0 && left.reservations <= 1 && left.handles <= 1 && left.mappings <= 1);
			CHECK(left.plain == 0);
			CHECK_EQUAL(serve_counts().blocks, 0);
			fake_forget();
		}
}

int main(void)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} tests[] = {
		{"small_ones_share_and_large_ones_do_not", small_ones_share_and_large_ones_do_not},
		{"one_empty_slab_is_kept", one_empty_slab_is_kept},
		{"out_of_memory_and_after", out_of_memory_and_after},
		{"a_free_waits_and_fails_whole", a_free_waits_and_fails_whole},
		{"a_sick_context_gets_nothing", a_sick_context_gets_nothing},
		{"peers_reach_what_was_and_what_comes", peers_reach_what_was_and_what_comes},
		{"peers_enabled_first", peers_enabled_first},
		{"peer_access_fails_whole", peer_access_fails_whole},
		{"devices_without_mapped_memory", devices_without_mapped_memory},
		{"every_call_fails_once", every_call_fails_once},
	};

	fake_start();
	for (size_t i = 0; i < sizeof tests / sizeof *tests; i++) {
		fprintf(stderr, "%s\n", tests[i].name);
		tests[i].run();
		end_all_contexts();
		nothing_is_left();
	}
	return 0;
}
