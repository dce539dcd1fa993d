"""--protect=exports: the seed case with zero changed lines."""
import pytest

from harness import EXIT_VIOLATION, HERE, run

PROGRAM = HERE / "programs" / "exports.py"
KERNELS = ["cupy_setitem", "cupy_inplace", "torch_mul", "torch_item"]
CALLS = ["cupy_copy", "cupy_memset"]


def exported(write, mode):
    return run(PROGRAM, write, mode=mode, tool=["--protect=exports"])


@pytest.mark.parametrize("write", KERNELS + CALLS)
def test_log(write):
    done = exported(write, "log")
    assert "done" in done.stdout and done.status == EXIT_VIOLATION, done.said()
    lines = {f["line"] for r in done.violations for f in r["python"] if f["file"].endswith("exports.py")}
    assert lines, done.said()
    assert all("float32[4096]" in r["range"]["label"] for r in done.violations), done.said()


@pytest.mark.parametrize("mode", ["log", "deny", "strict"])
def test_reading_is_silent(mode):
    done = exported("none", mode)
    assert done.status == 0 and not done.violations and "done" in done.stdout, done.said()
    assert done.summary["ranges_ever"] >= 1, done.said()


@pytest.mark.parametrize("write", KERNELS + CALLS)
def test_deny(write):
    """Calls by their contract, kernels by their code: refused before anything is written, and the program and JAX go on."""
    done = exported(write, "deny")
    raised = "raised CUDARuntimeError" if write in CALLS else "raised "
    assert raised in done.stdout and "first 0.0 1.0" in done.stdout and "done" in done.stdout, done.said()
    assert {r["action"] for r in done.violations} == {"denied"}, done.said()


@pytest.mark.parametrize("write", KERNELS + CALLS)
def test_strict(write):
    done = exported(write, "strict")
    assert done.status == EXIT_VIOLATION and "done" not in done.stdout, done.said()
