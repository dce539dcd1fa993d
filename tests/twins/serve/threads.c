/*
 * Threads that allocate, ask, free and change peers in the same contexts; then the same while contexts end under them.
 * On the driver that keeps books, so this runs under TSan. `serve_threads [ROUNDS]`.
 */
#include <pthread.h>
#include <stdatomic.h>

#include "tests/twins/serve/check.h"
#include "tests/twins/serve/fake.h"

enum { THREADS = 4, HELD = 24, CONTEXTS = 5 };

static long rounds = 3000;
static bool ending; /* contexts end meanwhile: memory may be gone before its owner frees it */

struct held {
	CUdeviceptr at;
	size_t bytes;
	unsigned context;
};

static void get(struct held *held, uint64_t *seed)
{
	size_t bytes = next_random(seed) % 4 ? 1 + next_random(seed) % 65536 : 1 + next_random(seed) % (5 << 20);

	held->bytes = bytes;
	NEED(serve_cuMemAlloc_v2(&held->at, bytes));
}

static void ask(const struct held *held, uint64_t *seed)
{
	CUdeviceptr base = 0;
	size_t bytes = 0;
	CUresult result = serve_range(&base, &bytes, held->at + next_random(seed) % held->bytes);

	if (!ending) {
		NEED(result);
		CHECK(base == held->at && bytes == held->bytes);
		CHECK(serve_context(held->at) == fake_context(held->context));
	}
}

static void *work(void *number)
{
	uint64_t seed = 1000 + (uint64_t)(uintptr_t)number;
	struct held held[HELD] = {{0}};

	for (long i = 0; i < rounds; i++) {
		struct held *one = &held[next_random(&seed) % HELD];
		unsigned context = 1 + (unsigned)(next_random(&seed) % CONTEXTS);

		fake_enter(context);
		if (!one->at) {
			one->context = context;
			get(one, &seed);
			continue;
		}
		ask(one, &seed);
		switch (next_random(&seed) % 16) {
		case 0:
			serve_cuCtxEnablePeerAccess(fake_context(one->context), 0);
			break;
		case 1:
			serve_cuCtxDisablePeerAccess(fake_context(one->context));
			break;
		case 2:
			if (ending)
				serve_context_ended(fake_context(context));
			break;
		case 3:
			serve_counts();
			break;
		default: {
			CUresult result = serve_cuMemFree_v2(one->at);
			CHECK(ending || result == CUDA_SUCCESS);
			one->at = 0;
		}
		}
	}
	for (int i = 0; i < HELD; i++)
		if (held[i].at && !ending) {
			ask(&held[i], &seed);
			NEED(serve_cuMemFree_v2(held[i].at));
		}
	return NULL;
}

static void run(bool with_ends)
{
	pthread_t threads[THREADS];

	ending = with_ends;
	for (uintptr_t i = 0; i < THREADS; i++)
		CHECK(!pthread_create(&threads[i], NULL, work, (void *)i));
	for (int i = 0; i < THREADS; i++)
		CHECK(!pthread_join(threads[i], NULL));
	if (!with_ends)
		CHECK_EQUAL(serve_counts().pieces + serve_counts().waiting, 0);
	for (unsigned context = 1; context <= CONTEXTS; context++)
		serve_context_ended(fake_context(context));
	struct fake_state left = fake_state();
	CHECK_EQUAL(left.reservations + left.handles + left.mappings + left.told, 0);
	CHECK_EQUAL(serve_counts().blocks, 0);
}

int main(int argc, char **argv)
{
	if (argc > 1)
		rounds = atol(argv[1]);
	fake_start();
	run(false);
	run(true);
	return 0;
}
