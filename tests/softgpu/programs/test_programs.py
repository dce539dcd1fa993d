"""Programs for cuda.core and cuda.bindings, as anyone would write them for a GPU, on the software GPU.

The folder of its libcuda.so.1 comes in SOFTGPU_DIR. scripts/setup installs cuda-core and NVRTC; where it could not, the tests are skipped and
say so."""
import os
import pathlib
import subprocess
import sys

import pytest

HERE = pathlib.Path(__file__).parent
PROGRAMS = sorted(path.stem for path in HERE.glob("*.py") if path.stem not in ("common", "conftest", "test_programs"))
MODES = ("", "shuffle:3")


def missing():
    try:
        from cuda.bindings import nvrtc
        import cuda.core  # noqa: F401
        import numpy  # noqa: F401
        nvrtc.nvrtcVersion()
    except ImportError as error:
        return error.name or str(error)
    except RuntimeError:  # cuda-bindings' word for a library that is not there
        return "NVRTC"
    return ""


pytestmark = pytest.mark.skipif(bool(missing()), reason=f"not installed: {missing()}")


def environment(mode=""):
    return dict(os.environ, LD_LIBRARY_PATH=os.environ["SOFTGPU_DIR"], SOFTGPU_ORDER=mode)


@pytest.mark.parametrize("mode", MODES, ids=["threads", "shuffle"])
@pytest.mark.parametrize("program", PROGRAMS)
def test_program(program, mode):
    done = subprocess.run([sys.executable, HERE / f"{program}.py"], env=environment(mode), timeout=100, text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT)
    assert done.returncode == 0, done.stdout
    assert done.stdout.startswith(f"{program}: "), done.stdout
    assert "not implemented" not in done.stdout, done.stdout


def test_wrong_kernel_is_seen():
    """A program here fails when its kernel computes something else."""
    text = (HERE / "vector_add.py").read_text()
    assert "a[i] + b[i]" in text
    done = subprocess.run([sys.executable, "-c", text.replace("a[i] + b[i]", "a[i] - b[i]")], cwd=HERE, env=environment(), timeout=100, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert done.returncode != 0 and "AssertionError" in done.stdout, done.stdout
