/*
 * Which addresses have a twin, and where: a table by granules of 2 MiB, the grain of virtual memory management.
 * Internal to twins/.
 *
 * Reading takes no lock: two loads for a range that lies in one mapping, one more load for each further mapping.
 * Writers are kept apart by who calls (space.h). The table's leaves are made when they are first written to, and never
 * given back.
 */
#ifndef CUCONST_TWINS_TWIN_MAP_H
#define CUCONST_TWINS_TWIN_MAP_H

#include <stdbool.h>
#include <stdint.h>

#define TWIN_GRANULE_BITS 21
#define TWIN_GRANULE (UINT64_C(1) << TWIN_GRANULE_BITS)
#define TWIN_ADDRESS_BITS 49 /* what a GPU's MMU takes; addresses beyond have no twins */

enum twin_side {
	TWIN_ORIGINAL, /* the range is the program's; its twin lies `distance` away */
	TWIN_ALIAS,    /* the range belongs to a twin; what it mirrors lies `distance` away */
};

/*
 * The granules of [start, start + bytes) answer with this distance from now on. All three are multiples of
 * TWIN_GRANULE, and so must be what lies in between for a lookup to succeed. False: no memory, or beyond
 * TWIN_ADDRESS_BITS; then nothing has changed.
 */
bool twin_map_set(uint64_t start, uint64_t bytes, enum twin_side side, int64_t distance);

/*
 * They answer nothing any more. Clear what was set as it was set, not a part of it: a lookup skips to the end of what
 * one call has set.
 */
void twin_map_clear(uint64_t start, uint64_t bytes);

/*
 * True when all of [address, address + bytes) is of that side with one distance; then *ret_other is the address on the
 * other side.
 */
bool twin_map_get(uint64_t address, uint64_t bytes, enum twin_side side, uint64_t *ret_other);

/*
 * Does any granule of [start, start + bytes) belong to that side? The range may be any, also one that wraps: then what
 * is up to the end counts.
 */
bool twin_map_touches(uint64_t start, uint64_t bytes, enum twin_side side);

#endif
