/*
 * Serving, on the driver that keeps books, against a model of what a program holds: random sizes, contexts, frees that
 * wait and frees in a stream's order, and ends of contexts. `serve_policy [ROUNDS [SEED]]`.
 */
#include "tests/twins/serve/check.h"
#include "tests/twins/serve/fake.h"

#define MIB ((size_t)1 << 20)

enum { SLOTS = 300, CONTEXTS = 3 };

/* What the program holds, and (`waiting`) what it freed in a stream's order since its context was last waited for. */
static struct held {
	CUdeviceptr at;
	size_t bytes;
	unsigned context;
	bool waiting;
} model[SLOTS];
static uint64_t seed = 3;

static void forget(unsigned context, bool all)
{
	for (int i = 0; i < SLOTS; i++)
		if (model[i].context == context && (all || model[i].waiting))
			model[i] = (struct held){0};
}

/* Bytes that wait are nobody else's either. */
static void take(struct held *held, unsigned context)
{
	static const size_t most[] = {512, 5000, 70000, MIB + 5000, 6 * MIB};

	held->bytes = 1 + next_random(&seed) % most[next_random(&seed) % 5];
	held->context = context;
	NEED(serve_cuMemAlloc_v2(&held->at, held->bytes));
	CHECK_EQUAL(held->at % 512, 0);
	for (int i = 0; i < SLOTS; i++)
		CHECK(&model[i] == held || !model[i].at || model[i].at + model[i].bytes <= held->at ||
		      held->at + held->bytes <= model[i].at);
}

static void give(struct held *held)
{
	unsigned context = held->context;

	if (held->waiting) {
		CHECK_EQUAL(serve_cuMemFree_v2(held->at), CUDA_ERROR_INVALID_VALUE);
	} else if (next_random(&seed) % 4 == 0) {
		NEED(serve_cuMemFreeAsync(held->at, NULL));
		held->waiting = true;
	} else {
		NEED(serve_cuMemFree_v2(held->at));
		*held = (struct held){0};
		forget(context, false);
	}
}

static void compare(void)
{
	struct serve_counts counts = serve_counts();
	const struct held *held = &model[next_random(&seed) % SLOTS];
	uint64_t pieces = 0, bytes = 0, waiting = 0;

	for (int i = 0; i < SLOTS; i++) {
		pieces += model[i].at && !model[i].waiting;
		bytes += model[i].waiting ? 0 : model[i].bytes;
		waiting += model[i].waiting;
	}
	CHECK_EQUAL(counts.pieces, pieces);
	CHECK_EQUAL(counts.piece_bytes, bytes);
	CHECK_EQUAL(counts.waiting, waiting);
	CHECK_EQUAL(counts.block_bytes, fake_state().bytes);
	CHECK(counts.kept_bytes <= CONTEXTS * 2 * MIB);
	if (!held->at)
		return;
	size_t inside = next_random(&seed) % (held->bytes + 600);
	CHECK_EQUAL(serve_overrun(held->at, held->at + 1 + inside), held->waiting || inside >= held->bytes);
	if (inside < held->bytes)
		CHECK(serve_context(held->at + inside) == (held->waiting ? NULL : fake_context(held->context)));
}

int main(int argc, char **argv)
{
	long rounds = argc > 1 ? atol(argv[1]) : 30000;

	if (argc > 2)
		seed = strtoull(argv[2], NULL, 0);
	fake_start();
	for (long i = 1; i <= rounds; i++) {
		struct held *held = &model[next_random(&seed) % SLOTS];
		unsigned context = 1 + (unsigned)(next_random(&seed) % CONTEXTS);

		fake_enter(context);
		if (held->at)
			give(held);
		else
			take(held, context);
		if (i % 500 == 0) {
			serve_context_ended(fake_context(context));
			forget(context, true);
		}
		compare();
	}
	for (unsigned context = 1; context <= CONTEXTS; context++)
		serve_context_ended(fake_context(context));
	CHECK_EQUAL(serve_counts().blocks + fake_state().handles + fake_state().reservations + fake_state().told, 0);
	return 0;
}
