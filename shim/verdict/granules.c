#include "shim/verdict/granules.h"

#include <stdlib.h>

#include "shim/hot_page.h"

/* Allocations that reach into each. */
static uint32_t held[GRANULES];

bool granules_start(void)
{
	if (granules_all())
		return true;
	struct granules *granules = hot_page_take(sizeof *granules);
	if (!granules)
		granules = calloc(1, sizeof *granules);
	atomic_store_explicit(&hook_line.granules, granules, memory_order_release);
	return granules;
}

/* One that is larger than all granules together holds each of them once. */
static uint64_t first_and_count(uint64_t start, uint64_t end, uint64_t *ret_count)
{
	uint64_t first = start >> GRANULE_BITS, count = ((end - 1) >> GRANULE_BITS) - first + 1;
	*ret_count = count < GRANULES ? count : GRANULES;
	return first;
}

void granules_mark(uint64_t start, uint64_t end)
{
	struct granules *granules = atomic_load_explicit(&hook_line.granules, memory_order_relaxed);
	uint64_t count, first = first_and_count(start, end, &count);
	for (uint64_t granule = first; granule != first + count; granule++)
		if (!held[granule % GRANULES]++)
			atomic_fetch_or(&granules->marks[granule % GRANULES / 64], UINT64_C(1) << granule % 64);
}

void granules_clear(uint64_t start, uint64_t end)
{
	struct granules *granules = atomic_load_explicit(&hook_line.granules, memory_order_relaxed);
	uint64_t count, first = first_and_count(start, end, &count);
	for (uint64_t granule = first; granule != first + count; granule++)
		if (!--held[granule % GRANULES])
			atomic_fetch_and(&granules->marks[granule % GRANULES / 64], ~(UINT64_C(1) << granule % 64));
}
