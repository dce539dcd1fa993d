/* What the generators of random kernels share: numbers that a seed decides, and lines of PTX. */
#ifndef CUCONST_TESTS_KERNELS_RANDOM_TEXT_H
#define CUCONST_TESTS_KERNELS_RANDOM_TEXT_H

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>

/* The next number below `below`. The state is never 0. */
static inline unsigned random_below(uint64_t *state, unsigned below)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return (unsigned)((*state * 0x2545f4914f6cdd1dull) >> 33) % below;
}

__attribute__((format(printf, 2, 0))) static inline void put_line(FILE *out, const char *format, va_list list)
{
	fputc('\t', out);
	vfprintf(out, format, list);
	fputc('\n', out);
}

#endif
