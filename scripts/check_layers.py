#!/usr/bin/env python3
"""Folders include of each other only what is written down: for shim/ in the table "may include" of shim/README.md, whose
backquoted paths are folders (`kernels/`) or headers (`report/site.h`); for the others below. A new dependency needs its place
there, with the reason, or to be turned round. Nothing outside tests/ includes anything in there. A generated header has no
folder in its name and is its own folder's business.
"""
import pathlib
import re
import sys

import checks

TABLE = pathlib.Path("shim/README.md")
INCLUDE = re.compile(r'^\s*#\s*include\s+(?:"([^"]+)"|<(cuda[^>]*)>)', re.M)
# As their own README.md files say.
OTHERS = {
    "registry": set(),
    "tools": {"shim/cuconst.h", "shim/verdict/status.h", "shim/report/library_file.h", "shim/kernels/"},
    "tests/softgpu": set(),
}
NO_CUDA = {"registry", "tools", "shim/report"}


def rooted(path):
    return path if path.startswith("registry/") else f"shim/{path}"


def shim_rules():
    """Of each folder of shim/, what it may include of others; and the leaves, which each may."""
    text = checks.text(TABLE)
    rules = {}
    for line in text.split("\n"):
        cells = [cell.strip() for cell in line.split("|")]
        found = re.fullmatch(r"`(\w+)/`", cells[1]) if len(cells) == 5 else None
        if found:
            rules[f"shim/{found.group(1)}"] = {rooted(path) for path in re.findall(r"`([\w/]*/(?:\w+\.h)?)`", cells[3])}
    leaves = re.search(r"^Leaves that each folder may include: (.*?)\n\n", text, re.M | re.S)
    return rules, {rooted(name) for name in re.findall(r"`([\w/]+\.h)`", leaves.group(1))} if leaves else set()


def folder_of(path, folders):
    """The deepest of these folders that holds the path; the path's own where none does."""
    holding = [folder for folder in folders if path.startswith(folder + "/")]
    return max(holding, key=len) if holding else path.rpartition("/")[0]


def main():
    rules, leaves = shim_rules()
    problems = [] if rules and leaves else [f"{TABLE}: no rules found"]
    for folder in sorted({str(path.parent) for path in checks.files(".c") if path.parts[:1] == ("shim",) and len(path.parts) > 2}):
        if folder not in rules:
            problems.append(f"{TABLE}: says nothing about {folder}")
    for folder, allowed in rules.items():
        problems += [f"{TABLE}: {folder} may include {path}, which does not exist" for path in sorted(allowed)
                     if not (checks.ROOT / path).exists()]
        allowed |= leaves
    rules |= {"shim": leaves} | OTHERS
    used, count = {folder: set() for folder in rules}, 0
    for path in checks.files(".c", ".h", ".S"):
        folder = folder_of(path.as_posix(), rules)
        for header, cuda in INCLUDE.findall(checks.text(path)):
            count += 1
            if cuda and folder in NO_CUDA:
                problems.append(f"{path}: <{cuda}>, and {folder} knows nothing of CUDA")
            if "/" not in header or folder_of(header, rules) == folder:
                continue
            fits = {rule for rule in rules.get(folder, ()) if header == rule or rule.endswith("/") and header.startswith(rule)}
            used.get(folder, set()).update(fits)
            if folder in rules and not fits:
                problems.append(f"{path}: {folder} may not include {header}: {TABLE} says what it may")
            elif header.startswith("tests/") and path.parts[0] != "tests":
                problems.append(f"{path}: includes {header} of the tests")
    problems += [f"{TABLE}: {folder} may include {path}, and does not" for folder in sorted(used) if folder.startswith("shim/")
                 for path in sorted(rules[folder] - used[folder] - leaves)]
    return checks.report(problems, f"{count} includes keep to the layers")


if __name__ == "__main__":
    sys.exit(main())
