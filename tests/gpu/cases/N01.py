"""Numba: device arrays, its own kernels, and a read-only JAX array taken for a writable one."""
from guard import *
import numpy as np
import jax.numpy as jnp
from numba import cuda

@cuda.jit
def store(a, v):
    i = cuda.grid(1)
    if i < a.size:
        a[i] = v

@cuda.jit
def read(a, b):
    i = cuda.grid(1)
    if i < a.size:
        b[i] = a[i]

x = protect(cuda.to_device(np.zeros(256, np.float32)), "x"); y = cuda.to_device(np.ones(256, np.float32))
j = protect(jnp.arange(256, dtype=jnp.float32) + 0, "j"); a = cuda.as_cuda_array(j)
silent("kernel that reads", lambda: read[2, 128](x, y))
silent("copy to the host", lambda: x.copy_to_host())
find("x", "kernel that stores", lambda: store[2, 128](x, 7.0))
find("x", "copy from the host", lambda: x.copy_to_device(np.full(256, 3, np.float32)))
find("x", "copy on the device", lambda: x.copy_to_device(y))
find("x", "item assignment", lambda: x.__setitem__(slice(0, 8), 5.0))
silent("kernel that reads the JAX array", lambda: read[2, 128](a, y))
find("j", "kernel that stores into the JAX array", lambda: store[2, 128](a, -1.0))
done()
