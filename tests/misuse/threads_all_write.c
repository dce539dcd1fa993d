/*
 * Many threads write at the same moment. In strict the first to be seen ends the process, and its last line is there.
 *
 * expect log exit 0 "cuconst: violation: cuMemsetD8_v2 wrote 4096 bytes of read-only 'p'"
 * expect deny exit 0 "cuconst: denied: cuMemsetD8_v2 would write 4096 bytes of read-only 'p'"
 * expect strict exit 86 "cuconst: stopped: cuMemsetD8_v2 would write 4096 bytes of read-only 'p'"
 */
#include <pthread.h>

#include "misuse.h"

#define THREADS 16

static pthread_barrier_t together;

static void *writes(void *unused)
{
	CHECK(cuCtxSetCurrent(context));
	pthread_barrier_wait(&together);
	EXPECT(refused(cuMemsetD8(p, 7, SIZE)));
	return unused;
}

int main(void)
{
	pthread_t threads[THREADS];
	start();
	protect(p, SIZE, "p");
	CHECK(pthread_barrier_init(&together, NULL, THREADS));
	for (int i = 0; i < THREADS; i++)
		CHECK(pthread_create(&threads[i], NULL, writes, NULL));
	for (int i = 0; i < THREADS; i++)
		CHECK(pthread_join(threads[i], NULL));
	return 0;
}
