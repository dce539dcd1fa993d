"""Swapped arguments in strict, and faults explained, scene by scene of swap.c and faults.c."""
import functools

import pytest
from player import HERE, play as play_scene

play = functools.partial(play_scene, "swap", SWAP_PTX=str(HERE / "swap.ptx"))
fault = functools.partial(play_scene, "faults", SWAP_PTX=str(HERE / "swap.ptx"))


@pytest.mark.parametrize("scene", ["reads", "difference", "packed", "captured", "overlapping", "exempt", "nested", "no_twin", "no_room",
                                   "freed_and_mapped_again", "threads", "large_struct", "handed_out"])
def test_goes_on_in_strict(scene, tmp_path):
    done = play(scene, tmp_path, "strict")
    assert done.returncode == 0, done
    assert not done.violations, done


STOPPED = 'cuconst: stopped: kernel {} (cuLaunchKernel, argument 0) would write read-only "w", which the GPU refused: CUDA error 700{}'


@pytest.mark.parametrize("scene,kernel,told", [
    ("stores", "read_or_store", " from cuStreamSynchronize"),
    ("store_extra", "read_or_store", " from cuStreamSynchronize"),
    ("store_boxed", "boxed", " from cuStreamSynchronize"),
    ("either", "either", " from cuStreamSynchronize"),
    ("atomics", "add_each", " from cuStreamSynchronize"),
    ("store_at_exit", "read_or_store", ", found at exit"),
])
def test_a_store_faults_and_is_named(scene, kernel, told, tmp_path):
    done = play(scene, tmp_path, "strict")
    assert done.returncode == 86, done
    assert done.stderr.splitlines()[0] == STOPPED.format(kernel, told), done
    (record,) = done.violations
    assert (record["action"], record["evidence"], record["result"]) == ("stopped", "written", 700)
    assert record["kernel"]["name"] == kernel and record["candidates"] == []
    assert record["range"]["label"] == "w"
    assert record["native"], "the place of the launch, not of the synchronisation"


@pytest.mark.parametrize("scene,kernel", [("pair", "fill_pair"), ("pair_across", "fill_pair"), ("in_place", "in_place")])
def test_what_must_not_be_swapped_is_verified(scene, kernel, tmp_path):
    done = play(scene, tmp_path, "strict")
    assert done.returncode == 86, done
    (record,) = done.violations
    assert (record["action"], record["evidence"], record["fault"]) == ("stopped", "changed", None), done
    assert record["kernel"]["name"] == kernel


def test_no_room_is_said_once(tmp_path):
    done = play("no_room", tmp_path, "strict")
    assert done.stderr.count("no read-only twin of some memory (CUDA error 2)") == 1, done


def test_twins_off_verifies(tmp_path):
    done = play("stores", tmp_path, "strict", options=":twins=off")
    assert done.returncode == 86, done
    assert [record["evidence"] for record in done.violations] == ["changed"]


def test_suppressed_is_not_swapped(tmp_path):
    (tmp_path / "rules").write_text("label:w\n")
    done = play("stores", tmp_path, "strict", options=f":suppressions={tmp_path}/rules")
    assert done.returncode == 7, done


def test_log_swaps_nothing(tmp_path):
    done = play("no_fault_in_log", tmp_path, "log")
    assert done.returncode == 0, done
    assert [record["evidence"] for record in done.violations] == ["changed"]


def test_view_stored_in_log(tmp_path):
    done = fault("view_stored", tmp_path, "log")
    assert done.returncode == 5, done
    (record,) = done.violations
    assert (record["action"], record["evidence"], record["fault"], record["result"]) == ("denied", "written", "cuStreamSynchronize", 700)
    assert record["kernel"]["name"] == "read_or_store" and record["kernel"]["argument"] == 0
    assert record["range"]["label"] == "read-only view"
    assert done.stderr.splitlines()[0] == (
        'cuconst: denied: kernel read_or_store (cuLaunchKernel, argument 0) would write read-only "read-only view", '
        "which the GPU refused: CUDA error 700 from cuStreamSynchronize")


@pytest.mark.parametrize("mode,status", [("log", 5), ("strict", 86)])
@pytest.mark.parametrize("options", ["", ":twins=all"])
def test_a_set_tells_of_it_that_concerns_nothing(mode, status, options, tmp_path):
    done = fault("view_stored_and_set", tmp_path, mode, options=options)
    assert done.returncode == status, done
    (record,) = done.violations
    assert (record["evidence"], record["fault"], record["result"]) == ("written", "cuMemsetD8Async", 700)
    assert record["kernel"]["name"] == "read_or_store"


def test_view_is_denied_before_the_launch(tmp_path):
    done = fault("view_refused", tmp_path, "deny")
    assert done.returncode == 0, done
    (record,) = done.violations
    assert (record["action"], record["fault"], record["result"]) == ("denied", None, 800)
    assert record["kernel"]["name"] == "add_each"


def test_view_stored_in_strict(tmp_path):
    done = fault("view_stored", tmp_path, "strict")
    assert done.returncode == 86, done
    assert [record["action"] for record in done.violations] == ["stopped"]


def test_of_several_each_is_a_candidate(tmp_path):
    done = fault("several", tmp_path)
    assert done.returncode == 5, done
    (record,) = done.violations
    assert record["kernel"] is None
    assert [kernel["name"] for kernel in record["candidates"]] == ["add_each", "read_or_store", "read_or_store"]
    assert done.stderr.startswith('cuconst: denied: one of 3 kernel arguments would write read-only "read-only view", which the GPU refused'), done


def test_wait_makes_it_certain(tmp_path):
    done = fault("several", tmp_path, options=":wait=2000")
    assert done.returncode == 5, done
    (record,) = done.violations
    assert record["kernel"]["name"] == "add_each" and record["candidates"] == [], record


def test_a_fault_of_the_programs_own_is_not_ours(tmp_path):
    done = fault("own_fault", tmp_path)
    assert done.returncode == 5, done
    assert not done.violations, done


def test_graph(tmp_path):
    done = fault("view_in_graph", tmp_path)
    assert done.returncode == 5, done
    (record,) = done.violations
    assert record["kernel"] is None and [kernel["name"] for kernel in record["candidates"]] == ["add_each"]
    assert record["graph"]


@pytest.mark.parametrize("mode,status", [("log", 0), ("strict", 86)])
def test_found_at_exit(mode, status, tmp_path):
    done = fault("view_stored_at_exit", tmp_path, mode)
    assert done.returncode == status, done
    (record,) = done.violations
    assert record["fault"] == "cuconst_at_exit" and record["kernel"]["name"] == "add_each"


@pytest.mark.parametrize("store,status", [(0, 0), (1, 5)])
def test_peer(store, status, tmp_path):
    done = play("peer", tmp_path, argument=store, SOFTGPU_DEVICES="2")
    assert done.returncode == status, done
    assert [record["kernel"]["name"] for record in done.violations] == ["read_or_store"] * store
