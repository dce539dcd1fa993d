"""`cuconst report` on logs that real runs wrote: its counts are those of the records."""
import json
import re
import subprocess

import pytest
from rig import TOOL, VIOLATED

SOURCE = """
one, two = protect((p, SIZE), label="weights"), protect((q, SIZE), label="bias")
def copy():
    driver.cuMemsetD8(p, 5, 16)  # COPY
def launch():
    driver.cuLaunchKernel(*kernel("fill", q, 7 + i, 16))  # LAUNCH
for i in range(3): copy()
for i in range({launches}): launch(); synchronize()
"""


def report(*arguments):
    done = subprocess.run([TOOL, "report", *map(str, arguments)], capture_output=True, text=True, timeout=30, check=False)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return done.stdout


@pytest.mark.parametrize("mode", ["log", "deny"])
def test_groups_and_counts(program, mode):
    made = program(SOURCE.format(launches=5))
    result = made.run(mode)
    text = report(result.log)
    denied = 8 if mode == "deny" else 0
    assert result.status == VIOLATED and len(result.records) == 8
    assert text.splitlines()[0] == f"8 violations ({denied} denied), 0 inconclusive, 0 frees, 0 ended unverified"
    groups = dict(re.findall(rf"^(\d+) violations at ({re.escape(str(made.path))}:\d+ in \w+)$", text, re.M)[i][::-1] for i in range(2))
    assert groups == {f"{made.path}:{made.line('LAUNCH')} in launch": "5", f"{made.path}:{made.line('COPY')} in copy": "3"}
    assert re.search(r"wrote into +weights\n", text) and re.search(r"wrote into +bias\n", text) and re.search(r"kernel +fill\n", text)


def test_folded_ones_are_counted(program):
    result = program(SOURCE.format(launches=40)).run("log")
    written = [record for record in result.records if record["kind"] == "violation"]
    assert len(written) == 13 and result.summary["violations"] == 43
    text = report(result.log)
    assert text.startswith("43 violations (0 denied)") and re.search(r"^40 violations at .* in launch$", text, re.M), text


def test_several_logs_are_one_summary(program, tmp_path):
    made = program(SOURCE.format(launches=1))
    logs = []
    for mode in ("log", "deny"):
        logs.append(tmp_path / f"kept-{mode}.jsonl")
        made.run(mode).log.rename(logs[-1])
    text = report(*logs)
    assert text.splitlines()[:2] == ["8 violations (4 denied), 0 inconclusive, 0 frees, 0 ended unverified", "2 logs, 10 records, 2 processes"]
    assert re.search(r"^6 violations at .* in copy$", text, re.M) and "logged 3, denied 3" in text, text
    assert sum(len([line for line in log.read_text().splitlines() if json.loads(line)["kind"] == "violation"]) for log in logs) == 8


def test_a_run_without_violations(program):
    result = program("guard = protect((p, SIZE))\n").run("log")
    assert report(result.log).startswith("0 violations (0 denied), 0 inconclusive, 0 frees, 0 ended unverified\n")
