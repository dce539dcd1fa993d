/*
 * Verification from many threads at once, with the watcher, on the fake driver. Plain C: it runs under ThreadSanitizer.
 * Exits 0 when all accounts agree; the first wrong one is said.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "shim/verdict/verify_internal.h"
#include "tests/unit/verify/fake.h"

#define THREADS 6
#define ROUNDS 1500
#define SHARED 4
#define BYTES 70000u /* beyond the snapshots for some, within for others */

static struct range *shared[SHARED];
static uint8_t *memory;
static _Atomic uint64_t asked; /* checks asked for, each of which must be verified or counted as unverified */
static _Atomic uint64_t findings;
static _Atomic uint64_t last_told[THREADS];
static _Atomic bool stop;

#define REQUIRE(condition)                                                                                             \
	do {                                                                                                           \
		if (!(condition)) {                                                                                    \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);                                \
			exit(1);                                                                                       \
		}                                                                                                      \
	} while (0)

/* The writer's `stream` is the thread's number, `graph` counts its checks: those of one stream must come in order. */
static void finding(const struct verify_finding *found)
{
	uint64_t stream = found->writer->stream, number = found->writer->graph;
	REQUIRE(fake_references(found->range) > 0);
	REQUIRE(found->written_end > found->written_start);
	REQUIRE(found->written_start >= found->range->start && found->written_end <= found->range->end);
	for (size_t i = 0; i < found->other_count; i++)
		REQUIRE(found->others[i].stream != stream);
	atomic_fetch_add(&findings, 1);
	if (number)
		REQUIRE(atomic_exchange(&last_told[stream], number) <= number);
}

static void *gpu(void *unused)
{
	struct timespec pause = {0, 20000};
	(void)unused;
	while (!stop) {
		fake_run_all();
		nanosleep(&pause, NULL);
	}
	return NULL;
}

static struct range *attach(uint64_t start, uint64_t end)
{
	void *attachment = NULL;
	REQUIRE(verify_attach(start, end, false, NULL, &attachment) == CUDA_SUCCESS);
	return fake_range(start, end, attachment);
}

static uint64_t area(unsigned index)
{
	return (uint64_t)(uintptr_t)memory + index * 2 * BYTES;
}

static void *program(void *data)
{
	unsigned self = (unsigned)(uintptr_t)data;
	CUstream stream = FAKE_STREAM(self);
	unsigned seed = self * 7919 + 1;
	uint64_t number = 0;
	fake_set_current(FAKE_CONTEXT(0));
	struct range *own = attach(area(SHARED + self), area(SHARED + self) + BYTES);
	for (unsigned round = 0; round < ROUNDS; round++) {
		struct verify_writer writer = {.api = "launch", .stream = self, .graph = ++number};
		struct range *both[2] = {shared[(unsigned)rand_r(&seed) % SHARED], own};
		switch (rand_r(&seed) % 16) {
		case 0:
			verify_refresh(both, 2, stream);
			break;
		case 1:
			fake_drop(own);
			own = attach(area(SHARED + self), area(SHARED + self) + 1 + (unsigned)rand_r(&seed) % BYTES);
			break;
		case 2:
			verify_poll();
			break;
		case 3: {
			bool changed;
			/* Numbered 0: it comes back in another stream, between the thread's own. */
			writer.graph = 0;
			CUresult result = verify_now(both[0], &writer, &changed);
			REQUIRE(result == CUDA_SUCCESS || result == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
			if (result == CUDA_SUCCESS)
				atomic_fetch_add(&asked, 1);
			break;
		}
		case 4:
			verify_capture_began();
			verify_capture_ended();
			break;
		default:
			fake_write(stream, both[0]->start + (unsigned)rand_r(&seed) % 64, (uint8_t)round, 1);
			verify_after(&writer, both, 2, stream);
			atomic_fetch_add(&asked, 2);
			break;
		}
		if (self == 0 && round % 300 == 299) {
			/* A context of its own that goes with checks in flight. */
			fake_set_current(FAKE_CONTEXT(9));
			struct range *there = attach(area(SHARED + THREADS), area(SHARED + THREADS) + BYTES);
			for (unsigned i = 0; i < 10; i++)
				atomic_fetch_add(&asked, (verify_after(&writer, &there, 1, FAKE_STREAM(99)), 1));
			verify_context_gone(FAKE_CONTEXT(9));
			fake_drop(there);
			fake_set_current(FAKE_CONTEXT(0));
		}
	}
	fake_drop(own);
	return NULL;
}

int main(void)
{
	memory = calloc(SHARED + THREADS + 1, 2 * BYTES);
	fake_start(finding);
	fake_check_lock(false);
	for (unsigned i = 0; i < SHARED; i++)
		shared[i] = attach(area(i) + i, area(i) + i + (i % 2 ? BYTES : 300));
	fake_defer(true);
	pthread_t threads[THREADS], device;
	pthread_create(&device, NULL, gpu, NULL);
	for (uintptr_t i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, program, (void *)i);
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	REQUIRE(verify_drain(20000) == 0);
	stop = true;
	pthread_join(device, NULL);

	struct verify_counts counts = verify_counts();
	printf("%llu checks asked for, %llu verified, %llu unverified, %llu findings, %llu inconclusive\n",
	       (unsigned long long)asked, (unsigned long long)counts.verified, (unsigned long long)counts.unverified,
	       (unsigned long long)findings, (unsigned long long)counts.inconclusive);
	REQUIRE(counts.pending == 0);
	REQUIRE(counts.verified + counts.unverified == asked);
	REQUIRE(findings > 0 && findings <= counts.verified && counts.inconclusive <= findings);
	for (unsigned i = 0; i < SHARED; i++) {
		REQUIRE(fake_references(shared[i]) == 1);
		fake_drop(shared[i]);
	}
	REQUIRE(fake_live_ranges() == 0);
	pthread_mutex_lock(&verify.lock);
	for (struct verify_home *home = verify.homes; home; home = home->next)
		REQUIRE(home->free_slots == VERIFY_SLOTS && home->arena.used_bytes == 0);
	pthread_mutex_unlock(&verify.lock);
	return 0;
}
