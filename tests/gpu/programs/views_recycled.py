"""The owner of memory writes it, gives it back to its pool and gets it again, 10^4 times, under the eyes of somebody who holds a view of it.

Argument: jax or torch. Prints one JSON line: rounds, how often the same block came again, wrong reads, violations.
"""
import json
import os
import sys

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
os.environ.setdefault("PYTORCH_CUDA_ALLOC_CONF", "expandable_segments:True")
import cupy

import cuconst

COUNT, ROUNDS = 1 << 16, 10000
wrong = again = 0


def watch(address):
    """A view that keeps nothing alive, in CuPy's hands."""
    return cupy.asarray(cuconst.readonly((address, COUNT * 4))).view(cupy.float32)


if sys.argv[1] == "torch":
    import torch

    x = torch.zeros(COUNT, device="cuda")
    address, seen = x.data_ptr(), watch(x.data_ptr())
    for i in range(ROUNDS):
        if i % 2:
            x = None  # back to the pool, which gives it again
            x = torch.full((COUNT,), float(i), device="cuda")
        else:
            x.fill_(i)
        torch.cuda.synchronize()
        again += x.data_ptr() == address
        wrong += x.data_ptr() == address and i % 50 == 0 and bool((seen != i).any())
else:
    import jax
    import jax.numpy

    step = jax.jit(lambda a: a + 1, donate_argnums=0)
    x = jax.numpy.zeros(COUNT, dtype=jax.numpy.float32) + 0
    x.block_until_ready()
    address = x.unsafe_buffer_pointer()
    seen = watch(address)
    for i in range(ROUNDS):
        x = step(x)
        if i % 50 == 0:
            x.block_until_ready()
            same = x.unsafe_buffer_pointer() == address
            again += same
            wrong += same and bool((seen != i + 1).any())
found = cuconst.stats()
print(json.dumps({"rounds": ROUNDS, "again": again, "wrong": wrong, "violations": found.violations,
                  "inconclusive": found.inconclusive}), flush=True)
