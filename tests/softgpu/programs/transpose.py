"""Transposes a matrix by tiles in shared memory, padded against bank conflicts."""
import numpy as np
from common import Array, kernels, random, run

transpose, = kernels(r"""
extern "C" __global__ void transpose(const double *from, double *to, int rows, int columns)
{
    extern __shared__ double tile[]; // 32 rows of 33
    int x = blockIdx.x * 32 + threadIdx.x;
    for (int y = threadIdx.y; y < 32; y += blockDim.y)
        if (x < columns && blockIdx.y * 32 + y < rows)
            tile[y * 33 + threadIdx.x] = from[(size_t)(blockIdx.y * 32 + y) * columns + x];
    __syncthreads();
    x = blockIdx.y * 32 + threadIdx.x;
    for (int y = threadIdx.y; y < 32; y += blockDim.y)
        if (x < rows && blockIdx.x * 32 + y < columns)
            to[(size_t)(blockIdx.x * 32 + y) * rows + x] = tile[threadIdx.x * 33 + y];
}
""", "transpose")

rows, columns = 130, 75
matrix, turned = Array(random.random((rows, columns))), Array(np.zeros((columns, rows)))
run(transpose, ((columns + 31) // 32, (rows + 31) // 32), (32, 8), matrix, turned, np.int32(rows), np.int32(columns), shared=32 * 33 * 8)
assert np.array_equal(turned.download(), matrix.host.T)
print(f"transpose: {rows} x {columns}")
