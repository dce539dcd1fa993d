// The nvcc half of the real kernels: what small CUDA programs do. nvcc.ptx: nvcc 13.0, -ptx -arch=sm_90 -O3.
#include <cuda_fp16.h>
#include <cuda_bf16.h>
#include <stdint.h>
extern "C" {
__global__ void saxpy(const float *x, const float *y, float *out, int n, float a)
{
	for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
		out[i] = a * x[i] + y[i];
}
__global__ void transpose(const float *in, float *out, int w, int h)
{
	__shared__ float tile[16][17];
	int x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 16 + threadIdx.y;
	if (x < w && y < h) tile[threadIdx.y][threadIdx.x] = in[y * w + x];
	__syncthreads();
	x = blockIdx.y * 16 + threadIdx.x; y = blockIdx.x * 16 + threadIdx.y;
	if (x < h && y < w) out[y * h + x] = tile[threadIdx.x][threadIdx.y];
}
__global__ void histogram(const unsigned *in, unsigned *out, int n)
{
	__shared__ unsigned bins[256];
	for (int i = threadIdx.x; i < 256; i += blockDim.x) bins[i] = 0;
	__syncthreads();
	for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) atomicAdd(&bins[in[i] & 255], 1u);
	__syncthreads();
	for (int i = threadIdx.x; i < 256; i += blockDim.x) atomicAdd(&out[i], bins[i]);
}
__global__ void matmul(const float *a, const float *b, float *c, int n)
{
	__shared__ float as[16][16], bs[16][16];
	int row = blockIdx.y * 16 + threadIdx.y, col = blockIdx.x * 16 + threadIdx.x;
	float sum = 0;
	for (int t = 0; t < n / 16; t++) {
		as[threadIdx.y][threadIdx.x] = a[row * n + t * 16 + threadIdx.x];
		bs[threadIdx.y][threadIdx.x] = b[(t * 16 + threadIdx.y) * n + col];
		__syncthreads();
		for (int k = 0; k < 16; k++) sum += as[threadIdx.y][k] * bs[k][threadIdx.x];
		__syncthreads();
	}
	c[row * n + col] = sum;
}
__global__ void warp_sum(const double *in, double *out, int n)
{
	double sum = 0;
	for (int i = threadIdx.x; i < n; i += blockDim.x) sum += in[i];
	for (int o = 16; o; o >>= 1) sum += __shfl_down_sync(~0u, sum, o);
	__shared__ double part[32];
	if (!(threadIdx.x & 31)) part[threadIdx.x >> 5] = sum;
	__syncthreads();
	if (threadIdx.x < 32) {
		sum = threadIdx.x < blockDim.x / 32 ? part[threadIdx.x] : 0;
		for (int o = 16; o; o >>= 1) sum += __shfl_xor_sync(~0u, sum, o);
		if (!threadIdx.x) out[blockIdx.x] = sum;
	}
}
__global__ void scan(const int *in, int *out, int n)
{
	extern __shared__ int temp[];
	int t = threadIdx.x;
	temp[t] = t < n ? in[blockIdx.x * n + t] : 0;
	__syncthreads();
	for (int d = 1; d < blockDim.x; d *= 2) {
		int v = t >= d ? temp[t - d] : 0;
		__syncthreads();
		temp[t] += v;
		__syncthreads();
	}
	if (t < n) out[blockIdx.x * n + t] = temp[t];
}
__global__ void bitonic(unsigned *data)
{
	__shared__ unsigned s[256];
	unsigned t = threadIdx.x;
	s[t] = data[blockIdx.x * 256 + t];
	__syncthreads();
	for (unsigned k = 2; k <= 256; k <<= 1)
		for (unsigned j = k >> 1; j; j >>= 1) {
			unsigned o = t ^ j;
			if (o > t && ((t & k) == 0) == (s[t] > s[o])) { unsigned v = s[t]; s[t] = s[o]; s[o] = v; }
			__syncthreads();
		}
	data[blockIdx.x * 256 + t] = s[t];
}
__global__ void half_ops(const __half2 *a, const __half2 *b, __half2 *out, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	if (i >= n) return;
	__half2 x = a[i], y = b[i];
	__half2 r = __hfma2(x, y, __hadd2(x, __float2half2_rn(0.5f)));
	if (__hbgt2(x, y)) r = __hmul2(r, y);
	out[i] = __hmax2(r, __hmin2(x, y));
}
__global__ void bf16_ops(const __nv_bfloat162 *a, const __nv_bfloat162 *b, __nv_bfloat162 *out, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	if (i >= n) return;
	float2 x = __bfloat1622float2(a[i]), y = __bfloat1622float2(b[i]);
	out[i] = __hadd2(__floats2bfloat162_rn(x.x * y.x, x.y - y.y), a[i]);
}
__global__ void integer_mix(const uint64_t *in, uint64_t *out, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	if (i >= n) return;
	uint64_t x = in[i], d = (in[(i + 1) % n] & 0xffff) + 3;
	uint64_t h = __umul64hi(x, 0x9e3779b97f4a7c15ull) ^ (x / d) ^ (x % d) << 7;
	h += __popcll(x) * 31 + __clzll((long long)x) * 7 + __ffsll((long long)x) + __brevll(x) % 1000003;
	int64_t s = (int64_t)x / (int64_t)(d | 1) - (int64_t)x % -17;
	out[i] = h ^ (uint64_t)s ^ __byte_perm((unsigned)x, (unsigned)(x >> 32), 0x3715);
}
__global__ void video(const unsigned *a, const unsigned *b, unsigned *out, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	if (i >= n) return;
	out[i] = __vadd4(a[i], b[i]) ^ __vmaxs2(a[i], b[i]) ^ __vabsdiffu4(a[i], b[i]) ^ __vcmpgtu4(a[i], b[i]) ^ __vavgu4(a[i], b[i]) ^
	         __vsubss2(a[i], b[i]) ^ __dp4a((int)a[i], (int)b[i], 7) ^ __funnelshift_l(a[i], b[i], i);
}
__device__ int collatz(uint64_t x) { int c = 0; while (x > 1 && c < 300) { x = x & 1 ? 3 * x + 1 : x / 2; c++; } return c; }
__global__ void divergent(const unsigned *in, int *out, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	if (i < n) out[i] = collatz(in[i] % 5000 + 1);
}
__device__ __noinline__ float3 helper(float3 a, float b) { return make_float3(a.y * b, a.z + b, a.x - b); }
__constant__ float weights[5] = {0.0625f, 0.25f, 0.375f, 0.25f, 0.0625f};
__global__ void stencil(const float *in, float *out, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	if (i >= n) return;
	float s = 0;
	for (int k = -2; k <= 2; k++) { int j = i + k; s += weights[k + 2] * in[j < 0 ? 0 : j >= n ? n - 1 : j]; }
	float3 r = helper(make_float3(s, in[i], 1.0f), 0.5f);
	out[i] = r.x + r.y * r.z;
}
__global__ void vector_copy(const uint4 *in, uint4 *out, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	if (i < n) { uint4 v = __ldg(in + i); out[i] = make_uint4(v.w, v.z ^ v.x, v.y + 1, __brev(v.x)); }
}
struct big { float m[9]; double s; int idx[4]; };
__global__ void by_value(const float *in, float *out, struct big b, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	if (i < n) out[i] = in[b.idx[i & 3] & 1 ? i : n - 1 - i] * b.m[i % 9] + (float)b.s;
}
__global__ void float_math(const float *in, float *out, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	if (i >= n) return;
	float x = in[i];
	out[i * 8] = sqrtf(fabsf(x)); out[i * 8 + 1] = x / (x * x + 1.0f); out[i * 8 + 2] = rintf(x * 3.0f); out[i * 8 + 3] = fmodf(x, 0.75f);
	out[i * 8 + 4] = floorf(x) + truncf(x); out[i * 8 + 5] = fmaf(x, x, -1.0f); out[i * 8 + 6] = ldexpf(x, i & 15); out[i * 8 + 7] = (float)__float2int_rd(x * 1000.0f);
}
__global__ void float_functions(const float *in, float *out, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	if (i >= n) return;
	float x = in[i];
	out[i * 8] = expf(x); out[i * 8 + 1] = logf(fabsf(x)); out[i * 8 + 2] = sinf(x); out[i * 8 + 3] = powf(fabsf(x), 1.7f);
	out[i * 8 + 4] = tanhf(x); out[i * 8 + 5] = erff(x); out[i * 8 + 6] = rsqrtf(fabsf(x)); out[i * 8 + 7] = cbrtf(x);
}
__global__ void double_functions(const double *in, double *out, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	if (i >= n) return;
	double x = in[i];
	out[i * 8] = exp(x); out[i * 8 + 1] = log(fabs(x)); out[i * 8 + 2] = sin(x); out[i * 8 + 3] = pow(fabs(x), 1.7);
	out[i * 8 + 4] = tanh(x); out[i * 8 + 5] = x / 3.1; out[i * 8 + 6] = rsqrt(fabs(x)); out[i * 8 + 7] = cbrt(x);
}
__global__ void block_min_cas(const float *in, float *out, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	if (i >= n) return;
	int *at = (int *)&out[i % 7], old = *at, seen;
	do { seen = old; if (__int_as_float(seen) <= in[i]) break; old = atomicCAS(at, seen, __float_as_int(in[i])); } while (old != seen);
}
__global__ void last_block(const unsigned *in, unsigned *part, unsigned *out, unsigned *ticket, int n)
{
	__shared__ bool last;
	unsigned sum = __reduce_add_sync(~0u, in[blockIdx.x * 32 + threadIdx.x]);
	if (!threadIdx.x) { part[blockIdx.x] = sum; __threadfence(); last = atomicInc(ticket, gridDim.x) == gridDim.x - 1; }
	__syncwarp();
	if (last && threadIdx.x == 0) { unsigned all = 0; for (int k = 0; k < gridDim.x; k++) all += ((volatile unsigned *)part)[k]; *out = all; }
}
}
