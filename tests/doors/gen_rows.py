#!/usr/bin/env python3
"""Makes rows.inc for the fake driver and the tests: gen_rows.py SCRIPTS TABLE SYMBOLS OUTPUT

ROW(symbol, hooked, counter, version, era)   counter: which of the shim's counts a call raises, or NONE; era: V11 or V13, a driver
                                             of CUDA 11.5 has the first kind only
ANSWER(symbol, name, version, flag)     the question to cuGetProcAddress that the symbol answers
"""
import pathlib
import sys

COUNTERS = {"L": "LAUNCH", "X": "GRAPH_LAUNCH"}


def read_symbols(path):
    lines = [line.split("\t") for line in pathlib.Path(path).read_text().splitlines() if not line.startswith("#")]
    return [(symbol, name, int(version), int(flag)) for symbol, name, version, flag, _ in lines[1:]]


def main():
    scripts, table, symbols, output = sys.argv[1:]
    sys.path.insert(0, scripts)
    import gen_entrypoints

    versions = {symbol: version for symbol, _, version, _ in read_symbols(symbols)}
    out = ["#ifdef ROW"]
    for row in gen_entrypoints.read_table(table):
        hooked = row.verdict in gen_entrypoints.HOOKED
        counter = COUNTERS.get(row.effect, "CALL") if row.verdict in gen_entrypoints.COUNTED else "NONE"
        version = versions.get(row.symbol, 0)
        era = "V11" if version <= 11050 else "V13"
        out.append(f"ROW({row.symbol}, {int(hooked or row.verdict == 'door')}, {counter}, {version}, {era})")
    out += ["#endif", "#ifdef ANSWER"]
    out += [f"ANSWER({symbol}, {name}, {version}, {flag})" for symbol, name, version, flag in read_symbols(symbols)]
    pathlib.Path(output).write_text("\n".join(out + ["#endif", ""]))


if __name__ == "__main__":
    main()
