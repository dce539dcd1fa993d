"""Triton: an element-wise kernel. Arguments: steps [alternate=SECONDS]."""
import sys

import timing
import torch
import triton
import triton.language as tl


@triton.jit
def add(x, y, z, n, B: tl.constexpr):
    o = tl.program_id(0) * B + tl.arange(0, B)
    m = o < n
    tl.store(z + o, tl.load(x + o, mask=m) + tl.load(y + o, mask=m), mask=m)


steps = int(sys.argv[1])
n = 1 << 16
x, y = torch.arange(n, device="cuda", dtype=torch.float32), torch.ones(n, device="cuda")
z = torch.empty_like(x)


def step():
    add[(triton.cdiv(n, 256),)](x, y, z, n, B=256)


step()
torch.cuda.synchronize()
if not timing.run(step, torch.cuda.synchronize, steps):
    print("sum", float(z.sum()))
