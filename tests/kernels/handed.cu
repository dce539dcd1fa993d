/*
 * Pointers that are stored through, and those that are also given to others, by memory or by being compared: of these a read-only twin must not take the place. Which are
 * which stands in handed.txt; `build_cubins` compiles this.
 */
#define KERNEL extern "C" __global__ void
typedef unsigned long long u64;

KERNEL only_stored(float *p, int k) { p[threadIdx.x] = k; }
KERNEL indexed(float *p, const float *q, int k) { p[threadIdx.x] = q[threadIdx.x * k]; }
KERNEL added(float *p, int k) { atomicAdd(p + k, 1.0f); }
KERNEL published(float **table, float *p, int k) { table[threadIdx.x] = p + k; p[threadIdx.x] = k; }
KERNEL published_pair(ulonglong2 *table, float *p, float *q, int k) { table[threadIdx.x] = make_ulonglong2((u64)p, (u64)(q + k)); p[k] = q[k] = k; }
KERNEL published_low(unsigned *table, float *p, int k) { table[threadIdx.x] = (unsigned)(u64)p; p[threadIdx.x] = k; }
KERNEL exchanged(u64 *table, float *p, int k) { p[threadIdx.x] = atomicExch(table + k, (u64)p); }
KERNEL swapped_in(u64 *table, float *p, int k) { p[threadIdx.x] = atomicCAS(table + k, (u64)k, (u64)p); }
KERNEL taken_out(u64 *table, float *p, int k) { p[threadIdx.x] = atomicCAS(table + k, (u64)p, (u64)k); }
KERNEL up_to(float *p, float *last, int k) { for (; p != last; p++) *p = k; }
KERNEL how_far(float *p, const float *q, int k) { p[k] = (float)(p - q); }
KERNEL through_shared(float **table, float *p, int k)
{
	__shared__ float *given[32];
	given[threadIdx.x] = p + k;
	__syncthreads();
	table[threadIdx.x] = given[31 - threadIdx.x];
	p[threadIdx.x] = k;
}
