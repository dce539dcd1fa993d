/* Launches whose answers hang on values of their parameters: those that come again and again do not go the long way for ever. */
#include <sys/mman.h>

#include "shim/effects/launch_memo_internal.h"
#include "shim/kernels/variants.h"
#include "tests/unit/verdict/memo_fake.h"

#define WORDS 12

/* Of code that stores through addresses which come from memory, if nothing is known of its parameters. */
static struct slot_paths reads[WORDS + 1];
static struct kernel_paths table = {.slots = reads, .slot_count = WORDS + 1, .reason = PATHS_TABLE},
			   clear = {.slots = reads, .slot_count = WORDS + 1, .reason = PATHS_CLEAR};

/* A kernel of so many addresses, all of them `value`, and a number behind them. */
static uint64_t value;
static uint32_t number;
static void *params[WORDS + 1];

static CUfunction kernel(unsigned addresses, const struct kernel_paths *paths)
{
	CUfunction of = function(1, addresses);
	for (unsigned i = 0; i < WORDS; i++) {
		reads[i] = (struct slot_paths){.use = SLOT_LOAD, .loaded = true};
		params[i] = &value;
	}
	params[addresses] = &number;
	has_paths(of, paths);
	return of;
}

/* The `nth` answer for some values: of the parameter, in those bits. */
static struct variant *answer_for(CUfunction of, unsigned nth, size_t param, uint32_t mask, uint32_t is,
                                  const struct kernel_paths *paths)
{
	const struct function_info *info = function_info(of);
	struct variant *variant = calloc(1, sizeof *variant + sizeof variant->guards[0]);
	cr_assert(variant && function_variants(info));
	*variant = (struct variant){.number = (uint16_t)(1 + nth), .paths = paths, .guard_count = 1};
	variant->guards[0] = (struct variant_guard){info->params[param].offset, mask, is, 0};
	atomic_store(&function_variants(info)->of[nth], variant);
	return variant;
}

/* How many of so many launches pass. */
static unsigned passing(CUfunction of, void **of_params, unsigned launches)
{
	unsigned passed = 0;
	while (launches--) {
		if (passes(of, of_params))
			passed++;
		else
			judge(of, of_params);
	}
	return passed;
}

/* The layout for some numbers is of an earlier stamp, and stays that as these come no more. It is found first, and does not stand before the one for all. */
Test(memo_values, numbers_that_come_no_more, .init = set_up)
{
	CUfunction of = kernel(1, &table);
	answer_for(of, 0, 1, UINT32_MAX, 7, &clear);
	number = 7;
	cr_assert_gt(passing(of, params, 10), 8);
	hook_stamp_renew();
	number = 8;
	cr_assert_gt(passing(of, params, 100), 90);
}

/* Where the course leads to the layout for all numbers, those with one of their own are answered there, until it is time to ask what the code does: which is not so again and again. */
Test(memo_values, numbers_that_are_answered_as_any, .init = set_up)
{
	CUfunction of = kernel(WORDS, &table);
	answer_for(of, 0, WORDS, UINT32_MAX, 7, &clear);
	number = 7;
	cr_assert_gt(passing(of, params, 10), 8);
	number = 8;
	cr_assert_gt(passing(of, params, 10), 8);
	number = 7;
	cr_assert_gt(passing(of, params, MEMO_LOOKS / WORDS), MEMO_LOOKS / WORDS - 10);
	cr_assert_gt(passing(of, params, 100), 90);
}

/* So it is with more addresses than are kept: the layout for all numbers gives up, and in that for these no word is looked at. */
Test(memo_values, many_addresses_that_are_answered_as_any, .init = set_up)
{
	CUfunction of = kernel(WORDS, &table);
	answer_for(of, 0, WORDS, UINT32_MAX, 7, &clear);
	number = 7;
	value = BESIDE;
	cr_assert_gt(passing(of, params, 10), 8);
	number = 8;
	value = 0;
	cr_assert_gt(passing(of, params, 10), 8);
	number = 7;
	value = BESIDE;
	cr_assert_gt(passing(of, params, 100), 90);
}

/* Two numbers with the same address, of which no layout is: each has a place. */
Test(memo_values, numbers_that_take_turns, .init = set_up)
{
	CUfunction of = kernel(1, &table);
	unsigned passed = 0;
	answer_for(of, 0, 1, UINT32_MAX, 7, NULL);
	answer_for(of, 1, 1, UINT32_MAX, 8, NULL);
	value = BESIDE;
	for (unsigned nth = 0; nth < 200; nth++) {
		number = 7 + nth % 2;
		passed += passing(of, params, 1);
	}
	cr_assert_gt(passed, 150, "%u", passed);
}

/*
 * The first address is stored through as far as is known, and noted; for the second it is asked what these numbers make of it, and with them nothing is stored through the first. So that is a
 * word which is noted and not looked at, and the rest is kept.
 */
Test(memo_values, what_was_noted_before_the_numbers_were_asked_for, .init = set_up)
{
	static struct slot_paths any[] = {{.use = SLOT_STORE}, {.use = SLOT_NONE}, {.use = SLOT_NONE}},
				 these[] = {{.use = SLOT_LOAD}, {.use = SLOT_STORE}, {.use = SLOT_NONE}};
	static struct kernel_paths first = {.slots = any, .slot_count = 3, .reason = PATHS_TABLE},
				   second = {.slots = these, .slot_count = 3, .reason = PATHS_CLEAR};
	CUfunction of = kernel(2, &first);
	answer_for(of, 0, 2, UINT32_MAX, 7, &second);
	number = 7;
	value = BESIDE;
	cr_assert_gt(passing(of, params, 100), 80);
}

/* More addresses than are kept, all of which are read. These numbers get a layout of their own, in which no word is looked at, also where that for all came first. */
Test(memo_values, numbers_that_come_after_others, .init = set_up)
{
	CUfunction of = kernel(WORDS, &table);
	answer_for(of, 0, WORDS, UINT32_MAX, 7, &clear);
	number = 8;
	passing(of, params, MEMO_LOOKS / WORDS + 10);
	number = 7;
	value = BESIDE;
	cr_assert_gt(passing(of, params, 100), 90);
}

/* An address, two bools side by side, and a number. */
static CUresult with_bools(CUfunction of, size_t index, size_t *ret_offset, size_t *ret_bytes)
{
	static const size_t offsets[] = {0, 8, 9, 12}, bytes[] = {8, 1, 1, 4};
	if (index > 3)
		return CUDA_ERROR_INVALID_VALUE;
	*ret_offset = offsets[index];
	*ret_bytes = bytes[index];
	return CUDA_SUCCESS;
}

/* A condition is on a word of four bytes, of which a bool has one. */
Test(memo_values, a_bool_that_an_answer_hangs_on, .init = set_up)
{
	bool flag = true, other = false;
	drv.cuFuncGetParamInfo = with_bools;
	CUfunction of = kernel(1, &table);
	void *list[] = {&value, &flag, &other, &number};
	answer_for(of, 0, 1, UINT8_MAX, 1, &clear);
	value = BESIDE;
	cr_assert_gt(passing(of, list, 100), 90);
}

/* The second bool decides, with nothing readable behind it. */
Test(memo_values, no_more_of_a_bool_is_read, .init = set_up)
{
	char *end = (char *)mmap(NULL, 0x2000, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) + 0x1000;
	cr_assert_eq(mprotect(end, 0x1000, PROT_NONE), 0);
	drv.cuFuncGetParamInfo = with_bools;
	CUfunction of = kernel(1, &table);
	void *list[] = {&value, end - 1, end - 1, &number};
	/* As the code reads them: in one word. */
	answer_for(of, 0, 2, 0, 0, &clear)->guards[0] = (struct variant_guard){8, 0xff00, 0x0100, 0};
	end[-1] = 1;
	value = BESIDE;
	cr_assert_gt(passing(of, list, 100), 90);
	end[-1] = 0;
	cr_assert(!passes(of, list), "another value");
}

/* As many conditions as there is room for, and one more. */
Test(memo_values, many_conditions, .init = set_up)
{
	for (size_t count = MEMO_GUARDS; count <= MEMO_GUARDS + 1; count++) {
		CUfunction of = function(NUMBERS, (unsigned)count);
		uint32_t numbers[MEMO_GUARDS + 1];
		void *list[MEMO_GUARDS + 2] = {&value};
		struct variant *variant = calloc(1, sizeof *variant + count * sizeof variant->guards[0]);
		kernel(1, &table);
		has_paths(of, &table);
		cr_assert(variant && function_variants(function_info(of)));
		*variant = (struct variant){.number = (uint16_t)count, .paths = &clear, .guard_count = count};
		for (size_t i = 0; i < count; i++) {
			numbers[i] = (uint32_t)i;
			list[1 + i] = &numbers[i];
			variant->guards[i] = (struct variant_guard){(uint32_t)function_info(of)->params[1 + i].offset,
			                                            UINT32_MAX, (uint32_t)i, 0};
		}
		atomic_store(&function_variants(function_info(of))->of[0], variant);
		value = BESIDE;
		cr_assert_eq(passing(of, list, 100) > 90, count <= MEMO_GUARDS, "%zu", count);
		numbers[count - 1]++;
		cr_assert(!passes(of, list), "%zu, the last of them", count);
	}
}

/* Any small number. */
Test(memo_values, a_number_that_is_small, .init = set_up)
{
	CUfunction of = kernel(1, &table);
	answer_for(of, 0, 1, 0, 0, &clear)->guards[0].small = 1;
	value = BESIDE;
	number = 3;
	judge(of, params);
	for (number = 0; number < PATHS_SMALL; number += PATHS_SMALL / 8)
		cr_assert(passes(of, params), "%u", number);
	number = PATHS_SMALL;
	cr_assert(!passes(of, params));
	number = UINT32_MAX;
	cr_assert(!passes(of, params));
}
