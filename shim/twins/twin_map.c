#include "shim/twins/twin_map.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "shim/hook_state.h"

#define LEAF_BITS 14
#define LEAF (UINT64_C(1) << LEAF_BITS)
#define ROOT (UINT64_C(1) << (TWIN_ADDRESS_BITS - TWIN_GRANULE_BITS - LEAF_BITS))

/*
 * An entry is the distance, whose lower 21 bits are zero, with these in their place. RUN is how many granules from here
 * on, this one included, are known to have the same entry but for RUN, cut at its greatest value: so a lookup skips
 * them. RUN is 0 only in an empty entry.
 */
#define ENTRY_ALIAS UINT64_C(1)
#define ENTRY_RUN_SHIFT 1
#define ENTRY_RUN_MAX ((UINT64_C(1) << (TWIN_GRANULE_BITS - ENTRY_RUN_SHIFT)) - 1)

typedef _Atomic uint64_t leaf[LEAF];

static leaf *_Atomic roots[ROOT];

static bool in_reach(uint64_t start, uint64_t bytes)
{
	return start < UINT64_C(1) << TWIN_ADDRESS_BITS && bytes <= (UINT64_C(1) << TWIN_ADDRESS_BITS) - start;
}

/* NULL: nothing was ever set there. */
static _Atomic uint64_t *entry_at(uint64_t granule)
{
	leaf *found = atomic_load_explicit(&roots[granule >> LEAF_BITS], memory_order_acquire);
	return found ? &(*found)[granule & (LEAF - 1)] : NULL;
}

static bool make_leaves(uint64_t first, uint64_t count)
{
	for (uint64_t root = first >> LEAF_BITS; root <= (first + count - 1) >> LEAF_BITS; root++) {
		leaf *none = NULL, *made;
		if (atomic_load_explicit(&roots[root], memory_order_acquire))
			continue;
		made = calloc(1, sizeof *made);
		if (!made)
			return false;
		if (!atomic_compare_exchange_strong(&roots[root], &none, made))
			free(made);
	}
	return true;
}

bool twin_map_set(uint64_t start, uint64_t bytes, enum twin_side side, int64_t distance)
{
	uint64_t first = start >> TWIN_GRANULE_BITS, count = bytes >> TWIN_GRANULE_BITS;
	if ((start | bytes | (uint64_t)distance) & (TWIN_GRANULE - 1) || !count || !in_reach(start, bytes) ||
	    !make_leaves(first, count))
		return false;
	for (uint64_t i = 0; i < count; i++) {
		uint64_t run = count - i < ENTRY_RUN_MAX ? count - i : ENTRY_RUN_MAX;
		uint64_t entry = (uint64_t)distance | run << ENTRY_RUN_SHIFT | (side == TWIN_ALIAS ? ENTRY_ALIAS : 0);
		atomic_store_explicit(entry_at(first + i), entry, memory_order_release);
	}
	hook_stamp_renew();
	return true;
}

void twin_map_clear(uint64_t start, uint64_t bytes)
{
	uint64_t first = start >> TWIN_GRANULE_BITS, count = bytes >> TWIN_GRANULE_BITS;
	for (uint64_t i = 0; in_reach(start, bytes) && i < count; i++) {
		_Atomic uint64_t *entry = entry_at(first + i);
		if (entry)
			atomic_store_explicit(entry, 0, memory_order_release);
	}
	hook_stamp_renew();
}

bool twin_map_get(uint64_t address, uint64_t bytes, enum twin_side side, uint64_t *ret_other)
{
	uint64_t distance = 0;
	if (!bytes || !in_reach(address, bytes))
		return false;
	for (uint64_t at = address, left = bytes;;) {
		const _Atomic uint64_t *place = entry_at(at >> TWIN_GRANULE_BITS);
		uint64_t entry = place ? atomic_load_explicit(place, memory_order_acquire) : 0;
		uint64_t run = entry >> ENTRY_RUN_SHIFT & ENTRY_RUN_MAX;
		if (!run || (entry & ENTRY_ALIAS) != (side == TWIN_ALIAS ? ENTRY_ALIAS : 0))
			return false;
		if (at == address)
			distance = entry & ~(TWIN_GRANULE - 1);
		else if (distance != (entry & ~(TWIN_GRANULE - 1)))
			return false;
		uint64_t known = run * TWIN_GRANULE - (at & (TWIN_GRANULE - 1));
		if (known >= left)
			break;
		at += known;
		left -= known;
	}
	*ret_other = address + distance;
	return true;
}

bool twin_map_touches(uint64_t start, uint64_t bytes, enum twin_side side)
{
	const uint64_t limit = UINT64_C(1) << TWIN_ADDRESS_BITS;
	if (!bytes || start >= limit)
		return false;
	uint64_t at = start >> TWIN_GRANULE_BITS;
	uint64_t last = ((bytes <= limit - start ? start + bytes : limit) - 1) >> TWIN_GRANULE_BITS;
	while (at <= last) {
		const _Atomic uint64_t *place = entry_at(at);
		if (!place) { /* nor in all of the leaf */
			at = (at | (LEAF - 1)) + 1;
			continue;
		}
		uint64_t entry = atomic_load_explicit(place, memory_order_acquire);
		uint64_t run = entry >> ENTRY_RUN_SHIFT & ENTRY_RUN_MAX;
		if (run && (entry & ENTRY_ALIAS) == (side == TWIN_ALIAS ? ENTRY_ALIAS : 0))
			return true;
		at += run ? run : 1;
	}
	return false;
}
