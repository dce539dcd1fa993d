/*
 * Another preloaded library of the program's own, which wraps a driver function and uses others from its constructor.
 */
#include "check.h"

OFFER int cuMemFree_v2(uint64_t pointer);
OFFER int preloaded_frees, preloaded_early;

int cuMemFree_v2(uint64_t pointer)
{
	int (*next)(uint64_t);
	preloaded_frees++;
	*(void **)&next = dlsym(RTLD_NEXT, "cuMemFree_v2");
	return next ? next(pointer) : 999;
}

__attribute__((constructor)) static void construct(void)
{
	void *driver = dlopen("libcuda.so.1", RTLD_NOW);
	int (*set)(uint64_t, unsigned char, size_t);
	*(void **)&set = driver ? dlsym(driver, "cuMemsetD8_v2") : NULL;
	if (set && !set(0, 0, 0))
		preloaded_early++;
}
