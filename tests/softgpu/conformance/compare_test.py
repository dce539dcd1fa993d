#!/usr/bin/env python3
"""compare.py fails when it should."""
import os
import stat
import subprocess
import sys
import tempfile

COMPARE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "compare.py")
SAME = "".join(f"family.question_{i}\tCUDA_SUCCESS\n" for i in range(400))


def run(real, here, differences, status=0, two=None, here_two=""):
    """`here_two` is what the program says beside `here` when there are two devices."""
    names = ("program", "real.tsv", "here.tsv", "differences.tsv", "two.tsv", "here2.tsv")
    with tempfile.TemporaryDirectory() as folder:
        paths = {name: os.path.join(folder, name) for name in names}
        script = f'#!/bin/sh\ncat {paths["here.tsv"]}\n[ "$SOFTGPU_DEVICES" = 1 ] || cat {paths["here2.tsv"]}\nexit {status}\n'
        for name, text in zip(names, (script, real, here, differences, two or "", here_two)):
            with open(paths[name], "w") as out:
                out.write(text)
        os.chmod(paths["program"], stat.S_IRWXU)
        done = subprocess.run([sys.executable, COMPARE, paths["program"], paths["real.tsv"], paths["differences.tsv"],
                               *([paths["two.tsv"]] if two is not None else [])],
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
    other = "family.other\tCUDA_SUCCESS\n"
    check(True, "a question of two devices", SAME, SAME, "", two=other, here_two=other)
    check(True, "without a table of two devices none is asked", SAME, SAME, "", here_two=other)
    check(False, "a difference with two devices", SAME, SAME, "", two=other, here_two="family.other\tno\n")
    check(False, "a missing answer of two devices", SAME, SAME, "", two=other)
    check(False, "an answer too many of two devices", SAME, SAME, "", two="", here_two=other)
    check(True, "a listed difference with two devices", SAME, SAME, "family.other\tthe reason\n", two=other, here_two="family.other\tno\n")
    check(False, "a question of one device in the table of two", SAME, SAME, "", two=SAME)
    check(False, "too few questions", SAME[:2000], SAME[:2000], "")


if __name__ == "__main__":
    main()
