#!/usr/bin/env python3
"""What read-only views and swapped arguments cost on an NVIDIA GPU. Prints Markdown; asserts nothing.

    twin_speed.py [views|launches|models]...

views     a view of a JAX array after the first, beside a defensive copy and a protection; 1 MiB to 4 GiB
launches  host time of one launch with a swapped argument, beside a plain one (tests/twins/swap_speed)
models    a training step and a decode loop with all weights protected, strict with twins=all, by overhead.py
"""
import os
import subprocess
import sys

from harness import BUILD, HERE, TOOL

VIEWS = """
import os, statistics, time
os.environ["XLA_PYTHON_CLIENT_MEM_FRACTION"] = "0.6"
import jax, jax.numpy as jnp
import cuconst
from cuconst import _library
import ctypes

def median(fn, rounds):
    found = []
    for _ in range(rounds):
        began = time.perf_counter()
        fn()
        found.append(time.perf_counter() - began)
    return statistics.median(found) * 1e6

x = jnp.zeros(1024, jnp.float32) + 0
x.block_until_ready()
began = time.perf_counter()
cuconst.readonly(x)
print(f"first view, with the twin of all of JAX's pool: {(time.perf_counter() - began) * 1e6:.0f} us\\n")
print("| MiB | readonly(x), us | readonly(x) and its interface, us | x's own interface, us | readonly(x) as a capsule, us | x as a capsule, us | cuconst_view, us | protect and close, us | bytes copied | copy, us |")
print("| --: | --: | --: | --: | --: | --: | --: | --: | --: | --: |")
for mib in (1, 16, 64, 512, 4096):
    x = jnp.zeros(mib << 18, jnp.float32) + 0
    x.block_until_ready()
    pointer, twin = x.unsafe_buffer_pointer(), ctypes.c_uint64()
    call = _library.library().view
    alone = median(lambda: cuconst.readonly(x), 2000)
    view = median(lambda: cuconst.readonly(x).__cuda_array_interface__, 2000)
    interface = median(lambda: x.__cuda_array_interface__, 2000)
    capsule = median(lambda: cuconst.readonly(x).__dlpack__(max_version=(1, 0)), 2000)
    own_capsule = median(lambda: x.__dlpack__(max_version=(1, 0)), 2000)
    protected = median(lambda: cuconst.protect(x).close(), 20)
    bare = median(lambda: call(pointer, mib << 20, ctypes.byref(twin)), 2000)
    copy = median(lambda: jnp.array(x, copy=True).block_until_ready(), 20)
    print(f"| {mib} | {alone:.2f} | {view:.2f} | {interface:.2f} | {capsule:.2f} | {own_capsule:.2f} | {bare:.2f} | {protected:.0f} | 0 | {copy:.0f} |", flush=True)
    del x
"""


def views():
    subprocess.run([TOOL, "run", "--", sys.executable, "-c", VIEWS], check=True)


def launches():
    for mode in ("log", "strict"):
        env = {**os.environ, "LD_PRELOAD": str(BUILD / "shim" / "libcuconst.so"), "CUCONST_OPTIONS": f"mode={mode}",
               "SWAP_PTX": str(HERE.parent / "twins" / "swap.ptx"), "MISUSE_PTX": str(HERE.parent / "misuse" / "kernels.ptx")}
        subprocess.run([BUILD / "tests" / "twins" / "swap_speed", mode], env=env, check=True)


def models():
    subprocess.run([sys.executable, HERE / "overhead.py", "--mode", "strict", "--option", "twins=all", "--seconds", "30",
                    "frozen_weights:train", "frozen_weights:decode"], check=True)


if __name__ == "__main__":
    for name in sys.argv[1:] or ["views", "launches", "models"]:
        print(f"\n## {name}\n", flush=True)
        {"views": views, "launches": launches, "models": models}[name]()
