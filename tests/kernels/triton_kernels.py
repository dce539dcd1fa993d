"""Triton kernels for make_ptx.py. Triton adds two parameters of its own behind the last: scratch memory that they do not use."""
import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource


@triton.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    tl.store(out + at, tl.load(x + at, mask=mask) + tl.load(y + at, mask=mask), mask=mask)


@triton.jit
def softmax(out, x, stride, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    v = tl.load(x + row * stride + at, mask=at < n, other=-float("inf"))
    v = tl.exp(v - tl.max(v, axis=0))
    tl.store(out + row * stride + at, v / tl.sum(v, axis=0), mask=at < n)


@triton.jit
def matmul(a, b, c, M, N, K, sa, sb, sc, BLOCK: tl.constexpr):
    rows = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    columns = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    depth = tl.arange(0, BLOCK)
    sum = tl.zeros((BLOCK, BLOCK), dtype=tl.float32)
    for k in range(0, K, BLOCK):
        left = tl.load(a + rows[:, None] * sa + (k + depth)[None, :])
        right = tl.load(b + (k + depth)[:, None] * sb + columns[None, :])
        sum += tl.dot(left, right)
    tl.store(c + rows[:, None] * sc + columns[None, :], sum, mask=(rows < M)[:, None] & (columns < N)[None, :])


@triton.jit
def count(x, bins, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(bins + tl.load(x + at, mask=at < n, other=0), 1, mask=at < n)


@triton.jit
def gather(x, index, out, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + tl.load(index + at)))


@triton.jit
def table(pointers, value, BLOCK: tl.constexpr):
    p = tl.load(pointers + tl.program_id(0)).to(tl.pointer_type(tl.float32))
    tl.store(p + tl.arange(0, BLOCK), value)


KERNELS = [
    (add, {"x": "*fp32", "y": "*fp32", "out": "*fp32", "n": "i32", "BLOCK": "constexpr"}, {"BLOCK": 1024}, "load load store! none none none : clear"),
    (softmax, {"out": "*fp32", "x": "*fp32", "stride": "i32", "n": "i32", "BLOCK": "constexpr"}, {"BLOCK": 512}, "store! load none none none : clear"),
    (matmul, {"a": "*fp16", "b": "*fp16", "c": "*fp32", **{n: "i32" for n in ("M", "N", "K", "sa", "sb", "sc")}, "BLOCK": "constexpr"}, {"BLOCK": 32},
     "load load store! none none none none none : clear"),
    (count, {"x": "*i32", "bins": "*i32", "n": "i32", "BLOCK": "constexpr"}, {"BLOCK": 256}, "load store! none none none : clear"),
    (gather, {"x": "*fp64", "index": "*i64", "out": "*fp64", "BLOCK": "constexpr"}, {"BLOCK": 128}, "load load store! none none : clear"),
    (table, {"pointers": "*i64", "value": "fp32", "BLOCK": "constexpr"}, {"BLOCK": 128}, "load none none none : table"),
]


def compile(kernel, signature, constants, arch):
    source = ASTSource(fn=kernel, signature=signature, constexprs={(list(signature).index(name),): value for name, value in constants.items()})
    return triton.compile(source, target=GPUTarget("cuda", arch, 32)).asm["ptx"]
