/*
 * Writes that pass at once (shim/effects/writes.h) in some threads, while another one protects, lifts and frees: write_threads SCENE. What a thread knows to have happened the next write
 * must know, too: each one into a range is told, and no other.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "tests/misuse/misuse.h"

#define OTHERS 2
#define ROUNDS 200
#define LARGE ((size_t)8 << 20)
#define FAR ((size_t)4 << 20) /* in the same allocation, and not in the same granule */

static _Atomic unsigned turn;
static _Atomic bool over;
static _Atomic uint64_t made; /* writes */
static CUdeviceptr memory, elsewhere;

static struct cuconst_stats stats(void)
{
	struct cuconst_stats now = {.size = sizeof now};
	CHECK(cuconst_stats(&now));
	return now;
}

static void wait_for(unsigned wanted)
{
	while (atomic_load(&turn) != wanted)
		sched_yield();
}

static CUresult set(CUdeviceptr at, size_t bytes, unsigned char value)
{
	atomic_fetch_add(&made, 1);
	return cuMemsetD8Async(at, value, bytes, stream);
}

/* Four turns a round: to protect, to write into what is protected, to lift, to write into what is not. */
static void *write_in_turn(void *unused)
{
	CHECK(cuCtxSetCurrent(context));
	for (unsigned i = 0; i < ROUNDS; i++) {
		wait_for(4 * i + 1);
		CHECK(set(elsewhere, 64, (unsigned char)i));
		CHECK(set(memory + 32, 64, (unsigned char)i));
		CHECK(set(memory + FAR, 64, (unsigned char)i));
		atomic_fetch_add(&turn, 1);
		wait_for(4 * i + 3);
		CHECK(set(memory + 32, 64, (unsigned char)~i));
		CHECK(cuStreamSynchronize(stream));
		atomic_fetch_add(&turn, 1);
	}
	return NULL;
}

static void *write_beside(void *number)
{
	CUdeviceptr own = (uintptr_t)number % 2 ? elsewhere + FAR : memory + FAR / 2;
	CHECK(cuCtxSetCurrent(context));
	for (unsigned i = 0; !atomic_load(&over); i++) {
		CHECK(set(own + 64 * (uintptr_t)number, 64, (unsigned char)i));
		CHECK(cuMemcpyDtoDAsync(own + 4096 + 64 * (uintptr_t)number, own, 64, stream));
		atomic_fetch_add(&made, 1);
		if (i % 64 == 0)
			CHECK(cuStreamSynchronize(stream));
	}
	return NULL;
}

static void play_protected(void)
{
	pthread_t writer, others[OTHERS];
	cuconst_handle handle;
	CHECK(cuMemAlloc(&memory, LARGE));
	CHECK(cuMemAlloc(&elsewhere, LARGE));
	CHECK(cuCtxSynchronize());
	uint64_t before = stats().calls;
	CHECK(pthread_create(&writer, NULL, write_in_turn, NULL));
	for (uintptr_t i = 0; i < OTHERS; i++)
		CHECK(pthread_create(&others[i], NULL, write_beside, (void *)i));
	for (unsigned i = 0; i < ROUNDS; i++) {
		wait_for(4 * i);
		CHECK(cuconst_protect(memory, 128, "range", CUCONST_NO_BASELINE, NULL, &handle));
		atomic_fetch_add(&turn, 1);
		wait_for(4 * i + 2);
		CHECK(cuconst_unprotect(handle));
		atomic_fetch_add(&turn, 1);
	}
	CHECK(pthread_join(writer, NULL));
	atomic_store(&over, true);
	for (int i = 0; i < OTHERS; i++)
		CHECK(pthread_join(others[i], NULL));
	struct cuconst_stats now = stats();
	EXPECT(now.violations == ROUNDS && now.calls - before == made);
}

/* Served memory, small and large: inside it writes are taken, beyond it and after its end they are not. */
static void *write_to_the_end(void *number)
{
	size_t bytes = (uintptr_t)number % 2 ? 5000 : (size_t)3 << 20;
	CUdeviceptr at;
	CHECK(cuCtxSetCurrent(context));
	for (unsigned i = 0; i < ROUNDS; i++) {
		CHECK(cuMemAlloc(&at, bytes));
		for (int k = 0; k < 3; k++) {
			CHECK(set(at + bytes - 64, 64, 1));
			EXPECT(set(at + bytes - 64, 65, 1) == CUDA_ERROR_INVALID_VALUE);
		}
		CHECK(cuMemFree(at));
	}
	return NULL;
}

/* What another thread has freed is no place for a write, until somebody gets it again; and nobody does. */
static void *write_what_is_freed(void *unused)
{
	CHECK(cuCtxSetCurrent(context));
	for (unsigned i = 0; i < ROUNDS; i++) {
		wait_for(2 * i + 1);
		CHECK(set(memory + 64, 64, 1));
		CHECK(set(memory + 64, 64, 2));
		atomic_fetch_add(&turn, 1);
	}
	wait_for(2 * ROUNDS + 1);
	EXPECT(set(memory + 64, 64, 3) == CUDA_ERROR_INVALID_VALUE);
	return NULL;
}

static void play_served(void)
{
	pthread_t writer, others[OTHERS];
	CUdeviceptr before = 0;
	cuconst_handle handle;
	CHECK(cuMemAlloc(&elsewhere, LARGE));
	CHECK(cuconst_protect(elsewhere, 128, "range", 0, NULL, &handle));
	CHECK(pthread_create(&writer, NULL, write_what_is_freed, NULL));
	for (uintptr_t i = 0; i < OTHERS; i++)
		CHECK(pthread_create(&others[i], NULL, write_to_the_end, (void *)i));
	for (unsigned i = 0; i < ROUNDS; i++) {
		wait_for(2 * i);
		if (before)
			CHECK(cuMemFree(before));
		CHECK(cuMemAlloc(&memory, 4096));
		before = memory;
		atomic_fetch_add(&turn, 1);
	}
	for (int i = 0; i < OTHERS; i++)
		CHECK(pthread_join(others[i], NULL));
	wait_for(2 * ROUNDS);
	CHECK(cuMemFree(before));
	atomic_fetch_add(&turn, 1);
	CHECK(pthread_join(writer, NULL));
	EXPECT(!stats().violations);
	CHECK(cuconst_unprotect(handle));
}

int main(int argc, char **argv)
{
	start();
	if (argc == 2 && !strcmp(argv[1], "protected"))
		play_protected();
	else if (argc == 2 && !strcmp(argv[1], "served"))
		play_served();
	else
		return 98;
	return 0;
}
