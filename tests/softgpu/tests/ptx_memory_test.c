/*
 * No memory: the allocation number n fails, for rising n, until everything succeeds. Loading and launching must say
 * PTX_OUT_OF_MEMORY each time, give back what they took, and work the next time. A plain program, linked so that the
 * library's allocations come here.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/softgpu/tests/ptx_rig.h"

void *__real_calloc(size_t count, size_t bytes);
void *__real_realloc(void *at, size_t bytes);
int __real_posix_memalign(void **ret, size_t align, size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes);
void *__wrap_realloc(void *at, size_t bytes);
int __wrap_posix_memalign(void **ret, size_t align, size_t bytes);

/* How many allocations still succeed; negative: all. */
static long left = -1;

static bool fails(void)
{
	return left == 0 || (left > 0 && left-- == 0);
}

void *__wrap_calloc(size_t count, size_t bytes)
{
	return fails() ? NULL : __real_calloc(count, bytes);
}

void *__wrap_realloc(void *at, size_t bytes)
{
	return fails() ? NULL : __real_realloc(at, bytes);
}

int __wrap_posix_memalign(void **ret, size_t align, size_t bytes)
{
	return fails() ? ENOMEM : __real_posix_memalign(ret, align, bytes);
}

static int complain(const char *what, long n, int status)
{
	fprintf(stderr, "%s, allocation %ld: status %d\n", what, n, status);
	return 1;
}

/* Returns how many allocations loading takes; negative when something was wrong. */
static long fail_loading(struct rig *rig, const char *text)
{
	for (long n = 0; n < 10000; n++) {
		struct ptx_module *module = NULL;
		char log[128];

		left = n;
		enum ptx_status status = ptx_load(text, strlen(text), &rig->memory, log, sizeof(log), &module);
		left = -1;
		if ((status != PTX_OK && status != PTX_OUT_OF_MEMORY) || (status == PTX_OK) != (module != NULL))
			return -complain("load", n, status);
		ptx_unload(&module);
		if (rig->range_count)
			return -complain("load keeps device memory", n, status);
		rig->used = 0;
		if (status == PTX_OK)
			return n;
	}
	return -complain("load never succeeds", 0, 0);
}

static long fail_launching(struct rig *rig)
{
	uint64_t data = rig_alloc(rig, 4096);

	rig->host_threads = 1;
	for (long n = 0; n < 10000; n++) {
		left = n;
		enum ptx_status status = RIG_RUN(rig, "all", 2, 40, 256, data);
		left = -1;
		if (status == PTX_OK)
			return n;
		if (status != PTX_OUT_OF_MEMORY || rig->fault.status != status)
			return -complain("launch", n, status);
	}
	return -complain("launch never succeeds", 0, 0);
}

int main(void)
{
	struct rig rig;
	char *text = rig_read_file("every.ptx");

	if (!text)
		return complain("cannot read every.ptx", 0, 0);
	rig_create(&rig);
	ptx_slab_bytes = 0;
	long loading = fail_loading(&rig, text);
	if (loading < 0 || rig_load(&rig, text) != PTX_OK)
		return complain("load", 0, 0);
	long launching = fail_launching(&rig);
	/* Both take several, or nothing was tried. */
	if (launching < 0 || loading < 5 || launching < 5)
		return complain("too few allocations were seen to fail", loading, (int)launching);
	rig_destroy(&rig);
	free(text);
	return 0;
}
