/*
 * Where an address lies: in a protected range, beside one in its allocation, or elsewhere. Programs launch with the same addresses again and again, so what was found
 * is remembered until a protection begins or ends.
 *
 * Thread-safe. No lock, and no reference is kept.
 */
#ifndef CUCONST_VERDICT_AREA_H
#define CUCONST_VERDICT_AREA_H

#include <stdint.h>

#include "registry/registry.h"

enum area_kind {
	AREA_ELSEWHERE, /* in no allocation that holds a protected range */
	AREA_BESIDE,    /* in one, in no range */
	AREA_INSIDE     /* in a range */
};

struct area {
	enum area_kind kind;
	registry_handle neighbourhood; /* the one that holds it, for verdict/neighbours.h; 0: none, or several */
	registry_handle range;         /* the same of ranges */
};

/* What is protected at this moment: addresses outside [low, low + bytes) lie elsewhere. */
struct area_view {
	uint64_t low, bytes;
	uint64_t generation;
};
struct area_view area_view(void);

/* An address within the view's bounds. */
struct area area_of(const struct area_view *view, uint64_t address);

#endif
