/* Preloaded by a test: names of the driver that come first in the process, as a shim's do. */
#include <cuda.h>

__attribute__((visibility("default"))) CUresult CUDAAPI cuMemAlloc_v2(CUdeviceptr *dptr, size_t bytesize)
{
	(void)dptr;
	(void)bytesize;
	return CUDA_ERROR_UNKNOWN;
}

__attribute__((visibility("default"))) CUresult CUDAAPI cuMemFree_v2(CUdeviceptr dptr)
{
	(void)dptr;
	return CUDA_ERROR_UNKNOWN;
}
