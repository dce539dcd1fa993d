/* What real programs bring along: libdevice, halves, cooperative groups, 128-bit integers, large structs, small integers.
 * more.ptx: nvcc -ptx -arch=compute_80; more_debug.ptx: nvcc -ptx -G -arch=compute_80 -DPLAIN */
#include <cstdint>
#ifndef PLAIN
#include <cooperative_groups.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_pipeline.h>

namespace cg = cooperative_groups;

extern "C" __global__ void halves(__half *a, __half2 *b, __nv_bfloat16 *c, float *out)
{
	int i = threadIdx.x;
	a[i] = __hfma(a[i], a[i], a[i]);
	b[i] = __hmax2(b[i], __hadd2(b[i], b[i]));
	c[i] = c[i] * c[i] + __float2bfloat16(2.0f);
	out[i] = __half2float(a[i]) + __bfloat162float(c[i]);
}

extern "C" __global__ void groups(int *data)
{
	auto block = cg::this_thread_block();
	auto tile = cg::tiled_partition<16>(block);
	int value = data[threadIdx.x];
	for (int k = 8; k; k >>= 1)
		value += tile.shfl_down(value, k);
	value = tile.shfl(value, 0);
	block.sync();
	data[threadIdx.x] = value + __reduce_add_sync(~0u, 1) + __popc(__ballot_sync(~0u, threadIdx.x & 1));
}

extern "C" __global__ void pipeline(const float4 *in, float4 *out)
{
	__shared__ float4 stage[64];
	__pipeline_memcpy_async(&stage[threadIdx.x], &in[threadIdx.x], 16);
	__pipeline_commit();
	__pipeline_wait_prior(0);
	__syncthreads();
	out[threadIdx.x] = stage[63 - threadIdx.x];
}
#endif

extern "C" __global__ void functions(const double *x, double *y, const float *u, float *v, int n)
{
	int i = threadIdx.x;
	if (i < n) {
		y[i] = sin(x[i]) + pow(x[i], 1.3) + exp(-x[i]) + log(x[i] + 1.0) + erf(x[i]) + cbrt(x[i]);
		v[i] = sinf(u[i]) + powf(u[i], 2.2f) + expf(-u[i]) + logf(u[i] + 1.0f) + fmodf(u[i], 0.3f) + tanhf(u[i]);
	}
}

extern "C" __global__ void wide(unsigned __int128 *a, uint64_t *b)
{
	int i = threadIdx.x;
	a[i] = a[i] * (a[i] >> 3) + b[i];
	b[i] = (uint64_t)(a[i] / (b[i] | 1));
}

struct mixed {
	int a[20];
	double d;
	char c[7];
};

__device__ __noinline__ mixed change(mixed s, int k)
{
	s.a[k] += k;
	s.d *= 2;
	s.c[k % 7] = k;
	return s;
}

extern "C" __global__ void structs(mixed s, mixed *out)
{
	out[threadIdx.x] = change(change(s, threadIdx.x % 20), 3);
}

extern "C" __global__ void narrow(signed char *a, short *b, unsigned char *c, bool *d)
{
	int i = threadIdx.x;
	a[i] = a[i] * 3 / (b[i] | 1);
	b[i] = b[i] % 7 + c[i];
	c[i] ^= a[i];
	d[i] = a[i] < b[i];
}
