/* What a result of the C API means, and what can be done. Nothing else, so that a stand-in for the library says the same. */
#include "shim/cuconst.h"

/* The Python module raises these texts too. */
static const char *const texts[] = {
	[CUCONST_OK] = "success",
	[CUCONST_ERROR_NOT_ACTIVE] =
		"cuconst is preloaded, but not active: the program has not initialised CUDA yet, or cuconst "
		"is disabled in this process (then stderr has the reason)",
	[CUCONST_ERROR_INVALID_VALUE] = "not a range: the address is 0, the length is 0, or the end lies beyond the address "
					"space; or unknown flags",
	[CUCONST_ERROR_NOT_DEVICE] = "not memory of a live CUDA allocation: it is host memory, or was freed",
	[CUCONST_ERROR_OUT_OF_RANGE] = "the range goes beyond the end of its allocation: check the length",
	[CUCONST_ERROR_STALE_HANDLE] = "this protection has ended: it was closed before, or its memory was freed",
	[CUCONST_ERROR_BAD_HANDLE] = "not a handle of this process",
	[CUCONST_ERROR_OUT_OF_MEMORY] = "no host or device memory left for the bookkeeping or the baseline: free some, or "
					"protect less",
	[CUCONST_ERROR_CUDA] = "the CUDA driver refused what is needed for it",
	[CUCONST_ERROR_CHANGED] = "read-only memory was changed: the log has a record",
	[CUCONST_ERROR_BUSY] = "a stream capture is running, nothing was done: ask again when it has ended",
	[CUCONST_ERROR_TWINS_OFF] =
		"no read-only views: the option twins=off is set, or the driver has no virtual memory management",
	[CUCONST_ERROR_PLAIN_MEMORY] =
		"memory of cuMemAlloc cannot be mapped a second time: run with the option twins=all, or let it be allocated by "
		"virtual memory management (cuMemCreate; PyTorch: PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True), or "
		"protect it instead",
	[CUCONST_ERROR_POOL_MEMORY] =
		"memory of a pool (cuMemAllocAsync) or of a graph cannot be mapped a second time: allocate by cuMemAlloc under twins=all "
		"(CuPy: leave MemoryAsyncPool), or by cuMemCreate, or protect it instead",
	[CUCONST_ERROR_MANAGED_MEMORY] =
		"managed memory cannot be mapped a second time: use device memory, or protect it instead",
	[CUCONST_ERROR_HOST_MEMORY] = "host memory has no read-only view on the device: use device memory",
	[CUCONST_ERROR_NO_ROOM] =
		"no address space, or no memory for page tables, for the second mapping: free some, or protect it instead",
};

#define TEXTS (sizeof texts / sizeof *texts)

__attribute__((visibility("default"))) const char *cuconst_result_text(cuconst_result result)
{
	return (size_t)result < TEXTS && texts[result] ? texts[result] : "a result that this library does not know";
}
