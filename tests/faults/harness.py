"""Runs one scene of this folder's programs under the library, and reads what came of it."""
import dataclasses
import json
import os
import pathlib
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "twins"))
from turns import turn  # noqa: E402

BUILD = pathlib.Path(os.environ.get("CUCONST_BUILD", HERE.parents[1] / "build"))
LIBRARY = BUILD / "shim" / "libcuconst.so"
PROGRAMS = BUILD / "tests" / "faults"
SANITIZER = os.environ.get("CUCONST_BEFORE_LIBRARY", "")


@dataclasses.dataclass
class Done:
    status: int
    out: str
    err: str
    seconds: float

    def said(self):
        """What is on stderr but the last line's counts."""
        return [line for line in self.err.splitlines() if not line.startswith("cuconst: summary: ")]


def environment(options="", preload=None, **env):
    if preload is None:
        preload = LIBRARY
    changed = {"LD_PRELOAD": SANITIZER + str(preload), "CUCONST_OPTIONS": options,
               "MISUSE_PTX": str(HERE.parent / "misuse" / "kernels.ptx"), **{k: str(v) for k, v in env.items()}}
    return {**os.environ, **changed}


def scene(program, *arguments, options="", preload=None, cwd=None, timeout=60, **env):
    command = [PROGRAMS / f"faults_{program}", *map(str, arguments)]
    with turn():
        began = time.monotonic()
        done = subprocess.run(command, capture_output=True, timeout=timeout, cwd=cwd, env=environment(options, preload, **env),
                              stdin=subprocess.DEVNULL)
        seconds = time.monotonic() - began
    return Done(done.returncode, done.stdout.decode(), done.stderr.decode(errors="replace"), seconds)


def records(folder, pattern="log*"):
    """All records of a folder's logs: every line must be one, and end."""
    found = []
    for path in sorted(folder.glob(pattern)):
        text = path.read_text()
        assert not text or text.endswith("\n"), f"{path} ends in a torn line"
        found += [json.loads(line) for line in text.splitlines()]
    return found


def kinds(found):
    counts = {}
    for record in found:
        counts[record["kind"]] = counts.get(record["kind"], 0) + 1
    return counts
