#include "shim/hot_page.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/mman.h>

#define PAGE_BYTES ((size_t)2 << 20)
#define LINE ((size_t)64)

static _Atomic uintptr_t page;
static _Atomic size_t used;

/* Address space for two, of which one lies in the middle somewhere. 0: no memory. */
static uintptr_t make(void)
{
	void *space =
		mmap(NULL, 2 * PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (space == MAP_FAILED)
		return 0;
	uintptr_t start = (uintptr_t)space, made = (start + PAGE_BYTES - 1) & ~(PAGE_BYTES - 1);
	if (made > start)
		munmap(space, made - start);
	munmap((void *)(made + PAGE_BYTES), start + PAGE_BYTES - made);
	madvise((void *)made, PAGE_BYTES, MADV_HUGEPAGE); /* a wish */
	return made;
}

static uintptr_t page_address(void)
{
	uintptr_t there = atomic_load_explicit(&page, memory_order_acquire);
	if (there)
		return there;
	uintptr_t made = make();
	if (made && !atomic_compare_exchange_strong(&page, &there, made)) {
		munmap((void *)made, PAGE_BYTES); /* another thread's came first */
		return there;
	}
	return made;
}

void *hot_page_take(size_t bytes)
{
	int saved = errno;
	uintptr_t start = bytes <= PAGE_BYTES ? page_address() : 0;
	errno = saved;
	if (!start)
		return NULL;
	size_t whole = (bytes + LINE - 1) & ~(LINE - 1), at = atomic_load_explicit(&used, memory_order_relaxed);
	do {
		if (whole > PAGE_BYTES - at)
			return NULL;
	} while (!atomic_compare_exchange_weak_explicit(&used, &at, at + whole, memory_order_relaxed,
	                                                memory_order_relaxed));
	return (void *)(start + at);
}
