#!/usr/bin/env python3
"""clang-tidy on every C file of ours that a build compiles. Argument: a build folder made with clang."""
import concurrent.futures
import json
import os
import pathlib
import shutil
import subprocess
import sys

import checks


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    tool = shutil.which("clang-tidy-14") or shutil.which("clang-tidy")
    if not tool:
        checks.skip("no clang-tidy")
    commands = json.loads((build / "compile_commands.json").read_text())
    compiled = {(pathlib.Path(entry["directory"]) / entry["file"]).resolve() for entry in commands}
    ours = sorted(path for path in compiled if (checks.ROOT in path.parents) and build not in path.parents
                  and not path.relative_to(checks.ROOT).parts[0].startswith((".", "build")) and path.suffix == ".c")

    def tidy(path):
        ran = subprocess.run([tool, "--quiet", "-p", str(build), str(path)], cwd=checks.ROOT, capture_output=True, text=True,
                             check=False)
        return (ran.stdout.strip() or ran.stderr.strip()) if ran.returncode else ""

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        problems = [said for said in pool.map(tidy, ours) if said]
    if not ours:
        problems.append("no C files found in compile_commands.json")
    return checks.report(problems, f"{len(ours)} files pass clang-tidy")


if __name__ == "__main__":
    sys.exit(main())
