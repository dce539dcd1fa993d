#!/usr/bin/env python3
"""Writes the exported half of the software GPU from symbols.tsv and cuda.h.

    exports.py SYMBOLS OUT.h OUT.c OUT.map CC [CCARGS...]

OUT.h declares a hidden implementation sg_<name> for every prototype of cuda.h, so that a wrong prototype does not compile.
OUT.c exports <name>: count, check, then call the implementation, or refuse with CUDA_ERROR_NOT_SUPPORTED where there is none (the
declarations are weak). A name with _ptds or _ptsz runs the implementation without the suffix, with the calling thread's own default
stream standing for NULL. OUT.map is the linker's list of exported names.
"""
import re
import subprocess
import sys

NEEDS = {"nothing": "SG_NEEDS_NOTHING", "init": "SG_NEEDS_INIT", "health": "SG_NEEDS_HEALTH", "context": "SG_NEEDS_CONTEXT"}
BANNER = "/* Written by tests/softgpu/gen/exports.py from symbols.tsv and cuda.h: do not edit. */\n"

# cudaProfiler.h is in a package of its own, which is not always there beside cuda.h.
PROFILER = "CUresult cuProfilerInitialize(const char *configFile, const char *outputFile, int outputMode);\n" \
           "CUresult cuProfilerStart(void);\nCUresult cuProfilerStop(void);\n"


def read_symbols(path):
    with open(path) as table:
        lines = [line.rstrip("\n") for line in table if not line.startswith("#")]
    rows = [dict(zip(lines[0].split("\t"), line.split("\t"))) for line in lines[1:]]
    return [row for row in rows if row["needs"] != "absent"]


def read_prototypes(compiler):
    text = subprocess.run(compiler + ["-E", "-P", "-D__CUDA_API_VERSION_INTERNAL", "-"], check=True, text=True, stdout=subprocess.PIPE,
                          input="#include <cuda.h>\n" + PROFILER).stdout
    found = re.findall(r"CUresult\s+(cu\w+)\s*\(([^;]*?)\)\s*;", text, re.S)
    return {name: " ".join(arguments.split()) for name, arguments in found}


def argument_names(arguments):
    if arguments in ("void", ""):
        return []
    return [re.search(r"(\w+)\s*(?:\[\w*\])?$", argument.strip()).group(1) for argument in arguments.split(",")]


def base_of(symbol):
    return re.sub(r"_pt(ds|sz)$", "", symbol)


def write_header(path, prototypes):
    with open(path, "w") as out:
        out.write(BANNER + "#ifndef SOFTGPU_IMPLEMENTATIONS_H\n#define SOFTGPU_IMPLEMENTATIONS_H\n\n#include <cuda.h>\n\n"
                  "#pragma GCC visibility push(hidden)\n")
        for name, arguments in prototypes.items():
            if base_of(name) == name:
                out.write(f"CUresult sg_{name}({arguments or 'void'}) __attribute__((weak));\n")
        out.write("#pragma GCC visibility pop\n\n#endif\n")


def wrapper(index, row, prototypes):
    symbol, base, need = row["symbol"], base_of(row["symbol"]), NEEDS[row["needs"]]
    if symbol not in prototypes:
        return (f"SG_EXPORT CUresult {symbol}(void);\nSG_EXPORT CUresult {symbol}(void)\n{{\n\treturn sg_unimplemented({index});\n}}\n")
    arguments = prototypes[symbol] or "void"
    call = f"sg_{base}({', '.join(argument_names(arguments))})"
    run = f"\treturn {call};\n"
    if base != symbol:
        run = f"\tsg_thread.per_thread_default = true;\n\tstatus = {call};\n\tsg_thread.per_thread_default = false;\n\treturn status;\n"
    return (f"SG_EXPORT CUresult {symbol}({arguments})\n{{\n\tif (sg_{base} == NULL)\n\t\treturn sg_unimplemented({index});\n"
            f"\tCUresult status = sg_enter({index}, {need});\n\tif (status != CUDA_SUCCESS)\n\t\treturn status;\n{run}}}\n")


def write_source(path, rows, prototypes):
    with open(path, "w") as out:
        out.write(BANNER + '#include "tests/softgpu/driver/core.h"\n#include "tests/softgpu/driver/resolve.h"\n\n'
                  '#define SG_EXPORT __attribute__((visibility("default")))\n\n')
        out.write(PROFILER + "\n")
        out.write("\n".join(wrapper(index, row, prototypes) for index, row in enumerate(rows)))
        out.write(f"\nconst size_t sg_symbol_count = {len(rows)};\n\nconst struct sg_symbol sg_symbols[] = {{\n")
        for row in rows:
            out.write(f'\t{{"{row["symbol"]}", "{row["gpa_name"]}", {row["min_version"]}, {row["flag"]}, (void (*)(void))(uintptr_t){row["symbol"]}}},\n')
        out.write(f"}};\n\n_Atomic uint64_t sg_calls[{len(rows)}];\n")


def main():
    symbols, header, source, version_map = sys.argv[1:5]
    rows, prototypes = read_symbols(symbols), read_prototypes(sys.argv[5:])
    missing = sorted(set(prototypes) - {row["symbol"] for row in rows})
    if missing:
        sys.exit(f"symbols.tsv does not know {', '.join(missing)}: add a row for each")
    write_header(header, prototypes)
    write_source(source, rows, prototypes)
    with open(version_map, "w") as out:
        out.write("{\n\tglobal:\n" + "".join(f"\t\t{row['symbol']};\n" for row in rows) + "\t\tsoftgpu_*;\n\tlocal:\n\t\t*;\n};\n")


if __name__ == "__main__":
    main()
