"""Random courses of launches, answered from memory or judged anew: what is counted, told and recorded is the same."""
import re

import pytest
import random_course

STEPS = 300
# Launches of which it is known that they are clean are not judged again.
CLEAN = re.compile(r"(clean|checked) \d+")
# What is found by checks.
CHECKS = re.compile(r"(verified|unverified|violations|ended:|check:) \d+")


def play(how, seed, options, tmp_path):
    status, out, errors, told = random_course.play("launch_random", how, seed, STEPS, options, tmp_path, {"clean", "checked"})
    out = [CLEAN.sub("", line) for line in out]
    # Handles of a module that was loaded again are the old ones or not, by chance: what was counted of them goes on, or
    # begins anew.
    if seed % 2:
        return status, [CHECKS.sub("", line) for line in out], errors, []
    return status, out, errors, told


# Of four seeds one each: reloads its module, stores nothing protected, both, neither.
@pytest.mark.parametrize("seed", range(4, 8))
@pytest.mark.parametrize("options", ["mode=log", "mode=deny", "mode=strict", "mode=strict:twins=all"])
def test_the_same_from_memory(seed, options, tmp_path):
    memory, anew = (play(how, seed, options, tmp_path) for how in ("list", "block"))
    if "strict" not in options or seed % 4 > 1:
        random_course.ended(memory, STEPS)
    random_course.same(memory, anew)
