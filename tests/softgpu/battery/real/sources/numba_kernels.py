"""Writes nb_*.ptx with numba-cuda: no GPU is needed. Their mangled names were replaced by the functions' own afterwards."""
from numba import cuda, float32, int32, uint8, void


def nb_saxpy(a, x, y, o):
    i = cuda.grid(1)
    if i < o.size:
        o[i] = a * x[i] + y[i]


def nb_sum(x, o):
    s = cuda.shared.array(128, float32)
    t = cuda.threadIdx.x
    i = cuda.grid(1)
    s[t] = x[i] if i < x.size else 0.0
    cuda.syncthreads()
    k = 64
    while k > 0:
        if t < k:
            s[t] += s[t + k]
        cuda.syncthreads()
        k //= 2
    if t == 0:
        cuda.atomic.max(o, 0, s[0])


def nb_mandel(o, w):
    i = cuda.grid(1)
    if i < o.size:
        cx = (i % w) * 3.0 / w - 2.0
        cy = (i // w) * 2.0 / w - 1.0
        x = y = 0.0
        n = 0
        while x * x + y * y < 4.0 and n < 40:
            x, y = x * x - y * y + cx, 2 * x * y + cy
            n += 1
        o[i] = n


for function, signature in ((nb_saxpy, void(float32, float32[::1], float32[::1], float32[::1])), (nb_sum, void(float32[::1], float32[::1])),
                            (nb_mandel, void(uint8[::1], int32))):
    ptx, _ = cuda.compile_ptx(function, signature, cc=(9, 0))
    with open(function.__name__ + ".ptx", "w") as file:
        file.write(ptx)
