/* A few kernels for tests of containers and of damage. */
struct Table { float *p[3]; int n; };
__device__ __noinline__ void store(float *p, int i, float v) { p[i] = v; }
extern "C" __global__ void copy(float *to, const float *from, int n) { for (int i = threadIdx.x; i < n; i += 32) to[i] = from[i]; }
extern "C" __global__ void indexed(Table t, int k) { store(t.p[k % 3], k, t.n); }
extern "C" __global__ void choose(float *a, float *b, const float *c, int k)
{
	switch (k) { case 0: a[1] = c[0]; break; case 1: b[2] = c[1]; break; case 2: a[3] = 1; break; case 3: b[4] = sinf(c[2]); break; case 4: a[c[3] > 0] = 5; }
}
