"""Whole programs with nothing protected: the same output, and as many launches as CUPTI counts."""
import os
import pathlib
import site
import subprocess

import pytest

from harness import HERE, plain, run

PROGRAMS = ["cupy_loop", "torch_step", "jax_step", "triton_add"]


@pytest.mark.parametrize("name", PROGRAMS)
def test_same_output(name):
    program = HERE / "programs" / f"{name}.py"
    without, under = plain(program, "3"), run(program, "3")
    assert without.returncode == 0, without.stderr[-3000:]
    assert (under.status, under.stdout) == (0, without.stdout), under.said()
    assert not under.records and under.summary["launches"] > 0, under.said()


def cupti_paths():
    for root in site.getsitepackages() + ["/usr/local/cuda", "/usr/local/cuda/extras/CUPTI"]:
        for header in pathlib.Path(root).glob("**/cupti.h"):
            for library in [*pathlib.Path(root).glob("**/libcupti.so.1[0-9]"), *pathlib.Path(root).glob("**/libcupti.so")]:
                return header.parent, library
    return None


@pytest.fixture(scope="module")
def oracle(tmp_path_factory):
    paths = cupti_paths()
    if not paths:
        pytest.skip("no CUPTI here")
    header, library = paths
    built = tmp_path_factory.mktemp("cupti") / "libcount.so"
    cuda = os.environ.get("CUDA_HOME", "/usr/local/cuda") + "/include"
    subprocess.run(["gcc", "-shared", "-fPIC", "-O2", f"-I{header}", f"-I{cuda}", "-o", built, HERE / "cupti_count.c",
                    library, f"-Wl,-rpath,{library.parent}"], check=True)
    return built


@pytest.mark.parametrize("name", PROGRAMS)
def test_launches_equal_cupti(name, oracle, tmp_path):
    counts = tmp_path / "counts"
    done = run(HERE / "programs" / f"{name}.py", "20",
               env={"CUDA_INJECTION64_PATH": str(oracle), "CUPTI_COUNT_FILE": str(counts)})
    assert done.status == 0, done.said()
    launches, graphs = map(int, counts.read_text().split())
    print(f"{name}: shim {done.summary['launches']} + {done.summary['graph_launches']} graphs, "
          f"CUPTI {launches} + {graphs} graphs")
    assert (done.summary["launches"], done.summary["graph_launches"]) == (launches, graphs)
