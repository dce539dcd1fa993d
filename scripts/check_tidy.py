#!/usr/bin/env python3
"""clang-tidy on every C file of ours that a build compiles, once each. Argument: a build folder made with clang.

The path-sensitive analyzer, which takes most of the time, looks at what ships: registry/, shim/ and tools/. Tests get all other checks.
"""
import concurrent.futures
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import checks

SHIPPED = ("registry", "shim", "tools")


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    tool = shutil.which("clang-tidy-14") or shutil.which("clang-tidy")
    if not tool:
        checks.skip("no clang-tidy")
    # A file that several targets compile has several entries, and clang-tidy would go through all of them.
    commands = {(pathlib.Path(entry["directory"]) / entry["file"]).resolve(): entry
                for entry in json.loads((build / "compile_commands.json").read_text())}
    ours = sorted(path for path in commands if (checks.ROOT in path.parents) and build not in path.parents
                  and not path.relative_to(checks.ROOT).parts[0].startswith((".", "build")) and path.suffix == ".c")

    def tidy(path):
        # A build for release has no assertions, but they state what the analyzer cannot know.
        arguments = ["--extra-arg=-UNDEBUG"] if path.relative_to(checks.ROOT).parts[0] in SHIPPED else ["--checks=-clang-analyzer-*"]
        ran = subprocess.run([tool, "--quiet", "-p", folder, *arguments, str(path)], cwd=checks.ROOT, capture_output=True, text=True,
                             check=False)
        return (ran.stdout.strip() or ran.stderr.strip()) if ran.returncode else ""

    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        (pathlib.Path(folder) / "compile_commands.json").write_text(json.dumps(list(commands.values())))
        problems = [said for said in pool.map(tidy, ours) if said]
    if not ours:
        problems.append("no C files found in compile_commands.json")
    return checks.report(problems, f"{len(ours)} files pass clang-tidy")


if __name__ == "__main__":
    sys.exit(main())
