"""Forks, spawned programs, preloads of other kinds, ends in the middle."""
import os
import shutil
import subprocess

import pytest

from harness import BUILD, LIBRARY, environment, kinds, records, scene, turn


def test_forks_while_threads_launch(tmp_path):
    done = scene("process", "fork_busy", options=f"text=0:log={tmp_path}/log.%p")
    assert done.status == 0, done
    found = records(tmp_path)
    parent = found[0]["pid"] if len({record["pid"] for record in found}) == 1 else max(
        found, key=lambda record: record["seq"])["pid"]
    # A child that ends by exit() has seen its own (failing) calls, and nothing else.
    for record in found:
        assert record["pid"] == parent or (record["kind"], record["violations"], record["ranges_ever"]) == ("summary", 0, 0)


def test_forks_while_a_thread_is_in_the_loader(tmp_path):
    done = scene("process", "fork_in_loader", options=f"text=0:log={tmp_path}/log.%p")
    assert done.status == 0, done


@pytest.mark.parametrize("when,violations", [("before", None), ("after", 1)])
def test_spawned_programs(when, violations, tmp_path):
    done = scene("process", "spawn", when, options=f"text=0:log={tmp_path}/log.%p")
    assert done.status == 0 and done.err == "", done
    assert kinds(records(tmp_path)).get("violation") == violations


def test_grandchildren(tmp_path):
    assert scene("process", "grandchild", options=f"text=0:log={tmp_path}/log.%p").status == 0
    assert kinds(records(tmp_path)) == {"violation": 1, "summary": 1}


@pytest.mark.parametrize("mode,status", [("log", 0), ("deny", 0), ("strict", 86)])
def test_exit_while_threads_are_in_calls(mode, status, tmp_path):
    done = scene("process", "exit_busy", options=f"mode={mode}:text=0:log={tmp_path}/log.%p:site_limit=1000000")
    assert done.status == status, done
    found = records(tmp_path)
    assert sum(record["kind"] == "summary" for record in found) == 1


def test_relative_preload(tmp_path):
    done = scene("outputs", "violate", 2, options=f"text=0:log={tmp_path}/log", preload="./libcuconst.so", cwd=LIBRARY.parent)
    assert (done.status, done.out) == (0, "done\n"), done
    assert kinds(records(tmp_path)) == {"violation": 2, "summary": 1}


@pytest.mark.parametrize("order", ["before", "after"])
def test_next_to_another_preload(order, tmp_path):
    other = BUILD / "tests" / "faults" / "libno_memory.so"
    both = [other, LIBRARY] if order == "before" else [LIBRARY, other]
    done = scene("outputs", "violate", 2, options=f"text=0:log={tmp_path}/log", preload=":".join(map(str, both)))
    assert (done.status, done.out) == (0, "done\n"), done
    assert kinds(records(tmp_path)) == {"violation": 2, "summary": 1}


@pytest.mark.parametrize("command", [["/bin/true"], ["/bin/ls", "/"], ["/bin/sh", "-c", "exec 2>&-; echo out | cat"]],
                         ids=["true", "ls", "pipeline"])
def test_programs_without_a_driver(command, tmp_path):
    """Not a word, not even about bad options: nothing is read before a first driver call."""
    plain = subprocess.run(command, capture_output=True, timeout=20)
    env = environment(f"nonsense:log={tmp_path}/log:help=1")
    env.pop("LD_LIBRARY_PATH", None)
    done = subprocess.run(command, capture_output=True, timeout=20, env=env)
    assert (done.returncode, done.stdout, done.stderr) == (plain.returncode, plain.stdout, plain.stderr)
    assert list(tmp_path.iterdir()) == []


def test_library_that_was_removed_after_the_start(tmp_path):
    copy = tmp_path / "libcuconst.so"
    shutil.copy(LIBRARY, copy)
    with turn():
        running = subprocess.Popen([BUILD / "tests" / "faults" / "faults_outputs", "violate", "50000"], stdout=subprocess.PIPE,
                                   env=environment(f"text=0:log={tmp_path}/log", preload=copy))
        while not os.path.exists(tmp_path / "log") and running.poll() is None:
            pass
        copy.unlink()
        assert running.communicate(timeout=30)[0] == b"done\n" and running.returncode == 0
    assert records(tmp_path)[-1]["violations"] == 50000
