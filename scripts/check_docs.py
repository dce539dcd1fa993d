#!/usr/bin/env python3
"""Documents agree with the code: relative links lead somewhere, scripts that are named exist, README.md's tables hold each
option of `help=1` and each function of the C API, with no name too many, and shim/report/LOG.md each
word that a record is made of. The version is one and the same everywhere.

The options' names come from options_help() itself, through a program compiled here.
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import checks

DEMO = pathlib.Path("scripts/demo_program.py")
HEADER = pathlib.Path("shim/cuconst.h")
OPTIONS_SOURCE = pathlib.Path("shim/verdict/options.c")
JSON_SOURCE, LOG = pathlib.Path("shim/report/json.c"), pathlib.Path("shim/report/LOG.md")
MAIN = '#include <stdio.h>\n#include "shim/verdict/options.h"\nint main(void) { return fputs(options_help(), stdout) < 0; }\n'
LINK = re.compile(r"\]\(([^)#\s]+)(#[^)\s]*)?\)")
SCRIPT = re.compile(r"(?<![\w/.])(?:\./)?(scripts/[\w.-]+\w)")


def link_problems(path):
    body = checks.text(path)
    for number, line in enumerate(body.split("\n"), 1):
        for target, _ in LINK.findall(line):
            if re.match(r"[a-z]+:", target):
                continue
            if not (checks.ROOT / path.parent / target).exists():
                yield f"{path}:{number}: link to {target}, which does not exist"
        for script in SCRIPT.findall(line):
            if not (checks.ROOT / script).exists():
                yield f"{path}:{number}: names {script}, which does not exist"


def section(readme, title):
    """The text under a heading, up to the next heading of the same depth or less."""
    found = re.search(rf"^(#+) {re.escape(title)}$", readme, re.M)
    if not found:
        return ""
    rest = readme[found.end():]
    end = re.search(rf"^#{{1,{len(found.group(1))}}} ", rest, re.M)
    return rest[:end.start()] if end else rest


def first_column(table):
    """Names between backquotes in the first cell of each row."""
    names = set()
    for line in table.split("\n"):
        if line.startswith("| `"):
            names |= set(re.findall(r"`([A-Za-z_]+)", line.split("|")[1]))
    return names


def version_problems(readme):
    """One version everywhere: the build's, the header's, the module's, the README's."""
    number = int(re.search(r"#define CUCONST_VERSION (\d+)", checks.text(HEADER)).group(1))
    right = f"{number // 10000}.{number // 100 % 100}.{number % 100}"
    places = {"meson.build": r"version: '([^']*)'", "tools/python/cuconst/__init__.py": r'__version__ = "([^"]*)"'}
    for path, pattern in places.items():
        found = re.search(pattern, checks.text(pathlib.Path(path)))
        if not found or found.group(1) != right:
            yield f"{path}: its version is not {right}, which {HEADER} has"
    if right not in section(readme, "Status"):
        yield f"README.md: its status is not that of {right}, which {HEADER} has"


def sample_problems(readme):
    """The record that README.md shows names the lines of the demo's program that it is about."""
    lines = checks.text(DEMO).split("\n")
    real = [number for text in ("# bug 1", "cuconst.protect(") for number, line in enumerate(lines, 1) if text in line]
    shown = [int(number) for number in re.findall(re.escape(str(DEMO)) + r":(\d+)", readme)]
    if shown != real:
        yield f"README.md: shows lines {shown} of {DEMO}, where bug 1 and protect() are on {real}"


def field_problems():
    """Every word that json.c writes by itself, field or value, stands in LOG.md."""
    words = set(re.findall(r'"([a-z]\w+)"', checks.text(JSON_SOURCE))) - {"true", "false"}
    named = set(re.findall(r"`(\w+)`", checks.text(LOG)))
    yield from (f"{LOG}: {word}, which {JSON_SOURCE} writes, is not documented" for word in sorted(words - named))
    if not words:
        yield f"{JSON_SOURCE}: no fields found"


def help_text():
    """options_help(), or None when it does not compile. The rest of its file, and so what that calls, is not linked."""
    with tempfile.TemporaryDirectory() as folder:
        source, program = pathlib.Path(folder) / "main.c", pathlib.Path(folder) / "help"
        source.write_text(MAIN)
        command = [os.environ.get("CC", "cc"), "-std=gnu11", "-D_GNU_SOURCE", f"-I{checks.ROOT}", "-ffunction-sections",
                   "-fdata-sections", "-Wl,--gc-sections", str(source), str(checks.ROOT / OPTIONS_SOURCE), "-o", str(program)]
        try:
            built = subprocess.run(command, capture_output=True, text=True, check=False)
            if built.returncode:
                print(f"note: {OPTIONS_SOURCE} does not compile:\n{built.stderr.strip()[:800]}")
                return None
            return subprocess.run([str(program)], capture_output=True, text=True, check=True, timeout=10).stdout
        except OSError as error:
            print(f"note: {error}")
            return None


def differ(what, documented, real, problems):
    problems += [f"README.md: {what} {name} is not documented" for name in sorted(real - documented)]
    problems += [f"README.md: {what} {name} does not exist" for name in sorted(documented - real)]


def main():
    problems = []
    documents = checks.files(".md")
    for path in documents:
        problems += link_problems(path)
    readme = checks.text(pathlib.Path("README.md"))
    problems += sample_problems(readme)
    problems += version_problems(readme)
    problems += field_problems()

    if (checks.ROOT / OPTIONS_SOURCE).is_file():
        said = help_text()
        if said is not None:
            # One option a line: "  mode=log|deny|strict   meaning"; prose lines have no "=" in their first word.
            real = {found.group(1) for found in map(re.compile(r"^\s+([a-z_]+)=").match, said.splitlines()) if found}
            if not real:
                problems.append("options_help() lists no options")
            differ("option", first_column(section(readme, "Options")), real, problems)
        else:
            problems.append(f"{OPTIONS_SOURCE}: the options could not be read")

    header = checks.text(HEADER)
    functions = set(re.findall(r"^(?:cuconst_result |int |uint64_t |void \*|const char \*)(cuconst_\w+)\(", header, re.M))
    differ("function", {name for name in first_column(section(readme, "C")) if name.startswith("cuconst_")}, functions,
           problems)
    if not functions:
        problems.append(f"{HEADER}: no functions found")
    return checks.report(problems, f"{len(documents)} documents")


if __name__ == "__main__":
    sys.exit(main())
