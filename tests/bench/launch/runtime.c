/* A runtime that does nothing but launch: as a program's launches go through one. */
#include "tests/bench/launch/stub.h"

__attribute__((visibility("default"))) int cudaLaunchKernel(const void *func, struct stub_dim grid, struct stub_dim block,
                                                            void **args, size_t shared, CUstream stream)
{
	return (int)cuLaunchKernel((CUfunction)(uintptr_t)func, grid.x, grid.y, grid.z, block.x, block.y, block.z,
	                           (unsigned)shared, stream, args, NULL);
}
