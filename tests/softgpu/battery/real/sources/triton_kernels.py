"""Writes tri_*.ptx with triton: no GPU is needed. Run with TRITON_DISABLE_LINE_INFO=1."""
import triton
import triton.language as tl
from triton.compiler import ASTSource
from triton.backends.compiler import GPUTarget


@triton.jit
def tri_add(x, y, o, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    m = i < n
    tl.store(o + i, tl.load(x + i, m) + tl.load(y + i, m), m)


@triton.jit
def tri_softmax(x, o, n, B: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, B)
    v = tl.load(x + row * n + i, i < n, other=-float("inf"))
    e = tl.exp(v - tl.max(v, 0))
    tl.store(o + row * n + i, e / tl.sum(e, 0), i < n)


@triton.jit
def tri_layernorm(x, w, b, o, n, eps, B: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, B)
    m = i < n
    v = tl.load(x + row * n + i, m, other=0.0)
    mean = tl.sum(v, 0) / n
    d = tl.where(m, v - mean, 0.0)
    r = 1 / tl.sqrt(tl.sum(d * d, 0) / n + eps)
    tl.store(o + row * n + i, d * r * tl.load(w + i, m) + tl.load(b + i, m), m)


@triton.jit
def tri_half_fma(x, y, o, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    m = i < n
    a = tl.load(x + i, m); b = tl.load(y + i, m)
    tl.store(o + i, a * b + a, m)


@triton.jit
def tri_sum_axis(x, o, n: tl.constexpr, m: tl.constexpr):
    r = tl.arange(0, n)[:, None]; c = tl.arange(0, m)[None, :]
    v = tl.load(x + tl.program_id(0) * n * m + r * m + c)
    tl.store(o + tl.program_id(0) * m + tl.arange(0, m), tl.sum(v, 0))


@triton.jit
def tri_cumsum(x, o, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(o + tl.program_id(0) * B + i, tl.cumsum(tl.load(x + tl.program_id(0) * B + i), 0))


@triton.jit
def tri_atomic(x, o, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    m = i < n
    v = tl.load(x + i, m, other=0)
    tl.atomic_add(o + (v & 31), v, m)


@triton.jit
def tri_sort(x, o, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(o + tl.program_id(0) * B + i, tl.sort(tl.load(x + tl.program_id(0) * B + i)))


@triton.jit
def tri_rand(o, seed, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(o + i, tl.randint(seed, i))


@triton.jit
def tri_argmax(x, o, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(o + tl.program_id(0), tl.argmax(tl.load(x + tl.program_id(0) * B + i), 0))


@triton.jit
def tri_bf16_gelu(x, o, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    m = i < n
    v = tl.load(x + i, m).to(tl.float32)
    tl.store(o + i, (v * tl.sigmoid(1.702 * v)).to(tl.bfloat16), m)


@triton.jit
def tri_dot(x, y, o, N: tl.constexpr):
    r = tl.arange(0, N)[:, None]; c = tl.arange(0, N)[None, :]
    a = tl.load(x + r * N + c); b = tl.load(y + r * N + c)
    tl.store(o + r * N + c, tl.dot(a, b))


jobs = [
 (tri_add, dict(x="*fp32", y="*fp32", o="*fp32", n="i32"), dict(B=256)),
 (tri_softmax, dict(x="*fp32", o="*fp32", n="i32"), dict(B=256)),
 (tri_layernorm, dict(x="*fp32", w="*fp32", b="*fp32", o="*fp32", n="i32", eps="fp32"), dict(B=256)),
 (tri_half_fma, dict(x="*fp16", y="*fp16", o="*fp16", n="i32"), dict(B=256)),
 (tri_sum_axis, dict(x="*fp32", o="*fp32"), dict(n=32, m=32)),
 (tri_cumsum, dict(x="*i32", o="*i32"), dict(B=256)),
 (tri_atomic, dict(x="*i32", o="*i32", n="i32"), dict(B=256)),
 (tri_sort, dict(x="*i32", o="*i32"), dict(B=64)),
 (tri_rand, dict(o="*i32", seed="i32"), dict(B=256)),
 (tri_argmax, dict(x="*fp32", o="*i32"), dict(B=256)),
 (tri_bf16_gelu, dict(x="*bf16", o="*bf16", n="i32"), dict(B=256)),
 (tri_dot, dict(x="*fp16", y="*fp16", o="*fp32"), dict(N=32)),
]

for fn, sig, cst in jobs:
    full = {k: sig.get(k, "constexpr") for k in fn.arg_names}
    made = triton.compile(ASTSource(fn, full, cst), options={"ptx_version": 87}, target=GPUTarget("cuda", 90, 32))
    with open(fn.__name__ + ".ptx", "w") as file:
        file.write(made.asm["ptx"].replace("sm_90a", "sm_90"))
