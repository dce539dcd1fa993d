/* A wrapper of the allocator, preloaded before us. */
#include "check.h"

OFFER int allocator_calls;
OFFER void *malloc(size_t bytes);
OFFER void free(void *memory);

void *malloc(size_t bytes)
{
	static void *(*next)(size_t);
	allocator_calls++;
	if (!next)
		*(void **)&next = dlsym(RTLD_NEXT, "malloc");
	return next(bytes);
}

void free(void *memory)
{
	static void (*next)(void *);
	if (!next)
		*(void **)&next = dlsym(RTLD_NEXT, "free");
	next(memory);
}
