"""Runs a program's step: a number of times, or in blocks with and without the hooks in turns, by the argument "alternate=SECONDS"."""
import sys

import alternate


def run(step, synchronise, steps):
    """True: it was measured, and the figures were printed."""
    for argument in sys.argv:
        if argument.startswith("alternate="):
            alternate.measure(step, synchronise, float(argument.partition("=")[2]))
            return True
    for _ in range(steps):
        step()
    synchronise()
    return False
