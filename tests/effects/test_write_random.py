"""Random courses of writes, passed at once or judged: what is counted, told and recorded is the same, but for the call's name."""
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
PROGRAM = BUILD / "tests" / "effects" / "write_random"
STEPS = 200
# The program ends with this, and the reason, where the driver is a real one.
CANNOT = 77
VARIES = {"time", "pid", "tid", "seq", "stream", "graph", "api", "native"}


def records(log):
    for line in log.read_text().splitlines():
        record = {field: value for field, value in json.loads(line).items() if field not in VARIES}
        # The range's number is one that was given back, or a new one: the watcher may hold the old range a little longer.
        (record.get("range") or {}).pop("handle", None)
        yield json.dumps(record, sort_keys=True)


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
    return done.returncode, done.stdout, done.stderr, told


# Odd ones write nothing protected, so that they go on in strict.
@pytest.mark.parametrize("seed", range(1, 5))
@pytest.mark.parametrize("options", ["mode=log", "mode=deny", "mode=strict", "mode=strict:twins=all", "mode=log:twins=all"])
def test_the_same_at_once(seed, options, tmp_path):
    status, out, *rest = play("plain", seed, options, tmp_path)
    if "strict" not in options or seed % 2:
        assert status == 0, (out[-1000:], rest)
        assert out.splitlines()[-1].startswith(f"{STEPS + 1} at the end"), out
    judged = play("rows", seed, options, tmp_path)
    differ = [line[:400] for plain, rows in zip((out.splitlines(), rest[0].splitlines(), rest[1]), (judged[1].splitlines(), judged[2].splitlines(), judged[3]))
              for line in difflib.unified_diff(rows, plain, lineterm="", n=0)]
    assert status == judged[0] and not differ, "\n".join([f"status {status}, {judged[0]}", *differ[:20]])
