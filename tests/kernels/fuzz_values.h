/* For the fuzz targets: values of parameters, drawn from the end of the input, so that mutations reach them. */
#ifndef CUCONST_TESTS_FUZZ_VALUES_H
#define CUCONST_TESTS_FUZZ_VALUES_H

#include <stdlib.h>
#include <string.h>

#include "shim/kernels/paths.h"

#define FUZZ_VALUES 256

struct fuzz_values {
	uint8_t bytes[FUZZ_VALUES], known[FUZZ_VALUES], used[FUZZ_VALUES];
};

/* Words of four bytes, each exact, small, not known, or a mixture. */
static inline struct paths_values fuzz_values(struct fuzz_values *room, const uint8_t *data, size_t length)
{
	memset(room, 0, sizeof *room);
	for (size_t i = 0; i < FUZZ_VALUES && length; i++) {
		uint8_t kind = data[length - 1 - i / 4 % length];
		room->bytes[i] = data[length - 1 - i % length];
		room->known[i] = (kind & 12 ? kind : kind + (uint8_t)i) % (VALUE_SMALL + 1);
	}
	return (struct paths_values){.bytes = room->bytes, .known = room->known, .used = room->used, .count = FUZZ_VALUES};
}

/* An answer that is not better is empty, and nothing is read of it. */
static inline void fuzz_check(int answer, bool better, struct kernel_paths *paths)
{
	if (answer)
		return;
	if (better && paths->reason > PATHS_LIMIT)
		abort();
	kernel_paths_free(paths);
}

#endif
