"""Random courses of writes, passed at once or judged: what is counted, told and recorded is the same, but for the call's name."""
import pytest
import random_course

STEPS = 200


# Odd ones write nothing protected, so that they go on in strict.
@pytest.mark.parametrize("seed", range(1, 5))
@pytest.mark.parametrize("options", ["mode=log", "mode=deny", "mode=strict", "mode=strict:twins=all", "mode=log:twins=all"])
def test_the_same_at_once(seed, options, tmp_path):
    plain, rows = (random_course.play("write_random", how, seed, STEPS, options, tmp_path, {"api", "native"}) for how in ("plain", "rows"))
    if "strict" not in options or seed % 2:
        random_course.ended(plain, STEPS)
    random_course.same(plain, rows)
