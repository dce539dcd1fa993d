"""Two GPUs in one process."""
import subprocess

import pytest

from harness import HERE, run, within


def gpus():
    listed = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True)
    return listed.stdout.count("GPU ")


pytestmark = pytest.mark.skipif(gpus() < 2, reason="needs two GPUs")
PROGRAM = HERE / "programs" / "two_devices.py"


def test_log():
    done = run(PROGRAM)
    assert done.steps and '"otherwise": []' in done.stdout, done.said()
    for step in done.steps:
        found = within(done.violations, step)
        assert sorted({r["range"]["label"] for r in found}) == sorted(step["labels"]), f"{step['what']}\n{done.said()}"
        for record in found:
            assert record["range"]["device"] == (1 if record["range"]["label"] == "second" else 0), record


def test_deny_refuses_the_copy_between_them():
    done = run(PROGRAM, mode="deny")
    step = next(s for s in done.steps if s["what"].startswith("copy from"))
    assert step["raised"] and step["changed"] == [], done.said()
    assert '"kind": "done"' in done.stdout, done.said()
