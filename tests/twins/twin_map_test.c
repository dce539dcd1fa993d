/* The table from addresses to twins. */
#include "shim/twins/twin_map.h"

#include <criterion/criterion.h>

#include "shim/hook_state.h"

#define G TWIN_GRANULE
#define BASE (UINT64_C(0x7) << 32)

static uint64_t twin(uint64_t address, uint64_t bytes)
{
	uint64_t other = 0;
	return twin_map_get(address, bytes, TWIN_ORIGINAL, &other) ? other : 0;
}

Test(twin_map, empty)
{
	uint64_t other = 77;

	cr_assert_not(twin_map_get(BASE, 1, TWIN_ORIGINAL, &other));
	cr_assert_not(twin_map_get(BASE, 1, TWIN_ALIAS, &other));
	cr_assert_not(twin_map_get(0, UINT64_MAX, TWIN_ORIGINAL, &other));
	cr_assert_not(twin_map_get(UINT64_MAX, 1, TWIN_ORIGINAL, &other));
	cr_assert_eq(other, 77);
	twin_map_clear(BASE, G);
	twin_map_clear(UINT64_MAX & ~(G - 1), G);
}

/* Who remembers a twin remembers the stamp. */
Test(twin_map, each_change_is_told)
{
	uint64_t stamp = hook_stamp();
	cr_assert(twin_map_set(BASE, G, TWIN_ORIGINAL, 5 * (int64_t)G));
	cr_assert_neq(hook_stamp(), stamp);
	stamp = hook_stamp();
	twin_map_clear(BASE, G);
	cr_assert_neq(hook_stamp(), stamp);
}

Test(twin_map, one_mapping)
{
	const int64_t away = 5 * (int64_t)G;

	cr_assert(twin_map_set(BASE, 3 * G, TWIN_ORIGINAL, away));
	cr_assert_eq(twin(BASE, 1), BASE + 5 * G);
	cr_assert_eq(twin(BASE + 17, 3 * G - 17), BASE + 5 * G + 17);
	cr_assert_eq(twin(BASE, 3 * G), BASE + 5 * G);
	cr_assert_eq(twin(BASE, 3 * G + 1), 0);
	cr_assert_eq(twin(BASE + 3 * G - 1, 2), 0);
	cr_assert_eq(twin(BASE - 1, 2), 0);
	cr_assert_eq(twin(BASE, 0), 0);
	cr_assert_eq(twin(BASE + G, UINT64_MAX), 0);
	twin_map_clear(BASE, 3 * G);
	cr_assert_eq(twin(BASE, 1), 0);
}

Test(twin_map, a_twin_below)
{
	cr_assert(twin_map_set(BASE, G, TWIN_ORIGINAL, -(int64_t)(BASE - 4 * G)));
	cr_assert_eq(twin(BASE + 9, 4), 4 * G + 9);
}

Test(twin_map, neighbours)
{
	cr_assert(twin_map_set(BASE, G, TWIN_ORIGINAL, 16 * (int64_t)G));
	cr_assert(twin_map_set(BASE + G, 2 * G, TWIN_ORIGINAL, 16 * (int64_t)G));
	cr_assert(twin_map_set(BASE + 3 * G, G, TWIN_ORIGINAL, 32 * (int64_t)G));
	cr_assert_eq(twin(BASE + 5, 3 * G - 5), BASE + 16 * G + 5, "one distance across mappings");
	cr_assert_eq(twin(BASE + 2 * G, G + 1), 0, "two distances");
	cr_assert_eq(twin(BASE + 3 * G, G), BASE + 35 * G);
}

Test(twin_map, sides)
{
	uint64_t other;

	cr_assert(twin_map_set(BASE, 2 * G, TWIN_ORIGINAL, 8 * (int64_t)G));
	cr_assert(twin_map_set(BASE + 8 * G, 2 * G, TWIN_ALIAS, -8 * (int64_t)G));
	cr_assert_not(twin_map_get(BASE, 1, TWIN_ALIAS, &other));
	cr_assert_not(twin_map_get(BASE + 8 * G, 1, TWIN_ORIGINAL, &other));
	cr_assert(twin_map_get(BASE + 9 * G + 3, 4, TWIN_ALIAS, &other));
	cr_assert_eq(other, BASE + G + 3);
}

Test(twin_map, more_than_a_run_and_a_leaf)
{
	/* 4 TiB and one granule: a run is cut at 2^20 - 1 granules, a leaf holds 2^14. */
	uint64_t bytes = (UINT64_C(4) << 40) + G;

	cr_assert(twin_map_set(BASE, bytes, TWIN_ORIGINAL, (int64_t)(UINT64_C(1) << 45)));
	cr_assert_eq(twin(BASE + 1, bytes - 1), BASE + 1 + (UINT64_C(1) << 45));
	cr_assert_eq(twin(BASE + 1, bytes), 0);
}

Test(twin_map, refuses)
{
	cr_assert_not(twin_map_set(BASE + 1, G, TWIN_ORIGINAL, (int64_t)G));
	cr_assert_not(twin_map_set(BASE, G - 1, TWIN_ORIGINAL, (int64_t)G));
	cr_assert_not(twin_map_set(BASE, G, TWIN_ORIGINAL, 4096));
	cr_assert_not(twin_map_set(BASE, 0, TWIN_ORIGINAL, (int64_t)G));
	cr_assert_not(twin_map_set(UINT64_C(1) << TWIN_ADDRESS_BITS, G, TWIN_ORIGINAL, (int64_t)G));
	cr_assert_not(twin_map_set((UINT64_C(1) << TWIN_ADDRESS_BITS) - G, 2 * G, TWIN_ORIGINAL, (int64_t)G));
	cr_assert(twin_map_set((UINT64_C(1) << TWIN_ADDRESS_BITS) - G, G, TWIN_ORIGINAL, -(int64_t)G));
	cr_assert_eq(twin(BASE, 1), 0);
}

Test(twin_map, touches)
{
	cr_assert(twin_map_set(BASE + 2 * G, 2 * G, TWIN_ALIAS, 8 * (int64_t)G));
	cr_assert(twin_map_set(BASE, G, TWIN_ORIGINAL, 8 * (int64_t)G));
	cr_assert(twin_map_touches(BASE, 2 * G + 1, TWIN_ALIAS));
	cr_assert_not(twin_map_touches(BASE, 2 * G, TWIN_ALIAS));
	cr_assert(twin_map_touches(BASE + 4 * G - 1, 1, TWIN_ALIAS));
	cr_assert_not(twin_map_touches(BASE + 4 * G, UINT64_MAX, TWIN_ALIAS));
	cr_assert(twin_map_touches(0, UINT64_MAX, TWIN_ALIAS), "over all leaves");
	cr_assert_not(twin_map_touches(BASE + 2 * G, 0, TWIN_ALIAS));
	cr_assert_not(twin_map_touches(UINT64_C(1) << TWIN_ADDRESS_BITS, 1, TWIN_ALIAS));
	cr_assert_not(twin_map_touches(UINT64_MAX, UINT64_MAX, TWIN_ALIAS));
	cr_assert(twin_map_touches(BASE, 1, TWIN_ORIGINAL));
	twin_map_clear(BASE + 2 * G, 2 * G);
	cr_assert_not(twin_map_touches(0, UINT64_MAX, TWIN_ALIAS));
}
