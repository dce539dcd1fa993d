/*
 * What one thread frees the driver may give to another at once: those writes hit no protected memory.
 *
 * expect log exit 0 "cuconst: freed: cuMemFree_v2 freed read-only 'brief'"
 * expect deny exit 0 "cuconst: freed: cuMemFree_v2 freed read-only 'brief'"
 * expect strict exit 0 "cuconst: freed: cuMemFree_v2 freed read-only 'brief'"
 */
#include <pthread.h>
#include <stdatomic.h>

#include "misuse.h"

static _Atomic int done;

static void *frees(void *unused)
{
	struct cuconst_protect_info none = {.size = sizeof none};
	CHECK(cuCtxSetCurrent(context));
	for (int i = 0; i < 3000; i++) {
		CUdeviceptr brief;
		cuconst_handle handle;
		CHECK(cuMemAlloc(&brief, SIZE));
		CHECK(cuconst_protect(brief, SIZE, "brief", CUCONST_NO_BASELINE, &none, &handle));
		CHECK(cuMemFree(brief));
	}
	done = 1;
	return unused;
}

int main(void)
{
	pthread_t thread;
	struct cuconst_stats stats = {.size = sizeof stats};
	start();
	protect(p, SIZE, "p");
	CHECK(pthread_create(&thread, NULL, frees, NULL));
	while (!done) {
		CUdeviceptr mine;
		CHECK(cuMemAlloc(&mine, SIZE));
		CHECK(cuMemsetD8(mine, 5, SIZE));
		CHECK(cuMemFree(mine));
	}
	CHECK(pthread_join(thread, NULL));
	CHECK(cuconst_stats(&stats));
	EXPECT(stats.violations == 0);
	return 0;
}
