/* The kernels that other tests need first. basic.ptx: nvcc -ptx -arch=compute_75; basic_90.ptx: compute_90 */
#include <cstdint>

struct view {
	float *data;
	uint64_t count;
	float scale;
};

extern "C" __global__ void fill_u32(uint32_t *out, uint32_t value, uint64_t count)
{
	uint64_t i = blockIdx.x * (uint64_t)blockDim.x + threadIdx.x;
	if (i < count)
		out[i] = value;
}

extern "C" __global__ void add_f32(const float *a, const float *b, float *out, int count)
{
	for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x)
		out[i] = a[i] + b[i];
}

extern "C" __global__ void scale_view(view in, view out)
{
	uint64_t i = blockIdx.x * (uint64_t)blockDim.x + threadIdx.x;
	if (i < out.count)
		out.data[i] = in.data[i] * in.scale + out.scale;
}

extern "C" __global__ void inplace_add(int *data, int value, int count)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	if (i < count)
		data[i] += value;
}

extern "C" __global__ void copy_vec(const uint4 *in, uint4 *out, int count)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	if (i < count)
		out[i] = __ldg(&in[i]);
}

extern "C" __global__ void block_sum(const uint32_t *in, uint64_t *out, int count)
{
	__shared__ uint64_t part[256];
	uint64_t sum = 0;
	for (int i = blockIdx.x * 256 + threadIdx.x; i < count; i += gridDim.x * 256)
		sum += in[i];
	part[threadIdx.x] = sum;
	__syncthreads();
	for (int half = 128; half; half >>= 1) {
		if (threadIdx.x < half)
			part[threadIdx.x] += part[threadIdx.x + half];
		__syncthreads();
	}
	if (threadIdx.x == 0)
		atomicAdd((unsigned long long *)out, (unsigned long long)part[0]);
}

extern "C" __global__ void hash_words(const uint32_t *in, uint64_t *out, int count)
{
	uint64_t h = 0x9e3779b97f4a7c15ull * (threadIdx.x + 1);
	for (int i = threadIdx.x; i < count; i += blockDim.x)
		h = h * 0xff51afd7ed558ccdull + (uint64_t)in[i] * 0x85ebca6bu;
	for (int lane = 16; lane; lane >>= 1)
		h ^= __shfl_xor_sync(0xffffffffu, h, lane);
	if ((threadIdx.x & 31) == 0)
		out[threadIdx.x >> 5] = h;
}

extern "C" __global__ void signal_host(volatile uint32_t *flag, uint32_t *data)
{
	data[threadIdx.x] = threadIdx.x * 3;
	__threadfence_system();
	__syncthreads();
	if (threadIdx.x == 0)
		*flag = 1;
}

extern "C" __global__ void extremes(const int *in, int *low, int *high, uint32_t *count, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	if (i >= n)
		return;
	atomicMin(low, in[i]);
	atomicMax(high, in[i]);
	atomicAdd(count, 1u);
}

__device__ __noinline__ uint64_t fib(int n)
{
	return n < 2 ? n : fib(n - 1) + fib(n - 2);
}

extern "C" __global__ void fibonacci(uint64_t *out)
{
	out[threadIdx.x] = fib(threadIdx.x);
}

__constant__ float table[4] = {1.5f, 2.5f, 3.5f, 4.5f};
__device__ int counter = 7;
__device__ int *counter_at = &counter;

extern "C" __global__ void variables(float *out, int *ints)
{
	extern __shared__ float dynamic[];
	dynamic[threadIdx.x] = table[threadIdx.x & 3];
	__syncthreads();
	out[threadIdx.x] = dynamic[blockDim.x - 1 - threadIdx.x];
	if (threadIdx.x == 0)
		*ints = *counter_at;
}

extern "C" __global__ void classify(const int *in, int *out, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	if (i >= n)
		return;
	switch (in[i]) {
	case 0: out[i] = 11; break;
	case 1: out[i] = in[i + 1] * 2; break;
	case 2: out[i] = 33 - i; break;
	case 3: out[i] = i * i; break;
	case 4: out[i] = 55 ^ i; break;
	case 5: out[i] = in[i] << (i & 7); break;
	default: out[i] = -1;
	}
}

extern "C" __global__ void locals(const uint32_t *in, uint32_t *out, int n)
{
	uint32_t window[16];
	for (int k = 0; k < 16; k++)
		window[k] = in[(threadIdx.x * 16 + k) % n];
	uint32_t pick = in[threadIdx.x % n] & 15;
	for (int k = 0; k < 16; k++)
		window[(k * 7 + pick) & 15] ^= window[k] >> 1;
	out[threadIdx.x] = window[pick] + window[(pick + 5) & 15];
}

extern "C" __global__ void spinlock(uint32_t *lock, uint32_t *sum)
{
	bool done = false;
	while (!done) {
		if (atomicCAS(lock, 0u, 1u) == 0u) {
			*(volatile uint32_t *)sum += threadIdx.x + 1;
			__threadfence();
			atomicExch(lock, 0u);
			done = true;
		}
	}
}

extern "C" __global__ void doubles(const double *in, double *out, float *singles, int n)
{
	int i = threadIdx.x;
	if (i < n) {
		out[i] = in[i] / (in[i] * in[i] + 1.0);
		singles[i] = sqrtf((float)fabs(in[i]));
	}
}

extern "C" __global__ void never(int *data)
{
	data[0] = 1;
	__trap();
}
