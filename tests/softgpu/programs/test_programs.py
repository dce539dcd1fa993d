"""Programs for cuda.core and cuda.bindings, as anyone would write them for a GPU, on the software GPU.

The folder of its libcuda.so.1 comes in SOFTGPU_DIR. NVRTC (nvidia-cuda-nvrtc, 58 MB) and cuda-core are no part of scripts/setup: where they
are missing, the tests are skipped and say so."""
import importlib.util
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
        found = {name: importlib.util.find_spec(name) is not None for name in ("numpy", "cuda.core", "cuda.bindings.driver")}
        wheels = importlib.util.find_spec("nvidia.cu13") or importlib.util.find_spec("nvidia.cuda_nvrtc")
    except ModuleNotFoundError:
        return "cuda-core"
    return ", ".join([name for name, there in found.items() if not there] + ([] if wheels else ["nvidia-cuda-nvrtc"]))


pytestmark = pytest.mark.skipif(bool(missing()), reason=f"not installed: {missing()} (pip install cuda-core 'nvidia-cuda-nvrtc==13.0.*')")


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
