/*
 * The fake driver: every cu* symbol of the table; a call does nothing but count. Its own symbols are found by handle:
 * they are not what a program calls.
 */
#ifndef CUCONST_TESTS_DOORS_FAKE_H
#define CUCONST_TESTS_DOORS_FAKE_H

#include <stdint.h>

enum fake_counter { CALL, LAUNCH, GRAPH_LAUNCH, NONE };

struct fake {
	uint64_t (*counted)(enum fake_counter counter); /* calls of rows that raise this count of the shim */
	uint64_t (*calls)(const char *symbol);
	void *(*address)(const char *symbol); /* the driver's own function */
	int (*inner)(void); /* what its own look-ups in its constructor met: 0 none made, 1 itself, 2 something else */
	void *(*returns_to)(const char *symbol); /* whom the last call of it returns to; NULL: there was none */
};

/* Exported by the fake driver as `fake_driver`. */
extern const struct fake fake_driver;

#endif
