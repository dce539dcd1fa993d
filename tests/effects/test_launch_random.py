"""Random courses of launches, answered from memory or judged anew: what is counted, told and recorded is the same."""
import difflib
import json
import os
import pathlib
import re
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/twins"))
from turns import turn  # noqa: E402

BUILD = pathlib.Path(os.environ.get("CUCONST_BUILD", ROOT / "build"))
PROGRAM = BUILD / "tests" / "effects" / "launch_random"
STEPS = 300
# The program ends with this, and the reason, where the driver is a real one.
CANNOT = 77
VARIES = {"time", "pid", "tid", "seq", "stream", "graph"}
# What is found by checks.
CHECKS = re.compile(r"(verified|unverified|violations|ended:|check:) \d+")


def records(log):
    for line in log.read_text().splitlines():
        record = {field: value for field, value in json.loads(line).items() if field not in VARIES}
        # The range's number is one that was given back, or a new one: the watcher may hold the old range a little longer.
        (record.get("range") or {}).pop("handle", None)
        record["candidates"] = sorted(record.get("candidates") or [], key=str)
        yield json.dumps(record, sort_keys=True)


def lines(told):
    return told.splitlines() if isinstance(told, str) else told


def play(how, seed, options, tmp_path):
    log = tmp_path / how
    preload = os.environ.get("CUCONST_BEFORE_LIBRARY", "") + str(BUILD / "shim" / "libcuconst.so")
    env = {**os.environ, "LD_PRELOAD": preload,
           "SOFTGPU_ORDER": "serial", "SOFTGPU_QUIET": "1", "CUCONST_OPTIONS": f"text=0:cache=0:log={log}:{options}"}
    with turn():
        done = subprocess.run([PROGRAM, how, str(seed), str(STEPS)], capture_output=True, text=True, timeout=120, env=env)
    if done.returncode == CANNOT:
        assert "softgpu" not in os.environ.get("LD_LIBRARY_PATH", ""), done
        pytest.skip(done.stdout.strip())
    told = sorted(records(log))
    assert told, done
    # Handles of a module that was loaded again are the old ones or not, by chance: what was counted of them goes on, or
    # begins anew.
    if seed % 2:
        return done.returncode, CHECKS.sub("", done.stdout), done.stderr, []
    return done.returncode, done.stdout, done.stderr, told


# Of four seeds one each: reloads its module, stores nothing protected, both, neither.
@pytest.mark.parametrize("seed", range(4, 8))
@pytest.mark.parametrize("options", ["mode=log", "mode=deny", "mode=strict", "mode=strict:twins=all"])
def test_the_same_from_memory(seed, options, tmp_path):
    status, out, *rest = play("list", seed, options, tmp_path)
    if "strict" not in options or seed % 4 > 1:
        assert status == 0, rest
        assert out.splitlines()[-1].startswith(f"{STEPS + 1} at the end"), out
    anew = play("block", seed, options, tmp_path)
    differ = [line[:400] for memory, judged in zip((out, *rest), anew[1:])
              for line in difflib.unified_diff(lines(judged), lines(memory), lineterm="", n=0)]
    assert status == anew[0] and not differ, "\n".join([f"status {status}, {anew[0]}", *differ[:20]])
