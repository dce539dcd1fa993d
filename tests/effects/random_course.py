"""Runs a program that takes the same random course by two ways (random_course.h), and compares what it was told."""
import difflib
import json
import os
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/twins"))
from turns import turn  # noqa: E402

BUILD = pathlib.Path(os.environ.get("CUCONST_BUILD", ROOT / "build"))
# The program ends with this, and the reason, where the driver is a real one.
CANNOT = 77
VARIES = {"time", "pid", "tid", "seq", "stream", "graph"}


def records(log, varies):
    for line in log.read_text().splitlines():
        record = {field: value for field, value in json.loads(line).items() if field not in varies}
        # The range's number is one that was given back, or a new one: the watcher may hold the old range a little longer.
        (record.get("range") or {}).pop("handle", None)
        record["candidates"] = sorted(record.get("candidates") or [], key=str)
        yield json.dumps(record, sort_keys=True)


def play(program, how, seed, steps, options, tmp_path, varies=frozenset()):
    """Status, lines of standard output and of standard error, and the records, sorted, without those fields."""
    log = tmp_path / how
    preload = os.environ.get("CUCONST_BEFORE_LIBRARY", "") + str(BUILD / "shim" / "libcuconst.so")
    # Nothing is folded: what is one place's repeats goes by the name of the call, in which the two ways differ.
    options = f"text=0:cache=0:site_limit=1000000:log={log}:{options}"
    env = {**os.environ, "LD_PRELOAD": preload,
           "SOFTGPU_ORDER": "serial", "SOFTGPU_QUIET": "1", "CUCONST_OPTIONS": options}
    with turn():
        done = subprocess.run([BUILD / "tests" / "effects" / program, how, str(seed), str(steps)], capture_output=True, text=True, timeout=120, env=env)
    if done.returncode == CANNOT:
        assert "softgpu" not in os.environ.get("LD_LIBRARY_PATH", ""), done
        pytest.skip(done.stdout.strip())
    told = sorted(records(log, VARIES | varies))
    assert told, done
    return done.returncode, done.stdout.splitlines(), done.stderr.splitlines(), told


def ended(run, steps):
    """It came to its end."""
    assert run[0] == 0, run
    assert run[1][-1].startswith(f"{steps + 1} at the end"), run[1][-20:]


def same(one, other):
    differ = [line[:400] for left, right in zip(one[1:], other[1:]) for line in difflib.unified_diff(right, left, lineterm="", n=0)]
    assert one[0] == other[0] and not differ, "\n".join([f"status {one[0]}, {other[0]}", *differ[:20]])
