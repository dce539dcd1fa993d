#!/usr/bin/env python3
"""Reads shim/doors/names.def; writes what is made from it.

    gen_names.py header|hooks TABLE OUTPUT

header  names_table.h: one number and one prototype for each function
hooks   names_hooks.c: the table sorted by name, and one exported function for each row that is thin
"""
import pathlib
import re
import sys

LIBRARIES = ("cudart", "cufft")
MADE = "made by scripts/gen_names.py from shim/doors/names.def: do not edit"


class Name:
    def __init__(self, where, line):
        parts = [part.strip() for part in line.split(" | ")]
        if len(parts) != 4:
            sys.exit(f"{where}: four fields: {line!r}")
        self.library, self.kind, self.symbol, params = parts
        if self.library not in LIBRARIES or self.kind not in ("thin", "hand"):
            sys.exit(f"{where}: unknown library or kind: {line!r}")
        if not re.fullmatch(r"(__)?cu(da|fft)[A-Z]\w*", self.symbol):
            sys.exit(f"{where}: {self.symbol!r} would not be looked at by dlsym.S")
        self.params = [p.strip() for p in params.split(",")]

    @property
    def arguments(self):
        return [re.search(r"(\w+)$", p).group(1) for p in self.params]

    @property
    def passes_more(self):
        """Takes one word more than some callers give."""
        return self.params[-1].startswith("uintptr_t ")

    @property
    def prototype(self):
        return f"int {self.symbol}({', '.join(self.params)})"


def read_names(path):
    names = []
    for number, line in enumerate(pathlib.Path(path).read_text().splitlines(), 1):
        if line.strip() and not line.startswith("#"):
            names.append(Name(f"{path}:{number}", line))
    names.sort(key=lambda name: name.symbol)
    for first, second in zip(names, names[1:]):
        if first.symbol == second.symbol:
            sys.exit(f"{path}: {first.symbol} has two rows")
    return names


def header(names):
    out = [f"/* {MADE} */", "#ifndef CUCONST_NAMES_TABLE_H", "#define CUCONST_NAMES_TABLE_H", "", "enum name_id {"]
    out += [f"\tNAME_{n.symbol}," for n in names]
    return out + ["\tNAME_COUNT", "};", ""] + [f"{n.prototype};" for n in names] + ["", "#endif", ""]


def pass_on(name):
    """The call while there is nothing to name: a jump, before which the words on the stack are written where they are. The last of them may be the caller's own, and change meanwhile."""
    call = f"real({', '.join(name.arguments)})"
    if not name.passes_more:
        return ["\tif (!name_wanted())", f"\t\treturn {call};"]
    return ["\tif (!name_wanted()) {", f"\t\tint answer = {call};", "\t\tNAME_NO_JUMP(answer);", "\t\treturn answer;", "\t}"]


def hooks(names):
    out = [f"/* {MADE} */", '#include "shim/doors/hook.h"', '#include "shim/doors/names.h"', "",
           "const struct name names[NAME_COUNT] = {"]
    out += [f'\t[NAME_{n.symbol}] = {{"{n.symbol}", NAMES_{n.library.upper()}, (void *){n.symbol}}},' for n in names]
    out += ["};", ""]
    for n in names:
        if n.kind != "thin":
            continue
        arguments = ", ".join(n.arguments)
        # The way of most calls is here: a jump while there is nothing to name.
        out += [f"static HOOK_COLD int entered_{n.symbol}({', '.join([*n.params, 'void *caller'])})", "{",
                "\tstruct name_scope scope;",
                f"\t__typeof__({n.symbol}) *real = name_enter(&scope, NAME_{n.symbol}, caller);",
                "\tif (!real)",
                f"\t\treturn NAMES_MISSING_{n.library.upper()};",
                f"\tint result = real({arguments});",
                "\tname_leave(&scope);",
                "\treturn result;", "}", "",
                f"HOOK_EXPORT {n.prototype}", "{",
                "\tvoid *caller = __builtin_return_address(0);",
                f"\t__typeof__({n.symbol}) *real = name_of_last(NAME_{n.symbol}, caller);",
                "\tif (HOOK_UNLIKELY(!real))",
                f"\t\treturn entered_{n.symbol}({', '.join([*n.arguments, 'caller'])});",
                *pass_on(n),
                f"\tname_begin(\"{n.symbol}\", caller);",
                f"\tint result = real({arguments});",
                "\tname_end();",
                "\treturn result;", "}", ""]
    return out


def main():
    kind, table, output = sys.argv[1:]
    make = {"header": header, "hooks": hooks}[kind]
    pathlib.Path(output).write_text("\n".join(make(read_names(table))))


if __name__ == "__main__":
    main()
