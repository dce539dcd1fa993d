"""A sum in two steps: warp shuffles, then shared memory; one atomic for each block."""
import numpy as np
from common import Array, kernels, random, run

total, = kernels(r"""
extern "C" __global__ void total(const int *values, unsigned long long *sum, int count)
{
    __shared__ int parts[32];
    int mine = 0;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x)
        mine += values[i];
    for (int step = 16; step > 0; step /= 2)
        mine += __shfl_down_sync(0xffffffff, mine, step);
    if (threadIdx.x % 32 == 0)
        parts[threadIdx.x / 32] = mine;
    __syncthreads();
    if (threadIdx.x < 32) {
        mine = threadIdx.x < blockDim.x / 32 ? parts[threadIdx.x] : 0;
        for (int step = 16; step > 0; step /= 2)
            mine += __shfl_down_sync(0xffffffff, mine, step);
        if (threadIdx.x == 0)
            atomicAdd(sum, (unsigned long long)mine);
    }
}
""", "total")

count = 100_003
values, result = Array(random.integers(0, 1000, count, np.int32)), Array(np.zeros(1, np.uint64))
run(total, 16, 256, values, result, np.int32(count))
assert result.download()[0] == values.host.sum(dtype=np.uint64), result.host
print(f"reduction: the sum of {count} numbers is {result.host[0]}")
