"""A CUDA graph: a chain with a fork, captured once and launched several times."""
import numpy as np
from common import Array, device, kernels, run, stream

scale, add = kernels(r"""
extern "C" __global__ void scale(int *values, int factor) { values[threadIdx.x] *= factor; }
extern "C" __global__ void add(int *to, const int *from) { to[threadIdx.x] += from[threadIdx.x]; }
""", "scale", "add")

left, right = Array(np.arange(64, dtype=np.int32)), Array(np.ones(64, np.int32))
stream.sync()
builder = stream.create_graph_builder().begin_building()
one, two = builder.split(2)
run(scale, 1, 64, left, np.int32(2), on=one)
run(scale, 1, 64, right, np.int32(3), on=two)
joined = type(builder).join(one, two)
run(add, 1, 64, left, right, on=joined)
graph = joined.end_building().complete()
wanted, other = np.arange(64), np.ones(64, np.int64)
for _ in range(4):
    graph.launch(stream)
    other = other * 3
    wanted = wanted * 2 + other
assert np.array_equal(left.download(), wanted) and np.array_equal(right.download(), other)
print("graph_replay: 4 launches of 3 kernels")
