"""Programs with the memory of cuMemAlloc served from mapped memory (twins=all), beside the same programs without."""
import fnmatch
import os
import pathlib
import re
import subprocess
import sys

import pytest

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]
BUILD = pathlib.Path(os.environ.get("CUCONST_BUILD", ROOT / "build"))
SHIM = BUILD / "shim" / "libcuconst.so"
sys.path[:0] = [str(ROOT / "tests/misuse"), str(HERE.parent)]
import test_misuse  # noqa: E402
from turns import turn  # noqa: E402

MIB = 1 << 20


def run(program, *arguments, twins="all", options="", status=0, **env):
    preload = {"LD_PRELOAD": os.environ.get("CUCONST_BEFORE_LIBRARY", "") + str(SHIM),
               "CUCONST_OPTIONS": f"twins={twins}{options}"} if twins else {}
    with turn(alone="twins/serve" in program):
        done = subprocess.run([BUILD / program, *arguments], capture_output=True, text=True, timeout=300,
                              env={**os.environ, "SOFTGPU_QUIET": "1", **preload, **env})
    assert done.returncode == status, f"{program} {arguments} {twins}: {done.returncode}\n{done.stderr[-3000:]}"
    return done


def table(text):
    """question -> answers, in order: a question may be asked again."""
    found = {}
    for line in text.splitlines():
        question, tab, answer = line.partition("\t")
        assert tab, line
        found.setdefault(question, []).append(answer)
    return found


def compare(program, reasons, least, **env):
    plain, native, served = (table(run(program, twins=twins, **env).stdout) for twins in (None, "native", "all"))
    assert len(plain) >= least
    assert native == plain
    lines = [line for line in (HERE / reasons).read_text().splitlines() if line and not line.startswith("#")]
    patterns = [line.split("\t")[0] for line in lines]
    different = [question for question in plain.keys() | served.keys() if plain.get(question) != served.get(question)]
    unexplained = {question: (plain.get(question), served.get(question)) for question in different
                   if not any(fnmatch.fnmatchcase(question, pattern) for pattern in patterns)}
    assert not unexplained
    stale = [pattern for pattern in patterns if not fnmatch.filter(different, pattern)]
    assert not stale, "these lines explain nothing"


def test_every_answer_is_that_of_plain_memory():
    compare("tests/twins/serve/serve_answers", "differences.tsv", 3000)


def test_every_answer_of_the_conformance_program():
    compare("tests/softgpu/conformance/softgpu_conformance", "differences_conformance.tsv", 1500, SOFTGPU_DEVICES="1")


def figures(scene, twins, **env):
    return {name: int(value) for name, value in
            (line.split() for line in run("tests/twins/serve/serve_scenes", scene, twins=twins, **env).stdout.splitlines())}


@pytest.mark.parametrize("twins", ["native", "all"])
@pytest.mark.parametrize("scene", ["trace", "threads", "leak", "ends_of_contexts", "two_devices", "fork"])
def test_scene(scene, twins):
    assert figures(scene, twins) == ({"child": 0} if scene == "fork" else {})


@pytest.mark.parametrize("twins", ["native", "all"])
def test_a_free_waits_for_the_work(twins):
    figures("a_free_waits", twins, SOFTGPU_DELAY_US="3000")


@pytest.mark.parametrize("twins", ["native", "all"])
def test_waiting_memory_is_found(twins):
    """Served memory is found without a wait for the stream; a driver need not find its own."""
    waits = figures("waiting_memory_is_found", twins, SOFTGPU_MEMORY=str(256 * MIB))["waits"]
    assert twins == "native" or waits == 0


def test_synchronous_memory_is():
    """The driver knows of plain memory that it is to be; of mapped memory it does not let that be said."""
    assert figures("synchronous", "native") == {"waits": 0} and figures("synchronous", "all") == {"waits": 2}


def test_small_allocations_cost_little():
    cost = figures("many", "all")
    assert cost["device_bytes"] <= 100000 * 512 + 2 * MIB and cost["host_bytes"] < 3 * MIB, cost


def test_frameworks_traces_cost_little():
    torch, cupy = figures("torch", "all"), figures("cupy", "all")
    assert torch["device_bytes"] == torch["asked"]
    assert cupy["device_bytes"] <= 1.3 * cupy["asked"], cupy


def test_out_of_memory_and_the_way_back():
    plain, served = (figures("out_of_memory", twins, SOFTGPU_MEMORY=str(256 * MIB)) for twins in ("native", "all"))
    assert plain.keys() == served.keys() and served["large"] == plain["large"]
    # Of 300 KiB six fit into 2 MiB, of 700 KiB two: what is left is nobody's.
    assert served["small"] >= 0.87 * plain["small"] and served["small_again"] >= 0.68 * plain["small_again"], (plain, served)


def test_sharing_is_refused_once_said():
    done = run("tests/twins/serve/serve_scenes", "share")
    assert done.stdout == "result 1\nagain 1\n"
    assert done.stderr.count("cuIpcGetMemHandle is refused") == 1 and "twins=native" in done.stderr


def test_without_the_calls_everything_is_plain():
    done = run("tests/twins/serve/serve_scenes", "trace", SOFTGPU_FAIL="cuMemCreate:1:801,cuMemCreate:2:801,cuMemMap:1:2")
    assert not done.stdout


@pytest.mark.parametrize("name,mode,status,line", test_misuse.CASES, ids=[f"{c[0]}-{c[1]}" for c in test_misuse.CASES])
def test_misuse_is_found_in_served_memory(name, mode, status, line, tmp_path):
    if mode == "strict" and name in test_misuse.TWINS:
        status, line = test_misuse.TWINS[name]
    done = run(f"tests/misuse/{name}", options=f":mode={mode}:log={tmp_path}/log.%p", status=status, MISUSE_MODE=mode,
               MISUSE_PTX=str(ROOT / "tests/misuse/kernels.ptx"))
    said = [text for text in done.stderr.splitlines() if not text.startswith("cuconst: summary: ")]
    assert (said[0] if said else "") == line, done.stderr


PROGRAMS = sorted(path.name for path in (ROOT / "tests/softgpu/programs").glob("*.py")
                  if path.name not in ("conftest.py", "common.py", "test_programs.py"))


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_say_the_same(name):
    pytest.importorskip("cuda.bindings", reason="needs cuda-bindings")
    pytest.importorskip("cuda.core", reason="needs cuda-core")
    said = [run(sys.executable, str(ROOT / "tests/softgpu/programs" / name), twins=twins).stdout for twins in (None, "all")]
    assert said[0] and said[0] == said[1]


def test_rules_of_the_table():
    """serve rows have a function of ours, and every function of ours has a row."""
    rows = [line.split(" | ") for line in (ROOT / "shim/doors/entrypoints.def").read_text().splitlines()
            if line and not line.startswith("#")]
    served = {row[2] for row in rows if row[1] == "serve"}
    declared = re.findall(r"__typeof__\((\w+)\) serve_(\w+);", (ROOT / "shim/twins/serve_calls.h").read_text())
    assert all(real == ours for real, ours in declared) and served == {real for real, _ in declared}
