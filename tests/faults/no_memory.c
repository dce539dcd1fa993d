/*
 * Preloaded in front of the library: malloc, calloc and realloc that answer NULL to the library's own calls, all of
 * them or (NO_MEMORY=n) the nth alone. Everybody else's memory is glibc's.
 */
#include <errno.h>
#include <link.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

extern void *__libc_malloc(size_t bytes);
extern void *__libc_calloc(size_t count, size_t bytes);
extern void *__libc_realloc(void *old, size_t bytes);

static _Atomic(uintptr_t) first, last; /* the library's code and data; 0: not looked for, 1: not there */
static _Atomic long calls;
static _Atomic bool on;

/* Looked up by the test's program. */
__attribute__((visibility("default"))) void no_memory_from_now(void);
__attribute__((visibility("default"))) long no_memory_calls(void);

static int find(struct dl_phdr_info *info, size_t size, void *data)
{
	if (!info->dlpi_name || !strstr(info->dlpi_name, "libcuconst.so"))
		return 0;
	uintptr_t end = 0;
	for (int i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_LOAD)
			end = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr + info->dlpi_phdr[i].p_memsz;
	atomic_store(&last, end);
	atomic_store(&first, info->dlpi_addr);
	return 1;
}

void no_memory_from_now(void)
{
	dl_iterate_phdr(find, NULL);
	atomic_store(&calls, 0);
	atomic_store(&on, true);
}

long no_memory_calls(void)
{
	return atomic_load(&calls);
}

static bool refused(const void *caller)
{
	uintptr_t at = (uintptr_t)caller;
	if (!atomic_load(&on) || at < atomic_load(&first) || at >= atomic_load(&last))
		return false;
	const char *nth = getenv("NO_MEMORY");
	long call = atomic_fetch_add(&calls, 1) + 1;
	bool now = !nth || !strcmp(nth, "all") || call == atol(nth);
	if (now)
		errno = ENOMEM;
	return now;
}

__attribute__((visibility("default"))) void *malloc(size_t bytes)
{
	return refused(__builtin_return_address(0)) ? NULL : __libc_malloc(bytes);
}

__attribute__((visibility("default"))) void *calloc(size_t count, size_t bytes)
{
	return refused(__builtin_return_address(0)) ? NULL : __libc_calloc(count, bytes);
}

__attribute__((visibility("default"))) void *realloc(void *old, size_t bytes)
{
	return refused(__builtin_return_address(0)) ? NULL : __libc_realloc(old, bytes);
}
