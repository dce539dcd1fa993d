#!/usr/bin/env python3
"""What kernels' code says of the launches of real programs, with their inputs protected: a table for RESULTS.md.

    verdict_shares.py [NAME...]

A row for each phase of programs/shares.py: launches that concern a range by verdict, how many of `stores` changed bytes, and what really changed.
"""
import json
import sys

from harness import HERE, run, when

NAMES = ("cupy", "libraries", "torch_eager", "torch_foreach", "torch_compiled", "jax", "triton")
VERDICTS = ("clean", "stores", "near", "unknown")
HEADER = "| program | phase | launches | concern a range | clean | stores | near | unknown | stores that changed bytes | changed arrays | found without a kernel |"


class Phase:
    """One phase's counters, and the records that were written in it."""

    def __init__(self, said, records):
        self.__dict__.update(said)
        self.name = said["phase"]
        self.launches += self.graph_launches
        self.records = [r for r in records if r["kind"] == "violation" and said["began"] <= r["when"] <= said["ended"]]

    @property
    def concerned(self):
        return sum(getattr(self, verdict) for verdict in VERDICTS)

    def kernels_of(self, record):
        return [record["kernel"]] if record["kernel"] else [] if record["api"].startswith("cuconst_") else record["candidates"]

    @property
    def unnamed(self):
        """Changes that no launch's own check found."""
        return [r for r in self.records if r["api"].startswith("cuconst_")]

    def verdicts_of(self, label):
        return {kernel["verdict"] for r in self.records if r["range"]["label"] == label for kernel in self.kernels_of(r)}

    @property
    def stores_that_changed(self):
        return len({(r["tid"], r["kernel"]["name"], r["time"][:23]) for r in self.records if r["kernel"] and r["kernel"]["verdict"] == "stores"})

    def row(self, program):
        shares = [f"{getattr(self, v)} ({100 * getattr(self, v) / max(1, self.concerned):.0f} %)" for v in VERDICTS]
        return "| " + " | ".join(map(str, [program, self.name, self.launches, self.concerned, *shares, f"{self.stores_that_changed} of {self.stores}",
                                           len(self.changed), len(self.unnamed)])) + " |"


def phases(name, mode="log"):
    done = run(HERE / "programs" / "shares.py", name, mode=mode, options=["site_limit=100000"])
    for record in done.records:
        record["when"] = when(record)
    return done, [Phase(json.loads(line), done.records) for line in done.stdout.splitlines() if line.startswith('{"phase"')]


def main():
    print(HEADER)
    print("|" + " --- |" * (HEADER.count("|") - 1))
    failed = False
    for name in sys.argv[1:] or NAMES:
        done, found = phases(name)
        failed |= len(found) != 2
        if len(found) != 2:
            print(f"{name}: {done.said()}", file=sys.stderr)
        for phase in found:
            print(phase.row(name), flush=True)
    return failed


if __name__ == "__main__":
    sys.exit(main())
