/*
 * Between dlsym.S and filter.c.
 */
#ifndef CUCONST_DOORS_FILTER_H
#define CUCONST_DOORS_FILTER_H

#include <stdint.h>

/*
 * Returned in two registers. `decided` 0: not for us, jump to the real function; else `address`, NULL included, is the
 * answer.
 */
struct door_answer {
	void *address;
	uintptr_t decided;
};

/* `version` is NULL for dlsym. `caller` is the program's return address. */
struct door_answer door_filter(void *handle, const char *name, const char *version, const void *caller);

#endif
