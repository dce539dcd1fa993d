#include "registry/pages.h"

#include <errno.h>
#include <stdint.h>
#include <sys/mman.h>

void *pages_map(size_t bytes)
{
	size_t slack = bytes >= PAGES_HUGE ? PAGES_HUGE : 0, before;
	int saved = errno;
	char *memory = mmap(NULL, bytes + slack, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	errno = saved;
	if (memory == MAP_FAILED)
		return NULL;
	if (!slack)
		return memory;
	before = (PAGES_HUGE - (uintptr_t)memory % PAGES_HUGE) % PAGES_HUGE;
	if (before)
		munmap(memory, before);
	if (before < slack)
		munmap(memory + before + bytes, slack - before);
	/* Only advice: a kernel without huge pages refuses, and that is fine. */
	madvise(memory + before, bytes, MADV_HUGEPAGE);
	errno = saved;
	return memory + before;
}

void pages_unmap(void *memory, size_t bytes)
{
	munmap(memory, bytes);
}
