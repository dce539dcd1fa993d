"""A read-only view of one library's array, handed to another library, which reads it and writes into it.

Arguments: OWNER CONSUMER WRITE; WRITE `read` reads only. Prints JSON lines: {"read": ..., "right": ...}, then what came of the write:
{"write": ..., "raised": ..., "context": "alive" or "dead", "changed": ...}.
"""
import json
import os
import sys

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
os.environ.setdefault("PYTORCH_CUDA_ALLOC_CONF", "expandable_segments:True")
import numpy

import cuconst

owner, consumer, write = sys.argv[1:4]
COUNT = 1 << 18
expected = numpy.arange(COUNT, dtype=numpy.float32)


def make(name):
    if name == "jax":
        import jax.numpy

        array = jax.numpy.arange(COUNT, dtype=jax.numpy.float32) + 0
        array.block_until_ready()
        return array
    if name == "torch":
        import torch

        array = torch.arange(COUNT, dtype=torch.float32, device="cuda")
        torch.cuda.synchronize()
        return array
    import cupy

    array = cupy.arange(COUNT, dtype=cupy.float32)
    cupy.cuda.Device().synchronize()
    return array


def on_host(array):
    if hasattr(array, "cpu"):
        return array.cpu().numpy()
    return array.get() if hasattr(array, "get") else numpy.asarray(array)


x = make(owner)
view = cuconst.readonly(x)
assert view.ptr and view.__cuda_array_interface__["data"] == (view.ptr, True)


def with_cupy():
    import cupy
    from cupy.cuda import cufft

    y = cupy.asarray(view)
    plan = cufft.Plan1d(COUNT // 2, cufft.CUFFT_C2C, 1)
    raw = cupy.RawKernel('extern "C" __global__ void f(float *a) { a[threadIdx.x] = -7; }', "f")
    return y, {
        "setitem": lambda: y.__setitem__(Ellipsis, -1),
        "iadd": lambda: y.__iadd__(1),
        "out": lambda: cupy.multiply(y, 2, out=y),
        "sort": lambda: y[::-1].sort(),
        "raw": lambda: raw((1,), (32,), (y,)),
        "matmul": lambda: cupy.matmul(cupy.ones((512, 512), "f4"), cupy.ones((512, 512), "f4"), out=y.reshape(512, 512)),
        "random": lambda: cupy.random.Generator(cupy.random.XORWOW(1)).random(out=y, dtype=cupy.float32),
        "fft": lambda: plan.fft(y.view(cupy.complex64), y.view(cupy.complex64), cufft.CUFFT_FORWARD),
        "memset": lambda: cupy.cuda.runtime.memset(y.data.ptr, 0, 64),
        "memcpy": lambda: cupy.cuda.runtime.memcpy(y.data.ptr, y.data.ptr + 4096, 64, 3),
        "set": lambda: y.set(numpy.zeros(COUNT, "f4")),
        "dlpack": lambda: cupy.from_dlpack(view).__iadd__(1),
    }, lambda: cupy.cuda.Device().synchronize(), lambda: cupy.asnumpy(y * 2)


def with_torch():
    import torch

    y = torch.from_dlpack(view)
    return y, {
        "mul_": lambda: y.mul_(-1),
        "copy_": lambda: y.copy_(torch.zeros(COUNT, device="cuda")),
        "zero_": lambda: y.zero_(),
        "foreach": lambda: torch._foreach_mul_([y, torch.ones(5, device="cuda")], 2.0),
        "sort": lambda: torch.sort(torch.ones(COUNT, device="cuda"), out=(y, torch.empty(COUNT, dtype=torch.int64, device="cuda"))),
        "mm": lambda: torch.mm(torch.ones(512, 512, device="cuda"), torch.ones(512, 512, device="cuda"), out=y.view(512, 512)),
        "index": lambda: y.index_put_((torch.zeros(1, dtype=torch.int64, device="cuda"),), torch.ones(1, device="cuda")),
    }, torch.cuda.synchronize, lambda: (y * 2).cpu().numpy()


def with_jax():
    import jax

    y = jax.dlpack.from_dlpack(view) if hasattr(jax, "dlpack") else None
    return y, {}, lambda: None, lambda: numpy.asarray(y * 2)


y, writes, synchronize, double = {"cupy": with_cupy, "torch": with_torch, "jax": with_jax}[consumer]()
got = double()
print(json.dumps({"read": consumer, "right": bool((got == expected * 2).all())}), flush=True)
if write != "read":
    raised = None
    try:
        writes[write]()
        synchronize()
    except Exception as error:
        raised = f"{type(error).__name__}: {error}".split("\n")[0]
    try:
        changed, context = bool((on_host(x) != expected).any()), "alive"
    except Exception:
        changed, context = None, "dead"
    print(json.dumps({"write": write, "raised": raised, "context": context, "changed": changed}), flush=True)
sys.stdout.flush()
os._exit(0)
