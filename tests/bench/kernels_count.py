#!/usr/bin/env python3
"""Instructions of the analysis of kernels, by callgrind: kernels_count.py OLD NEW FOLDER [COUNT].

OLD and NEW are build folders (--buildtype=release) of two versions, FOLDER is what `library_survey --keep=FOLDER` left. The largest
COUNT (50) of its kernels are looked at, and for each the counts and their ratio told. A busy machine does not change them.
"""

import pathlib
import re
import statistics
import subprocess
import sys


def count(build, image):
    bench = pathlib.Path(build) / "tests/bench/kernels_bench"
    command = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", "--toggle-collect=paths_of_cubin", bench, "-1", image]
    ran = subprocess.run(command, capture_output=True, text=True, check=True)
    return int(re.search(r"Collected : (\d+)", ran.stderr).group(1))


def main(old, new, folder, most="50"):
    kernels = list(pathlib.Path(folder).glob("*.cubin"))
    counts = sorted(((count(old, image), image) for image in kernels), reverse=True)[: int(most)]
    ratios = []
    for before, image in counts:
        after = count(new, image)
        ratios.append(after / before)
        print(f"{image.stem:>8} {before / 1e6:8.2f} M {after / 1e6:8.2f} M {after / before:6.2f}")
    if ratios:
        print(f"{len(ratios)} kernels, ratio: median {statistics.median(ratios):.2f}, {min(ratios):.2f} to {max(ratios):.2f}")
    return not ratios


if __name__ == "__main__":
    if len(sys.argv) not in (4, 5):
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
