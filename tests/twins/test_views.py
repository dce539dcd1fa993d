"""Read-only views in C: each scene of views.c, in each mode that makes a difference."""
import os

import pytest
from player import play as play_scene

MIRRORS = {"frees_in_time", "failed_unmap", "failed_unmap_late", "stuck_twin", "broken_growth", "owner_recycles", "no_leak", "unseen", "unseen_end", "served", "served_no_leak"}


def play(program, scene, *arguments, **named):
    return play_scene("mirrors" if scene in MIRRORS else program, scene, *arguments, **named)


QUIET = ["of_a_view", "mapping_calls", "grows", "follows_access", "frees_in_time", "failed_unmap", "failed_unmap_late", "stuck_twin", "reasons",
         "no_room", "second_is_free", "owner_recycles", "threads", "contexts", "capture", "untouched", "forked", "unseen", "unseen_end", "not_counted"]


@pytest.mark.parametrize("mode", ["log", "strict"])
@pytest.mark.parametrize("scene", [name for name in QUIET if name != "contexts"])
def test_is_silent(scene, mode, tmp_path):
    done = play("views", scene, tmp_path, mode)
    assert done.returncode == 0, done
    assert not done.violations, done


def test_second_context(tmp_path):
    done = play("views", "contexts", tmp_path)
    assert done.returncode == 0, done


def test_writes_fail_in_log_by_the_driver(tmp_path):
    done = play("views", "writes_fail", tmp_path)
    assert done.returncode == 0, done
    assert not done.violations, "nothing was written"


def test_writes_are_denied_before_the_driver(tmp_path):
    done = play("views", "writes_fail", tmp_path, "deny")
    assert done.returncode == 0, done
    assert [record["action"] for record in done.violations] == ["denied"] * 8
    assert {record["range"]["label"] for record in done.violations} == {"read-only view"}


def test_strict_ends_before_the_write(tmp_path):
    done = play("views", "writes_fail", tmp_path, "strict")
    assert done.returncode == 86, done
    assert [record["action"] for record in done.violations] == ["stopped"]


@pytest.mark.parametrize("mode", ["log", "deny"])
def test_memory_operation_is_refused_in_every_mode(mode, tmp_path):
    done = play("views", "memory_operation", tmp_path, mode)
    assert done.returncode == 0, done
    assert [(record["action"], record["api"]) for record in done.violations] == [
        ("denied", "cuStreamWriteValue32_v2"), ("denied", "cuStreamWriteValue64_v2"), ("denied", "cuStreamBatchMemOp_v2")]


def test_memory_operation_in_strict(tmp_path):
    assert play("views", "memory_operation", tmp_path, "strict").returncode == 86


@pytest.mark.parametrize("scene", ["served", "served_no_leak"])
def test_of_served_memory(scene, tmp_path):
    done = play("views", scene, tmp_path, options=":twins=all")
    assert done.returncode == 0 and not done.violations, done


def test_off(tmp_path):
    done = play("views", "off", tmp_path, options=":twins=off")
    assert done.returncode == 0, done


def test_broken_growth_is_said_once(tmp_path):
    done = play("views", "broken_growth", tmp_path)
    assert done.returncode == 0, done
    said = [line for line in done.stderr.splitlines() if "no read-only twin" in line]
    assert len(said) == 1 and "CUDA error 2" in said[0], done


#: AddressSanitizer keeps what is freed for a while, 256 MB of it: in a comparison of the process's memory that would be a leak.
FORGETFUL = {"ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":quarantine_size_mb=1"}


def test_no_leak(tmp_path):
    done = play("views", "no_leak", tmp_path, argument=100000, timeout=300, **FORGETFUL)
    assert done.returncode == 0, done
