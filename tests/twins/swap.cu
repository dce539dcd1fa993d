/* Kernels of the scenes about swapped arguments; swap.ptx is made from this by `nvcc -ptx -arch=compute_75`, with .version lowered to 7.0. */
struct box {
	int count, pad;
	int *data;
	unsigned long long key;
};

extern "C" {
/* Reads, and stores if it is told to: by a parameter, but not by that alone, so that the values of a launch do not tell that it will not. threadIdx.z is 0. */
__global__ void read_or_store(int *data, int *sum, int count, int store)
{
	int all = 0;
	for (int i = 0; i < count; i++)
		all += data[i];
	*sum = all;
	if (store | threadIdx.z)
		data[0] = all;
}

/* Two ends of one array: with one of them somewhere else it would run away. */
__global__ void fill_pair(int *first, int *last, int value)
{
	for (int *at = first; at != last; at++)
		*at = value;
}

/* Their distance is a number. */
__global__ void distance(int *first, int *last, long long *out)
{
	*out = last - first;
	if (*out < 0)
		*first = 0;
}

/* In place or not: which, it finds out by itself. */
__global__ void in_place(int *out, const int *in, int *told)
{
	*told = out == in;
	out[threadIdx.x] = in[threadIdx.x] + 1;
}

/* A number that looks like an address, beside one. */
__global__ void packed(int *data, unsigned long long key, unsigned long long *out)
{
	*out = key * 3 + 1;
	data[1] = (int)key;
}

/* Inside a struct, with such a number. */
__global__ void boxed(struct box b, unsigned long long *out, int store)
{
	*out = b.key ^ (unsigned long long)b.data[b.count - 1];
	if (store | threadIdx.z)
		b.data[0] = 1;
}

/* Either of two. */
__global__ void either(int *a, int *b, int which, int value)
{
	int *to = which | threadIdx.z ? a : b;
	to[threadIdx.x] = value;
}

__global__ void add_each(int *data, int by)
{
	atomicAdd(&data[threadIdx.x], by);
}

/* More parameters than a call has room for. */
struct large {
	int *data[200];
};

__global__ void large_struct(struct large l, int *sum, int store)
{
	*sum = l.data[199][5];
	if (store | threadIdx.z)
		*l.data[199] = 0;
}

/* Takes a while, then stores. */
__global__ void late_store(int *data, int rounds)
{
	unsigned x = threadIdx.x;
	for (int r = 0; r < rounds; r++)
		x = x * 1664525u + 1013904223u;
	data[threadIdx.x] = x;
}

/* Hands the address out: what others find there must be the program's own. */
__global__ void publish(int *data, int **table, int store)
{
	table[threadIdx.x] = data + threadIdx.x;
	if (store | threadIdx.z)
		*data = 1;
}

/* The memory compares: an address that is in it already. */
__global__ void take_out(int *data, unsigned long long *from, int store)
{
	atomicCAS(from, (unsigned long long)data, 0);
	if (store | threadIdx.z)
		*data = 1;
}
}
