/*
 * cuGetProcAddress, in its four-argument (CUDA 11.3) and five-argument (12.0) form: two functions, two hooks, told
 * apart by address.
 *
 * The driver answers first, with the program's own version, flags and outputs; only the address it gave is looked up.
 * So per-thread default streams, old versions and cuGetProcAddress itself come out right without knowing any of them.
 * Called before cuInit.
 */
#include "shim/doors/doors.h"
#include "shim/doors/hook.h"
#include "shim/doors/resolve.h"

static void swap_answer(CUresult result, void **pfn, const void *caller)
{
	if (result != CUDA_SUCCESS || !pfn || door_in_driver(caller))
		return;
	void *hook = door_swap(*pfn);
	if (hook)
		*pfn = hook;
}

HOOK_EXPORT CUresult cuGetProcAddress(const char *symbol, void **pfn, int cudaVersion, cuuint64_t flags)
{
	if (HOOK_UNLIKELY(!drv.cuGetProcAddress) && !hook_open((void **)&drv.cuGetProcAddress))
		return CUDA_ERROR_NOT_FOUND;
	CUresult result = drv.cuGetProcAddress(symbol, pfn, cudaVersion, flags);
	swap_answer(result, pfn, __builtin_return_address(0));
	return result;
}

HOOK_EXPORT CUresult cuGetProcAddress_v2(const char *symbol, void **pfn, int cudaVersion, cuuint64_t flags,
                                         CUdriverProcAddressQueryResult *symbolStatus)
{
	if (HOOK_UNLIKELY(!drv.cuGetProcAddress_v2) && !hook_open((void **)&drv.cuGetProcAddress_v2))
		return CUDA_ERROR_NOT_FOUND;
	CUresult result = drv.cuGetProcAddress_v2(symbol, pfn, cudaVersion, flags, symbolStatus);
	swap_answer(result, pfn, __builtin_return_address(0));
	return result;
}
