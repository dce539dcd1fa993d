#!/usr/bin/env python3
"""Cost with nothing protected: in one process, blocks of steps with the hooks and without them in turns; the median of the ratios.

    overhead.py [SECONDS A PROGRAM] [PROGRAM...]

Whole programs run twice differ by tens of percent on a virtual machine (where memory lies, which clock the device has), so nothing is compared between processes:
programs/alternate.py takes the hooks out of the running program, and puts them back.
"""
import json
import subprocess
import sys

from harness import HERE, TOOL

PROGRAMS = ("torch_step", "cupy_loop", "jax_step", "triton_add")


def measure(name, seconds):
    command = [str(TOOL), "run", "--", sys.executable, str(HERE / "programs" / f"{name}.py"), "0", f"alternate={seconds}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=seconds * 3 + 200)
    line = next((line for line in done.stdout.splitlines() if line.startswith("alternate ")), None)
    if done.returncode or not line:
        raise SystemExit(f"{name}: status {done.returncode}\n{done.stdout}\n{done.stderr}")
    found = json.loads(line.partition(" ")[2])
    if found["seen_without"] or not found["seen_with"]:
        raise SystemExit(f"{name}: hooks were not taken out, or none ran: {found}")
    return found


def main():
    seconds = int(sys.argv[1]) if len(sys.argv) > 1 else 30
    print("| program | pairs of blocks | steps a block | calls seen a step | without, µs a step | with | median ratio | its 95 % interval |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for name in sys.argv[2:] or PROGRAMS:
        f = measure(name, seconds)
        print(f"| {name} | {f['pairs']} | {f['steps']} | {f['seen_with']:.1f} | {f['without_us']:.2f} | {f['with_us']:.2f} "
              f"| {f['median']:.4f} | {f['low']:.4f} to {f['high']:.4f} |", flush=True)


if __name__ == "__main__":
    main()
