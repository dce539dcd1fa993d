/*
 * Random kernels in which parameters decide what is stored through: by branches, guards, selections, loops and chains of cases, by one word or several; and in which some store only
 * through what a table holds.
 */
#ifndef CUCONST_TESTS_KERNELS_VALUES_GENERATE_H
#define CUCONST_TESTS_KERNELS_VALUES_GENERATE_H

#include <stddef.h>
#include <stdint.h>

#define VALUES_POINTERS 4 /* the first slots; the last of them may be null */

/* The parameters. */
struct values_block {
	uint64_t pointers[VALUES_POINTERS], table; /* of two addresses */
	uint32_t a, b, c;                          /* small */
	uint8_t f, gap[3];
	uint64_t d;
};

struct values_kernel {
	char *text; /* an entry named k, to stand behind values_head; free() it */
	size_t bytes;
};

extern const char values_head[];
struct values_kernel values_generate(uint64_t seed);

#endif
