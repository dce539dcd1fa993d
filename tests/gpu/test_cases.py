"""The labelled cases, step by step, in each mode."""
import functools
import json
import pathlib
import re
import subprocess
import sys

import pytest

from harness import EXIT_VIOLATION, HERE, run, turn, within

# What a case needs besides CuPy, PyTorch, JAX and Triton, and a program that shows whether it works: Numba imports with a NumPy that
# is too new for it, and fails at the first kernel.
PROBES = {"N01": """
import numpy
from numba import cuda
cuda.jit(lambda a: None)[1, 1](cuda.to_device(numpy.zeros(1)))
"""}
CASES = sorted(p.stem for p in (HERE / "cases").glob("[NR]*.py"))

# Steps that deny must refuse before anything is changed: writes by contract, and kernels that store through an argument of their own. What else a
# kernel does (tables of pointers, a struct indexed at run time, code that cannot be read) is found afterwards, as in log.
# Refused, but the library between goes on and answers success; the record says so, and the bytes are as they were.
NOT_TOLD = {"R02": {"lu_factor(overwrite_a=True)"}}
REFUSED = {
    "N01": {"kernel that stores", "copy from the host", "copy on the device", "kernel that stores into the JAX array"},
    "R01": {"irfft2(overwrite_x=True)", "in-place C2C plan"},
    "R03": {"CuPy c[...] = v", "CuPy c[0:30] = other", "CuPy c += 1", "CuPy ElementwiseKernel output", "CuPy RawKernel", "torch mul_ through CuPy",
            "torch item assignment through DLPack"},
    "R07": {"in place, thousands of runs", "in place, restore_value copies back"},
    "R12": {"replay after x was protected (kernel and memset nodes)", "replay into memory that now belongs to another tensor"},
    "R14": {"cudaMemset", "cudaMemsetAsync", "cudaMemcpy D2D", "cudaMemcpyAsync D2D", "cudaMemcpyPeerAsync",
            "cudaMemcpy2DAsync", "ndarray.set (H2D)", "ndarray.fill", "cuMemsetD8_v2", "cuMemsetD16_v2", "cuMemsetD32_v2",
            "cuMemsetD2D8_v2", "cuMemcpyDtoD_v2", "cuMemcpyHtoD_v2", "cuMemcpy (unified)",
            "cuStreamWriteValue32_v2"},
    "R20": {"ReLU(inplace=True)", "masked_fill_"},
    "R21": {"AdamW {'foreach': False}"},
    "R22": {"const_cast on an input"},
}
# Its argument is an output by its code, and deny does not wait to see whether the store runs.
MAY_BE_REFUSED = {"R29": {"store exists, not executed (deny may refuse: it is an output argument)"}}


@functools.lru_cache(None)
def trouble(case):
    with turn():
        done = subprocess.run([sys.executable, "-c", PROBES.get(case, "")], capture_output=True, text=True)
    return done.stderr.strip().splitlines()[-1] if done.returncode else None


@pytest.fixture(autouse=True)
def needed(request):
    reason = trouble(request.node.callspec.params["case"])
    if reason:
        pytest.skip(reason)


def case_line(record, case):
    """Lines of the case's own file in the record's Python frames."""
    return [f["line"] for f in record["python"] if pathlib.PurePath(f["file"]).name == f"{case}.py"]


def names(record):
    return [record.get("api") or "", record.get("outer_api") or "", (record.get("kernel") or {}).get("name") or ""]


def check_find(case, step, records):
    labels = sorted({r["range"]["label"] for r in records})
    assert labels == sorted(step["labels"]), f"{step['what']}: {labels}"
    for record in records:
        assert case_line(record, case), f"{step['what']}: no line of {case}.py in {record['python']}"
        assert any(names(record)), f"{step['what']}: neither call nor kernel is named"
    wanted = re.match(r"cu(?:da)?(Mem[a-z]+|StreamWriteValue)", step["what"])
    if wanted:  # steps named after the call they make; a static cudart is seen by what it asks of the driver
        stem = wanted.group(1)
        assert any(stem in name for r in records for name in names(r)), f"{step['what']}: {names(records[0])}"


@pytest.mark.parametrize("case", CASES)
def test_log(case):
    done = run(f"{case}.py")
    steps = done.steps
    assert steps, done.said()
    for step in steps:
        found = within(done.violations, step)
        if step["kind"] == "silent":
            assert not found, f"{step['what']}: {json.dumps(found[0])}\n{done.said()}"
        else:
            check_find(case, step, found)
        assert sorted(step["changed"]) == sorted(step["labels"]), f"{step['what']} behaves otherwise under log"
        assert step["raised"] is None, f"{step['what']}: {step['raised']}"
    # Of many pieces beside a pointer the nearest are looked at after its launch; the next check of the others tells the rest.
    assert done.status == (EXIT_VIOLATION if any(s["kind"] == "find" for s in steps) else 0), done.said()
    assert all(r["api"].startswith("cuconst_") for r in done.violations
               if not any(r in within(done.violations, s) for s in steps)), done.said()


@pytest.mark.parametrize("case", CASES)
def test_deny(case):
    done = run(f"{case}.py", mode="deny")
    steps, refused = done.steps, set()
    assert steps and '"kind": "done"' in done.stdout, "the program must go on to its end\n" + done.said()
    for step in steps:
        denied = [r for r in within(done.violations, step) if r["action"] == "denied"]
        if step["kind"] == "silent":
            may = step["what"] in MAY_BE_REFUSED.get(case, set())
            assert not step["changed"] and within(done.violations, step) == (denied if may else []), f"{step['what']}\n{done.said()}"
            assert bool(step["raised"]) == bool(denied), f"{step['what']}: {step['raised']}"
        elif denied:
            refused.add(step["what"])
            assert step["raised"] or step["what"] in NOT_TOLD.get(case, set()), f"{step['what']} was refused, but the program was not told"
            if step["what"] in REFUSED.get(case, set()):
                assert step["changed"] == [], f"{step['what']}: {step['changed']}"
    assert REFUSED.get(case, set()) <= refused, f"not refused: {REFUSED[case] - refused}\n{done.said()}"


@pytest.mark.parametrize("case", CASES)
def test_strict(case):
    done = run(f"{case}.py", mode="strict")
    stopped = [r for r in done.violations if r["action"] == "stopped"]
    if case == "R29":
        assert done.status == 0 and not done.violations, done.said()
        return
    assert done.status == EXIT_VIOLATION and stopped, done.said()
    assert '"kind": "done"' not in done.stdout, "the program must end at its first find"
    assert case_line(stopped[0], case), stopped[0]
    assert all(s["kind"] == "silent" for s in done.steps), "a find step came to its end"
