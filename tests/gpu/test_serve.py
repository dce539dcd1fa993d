"""twins=all on a real driver: the answers of served memory beside those of plain memory, and whole programs with the same output.

Differences that tests/twins/serve/differences*.tsv do not explain fail; all are printed (-s)."""
import fnmatch
import os
import pathlib
import subprocess
import sys

import pytest

from harness import BUILD, HERE, plain, run, turn

SERVE = BUILD / "tests" / "twins" / "serve"
TABLES = HERE.parent / "twins" / "serve"
# What only a real device shows: capabilities that mapped memory says itself; and a set around the end of all addresses, which the driver begins in plain memory, so
# that the context is lost. In served memory it is refused, as everything that leaves its allocation. Plain memory that was given to cuMemFreeAsync is known until its
# stream has got there; served memory is nobody's at once.
REAL = ["*.IS_HW_DECOMPRESS_CAPABLE", "*.IS_GPU_DIRECT_RDMA_CAPABLE", "set.d32_huge", "set.beyond_synchronize", "freed_async.*"]


def program(path, *arguments, twins=None, **env):
    preload = {"LD_PRELOAD": str(BUILD / "shim" / "libcuconst.so"), "CUCONST_OPTIONS": f"twins={twins}"} if twins else {}
    with turn(alone=path.parent == SERVE):
        return subprocess.run([path, *arguments], capture_output=True, text=True, timeout=500,
                              env={**os.environ, **preload, **env})


def answers(path, twins):
    done = program(path, twins=twins)
    assert done.returncode == 0, f"{path} twins={twins}: {done.returncode}\n{done.stderr[-3000:]}"
    found = {}
    for line in done.stdout.splitlines():
        question, _, answer = line.partition("\t")
        found.setdefault(question, []).append(answer)
    return found


def unexplained(without, served, patterns):
    different = sorted(q for q in without.keys() | served.keys() if without.get(q) != served.get(q))
    for question in different:
        print(f"{question}\t{without.get(question)}\t{served.get(question)}")
    return [q for q in different if not any(fnmatch.fnmatchcase(q, pattern) for pattern in patterns)]


@pytest.mark.parametrize("path,reasons", [
    (SERVE / "serve_answers", "differences.tsv"),
    (BUILD / "tests/softgpu/conformance/softgpu_conformance", "differences_conformance.tsv")], ids=["answers", "conformance"])
def test_answers_are_those_of_plain_memory(path, reasons):
    patterns = [line.split("\t")[0] for line in (TABLES / reasons).read_text().splitlines() if line and line[0] != "#"]
    without = answers(path, None)
    assert len(without) > 1500
    repeated = answers(path, None)
    moving = [q for q in without if without[q] != repeated.get(q)]
    assert not unexplained(without, answers(path, "native"), moving)
    assert not unexplained(without, answers(path, "all"), patterns + REAL + moving)


SCENES = {"trace": {}, "threads": {}, "leak": {}, "many": {}, "cupy": {}, "torch": {}, "a_free_waits": {}, "fork": {},
          "ends_of_contexts": {}, "out_of_memory": {"SERVE_LEAVE": str(512 << 20)},
          "waiting_memory_is_found": {"SERVE_LEAVE": str(512 << 20)}}


ROOM_MIB = 4096  # each scene has enough with it


@pytest.mark.parametrize("scene", SCENES)
def test_scene(scene):
    """In plain memory and in served; the figures of both are printed. Only a GPU that others fill is an excuse."""
    without, served = (program(SERVE / "serve_scenes", scene, twins=twins, **SCENES[scene]) for twins in ("native", "all"))
    print(f"{scene}: plain {without.stdout.split()} served {served.stdout.split()}")
    if without.returncode and free_mib() < ROOM_MIB:
        pytest.skip(f"other programs fill the GPU: {free_mib()} MiB are free")
    assert (without.returncode, served.returncode) == (0, 0), without.stderr[-1500:] + served.stderr[-1500:]
    if scene == "waiting_memory_is_found":
        assert served.stdout == "waits 0\n"


def smi(*arguments):
    return subprocess.run(["nvidia-smi", *arguments], capture_output=True, text=True).stdout


def free_mib():
    return int(smi("--query-gpu=memory.free", "--format=csv,noheader,nounits", "--id=0"))


def gpus():
    return smi("-L").count("GPU ")


@pytest.mark.skipif(gpus() < 2, reason="needs two GPUs")
def test_two_devices():
    without, served = (program(SERVE / "serve_scenes", "two_devices", twins=twins) for twins in ("native", "all"))
    assert (without.returncode, served.returncode) == (0, 0), without.stderr + served.stderr


def test_sharing_is_refused_and_said():
    served = program(SERVE / "serve_scenes", "share", twins="all")
    assert served.stdout == "result 1\nagain 1\n" and served.stderr.count("twins=native") == 1, served
    without = program(SERVE / "serve_scenes", "share", twins="native")
    assert without.stdout == "result 0\nagain 0\n", without


PROGRAMS = {"cupy_loop": ["3"], "torch_step": ["3"], "jax_step": ["3"], "triton_add": ["3"], "transformer": ["20"],
            "transformer compile": ["20", "compile"], "served_frameworks": []}


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_say_the_same(name):
    path = HERE / "programs" / f"{name.split()[0]}.py"
    without, served = plain(path, *PROGRAMS[name]), run(path, *PROGRAMS[name], options=["twins=all"])
    assert without.returncode == 0, without.stderr[-3000:]
    assert (served.status, served.stdout) == (0, without.stdout), served.said()


@pytest.mark.parametrize("segments", ["expandable_segments:True", "expandable_segments:False"])
def test_segments(segments):
    path = HERE / "programs" / "transformer.py"
    served = run(path, "10", options=["twins=all"], env={"PYTORCH_CUDA_ALLOC_CONF": segments})
    assert served.status == 0 and served.stdout == plain(path, "10").stdout, served.said()


@pytest.mark.skipif(gpus() < 2, reason="needs two GPUs")
def test_nccl_all_reduce():
    path = HERE / "programs" / "nccl_all_reduce.py"
    without, served = plain(path), run(path, options=["twins=all"])
    assert without.returncode == 0, without.stderr[-3000:]
    assert (served.status, served.stdout) == (0, without.stdout), served.said()


if __name__ == "__main__":
    sys.exit(pytest.main([str(pathlib.Path(__file__)), "-s"]))
