/* Functions by number and count of parameters, and launches of them, for the tests of what is kept of launches. */
#ifndef CUCONST_TESTS_UNIT_VERDICT_MEMO_FAKE_H
#define CUCONST_TESTS_UNIT_VERDICT_MEMO_FAKE_H

#include <criterion/criterion.h>

#include "shim/effects/launch_memo.h"
#include "shim/effects/launches.h"
#include "shim/hook_state.h"
#include "shim/kernels/function.h"
#include "shim/verdict/neighbours.h"
#include "shim/verdict/protect.h"

#define BESIDE UINT64_C(0x3000)
#define NO_CONCERN                                                                                                     \
	UINT64_C(0xa000) /* so near that it has to be looked at: between allocations that hold ranges, in their granule */
#define WIDE 4000 /* from this number on the parameters of functions have WIDE_WORDS words, and then one more by each */
#define WIDE_WORDS 160
#define WIDEST 8000
#define NUMBERS 9000 /* the number of the function whose parameters are an address, and then numbers of 4 bytes */

static unsigned more; /* parameters of each function than its handle says: it was loaded again */

/* Handles: so many parameters of 8 bytes, and one of 4. */
static inline CUresult param_info(CUfunction function, size_t index, size_t *ret_offset, size_t *ret_bytes)
{
	size_t count = ((uintptr_t)function >> 4 & 0xff) + more, number = (uintptr_t)function >> 12,
	       words = number >= WIDE && number != NUMBERS ? number - WIDE + WIDE_WORDS : 1;
	if (index > count)
		return CUDA_ERROR_INVALID_VALUE;
	*ret_offset = index * 8 * words;
	*ret_bytes = index < count ? 8 * words : 4;
	if (number == NUMBERS && index) {
		*ret_offset = 4 + index * 4;
		*ret_bytes = 4;
	}
	return CUDA_SUCCESS;
}

static inline CUresult name_of(const char **ret, CUfunction function)
{
	*ret = "kernel";
	return CUDA_SUCCESS;
}

static inline CUfunction function(unsigned number, unsigned params)
{
	return (CUfunction)(uintptr_t)(number << 12 | params << 4);
}

/* Stores through each of its parameters. */
static struct slot_paths stored[64];
static struct kernel_paths all_stored = {.slots = stored, .reason = PATHS_CLEAR};
static struct kernel_paths none_stored;
static struct slot_paths not_stored[64];

static inline void set_up(void)
{
	drv.cuFuncGetParamInfo = param_info;
	drv.cuFuncGetName = name_of;
	for (unsigned i = 0; i < 64; i++) {
		stored[i] = (struct slot_paths){.use = SLOT_STORE, .only_base = true};
		not_stored[i] = (struct slot_paths){.use = SLOT_LOAD, .loaded = true};
	}
	all_stored.slot_count = 64;
	none_stored = (struct kernel_paths){.slots = not_stored, .slot_count = 64, .reason = PATHS_CLEAR};
	cr_assert_eq(protect_start(), 0);
	cr_assert(neighbours_join(0x1000, 0x9000) && neighbours_join(0xf000, 0xf100));
	hook_count(COUNT_CALL);
}

static inline void has_paths(CUfunction of, const struct kernel_paths *paths)
{
	function_set_paths(function_info(of), paths, 1, function_epoch());
}

/* Judged the long way. */
static inline void judge(CUfunction of, void **params)
{
	struct call call;
	void **extra = NULL;
	call_begin(&call, ENTRY_cuLaunchKernel, (CUstream)0x20, NULL);
	effect_launch(&call, of, &params, &extra);
	call_end(&call);
}

static inline bool passes(CUfunction of, void **params)
{
	enum memo_how how = memo_asks(of, params, "cuLaunchKernel");
	hook_thread.depth -= how == MEMO_IS_WATCHED;
	cr_assert_eq(hook_thread.depth, 0);
	return how == MEMO_PASSES || how == MEMO_IS_WATCHED;
}

/* The 3rd launch of a kernel that stores beside a range is the first that can be kept. */
static inline void judge_often(CUfunction of, void **params)
{
	for (int i = 0; i < 5; i++)
		judge(of, params);
}

#endif
