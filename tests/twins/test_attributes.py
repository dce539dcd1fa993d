"""Pointer attributes of protected memory, in each mode."""
import pytest
from player import play


@pytest.mark.parametrize("mode,flags", [("log", 3), ("deny", 1), ("strict", 1)])
def test_of_a_range(mode, flags, tmp_path):
    done = play("attributes", "of_a_range", tmp_path, mode, argument=flags)
    assert done.returncode == 0 and not done.violations, done


@pytest.mark.parametrize("mode", ["log", "deny", "strict"])
@pytest.mark.parametrize("scene", ["of_a_view", "of_an_owner", "wrong"])
def test_others(scene, mode, tmp_path):
    done = play("attributes", scene, tmp_path, mode)
    assert done.returncode == 0, done


def test_of_served_memory(tmp_path):
    done = play("attributes", "of_a_range", tmp_path, "deny", argument=1, options=":twins=all")
    assert done.returncode == 0, done
