#!/usr/bin/env python3
"""Reads shim/doors/entrypoints.def and driver_calls.list; writes what is made from them.

    gen_entrypoints.py header|hooks|coverage TABLE LIST OUTPUT
    gen_entrypoints.py map TABLE LIST OUTPUT NAMES EXPORTS

header    entrypoints.h: entry numbers and the typed pointers to the real driver
hooks     hooks.c: one exported function for each row that is guard, track, count or serve
map       libcuconst.map: the version script: these hooks, those of names.def, and the list EXPORTS
coverage  coverage.md: what is guarded, tracked, counted, served and passed
"""
import pathlib
import re
import sys

import gen_names

HOOKED = ("guard", "track", "count", "serve")
COUNTED = ("guard", "count")
VERDICTS = HOOKED + ("door", "pass")
# Rules of tracked and counted rows that have nothing to do while this holds; without one a tracked call is always followed.
IDLE = {"attribute": "hook_write_idle", "attributes": "hook_write_idle", "free": "hook_write_idle",
        "unjudged_launch": "hook_idle", "sync": "hook_unused", "sync_stream": "hook_unused", "sync_context": "hook_unused"}
# Rules that do nothing before the call, and mostly nothing behind it, which is asked there at once: effect_RULE_is_done() says so.
BEHIND = {"kernel_function"}
EFFECTS = {"W", "H", "L", "X", "G", "C", "U", "M", "I", "T", "Q", "O", "R", "N", "A+", "A-", "A~"}


class Row:
    def __init__(self, where, line):
        parts = [part.strip() for part in line.split(" | ", 4)]
        parts += [""] * (5 - len(parts))
        self.effect, self.verdict, self.symbol, self.rule, params = parts
        self.rule = "" if self.rule == "-" else self.rule
        self.params = [] if params in ("", "void") else [p.strip() for p in params.split(",")]
        if not re.fullmatch(r"cu[A-Z]\w*", self.symbol):
            sys.exit(f"{where}: {self.symbol!r} is no driver entry point")
        if self.verdict not in VERDICTS or not set(self.effect.split("/")) <= EFFECTS:
            sys.exit(f"{where}: unknown verdict or effect: {line!r}")
        if (self.verdict in HOOKED) != bool(self.rule) and self.verdict != "serve":
            sys.exit(f"{where}: a rule belongs to guard, track and count, may stand at serve, and only there: {line!r}")

    @property
    def per_thread(self):
        return self.symbol.endswith(("_ptds", "_ptsz"))

    @property
    def arguments(self):
        return [re.search(r"(\w+)(\[\])?$", p).group(1) for p in self.params]

    @property
    def blocks(self):
        """A copy or set in no stream of the caller's: most have ended when they return."""
        return self.effect in ("W", "H") and re.match(r"cuMem(cpy|set)", self.symbol) is not None and "Async" not in self.symbol

    @property
    def is_plain_write(self):
        """Of one piece of memory, and of no interest but for where that lies."""
        return self.rule.startswith("line(") and not any("CUarray" in param or "CUcontext" in param for param in self.params)

    @property
    def is_launch(self):
        """Of a single function, whose parameters are the program's list: its hook is in shim/doors/launch.S."""
        return self.rule.split("(")[0] in ("launch", "launch_config")

    @property
    def page(self):
        """
        Where the hook lies among those of calls that pass, which programs make between their launches, to fill a page with what they need
        (HOOK_PAGE in shim/hook_state.h; 0 is memo_asks(), 1 launches, 3 write_asks()). None: anywhere.
        """
        if self.rule.split("(")[0] in BEHIND:
            return "2"
        if self.is_plain_write and not self.blocks:
            return "5" if self.per_thread else "4"
        return None

    @property
    def stream(self):
        """The C expression for the stream that the call works in."""
        for param, name in zip(self.params, self.arguments):
            if re.match(r"CUstream\s", param):
                return name
            if "CUlaunchConfig" in param:
                return f"({name} ? {name}->hStream : NULL)"
        return "NULL"


def read_table(path):
    rows, seen = [], set()
    for number, line in enumerate(pathlib.Path(path).read_text().splitlines(), 1):
        if line.strip() and not line.startswith("#"):
            row = Row(f"{path}:{number}", line)
            if row.symbol in seen:
                sys.exit(f"{path}:{number}: {row.symbol} has two rows")
            seen.add(row.symbol)
            rows.append(row)
    return rows


def read_list(path):
    lines = (line.strip() for line in pathlib.Path(path).read_text().splitlines())
    return [line for line in lines if line and not line.startswith("#")]


MADE = "made by scripts/gen_entrypoints.py from shim/doors/entrypoints.def: do not edit"


def driver_pointers(rows, calls):
    """The members of struct driver, each a pointer."""
    hooked = [r.symbol for r in rows if r.verdict in HOOKED]
    return hooked + [r.symbol for r in rows if r.verdict == "door"] + [c for c in calls if c not in hooked]


def offsets(rows, calls, _):
    """Where those of launches are, for launch.S."""
    launches = {r.symbol for r in rows if r.is_launch}
    return [f"/* {MADE} */"] + [f"#define DRV_{name} {8 * i}" for i, name in enumerate(driver_pointers(rows, calls)) if name in launches] + [""]


def header(rows, calls, _):
    hooked = [r.symbol for r in rows if r.verdict in HOOKED]
    pointers = driver_pointers(rows, calls)
    out = [f"/* {MADE} */", "#ifndef CUCONST_ENTRYPOINTS_H", "#define CUCONST_ENTRYPOINTS_H", "",
           "#ifndef __CUDA_API_VERSION_INTERNAL", "#error \"include shim/driver.h\"", "#endif", "",
           "enum entry_id {"]
    out += [f"\tENTRY_{name}," for name in hooked]
    out += ["\tENTRY_COUNT", "};", "", "struct driver {"]
    out += [f"\t__typeof__({name}) *{name};" for name in pointers]
    out += ["};", "", "#define DRIVER_POINTERS(X) \\"]
    out += [f"\tX({name}) \\" for name in pointers]
    out += ["", "#endif", ""]
    return out


def served_plainly(row, opened):
    """A hook that only lets serving answer: nothing is tracked or judged."""
    name, arguments, params = row.symbol, ", ".join(row.arguments), ", ".join(row.params) or "void"
    # What only asks is answered by serving once it has served; other calls make it begin.
    idle = "hook_serve_idle" if row.effect == "R" else "hook_bypassed"
    return [f"static __attribute__((noinline)) CUresult served_{name}({params})", "{", *opened,
            f"\tif ({idle}())", f"\t\treturn drv.{name}({arguments});", "\thook_thread.depth++;",
            f"\tCUresult result = serve_{name}({arguments});", "\thook_thread.depth--;", "\treturn result;", "}", "",
            f"HOOK_EXPORT CUresult {name}({params})", "{", f"\tif (HOOK_LIKELY(drv.{name} && {idle}()))",
            f"\t\treturn drv.{name}({arguments});", f"\treturn served_{name}({arguments});", "}", ""]


def idle_test(row, rule):
    """What holds when a call with a rule can go to the driver at once."""
    if row.verdict == "guard":
        return "hook_write_idle" if row.effect == "W" else "hook_idle"
    return IDLE.get(rule, "hook_bypassed")


def launch(row, rule, arguments, real):
    """What launch.S goes on with: a launch that is not known, one that was given twins before, and one whose end somebody waits for."""
    name, params = row.symbol, ", ".join(row.params)
    config = "config" if rule == "launch_config" else "NULL"
    judged = f"judged_{name}({', '.join([*row.arguments, '__builtin_return_address(0)'])})"
    kinds = ("judged", "watched", "swapped")
    return [*(f'__attribute__((visibility("hidden"))) CUresult launch_{kind}_{name}({params});' for kind in kinds),
            f"_Static_assert(offsetof(struct driver, {name}) == DRV_{name}, \"as launch.S has it\");", "",
            f"HOOK_HOT CUresult launch_judged_{name}({params})", "{", f"\treturn {judged};", "}", "",
            f"HOOK_HOT CUresult launch_watched_{name}({params})", "{", f"\treturn judge_again(\"{name}\", {real}{name}({arguments}));", "}", "",
            f"HOOK_HOT CUresult launch_swapped_{name}({params})", "{",
            f"\tconst struct memo_twins *twins = memo_gives_twins({config}, \"{name}\");", "\tchar room[SWAP_ROOM] __attribute__((aligned(16)));",
            "\tif (!twins)", f"\t\treturn {judged};",
            "\tkernelParams = swap_again(twins, kernelParams, room);",
            f"\treturn judge_swapped(ENTRY_{name}, twins, hook_stream({row.stream}, {str(row.per_thread).lower()}), __builtin_return_address(0),",
            f"\t                     {real}{name}({arguments}));", "}", ""]


def hooks(rows, calls, _):
    out = [f"/* {MADE} */", '#include "launch_offsets.h"', '#include "shim/doors/hook.h"', '#include "shim/twins/serve_calls.h"', '#include "shim/verdict/swap.h"', ""]
    table = []
    for row in rows:
        if row.verdict not in HOOKED:
            continue
        name, arguments = row.symbol, ", ".join(row.arguments)
        counter = "COUNT_LAUNCH" if row.effect == "L" else "COUNT_GRAPH_LAUNCH" if row.effect == "X" else "COUNT_CALL"
        real = "serve_" if row.verdict == "serve" else "drv."
        table.append(f'\t[ENTRY_{name}] = {{"{name}", (void *){name}, (void **)&drv.{name}, '
                     f"{str(row.effect == 'L').lower()}, {str(row.blocks).lower()}}},")
        opened = [f"\tif (HOOK_UNLIKELY(!drv.{name}) && !hook_open((void **)&drv.{name}))", "\t\treturn CUDA_ERROR_NOT_FOUND;"]
        if not row.rule:
            out += served_plainly(row, opened)
            continue
        rule = re.fullmatch(r"(\w+)\((.*)\)", row.rule)
        if not rule:
            sys.exit(f"{name}: rule {row.rule!r} is not name(arguments)")
        bypass = idle_test(row, rule.group(1))
        rule_arguments = ", ".join(filter(None, ["&call", rule.group(2)]))
        judged = ["\tstruct call call;",
                  f"\tcall_begin(&call, ENTRY_{name}, hook_stream({row.stream}, {str(row.per_thread).lower()}), caller);",
                  f"\teffect_{rule.group(1)}({rule_arguments});",
                  "\tCUresult result = judge_before(&call);",
                  "\tif (result == CUDA_SUCCESS)",
                  f"\t\tresult = {real}{name}({arguments});",
                  "\treturn judge_after(&call, result);", "}", ""]
        count = [f"\thook_count({counter});"] if row.verdict in COUNTED and not row.effect.startswith("G") else []
        hot = "HOOK_HOT " if row.effect == "L" else ""
        out += [f"static {hot}__attribute__((noinline)) CUresult judged_{name}({', '.join([*row.params, 'void *caller'])})", "{",
                *opened, *count, f"\tif ({bypass}())", f"\t\treturn drv.{name}({arguments});", *judged]
        pass_on = f"hook_passes({counter}, {bypass}())" if count else f"{bypass}()"
        at_once = [f"\tif (HOOK_LIKELY(drv.{name} && {pass_on}))", f"\t\treturn drv.{name}({arguments});"]
        again = []
        if row.is_launch:
            out += launch(row, rule.group(1), arguments, real)
            continue
        if rule.group(1) in BEHIND:
            at_once = []
            out += [f"static __attribute__((noinline)) CUresult behind_{name}({', '.join([*row.params, 'CUresult result, void *caller'])})", "{",
                    *judged[:3], "\treturn judge_after(&call, result);", "}", ""]
            again = [f"\tif (HOOK_LIKELY(drv.{name})) {{",
                     "\t\thook_thread.depth++;", f"\t\tCUresult result = drv.{name}({arguments});", "\t\thook_thread.depth--;",
                     f"\t\tif (HOOK_LIKELY(result == CUDA_SUCCESS && effect_{rule.group(1)}_is_done({rule.group(2)})) || {bypass}())",
                     "\t\t\treturn result;",
                     f"\t\treturn behind_{name}({arguments}, result, __builtin_return_address(0));", "\t}"]
        if row.is_plain_write:
            at_once = []
            again = [f"\tif (HOOK_LIKELY(drv.{name})) {{",
                     f"\t\tif (HOOK_LIKELY({pass_on}))", f"\t\t\treturn drv.{name}({arguments});",
                     f"\t\tenum write_how how = write_asks({rule.group(2)}, {str(row.blocks).lower()});",
                     "\t\tif (HOOK_LIKELY(how == WRITE_PASSES))", f"\t\t\treturn {real}{name}({arguments});",
                     *([] if row.blocks else ["\t\tif (how == WRITE_IS_WATCHED)",
                                              f"\t\t\treturn judge_write_again(\"{name}\", {real}{name}({arguments}));"]),
                     "\t}"]
        page = f'HOOK_PAGE("{row.page}") ' if again and row.page else hot
        out += [f"HOOK_EXPORT {page}CUresult {name}({', '.join(row.params) or 'void'})", "{", *at_once, *again,
                f"\treturn judged_{name}({', '.join([*row.arguments, '__builtin_return_address(0)'])});", "}", ""]
    return out + ["const struct entrypoint entrypoints[ENTRY_COUNT] = {"] + table + ["};", ""]


def exported(rows, names, exports):
    hooks = [r.symbol for r in rows if r.verdict in HOOKED or r.verdict == "door"]
    return sorted(hooks + [n.symbol for n in gen_names.read_names(names)] + read_list(exports))


def version_script(rows, calls, extra):
    # Anonymous on purpose: a node name of our own would stop `dlsym` from being interposed (glibc matches versions).
    return ["{", "global:"] + [f"\t{name};" for name in exported(rows, *extra)] + ["local:", "\t*;", "};", ""]


def coverage(rows, calls, _):
    out = ["# Coverage of the driver API", "", f"({MADE})", "", "| verdict | entry points |", "| --- | --- |"]
    out += [f"| {v} | {sum(r.verdict == v for r in rows)} |" for v in VERDICTS]
    out += ["", "| symbol | effect | verdict | rule |", "| --- | --- | --- | --- |"]
    return out + [f"| `{r.symbol}` | {r.effect} | {r.verdict} | {r.rule and '`' + r.rule + '`'} |" for r in rows] + [""]


def main():
    kind, table, calls, output, *extra = sys.argv[1:]
    make = {"header": header, "offsets": offsets, "hooks": hooks, "map": version_script, "coverage": coverage}[kind]
    pathlib.Path(output).write_text("\n".join(make(read_table(table), read_list(calls), extra)))


if __name__ == "__main__":
    main()
