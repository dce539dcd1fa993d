/* Which words of a parameter may lie in allocations with ranges: as one by one, whatever there is. */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "shim/verdict/words.h"

#define WORDS 70
#define ROUNDS 200000

static struct granules granules;
static uint64_t state = 88172645463325252u;

static uint64_t random_of(uint64_t count)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state % count;
}

/* Near the bounds and their upper halves, and elsewhere. */
static uint64_t random_value(const struct words_bounds *bounds)
{
	const uint64_t near[] = {
		bounds->low,       bounds->low + bounds->bytes, 0,
		UINT64_C(1) << 63, bounds->low >> 32 << 32,     (bounds->low + bounds->bytes - 1) >> 32 << 32};
	switch (random_of(4)) {
	case 0:
		return near[random_of(sizeof near / sizeof *near)] + random_of(9) - 4;
	case 1:
		return bounds->low + random_of(bounds->bytes ? bounds->bytes : 1);
	case 2:
		return (near[random_of(sizeof near / sizeof *near)] & ~UINT64_C(0xffffffff)) |
		       random_of(UINT64_C(1) << 32);
	default:
		return random_of(UINT64_MAX);
	}
}

struct taken {
	uint64_t value[WORDS];
	size_t nth[WORDS], count, max;
};

static bool take(void *context, uint64_t value, size_t nth)
{
	struct taken *taken = context;
	if (taken->count == taken->max)
		return false;
	taken->value[taken->count] = value;
	taken->nth[taken->count++] = nth;
	return true;
}

static bool one_by_one(const struct words_bounds *bounds, const char *words, size_t count, struct taken *taken)
{
	for (size_t nth = 0; nth < count; nth++) {
		uint64_t value;
		memcpy(&value, words + 8 * nth, sizeof value);
		uint64_t granule = value >> GRANULE_BITS;
		if (value >= bounds->low && value - bounds->low < bounds->bytes &&
		    granules.marks[granule % GRANULES / 64] >> granule % 64 & 1 && !take(taken, value, nth))
			return false;
	}
	return true;
}

Test(words, as_one_by_one)
{
	char room[8 * WORDS + 8];
	size_t found = 0, full = 0;
	for (size_t round = 0; round < ROUNDS; round++) {
		struct words_bounds bounds = {random_of(UINT64_C(1) << (16 + random_of(47))), 0, &granules};
		bounds.bytes = random_of(UINT64_C(1) << random_of(48));
		if (round % 1000 == 0)
			for (size_t i = 0; i < GRANULES / 64; i++)
				granules.marks[i] = random_of(UINT64_MAX) &
				                    (round % 2000 ? random_of(UINT64_MAX) : UINT64_MAX);
		size_t count = random_of(WORDS + 1), kinds = 1 + random_of(8);
		char *words = room + random_of(8);
		for (size_t i = 0; i < count; i++) {
			uint64_t value = random_of(8) < kinds ? random_value(&bounds) : 7;
			memcpy(words + 8 * i, &value, sizeof value);
		}
		struct taken all = {.max = random_of(2) ? WORDS : random_of(8)}, same = {.max = all.max};
		bool whole = words_each(&bounds, words, count, take, &all);
		cr_assert_eq(one_by_one(&bounds, words, count, &same), whole, "round %zu", round);
		cr_assert_eq(all.count, same.count, "round %zu", round);
		cr_assert_arr_eq(all.value, same.value, all.count * sizeof *all.value);
		cr_assert_arr_eq(all.nth, same.nth, all.count * sizeof *all.nth);
		found += all.count;
		full += !whole;
	}
	cr_assert_gt(found, ROUNDS);
	cr_assert_gt(full, ROUNDS / 20);
}
