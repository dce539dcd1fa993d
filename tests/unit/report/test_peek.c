/* Memory that is not there, or goes while it is read. */
#include <criterion/criterion.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>

#include "shim/report/peek.h"

#define PAGE 4096u

static char *pages(size_t count)
{
	char *memory = mmap(NULL, count * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	cr_assert(memory != MAP_FAILED);
	memset(memory, 'x', count * PAGE);
	return memory;
}

Test(peek, copies_what_is_there)
{
	char *memory = pages(2), copy[2 * PAGE] = {0};

	cr_assert(peek((uintptr_t)memory, copy, sizeof copy));
	cr_assert(!memcmp(memory, copy, sizeof copy));
	cr_assert(peek((uintptr_t)memory, copy, 0));
	cr_assert(peek(0, copy, 0));
}

Test(peek, says_no_and_keeps_errno)
{
	char *memory = pages(2), copy[16];

	munmap(memory + PAGE, PAGE);
	errno = ENOENT;
	cr_assert(peek((uintptr_t)memory + PAGE - 16, copy, 16));
	cr_assert(!peek((uintptr_t)memory + PAGE - 8, copy, 16), "the second half is not there");
	cr_assert(!peek(0, copy, 8));
	cr_assert(!peek(UINTPTR_MAX - 7, copy, 16), "past the end of the address space");
	cr_assert(!peek(0xdeadbeefdeadbeef, copy, 16));
	cr_assert_eq(errno, ENOENT);
}

struct flicker {
	char *memory;
	atomic_bool stop;
};

static void *flicker(void *data)
{
	struct flicker *at = data;

	while (!atomic_load(&at->stop)) {
		mprotect(at->memory, PAGE, PROT_NONE);
		mprotect(at->memory, PAGE, PROT_READ);
	}
	return NULL;
}

/* Asking first and reading then would die here: between the two the page goes. */
Test(peek, survives_memory_that_goes_meanwhile)
{
	struct flicker at = {.memory = pages(1)};
	pthread_t thread;
	size_t there = 0, gone = 0;
	char copy[256];

	cr_assert(!pthread_create(&thread, NULL, flicker, &at));
	for (size_t i = 0; i < 1000000 && (i < 200000 || !there || !gone); i++) {
		if (peek((uintptr_t)at.memory, copy, sizeof copy)) {
			there++;
			cr_assert(copy[0] == 'x' && copy[255] == 'x');
		} else {
			gone++;
		}
	}
	atomic_store(&at.stop, true);
	pthread_join(thread, NULL);
	cr_assert(there && gone, "%zu reads, %zu refusals: the page did not flicker", there, gone);
}
