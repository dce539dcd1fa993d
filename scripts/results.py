#!/usr/bin/env python3
"""What `meson test` really ran, from its testlog.json: a short summary, and one last line with the counts.

    results.py [--label TEXT] [--total FILE] TESTLOG...
    results.py --total FILE --sum

A meson test that is a suite of its own (Criterion, pytest, TAP) counts as many as it says it ran; any other counts as one.
A suite that died or timed out counts one failure on top of those it reported. Skipped tests, and those expected to
fail, are shown, never counted as passed. Exit status 1 when anything failed or when nothing ran.

--total FILE adds this run's counts, and why tests failed, to those in FILE (JSON); --sum says what they came to, over
several builds: the end of a long output is what is kept of it.
"""
import argparse
import json
import pathlib
import re
import sys
from dataclasses import dataclass

CRITERION = re.compile(r"Synthesis: Tested: (\d+) \| Passing: (\d+) \| Failing: (\d+) \| Crashing: (\d+)")
PYTEST = re.compile(r"^=* ?((?:\d+ [a-z]+(?:, )?)+) in [0-9.]+s.*$", re.M)
PYTEST_SKIPPED = {"skipped", "xfailed"}
PYTEST_FAILED = {"failed", "error", "errors", "xpassed"}
TAP = re.compile(r"^(not )?ok\b(?: \d+)?[^#\n]*(?:# *(SKIP|TODO))?", re.M | re.I)
ANSI = re.compile(r"\x1b\[[0-9;]*m")
GOOD = {"OK", "EXPECTEDFAIL"}
# What pytest, Criterion and the programs here say of a failure.
REASON = re.compile(r"^(E  |FAILED |\[----\]|\[FAIL\]|.*: (expected|assertion|Assertion|ERROR|error|failed)\b)")
REASONS = 15


@dataclass
class Counts:
    passed: int = 0
    failed: int = 0
    skipped: int = 0

    def __add__(self, other):
        return Counts(self.passed + other.passed, self.failed + other.failed, self.skipped + other.skipped)

    def line(self):
        return f"{self.passed} passed, {self.failed} failed" + (f", {self.skipped} skipped" if self.skipped else "")


def inner(output):
    """The counts that a test's own output reports, or None when it is not a suite that we can read."""
    output = ANSI.sub("", output)
    found = CRITERION.findall(output)
    if found:
        tested, passing, failing, crashing = map(int, found[-1])
        return Counts(passing, failing + crashing, max(0, tested - passing - failing - crashing))
    found = PYTEST.findall(output)
    if found:
        counts = Counts()
        for number, word in re.findall(r"(\d+) ([a-z]+)", found[-1]):
            counts.passed += int(number) if word == "passed" else 0
            counts.failed += int(number) if word in PYTEST_FAILED else 0
            counts.skipped += int(number) if word in PYTEST_SKIPPED else 0
        return counts
    if re.search(r"^1\.\.\d+", output, re.M):
        counts = Counts()
        for bad, directive in TAP.findall(output):
            if directive:
                counts.skipped += 1
            elif bad:
                counts.failed += 1
            else:
                counts.passed += 1
        return counts
    return None


def count(test):
    """The counts of one entry of testlog.json."""
    result = test["result"]
    if result == "SKIP":
        return Counts(skipped=1)
    reported = None if result == "EXPECTEDFAIL" else inner(test.get("stdout", "") + "\n" + test.get("stderr", ""))
    if reported is None:
        return Counts(passed=1) if result in GOOD else Counts(failed=1)
    if result not in GOOD and not reported.failed:
        reported.failed += 1
    return reported


def why(test):
    """The lines of a failed test's output that say most; else its last ones."""
    lines = ANSI.sub("", test.get("stdout", "") + "\n" + test.get("stderr", "")).rstrip().splitlines()
    return [line[:300] for line in [line for line in lines if REASON.match(line)][:REASONS] or lines[-REASONS:]]


def suite_names(testlog):
    """The first suite of each test: testlog.json does not say, the build folder's introspection data does."""
    intro = pathlib.Path(testlog).resolve().parent.parent / "meson-info/intro-tests.json"
    if not intro.exists():
        return {}
    return {(test["name"], tuple(test["cmd"])): test["suite"][0].split(":")[-1]
            for test in json.loads(intro.read_text()) if test["suite"]}


def read(testlog):
    """Pairs of suite and entry."""
    names = suite_names(testlog)
    for line in pathlib.Path(testlog).read_text(errors="replace").splitlines():
        test = json.loads(line)
        name = test["name"].split(" / ")[-1]
        yield names.get((name, tuple(test.get("command", ()))), "other"), test


def finish(total, prefix):
    """The last line, and the exit status. That nothing ran is a failure of its own."""
    if not total.passed + total.failed:
        print(f"{prefix}no test ran")
        total.failed += 1
    print(prefix + total.line())
    return 1 if total.failed else 0


def earlier(total):
    """What FILE of --total holds: counts, and lines about failed tests."""
    held = json.loads(total.read_text()) if total.exists() else {}
    return Counts(**{name: held.get(name, 0) for name in ("passed", "failed", "skipped")}), held.get("failures", [])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--label", default="")
    parser.add_argument("--total", type=pathlib.Path)
    parser.add_argument("--sum", action="store_true")
    parser.add_argument("testlog", nargs="*")
    arguments = parser.parse_args()
    if arguments.sum:
        total, failures = earlier(arguments.total)
        print("\n".join(failures), end="\n" if failures else "")
        return finish(total, "")
    total, by_suite, failures = Counts(), {}, []
    prefix = f"{arguments.label}: " if arguments.label else ""
    for path in arguments.testlog:
        for name, test in read(path):
            counts = count(test)
            total += counts
            by_suite[name] = by_suite.get(name, Counts()) + counts
            if counts.failed:
                failures += [f"{prefix}FAILED {test['name']}: {test['result'].lower()}, {counts.line()}",
                             *("    " + line for line in why(test))]
    print("\n".join(failures), end="\n" if failures else "")
    for name, counts in sorted(by_suite.items()):
        print(f"{prefix}{name:10} {counts.line()}")
    status = finish(total, prefix)
    if arguments.total:
        before, told = earlier(arguments.total)
        arguments.total.write_text(json.dumps({**(before + total).__dict__, "failures": told + failures}))
    return status


if __name__ == "__main__":
    sys.exit(main())
