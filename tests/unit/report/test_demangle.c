#include <criterion/criterion.h>
#include <dlfcn.h>
#include <string.h>

#include "shim/report/demangle.h"

static char out[256];

static const char *brief(const char *name)
{
	strcpy(out, "untouched");
	return demangle_short(name, out, sizeof(out)) ? out : !strcmp(out, "untouched") ? NULL : "touched!";
}

Test(demangle, short_names)
{
	cr_assert_str_eq(brief("_Z5fill5Pii"), "fill5");
	cr_assert_str_eq(brief("_ZL6hiddenPf"), "hidden");
	cr_assert_str_eq(brief("_ZN2at6native4fillEPf"), "at::native::fill");
	cr_assert_str_eq(brief("_ZNK3Foo3barEv"), "Foo::bar");
	cr_assert_str_eq(brief("_ZN12_GLOBAL__N_16kernelEPi"), "(anonymous namespace)::kernel");
	cr_assert_str_eq(
		brief("_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_11FillFunctorIfEESt5arrayIPcLm1EEEEviT0_T1_"),
		"at::native::vectorized_elementwise_kernel");
	/* PyTorch's, with lambdas inside the arguments (seen on an H200). */
	cr_assert_str_eq(brief("_ZN2at6native29vectorized_elementwise_kernelILi4EZZZNS0_22nan_to_num_kernel_cudaERNS_18"
	                       "TensorIteratorBaseESt8optionalIdES5_S5_ENKUlvE0_clEvENKUlvE0_clEvEUlfE_St5arrayIPcLm2EEEE"
	                       "viT0_T1_"),
	                 "at::native::vectorized_elementwise_kernel");
	cr_assert_str_eq(brief("_Z4copyIfEvPT_S1_i"), "copy");
	cr_assert_str_eq(brief("_ZN3FooIiN3BarILb1EEEE3runEv"), "Foo::run", "arguments in the middle are skipped");
	cr_assert_str_eq(brief("_ZN3FooIL4Kind3EE3runEv"), "Foo::run", "a literal of a named type");
	cr_assert_str_eq(brief("_ZN3FooIXadL_Z3barvEEE3runEv"), "Foo", "expressions are not followed");
	cr_assert_str_eq(brief("_ZNSt6vectorIiE4pushEi"), "std::vector::push");
}

Test(demangle, what_is_not_mangled)
{
	const char *const names[] = {
		NULL,      "",   "fill5", "_Z", "_ZN", "_Z5abc", "_Z999999999999x", "_ZTV3Foo", "_ZZ4mainENKUlvE_clEv",
		"_ZN3Foo", "_Z0"};

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		cr_assert_null(brief(names[i]), "%s", names[i]);
}

Test(demangle, cut_to_size)
{
	char small[5] = "";

	cr_assert(demangle_short("_Z5fill5Pii", small, sizeof(small)));
	cr_assert_str_eq(small, "fill");
	cr_assert(!demangle_short("_Z5fill5Pii", small, 0));
}

Test(demangle, deep_nesting_ends)
{
	static char name[4096] = "_ZN3Foo";

	memset(name + 7, 'I', 2000);
	cr_assert_str_eq(brief(name), "Foo");
}

Test(demangle, the_run_time_gives_the_whole_name_when_it_is_loaded)
{
	cr_assert_not_null(dlopen("libstdc++.so.6", RTLD_NOW | RTLD_LOCAL));
	cr_assert(demangle("_Z5fill5Pii", out, sizeof(out)));
	cr_assert_str_eq(out, "fill5(int*, int)");
	cr_assert(!demangle("fill5", out, sizeof(out)));
	cr_assert(!demangle("_Znonsense", out, sizeof(out)));
	cr_assert(demangle("_Z5fill5Pii", out, 6));
	cr_assert_str_eq(out, "fill5");
}
