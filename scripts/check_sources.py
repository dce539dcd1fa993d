#!/usr/bin/env python3
"""Rules for every file: below 600 lines, no hidden characters, one kind of indentation. Every folder is named in
the README.md above it, and has one of its own unless it is deeper than shim/doors. Of what is no test, every file of code is
named in its folder's documents.
"""
import fnmatch
import re
import sys
import unicodedata

import checks

CODE = {".c", ".h", ".S", ".def", ".map", ".py", ".sh", ".build", ".txt", ".md", ".toml", ".yaml", ""}
COUNTED = {".c", ".h", ".S", ".py", ".sh", ".md", ".build", ""}
LONGEST = 599
# Tables and texts that are data: one row each, or not ours to cut.
LONG_BY_NATURE = {"LICENSE"}
TABS = {".c", ".h", ".S"}
SPACES = {".py", ".md", ".build", ".yaml", ".toml"}
DOCUMENTED = {"registry", "shim", "tools", "scripts"}
GENERATED_FOLDERS = {"data", "corpus", "golden"}


def hidden(character):
    """Characters that make code read as something else: formats, bidirectional marks, odd spaces, controls."""
    kind = unicodedata.category(character)
    return kind in ("Cf", "Co", "Cc", "Zl", "Zp", "Cs") and character not in "\n\t" or \
        kind == "Zs" and character != " "


def line_problems(path, lines):
    before = ""
    for number, line in enumerate(lines, 1):
        where = f"{path}:{number}"
        bad = {f"U+{ord(character):04X}" for character in line if hidden(character)}
        if bad:
            yield f"{where}: hidden character {', '.join(sorted(bad))}"
        if line != line.rstrip():
            yield f"{where}: trailing space"
        indent = re.match(r"[ \t]*", line).group()
        if " \t" in indent:
            yield f"{where}: a tab after a space"
        if path.suffix in SPACES and "\t" in indent:
            yield f"{where}: tab in a file that is indented with spaces"
        # Alignment may add any number of spaces to tabs; spaces alone align with an opening bracket in column 0 (or are " *").
        if path.suffix in TABS and re.match(r" {1,7}[^ *]", line) and not re.match(r" {0,7}\w.*,$", before):
            yield f"{where}: indented with spaces"
        before = line


def readme_problems(folders):
    for folder in sorted(folders):
        if any(part.startswith(".") for part in folder.parts) or GENERATED_FOLDERS & set(folder.parts):
            continue
        own = (checks.ROOT / folder / "README.md").is_file()
        if len(folder.parts) <= 2 and not own:
            yield f"{folder}: no README.md"
        if len(folder.parts) >= 2:
            above = next(parent for parent in folder.parents if (checks.ROOT / parent / "README.md").is_file())
            if f"{folder.name}/" not in checks.text(above / "README.md"):
                yield f"{folder}: {above}/README.md does not name {folder.name}/"


def unnamed_problems(paths):
    """A newcomer finds each file by its folder's README.md, or a document that lies beside it. `serve*.[ch]` names many."""
    said = {}
    for path in paths:
        if path.suffix == ".md":
            said.setdefault(path.parent, set()).update(re.findall(r"[\w-]*\w[\w*-]*", checks.text(path)))
    for path in paths:
        if path.parts[0] not in DOCUMENTED or path.suffix in (".h", ".md", ".build") or path.stem.startswith((".", "__")):
            continue
        folder = next(parent for parent in path.parents if parent in said)
        if not any(fnmatch.fnmatchcase(path.stem, word) for word in said[folder]):
            yield f"{path}: {folder}/README.md does not say what it is for"


def main():
    problems = []
    paths = checks.files()
    for path in paths:
        if path.suffix not in CODE or GENERATED_FOLDERS & set(path.parts):
            continue
        lines = checks.text(path).split("\n")
        if lines and lines[-1] == "":
            lines.pop()
        else:
            problems.append(f"{path}: no newline at the end")
        problems += line_problems(path, lines)
        if path.suffix in COUNTED and len(lines) > LONGEST and path.name not in LONG_BY_NATURE:
            problems.append(f"{path}: {len(lines)} lines; split it by subject below {LONGEST + 1}")
    folders = {parent for path in paths for parent in path.parents}
    problems += readme_problems(folders)
    problems += unnamed_problems(paths)
    if not paths:
        problems.append("no files found to check")
    return checks.report(problems, f"{len(paths)} files, {len(folders)} folders")


if __name__ == "__main__":
    sys.exit(main())
