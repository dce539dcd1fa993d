#!/usr/bin/env python3
"""A seeded sample of CuPy's own tests, without the shim and under it: the same tests must pass.

    cupy_sample.py FOLDER [--count 1500] [--seed 1] [--jobs 8] [--option NAME=VALUE]... [--mode MODE]

FOLDER is a checkout of CuPy's `tests` (its parent is enough: `git archive vX.Y.Z tests pyproject.toml`) of the version that is installed. Exit status 1 when
an outcome differs. This file is also the pytest plugin that draws the sample.
"""
import argparse
import collections
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as xml

import pytest

FOLDERS = ("core_tests", "fft_tests", "linalg_tests", "cuda_tests")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config, items):
    """Keeps the sample of what the marks leave, drawn from the sorted names so that every worker draws the same."""
    count, seed = int(os.environ["CUPY_SAMPLE_COUNT"]), int(os.environ["CUPY_SAMPLE_SEED"])
    names = sorted(item.nodeid for item in items)
    chosen = set(random.Random(seed).sample(names, min(count, len(names))))
    config.hook.pytest_deselected(items=[item for item in items if item.nodeid not in chosen])
    items[:] = [item for item in items if item.nodeid in chosen]


def outcomes(report):
    found = {}
    for case in xml.parse(report).iter("testcase"):
        kinds = [child.tag for child in case if child.tag in ("failure", "error", "skipped")]
        found[f"{case.get('classname')}.{case.get('name')}"] = kinds[0] if kinds else "passed"
    return found


def run(arguments, prefix):
    with tempfile.TemporaryDirectory() as folder:
        report = pathlib.Path(folder) / "report.xml"
        here = str(pathlib.Path(__file__).resolve().parent)
        env = {**os.environ, "CUPY_SAMPLE_COUNT": str(arguments.count), "CUPY_SAMPLE_SEED": str(arguments.seed),
               "PYTHONPATH": os.pathsep.join(filter(None, [here, os.environ.get("PYTHONPATH")]))}
        command = [*prefix, sys.executable, "-m", "pytest", "-q", "-p", "cupy_sample", "-p", "no:cacheprovider", "-n", str(arguments.jobs),
                   "-m", "not slow and not multi_gpu", f"--junitxml={report}", *(f"tests/cupy_tests/{name}" for name in FOLDERS)]
        done = subprocess.run(command, cwd=arguments.folder, env=env, capture_output=True, text=True)
        if not report.exists():
            raise SystemExit(f"pytest wrote no report (status {done.returncode})\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}")
        return outcomes(report)


def main():
    from harness import TOOL

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder")
    parser.add_argument("--count", type=int, default=1500)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=8)
    parser.add_argument("--option", action="append", default=[])
    parser.add_argument("--mode", default="log")
    arguments = parser.parse_args()
    options = [word for option in arguments.option for word in ("--option", option)]
    # CuPy's tests of cuFFT's old callbacks skip themselves where anything is preloaded, so something is in both runs.
    plain = run(arguments, ["env", "LD_PRELOAD=libc.so.6"])
    under = run(arguments, [str(TOOL), "run", "--mode", arguments.mode, *options, "--"])
    for name, counted in (("without", plain), ("with", under)):
        print(f"{name}: {dict(collections.Counter(counted.values()))}")
    different = sorted(name for name in plain.keys() | under.keys() if plain.get(name) != under.get(name))
    for name in different:
        print(f"differs: {name}: {plain.get(name)} without, {under.get(name)} with")
    print(f"{len(plain)} tests, {len(different)} differ")
    return 1 if different or not plain else 0


if __name__ == "__main__":
    sys.exit(main())
