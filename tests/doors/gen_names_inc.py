#!/usr/bin/env python3
"""Makes names.inc for the fake libraries and the tests: gen_names_inc.py SCRIPTS NAMES OUTPUT

CUDART(symbol) and CUFFT(symbol), one for each hooked name
"""
import pathlib
import sys


def main():
    scripts, names, output = sys.argv[1:]
    sys.path.insert(0, scripts)
    import gen_names

    rows = gen_names.read_names(names)
    out = []
    for library in gen_names.LIBRARIES:
        macro = library.upper()
        out += [f"#ifdef {macro}", *(f"{macro}({row.symbol})" for row in rows if row.library == library), "#endif"]
    pathlib.Path(output).write_text("\n".join(out + [""]))


if __name__ == "__main__":
    main()
