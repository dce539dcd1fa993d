/* Checks of the plain programs here: a failed one says where, and ends the program with 1. */
#ifndef SERVE_CHECK_H
#define SERVE_CHECK_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define CHECK(condition)                                                                                               \
	do {                                                                                                           \
		if (!(condition)) {                                                                                    \
			fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);                        \
			exit(1);                                                                                       \
		}                                                                                                      \
	} while (0)

#define CHECK_EQUAL(actual, expected)                                                                                  \
	do {                                                                                                           \
		long long actual_ = (long long)(actual), expected_ = (long long)(expected);                            \
		if (actual_ != expected_) {                                                                            \
			fprintf(stderr, "%s:%d: %s is %lld, not %lld\n", __FILE__, __LINE__, #actual, actual_,         \
			        expected_);                                                                            \
			exit(1);                                                                                       \
		}                                                                                                      \
	} while (0)

/* The driver's answer must be success. */
#define NEED(call) CHECK_EQUAL(call, 0)

/* splitmix64: the same numbers from the same seed, everywhere. */
static inline uint64_t next_random(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15u;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
}

#endif
