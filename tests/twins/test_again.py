"""Launches that are given twins again, scene by scene of again.c."""
import functools

import pytest
from player import HERE, play as play_scene

play = functools.partial(play_scene, "again", SWAP_PTX=str(HERE / "swap.ptx"))


@pytest.mark.parametrize("scene", ["ended", "mapped_again", "twin_lost", "half", "owned", "owned_by_library", "captured", "overlapping", "driver_refuses"])
def test_goes_on_in_strict(scene, tmp_path):
    done = play(scene, tmp_path, "strict")
    assert done.returncode == 0, done
    assert not done.violations, done


def test_what_is_suppressed_goes_on(tmp_path):
    (tmp_path / "hidden").write_text("library:libagain_owner*\n")
    done = play("suppressed", tmp_path, "strict", options=f":suppressions={tmp_path}/hidden")
    assert done.returncode == 0, done
    assert not done.violations and done.records[-1]["suppressed"] == 1, done.records


@pytest.mark.parametrize("scene,kernel", [("store", "read_or_store"), ("boxed", "boxed")])
def test_a_store_faults_and_is_named(scene, kernel, tmp_path):
    done = play(scene, tmp_path, "strict")
    assert done.returncode == 86 and done.stdout == "all was read\n", done
    (record,) = done.violations
    assert (record["action"], record["evidence"], record["result"]) == ("stopped", "written", 700)
    assert (record["kernel"]["name"], record["kernel"]["argument"], record["kernel"]["verdict"]) == (kernel, 0, "stores")
    assert record["candidates"] == [] and record["range"]["label"] == "w"
    assert record["native"], "the place of the launch, not of the synchronisation"


@pytest.mark.parametrize("way", ["one", "other"])
def test_the_way_to_a_launch_is_told_in_full(way, tmp_path):
    done = play("two_ways", tmp_path, "strict", argument=way)
    assert done.returncode == 86 and done.stdout == "all was read\n", done
    (record,) = done.violations
    assert record["native"][1]["symbol"] == f"again_{way}_way", record["native"]


@pytest.mark.parametrize("stream", ["", "_ptsz"])
@pytest.mark.parametrize("entry", ["cuLaunchKernel", "cuLaunchCooperativeKernel", "cuLaunchKernelEx"])
def test_each_entry_point_launches_again(entry, stream, tmp_path):
    done = play("by_entry", tmp_path, "strict", argument=entry + stream)
    assert done.returncode == 86 and done.stdout == "all was read\n", done
    (record,) = done.violations
    assert (record["api"], record["stream"]) == (entry + stream, "0x2" if stream else "0x1"), record
    assert record["kernel"]["argument"] == 0 and record["candidates"] == [] and record["native"], record


SHAPES = ["2*8", "40*8", "41*8", "256*8", "300*8", "512*8", "2*104", "1*632", "1*1000", "1*1016", "40*56", "1*2040", "1*2048", "2*4096", "1*32000", "8*256", "8*2048"]


@pytest.mark.parametrize("shape", SHAPES)
def test_as_many_and_as_large_parameters(shape, tmp_path):
    done = play("wide", tmp_path, "strict", argument=shape)
    assert done.returncode == 86 and done.stdout == "all was read\n", done
    (record,) = done.violations
    count, size = map(int, shape.split("*"))
    assert (record["kernel"]["name"], record["kernel"]["argument"], record["kernel"]["offset"]) == ("wide", count - 1, size - 8), record
    assert record["fault"] and record["candidates"] == [] and record["native"], record
