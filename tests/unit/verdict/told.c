/* Functions that were told of: one is not asked about again as long as nothing has changed, and is after that. */
#include <criterion/criterion.h>

#include "shim/doors/hook.h"
#include "shim/effects/told.h"
#include "shim/kernels/function.h"
#include "shim/verdict/protect.h"

#define KERNELS 5000

static unsigned asked; /* how often the driver was asked whose the function is */
static unsigned depth;
static CUresult answer;

/* A kernel's function has its handle. */
static CUresult get_function(CUfunction *ret, CUkernel kernel)
{
	depth = hook_thread.depth;
	if (answer == CUDA_SUCCESS)
		*ret = (CUfunction)kernel;
	return answer;
}

static CUresult get_module(CUmodule *ret, CUfunction function)
{
	asked++;
	return CUDA_ERROR_NOT_FOUND;
}

static CUresult get_library(CUlibrary *ret, CUkernel kernel)
{
	return CUDA_ERROR_NOT_FOUND;
}

static void set_up(void)
{
	drv.cuKernelGetFunction = get_function;
	drv.cuFuncGetModule = get_module;
	drv.cuKernelGetLibrary = get_library;
}

static CUkernel kernel(unsigned nth)
{
	return (CUkernel)(uintptr_t)(0x7000 + 64 * nth);
}

/* Was the driver asked? */
static bool is_new(unsigned nth)
{
	CUfunction function = NULL;
	unsigned before = asked;
	cr_assert_eq(cuKernelGetFunction(&function, kernel(nth)), CUDA_SUCCESS);
	cr_assert(function == (CUfunction)kernel(nth) && depth == 1 && hook_thread.depth == 0);
	return asked != before;
}

Test(told, once_as_long_as_nothing_changes, .init = set_up)
{
	cr_assert(is_new(1) && !is_new(1) && !is_new(1) && is_new(2) && !is_new(1) && !is_new(2));
	function_forget();
	cr_assert(is_new(1) && !is_new(1));
}

Test(told, known_by_its_mark_until_then, .init = set_up)
{
	CUfunction function = (CUfunction)kernel(1);
	is_new(1);
	cr_assert(!told_has(function) && !is_new(1) && told_has(function));
	/* Another change alone: it is asked for in the table that says so, not of the driver. */
	hook_stamp_renew();
	cr_assert(!told_has(function) && !is_new(1) && told_has(function));
	function_forget();
	cr_assert(!told_has(function) && !effect_kernel_function_is_known(function) && !told_has(function));
	/* What was worked out before the change does not count. */
	uint64_t stamp = hook_stamp();
	hook_stamp_renew();
	told_add(function, stamp);
	cr_assert(!told_has(function));
}

Test(told, the_first_protection_moves_them, .init = set_up)
{
	is_new(1);
	cr_assert(!is_new(1) && !is_new(1));
	struct told_marks *before = atomic_load(&told_now);
	cr_assert_eq(protect_start(), 0);
	cr_assert_neq(atomic_load(&told_now), before);
	cr_assert(!is_new(1) && told_has((CUfunction)kernel(1)));
	before = atomic_load(&told_now);
	told_start();
	cr_assert_eq(atomic_load(&told_now), before);
}

Test(told, many_take_turns, .init = set_up)
{
	for (unsigned i = 0; i < KERNELS; i++)
		cr_assert(is_new(i));
	cr_assert(!is_new(KERNELS - 1));
}

Test(told, an_error_says_nothing, .init = set_up)
{
	CUfunction function = NULL;
	answer = CUDA_ERROR_NOT_FOUND;
	cr_assert_eq(cuKernelGetFunction(&function, kernel(1)), CUDA_ERROR_NOT_FOUND);
	cr_assert_eq(cuKernelGetFunction(NULL, kernel(1)), CUDA_ERROR_NOT_FOUND);
	answer = CUDA_SUCCESS;
	cr_assert(is_new(1));
	/* Where nothing is tracked, nothing is asked. */
	atomic_store(&hook_disabled, true);
	cr_assert(!is_new(2));
}
