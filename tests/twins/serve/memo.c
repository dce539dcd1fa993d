/*
 * What is kept of questions about served memory: it says nothing that asking anew would not say. A random course of allocations, frees and contexts that end in one thread; then one thread that
 * frees and allocates, and others that look. On the driver that keeps books, so this runs under TSan. `serve_memo [ROUNDS]`.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "shim/twins/serve_memo.h"
#include "tests/twins/serve/check.h"
#include "tests/twins/serve/fake.h"

enum { HELD = 40, CONTEXTS = 3, READERS = 3, BYTES = 4096 };

static long rounds = 20000;

static bool known(CUdeviceptr at, size_t bytes)
{
	struct serve_memo *memo = atomic_load(&hook_line.served);

	return memo && serve_memo_holds(memo, at, at + bytes - 1);
}

/* Asks, after what is known was looked at; what is right then is known from then on. */
static bool overruns(CUdeviceptr at, size_t bytes)
{
	bool held = known(at, bytes), overrun = serve_overrun(at, at + bytes);

	CHECK(!held || !overrun);
	/* Nothing else was asked in between. */
	CHECK(!known(at, bytes) || !overrun);
	return overrun;
}

static void asked_once_and_known_until_freed(void)
{
	CUdeviceptr small, next, large;

	fake_enter(1);
	CHECK(!known(64, 64));
	NEED(serve_cuMemAlloc_v2(&small, 1000));
	NEED(serve_cuMemAlloc_v2(&next, 1000));
	NEED(serve_cuMemAlloc_v2(&large, 5 << 20));
	CHECK(!known(small, 64) && !overruns(small, 64));
	CHECK(known(small, 64) && known(small, 1000) && known(small + 500, 500) && !known(small + 500, 501));
	/* Of what is wrong nothing is kept, and each piece is known by itself. */
	CHECK(overruns(small, 1001) && overruns(small + 1000, 1) && !known(small + 1000, 1) && !known(next, 64));
	CHECK(!overruns(next, 1000) && known(next, 1000) && known(small, 64));
	/* What is another granule's is asked about once more. */
	CHECK(!overruns(large, 64) && known(large, 5 << 20) && !known(large, (5 << 20) + 1));
	CHECK(!overruns(large + (4 << 20), 64) && known(large + (4 << 20), 1 << 20));
	NEED(serve_cuMemFree_v2(small));
	CHECK(!known(small, 64) && known(next, 64) && known(large, 64));
	NEED(serve_cuMemFree_v2(large));
	CHECK(!known(large, 64) && !known(large + (4 << 20), 64));
	serve_context_ended(fake_context(1));
	CHECK(!known(next, 64));
}

/* Not ours, until a block comes to lie there. */
static void addresses_of_others(void)
{
	CUdeviceptr first, second, third;

	fake_enter(1);
	NEED(serve_cuMemAlloc_v2(&first, 3 << 20));
	NEED(serve_cuMemAlloc_v2(&second, 3 << 20));
	NEED(serve_cuMemFree_v2(first));
	CHECK(!overruns(4096, 64) && known(4096, 64));
	CHECK(!overruns(first, 64) && known(first, 3 << 20));
	CHECK(!overruns(UINT64_MAX - 64, 64) && known(UINT64_MAX - 64, 64) && !known(UINT64_MAX, 1));
	/* Wherever the next one comes to lie. */
	for (CUdeviceptr at = second + (4 << 20); at < second + (40 << 20); at += 2 << 20)
		CHECK(!overruns(at, 64) && known(at, 1 << 20));
	NEED(serve_cuMemAlloc_v2(&third, 3 << 20));
	CHECK(third > second && third < second + (30 << 20));
	for (CUdeviceptr at = third; at < third + (4 << 20); at += 1 << 20)
		CHECK(!known(at, 64));
	CHECK(!overruns(third, 3 << 20) && overruns(third, (3 << 20) + 1));
	NEED(serve_cuMemFree_v2(second));
	NEED(serve_cuMemFree_v2(third));
}

/* What lay beside a block is in the middle of one that comes to its place. */
static void a_larger_one_in_its_place(void)
{
	CUdeviceptr small, large;

	fake_enter(1);
	NEED(serve_cuMemAlloc_v2(&small, 3 << 20));
	CHECK(!overruns(small + (5 << 20), 64) && known(small + (5 << 20), 64));
	serve_context_ended(fake_context(1));
	fake_next(small);
	NEED(serve_cuMemAlloc_v2(&large, 9 << 20));
	CHECK(large == small && !known(large + (5 << 20), 64));
	CHECK(overruns(large + (5 << 20), 9 << 20));
	fake_next(large + (64 << 20));
	serve_context_ended(fake_context(1));
}

static void a_random_course(void)
{
	CUdeviceptr held[HELD] = {0};
	size_t bytes[HELD] = {0};
	uint64_t seed = 7, found = 0;

	fake_scatter(11);
	for (long i = 0; i < rounds; i++) {
		unsigned nth = (unsigned)(next_random(&seed) % HELD);
		uint64_t what = next_random(&seed) % 64;

		fake_enter(1 + (unsigned)(next_random(&seed) % CONTEXTS));
		if (what < 8 && !held[nth]) {
			bytes[nth] = 1 + next_random(&seed) % (next_random(&seed) % 3 ? 2000 : 5 << 20);
			NEED(serve_cuMemAlloc_v2(&held[nth], bytes[nth]));
		} else if (what < 12 && held[nth]) {
			CUresult result = serve_cuMemFree_v2(held[nth]);
			/* Its context may be gone. */
			CHECK(result == CUDA_SUCCESS || result == CUDA_ERROR_INVALID_VALUE);
			if (result == CUDA_SUCCESS)
				CHECK(!known(held[nth], 1) || !serve_overrun(held[nth], held[nth] + 1));
			held[nth] = 0;
		} else if (what == 12) {
			serve_context_ended(fake_context(1 + (unsigned)(next_random(&seed) % CONTEXTS)));
		} else if (bytes[nth]) {
			/* Also of what was freed, beside allocations, and around their ends. */
			CUdeviceptr around = held[nth] ? held[nth] : held[(nth + 1) % HELD];
			CUdeviceptr at = around + next_random(&seed) % (bytes[nth] + 600);
			size_t many = 1 + next_random(&seed) % (next_random(&seed) % 2 ? 64 : bytes[nth] + 600);
			if (next_random(&seed) % 3 == 0)
				at = FAKE_SPACE + next_random(&seed) % FAKE_SPACE_BYTES;
			found += known(at, many);
			overruns(at, many);
		}
	}
	/* It is worth the while. */
	CHECK(found > (uint64_t)rounds / 20);
	for (unsigned context = 1; context <= CONTEXTS; context++)
		serve_context_ended(fake_context(context));
	fake_scatter(0);
}

/* Two areas in one place: a large one, and one beside it, which ends sooner. */
static const CUdeviceptr large = UINT64_C(0x500000000000), small = large + BYTES;
enum { SMALL = 64 };

static _Atomic bool kept_enough;

static void *look_beyond(void *number)
{
	while (!atomic_load(&kept_enough)) {
		CHECK(!known(small, SMALL + 1));
		CHECK(!known(large, BYTES + 1));
	}
	return number;
}

/* What is read of one while the other takes its place is neither. */
static void areas_that_take_turns(void)
{
	pthread_t threads[READERS];
	struct serve_memo *memo = atomic_load(&hook_line.served);
	struct serve_area *area = serve_area_of(memo, large, SERVE_PART_BITS);

	CHECK(area == serve_area_of(memo, small, SERVE_PART_BITS));
	uint64_t before = atomic_load(&area->sequence);
	serve_memo_keep(large, large, large + BYTES, false);
	CHECK(known(large, BYTES) && !known(small, SMALL));
	CHECK(atomic_load(&area->sequence) == before + 2);
	atomic_fetch_add(&area->sequence, 1);
	CHECK(!known(large, BYTES));
	atomic_fetch_add(&area->sequence, 1);
	CHECK(known(large, BYTES));
	for (int i = 0; i < READERS; i++)
		CHECK(!pthread_create(&threads[i], NULL, look_beyond, NULL));
	for (long i = 0; i < rounds * 200; i++) {
		serve_memo_keep(large, large, large + BYTES, false);
		serve_memo_keep(small, small, small + SMALL, false);
		if (i % 3 == 0)
			serve_memo_forget(large, small + SMALL);
	}
	atomic_store(&kept_enough, true);
	for (int i = 0; i < READERS; i++)
		CHECK(!pthread_join(threads[i], NULL));
	serve_memo_forget(large, small + SMALL);
}

static CUdeviceptr _Atomic place;
/* Of four turns, what the memory at `place` is: an allocation, about to be freed, freed, about to be given out again. Nobody else gets it. */
static _Atomic uint64_t turn;
static _Atomic bool over;

static void *look(void *number)
{
	uint64_t held = 0;

	fake_enter(1);
	while (!atomic_load(&over)) {
		uint64_t before = atomic_load(&turn);
		CUdeviceptr at = atomic_load(&place);
		bool was = known(at, BYTES), overrun = serve_overrun(at, at + BYTES), is = known(at, BYTES);

		if (before & 1 || atomic_load(&turn) != before)
			continue;
		CHECK(overrun == (before & 2) / 2);
		CHECK(!overrun || (!was && !is));
		held += is;
	}
	return (void *)(uintptr_t)held;
}

static void freed_while_others_look(void)
{
	pthread_t threads[READERS];
	CUdeviceptr at, other;

	fake_enter(1);
	/* The slab stays: what is freed in it is no write's place until it is handed out again. */
	NEED(serve_cuMemAlloc_v2(&other, BYTES));
	NEED(serve_cuMemAlloc_v2(&at, BYTES));
	atomic_store(&place, at);
	for (int i = 0; i < READERS; i++)
		CHECK(!pthread_create(&threads[i], NULL, look, NULL));
	for (long i = 0; i < rounds; i++) {
		atomic_fetch_add(&turn, 1);
		NEED(serve_cuMemFree_v2(at));
		atomic_fetch_add(&turn, 1);
		for (int k = 0; k < 50; k++)
			CHECK(!known(at, BYTES));
		atomic_fetch_add(&turn, 1);
		NEED(serve_cuMemAlloc_v2(&other, BYTES));
		CHECK(other == at);
		atomic_fetch_add(&turn, 1);
		CHECK(!serve_overrun(at, at + BYTES));
	}
	atomic_store(&over, true);
	for (int i = 0; i < READERS; i++)
		CHECK(!pthread_join(threads[i], NULL));
	serve_context_ended(fake_context(1));
}

int main(int argc, char **argv)
{
	if (argc > 1)
		rounds = atol(argv[1]);
	fake_start();
	asked_once_and_known_until_freed();
	addresses_of_others();
	a_larger_one_in_its_place();
	a_random_course();
	areas_that_take_turns();
	freed_while_others_look();
	return 0;
}
