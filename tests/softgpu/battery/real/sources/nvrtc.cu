// The NVRTC half of the real kernels, after what CuPy generates. nvrtc.ptx: NVRTC 13.0, --gpu-architecture=compute_90 -default-device.
#include <cuda_fp16.h>
template <typename T> struct reducer { static __device__ T op(T a, T b) { return a + b; } };
// What CuPy generates: raw kernels with a strided array class, elementwise loops, block reductions.
typedef unsigned long long uint64; typedef long long ptrdiff;
template <typename T, int N> class CArray {
	T *data_; ptrdiff size_, shape_[N], strides_[N];
public:
	__device__ ptrdiff size() const { return size_; }
	__device__ T &operator[](ptrdiff i) {
		char *at = (char *)data_;
		for (int d = N - 1; d > 0; --d) { ptrdiff q = i / shape_[d]; at += strides_[d] * (i - q * shape_[d]); i = q; }
		return *(T *)(at + strides_[0] * i);
	}
};
#define LOOP(i, n) for (ptrdiff i = (ptrdiff)blockIdx.x * blockDim.x + threadIdx.x; i < (n); i += (ptrdiff)blockDim.x * gridDim.x)
extern "C" __global__ void cupy_add(const float *a, const float *b, float *c, ptrdiff n) { LOOP(i, n) c[i] = a[i] + b[i]; }
extern "C" __global__ void cupy_true_divide(const double *a, const double *b, double *c, ptrdiff n) { LOOP(i, n) c[i] = a[i] / b[i]; }
extern "C" __global__ void cupy_floor_divide(const int *a, const int *b, int *c, ptrdiff n) { LOOP(i, n) { int x = a[i], y = b[i]; c[i] = y == 0 ? 0 : x / y - ((x % y != 0) && ((x ^ y) < 0)); } }
extern "C" __global__ void cupy_strided(CArray<float, 2> a, CArray<float, 2> out) { LOOP(i, out.size()) out[i] = a[i] * 2.0f + 1.0f; }
extern "C" __global__ void cupy_where(const bool *c, const int *a, const int *b, int *o, ptrdiff n) { LOOP(i, n) o[i] = c[i] ? a[i] : b[i]; }
extern "C" __global__ void cupy_clip(const short *a, short lo, short hi, short *o, ptrdiff n) { LOOP(i, n) o[i] = a[i] < lo ? lo : a[i] > hi ? hi : a[i]; }
extern "C" __global__ void cupy_cast(const float *a, unsigned char *o, ptrdiff n) { LOOP(i, n) o[i] = (unsigned char)(int)a[i]; }
extern "C" __global__ void cupy_half(const __half *a, const __half *b, __half *o, ptrdiff n) { LOOP(i, n) o[i] = __float2half(__half2float(a[i]) * __half2float(b[i]) + 1.0f); }
extern "C" __global__ void cupy_sum(const float *in, float *out, int n)
{
	__shared__ float s[128];
	float v = 0;
	for (int i = threadIdx.x; i < n; i += 128) v += in[blockIdx.x * n + i];
	s[threadIdx.x] = v;
	__syncthreads();
	for (int b = 64; b > 0; b /= 2) { if (threadIdx.x < b) s[threadIdx.x] = reducer<float>::op(s[threadIdx.x], s[threadIdx.x + b]); __syncthreads(); }
	if (threadIdx.x == 0) out[blockIdx.x] = s[0];
}
struct pair_t { float v; long long i; };
extern "C" __global__ void cupy_argmax(const float *in, long long *out, int n)
{
	__shared__ pair_t s[128];
	pair_t v = {in[blockIdx.x * n], 0};
	for (int i = threadIdx.x; i < n; i += 128) { float x = in[blockIdx.x * n + i]; if (x > v.v || (x == v.v && i < v.i)) { v.v = x; v.i = i; } }
	s[threadIdx.x] = v;
	__syncthreads();
	for (int b = 64; b > 0; b /= 2) {
		if (threadIdx.x < b) { pair_t o = s[threadIdx.x + b]; if (o.v > s[threadIdx.x].v || (o.v == s[threadIdx.x].v && o.i < s[threadIdx.x].i)) s[threadIdx.x] = o; }
		__syncthreads();
	}
	if (threadIdx.x == 0) out[blockIdx.x] = s[0].i;
}
extern "C" __global__ void cupy_xorwow(unsigned *out, unsigned seed, ptrdiff n)
{
	LOOP(i, n) { unsigned x = seed ^ (unsigned)i * 2654435761u, d = 362437; for (int k = 0; k < 32; k++) { x ^= x << 13; x ^= x >> 17; x ^= x << 5; d += 362437; } out[i] = x + d; }
}
extern "C" __global__ void cupy_complex_mul(const float2 *a, const float2 *b, float2 *o, ptrdiff n) { LOOP(i, n) o[i] = make_float2(a[i].x * b[i].x - a[i].y * b[i].y, a[i].x * b[i].y + a[i].y * b[i].x); }
