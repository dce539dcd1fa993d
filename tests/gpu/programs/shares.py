"""One program with its inputs protected: shares.py NAME. What it reads comes first, then writes into protected arrays; one JSON line for each of
the two: counters, and which protected arrays really changed.
"""
import json
import os
import sys
import time

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
import cuconst

_held = {}
COUNTERS = ("launches", "graph_launches", "clean", "stores", "near", "unknown", "violations", "inconclusive")


def _bytes(x):
    import cupy
    return cupy.asnumpy(cupy.asarray(x.detach() if hasattr(x, "detach") else x)).tobytes()


def guard(label, x):
    _held[label] = [x, _bytes(x), cuconst.protect(x, label=label)]
    return x


def _settle():
    said = -1
    while cuconst.stats().violations + cuconst.stats().inconclusive != said:
        said = cuconst.stats().violations + cuconst.stats().inconclusive
        time.sleep(0.1)


def phase(name, work):
    began, before = time.time(), cuconst.stats()
    work()
    import cupy
    cupy.cuda.Device().synchronize()
    _settle()
    after = cuconst.stats()
    unchanged = cuconst.check()  # what no launch's check has found is found here, and then it has no kernel
    _settle()
    changed = []
    for label, held in _held.items():
        now = _bytes(held[0])
        if now != held[1]:
            changed.append(label)
            held[1] = now
    print(json.dumps({"phase": name, "began": began, "ended": time.time(), "changed": changed, "unchanged": unchanged,
                      **{c: getattr(after, c) - getattr(before, c) for c in COUNTERS}}), flush=True)


def cupy_program():
    import cupy as cp
    a, b = (guard(n, cp.random.rand(256, 256).astype(cp.float32)) for n in "ab")
    k = cp.RawKernel('extern "C" __global__ void k(const float* x, float* y) { y[threadIdx.x] = x[threadIdx.x]; }', "k")

    def reads():
        for _ in range(5):
            cp.sqrt(a) + b * 2; a.sum(axis=0); b.mean(); cp.sort(a, axis=1); cp.argsort(b); a[::2, 3:9].copy(); cp.concatenate([a, b]); cp.where(a > 0.5, a, b)
            a[cp.arange(9)]; cp.cumsum(a); cp.linalg.norm(b); k((1,), (32,), (a, cp.empty(32, cp.float32)))

    def writes():
        a[...] = 3
        b[0:7] += 1
        cp.add(b, a, out=b)
        cp.RawKernel('extern "C" __global__ void w(float* x) { x[threadIdx.x] = 7; }', "w")((1,), (32,), (a,))
    return reads, writes


def libraries():
    """cuBLAS, cuFFT, cuSOLVER."""
    import cupy as cp
    import cupyx.scipy.linalg as sl
    from cupy import cublas
    a, b = (guard(n, cp.asfortranarray(cp.random.rand(96, 96))) for n in "ab")
    z, s = guard("z", cp.random.rand(64, 256).astype(cp.complex64)), guard("s", cp.asfortranarray(a @ a.T))
    v = guard("v", cp.random.rand(96))

    def reads():
        for _ in range(3):
            a @ b; a @ v; cp.dot(v, v); cp.fft.fft(z); cp.fft.ifft2(z); cp.fft.rfft(z.real)
            cp.linalg.svd(a); cp.linalg.qr(a); cp.linalg.eigh(s); cp.linalg.solve(a, b); cp.linalg.inv(a); cp.linalg.cholesky(s + 96 * cp.eye(96)); sl.lu_factor(a)

    def writes():
        cublas.scal(2.0, v)
        cublas.gemm("N", "N", a, b, out=b)
        sl.lu_factor(a, overwrite_a=True)
    return reads, writes


def _net():
    import torch
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.GELU(), torch.nn.LayerNorm(128), torch.nn.TransformerEncoderLayer(128, 4, 256, batch_first=True)).cuda()
    for name, p in net.named_parameters():
        guard(name, p)
    return net, guard("input", torch.randn(8, 16, 64, device="cuda"))


def torch_eager():
    import torch
    net, x = _net()

    def reads():
        for _ in range(3):
            net(x).square().mean().backward()

    def writes():
        with torch.no_grad():
            x.mul_(2)
            x[0].zero_()
            net[0].weight.add_(net[0].weight)
            net[2].bias.copy_(net[2].weight)
    return reads, writes


def torch_foreach():
    import torch
    net, x = _net()
    for p in net.parameters():
        p.grad = torch.ones_like(p)

    def reads():
        for _ in range(3):
            torch._foreach_add(list(net.parameters()), 1.0); torch.nn.utils.get_total_norm([p.grad for p in net.parameters()])

    def writes():
        torch.optim.AdamW(net.parameters(), lr=0.1, foreach=True).step()
        torch.optim.AdamW(net.parameters(), lr=0.1, fused=True).step()
    return reads, writes


def torch_compiled():
    import torch
    net, x = _net()
    fast = torch.compile(lambda t: net(t) * torch.sin(t).sum() + 1)
    scale = torch.compile(lambda t: t.mul_(3))

    def reads():
        with torch.no_grad():
            for _ in range(5):
                fast(x)

    def writes():
        with torch.no_grad():
            scale(x)
    return reads, writes


def jax_program():
    import jax
    import jax.numpy as jnp
    w, x = guard("w", jax.random.normal(jax.random.key(0), (128, 128)) + 0), guard("x", jnp.ones((64, 128)) + 0)
    step = jax.jit(lambda w, x: jax.nn.softmax(jnp.tanh(x @ w) @ w.T, axis=1).sum(axis=0))
    grad = jax.jit(jax.grad(lambda w, x: jnp.tanh(x @ w).mean()))

    def reads():
        for _ in range(5):
            step(w, x).block_until_ready(); grad(w, x).block_until_ready(); jnp.sort(x, axis=0).block_until_ready(); jnp.fft.rfft(x).block_until_ready()

    def writes():
        import cupy as cp
        cp.asarray(w)[...] = 1
        cp.asarray(x)[3] += 2
    return reads, writes


def triton_program():
    import torch
    import triton
    from shares_triton import add, scale
    x, y = guard("x", torch.rand(5000, device="cuda")), guard("y", torch.rand(5000, device="cuda"))
    out = torch.empty_like(x)

    def reads():
        for _ in range(10):
            add[(triton.cdiv(5000, 256),)](x, y, out, 5000, B=256)

    def writes():
        scale[(triton.cdiv(5000, 256),)](x, 5000, B=256)
        add[(triton.cdiv(5000, 256),)](x, out, y, 5000, B=256)
    return reads, writes


PROGRAMS = {"cupy": cupy_program, "libraries": libraries, "torch_eager": torch_eager, "torch_foreach": torch_foreach, "torch_compiled": torch_compiled,
            "jax": jax_program, "triton": triton_program}

if __name__ == "__main__":
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    work = PROGRAMS[sys.argv[1]]()
    phase("reads", work[0])
    phase("writes", work[1])
