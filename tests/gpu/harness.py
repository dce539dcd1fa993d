"""Runs programs under `cuconst run` and reads what they said and what was recorded."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import datetime

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "twins"))
from turns import turn  # noqa: E402

BUILD = pathlib.Path(os.environ.get("CUCONST_BUILD", HERE.parent.parent / "build"))
TOOL = BUILD / "tools" / "cuconst"
EXIT_VIOLATION = 86


class Run:
    """One finished program: status, stdout, stderr, records (dicts; the summary apart)."""

    def __init__(self, done, log):
        self.status, self.stdout, self.stderr = done.returncode, done.stdout, done.stderr
        lines = log.read_text().splitlines() if log.exists() else []
        records = [json.loads(line) for line in lines]
        self.summary = next((r for r in records if r["kind"] == "summary"), None)
        self.records = [r for r in records if r["kind"] != "summary"]

    @property
    def violations(self):
        return [r for r in self.records if r["kind"] == "violation"]

    @property
    def steps(self):
        found = [json.loads(line) for line in self.stdout.splitlines() if line.startswith('{"kind"')]
        return [s for s in found if s["kind"] != "done"]

    def said(self):
        return f"status {self.status}\n--- stdout\n{self.stdout[-6000:]}\n--- stderr\n{self.stderr[-6000:]}"


def when(record):
    stamp = datetime.datetime.fromisoformat(record["time"].replace("Z", "+00:00"))
    return stamp.timestamp()


def within(records, step):
    return [r for r in records if step["began"] <= when(r) <= step["ended"]]


def run(program, *arguments, mode="log", options=(), timeout=280, env=None, tool=()):
    """`program` under the shim; arguments after it are its own. `options` are NAME=VALUE of CUCONST_OPTIONS."""
    with tempfile.TemporaryDirectory() as folder:
        log = pathlib.Path(folder) / "log.jsonl"
        command = [str(TOOL), "run", "--mode", mode, "--log", str(log), *tool]
        for option in options:
            command += ["--option", option]
        command += ["--", sys.executable, str(program), *arguments]
        with turn():
            done = subprocess.run(command, capture_output=True, text=True, timeout=timeout, cwd=HERE / "cases",
                                  env={**os.environ, **(env or {})})
        return Run(done, log)


def plain(program, *arguments, timeout=280):
    """The same program without the shim."""
    with turn():
        return subprocess.run([sys.executable, str(program), *arguments], capture_output=True, text=True, timeout=timeout,
                              cwd=HERE / "cases")
