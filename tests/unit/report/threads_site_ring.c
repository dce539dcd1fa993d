/*
 * The ring of places under threads: some put, the same places and ever new ones, and tell each other the numbers; all read them. What a number tells is the place that was put
 * under it or nothing, never a mixture.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/unit/report/site_ring_sites.h"

#define THREADS 4
#define ROUNDS 20000
#define SHARED 64

/* A place's seed and its number, in one word. */
static _Atomic uint64_t told[SHARED];
static _Atomic uint64_t read_well, gone;

static void look(uint64_t word)
{
	struct site got, put = site_of(word & 0xffffff);
	if (!word || !site_ring_get(word >> 24, &got)) {
		atomic_fetch_add(&gone, 1);
		return;
	}
	if (!same_site(&got, &put)) {
		fprintf(stderr, "threads_site_ring: another place\n");
		exit(1);
	}
	atomic_fetch_add(&read_well, 1);
}

static void *run(void *data)
{
	uint64_t thread = (uintptr_t)data;
	for (uint64_t i = 0; i < ROUNDS; i++) {
		/* Half of them the same again and again, for all threads. */
		uint64_t seed = i % 2 ? i % 50 : 1000 + i * THREADS + thread;
		struct site site = site_of(seed);
		uint64_t number = site_ring_put(&site);
		look(number << 24 | seed);
		if (number)
			atomic_store(&told[i % SHARED], number << 24 | seed);
		look(atomic_load(&told[(i * 7 + thread) % SHARED]));
	}
	return NULL;
}

int main(void)
{
	pthread_t threads[THREADS];
	site_ring_start();
	for (uintptr_t i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], NULL, run, (void *)i))
			return 1;
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	printf("%lu places read, %lu gone\n", (unsigned long)read_well, (unsigned long)gone);
	return read_well < (uint64_t)THREADS * ROUNDS;
}
