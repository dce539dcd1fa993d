"""Time per step, for overhead.py: the steps in blocks, and of the blocks the fast quarter's slowest, which noise from outside reaches least."""
import sys
import time

BLOCKS = 40


def run(step, synchronise, steps):
    """`step` a number of times. Prints the seconds of one when the program was asked to, by the argument "seconds"."""
    times = []
    for _ in range(BLOCKS):
        began = time.perf_counter()
        for _ in range(max(1, steps // BLOCKS)):
            step()
        synchronise()
        times.append((time.perf_counter() - began) / max(1, steps // BLOCKS))
    if "seconds" in sys.argv:
        print("seconds", sorted(times)[BLOCKS // 4])
        return True
    return False
