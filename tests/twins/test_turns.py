"""Turns at a real GPU, without one."""
import tempfile
import threading

import pytest
from player import comparing
from turns import turn

SOON, NOT_SOON = 30, 0.2


@pytest.fixture(autouse=True)
def real(monkeypatch, tmp_path):
    monkeypatch.setenv("LD_LIBRARY_PATH", "")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))


class Holder:
    """A thread that asks for a turn, and keeps it until it is told to leave."""

    def __init__(self, alone):
        self.has, self.told = threading.Event(), threading.Event()
        self.thread = threading.Thread(target=self.hold, args=(alone,), daemon=True)
        self.thread.start()

    def hold(self, alone):
        with turn(alone):
            self.has.set()
            self.told.wait(SOON)

    def leave(self):
        self.told.set()
        self.thread.join(SOON)


def test_one_that_is_alone_waits_for_all_and_is_not_passed():
    beside = [Holder(False), Holder(False)]
    assert all(holder.has.wait(SOON) for holder in beside)
    alone = Holder(True)
    assert not alone.has.wait(NOT_SOON)
    late = Holder(False)
    assert not late.has.wait(NOT_SOON)
    for holder in beside:
        assert not alone.has.is_set()
        holder.leave()
    assert alone.has.wait(SOON) and not late.has.wait(NOT_SOON)
    alone.leave()
    assert late.has.wait(SOON)
    late.leave()


def test_nobody_waits_at_the_software_gpu(monkeypatch, tmp_path):
    folder = tmp_path / "softgpu"
    folder.mkdir()
    (folder / "libcuda.so.1").touch()
    monkeypatch.setenv("LD_LIBRARY_PATH", f"/nonexistent:{folder}")
    both = [Holder(True), Holder(True)]
    assert all(holder.has.wait(SOON) for holder in both)
    for holder in both:
        holder.leave()


def test_scenes_are_told_apart():
    assert {"frees_in_time", "unseen", "served", "served_no_leak"} <= comparing("mirrors")
    assert "owner_recycles" not in comparing("mirrors") and comparing("again") == set()
