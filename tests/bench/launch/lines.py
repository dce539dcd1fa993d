#!/usr/bin/env python3
"""Cache lines and pages that one launch of each case of launch_bench touches, by valgrind's lackey: what a program that fills the caches between two launches pays for. Needs valgrind.

    lines.py BUILD [--library LIBCUCONST] [--options OPTIONS] [--functions] [CASE...]

Of a few launches the middle one by number of lines. The benchmark's and the stub driver's code and variables are left out. The stack is told apart: its lines are those that the
driver would use.
"""
import argparse
import bisect
import collections
import os
import pathlib
import re
import subprocess
import tempfile

LINE, PAGE = 64, 4096
STACK = 1 << 16  # around the benchmark's frame
PLAIN = ("nothing", "elsewhere", "between", "near", "clean", "runtime", "gemv", "table_beside", "table", "hit", "apart", "step", "training", "set", "get_function")
STRICT = ("clean", "gemv", "set", "get_function", "swapped")


def traced(bench, library, options, case):
    """The marked launches: lists of (kind, address, bytes), and the process's map."""
    environment = {**os.environ, "LD_PRELOAD": str(library), "LD_LIBRARY_PATH": str(bench.parent), "CUCONST_OPTIONS": options}
    with tempfile.TemporaryDirectory() as folder:
        log = pathlib.Path(folder, "trace")
        done = subprocess.run(["valgrind", "--tool=lackey", "--trace-mem=yes", f"--log-file={log}", str(bench), case, "trace"],
                              env=environment, capture_output=True, text=True)
        marker = re.search(r"^marker (\w+)$", done.stdout, re.M)
        if done.returncode or not marker:
            raise SystemExit(f"{case}: {done.stdout}{done.stderr}")
        mark = f" S {int(marker[1], 16):08x},8".encode()
        text = log.read_bytes()
    stack = int(re.search(r"^stack (\w+)$", done.stdout, re.M)[1], 16)
    pieces = text[text.index(mark):].split(mark)[1::2]
    launches = [[(line[:2].strip(), *numbers(line[3:])) for line in piece.decode().splitlines() if re.match(r"[ I][ LSM] ", line)]
                for piece in pieces]
    # valgrind's map does not name it.
    return launches, [(stack - STACK, stack + STACK, "[stack]"), *areas(done.stdout)]


def numbers(text):
    address, size = text.split(",")
    return int(address, 16), int(size)


def areas(maps):
    found = re.findall(r"^(\w+)-(\w+) \S+ \w+ \S+ \d+ *(.*)$", maps, re.M)
    return [(int(start, 16), int(end, 16), path) for start, end, path in found]


def where(maps, address):
    return next((pathlib.Path(path).name for start, end, path in maps if start <= address < end), "") or "memory"


def touched(launch, maps, bench):
    """Lines of each place, code and data apart."""
    lines = collections.defaultdict(set)
    ours = {}
    for kind, address, size in launch:
        page = address // PAGE
        if page not in ours:
            ours[page] = where(maps, address)
        name = ours[page]
        if name in bench:
            continue
        place = ("code " if kind == "I" else "data ") + name
        lines[place].update(range(address // LINE, (address + size - 1) // LINE + 1))
    return lines


def jumps(launch, maps, bench):
    """Places where the code goes on elsewhere than behind them: with the branch predictors full of other things, each costs some twenty cycles."""
    code = [(address, size) for kind, address, size in launch if kind == "I"]
    found = {address for (address, size), (behind, _) in zip(code, code[1:]) if behind != address + size}
    return sum(where(maps, address) not in bench for address in found)


def symbols(path):
    """Of an object; of one that is stripped those that it exports."""
    for options in ("-n",), ("-n", "-D"):
        out = subprocess.run(["nm", *options, "--defined-only", path], capture_output=True, text=True).stdout
        named = [line.split() for line in out.splitlines()]
        if named:
            break
    return [(int(parts[0], 16), parts[2]) for parts in named if len(parts) == 3]


def print_functions(lines, maps):
    counts = collections.Counter()
    for place, found in lines.items():
        start, _, path = next((area for area in maps if place[5:] == pathlib.Path(area[2]).name), (0, 0, ""))
        table = symbols(path) if path.startswith("/") else []
        starts = [address for address, _ in table]
        for line in found:
            at = bisect.bisect_right(starts, line * LINE + LINE - 1 - start) - 1
            counts[place, table[at][1] if at >= 0 else "?"] += 1
    for (place, name), count in sorted(counts.items()):
        print(f"    {count:4} {place}: {name}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--library", type=pathlib.Path)
    parser.add_argument("--options", default="cache=0")
    parser.add_argument("--functions", action="store_true", help="also list what the lines belong to")
    parser.add_argument("cases", nargs="*", default=[])
    arguments = parser.parse_args()
    bench = arguments.build.resolve() / "tests/bench/launch/launch_bench"
    library = (arguments.library or arguments.build / "shim/libcuconst.so").resolve()
    own = {"launch_bench", "libcuda.so.1"}
    print("| launch | code: lines | pages | data: lines | pages | stack: lines | pages | jumps | instructions |")
    print("| --- | --: | --: | --: | --: | --: | --: | --: |", flush=True)
    for case in arguments.cases or (STRICT if "mode=strict" in arguments.options else PLAIN):
        launches, maps = traced(bench, library, arguments.options, case)
        launches.sort(key=lambda launch: sum(map(len, touched(launch, maps, own).values())))
        launch = launches[len(launches) // 2]
        lines = touched(launch, maps, own)
        stack = lines.pop("data [stack]", set())
        code, data = (set().union(*(found for place, found in lines.items() if place.startswith(kind))) for kind in ("code", "data"))
        cells = [number for found in (code, data, stack) for number in (len(found), len({line * LINE // PAGE for line in found}))]
        print(f"| {case} | {' | '.join(map(str, cells))} | {jumps(launch, maps, own)} | {sum(kind == 'I' for kind, *_ in launch)} |", flush=True)
        if arguments.functions:
            print_functions(lines, maps)


if __name__ == "__main__":
    main()
