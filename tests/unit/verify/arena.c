/*
 * The arena against a plain list of what is taken: no two blocks overlap, all lie in slabs, and all memory comes
 * together again.
 */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "shim/verdict/verify_arena.h"

#define TAKEN 300

TestSuite(verify_arena, .timeout = 20);

Test(verify_arena, an_empty_one_has_nothing)
{
	struct verify_arena arena = {0};
	cr_assert_null(verify_arena_take(&arena, 1));
	verify_arena_give(&arena, NULL);
	verify_arena_clear(&arena);
}

Test(verify_arena, a_slab_is_used_to_its_end)
{
	struct verify_arena arena = {0};
	cr_assert_eq(verify_arena_add(&arena, 0x10000, 1024), 0);
	struct verify_block *blocks[4];
	for (int i = 0; i < 4; i++) {
		blocks[i] = verify_arena_take(&arena, i == 3 ? 256 : 1);
		cr_assert_eq(verify_block_address(blocks[i]), 0x10000u + 256u * (unsigned)i);
	}
	cr_assert_null(verify_arena_take(&arena, 1));
	verify_arena_give(&arena, blocks[1]);
	verify_arena_give(&arena, blocks[2]);
	cr_assert_null(verify_arena_take(&arena, 513));
	struct verify_block *merged = verify_arena_take(&arena, 512);
	cr_assert_eq(verify_block_address(merged), 0x10000 + 256);
	verify_arena_clear(&arena);
}

Test(verify_arena, slabs_grow_and_fit)
{
	struct verify_arena arena = {0};
	cr_assert_eq(verify_arena_next(&arena, 1), 1u << 20);
	cr_assert_eq(verify_arena_next(&arena, (40u << 20) + 1), (40u << 20) + 256);
	verify_arena_add(&arena, 1u << 20, 4u << 20);
	cr_assert_eq(verify_arena_next(&arena, 1), 4u << 20);
	verify_arena_add(&arena, 1u << 30, 64u << 20);
	cr_assert_eq(verify_arena_next(&arena, 1), 16u << 20);
	verify_arena_clear(&arena);
}

Test(verify_arena, random_use_against_a_list)
{
	struct verify_arena arena = {0};
	struct {
		struct verify_block *block;
		uint64_t start, bytes;
	} taken[TAKEN] = {0};
	static const uint64_t slabs[2] = {1u << 20, 3u << 20};
	unsigned refused = 0, given = 0;
	verify_arena_add(&arena, slabs[0], 1u << 20);
	verify_arena_add(&arena, slabs[1], 1u << 20);
	srand(11);
	for (unsigned step = 0; step < 20000; step++) {
		unsigned i = (unsigned)rand() % TAKEN;
		if (taken[i].block) {
			verify_arena_give(&arena, taken[i].block);
			taken[i].block = NULL;
			given++;
			continue;
		}
		uint64_t bytes = 1 + (uint64_t)rand() % (rand() % 8 ? 4000 : 60000);
		struct verify_block *block = verify_arena_take(&arena, bytes);
		if (!block) {
			refused++;
			continue;
		}
		uint64_t start = verify_block_address(block);
		cr_assert_eq(start % VERIFY_ARENA_ALIGN, 0);
		cr_assert((start >= slabs[0] && start + bytes <= slabs[0] + (1u << 20)) ||
		          (start >= slabs[1] && start + bytes <= slabs[1] + (1u << 20)));
		for (unsigned j = 0; j < TAKEN; j++)
			cr_assert(!taken[j].block || start + bytes <= taken[j].start ||
			          taken[j].start + taken[j].bytes <= start);
		taken[i].block = block;
		taken[i].start = start;
		taken[i].bytes = bytes;
	}
	cr_assert_gt(given, 1000);
	for (unsigned i = 0; i < TAKEN; i++)
		verify_arena_give(&arena, taken[i].block);
	cr_assert_eq(arena.used_bytes, 0);
	cr_assert_not_null(verify_arena_take(&arena, 1u << 20));
	cr_assert_not_null(verify_arena_take(&arena, 1u << 20));
	cr_assert_null(verify_arena_take(&arena, 1));
	verify_arena_clear(&arena);
	(void)refused;
}
