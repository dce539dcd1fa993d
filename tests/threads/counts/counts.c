/*
 * Every call is counted exactly, also when more threads are alive than have counts of their own, and when all make
 * their first call at once.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "shim/hook_state.h"

#define THREADS 1200 /* more than there are counts */
#define CALLS 200000

static pthread_barrier_t together;

static void *calls(void *unused)
{
	pthread_barrier_wait(&together);
	for (int i = 0; i < CALLS; i++)
		hook_count(COUNT_LAUNCH);
	pthread_barrier_wait(&together);
	return unused;
}

int main(void)
{
	static pthread_t threads[THREADS];
	pthread_attr_t attributes;
	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, 65536);
	pthread_barrier_init(&together, NULL, THREADS);
	for (int i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], &attributes, calls, NULL)) {
			fprintf(stderr, "thread %d cannot be made\n", i);
			return 2;
		}
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	uint64_t counted = hook_counted(COUNT_LAUNCH);
	if (counted != (uint64_t)THREADS * CALLS) {
		fprintf(stderr, "%llu counted of %llu\n", (unsigned long long)counted,
		        (unsigned long long)THREADS * CALLS);
		return 1;
	}
	hook_counts_reset();
	return hook_counted(COUNT_LAUNCH) != 0;
}
