"""Runs a program alone and under the real `cuconst run`, on the software GPU, and keeps what came of it."""
import json
import os
import pathlib
import re
import subprocess
import sys
from dataclasses import dataclass

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]
BUILD = pathlib.Path(os.environ.get("CUCONST_BUILD", ROOT / "build"))
TOOL = BUILD / "tools/cuconst"
TIMEOUT = 60
VIOLATED = 86
SUMMARY = "cuconst: summary: "


@dataclass
class Result:
    status: int
    stdout: str
    stderr: str
    log: pathlib.Path

    @property
    def records(self):
        """All but the summary, which every run that used CUDA ends with."""
        lines = [json.loads(line) for line in self.log.read_text().splitlines()]
        assert [line["kind"] for line in lines].count("summary") == 1, self.stderr
        assert lines[-1]["kind"] == "summary"
        return lines[:-1]

    @property
    def summary(self):
        return json.loads(self.log.read_text().splitlines()[-1])

    @property
    def only(self):
        assert len(self.records) == 1, self.stderr
        return self.records[0]

    @property
    def first(self):
        """The first line of stderr, "" when nothing but a summary was said."""
        said = self.stderr.splitlines()
        return "" if not said or said[0].startswith(SUMMARY) else said[0]


class Program:
    """A program in a file. In its source, `# HERE` marks the line that a record must name."""

    def __init__(self, folder, source, name="program.py"):
        self.path, self.folder = folder / name, folder
        self.source = "from device import *\n" + source
        self.path.write_text(self.source)

    def line(self, mark="HERE"):
        found = [number for number, text in enumerate(self.source.splitlines(), 1) if re.search(rf"# {mark}\b", text)]
        assert len(found) == 1, f"{mark} is marked {len(found)} times"
        return found[0]

    def place(self, function, mark="HERE"):
        return {"file": str(self.path), "function": function, "line": self.line(mark)}

    def environment(self, path, more):
        kept = {name: value for name, value in os.environ.items()
                if not name.startswith("CUCONST_") and name not in ("LD_PRELOAD", "PYTHONPATH", "LD_LIBRARY_PATH")}
        libraries = [BUILD / "tests/softgpu", BUILD / "tests/python/real/runtime"]
        return {**kept, "PYTHONPATH": os.pathsep.join(map(str, [HERE, HERE.parent, *path])), "CUCONST_PYTHON": ROOT / "tools/python",
                "MISUSE_PTX": ROOT / "tests/misuse/kernels.ptx",
                "LD_LIBRARY_PATH": os.pathsep.join(map(str, libraries)), "PYTHONDONTWRITEBYTECODE": "1", **more}

    def _command(self, mode, options):
        log = self.folder / f"{mode}.jsonl"
        log.unlink(missing_ok=True)
        return [TOOL, "run", "--mode", mode, "--log", log, *options, "--", sys.executable, self.path], log

    def _execute(self, command, path, more):
        return subprocess.run(command, env=self.environment(path, more), cwd=self.folder, capture_output=True, text=True, timeout=TIMEOUT, check=False)

    def alone(self, path=(), **env):
        done = self._execute([sys.executable, self.path], path, env)
        assert (done.returncode, done.stderr) == (0, ""), done.stderr
        return done.stdout

    def run(self, mode="log", *options, path=(), **env):
        command, log = self._command(mode, options)
        done = self._execute(command, path, env)
        return Result(done.returncode, done.stdout, done.stderr, log)

    def start(self, mode, stderr):
        """The same, not waited for, with a stderr of the caller's."""
        return subprocess.Popen(self._command(mode, ())[0], env=self.environment((), {}), cwd=self.folder, stdout=subprocess.PIPE, stderr=stderr, text=True)
