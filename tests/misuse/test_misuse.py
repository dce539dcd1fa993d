"""Each program of this folder, in each mode that its first comment names: exact exit status, exact first line of stderr.

The same programs run on the software GPU and, started by hand, on an NVIDIA GPU: README.md.
"""
import json
import os
import pathlib
import re
import subprocess
import sys

import pytest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "twins"))
from turns import turn  # noqa: E402

BUILD = pathlib.Path(os.environ.get("CUCONST_BUILD", HERE.parents[1] / "build"))


def expectations():
    for source in sorted(HERE.glob("*.c")):
        comment = source.read_text().split("*/")[0]
        found = re.findall(r'^ \* expect (\w+) exit (\d+) "(.*)"$', comment, re.M)
        assert found, f"{source.name} expects nothing"
        for mode, status, line in found:
            yield source.stem, mode, int(status), line.replace("'", '"')


EVERY = list(expectations())
# "twins" is strict with twins=all, where that differs: tests/twins/serve.
CASES = [case for case in EVERY if case[1] != "twins"]
TWINS = {case[0]: case[2:] for case in EVERY if case[1] == "twins"}


def run(name, mode, tmp_path):
    env = {**os.environ, "LD_PRELOAD": str(BUILD / "shim" / "libcuconst.so"), "MISUSE_MODE": mode,
           "MISUSE_PTX": str(HERE / "kernels.ptx"), "CUCONST_OPTIONS": f"mode={mode}:log={tmp_path}/log.%p"}
    with turn():
        return subprocess.run([BUILD / "tests" / "misuse" / name], capture_output=True, text=True, timeout=60, env=env,
                              cwd=tmp_path)


@pytest.mark.parametrize("name,mode,status,line", CASES, ids=[f"{c[0]}-{c[1]}" for c in CASES])
def test_misuse(name, mode, status, line, tmp_path):
    done = run(name, mode, tmp_path)
    assert done.returncode == status, done
    said = [text for text in done.stderr.splitlines() if not text.startswith("cuconst: summary: ")]
    assert (said[0] if said else "") == line, done.stderr


def test_descriptors_closed_and_yet_recorded(tmp_path):
    run("close_all_descriptors", "deny", tmp_path)
    assert '"violation"' in "".join(path.read_text() for path in tmp_path.glob("log.*"))


def test_fork_children_have_logs_of_their_own(tmp_path):
    run("fork_before_cuda", "log", tmp_path)
    assert len(list(tmp_path.glob("log.*"))) == 1, "the parent used no CUDA"


def test_each_tensor_of_a_launch_has_its_own_argument(tmp_path):
    run("kernel_foreach", "log", tmp_path)
    records = [json.loads(line) for path in tmp_path.glob("log.*") for line in path.read_text().splitlines()]
    named = {record["range"]["label"]: (record["kernel"]["argument"], record["kernel"]["offset"])
             for record in records if record["kind"] == "violation"}
    assert named == {**{f"t{i:02}": (0, 8 * i) for i in range(1, 20, 2)}, "last": (1, 0)}


def test_a_hundred_thousand_are_ten_records_and_a_count(tmp_path):
    run("many_violations", "log", tmp_path)
    text = "".join(path.read_text() for path in tmp_path.glob("log.*"))
    assert text.count('"kind":"violation"') == 10, text[:2000]
    assert '"violations":100000' in text.splitlines()[-1]


def test_the_last_line_is_there_when_many_threads_end_the_process(tmp_path):
    for attempt in range(40):
        (tmp_path / str(attempt)).mkdir()
        done = run("threads_all_write", "strict", tmp_path / str(attempt))
        assert done.returncode == 86, done
        assert "cuconst: summary: " in done.stderr, (attempt, done.stderr)
        (log,) = (tmp_path / str(attempt)).glob("log.*")
        assert '"kind":"summary"' in log.read_text(), attempt


def violation(tmp_path):
    records = [json.loads(line) for path in tmp_path.glob("log.*") for line in path.read_text().splitlines()]
    (found,) = [record for record in records if record["kind"] == "violation"]
    return found


def test_the_record_says_what_the_code_does(tmp_path):
    run("kernel_store", "log", tmp_path)
    record = violation(tmp_path)
    assert (record["kernel"]["verdict"], record["kernel"]["reason"]) == ("stores", None)
    (store,) = record["stores"]
    lines = (HERE / "kernels.ptx").read_text().splitlines()
    assert store["kind"] == "st.global" and "st.global" in lines[store["ptx_line"] - 1], store


def test_an_unknown_kernel_has_a_reason(tmp_path):
    run("kernel_unknown", "deny", tmp_path)
    record = violation(tmp_path)
    assert (record["kernel"]["verdict"], record["kernel"]["reason"], record["action"]) == \
        ("unknown", "stores through an address loaded from memory", "logged")


def test_an_unknown_kernel_that_was_not_checked_is_among_the_candidates(tmp_path):
    run("kernel_unknown_later", "log", tmp_path)
    record = violation(tmp_path)
    assert record["unverified_launches"] == 1, "the two before were looked at"
    assert [(kernel["name"], kernel["argument"], kernel["verdict"], kernel["reason"]) for kernel in record["candidates"]] == \
        [("fill_table", 0, "unknown", "stores through an address loaded from memory")]


def test_a_neighbour_that_was_not_checked_is_among_the_candidates(tmp_path):
    run("kernel_near_later", "log", tmp_path)
    record = violation(tmp_path)
    assert record["unverified_launches"] == 1, "the two before were looked at"
    assert [(kernel["name"], kernel["argument"], kernel["verdict"]) for kernel in record["candidates"]] == [("fill", 0, "near")]


@pytest.mark.parametrize("program", ["protected_between", "checked_between"])
def test_launches_before_the_last_look_are_not_among_those_that_may_be_it(tmp_path, program):
    run(program, "log", tmp_path)
    record = violation(tmp_path)
    assert record["unverified_launches"] == 1 and [kernel["name"] for kernel in record["candidates"]] == ["fill"]


def test_the_last_graph_is_named_first(tmp_path):
    run("graph_near_last", "log", tmp_path)
    record = violation(tmp_path)
    values = [int(kernel["value"], 16) for kernel in record["candidates"]]
    assert values == [int(record["range"]["start"], 16) - 2048 + 4] + [values[-1]] * 7
