#include "shim/verdict/area.h"

#include <stdatomic.h>

#include "shim/hook_state.h"
#include "shim/verdict/neighbours.h"
#include "shim/verdict/protect.h"

#define PLACES_BITS 12
#define HOLDERS 2 /* more than one: not remembered */

/* Guarded by a sequence number, odd while it is written; every member is atomic, so a torn read is seen, not undefined. A cache line. */
static struct place {
	_Atomic uint32_t sequence, kind;
	_Atomic uint64_t address, generation;
	_Atomic registry_handle neighbourhood, range;
} __attribute__((aligned(64))) places[1u << PLACES_BITS];

/* Neither falls, so the sum is the same only while both are. */
static uint64_t generation_now(const struct registry *all, const struct registry *ranges)
{
	return registry_generation(all) + registry_generation(ranges);
}

HOOK_HOT struct area_view area_view(void)
{
	struct registry *all = neighbours_all(), *ranges = protect_ranges();
	if (!all || !ranges)
		return (struct area_view){.bytes = 0};
	/* First: what is found later is as new as that, or newer. */
	uint64_t generation = generation_now(all, ranges);
	uint64_t low = atomic_load_explicit(&all->low, memory_order_relaxed);
	uint64_t high = atomic_load_explicit(&all->high, memory_order_relaxed);
	return (struct area_view){.low = low, .bytes = high > low ? high - low : 0, .generation = generation};
}

/* How many hold the address, cut at HOLDERS; *ret_only is the one, 0: none, or several. */
static size_t holding(struct registry *registry, uint64_t address, registry_handle *ret_only)
{
	struct range *found[HOLDERS];
	size_t count = registry_stab(registry, address, found, HOLDERS);
	count = count < HOLDERS ? count : HOLDERS;
	*ret_only = count == 1 ? found[0]->handle : 0;
	for (size_t i = 0; i < count; i++)
		range_put(found[i]);
	return count;
}

static struct area ask(uint64_t address)
{
	struct area area = {.kind = AREA_ELSEWHERE};
	if (holding(neighbours_all(), address, &area.neighbourhood))
		area.kind = holding(protect_ranges(), address, &area.range) ? AREA_INSIDE : AREA_BESIDE;
	return area;
}

static void keep(struct place *place, const struct area_view *view, uint64_t address, const struct area *area)
{
	uint32_t sequence = atomic_load_explicit(&place->sequence, memory_order_relaxed);
	if (sequence & 1 || !atomic_compare_exchange_strong(&place->sequence, &sequence, sequence + 1))
		return;
	/* Release stores: none can come before the number is odd. */
	atomic_store_explicit(&place->kind, area->kind, memory_order_release);
	atomic_store_explicit(&place->address, address, memory_order_release);
	atomic_store_explicit(&place->generation, view->generation, memory_order_release);
	atomic_store_explicit(&place->neighbourhood, area->neighbourhood, memory_order_release);
	atomic_store_explicit(&place->range, area->range, memory_order_release);
	atomic_store_explicit(&place->sequence, sequence + 2, memory_order_release);
}

HOOK_HOT struct area area_of(const struct area_view *view, uint64_t address)
{
	struct place *place = &places[address * 0x9e3779b97f4a7c15u >> (64 - PLACES_BITS)];
	uint32_t sequence = atomic_load_explicit(&place->sequence, memory_order_acquire);
	struct area area = {
		.kind = (enum area_kind)atomic_load_explicit(&place->kind, memory_order_acquire),
		.neighbourhood = atomic_load_explicit(&place->neighbourhood, memory_order_acquire),
		.range = atomic_load_explicit(&place->range, memory_order_acquire),
	};
	/* Acquire loads: the second look at the number cannot come before them. */
	if (!(sequence & 1) && atomic_load_explicit(&place->address, memory_order_acquire) == address &&
	    atomic_load_explicit(&place->generation, memory_order_acquire) == view->generation &&
	    atomic_load_explicit(&place->sequence, memory_order_relaxed) == sequence)
		return area;
	area = ask(address);
	/* What changed meanwhile may have been seen in part. */
	if (generation_now(neighbours_all(), protect_ranges()) == view->generation &&
	    (area.kind == AREA_ELSEWHERE || area.neighbourhood))
		keep(place, view, address, &area);
	return area;
}
