#!/usr/bin/env python3
"""results.py counts what ran, and cannot be talked into a pass: one made-up testlog for each way a run can end."""
import json
import pathlib
import subprocess
import sys
import tempfile

import checks

CRITERION_OK = "[====] Synthesis: Tested: 5 | Passing: 5 | Failing: 0 | Crashing: 0 \n"
CRITERION_BAD = "\x1b[0;34m[====]\x1b[0m Synthesis: Tested: 5 | Passing: 3 | Failing: 1 | Crashing: 1 \n"
# name: tests as (result, stdout), the last line expected, the exit status expected
CASES = {
    "plain programs": ([("OK", ""), ("OK", "hello")], "2 passed, 0 failed", 0),
    "nothing ran": ([], "0 passed, 1 failed", 1),
    "only skips": ([("SKIP", "")], "0 passed, 1 failed, 1 skipped", 1),
    "a skip is no pass": ([("OK", ""), ("SKIP", "")], "1 passed, 0 failed, 1 skipped", 0),
    "Criterion": ([("OK", CRITERION_OK)], "5 passed, 0 failed", 0),
    "Criterion fails": ([("FAIL", CRITERION_BAD)], "3 passed, 2 failed", 1),
    "Criterion says fine and crashes afterwards": ([("FAIL", CRITERION_OK)], "5 passed, 1 failed", 1),
    "Criterion fails and exits with 0": ([("OK", CRITERION_BAD)], "3 passed, 2 failed", 1),
    "time is up": ([("TIMEOUT", "")], "0 passed, 1 failed", 1),
    "pytest": ([("OK", "===== 7 passed, 2 skipped, 1 xfailed in 0.31s =====\n")], "7 passed, 0 failed, 3 skipped", 0),
    "pytest, quiet": ([("OK", "....\n4 passed in 0.31s\n")], "4 passed, 0 failed", 0),
    "pytest fails": ([("FAIL", "1 failed, 7 passed, 1 error in 61.02s (0:01:01)\n")], "7 passed, 2 failed", 1),
    "TAP": ([("OK", "1..4\nok 1 - a\nok 2 - b # SKIP no GPU\nnot ok 3 # TODO later\nok 4\n")],
            "2 passed, 0 failed, 2 skipped", 0),
    "TAP fails": ([("FAIL", "ok 1 - a\nnot ok 2 - b\n1..2\n")], "1 passed, 1 failed", 1),
    "meant to fail": ([("EXPECTEDFAIL", CRITERION_BAD)], "1 passed, 0 failed", 0),
    "meant to fail, and does not": ([("UNEXPECTEDPASS", "")], "0 passed, 1 failed", 1),
    "prose is no suite": ([("OK", "it said: 3 failed attempts in a row\nnot ok for me\n")], "1 passed, 0 failed", 0),
}


def said(folder, *arguments):
    ran = subprocess.run([sys.executable, str(checks.ROOT / "scripts/results.py"), *arguments], cwd=folder,
                         capture_output=True, text=True, check=False, timeout=30)
    return ran.stdout.splitlines()


def run(folder, tests, *arguments):
    log = pathlib.Path(folder) / "testlog.json"
    log.write_text("".join(json.dumps({"name": f"t{number}", "suite": ["cuconst:unit"], "result": result, "stdout": stdout,
                                       "stderr": ""}) + "\n" for number, (result, stdout) in enumerate(tests)))
    ran = subprocess.run([sys.executable, str(checks.ROOT / "scripts/results.py"), *arguments, str(log)],
                         capture_output=True, text=True, check=False, timeout=30)
    return (ran.stdout.strip().splitlines() or [""])[-1], ran.returncode, ran.stderr


def main():
    problems = []
    with tempfile.TemporaryDirectory() as folder:
        for name, (tests, line, status) in CASES.items():
            got = run(folder, tests)
            if got[:2] != (line, status):
                problems.append(f"{name}: expected {line!r} and status {status}, got {got}")
        total = pathlib.Path(folder) / "total"
        run(folder, [("OK", CRITERION_OK)], "--total", str(total))
        run(folder, [("FAIL", "prose\nE   assert 1 == 2\n")], "--total", str(total), "--label", "again")
        failures = ["again: FAILED t0: fail, 0 passed, 1 failed", "    E   assert 1 == 2"]
        if json.loads(total.read_text()) != {"passed": 5, "failed": 1, "skipped": 0, "failures": failures}:
            problems.append(f"--total: {total.read_text()}")
        if said(folder, "--total", str(total), "--sum") != [*failures, "5 passed, 1 failed"]:
            problems.append("--sum does not end with what failed")
        for counts, line, status in (((5, 0, 1), "5 passed, 0 failed, 1 skipped", 0), ((5, 1, 0), "5 passed, 1 failed", 1),
                                     ((0, 0, 0), "0 passed, 1 failed", 1)):
            total.write_text(json.dumps(dict(zip(("passed", "failed", "skipped"), counts))))
            if run(folder, [], "--total", str(total), "--sum")[:2] != (line, status):
                problems.append(f"--sum of {counts}: not {line!r}")
    return checks.report(problems, f"{len(CASES)} ways a run can end")


if __name__ == "__main__":
    sys.exit(main())
