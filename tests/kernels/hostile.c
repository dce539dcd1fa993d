/*
 * Damaged images, to be built with sanitizers: hostile CUBIN FATBIN MUTATIONS. The cubin cut at every byte: never clear but where all that matters is still
 * there, and then the same answer. Then mutations from a seed, of both: any answer, no fault.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shim/kernels/paths.h"
#include "tests/kernels/file.h"
#include "tests/kernels/image.h"

static const char *const kernels[] = {"copy", "indexed", "choose"};
#define KERNELS (sizeof kernels / sizeof kernels[0])

static bool same(const struct kernel_paths *a, const struct kernel_paths *b)
{
	return a->reason == b->reason && a->slot_count == b->slot_count && a->store_count == b->store_count &&
	       !memcmp(a->slots, b->slots, a->slot_count * sizeof *a->slots);
}

static int cut_everywhere(const uint8_t *image, size_t bytes)
{
	int faults = 0;
	unsigned unclear = 0;
	for (size_t k = 0; k < KERNELS; k++) {
		struct kernel_paths whole, part;
		if (paths_of_cubin(image, bytes, kernels[k], &whole) || whole.reason != PATHS_CLEAR) {
			printf("%s: not clear\n", kernels[k]);
			return 1;
		}
		for (size_t cut = 0; cut < bytes; cut++) {
			/* A copy just as long: reading on is seen. */
			uint8_t *copy = malloc(cut ? cut : 1);
			memcpy(copy, image, cut);
			if (!paths_of_cubin(copy, cut, kernels[k], &part)) {
				if (part.reason == PATHS_CLEAR && !same(&whole, &part)) {
					printf("%s cut at %zu: clear, but another answer\n", kernels[k], cut);
					faults++;
				}
				unclear += part.reason != PATHS_CLEAR;
				kernel_paths_free(&part);
			}
			free(copy);
		}
		kernel_paths_free(&whole);
	}
	printf("%u cuts not clear\n", unclear);
	return faults || unclear < bytes;
}

static uint32_t next(uint64_t *state)
{
	*state = *state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(*state >> 33);
}

static void mutate(const uint8_t *image, size_t bytes, unsigned count)
{
	static const uint32_t nasty[] = {0, 1, 0x7f, 0x80, 0xff, 0x7fff, 0xffff, 0x7fffffff, 0x80000000, 0xffffffff};
	uint8_t *copy = malloc(bytes);
	for (unsigned seed = 0; seed < count; seed++) {
		uint64_t state = seed * 2654435761u + 1;
		memcpy(copy, image, bytes);
		for (unsigned i = 0, changes = 1 + next(&state) % 8; i < changes; i++) {
			size_t at = next(&state) % (bytes - 4);
			uint32_t value = next(&state) % 2 ? next(&state) : nasty[next(&state) % 10];
			memcpy(copy + at, &value, 1 + next(&state) % 4);
		}
		analyse_image(copy, bytes);
	}
	free(copy);
}

int main(int argc, char **argv)
{
	size_t cubin_bytes, fatbin_bytes;
	uint8_t *cubin = argc == 4 ? read_whole(argv[1], &cubin_bytes) : NULL,
		*fatbin = argc == 4 ? read_whole(argv[2], &fatbin_bytes) : NULL;
	if (!cubin || !fatbin)
		return 1;
	int faults = cut_everywhere(cubin, cubin_bytes);
	mutate(cubin, cubin_bytes, (unsigned)atoi(argv[3]));
	mutate(fatbin, fatbin_bytes, (unsigned)atoi(argv[3]));
	free(cubin);
	free(fatbin);
	return faults;
}
