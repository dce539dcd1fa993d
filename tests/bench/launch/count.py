#!/usr/bin/env python3
"""Instructions for one launch of each case of launch_bench, by callgrind: a shared machine counts the same as a quiet one. Needs valgrind.

    count.py BUILD [--library LIBCUCONST] [--options OPTIONS] [CASE...]

A case is run with few and with many batches; what the difference took, divided by its launches, leaves the start out.
"""
import argparse
import os
import pathlib
import re
import subprocess
import tempfile

BATCH = 200  # launches, as in launch_bench.c
FEW, MANY = 5, 25
PLAIN = ("direct", "nothing", "elsewhere", "between", "near", "clean", "runtime", "gemv", "table_beside", "table", "hit", "many", "apart", "step", "set", "get_function")
STRICT = ("clean", "gemv", "set", "get_function", "swapped", "swapped_many")


def collected(bench, library, options, case, batches):
    environment = {**os.environ, "LD_PRELOAD": str(library), "LD_LIBRARY_PATH": str(bench.parent), "CUCONST_OPTIONS": options}
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(["valgrind", "--tool=callgrind", f"--callgrind-out-file={folder}/out", str(bench), case, str(batches)],
                              env=environment, capture_output=True, text=True)
    found = re.search(r"Collected : (\d+)", done.stderr)
    if done.returncode or not found:
        raise SystemExit(f"{case}: {done.stderr}")
    return int(found[1])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--library", type=pathlib.Path)
    parser.add_argument("--options", default="cache=0")
    parser.add_argument("cases", nargs="*", default=[])
    arguments = parser.parse_args()
    build = arguments.build.resolve()
    bench = build / "tests/bench/launch/launch_bench"
    library = arguments.library or build / "shim/libcuconst.so"
    print("| launch | instructions |\n| --- | --: |")
    for case in arguments.cases or (STRICT if "mode=strict" in arguments.options else PLAIN):
        few, many = (collected(bench, library, arguments.options, case, batches) for batches in (FEW, MANY))
        print(f"| {case} | {(many - few) / ((MANY - FEW) * BATCH):.0f} |", flush=True)


if __name__ == "__main__":
    main()
