/* Stores whose lines tests/kernels/lines.c knows. Compiled by ../build_cubins: change both. */
#include "helper.cuh"

extern "C" __global__ void fill(int *out, int value, int count)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	if (i < count)
		out[i] = value; /* 8 */
	inlined(out, i);
	far_away(out);
}

extern "C" __global__ void other(int *out, float *sum)
{
	out[3] = 1; /* 15 */
	atomicAdd(sum + 1, 2.5f); /* inlined from a header of the toolkit */
}
