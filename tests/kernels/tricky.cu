/* Ways for an address to reach a store. What each kernel writes stands in tricky.txt; `build_cubins` compiles this for the machines under test. */
#include <cooperative_groups.h>
#include <stdint.h>

#define KERNEL extern "C" __global__ void
typedef unsigned long long u64;

struct Four { float *p[4]; int n; };
struct Mixed { float *out; const float *in; int n; struct { double *deep; short tag; } inner[2]; };
struct Wide { u64 words[40]; float *last; };
struct __attribute__((packed)) Packed { int tag; float *out; int more; };
struct Lambda { float *out; const float *in; __device__ void operator()(int i) const { out[i] = in[i]; } };

__device__ int variable;
__device__ float *pointer_variable;
__constant__ float *constant_table[4];

__device__ __noinline__ void fill(float *p, int i) { p[i] = 1; }
__device__ __noinline__ void copy(float *to, const float *from, int i) { to[i] = from[i]; }
__device__ __noinline__ float *choose(float *a, float *b, int c) { return c ? a : b; }
__device__ __noinline__ void through(float **table, int k, int i) { table[k][i] = 2; }
__device__ __noinline__ void by_value(Mixed m, int i) { m.inner[1].deep[i] = m.in[i]; }
__device__ __noinline__ void many(float *a, float *b, float *c, float *d, float *e, float *f, float *g, float *h, float *j, int i, int s)
{ a[i] = 1; if (s > 1) b[i] = 2; if (s > 2) c[i] = 3; if (s > 3) d[i] = 4; if (s > 4) e[i] = 5; if (s > 5) f[i] = 6; if (s > 6) g[i] = 7;
  if (s > 7) h[i] = 8; if (s > 8) j[i] = 9; }
__device__ __noinline__ int depth(float *p, int i, int n) { if (n <= 0) { p[i] = 3; return 1; } return depth(p, i + n, n - 1) + n; }
typedef void (*function)(float *, int);
__device__ void first_function(float *p, int i) { p[i] = 1; }
__device__ void second_function(float *p, int i) { p[2 * i] = 2; }
__device__ function const functions[2] = {first_function, second_function};

KERNEL plain(float *a, const float *b) { a[threadIdx.x] = b[threadIdx.x]; }
KERNEL select_two(float *a, float *b, const float *c, int k) { (k ? a : b)[threadIdx.x] = c[threadIdx.x]; }
KERNEL select_read(const float *a, const float *b, float *c, int k) { c[threadIdx.x] = (k ? a : b)[threadIdx.x]; }
KERNEL struct_static(Mixed m) { m.out[threadIdx.x] = m.in[threadIdx.x]; }
KERNEL struct_inner(int k, Mixed m) { m.inner[1].deep[k] = m.in[k]; }
KERNEL struct_index(Four s, int k) { s.p[k & 3][threadIdx.x] = k; }
KERNEL struct_index_read(Four s, float *out, int k) { out[threadIdx.x] = s.p[k & 3][threadIdx.x]; }
KERNEL struct_wide(Wide w, int k) { w.last[threadIdx.x] = w.words[k & 31]; }
KERNEL struct_address(const __grid_constant__ Four s, int k) { float *const *p = s.p; asm volatile("" : "+l"(p)); p[k & 3][threadIdx.x] = k; }
KERNEL struct_call(Mixed m, int k) { by_value(m, k); }
KERNEL lambda(Lambda f) { f(threadIdx.x); }
KERNEL packed(Packed s) { s.out[threadIdx.x] = s.tag; }
KERNEL shared_pointer(float *a, const float *b) { __shared__ float *s[32]; s[threadIdx.x] = a; __syncthreads(); s[threadIdx.x ^ 1][threadIdx.x] = b[threadIdx.x]; }
KERNEL shared_halves(float *a, const float *b)
{
	__shared__ unsigned s[64];
	s[threadIdx.x] = (unsigned)(u64)a, s[threadIdx.x + 32] = (unsigned)((u64)a >> 32);
	__syncthreads();
	((float *)((u64)s[(threadIdx.x ^ 1) + 32] << 32 | s[threadIdx.x ^ 1]))[threadIdx.x] = b[0];
}
KERNEL local_array(float *a, float *b, float *c, int k) { float *l[3] = {a, b, c}; l[k % 3][threadIdx.x] = 1; }
KERNEL local_read(const float *a, const float *b, float *c, int k) { const float *l[2] = {a, b}; c[threadIdx.x] = l[k & 1][threadIdx.x]; }
KERNEL local_table(float *a, float *b, int k) { float *l[2] = {a, b}; through(l, k & 1, threadIdx.x); }
KERNEL shuffle(float *a, const float *b, int k)
{
	unsigned lo = __shfl_sync(~0u, (unsigned)(u64)a, k), hi = __shfl_sync(~0u, (unsigned)((u64)a >> 32), k);
	((float *)((u64)hi << 32 | lo))[threadIdx.x] = b[threadIdx.x];
}
KERNEL split_params(unsigned lo, unsigned hi, int n) { ((int *)((u64)hi << 32 | lo))[threadIdx.x] = n; }
KERNEL split_far(unsigned lo, int n, u64 m, unsigned hi) { ((char *)((u64)hi << 32 | lo))[threadIdx.x + m] = n; }
KERNEL integer(u64 p, int n) { ((int *)p)[threadIdx.x] = n; }
KERNEL align_down(u64 p, const float *b) { ((float *)((p + 100) & ~(u64)255))[threadIdx.x] = b[threadIdx.x]; }
KERNEL xor_pointers(u64 a, u64 b, const float *c, int k) { u64 x = a ^ b; u64 y = k ? x ^ a : x ^ b; ((float *)y)[threadIdx.x] = c[0]; }
KERNEL difference(const float *a, const float *b, float *c) { c[(a - b) + threadIdx.x] = *a; }
KERNEL range(float *first, const float *last) { for (float *p = first; p < last; p += 32) p[threadIdx.x] = 0; }
KERNEL table(float **t, const float *in, int n) { if (n) t[blockIdx.x][threadIdx.x] = in[threadIdx.x]; }
KERNEL table_index(float *const *t, long long m, int k) { ((char *)t[k])[m] = 1; }
KERNEL scatter(float *a, const int *index, const float *b) { a[index[threadIdx.x]] = b[threadIdx.x]; }
KERNEL scatter_64(float *a, const long long *index, const float *b) { a[index[threadIdx.x]] = b[threadIdx.x]; }
KERNEL linked(u64 *head, int n) { for (int i = 0; i < n; i++) head = (u64 *)*head; head[1] = n; }
KERNEL global_variable(int v) { variable = v; }
KERNEL global_pointer(int v) { pointer_variable[threadIdx.x] = v; }
KERNEL constant_pointer(int v, int k) { constant_table[k][threadIdx.x] = v; }
KERNEL call(float *a, const float *b, int i) { copy(a, b, i); }
KERNEL call_returns(float *a, float *b, const float *c, int k) { choose(a, b, k)[threadIdx.x] = c[0]; }
KERNEL call_many(float *a, float *b, float *c, float *d, float *e, float *f, float *g, float *h, float *j, const float *k, int i) { many(a, b, c, d, e, f, g, h, j, i, k[0]); }
KERNEL recursion(float *a, const float *b, int n) { if (depth(a, n, n & 15) > 5) fill(a, n + (int)b[0]); }
KERNEL function_pointer(float *a, const float *b, int k) { functions[k & 1](a, (int)b[0]); }
KERNEL switch_six(float *a, float *b, float *c, const float *d, int k)
{
	int i = threadIdx.x;
	switch (k) {
	case 0: a[i] = 1; break;
	case 1: b[i] = i * 2.5f; break;
	case 2: c[i] = sinf(i); break;
	case 3: a[i + 1] = d[i] / 3; break;
	case 4: b[i + 2] = d[i] * i * i; break;
	case 5: c[i] = logf(i); break;
	default: a[i + 7] = 9;
	}
}
KERNEL swap_loop(float *a, float *b, const float *c, int n) { for (int i = 0; i < n; i++) { float *t = a; a = b; b = t; a[i] = c[i]; } }
KERNEL atomics(int *a, float *b, const int *c, u64 *d) { atomicAdd(a, c[0]); atomicAdd(b + threadIdx.x, 1.f); atomicCAS(d, 1ull, (u64)c[1]); }
KERNEL print(float *a, const float *b) { if (b[0] > 5) printf("%p %f\n", a, b[1]); }
KERNEL assertion(float *a, const float *b, int n) { if (b[0] > n) __trap(); a[threadIdx.x] = b[threadIdx.x]; }
KERNEL heap(int n, const int *b) { int *p = (int *)malloc(n); p[0] = b[0]; free(p); }
KERNEL vectors(float4 *a, const float4 *b, double2 *c) { a[threadIdx.x] = b[threadIdx.x]; c[threadIdx.x] = make_double2(b[0].x, 1); }
KERNEL in_out(float *a, const float *b, int n) { for (int i = 0; i < n; i++) a[i] = a[i + 1] * b[i]; }
KERNEL reads_only(const float *a, float *b, int n) { if (n < 0 && a[0] + b[0] > 1e30f) __trap(); }
KERNEL nothing(float *a, int n) {}
