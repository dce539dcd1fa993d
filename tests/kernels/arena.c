/*
 * Memory of analyses (shim/kernels/arena.c): arena CUBIN. Pieces do not overlap and keep what is in them, several threads analyse at once, a process that forks meanwhile goes on
 * on both sides, and without memory there is an error. And what it is for: who analyses a large kernel again touches no new pages.
 */
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "shim/kernels/arena.h"
#include "shim/kernels/elf.h"
#include "shim/kernels/paths.h"
#include "tests/kernels/file.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED true
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#define SANITIZED true
#endif
#endif
#ifndef SANITIZED
#define SANITIZED false
#endif

#define KERNEL "copy" /* of small_90.cubin */
#define PARTS 2000    /* of the large kernel */
#define FAULTS 16     /* at most, of its third analysis; 1.4 us each */
#define THREADS 4
#define ROUNDS 30

static int failures;

static void check(bool holds, const char *what)
{
	if (holds)
		return;
	fprintf(stderr, "%s\n", what);
	failures++;
}

static uint64_t seed = 1;
static uint32_t draw(void)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(seed >> 33);
}

#define HELD 40

struct held {
	uint8_t *at;
	size_t bytes;
	uint8_t fill;
};

static bool is_whole(const struct held *held)
{
	for (size_t i = 0; held->at && i < held->bytes; i++)
		if (held->at[i] != held->fill)
			return false;
	return true;
}

static void fill(struct held *held)
{
	held->fill = (uint8_t)draw();
	if (held->at)
		memset(held->at, held->fill, held->bytes);
}

/* Mostly small; some of which several fill the region, and some larger than that. */
static size_t any_size(void)
{
	unsigned kind = draw() % 100;
	return kind < 60 ? draw() % 500 : kind < 98 ? draw() % 200000 : draw() % 6000000;
}

static void change_one(struct arena *arena, struct held *held)
{
	check(is_whole(held), "a piece is not what it was");
	if (!held->at) {
		held->bytes = any_size();
		held->at = draw() % 2 ? arena_get(arena, held->bytes) : arena_get_zeroed(arena, held->bytes, 1);
		check(held->at && (uintptr_t)held->at % _Alignof(max_align_t) == 0, "no piece, or not aligned");
	} else if (draw() % 2) {
		arena_put(arena, held->at, held->bytes);
		held->at = NULL;
	} else {
		size_t bytes = held->bytes + any_size();
		held->at = arena_grow(arena, held->at, held->bytes, bytes);
		check(held->at && is_whole(held), "a piece that has grown is not what it was");
		held->bytes = bytes;
	}
	fill(held);
}

static void test_pieces(void)
{
	for (int round = 0; round < 20; round++) {
		struct held before[HELD] = {{0}};
		struct arena *arena = arena_open(), *second = arena_open();
		struct arena_mark mark;
		if (!arena || !second)
			abort();
		for (int i = 0; i < 200; i++)
			change_one(arena, &before[draw() % HELD]);
		arena_mark(arena, &mark);
		for (int again = 0; again < 3; again++) {
			struct held since[HELD] = {{0}};
			for (int i = 0; i < 100; i++)
				change_one(arena, &since[draw() % HELD]);
			arena_reset(arena, &mark);
			for (int i = 0; i < HELD; i++)
				check(is_whole(&before[i]), "a piece is not what it was at the mark");
		}
		check(!arena_get_zeroed(arena, SIZE_MAX / 2, 4) && !arena_get(arena, SIZE_MAX), "more than there is");
		for (int i = 0; i < 200; i++)
			change_one(arena, &before[draw() % HELD]);
		arena_close(second);
		arena_close(arena);
	}
	arena_close(NULL);
}

struct word {
	uint64_t low, high;
};

/* The image, with the kernel's code behind it: a row of parts that each compare, jump over a load of an address, and store. To be freed. */
static uint8_t *make_large(const uint8_t *image, size_t bytes, size_t *ret_bytes)
{
	static const struct word begin[] = {{0x0000860000047b82 | UINT64_C(0xff) << 24,
	                                     0x000e620000000a00},                      /* LDC.64 R4, c[0x0][0x218] */
	                                    {0x00008400ff027b82, 0x000e620000000a00}}, /* LDC.64 R2, c[0x0][0x210] */
		part[] = {{0x000000ff0000720c, 0x000fe20003f05270},           /* ISETP.NE.AND P0, PT, R0, RZ, PT */
	                  {0x0000000000007947 | 4 << 16, 0x000fea0000000000}, /* @P0 BRA, one ahead */
	                  {0x0000000404027981, 0x000ea4000c1e1b00},           /* LDG.E.64 R2, desc[UR4][R4.64] */
	                  {0x0000000002007986, 0x000fe2000c101904},           /* STG.E desc[UR4][R2.64], R0 */
	                  {0x00008400ff027b82, 0x000e620000000a00}},          /* LDC.64 R2, c[0x0][0x210] */
		end = {0x000000000000794d, 0x000fea0003800000};               /* EXIT */
	struct elf elf;
	struct elf_section section;
	if (elf_open(image, bytes, &elf) || elf_section_named(&elf, ".text.", KERNEL, &section))
		return NULL;
	size_t at = (bytes + 15) & ~(size_t)15, code = sizeof begin + PARTS * sizeof part + sizeof end;
	uint8_t *large = calloc(at + code, 1), *to = large ? large + at : NULL;
	if (!large)
		return NULL;
	memcpy(large, image, bytes);
	to = (uint8_t *)memcpy(to, begin, sizeof begin) + sizeof begin;
	for (int i = 0; i < PARTS; i++)
		to = (uint8_t *)memcpy(to, part, sizeof part) + sizeof part;
	memcpy(to, &end, sizeof end);
	uint64_t place[2] = {at, code}; /* sh_offset and sh_size */
	memcpy(large + elf.sections_at + (size_t)section.index * elf.section_bytes + 24, place, sizeof place);
	*ret_bytes = at + code;
	return large;
}

static const uint8_t *image, *large;
static size_t bytes, large_bytes;

/* Do both kernels get the answers that they have? */
static bool is_right(void)
{
	struct kernel_paths paths = {0};
	bool right = !paths_of_cubin(image, bytes, KERNEL, &paths) && paths.reason == PATHS_CLEAR && paths.store_count;
	kernel_paths_free(&paths);
	right = !paths_of_cubin(large, large_bytes, KERNEL, &paths) && paths.reason == PATHS_TABLE &&
	        paths.store_count == PARTS && right;
	kernel_paths_free(&paths);
	return right;
}

static void *analyse(void *unused)
{
	bool right = true;
	for (int i = 0; i < ROUNDS; i++)
		right &= is_right();
	(void)unused;
	return right ? &failures : NULL;
}

static bool ended_well(pid_t child)
{
	int status;
	return child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) && !WEXITSTATUS(status);
}

static void test_threads(void)
{
	pthread_t threads[THREADS];
	for (int i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], NULL, analyse, NULL))
			abort();
	/* Whichever thread has the region now does not live on in the child. */
	for (int i = 0; i < 10 && !SANITIZED; i++) {
		pid_t child = fork();
		if (!child) {
			bool right = is_right();
			_exit(!(is_right() && right));
		}
		check(ended_well(child), "in a child the answer is another one");
	}
	for (int i = 0; i < THREADS; i++) {
		void *right = NULL;
		pthread_join(threads[i], &right);
		check(right, "among threads the answer is another one");
	}
	check(is_right(), "after threads the answer is another one");
}

/* Where nothing can be mapped, there is an error, or what is allocated does. */
static void test_no_memory(void)
{
	pid_t child = SANITIZED ? -1 : fork();
	if (!child) {
		struct rlimit none = {1, 1};
		struct kernel_paths paths = {0};
		struct arena *first = arena_open();
		setrlimit(RLIMIT_AS, &none);
		int err = paths_of_cubin(large, large_bytes, KERNEL, &paths);
		bool well = err == -ENOMEM || (!err && paths.store_count == PARTS);
		arena_close(first);
		well &= is_right();
		_exit(!well);
	}
	check(SANITIZED || ended_well(child), "without memory there is neither an answer nor an error");
}

static long faults(void)
{
	struct rusage usage;
	getrusage(RUSAGE_THREAD, &usage);
	return usage.ru_minflt;
}

static void test_faults(void)
{
	long before = 0;
	for (int i = 0; i < 3; i++) {
		struct kernel_paths paths;
		before = faults();
		check(!paths_of_cubin(large, large_bytes, KERNEL, &paths), "no answer");
		before = faults() - before;
		kernel_paths_free(&paths);
	}
	printf("pages touched by a third analysis: %ld\n", before);
	check(SANITIZED || before <= FAULTS, "an analysis touches new pages each time");
}

int main(int argc, char **argv)
{
	image = argc == 2 ? read_whole(argv[1], &bytes) : NULL;
	large = image ? make_large(image, bytes, &large_bytes) : NULL;
	if (!large)
		return 2;
	test_faults();
	check(is_right(), "the answer is another one");
	test_pieces();
	test_no_memory();
	test_threads();
	free((void *)(uintptr_t)image);
	free((void *)(uintptr_t)large);
	return failures != 0;
}
