/*
 * What a program that was not written for us does with cuconst.h: compiled as strict C11 and as C++11, without
 * _GNU_SOURCE, and run without the library, where every function answers that nothing is active.
 */
#include "shim/cuconst.h"

int main(void)
{
	struct cuconst_range_info info;
	struct cuconst_stats stats;
	struct cuconst_protect_info facts;
	cuconst_handle handle = 7;
	size_t count = 7;
	stats.size = sizeof stats;
	facts.size = sizeof facts;
	if (cuconst_protect(4096, 16, "label", CUCONST_NO_BASELINE, &facts, &handle) != CUCONST_ERROR_NOT_ACTIVE ||
	    handle != 7)
		return 1;
	if (cuconst_unprotect(handle) != CUCONST_ERROR_NOT_ACTIVE || cuconst_release(handle) != CUCONST_ERROR_NOT_ACTIVE)
		return 2;
	if (cuconst_check(0) != CUCONST_ERROR_NOT_ACTIVE || cuconst_stats(&stats) != CUCONST_ERROR_NOT_ACTIVE)
		return 3;
	if (cuconst_query(4096, 16, &info, 1, &count) != CUCONST_ERROR_NOT_ACTIVE || count != 7)
		return 4;
	return cuconst_version() != 0 || cuconst_last_cuda_error() != 0;
}
