#!/usr/bin/env python3
"""Prints the folder that holds cuda.h 13.0 or newer. One argument, may be left out or empty: the folder to prefer."""
import os
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
MINIMUM = 13000


def version(folder):
    try:
        text = (folder / "cuda.h").read_text(errors="replace")
    except OSError:
        return 0
    found = re.search(r"^#define\s+CUDA_VERSION\s+(\d+)", text, re.M)
    return int(found.group(1)) if found else 0


def main():
    wanted = sys.argv[1] if len(sys.argv) > 1 else ""
    places = [wanted] if wanted else []
    if not wanted:
        home = os.environ.get("CUDA_HOME")
        places += [os.path.join(home, "include")] if home else []
        places += ["/usr/local/cuda/include"]
        places += sorted(map(str, ROOT.glob(".deps/**/include")))
    seen = []
    for place in places:
        found = version(pathlib.Path(place))
        if found >= MINIMUM:
            print(place)
            return 0
        if found:
            seen.append(f"{place} has CUDA {found // 1000}.{found % 1000 // 10}")
    sys.exit("cuda.h 13.0 or newer was not found" + (f" ({'; '.join(seen)})" if seen else "")
             + ": set CUDA_HOME, pass -Dheaders=DIR, or run ./scripts/setup, which fetches NVIDIA's header wheel")


if __name__ == "__main__":
    main()
