#include "shim/kernels/wide.h"

#include <cpuid.h>
#include <stdatomic.h>

#define STATES_AVX512 0xe6 /* of XCR0: what a kernel keeps of a thread, SSE and AVX too */

static bool find(void)
{
	unsigned a, b, c, d, low, high;
	if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_OSXSAVE))
		return false;
	__asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
	return (low & STATES_AVX512) == STATES_AVX512 && __get_cpuid_count(7, 0, &a, &b, &c, &d) && b & bit_AVX512F &&
	       b & bit_AVX512BW;
}

bool wide_is_there(void)
{
	/* Asked once: in a virtual machine each question takes as long as a small kernel. All threads find the same. */
	enum { NOT_ASKED, NO, YES };
	static atomic_int known;
	int answer = atomic_load_explicit(&known, memory_order_relaxed);
	if (answer == NOT_ASKED) {
		answer = find() ? YES : NO;
		atomic_store_explicit(&known, answer, memory_order_relaxed);
	}
	return answer == YES;
}
