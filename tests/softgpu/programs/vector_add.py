"""c = a + b."""
import numpy as np
from common import Array, kernels, random, run

add, = kernels(r"""
extern "C" __global__ void add(const float *a, const float *b, float *c, size_t count)
{
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < count; i += (size_t)gridDim.x * blockDim.x)
        c[i] = a[i] + b[i];
}
""", "add")

count = 50_000
a, b = Array(random.random(count, dtype=np.float32)), Array(random.random(count, dtype=np.float32))
c = Array(np.zeros(count, np.float32))
run(add, 64, 256, a, b, c, np.uint64(count))
assert np.array_equal(c.download(), a.host + b.host)
print(f"vector_add: {count} sums as computed by numpy")
