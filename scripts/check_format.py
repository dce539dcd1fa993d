#!/usr/bin/env python3
"""clang-format agrees with every C file. Arguments: files (default: all). `--fix` rewrites them instead."""
import re
import shutil
import subprocess
import sys

import checks

VERSION = 14


def main():
    arguments = sys.argv[1:]
    fix = "--fix" in arguments
    named = [argument for argument in arguments if argument != "--fix"]
    tool = shutil.which(f"clang-format-{VERSION}") or shutil.which("clang-format")
    if not tool:
        checks.skip(f"no clang-format {VERSION}")
    said = subprocess.run([tool, "--version"], capture_output=True, text=True, check=True).stdout
    found = re.search(r"version (\d+)", said)
    if not found or int(found.group(1)) != VERSION:
        checks.skip(f"clang-format {VERSION} decides, this is: {said.strip()}")
    paths = named or [str(path) for path in checks.files(".c", ".h")]
    if not paths:
        return checks.report(["no C files found"], "")
    ran = subprocess.run([tool, "-i" if fix else "--dry-run", "--Werror", *paths], cwd=checks.ROOT, capture_output=True, text=True,
                         check=False)
    wrong = sorted({line.split(":")[0] for line in ran.stderr.splitlines() if "code should be clang-formatted" in line})
    problems = [f"{path}: run ./scripts/format" for path in wrong]
    if ran.returncode and not wrong:
        problems.append(ran.stderr.strip() or f"clang-format ended with {ran.returncode}")
    return checks.report(problems, f"{len(paths)} files {'formatted' if fix else 'are formatted'}")


if __name__ == "__main__":
    sys.exit(main())
