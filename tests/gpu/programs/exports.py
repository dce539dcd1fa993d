"""A program that knows nothing of cuconst: JAX arrays, exported read-only, overwritten by CuPy and by torch. Argument: which write."""
import os
import sys

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
import cupy as cp
import jax.numpy as jnp
import torch

x = jnp.arange(1 << 12, dtype=jnp.float32) + 0
c = cp.asarray(x)
t = torch.as_tensor(c, device="cuda")
d = torch.from_dlpack(x)
print("sum", float((c * 2).sum()), float((t + 1).sum()), float(d @ d), flush=True)


def cupy_setitem():
    c[...] = -1


def cupy_inplace():
    global c
    c += 1


WRITES = {
    "none": lambda: None,
    "cupy_setitem": cupy_setitem,
    "cupy_inplace": cupy_inplace,
    "cupy_copy": lambda: cp.cuda.runtime.memcpy(c.data.ptr, cp.arange(64, dtype=cp.float32).data.ptr, 256, 3),
    "cupy_memset": lambda: cp.cuda.runtime.memset(c.data.ptr, 0, 64),
    "torch_mul": lambda: t.mul_(10),
    "torch_item": lambda: d.__setitem__(0, 77.0),
}
try:
    WRITES[sys.argv[1]]()
    torch.cuda.synchronize()
except Exception as e:
    print("raised", type(e).__name__, flush=True)
print("first", float(x[0]), float(x[1]), flush=True)
y = x + 1  # JAX goes on with its own buffers
y.block_until_ready()
del x, c, t, d
for _ in range(20):  # XLA recycles the memory: no violation
    y = (y * 1.5).block_until_ready()
print("done", flush=True)
