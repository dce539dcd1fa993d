#!/usr/bin/env python3
"""What the hooks cost a program: in one process, blocks of steps with the hooks and without them in turns; the median of the ratios.

    overhead.py [--seconds 30] [--mode MODE] [--option NAME=VALUE]... [PROGRAM[:ARGUMENT]...]

Without programs: those that protect nothing. `frozen_weights:train` and `frozen_weights:decode` protect all weights of a model.
Whole programs run twice differ by tens of percent on a virtual machine (where memory lies, which clock the device has), so nothing is compared between processes:
programs/alternate.py takes the hooks out of the running program, and puts them back.
"""
import argparse
import json
import subprocess
import sys

from harness import HERE, TOOL

NOTHING_PROTECTED = ("torch_step", "cupy_loop", "jax_step", "triton_add")


def measure(program, arguments):
    name, _, argument = program.partition(":")
    options = [word for option in arguments.option for word in ("--option", option)]
    command = [str(TOOL), "run", "--mode", arguments.mode, *options, "--", sys.executable, str(HERE / "programs" / f"{name}.py"), argument or "0",
               f"alternate={arguments.seconds}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=arguments.seconds * 3 + 200)
    line = next((line for line in done.stdout.splitlines() if line.startswith("alternate ")), None)
    if done.returncode or not line:
        raise SystemExit(f"{program}: status {done.returncode}\n{done.stdout}\n{done.stderr}")
    found = json.loads(line.partition(" ")[2])
    if found["seen_without"] or not found["seen_with"]:
        raise SystemExit(f"{program}: hooks were not taken out, or none ran: {found}")
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=int, default=30)
    parser.add_argument("--mode", default="log")
    parser.add_argument("--option", action="append", default=[])
    parser.add_argument("programs", nargs="*", default=NOTHING_PROTECTED)
    arguments = parser.parse_args()
    print("| program | pairs of blocks | steps a block | calls seen a step | without, µs a step | with | median ratio | its 95 % interval |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for program in arguments.programs:
        f = measure(program, arguments)
        print(f"| {program} | {f['pairs']} | {f['steps']} | {f['seen_with']:.1f} | {f['without_us']:.2f} | {f['with_us']:.2f} "
              f"| {f['median']:.4f} | {f['low']:.4f} to {f['high']:.4f} |", flush=True)


if __name__ == "__main__":
    main()
