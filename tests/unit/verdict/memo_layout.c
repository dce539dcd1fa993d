/* Launches that were judged before: how their words are found in parameters of all numbers and sizes. */
#include <string.h>

#include "shim/kernels/variants.h"
#include "tests/unit/verdict/memo_fake.h"

Test(memo_layout, more_parameters_and_larger_ones, .init = set_up)
{
	uint64_t value = NO_CONCERN, none = 0;
	void *params[64];
	int number = 7;
	for (unsigned count = 1; count < 60; count++) {
		CUfunction storing = function(5, count);
		has_paths(storing, &all_stored);
		for (unsigned i = 0; i < count; i++)
			params[i] = i + 1 < count ? &none : &value;
		params[count] = &number;
		judge(storing, params);
		cr_assert_eq(passes(storing, params), count <= 56, "%u parameters and the number", count);
	}
}

/* A place has 8 bits to say which word is hit, or 16 for four of them: of two that differ by 256 one must not be taken for the other. */
Test(memo_layout, words_far_from_the_first, .init = set_up)
{
	uint64_t block[2 * WIDE_WORDS] = {0};
	int number = 7;
	void *params[] = {block, block + WIDE_WORDS, &number};
	static struct slot_paths read[2 * WIDE_WORDS];
	static struct kernel_paths paths = {.slots = read, .slot_count = 2 * WIDE_WORDS, .reason = PATHS_CLEAR};
	CUfunction storing = function(WIDE, 2);
	for (unsigned i = 0; i < 2 * WIDE_WORDS; i++)
		read[i].use = SLOT_STORE;
	has_paths(storing, &paths);
	for (unsigned words = 1; words <= MEMO_WORDS; words++) {
		uint64_t *last = &block[words - 1], *far = last + 256;
		*last = NO_CONCERN;
		judge(storing, params);
		cr_assert(passes(storing, params), "%u words", words);
		*last = 0;
		*far = NO_CONCERN;
		cr_assert(!passes(storing, params), "%u words, the last of them far behind", words);
		judge(storing, params);
		cr_assert_eq(passes(storing, params), words <= 4, "%u words, that was judged", words);
		*far = 0;
		*last = NO_CONCERN;
		cr_assert(passes(storing, params), "%u words, the first launch is still known", words);
	}
}

/* As the lists of tensors that a kernel is given by value. */
Test(memo_layout, long_parameters, .init = set_up)
{
	enum { LONGEST = WIDEST - WIDE + WIDE_WORDS };
	static uint64_t block[LONGEST + 1], after;
	static struct slot_paths nowhere[LONGEST];
	static struct kernel_paths paths = {.slots = nowhere, .slot_count = LONGEST, .reason = PATHS_CLEAR};
	void *params[] = {block, &after};
	for (size_t i = 0; i < LONGEST; i++)
		nowhere[i].use = SLOT_STORE;
	for (unsigned words = 250; words < 520; words++) {
		CUfunction storing = function(WIDE + words - WIDE_WORDS, 1);
		has_paths(storing, &paths);
		judge(storing, params);
		cr_assert(passes(storing, params), "%u words", words);
		/* Not to be overlooked so far behind. */
		block[words - 1] = NO_CONCERN;
		cr_assert(!passes(storing, params), "the last of %u words", words);
		judge(storing, params);
		cr_assert(passes(storing, params), "the last of %u words, again", words);
		block[words - 1] = 0;
		block[words] = NO_CONCERN;
		cr_assert(passes(storing, params), "behind %u words", words);
		block[words] = 0;
	}
	CUfunction huge = function(WIDEST, 1);
	has_paths(huge, &paths);
	judge(huge, params);
	cr_assert(passes(huge, params), "%d words", LONGEST);
	block[LONGEST - 1] = NO_CONCERN;
	cr_assert(!passes(huge, params));
}

/* Of launches whose addresses concern nothing only the layout is kept, which says where they lie. */
Test(memo_layout, a_handle_may_mean_one_of_more_parameters, .init = set_up)
{
	uint64_t none = 0, value = BESIDE;
	int number = 7;
	void *params[] = {&none, &number, &number}, *others[] = {&none, &value, &number};
	judge(function(1, 1), params);
	cr_assert(passes(function(1, 1), params));
	function_forget();
	more = 1;
	has_paths(function(1, 1), &all_stored);
	cr_assert(!passes(function(1, 1), others));
	judge(function(1, 1), others);
	cr_assert(!passes(function(1, 1), others), "the next is due");
}

Test(memo_layout, more_functions_than_layouts, .init = set_up)
{
	uint64_t none = 0, value = BESIDE;
	int number = 7;
	void *params[] = {&none, &number, &number}, *others[] = {&none, &value, &number};
	for (unsigned i = 1; i < 3000; i++) {
		judge(function(i, 1), params);
		cr_assert(passes(function(i, 1), params));
	}
	for (unsigned i = 1; i < 3000; i++)
		cr_assert(!passes(function(i, 2), others), "nobody knows %u", i);
}

/* Where that parameter is 7 it stores through its first one, or not, and else through what it loads. */
static void has_variant(CUfunction of, size_t param, uint16_t number, enum slot_use first)
{
	static struct slot_paths nowhere[400];
	static struct kernel_paths clean = {.slots = nowhere, .slot_count = 400, .reason = PATHS_CLEAR},
				   table = {.slots = nowhere, .slot_count = 400, .reason = PATHS_TABLE};
	const struct function_info *info = function_info(of);
	nowhere[0].use = first;
	has_paths(of, &table);
	struct variant *variant = calloc(1, sizeof *variant + sizeof variant->guards[0]);
	cr_assert(variant && function_variants(info));
	variant->number = number;
	variant->paths = &clean;
	variant->guard_count = 1;
	variant->guards[0] = (struct variant_guard){.offset = info->params[param].offset, .mask = UINT32_MAX, .value = 7};
	atomic_store(&function_variants(info)->of[0], variant);
}

/* An address beside a range, and a number. */
static struct {
	uint64_t value;
	uint32_t number;
	void *params[2];
} numbered = {BESIDE, 7, {&numbered.value, &numbered.number}};

Test(memo_layout, numbers_that_an_answer_hangs_on, .init = set_up)
{
	CUfunction of = function(NUMBERS, 1);
	has_variant(of, 1, 0, SLOT_NONE);
	judge(of, numbered.params);
	cr_assert(passes(of, numbered.params));
	numbered.number = 8;
	cr_assert(!passes(of, numbered.params));
	numbered.params[1] = NULL;
	cr_assert(!passes(of, numbered.params), "it is not there");
}

/* Then it is not looked at for what it reads; with other numbers each word may be one that it stores through. */
Test(memo_layout, numbers_that_a_layout_is_for, .init = set_up)
{
	CUfunction of = function(NUMBERS, 1);
	has_variant(of, 1, 1, SLOT_LOAD);
	judge(of, numbered.params);
	for (int round = 0; round < 3; round++) {
		numbered.number = 7;
		numbered.value = BESIDE + 8;
		cr_assert(passes(of, numbered.params), "any address, round %d", round);
		numbered.number = 8;
		cr_assert(!passes(of, numbered.params), "round %d", round);
		judge_often(of, numbered.params);
		cr_assert(!passes(of, numbered.params), "nothing is known of such numbers, round %d", round);
		numbered.value = 0x100000;
		cr_assert(passes(of, numbered.params), "an address far away, round %d", round);
		numbered.value = BESIDE;
		numbered.params[1] = NULL;
		cr_assert(!passes(of, numbered.params), "it is not there, round %d", round);
		numbered.params[1] = &numbered.number;
	}
	hook_stamp_renew();
	numbered.number = 7;
	cr_assert(!passes(of, numbered.params));
	judge(of, numbered.params);
	numbered.value = BESIDE + 16;
	cr_assert(passes(of, numbered.params), "known again at once");
}

Test(memo_layout, what_is_stored_through_for_such_numbers, .init = set_up)
{
	CUfunction of = function(NUMBERS, 1);
	has_variant(of, 1, 1, SLOT_STORE);
	judge_often(of, numbered.params);
	uint64_t near = hook_counted(COUNT_NEAR);
	cr_assert(passes(of, numbered.params));
	cr_assert_eq(hook_counted(COUNT_NEAR), near + 1);
	numbered.value = BESIDE + 8;
	cr_assert(!passes(of, numbered.params), "another address");
	numbered.number = 8;
	cr_assert(!passes(of, numbered.params), "another number");
	numbered.value = BESIDE;
	cr_assert(!passes(of, numbered.params), "another number with the same address");
	numbered.number = 7;
	cr_assert(passes(of, numbered.params));
}

/* The number of a parameter has a byte: 300 is not taken for 44. */
Test(memo_layout, a_number_far_behind_that_an_answer_hangs_on, .init = set_up)
{
	uint64_t value = BESIDE;
	uint32_t numbers[400] = {0};
	void *params[400] = {&value};
	CUfunction of = function(NUMBERS, 250);
	more = 149;
	for (unsigned i = 1; i < 400; i++)
		params[i] = &numbers[i];
	numbers[300] = numbers[44] = 7;
	has_variant(of, 300, 0, SLOT_NONE);
	judge(of, params);
	numbers[300] = 8;
	cr_assert(!passes(of, params));
}

/* Words that the code stores through nothing at may look like any, and no count has them. */
Test(memo_layout, what_is_not_stored_through_is_not_looked_at, .init = set_up)
{
	static struct slot_paths slots[] = {
		{.use = SLOT_NONE}, {.use = SLOT_STORE}, {.use = SLOT_NONE}, {.use = SLOT_LOAD}};
	static struct kernel_paths paths = {.slots = slots, .slot_count = 4, .reason = PATHS_CLEAR}, unclear;
	uint64_t values[4] = {0};
	int number = 7;
	void *params[] = {&values[0], &values[1], &values[2], &values[3], &number};
	CUfunction of = function(1, 4), other = function(2, 4);
	has_paths(of, &paths);
	judge(of, params);
	uint64_t clean = hook_counted(COUNT_CLEAN);
	for (unsigned i = 0; i < 4; i++) {
		values[i] = BESIDE;
		cr_assert_eq(passes(of, params), slots[i].use != SLOT_STORE, "%u", i);
		cr_assert_eq(hook_counted(COUNT_CLEAN), clean, "%u", i);
		judge_often(of, params);
		cr_assert(passes(of, params), "%u, again", i);
		values[i] = 0;
	}
	/* Of code that is not understood each word may be one. */
	unclear = paths;
	unclear.reason = PATHS_TABLE;
	has_paths(other, &unclear);
	judge(other, params);
	for (unsigned i = 0; i < 4; i++) {
		values[i] = BESIDE;
		cr_assert(!passes(other, params), "%u", i);
		values[i] = 0;
	}
	/* One that was left out need not be there: the driver says so. */
	params[0] = NULL;
	cr_assert(passes(of, params));
	cr_assert(!passes(other, params));
}

/* Launches that concern nothing never ask for their code, and many words of each are looked at: until that has taken as long as to ask. Once. */
Test(memo_layout, many_words_are_asked_about, .init = set_up)
{
	enum { WORDS = 400, LAUNCHES = 1000 };
	static uint64_t block[WORDS];
	CUfunction wide = function(WIDE + WORDS - WIDE_WORDS, 1), small = function(1, 8), *both[] = {&wide, &small};
	int number = 7;
	void *params[] = {block, block, block, block, block, block, block, block, &number};
	for (unsigned i = 0; i < 2; i++) {
		unsigned passed = 0;
		judge(*both[i], params);
		for (unsigned nth = 0; nth < LAUNCHES; nth++) {
			if (passes(*both[i], params))
				passed++;
			else
				judge(*both[i], params);
		}
		cr_assert_eq(passed, LAUNCHES - !i);
		cr_assert_eq(function_paths(function_info(*both[i])) != NULL, !i);
	}
}

/* What was kept while all words were looked at is of no use when some are not: which word is which has changed. */
Test(memo_layout, what_is_looked_at_changes, .init = set_up)
{
	static struct slot_paths slots[] = {{.use = SLOT_NONE}, {.use = SLOT_NONE},  {.use = SLOT_NONE},
	                                    {.use = SLOT_NONE}, {.use = SLOT_STORE}, {.use = SLOT_NONE}};
	static struct kernel_paths paths = {.slots = slots, .slot_count = 6, .reason = PATHS_CLEAR};
	uint64_t values[6] = {0}, in_granule = 0xa000;
	int number = 7;
	void *params[] = {&values[0], &values[1], &values[2], &values[3], &values[4], &values[5], &number};
	CUfunction of = function(1, 6);
	values[0] = in_granule;
	judge(of, params);
	cr_assert(passes(of, params), "it concerns nothing, and is kept as such");
	cr_assert(neighbours_join(0xa000, 0xb000));
	values[0] = 0;
	judge(of, params);
	has_paths(of, &paths);
	values[0] = in_granule;
	judge(of, params);
	cr_assert(passes(of, params));
	values[0] = 0;
	values[4] = in_granule;
	cr_assert(!passes(of, params), "the first that is looked at is another");
	judge_often(of, params);
	cr_assert(passes(of, params));
}

/* What nobody launches any more makes room, wherever addresses are multiples of 16. */
Test(memo_layout, a_step_after_many_other_launches, .init = set_up)
{
	enum { OTHERS = 8192, LAUNCHES = 512, KERNELS = 150, ROUNDS = 20 };
	uint64_t values[3];
	int number = 7;
	void *params[] = {&values[0], &values[1], &values[2], &number};
	unsigned passed = 0;
	cr_assert(neighbours_join(0x5f0000, 0x600000));
	for (unsigned i = 0; i < KERNELS; i++)
		has_paths(function(10 + i, 3), &all_stored);
	for (unsigned nth = 0; nth < OTHERS + (ROUNDS + 1) * LAUNCHES; nth++) {
		bool other = nth < OTHERS;
		unsigned which = other ? nth : (nth - OTHERS) % LAUNCHES;
		CUfunction of = function(10 + which * 7919 % KERNELS, 3);
		for (unsigned i = 0; i < 3; i++)
			values[i] = (other ? 0x500000 : 0x100000) + (which * 3 + i) * 16;
		if (passes(of, params))
			passed += nth >= OTHERS + ROUNDS * LAUNCHES;
		else
			judge(of, params);
	}
	cr_assert_gt(passed, LAUNCHES * 3 / 4, "%u of %u", passed, LAUNCHES);
}

/* Whatever pieces its parameters are looked at in: each word that may be an address is. One word in `every` is a number; 0: its code is not understood. */
static void each_word_is_looked_at(unsigned shift, unsigned words, unsigned every)
{
	static struct slot_paths slots[500];
	static uint64_t block[500];
	static struct kernel_paths paths;
	int small = 7;
	void *params[] = {block, &small};
	CUfunction of = function(WIDE + words - WIDE_WORDS, 1);
	paths = (struct kernel_paths){.slots = slots, .slot_count = words, .reason = every ? PATHS_CLEAR : PATHS_TABLE};
	for (unsigned i = 0; i < words; i++)
		slots[i].use = every && (i * 7919 + shift) % every ? SLOT_NONE : SLOT_STORE;
	has_paths(of, &paths);
	memset(block, 0, sizeof block);
	judge(of, params);
	cr_assert(passes(of, params), "%u words", words);
	for (unsigned i = 0; i < words; i++) {
		block[i] = NO_CONCERN;
		/* Those in small gaps are looked at with their neighbours. */
		bool number = slots[i].use == SLOT_NONE && every > 4, passed = passes(of, params);
		cr_assert(number ? passed : slots[i].use == SLOT_NONE || !passed, "word %u of %u, %u", i, words, every);
		if (every && i < 256) {
			judge(of, params);
			cr_assert(passes(of, params), "word %u of %u, %u, judged", i, words, every);
		}
		block[i] = 0;
		/* Once it is asked what the code does for these values. */
		passed = passes(of, params);
		if (!every && !passed) {
			judge(of, params);
			passed = passes(of, params);
		}
		cr_assert(passed, "word %u of %u, %u, gone", i, words, every);
	}
}

Test(memo_layout, each_word_of_all_sizes, .init = set_up)
{
	static const unsigned everies[] = {0, 1, 2, 3, 5, 9, 20};
	for (unsigned words = 160; words < 260; words += 9)
		for (size_t i = 0; i < sizeof everies / sizeof *everies; i++) {
			each_word_is_looked_at((unsigned)i, words, everies[i]);
			function_forget();
		}
}

/* What was judged passes: parameters of any sizes, of which some words are numbers, some numbers look like addresses beside a range, and up to eight words are such. */
Test(memo_layout, whatever_was_judged, .init = set_up)
{
	enum { PARAMS = 8, ROUNDS = 20000 };
	static uint64_t blocks[PARAMS][WIDEST - WIDE + WIDE_WORDS];
	static struct slot_paths slots[PARAMS * 250];
	static struct kernel_paths paths;
	int number = 7;
	void *params[PARAMS + 1];
	unsigned random = 1;
	for (unsigned round = 0; round < ROUNDS; round++) {
		unsigned count = 1 + rand_r(&random) % PARAMS, words = 0;
		bool wide = rand_r(&random) % 2;
		unsigned each = wide ? WIDE_WORDS + (unsigned)rand_r(&random) % 90 : 1;
		CUfunction of = function(wide ? WIDE + each - WIDE_WORDS : 1, count);
		unsigned every = 1 + (unsigned)rand_r(&random) % 30, hits = (unsigned)rand_r(&random) % (MEMO_WORDS + 1);
		memset(blocks, 0, sizeof blocks);
		words = count * each;
		paths = (struct kernel_paths){.slots = slots, .slot_count = words, .reason = PATHS_CLEAR};
		unsigned looked = 0;
		for (unsigned i = 0; i < words; i++) {
			bool is = rand_r(&random) % every == 0;
			slots[i].use = is ? SLOT_STORE : SLOT_NONE;
			if (is && hits && looked < 60 && rand_r(&random) % 2) {
				blocks[i / each][i % each] = NO_CONCERN + 8 * hits--;
			}
			looked += is;
		}
		for (unsigned i = 0; i < count; i++)
			params[i] = blocks[i];
		params[count] = &number;
		has_paths(of, &paths);
		judge(of, params);
		if (looked < 60)
			cr_assert(passes(of, params), "round %u: %u parameters of %u words, 1 of %u", round, count,
			          each, every);
		function_forget();
	}
}

/* One beside a range, wherever it is, and never seen there: each word of few or many parameters, and of one large one. */
Test(memo_layout, an_address_that_was_not_there_before, .init = set_up)
{
	static uint64_t values[60];
	int number = 7;
	void *params[61];
	for (unsigned count = 1; count <= 56; count++) {
		CUfunction storing = function(1, count);
		has_paths(storing, &all_stored);
		for (unsigned i = 0; i < count; i++)
			params[i] = &values[i];
		params[count] = &number;
		judge(storing, params);
		cr_assert(passes(storing, params), "%u parameters", count);
		for (unsigned i = 0; i < count; i++) {
			values[i] = NO_CONCERN;
			cr_assert(!passes(storing, params), "parameter %u of %u", i, count);
			values[i] = 0;
		}
		function_forget();
	}
}

/* As many in a large parameter as in small ones; with one more the launch goes the long way, and nothing is read behind the eighth. */
Test(memo_layout, more_addresses_than_are_kept, .init = set_up)
{
	static struct slot_paths read[WIDE_WORDS];
	static struct kernel_paths paths = {.slots = read, .slot_count = WIDE_WORDS, .reason = PATHS_CLEAR};
	uint64_t block[WIDE_WORDS] = {0};
	int number = 7;
	void *params[] = {block, &number};
	CUfunction storing = function(WIDE, 1);
	for (unsigned i = 0; i < WIDE_WORDS; i++)
		read[i].use = i % 10 ? SLOT_NONE : SLOT_STORE;
	for (unsigned all = 0; all < 2; all++) {
		has_paths(storing, &paths);
		memset(block, 0, sizeof block);
		for (unsigned count = 0; count < WIDE_WORDS / 10; count++) {
			judge(storing, params);
			cr_assert_eq(passes(storing, params), count <= MEMO_WORDS, "%u of %u", count, all);
			block[10 * count] = NO_CONCERN + 8 * count;
		}
		/* In one piece. */
		for (unsigned i = 0; i < WIDE_WORDS; i++)
			read[i].use = SLOT_STORE;
		function_forget();
	}
}
