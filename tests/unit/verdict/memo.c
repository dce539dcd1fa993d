/* Launches that were judged before: which are answered from memory, and what makes them be judged anew. tests/effects/launch_memo.c has what comes from outside. */
#include <pthread.h>
#include <string.h>

#include "shim/effects/frees.h"
#include "shim/looks.h"
#include "shim/verdict/fault.h"
#include "shim/verdict/judge_internal.h"
#include "tests/unit/verdict/memo_fake.h"

#define ROUNDS 20000

Test(memo, a_launch_that_was_judged, .init = set_up)
{
	uint64_t value = BESIDE, other = BESIDE + 8, elsewhere = NO_CONCERN;
	int number = 7;
	void *params[] = {&value, &number}, *others[] = {&other, &number}, *far[] = {&elsewhere, &number};
	CUfunction storing = function(1, 1), reading = function(2, 1);
	has_paths(storing, &all_stored);
	has_paths(reading, &none_stored);
	cr_assert(!passes(reading, params), "never seen");
	judge(reading, params);
	cr_assert(passes(reading, params));
	cr_assert(passes(reading, others), "with any address");
	cr_assert(!passes(storing, params), "another function");
	cr_assert(!passes(storing, far), "never seen");
	judge(storing, far);
	cr_assert(passes(storing, far));
	cr_assert(!passes(storing, params), "with another address");
	number = 8;
	cr_assert(passes(storing, far), "no address");
	uint64_t near = hook_counted(COUNT_NEAR), clean = hook_counted(COUNT_CLEAN),
		 launches = hook_counted(COUNT_LAUNCH);
	judge_often(storing, params);
	cr_assert(passes(storing, params));
	cr_assert_eq(hook_counted(COUNT_NEAR), near + 1);
	cr_assert_eq(hook_counted(COUNT_CLEAN), clean);
	cr_assert_eq(hook_counted(COUNT_LAUNCH), launches + 1);
	cr_assert(!passes(storing, others), "with another address");
	cr_assert(passes(reading, params));
	cr_assert_eq(hook_counted(COUNT_CLEAN), clean, "counted where it is judged alone");
}

/* As activations that lie between weights, and come and go. */
Test(memo, an_address_between_allocations_with_ranges, .init = set_up)
{
	const uint64_t far = UINT64_C(1) << 32;
	uint64_t value = far / 2;
	int number = 7;
	void *params[] = {&value, &number};
	CUfunction storing = function(1, 1);
	has_paths(storing, &all_stored);
	cr_assert(neighbours_join(far, far + 0x1000));
	judge(storing, params);
	for (; value < far / 2 + 1000; value += 8)
		cr_assert(passes(storing, params), "with an address that was never seen");
	uint64_t near = hook_counted(COUNT_NEAR);
	judge(storing, params);
	cr_assert_eq(hook_counted(COUNT_NEAR), near, "nor is it near on the long way");
	cr_assert(neighbours_join(far / 2, far / 2 + 0x1000));
	cr_assert(!passes(storing, params));
	neighbours_leave(far / 2);
	judge(storing, params);
	cr_assert(passes(storing, params));
}

Test(memo, what_is_never_kept, .init = set_up)
{
	uint64_t values[MEMO_WORDS + 1], others[MEMO_WORDS + 1];
	void *params[MEMO_WORDS + 2], *far[MEMO_WORDS + 2];
	int number = 7;
	for (unsigned i = 0; i <= MEMO_WORDS; i++) {
		values[i] = BESIDE + 8 * i;
		others[i] = NO_CONCERN + 8 * i;
		params[i] = &values[i];
		far[i] = &others[i];
	}
	for (unsigned count = 1; count <= MEMO_WORDS + 1; count++) {
		CUfunction between = function(3, count), storing = function(4, count);
		params[count] = far[count] = &number;
		has_paths(between, &all_stored);
		judge(between, far);
		cr_assert_eq(passes(between, far), count <= MEMO_WORDS, "%u addresses", count);
		has_paths(storing, &all_stored);
		judge_often(storing, params);
		cr_assert_eq(passes(storing, params), count <= MEMO_NOTES, "%u that are stored through", count);
		params[count] = &values[count];
		far[count] = &others[count];
	}
	/* In a range, and stored through. */
	const struct registry_spec spec = {.start = 0x2000, .end = 0x2100};
	cr_assert_eq(registry_insert(protect_ranges(), &spec, NULL, NULL), 0);
	hook_stamp_renew();
	uint64_t inside = 0x2000;
	void *guilty[] = {&inside, &number}, *missing[] = {&inside, NULL};
	judge_often(function(4, 1), guilty);
	cr_assert(!passes(function(4, 1), guilty));
	judge(function(3, 1), missing);
	cr_assert(!passes(function(3, 1), missing) && !passes(function(3, 1), NULL));
	/* The eight of a launch that was kept, and one more; and one that is not there where there was a number. */
	uint64_t last = others[MEMO_WORDS], none = 0;
	others[MEMO_WORDS] = 0;
	judge(function(3, MEMO_WORDS + 1), far);
	cr_assert(passes(function(3, MEMO_WORDS + 1), far));
	others[MEMO_WORDS] = last;
	cr_assert(!passes(function(3, MEMO_WORDS + 1), far));
	void *two[] = {&others[0], &none, &number};
	judge(function(3, 2), two);
	cr_assert(passes(function(3, 2), two));
	two[1] = NULL;
	cr_assert(!passes(function(3, 2), two));
}

Test(memo, a_handle_may_mean_another_function, .init = set_up)
{
	uint64_t value = BESIDE;
	int number = 7;
	void *params[] = {&value, &number};
	has_paths(function(1, 1), &none_stored);
	judge(function(1, 1), params);
	cr_assert(passes(function(1, 1), params));
	function_forget();
	cr_assert(!passes(function(1, 1), params));
}

Test(memo, places_that_others_took, .init = set_up)
{
	uint64_t value = BESIDE;
	int number = 7;
	void *params[] = {&value, &number};
	struct report_kernel named[NEIGHBOURS_WRITERS];
	struct range *range;
	const struct registry_spec spec = {.start = 0x2000, .end = 0x2100};
	cr_assert_eq(registry_insert(protect_ranges(), &spec, NULL, &range), 0);
	has_paths(function(1, 1), &all_stored);
	judge_often(function(1, 1), params);
	cr_assert(passes(function(1, 1), params));
	/* More of one function's parameters than are named. */
	uint64_t values[39] = {0};
	void *list[40];
	for (unsigned i = 0; i < 39; i++)
		list[i] = &values[i];
	list[39] = &number;
	for (unsigned i = 0; i < 40 * 39; i++) {
		has_paths(function(2 + i / 39, 39), &all_stored);
		values[i % 39] = BESIDE;
		judge(function(2 + i / 39, 39), list);
		values[i % 39] = 0;
	}
	/* Its place among those who are named is another's; it takes it back. */
	struct look look = look_next();
	cr_assert(passes(function(1, 1), params));
	cr_assert_eq(neighbours_writers(range, look_time(look), named, NEIGHBOURS_WRITERS), 1);
	cr_assert(named[0].value == BESIDE && !strcmp(named[0].name, "kernel") && !strcmp(named[0].api, "cuLaunchKernel"));
}

/* A step of a model: the same launches in the same order, by many kernels, in one pool. */
Test(memo, the_launches_of_a_models_step, .init = set_up)
{
	enum { LAUNCHES = 512, KERNELS = 150, ROUNDS_BEFORE = 20 };
	uint64_t values[3];
	int number = 7;
	void *params[] = {&values[0], &values[1], &values[2], &number};
	unsigned passed = 0;
	for (unsigned i = 0; i < KERNELS; i++)
		has_paths(function(10 + i, 3), &all_stored);
	for (unsigned round = 0; round <= ROUNDS_BEFORE; round++)
		for (unsigned nth = 0; nth < LAUNCHES; nth++) {
			CUfunction of = function(10 + nth * 7919 % KERNELS, 3);
			for (unsigned i = 0; i < 3; i++)
				values[i] = BESIDE + (nth * 3 + i) * 8;
			if (passes(of, params))
				passed += round == ROUNDS_BEFORE;
			else
				judge(of, params);
		}
	cr_assert_gt(passed, LAUNCHES * 3 / 4, "%u", passed);
}

/* Another launch's place is not taken for this one's, whatever shares it. */
Test(memo, more_launches_than_places, .init = set_up)
{
	uint64_t value;
	int number = 7;
	void *params[] = {&value, &number};
	neighbours_leave(BESIDE);
	cr_assert(neighbours_join(0x100, 0x200), "so that all these lie between two");
	has_paths(function(1, 1), &all_stored);
	has_paths(function(2, 1), &all_stored);
	value = 0x1000;
	judge(function(2, 1), params);
	cr_assert(passes(function(2, 1), params));
	for (value = 0x1008; value < 0x7000; value += 8)
		judge(function(1, 1), params);
	/* Found by trying: these share places with the first one's launches at the same addresses. */
	static const unsigned others[] = {2, 438, 1453, 1890};
	for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
		unsigned other = others[i];
		has_paths(function(other, 1), &all_stored);
		value = 0x1000;
		judge(function(other, 1), params);
		cr_assert(passes(function(other, 1), params));
		for (value = 0x1008; value < 0x7000; value += 8)
			cr_assert(!passes(function(other, 1), params), "another function");
	}
	for (value = 0x7000; value < 0x9000; value += 8)
		cr_assert(!passes(function(1, 1), params), "another address");
}

/* A range that is about to end has no slots; if it stays after all, it has them again. */
/* In the place of another function with the same address. */
Test(memo, places_of_other_functions, .init = set_up)
{
	uint64_t value, none = 0;
	int number = 7;
	void *params[] = {&value, &number}, *unconcerned[] = {&none, &number};
	value = NO_CONCERN;
	for (unsigned i = 1; i <= 500; i++) {
		has_paths(function(i, 1), &all_stored);
		judge(function(i, 1), params);
	}
	for (unsigned i = 501; i <= 1500; i++) {
		judge(function(i, 1), unconcerned);
		cr_assert(!passes(function(i, 1), params), "%u was never judged with it", i);
	}
}

Test(memo, ranges_that_are_about_to_end, .init = set_up)
{
	uint64_t value = 0x2000, stamp;
	int number = 7;
	void *params[] = {&value, &number};
	struct call call;
	struct range *range;
	const struct registry_spec spec = {.start = 0x2000, .end = 0x2100};
	cr_assert_eq(registry_insert(protect_ranges(), &spec, NULL, &range), 0);
	hook_stamp_renew();
	atomic_store(&hook_line.armed, true);
	has_paths(function(1, 1), &all_stored);
	call_begin(&call, ENTRY_cuMemFree_v2, (CUstream)0x20, NULL);
	stamp = hook_stamp();
	frees_begin(&call, 0x2000, 0x2100, ANY_DEVICE);
	cr_assert(atomic_load(&range->ending));
	cr_assert_neq(hook_stamp(), stamp);
	judge_often(function(1, 1), params);
	stamp = hook_stamp();
	frees_end(&call, CUDA_ERROR_INVALID_VALUE);
	cr_assert(!atomic_load(&range->ending));
	cr_assert_neq(hook_stamp(), stamp);
	call_end(&call);
	stamp = hook_stamp();
	protect_context_ending(NULL, true);
	cr_assert(atomic_load(&range->ending));
	cr_assert_neq(hook_stamp(), stamp);
	/* Not kept, whatever the stamp. */
	atomic_store(&range->ending, true);
	judge_often(function(1, 1), params);
	atomic_store(&range->ending, false);
	cr_assert(!passes(function(1, 1), params));
}

/* What is answered from memory is among those who may have written, as any. */
Test(memo, who_is_named, .init = set_up)
{
	uint64_t value = BESIDE;
	int number = 7;
	void *params[] = {&value, &number};
	struct report_kernel named[NEIGHBOURS_WRITERS];
	struct range *range;
	const struct registry_spec spec = {.start = 0x2000, .end = 0x2100};
	cr_assert_eq(registry_insert(protect_ranges(), &spec, NULL, &range), 0);
	hook_stamp_renew();
	has_paths(function(1, 1), &all_stored);
	judge_often(function(1, 1), params);
	const struct look look = look_next();
	uint64_t since = look_time(look);
	cr_assert_eq(neighbours_writers(range, since, named, NEIGHBOURS_WRITERS), 0);
	cr_assert(passes(function(1, 1), params));
	cr_assert_eq(look_launches(look, look_next(), 0), 1);
	cr_assert_eq(neighbours_writers(range, since, named, NEIGHBOURS_WRITERS), 1);
	cr_assert_str_eq(named[0].name, "kernel");
	cr_assert_eq(named[0].value, BESIDE);
	cr_assert_str_eq(named[0].api, "cuLaunchKernel");
}

/* As the hooks do it. */
static void launch(CUfunction of, void **params)
{
	hook_count(COUNT_LAUNCH);
	judge(of, params);
}

static void *launch_the_last(void *params)
{
	launch(function(20, 1), params);
	return NULL;
}

/* The last ones, whichever thread they are of, from memory or not, and however many launches there were before. */
Test(memo, the_last_are_named_first, .init = set_up)
{
	uint64_t values[21];
	int number = 7;
	void *params[21][2];
	struct report_kernel named[NEIGHBOURS_WRITERS];
	struct range *range;
	pthread_t other;
	const struct registry_spec spec = {.start = 0x2000, .end = 0x2100};
	cr_assert_eq(registry_insert(protect_ranges(), &spec, NULL, &range), 0);
	hook_stamp_renew();
	for (unsigned i = 0; i < 21; i++) {
		values[i] = BESIDE + 8 * i;
		params[i][0] = &values[i];
		params[i][1] = &number;
		has_paths(function(i, 1), &all_stored);
		for (int nth = 0; i && nth < 5; nth++)
			launch(function(i, 1), params[i]);
	}
	for (int nth = 0; nth < 1000; nth++)
		launch(function(1, 1), params[1]);
	const struct look look = look_next();
	for (unsigned i = 1; i < 12; i++) {
		if (i % 2)
			launch(function(i, 1), params[i]);
		else
			cr_assert(passes(function(i, 1), params[i]));
	}
	pthread_create(&other, NULL, launch_the_last, params[20]);
	pthread_join(other, NULL);
	cr_assert_eq(neighbours_writers(range, look_time(look), named, NEIGHBOURS_WRITERS), NEIGHBOURS_WRITERS);
	cr_assert_eq(named[0].value, values[20]);
	for (unsigned i = 1; i < NEIGHBOURS_WRITERS; i++)
		cr_assert_eq(named[i].value, values[12 - i], "%u", i);
}

Test(memo, what_is_captured_does_not_run, .init = set_up)
{
	uint64_t value = NO_CONCERN;
	int number = 7;
	void *params[] = {&value, &number};
	has_paths(function(1, 1), &all_stored);
	judge(function(1, 1), params);
	atomic_store(&hook_line.captures, 1);
	cr_assert(!passes(function(1, 1), params));
	atomic_store(&hook_line.captures, 0);
	cr_assert(passes(function(1, 1), params));
}

/* In a context that has faulted. */
static unsigned asked, asked_outside;

static CUresult context_is(CUcontext *ret)
{
	*ret = (CUcontext)0x30;
	return CUDA_SUCCESS;
}

static CUresult push(CUcontext context)
{
	asked++;
	asked_outside += !hook_thread.depth;
	return CUDA_SUCCESS;
}

static CUresult pop(CUcontext *ret)
{
	*ret = (CUcontext)0x30;
	return CUDA_SUCCESS;
}

static CUresult memory_left(size_t *ret_left, size_t *ret_total)
{
	return CUDA_ERROR_ILLEGAL_ADDRESS;
}

/* A launch with a twin that may be in flight. */
static void note_one(void)
{
	struct call call;
	call_begin(&call, ENTRY_cuLaunchKernel, (CUstream)0x20, NULL);
	call.judgement = (struct judgement *)(void *)call.inline_judgement;
	memset(call.judgement, 0, sizeof *call.judgement);
	call_add_slot(&call, &(struct call_slot){.function = function_info(function(1, 1)), .twin = 0x7000});
	fault_start();
	cr_assert(fault_note(&call));
	call.judgement = NULL;
	call_end(&call);
}

Test(memo, an_error_is_looked_into_inside_the_hook, .init = set_up)
{
	uint64_t value = NO_CONCERN;
	int number = 7;
	void *params[] = {&value, &number};
	drv.cuCtxGetCurrent = context_is;
	drv.cuCtxPushCurrent_v2 = push;
	drv.cuCtxPopCurrent_v2 = pop;
	drv.cuMemGetInfo_v2 = memory_left;
	has_paths(function(1, 1), &all_stored);
	judge(function(1, 1), params);
	note_one();
	for (int error = 0; error < 2; error++) {
		uint64_t launches = hook_thread.launches;
		cr_assert_eq(memo_asks(function(1, 1), params, "cuLaunchKernel"), MEMO_IS_WATCHED);
		judge_again("cuLaunchKernel", error ? CUDA_ERROR_ILLEGAL_ADDRESS : CUDA_SUCCESS);
		cr_assert_eq(hook_thread.depth, 0);
		cr_assert_eq(hook_thread.launches, launches + !error);
	}
	cr_assert_eq(asked, 1);
	cr_assert_eq(asked_outside, 0, "the driver may call itself");
}

/* Else it is a jump to the driver, and nobody hears what that answers. */
Test(memo, a_launch_is_watched_if_something_waits_for_its_end, .init = set_up)
{
	uint64_t value = NO_CONCERN, elsewhere = 0x100000;
	int number = 7;
	void *near[] = {&value, &number}, *far[] = {&elsewhere, &number};
	has_paths(function(1, 1), &all_stored);
	judge(function(1, 1), near);
	for (int i = 0; i < 2; i++) {
		void **params = i ? far : near;
		cr_assert_eq(memo_asks(function(1, 1), params, "cuLaunchKernel"), MEMO_PASSES);
		cr_assert_eq(hook_thread.depth, 0);
		hook_thread.outer.api = "cufftExecC2C";
		cr_assert_eq(memo_asks(function(1, 1), params, "cuLaunchKernel"), MEMO_IS_WATCHED, "it is counted");
		hook_thread.outer.api = NULL;
		cr_assert_eq(hook_thread.depth, 1);
		hook_thread.depth = 0;
		atomic_store(&hook_line.in_flight, 1);
		cr_assert_eq(memo_asks(function(1, 1), params, "cuLaunchKernel"), MEMO_IS_WATCHED, "results come");
		atomic_store(&hook_line.in_flight, 0);
		hook_thread.depth = 0;
	}
	note_one();
	cr_assert_eq(memo_asks(function(1, 1), near, "cuLaunchKernel"), MEMO_IS_WATCHED, "twins may fault");
	cr_assert_eq(memo_asks(function(1, 1), far, "cuLaunchKernel"), MEMO_IS_WATCHED);
	hook_thread.depth = 0;
}

/* Their counts need locked instructions. */
Test(memo, threads_that_share_their_counts, .init = set_up)
{
	uint64_t value = NO_CONCERN;
	int number = 7;
	void *params[] = {&value, &number};
	has_paths(function(1, 1), &all_stored);
	judge(function(1, 1), params);
	struct hook_counts *own = hook_thread.counts;
	hook_thread.counts = &hook_counts_shared;
	cr_assert(!passes(function(1, 1), params));
	hook_thread.counts = NULL;
	cr_assert(!passes(function(1, 1), params));
	hook_thread.counts = own;
	cr_assert(passes(function(1, 1), params));
}

Test(memo, the_allocation_went_and_another_came, .init = set_up)
{
	uint64_t value = BESIDE;
	int number = 7;
	void *params[] = {&value, &number};
	struct neighbours_mark mark;
	struct call_slot slot = {.function = function_info(function(1, 1)), .value = BESIDE};
	has_paths(function(1, 1), &all_stored);
	judge_often(function(1, 1), params);
	for (int i = 0; i < 3; i++)
		neighbours_note(&slot, 9, "cuLaunchKernel", &mark);
	cr_assert(passes(function(1, 1), params));
	neighbours_leave(BESIDE);
	cr_assert(neighbours_join(0x1000, 0x8000));
	cr_assert(!passes(function(1, 1), params));
	cr_assert(!neighbours_mark_waits(&mark), "its memory is used again, and empty");
}

/* Between others, so that its addresses stay within the bounds. */
Test(memo, the_allocation_went, .init = set_up)
{
	uint64_t value = BESIDE;
	int number = 7;
	void *params[] = {&value, &number};
	cr_assert(neighbours_join(0x100, 0x200) && neighbours_join(0x20000, 0x21000));
	has_paths(function(1, 1), &all_stored);
	judge_often(function(1, 1), params);
	uint64_t near = hook_counted(COUNT_NEAR);
	cr_assert(passes(function(1, 1), params));
	cr_assert_eq(hook_counted(COUNT_NEAR), near + 1);
	neighbours_leave(BESIDE);
	cr_assert(!passes(function(1, 1), params));
	judge(function(1, 1), params);
	cr_assert(passes(function(1, 1), params), "it concerns nothing");
	cr_assert_eq(hook_counted(COUNT_NEAR), near + 1);
	cr_assert(neighbours_join(0x1000, 0x8000));
	cr_assert(!passes(function(1, 1), params));
}

/* A thread launches while an allocation comes and goes: after each change no launch is answered by what was before it. */
static _Atomic bool stop;

static void *launch_all_the_time(void *unused)
{
	uint64_t value = BESIDE;
	int number = 7;
	void *params[] = {&value, &number};
	hook_count(COUNT_CALL);
	while (!atomic_load(&stop))
		if (memo_asks(function(1, 1), params, "cuLaunchKernel") != MEMO_PASSES)
			judge(function(1, 1), params);
	return unused;
}

Test(memo, another_thread_leaves_nothing_stale, .init = set_up, .timeout = 60)
{
	uint64_t value = BESIDE;
	int number = 7;
	void *params[] = {&value, &number};
	pthread_t launching;
	has_paths(function(1, 1), &all_stored);
	cr_assert_eq(pthread_create(&launching, NULL, launch_all_the_time, NULL), 0);
	/* Another one beyond, so that the address stays within the bounds. */
	cr_assert(neighbours_join(0x20000, 0x21000));
	for (int i = 0; i < ROUNDS; i++) {
		neighbours_leave(BESIDE);
		if (passes(function(1, 1), params))
			cr_assert_eq(hook_thread.counts->of[COUNT_NEAR], 0, "round %d: near nothing", i);
		cr_assert(neighbours_join(0x1000, 0x9000));
		if (passes(function(1, 1), params)) {
			cr_assert_eq(hook_thread.counts->of[COUNT_NEAR], 1, "round %d: near the allocation", i);
			atomic_store(&hook_thread.counts->of[COUNT_NEAR], 0);
		}
	}
	atomic_store(&stop, true);
	pthread_join(launching, NULL);
}
