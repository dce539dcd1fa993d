"""Read-only twins on an NVIDIA GPU: the scenes of tests/twins on the real driver, views of one library's arrays in another library's hands, and the labelled
cases in strict with twins=all."""
import json
import pathlib
import subprocess
import sys

import pytest

import test_cases
from harness import BUILD, EXIT_VIOLATION, HERE, run

TWINS = HERE.parent / "twins"
sys.path.insert(0, str(TWINS))
from player import play  # noqa: E402

SWAP = {"SWAP_PTX": str(TWINS / "swap.ptx")}


@pytest.mark.parametrize("scene", ["of_a_view", "mapping_calls", "grows", "follows_access", "frees_in_time", "reasons", "second_is_free",
                                   "owner_recycles", "threads", "contexts", "capture", "unseen", "not_counted"])
def test_views(scene, tmp_path):
    done = play("mirrors" if scene in ("frees_in_time", "owner_recycles", "unseen") else "views", scene, tmp_path)
    assert done.returncode == 0 and not done.violations, done


def test_no_leak(tmp_path):
    done = play("mirrors", "no_leak", tmp_path, argument=100000, timeout=500)
    assert done.returncode == 0, done


@pytest.mark.parametrize("mode,status", [("log", 0), ("deny", 0), ("strict", EXIT_VIOLATION)])
@pytest.mark.parametrize("scene", ["writes_fail", "memory_operation"])
def test_writes_by_calls(scene, mode, status, tmp_path):
    done = play("views", scene, tmp_path, mode)
    assert done.returncode == status, done


@pytest.mark.parametrize("scene", ["reads", "difference", "packed", "captured", "overlapping", "exempt", "nested", "no_twin",
                                   "freed_and_mapped_again"])
def test_swapped_and_silent(scene, tmp_path):
    done = play("swap", scene, tmp_path, "strict", **SWAP)
    assert done.returncode == 0 and not done.violations, done


@pytest.mark.parametrize("scene,evidence", [("stores", "written"), ("store_extra", "written"), ("store_boxed", "written"), ("either", "written"),
                                            ("atomics", "written"), ("store_at_exit", "written"), ("pair", "changed"),
                                            ("pair_across", "changed"), ("in_place", "changed")])
def test_swapped_and_stopped(scene, evidence, tmp_path):
    done = play("swap", scene, tmp_path, "strict", **SWAP)
    assert done.returncode == EXIT_VIOLATION, done
    assert [record["evidence"] for record in done.violations] == [evidence] and done.violations[0]["kernel"], done


@pytest.mark.parametrize("scene,mode,status,violations", [
    ("view_stored", "log", 5, 1), ("view_stored", "strict", EXIT_VIOLATION, 1), ("view_refused", "deny", 0, 1), ("several", "log", 5, 1),
    ("own_fault", "log", 5, 0), ("view_in_graph", "log", 5, 1), ("view_stored_at_exit", "log", 0, 1),
    ("view_stored_at_exit", "strict", EXIT_VIOLATION, 1)])
def test_faults_are_explained_once(scene, mode, status, violations, tmp_path):
    done = play("faults", scene, tmp_path, mode, **SWAP)
    assert (done.returncode, len(done.violations)) == (status, violations), done


@pytest.mark.parametrize("mode,flags", [("log", 3), ("deny", 1), ("strict", 1)])
@pytest.mark.parametrize("twins", ["native", "all"])
def test_attributes(mode, flags, twins, tmp_path):
    done = play("attributes", "of_a_range", tmp_path, mode, argument=flags, options=f":twins={twins}")
    assert done.returncode == 0, done


# Owners whose memory has twins: JAX's always, PyTorch's with expandable segments (programs/views.py sets that), CuPy's with twins=all.
OWNERS = {"jax": "native", "torch": "native", "cupy": "all"}


def handed(owner, consumer, write):
    done = run(HERE / "programs" / "views.py", owner, consumer, write, options=[f"twins={OWNERS[owner]}"])
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    assert lines and lines[0] == {"read": consumer, "right": True}, done.said()
    return done, lines[1:]


@pytest.mark.parametrize("owner", OWNERS)
@pytest.mark.parametrize("consumer", ["cupy", "torch", "jax"])
def test_every_read_is_right(owner, consumer):
    done, _ = handed(owner, consumer, "read")
    assert done.status == 0 and not done.violations, done.said()


# A call of the driver's that writes is refused there, and the context lives; a kernel's store ends it.
CALLS = {"memset", "memcpy", "set", "zero_", "copy_", "sort"}  # sort(out=) sorts elsewhere, and copies
WRITES = {"cupy": ["setitem", "iadd", "out", "raw", "matmul", "random", "fft", "memset", "memcpy", "set", "dlpack"],
          "torch": ["mul_", "copy_", "zero_", "foreach", "sort", "mm", "index"]}


@pytest.mark.parametrize("owner", OWNERS)
@pytest.mark.parametrize("consumer,write", [(consumer, write) for consumer, writes in WRITES.items() for write in writes])
def test_every_write_fails(owner, consumer, write):
    done, (outcome,) = handed(owner, consumer, write)
    assert outcome["raised"], done.said()
    assert outcome["changed"] in (False, None), done.said()
    assert write in CALLS or outcome["context"] == "dead", done.said()
    if outcome["context"] == "dead":
        (record,) = done.violations
        assert record["fault"] and record["result"] in (700, 719), record
        assert record["kernel"] or record["candidates"], record


@pytest.mark.parametrize("owner", ["jax", "torch"])
def test_no_false_alarm_while_the_owner_recycles(owner):
    done = run(HERE / "programs" / "views_recycled.py", owner)
    (found,) = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    assert found["again"] > 100, done.said()
    assert (found["wrong"], found["violations"], found["inconclusive"]) == (0, 0, 0), found


@pytest.mark.parametrize("case", [c for c in test_cases.CASES if c not in ("R08", "R16")])
def test_cases_in_strict_with_twins(case):
    """The first write of each case is trapped by the hardware, or found as without twins; R29 reads only."""
    reason = test_cases.trouble(case)
    if reason:
        pytest.skip(reason)
    done = run(HERE / "cases" / f"{case}.py", mode="strict", options=["twins=all"])
    stopped = [r for r in done.violations if r["action"] == "stopped"]
    if case == "R29":
        assert done.status == 0 and not done.violations, done.said()
        return
    assert done.status == EXIT_VIOLATION and len(stopped) == 1, done.said()
    print(f"{case}: {stopped[0]['evidence']}{' by fault' if stopped[0]['fault'] else ''}: {done.stderr.splitlines()[0]}")
    assert '"kind": "done"' not in done.stdout, "the program must end at its first find"


def gpus():
    return subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True).stdout.count("GPU ")


@pytest.mark.skipif(gpus() < 2, reason="needs two GPUs")
@pytest.mark.parametrize("store,status", [(0, 0), (1, 5)])
def test_peer(store, status, tmp_path):
    done = play("swap", "peer", tmp_path, argument=store, **SWAP)
    assert done.returncode == status, done
    assert len(done.violations) == store, done
