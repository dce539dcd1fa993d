#!/usr/bin/env python3
"""Runs the conformance program on the software GPU and compares its answers with those of a real driver.

    compare.py PROGRAM REAL.tsv DIFFERENCES.tsv [REAL_OF_TWO_DEVICES.tsv] [--list]

It runs with one device; with a table of two devices it runs again with two, and what is asked only then is compared with that table.
A line of REAL.tsv is `question<TAB>answer`, one of DIFFERENCES.tsv `question or pattern (fnmatch)<TAB>reason`. Fails on a difference that
no line of DIFFERENCES.tsv covers, and on a line of it that covers none. --list prints the uncovered differences as
`question<TAB>real<TAB>here` and succeeds."""
import fnmatch
import os
import subprocess
import sys

LEAST_QUESTIONS = 300


def read_table(text, where):
    table = {}
    for line in text.splitlines():
        if not line or line.startswith("#"):
            continue
        key, tab, value = line.partition("\t")
        if not tab or not value or key in table:
            sys.exit(f"{where}: {'a second line for ' + key if key in table else 'not a line of a table: ' + line}")
        table[key] = value
    return table


def compare(real, here, reasons):
    """The differences that no reason covers, and the reasons that cover no difference."""
    different = {q for q in real.keys() | here.keys() if real.get(q) != here.get(q)}
    used, uncovered = set(), []
    for question in sorted(different):
        covering = [pattern for pattern in reasons if pattern == question or fnmatch.fnmatchcase(question, pattern)]
        used.update(covering)
        if not covering:
            uncovered.append(question)
    return different, uncovered, [pattern for pattern in reasons if pattern not in used]


def read_file(path):
    with open(path) as file:
        return read_table(file.read(), path)


def ask(program, devices):
    environment = dict(os.environ, SOFTGPU_DEVICES=str(devices), SOFTGPU_QUIET="1")
    run = subprocess.run([program], env=environment, stdout=subprocess.PIPE, text=True)
    if run.returncode != 0:
        sys.exit(f"{program} ended with {run.returncode}")
    return read_table(run.stdout, program)


def main():
    program, real_path, differences_path, *two_devices = [argument for argument in sys.argv[1:] if argument != "--list"]
    here, real, reasons = ask(program, 1), read_file(real_path), read_file(differences_path)
    for path in two_devices:
        added = read_file(path)
        if added.keys() & real.keys():
            sys.exit(f"{path}: {sorted(added.keys() & real.keys())} are in {real_path}, too")
        real.update(added)
        here = {**ask(program, 2), **here}
    if min(len(here), len(real)) < LEAST_QUESTIONS:
        sys.exit(f"only {len(real)} and {len(here)} answers")
    different, uncovered, stale = compare(real, here, reasons)
    for question in uncovered:
        print(f"{question}\t{real.get(question, 'no answer')}\t{here.get(question, 'no answer')}")
    if "--list" in sys.argv:
        return
    for pattern in stale:
        print(f"{differences_path}: {pattern} covers no difference: take it out")
    print(f"{len(real.keys() | here.keys())} questions: {len(real.keys() | here.keys()) - len(different)} equal, "
          f"{len(different) - len(uncovered)} different with reason, {len(uncovered)} different without")
    sys.exit(1 if uncovered or stale else 0)


if __name__ == "__main__":
    main()
