"""Runs a scene of a program of this suite under the library, and reads what it recorded."""
import functools
import json
import os
import pathlib
import re
import subprocess

import pytest
from turns import turn

HERE = pathlib.Path(__file__).resolve().parent
BUILD = pathlib.Path(os.environ.get("CUCONST_BUILD", HERE.parents[1] / "build"))


class Done:
    def __init__(self, process, folder):
        self.returncode, self.stdout, self.stderr = process.returncode, process.stdout, process.stderr
        lines = [line for path in sorted(folder.glob("log.*")) for line in path.read_text().splitlines()]
        self.records = [json.loads(line) for line in lines]
        self.violations = [record for record in self.records if record["kind"] == "violation"]

    def __repr__(self):
        return f"status {self.returncode}\n{self.stderr}"


#: A scene ends with this, and the reason on stdout, where this driver does not let happen what it is about.
CANNOT = 77


@functools.lru_cache(maxsize=None)
def comparing(program):
    """The scenes of a program that compare the free memory of the whole device: programs beside them would change it."""
    scenes = re.findall(r"^static void (\w+)\(const char \*\w+\)\n\{\n(.*?)^\}", (HERE / f"{program}.c").read_text(), re.M | re.S)
    assert scenes, program
    return {name for name, body in scenes if "free_memory()" in body}


def run(command, tmp_path, mode, options="", timeout=120, alone=False, **environment):
    """Any program under the library; `alone`: with nothing beside it on the GPU."""
    env = {**os.environ, "LD_PRELOAD": os.environ.get("CUCONST_BEFORE_LIBRARY", "") + str(BUILD / "shim" / "libcuconst.so"),
           "SOFTGPU_QUIET": "1", "CUCONST_OPTIONS": f"mode={mode}:log={tmp_path}/log.%p{options}", **environment}
    with turn(alone):
        return Done(subprocess.run(command, capture_output=True, text=True, timeout=timeout, env=env, cwd=tmp_path), tmp_path)


def play(program, scene, tmp_path, mode="log", argument=None, options="", timeout=120, skips=True, **environment):
    """Skips the test where the scene cannot be, unless that is left to the caller."""
    settings = {"MISUSE_MODE": mode, "MISUSE_PTX": str(HERE.parent / "misuse" / "kernels.ptx"), **environment}
    command = [BUILD / "tests" / "twins" / program, scene] + [mode if argument is None else str(argument)]
    done = run(command, tmp_path, mode, options, timeout, alone=scene in comparing(program), **settings)
    if skips and done.returncode == CANNOT:
        pytest.skip(done.stdout.strip())
    return done
