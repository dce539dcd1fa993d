/*
 * The table of range structs: one slot per handle, references, strings, reuse. Private to registry/.
 *
 * Slots live in chunks that are never moved and never given back while the table lives, so a reader may look at the
 * reference count of any slot at any time. Everything else of a slot is read only by who holds a reference or the
 * writer's lock.
 */
#ifndef CUCONST_REGISTRY_RANGES_H
#define CUCONST_REGISTRY_RANGES_H

#include "registry/registry.h"

/*
 * Chunk c holds RANGES_FIRST_CHUNK << c slots; all of them together hold RANGES_MOST, some fewer than a handle
 * could name.
 */
#define RANGES_FIRST_CHUNK 64u
#define RANGES_CHUNKS 26
#define RANGES_MOST (RANGES_FIRST_CHUNK * ((1u << RANGES_CHUNKS) - 1))
#define RANGES_NO_SLOT UINT32_MAX
#define RANGES_LAST_GENERATION UINT32_MAX

struct ranges;

/* Two cache lines; what taking a reference and looking at the attachment touch lies in the first. */
struct slot {
	_Atomic uint32_t references; /* 0: nobody may touch `range`; the registry itself counts as one */
	uint32_t next;               /* free slots are chained by index */
	struct ranges *table;
	struct range range; /* its handle outlives it: the next one is made from it */
} __attribute__((aligned(64)));

struct ranges {
	struct registry_hooks hooks;
	_Atomic(struct slot *) chunk[RANGES_CHUNKS];
	uint32_t used;             /* slots that were ever given a handle; writer's lock */
	uint32_t free;             /* head of the chain of free slots; writer's lock */
	_Atomic uint32_t returned; /* head of the chain of slots given back by range_put(), which has no lock */
};

void ranges_init(struct ranges *table, const struct registry_hooks *hooks);

/* Frees all slots; ranges still referenced are released first, once each. No other thread may use the table. */
void ranges_destroy(struct ranges *table);

/*
 * A copy of `spec` whose strings are one block of their own, which begins with the label (never NULL): 0 or -ENOMEM.
 * ranges_add() takes the block; else ranges_drop_spec() frees it.
 */
int ranges_copy_spec(const struct registry_spec *spec, struct registry_spec *ret_copy);
void ranges_drop_spec(struct registry_spec *copy);

/* Makes sure that ranges_add() finds a slot: 0 or -ENOMEM. Writer's lock. */
int ranges_reserve(struct ranges *table);

/*
 * Fills a slot that ranges_reserve() found, with a new handle and `references` references. `copy` is from
 * ranges_copy_spec(): its strings now belong to the range. Writer's lock.
 */
struct range *ranges_add(struct ranges *table, const struct registry_spec *copy, uint32_t references);

/* The live range of a handle: 0, -ENOENT (never given) or -ESTALE (removed). No reference taken. Writer's lock. */
int ranges_lookup(struct ranges *table, registry_handle handle, struct range **ret_range);

/*
 * A reference to the range of a handle, or NULL: never given, or gone. Removed ranges that somebody still holds are
 * found too. Any value will do. Lock-free.
 */
struct range *ranges_take(struct ranges *table, registry_handle handle);

#endif
