#!/usr/bin/env python3
"""Every header compiles alone, twice included; shim/cuconst.h, the installed one, also as C++ and as C without _GNU_SOURCE.

Arguments: the folder of cuda.h, the build folder (for generated headers), then the C compiler's command.
"""
import concurrent.futures
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import checks

PUBLIC = pathlib.Path("shim/cuconst.h")
C = ["-x", "c", "-std=gnu11", "-D_GNU_SOURCE"]
# As its meson.build: the driver's side of cuda.h, with the forms that programs no longer get.
DEFINED = {"tests/softgpu/driver": ["-D__CUDA_API_VERSION_INTERNAL"]}
PUBLIC_WAYS = {
    "C99": ["-x", "c", "-std=c99"],
    "C11": ["-x", "c", "-std=gnu11"],
    "C++11": ["-x", "c++", "-std=c++11", "-pedantic"],
    "C++20": ["-x", "c++", "-std=c++20"],
}


def compile_alone(compiler, includes, header, way, flags, folder):
    source = pathlib.Path(folder) / f"{header.as_posix().replace('/', '_')}.{way}.c"
    line = f'#include "{header}"\n'
    source.write_text(line + line + "int main(void) { return 0; }\n")
    ran = subprocess.run([*compiler, *flags, "-Wall", "-Wextra", "-Werror", "-Wno-unused-function", "-Wno-unused-parameter",
                          "-fsyntax-only", *includes, str(source)],
                         capture_output=True, text=True, check=False)
    if ran.returncode == 0:
        return ""
    first = next((line for line in ran.stderr.splitlines() if "error" in line), ran.stderr.strip())
    return f"{header}: does not compile alone as {way}: {first}"


def main():
    cuda, build, compiler = sys.argv[1], pathlib.Path(sys.argv[2]), sys.argv[3:]
    generated = sorted({f"-I{path.parent}" for path in build.rglob("*.h") if not path.parent.name.endswith(".p")})
    includes = [f"-I{checks.ROOT}", *generated, "-isystem", cuda]
    headers = checks.files(".h")
    jobs, cplusplus = [], "g++" if "gcc" in os.path.basename(compiler[-1]) or compiler[-1] == "cc" else "clang++"
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        def submit(command, header, way, flags):
            jobs.append(pool.submit(compile_alone, command, includes, header, way, flags, folder))
        for header in headers:
            submit(compiler, header, "C", C + DEFINED.get(header.parent.as_posix(), []))
        for way, flags in PUBLIC_WAYS.items():
            if way.startswith("C++") and not shutil.which(cplusplus):
                print(f"note: no {cplusplus}, {PUBLIC} was not tried as {way}")
                continue
            submit([cplusplus] if way.startswith("C++") else compiler, PUBLIC, way, flags)
    problems = [job.result() for job in jobs if job.result()]
    if not headers:
        problems.append("no headers found")
    return checks.report(problems, f"{len(headers)} headers, {PUBLIC} also as {', '.join(PUBLIC_WAYS)}")


if __name__ == "__main__":
    sys.exit(main())
