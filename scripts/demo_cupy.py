#!/usr/bin/env python3
"""A read-only JAX array, laundered by CuPy. Without JAX: a CuPy array and a RawKernel with its arguments swapped.

JAX arrays are immutable, and JAX exports them as read-only. CuPy does not look at that flag: `cupy.asarray(x)` is a writable
view of the same memory. This program does not know of cuconst; `cuconst run --protect=exports` guards it unchanged.
"""
import sys

import cupy

try:
    import jax.numpy
except ImportError:
    jax = None

SCALE = cupy.RawKernel(r"""
extern "C" __global__ void scale(float *out, const float *samples, const float *weights, int count)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count)
        out[i] = samples[i] * weights[i];
}
""", "scale")
COUNT = 1024


def attempt(what, step, array):
    try:
        step()
        cupy.cuda.runtime.deviceSynchronize()
        print(f"{what} ran; the array starts with {float(array[0]):g}")
    except Exception as error:  # CuPy has a class of its own for each library
        print(f"{what} was refused: {type(error).__name__}: {error}; the array starts with {float(array[0]):g}")


def set_first(view):
    view[:4] = -1


def launder():
    weights = jax.numpy.full(COUNT, 2.0, dtype=jax.numpy.float32).block_until_ready()
    view = cupy.asarray(weights)  # no copy, and no longer read-only
    samples = cupy.full(COUNT, 3, dtype=cupy.float32)
    attempt("step 1: RawKernel with its output in a JAX array",
            lambda: SCALE((COUNT // 256,), (256,), (view, samples, view, cupy.int32(COUNT))), view)
    attempt("step 2: view[:4] = -1 on a JAX array", lambda: set_first(view), view)
    attempt("step 3: a copy into a JAX array", lambda: view.set(samples.get() * 0), view)


def swapped():
    import cuconst  # pylint: disable=import-outside-toplevel
    weights, samples, out = (cupy.full(COUNT, value, dtype=cupy.float32) for value in (2, 3, 0))
    with cuconst.protect(weights, label="weights"):
        attempt("step 1: RawKernel with swapped arguments",
                lambda: SCALE((COUNT // 256,), (256,), (weights, samples, out, cupy.int32(COUNT))), weights)
        attempt("step 2: weights[:4] = -1", lambda: set_first(weights), weights)
        attempt("step 3: a copy into the weights", lambda: weights.set(samples.get() * 0), weights)


if __name__ == "__main__":
    launder() if jax else swapped()
    print("done")
    sys.exit(0)
