"""A bitonic sort in place: one launch for each of its steps."""
import numpy as np
from common import Array, kernels, random, run

step, = kernels(r"""
extern "C" __global__ void step(int *values, unsigned distance, unsigned size)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x, other = i ^ distance;
    if (other <= i)
        return;
    bool up = (i & size) == 0;
    int a = values[i], b = values[other];
    if ((a > b) == up) {
        values[i] = b;
        values[other] = a;
    }
}
""", "step")

count = 4096
values = Array(random.integers(-10**9, 10**9, count, np.int32))
wanted = np.sort(values.host)
size, launches = 2, 0
while size <= count:
    distance = size // 2
    while distance > 0:
        run(step, count // 256, 256, values, np.uint32(distance), np.uint32(size))
        distance //= 2
        launches += 1
    size *= 2
assert np.array_equal(values.download(), wanted)
print(f"sort_steps: {count} numbers in {launches} launches")
