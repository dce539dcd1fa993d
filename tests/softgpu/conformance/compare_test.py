#!/usr/bin/env python3
"""compare.py fails when it should."""
import os
import stat
import subprocess
import sys
import tempfile

COMPARE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "compare.py")
SAME = "".join(f"family.question_{i}\tCUDA_SUCCESS\n" for i in range(400))


def run(real, here, differences, status=0):
    with tempfile.TemporaryDirectory() as folder:
        paths = {name: os.path.join(folder, name) for name in ("program", "real.tsv", "here.tsv", "differences.tsv")}
        for name, text in (("real.tsv", real), ("here.tsv", here), ("differences.tsv", differences),
                           ("program", f"#!/bin/sh\ncat {paths['here.tsv']}\nexit {status}\n")):
            with open(paths[name], "w") as out:
                out.write(text)
        os.chmod(paths["program"], stat.S_IRWXU)
        done = subprocess.run([sys.executable, COMPARE, paths["program"], paths["real.tsv"], paths["differences.tsv"]],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        return done.returncode, done.stdout


def check(wanted, what, *arguments, **named):
    status, text = run(*arguments, **named)
    if (status != 0) != (not wanted):
        sys.exit(f"{what}: status {status}\n{text}")
    return text


def main():
    changed = SAME.replace("question_7\tCUDA_SUCCESS", "question_7\tCUDA_ERROR_INVALID_VALUE")
    missing = SAME.replace("family.question_7\tCUDA_SUCCESS\n", "")
    check(True, "equal", SAME, SAME, "")
    text = check(False, "a difference", SAME, changed, "")
    assert "family.question_7\tCUDA_SUCCESS\tCUDA_ERROR_INVALID_VALUE" in text, text
    text = check(True, "a listed difference", SAME, changed, "# why\nfamily.question_7\ta reason\n")
    assert "399 equal, 1 different with reason, 0 different without" in text, text
    check(True, "a listed pattern", SAME, changed, "family.*_7\ta reason\n")
    text = check(False, "a stale line", SAME, SAME, "family.question_7\ta reason\n")
    assert "covers no difference" in text, text
    check(False, "a stale line beside a good one", SAME, changed, "family.question_7\ta reason\nfamily.question_8\ta reason\n")
    check(False, "a missing answer", SAME, missing, "")
    check(False, "an answer too many", missing, SAME, "")
    check(False, "no reason given", SAME, changed, "family.question_7\n")
    check(False, "an answer twice", SAME, SAME + "family.question_7\tCUDA_SUCCESS\n", "")
    check(False, "a program that fails", SAME, SAME, "", status=1)
    check(False, "too few questions", SAME[:2000], SAME[:2000], "")


if __name__ == "__main__":
    main()
