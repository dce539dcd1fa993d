"""CuPy: ufuncs, reductions, sort, FFT, matmul, a raw kernel. Arguments: steps [alternate=SECONDS]."""
import sys

import cupy as cp
import timing

steps = int(sys.argv[1])
cp.random.seed(1)
a = cp.random.rand(256, 256, dtype=cp.float32)
kernel = cp.RawKernel('extern "C" __global__ void k(const float* x, float* y, int n) '
                      "{ int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) y[i] = x[i] * 2 + 1; }", "k")
y = cp.empty_like(a)


def step():
    kernel((256,), (256,), (a, y, cp.int32(a.size)))
    b = cp.sqrt(abs(y)) + a
    c = b @ a
    s = cp.sort(c, axis=1)
    f = cp.fft.ifft2(cp.fft.fft2(s)).real
    return f.sum() + b.mean()


total = float(step())
for _ in range(3):
    step()
cp.cuda.Device().synchronize()
if not timing.run(step, cp.cuda.Device().synchronize, steps):
    print("total", f"{total:.3f}")
