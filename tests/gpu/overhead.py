#!/usr/bin/env python3
"""Cost with nothing protected: paired runs with and without the preload, alternating; the median of the ratios.

    overhead.py [PAIRS]
"""
import statistics
import subprocess
import sys

from harness import HERE, TOOL

CORES = "2-5"  # the same for both: on a virtual machine cores are not alike
PROGRAMS = {"torch_step": 600, "cupy_loop": 1200, "jax_step": 8000, "triton_add": 20000}


def seconds(name, steps, shim):
    command = [sys.executable, str(HERE / "programs" / f"{name}.py"), str(steps), "seconds"]
    if shim:
        command = [str(TOOL), "run", "--", *command]
    command = ["taskset", "-c", CORES, *command]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return float(next(line.split()[1] for line in done.stdout.splitlines() if line.startswith("seconds")))


def main():
    pairs = int(sys.argv[1]) if len(sys.argv) > 1 else 7
    print(f"| program | pairs | without, µs a step | with | median ratio | quartiles |\n| --- | --- | --- | --- | --- | --- |")
    for name, steps in PROGRAMS.items():
        plain, shim = [], []
        for pair in range(pairs):  # A B, B A, ...: drift hits both alike
            for under in ((False, True) if pair % 2 == 0 else (True, False)):
                (shim if under else plain).append(seconds(name, steps, under))
        ratios = sorted(b / a for a, b in zip(plain, shim))
        q = statistics.quantiles(ratios, n=4)
        print(f"| {name} | {pairs} | {1e6 * statistics.median(plain):.2f} | {1e6 * statistics.median(shim):.2f} "
              f"| {statistics.median(ratios):.4f} | {q[0]:.4f} to {q[2]:.4f} |", flush=True)


if __name__ == "__main__":
    main()
