#!/usr/bin/env python3
"""Writes the battery's list: the generated kernels, which are functions of their seeds, and the real ones of real/.

    generate.py LIST [--only NAME] [--ptx FOLDER]

A kernel is a head of lines, then its PTX text:
    kernel NAME ENTRY GRIDX GRIDY GRIDZ BLOCKX BLOCKY BLOCKZ SHARED SEED CHECK
    param in KIND BYTES | param inout KIND BYTES | param out BYTES | param value BYTES BITS
    field ...                 the same, as a further 64-bit word of the parameter before
    ptx BYTES                 0: the text of the kernel before
CHECK is exact, or how compare.py may forgive: ELEMENT:ULPS[:ABSOLUTE], with the exponent of two of an absolute bound.
--ptx writes the texts one by one too, for ptxas.
"""
import argparse
import os
import random
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import families  # noqa: E402
from kernel import Kernel  # noqa: E402
from operations import STRAIGHT  # noqa: E402

OPERATIONS_EACH = 12
ELEMENTS = {"f": "f32", "g": "f64", "e": "f16", "w": "bf16", "x": "f16", "y": "bf16"}


def straight(kernel, operations):
    for name, result, sources in operations:
        kernel.operation(name, result, sources)


def generated():
    """Yields (kernel, check). Every table's operations come in turn, shuffled, so that all of them occur."""
    for family, (table, count) in STRAIGHT.items():
        deck = []
        for n in range(count):
            source = random.Random(f"{family} {n}")
            while len(deck) < OPERATIONS_EACH:
                deck += source.sample(table, len(table))
            kernel = Kernel(f"{family}_{n}", source)
            straight(kernel, deck[:OPERATIONS_EACH])
            deck = deck[OPERATIONS_EACH:]
            yield kernel, "exact"
    for family, (make, count) in families.SHAPED.items():
        for n in range(count):
            source = random.Random(f"{family} {n}")
            kernel = Kernel(f"{family}_{n}", source)
            if family == "control":
                kernel.block = source.choice((64, 48, 33))
            make(kernel)
            if not kernel.results:
                families.store_last(kernel)
            yield kernel, "exact"
    for name, row in families.BOUNDED:
        kernel = Kernel(name, random.Random(name))
        families.approximate(kernel, row)
        _, result, _, way, ulps, _ = row
        yield kernel, f"{ELEMENTS[result]}:{ulps}" + (f":{-int(way[3:])}" if way.startswith("abs") else "")
    for name, check, arguments in families.MATRICES:
        kernel = Kernel(name, random.Random(name))
        families.matrix(kernel, *arguments)
        yield kernel, check


def blocks():
    """Yields (name, head, text)."""
    for kernel, check in generated():
        text = kernel.text()
        threads = kernel.block * kernel.grid
        yield kernel.name, [f"kernel {kernel.name} {kernel.name} {kernel.grid} 1 1 {kernel.block} 1 1 0 1 {check}",
                            f"param in mixed {64 * threads}", f"param out {8 * kernel.slots * threads}"], text
    folder = os.path.join(HERE, "real")
    with open(os.path.join(folder, "kernels.txt")) as manifest:
        lines = [line.rstrip("\n") for line in manifest if line.strip() and not line.startswith("#")]
    while lines:
        head = [lines.pop(0)]
        while lines and lines[0].startswith(("param ", "field ")):
            head.append(lines.pop(0))
        file, rest = head[0].split(" ", 2)[1:]
        with open(os.path.join(folder, file)) as source:
            yield rest.split(" ", 1)[0], [f"kernel {rest}"] + head[1:], source.read()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("list")
    parser.add_argument("--only")
    parser.add_argument("--ptx")
    arguments = parser.parse_args()
    before = None
    with open(arguments.list, "w") as out:
        for name, head, text in blocks():
            if arguments.only and name != arguments.only:
                continue
            new = "" if text == before else text
            before = text
            out.write("\n".join(head) + f"\nptx {len(new.encode())}\n{new}")
            if arguments.ptx:
                with open(os.path.join(arguments.ptx, name + ".ptx"), "w") as file:
                    file.write(text)


if __name__ == "__main__":
    main()
