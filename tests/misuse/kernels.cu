/* Kernels of the misuse programs; kernels.ptx is made from this by `nvcc -ptx -arch=compute_75`, with .version lowered to 7.0. */
struct two {
	int count, pad;
	int *data;
};

extern "C" {
__global__ void fill(int *out, int value, int count)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	if (i < count)
		out[i] = value;
}

__global__ void copy(const int *in, int *out, int count)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	if (i < count)
		out[i] = in[i];
}

/* The pointer hides in a by-value struct. */
__global__ void fill_struct(struct two s, int value)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	if (i < s.count)
		s.data[i] = value;
}

/* The pointer hides in device memory. */
__global__ void fill_table(int **table, int value)
{
	table[blockIdx.x][threadIdx.x] = value;
}

/* Takes a while. */
__global__ void spin_fill(int *out, int value, int count, int rounds)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	unsigned x = i;
	for (int r = 0; r < rounds; r++)
		x = x * 1664525u + 1013904223u;
	if (i < count)
		out[i] = value + (x == 12345u);
}

__global__ void add_one(int *data, int count)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	if (i < count)
		atomicAdd(&data[i], 1);
}
}
