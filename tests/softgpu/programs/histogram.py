"""A histogram: atomics in shared memory, then in global memory."""
import numpy as np
from common import Array, kernels, random, run

histogram, = kernels(r"""
extern "C" __global__ void histogram(const unsigned char *bytes, unsigned *counts, int count)
{
    __shared__ unsigned mine[256];
    for (int i = threadIdx.x; i < 256; i += blockDim.x)
        mine[i] = 0;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x)
        atomicAdd(&mine[bytes[i]], 1u);
    __syncthreads();
    for (int i = threadIdx.x; i < 256; i += blockDim.x)
        if (mine[i] != 0)
            atomicAdd(&counts[i], mine[i]);
}
""", "histogram")

count = 60_000
data, counts = Array(random.integers(0, 200, count, np.uint8)), Array(np.zeros(256, np.uint32))
run(histogram, 8, 128, data, counts, np.int32(count))
assert np.array_equal(counts.download(), np.bincount(data.host, minlength=256))
print(f"histogram: {count} bytes, {np.count_nonzero(counts.host)} bins in use")
