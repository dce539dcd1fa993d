/*
 * Kernels for nvcc and NVRTC: ways in which real code passes addresses on. What is expected stands in front of each, as in ptx/: make_ptx.py
 * copies it behind the compiled text. `extern "C"` keeps the names.
 */
#ifndef __CUDACC_RTC__
#include <cstdio>
#endif

struct S {
	int *a;
	int n;
	int *b;
};
struct A {
	float *p[4];
};
struct nested {
	struct {
		double *q;
		long long stride;
	} inner[2];
};

//= copy: load store! none : clear
extern "C" __global__ void copy(const int *in, int *out, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	if (i < n)
		out[i] = in[i];
}

//= by_value: load none store! none : clear
extern "C" __global__ void by_value(S s, int m)
{
	for (int i = threadIdx.x; i < s.n; i += blockDim.x)
		s.b[i * m] = s.a[i];
}

//= chosen: store store load none : clear
extern "C" __global__ void chosen(int *a, int *b, int *c, int n)
{
	int *p = n > 3 ? a : b;
	p[threadIdx.x] = c[n];
}

//= table: load none : table
extern "C" __global__ void table(int **t, int n)
{
	t[n][threadIdx.x] = n;
}

//= array: store store store store none load : clear
extern "C" __global__ void array(A a, int k, const float *x)
{
	a.p[k][threadIdx.x] = x[0];
}

/* A 64-bit index counts as stored through, by design: its value is no address. */
//= nests: load none store! store~ : clear
extern "C" __global__ void nests(nested s)
{
	s.inner[1].q[threadIdx.x * s.inner[1].stride] = s.inner[0].q[threadIdx.x];
}

__device__ int variable[10];
//= module_variable: load : global
extern "C" __global__ void module_variable(int *a)
{
	variable[threadIdx.x] = a[0];
}

//= through_shared: store store : clear
extern "C" __global__ void through_shared(int *a, int *b)
{
	__shared__ int *p[2];
	if (threadIdx.x == 0) {
		p[0] = a;
		p[1] = b;
	}
	__syncthreads();
	*p[threadIdx.x & 1] = 3;
}

__device__ __noinline__ void put(int *p, int v)
{
	*p = v;
}
//= calls: store! load : clear
extern "C" __global__ void calls(int *a, int *b)
{
	put(a, b[0]);
}

//= shuffled: store! load : clear
extern "C" __global__ void shuffled(int *a, int *b)
{
	unsigned long long x = (unsigned long long)a;
	x = __shfl_sync(~0u, x, 3);
	*(int *)x = b[0];
}

//= atomics: store! load store! none : clear
extern "C" __global__ void atomics(int *a, int *b, int *c, int i)
{
	atomicAdd(a + i, b[0]);
	atomicCAS(c, 1, 2);
}

typedef void (*function)(int *);
__device__ void one(int *p)
{
	*p = 1;
}
__device__ void two(int *p)
{
	*p = 2;
}
//= indirect: none none : call
extern "C" __global__ void indirect(int *a, int k)
{
	function f[2] = {one, two};
	f[k](a);
}

//= spilled: store store none load : clear
extern "C" __global__ void spilled(int *a, int *b, int k, int *c)
{
	int *volatile p[4];
	p[0] = a;
	p[1] = b;
	p[2] = a;
	p[3] = b;
	*p[k] = c[0];
}

//= switched: store! store! store! none : clear
extern "C" __global__ void switched(int *a, int *b, int *c, int k)
{
	switch (k) {
	case 0: *a = 1; break;
	case 1: *b = 1; break;
	case 2: a[1] = 2; break;
	case 3: c[3] = 2; break;
	case 5: b[9] = 3; break;
	case 6: a[7] = b[1]; break;
	}
}

//= reduces: load store! none : clear
extern "C" __global__ void reduces(const float *in, float *out, int n)
{
	__shared__ float tile[256];
	float sum = 0;
	for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
		sum += in[i];
	tile[threadIdx.x] = sum;
	__syncthreads();
	for (int half = blockDim.x / 2; half > 0; half /= 2) {
		if (threadIdx.x < half)
			tile[threadIdx.x] += tile[threadIdx.x + half];
		__syncthreads();
	}
	if (threadIdx.x == 0)
		out[blockIdx.x] = tile[0];
}

//= multiplies: load load store! none none : clear
extern "C" __global__ void multiplies(const float *a, const float *b, float *c, int n, int m, int k)
{
	__shared__ float x[16][16], y[16][16];
	int row = blockIdx.y * 16 + threadIdx.y, column = blockIdx.x * 16 + threadIdx.x;
	float sum = 0;
	for (int t = 0; t < k; t += 16) {
		x[threadIdx.y][threadIdx.x] = a[row * k + t + threadIdx.x];
		y[threadIdx.y][threadIdx.x] = b[(t + threadIdx.y) * m + column];
		__syncthreads();
		for (int i = 0; i < 16; i++)
			sum += x[threadIdx.y][i] * y[i][threadIdx.x];
		__syncthreads();
	}
	if (row < n && column < m)
		c[row * m + column] = sum;
}

//= gathers: load load store! none : clear
extern "C" __global__ void gathers(const double *in, const long long *index, double *out, long long n)
{
	long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
	if (i < n)
		out[i] = in[index[i]];
}

//= scatters: load load store! none : clear
extern "C" __global__ void scatters(const double *in, const long long *index, double *out, long long n)
{
	long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
	if (i < n)
		out[index[i]] = in[i];
}

//= in_place: store! none : clear
extern "C" __global__ void in_place(float4 *a, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	if (i < n) {
		float4 v = a[i];
		v.x *= 2.f;
		a[i] = v;
	}
}

//= walks: load~ none~ store! : clear
extern "C" __global__ void walks(int *a, int *end, int *o)
{
	while (a != end)
		*o++ = *a++;
}

struct node {
	node *next;
	int value;
};
//= list: load none : table
extern "C" __global__ void list(node *head, int v)
{
	for (node *at = head->next; at; at = at->next)
		at->value = v;
}

//= list_read: load store! : clear
extern "C" __global__ void list_read(const node *head, int *out)
{
	int sum = 0;
	for (const node *at = head; at; at = at->next)
		sum += at->value;
	*out = sum;
}

//= histogram: load store! none : clear
extern "C" __global__ void histogram(const unsigned char *in, unsigned *bins, int n)
{
	__shared__ unsigned local[256];
	local[threadIdx.x & 255] = 0;
	__syncthreads();
	for (int i = threadIdx.x; i < n; i += blockDim.x)
		atomicAdd(&local[in[i]], 1);
	__syncthreads();
	atomicAdd(&bins[threadIdx.x & 255], local[threadIdx.x & 255]);
}
