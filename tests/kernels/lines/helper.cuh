__device__ __noinline__ void far_away(int *p)
{
	p[9] = 4; /* helper.cuh:3, a function of its own */
}
__device__ inline void inlined(int *p, int i)
{
	if (p[i] == 77)
		p[i + 1] = 5; /* helper.cuh:8, inlined into its caller */
}
