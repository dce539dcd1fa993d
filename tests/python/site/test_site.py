"""Python frames as the shim reads them, on every CPython that is found here."""
import glob
import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

HERE = pathlib.Path(__file__).parent
PROBE = os.environ["SITE_PROBE"]
ASK = "import sys; print(sys.implementation.name, '%d.%d' % sys.version_info[:2], sys.version.split()[0], sys.base_prefix, sep='|')"


def interpreters():
    """{version text: path} of each CPython 3 on PATH, in the usual folders and under ~/.pyenv; one for each prefix."""
    names = [f"python3.{minor}{suffix}" for minor in range(8, 20) for suffix in ("", "t")] + ["python3"]
    found = [shutil.which(name) for name in names] + [sys.executable]
    found += glob.glob("/usr/bin/python3.*") + glob.glob("/usr/local/bin/python3.*")
    found += glob.glob(os.path.expanduser("~/.pyenv/versions/3.*/bin/python3"))
    answers = {}
    for path in filter(None, found):
        if path.endswith("-config"):
            continue
        try:
            done = subprocess.run([path, "-c", ASK], capture_output=True, text=True, timeout=20)
        except (OSError, subprocess.SubprocessError):
            continue
        if done.returncode == 0 and done.stdout.startswith("cpython|"):
            _, minor, full, prefix = done.stdout.strip().split("|")
            answers.setdefault((tuple(map(int, minor.split("."))), full, prefix), path)
    return {f"{full}-{'system' if prefix.startswith('/usr') else 'pyenv'}": (minor, path) for (minor, full, prefix), path in sorted(answers.items())}


FOUND = interpreters()
READ = {name: path for name, (minor, path) in FOUND.items() if minor >= (3, 10)}
UNREAD = {name: path for name, (minor, path) in FOUND.items() if minor < (3, 10)}
SCENARIOS = re.findall(r"\w+", re.search(r"^SCENARIOS = \[(.*?)\]", (HERE / "frames.py").read_text(), re.M | re.S).group(1))


def run(path, *arguments, seconds=60):
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "LD_"))}
    return subprocess.run([path, *arguments], capture_output=True, text=True, errors="replace", timeout=seconds, env=environment)


def test_an_interpreter_was_found():
    print("read:", ", ".join(READ), "- not read:", ", ".join(UNREAD))
    assert READ, "no CPython 3.10 or newer was found: nothing of this was tested"
    assert len(SCENARIOS) > 25


@pytest.mark.parametrize("scenario", SCENARIOS)
@pytest.mark.parametrize("name", READ)
def test_frames(name, scenario):
    done = run(READ[name], str(HERE / "frames.py"), PROBE, scenario)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout == "ok\n"
    if scenario == "at_exit":
        line = (HERE / "frames.py").read_text().splitlines().index("    atexit.register(lambda: held.probe_to_stderr())") + 1
        qualified = "<lambda>" if name.startswith("3.10") else "at_exit.<locals>.<lambda>"
        assert done.stderr == f"{HERE / 'frames.py'}\x1f{qualified}\x1f{line}\n"
    elif scenario not in ("late_finalizer", "cost"):
        assert done.stderr == ""


PLAIN = "import ctypes, sys\nlib = ctypes.CDLL(sys.argv[1])\nlib.probe.restype = ctypes.c_char_p\nlib.probe_start()\nprint(repr(lib.probe()), repr(lib.probe()))"


@pytest.mark.parametrize("name", UNREAD)
def test_older_interpreters_give_no_frames_and_say_so_once(name):
    done = run(UNREAD[name], "-c", PLAIN, PROBE)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "b'' b''\n"
    version = ".".join(name.split(".")[:2])
    assert done.stderr == f"cuconst: Python lines are not available: the frames of CPython {version} cannot be read\n"
