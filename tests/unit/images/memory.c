/*
 * Memory that runs out at each place in turn, for a load, the questions about it, and its end: an answer is right, or says that it knows nothing; and the next round,
 * with memory, is as if nothing had been.
 *
 *     memory CODE_FOLDER
 */
#include <stdbool.h>

#include "shim/kernels/arena.h"
#include "tests/unit/images/check.h"
#include "tests/unit/images/fake.h"

/* Linked in place of the allocator's and the analysis' own, by --wrap. */
void *__real_malloc(size_t bytes);
void *__real_calloc(size_t count, size_t bytes);
void *__real_realloc(void *old, size_t bytes);
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes);
void *__wrap_realloc(void *old, size_t bytes);
struct arena *__real_arena_open(void);
void *__real_arena_get(struct arena *arena, size_t bytes);
void *__real_arena_get_zeroed(struct arena *arena, size_t count, size_t bytes);
void *__real_arena_grow(struct arena *arena, void *old, size_t old_bytes, size_t bytes);
struct arena *__wrap_arena_open(void);
void *__wrap_arena_get(struct arena *arena, size_t bytes);
void *__wrap_arena_get_zeroed(struct arena *arena, size_t count, size_t bytes);
void *__wrap_arena_grow(struct arena *arena, void *old, size_t old_bytes, size_t bytes);

static long left = -1; /* allocations that succeed; below 0: all do */
static bool failed;

static bool fails(void)
{
	if (left < 0 || left-- > 0)
		return false;
	left = 0;
	failed = true;
	return true;
}

void *__wrap_malloc(size_t bytes)
{
	return fails() ? NULL : __real_malloc(bytes);
}

void *__wrap_calloc(size_t count, size_t bytes)
{
	return fails() ? NULL : __real_calloc(count, bytes);
}

void *__wrap_realloc(void *old, size_t bytes)
{
	return fails() ? NULL : __real_realloc(old, bytes);
}

struct arena *__wrap_arena_open(void)
{
	return fails() ? NULL : __real_arena_open();
}

void *__wrap_arena_get(struct arena *arena, size_t bytes)
{
	return fails() ? NULL : __real_arena_get(arena, bytes);
}

void *__wrap_arena_get_zeroed(struct arena *arena, size_t count, size_t bytes)
{
	return fails() ? NULL : __real_arena_get_zeroed(arena, count, bytes);
}

void *__wrap_arena_grow(struct arena *arena, void *old, size_t old_bytes, size_t bytes)
{
	return fails() ? NULL : __real_arena_grow(arena, old, old_bytes, bytes);
}

static uint8_t *fatbin;
static const uint8_t *cubin;
static char *text;

static void check(const struct kernel_paths *paths, int slot)
{
	/* Nothing known, nothing kept, or the truth. */
	EXPECT(!paths || paths->reason == PATHS_UNSEEN || paths->reason == PATHS_UNKEPT || stored_slot(paths) == slot);
	EXPECT(failed || stored_slot(paths) == slot);
}

static void round_of_all(unsigned n)
{
	images_module_loaded(MODULE(n), fatbin);
	images_library_loaded(LIBRARY(n + 1), cubin);
	images_module_loaded(MODULE(n + 2), text);
	check(images_paths(FUNCTION(n)), 1);
	check(images_paths((CUfunction)KERNEL(n + 1)), 2);
	check(images_paths(FUNCTION(n + 1)), 2);
	check(images_paths(FUNCTION(n + 2)), 3);
	fake_unload_module(n);
	fake_unload_library(n + 1);
	fake_unload_module(n + 2);
}

int main(int argc, char **argv)
{
	size_t bytes, cubin_bytes;
	unsigned n = 0;
	EXPECT(argc == 2);
	code_folder = argv[1];
	fake_start((unsigned[]){90}, 1);
	struct entry entries[2] = {{.kind = 2, .sm = 90, .packing = LZ4}, {.kind = 2, .sm = 90, .flags = 0x100000}};
	entries[0].code = entries[1].code = which_cubin(1, &entries[0].bytes);
	entries[1].bytes = entries[0].bytes;
	fatbin = make_fatbin(entries, 2, &bytes);
	cubin = which_cubin(2, &cubin_bytes);
	text = which_ptx(3);
	/* One allocation fails, and all behind it: then with memory again, with the same handles and with new ones. */
	long at = 0;
	for (; failed || !at; at++, n = (n + 3) % 3000) {
		failed = false;
		left = at;
		round_of_all(n);
		left = -1;
		bool was = failed;
		failed = false;
		round_of_all(n);
		failed = was;
		EXPECT(at < 100000);
	}
	EXPECT(at > 100);
	free(fatbin);
	free(text);
	return 0;
}
