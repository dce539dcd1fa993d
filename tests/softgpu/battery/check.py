#!/usr/bin/env python3
"""Runs the battery on the library that the loader finds and compares with what an H200 gave.

    check.py BATTERY LIST FOLDER_OF_H200_RESULTS
"""
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))


def main():
    battery, kernels, real = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        hashes, outputs = os.path.join(folder, "soft.tsv"), os.path.join(folder, "soft.bin")
        ran = subprocess.run([battery, kernels, hashes, outputs], timeout=120)
        same = subprocess.run([sys.executable, os.path.join(HERE, "compare.py"), os.path.join(real, "h200.tsv"), os.path.join(real, "h200.bin"),
                               hashes, outputs, "--explained", os.path.join(real, "explained.tsv")], timeout=120)
    return ran.returncode or same.returncode


if __name__ == "__main__":
    sys.exit(main())
