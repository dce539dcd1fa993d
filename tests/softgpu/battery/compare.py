#!/usr/bin/env python3
"""Compares two runs of the battery, a real GPU's and the software GPU's.

    compare.py REAL.tsv REAL.bin SOFT.tsv SOFT.bin [--bounds] [--keep OUTPUTS.bin] [--explained FILE.tsv]

Exact kernels must have the same hash; of the others every element must be within the bound that the list states: so many units in the last
place, or an absolute distance. NaN is as good as NaN. --bounds prints the widest distance seen, by kernel. --keep writes the real outputs of the
bounded kernels alone. --explained names kernels that differ for a known reason, or that the real run does not have yet; one of them that is equal
is a mistake too. The status is 0 when all agree.
"""
import argparse
import math
import struct
import sys

FORMATS = {"f32": ("I", 8, 23), "f64": ("Q", 11, 52), "f16": ("H", 5, 10), "bf16": ("H", 8, 7)}


class Run:
    def __init__(self, hashes, outputs):
        with open(hashes) as file:
            self.rows = [line.rstrip("\n").split("\t") for line in file]
        self.by_name = {row[0]: row for row in self.rows}
        with open(outputs, "rb") as file:
            data = file.read()
        sized = [(row[0], int(row[2]), row[1]) for row in self.rows if row[2] != "error"]
        everything = sum(size for _, size, _ in sized)
        bounded = sum(size for _, size, check in sized if check != "exact")
        if len(data) not in (everything, bounded):
            sys.exit(f"{outputs}: {len(data)} bytes are neither all outputs ({everything}) nor the bounded ones ({bounded})")
        self.outputs, at = {}, 0
        for name, size, check in sized:
            if check != "exact" or len(data) == everything:
                self.outputs[name] = data[at:at + size]
                at += size


def numbers(data, element):
    """(position on the line of all numbers, value) of each element; None for NaN."""
    code, exponent_bits, fraction_bits = FORMATS[element]
    for (bits,) in struct.iter_unpack("<" + code, data):
        sign, size = bits >> (exponent_bits + fraction_bits), bits & ((1 << (exponent_bits + fraction_bits)) - 1)
        exponent, fraction = size >> fraction_bits, size & ((1 << fraction_bits) - 1)
        most, bias = (1 << exponent_bits) - 1, (1 << (exponent_bits - 1)) - 1
        if exponent == most and fraction:
            yield None
            continue
        if exponent == most:
            value = math.inf
        else:
            value = math.ldexp(fraction + (1 << fraction_bits if exponent else 0), max(exponent, 1) - bias - fraction_bits)
        yield (-size, -value) if sign else (size, value)


def distance(real, soft, check):
    """(elements beyond the bound, widest distance in ulps, widest absolute distance among those beyond the ulps, the first beyond)."""
    element, ulps, *absolute = check.split(":")
    ulps, absolute = int(ulps), 2.0 ** int(absolute[0]) if absolute else 0.0
    beyond, widest, far, first = 0, 0, 0.0, None
    for n, (one, other) in enumerate(zip(numbers(real, element), numbers(soft, element))):
        if one is None or other is None:
            if one is not other:
                beyond, first = beyond + 1, n if first is None else first
            continue
        apart, apart_by = abs(one[0] - other[0]), 0.0 if one[1] == other[1] else abs(one[1] - other[1])
        if apart > ulps:
            far = max(far, apart_by)
            if not apart_by <= absolute:
                beyond, first = beyond + 1, n if first is None else first
                continue
            apart = 0
        widest = max(widest, apart)
    return beyond, widest, far, first


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("real_hashes", "real_outputs", "soft_hashes", "soft_outputs"):
        parser.add_argument(name)
    parser.add_argument("--bounds", action="store_true")
    parser.add_argument("--keep")
    parser.add_argument("--explained")
    arguments = parser.parse_args()
    real, soft = Run(arguments.real_hashes, arguments.real_outputs), Run(arguments.soft_hashes, arguments.soft_outputs)
    equal = within = reasons = 0
    explained = {}
    if arguments.explained:
        with open(arguments.explained) as file:
            explained = dict(line.rstrip("\n").split("\t") for line in file if not line.startswith("#"))
    new = set(soft.by_name) - set(real.by_name)
    awaited = {name for name in new & set(explained) if soft.by_name[name][2] != "error"}
    wrong = [f"{name}: only one of the runs has it" for name in sorted(set(real.by_name) ^ set(soft.by_name) - awaited)]
    for name, check, *one in soft.rows:
        if name not in real.by_name:
            continue
        _, real_check, *other = real.by_name[name]
        if check != real_check or "error" in (one[0], other[0]) or one[0] != other[0]:
            wrong.append(f"{name}: {' '.join(other)} | {' '.join(one)}")
        elif check == "exact":
            if one == other:
                equal += 1
                if name in explained:
                    wrong.append(f"{name}: equal, but explained")
            elif name in explained:
                reasons += 1
            else:
                wrong.append(f"{name}: the outputs differ")
        else:
            beyond, widest, far, first = distance(real.outputs[name], soft.outputs[name], check)
            within += not beyond
            if beyond:
                wrong.append(f"{name}: {beyond} elements are beyond {check}, element {first} the first")
            if arguments.bounds:
                print(f"{name}\t{check}\t{widest} ulp" + (f", else {far:.3g}" if far else ""))
    if arguments.keep:
        with open(arguments.keep, "wb") as file:
            for name, check, *_ in real.rows:
                if check != "exact":
                    file.write(real.outputs.get(name, b""))
    for line in wrong:
        print(line)
    print(f"{len(soft.rows)} kernels: {equal} equal, {within} within their bounds, {reasons} different with a reason, "
          f"{len(awaited)} not run on a real GPU yet, {len(wrong)} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
