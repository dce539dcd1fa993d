"""Turns at a real GPU, without one; and that nothing is started without a turn."""
import ast
import fnmatch
import pathlib
import tempfile
import threading

import pytest
from player import comparing
from turns import turn

SOON, NOT_SOON = 30, 0.2
TESTS = pathlib.Path(__file__).resolve().parents[1]
# They know nothing of the GPU's memory.
TOOLS = {"gcc", "head", "mount", "nm", "nvidia-smi", "umount"}
# Where programs are started that need no turn.
EXEMPT = {
    "bench/*": "by hand, on the software GPU",
    "doors/*": "no driver, or one of the suite's own",
    "faults/test_process.py test_programs_without_a_driver": "programs that use none",
    "gpu/cupy_sample.py *": "by hand, with nothing beside it",
    "gpu/overhead.py *": "by hand, with nothing beside it",
    "gpu/twin_speed.py *": "by hand, with nothing beside it",
    "kernels/*": "no driver: code is read, and run by the interpreter",
    "python/*": "a fake library, or the software GPU",
    "softgpu/*": "the software GPU",
}


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


def starts(node, function="", held=False):
    """The calls below a node that start a program: (function, is a turn held?, the program where it is a word)."""
    if isinstance(node, ast.FunctionDef):
        function = node.name
    if isinstance(node, ast.With):
        held = held or any(ast.unparse(item.context_expr).startswith("turn(") for item in node.items)
    if isinstance(node, ast.Call) and ast.unparse(node.func) in ("subprocess.run", "subprocess.Popen"):
        yield function, held, getattr(getattr(node.args[0], "elts", [None])[0], "value", None)
    for child in ast.iter_child_nodes(node):
        yield from starts(child, function, held)


def without_a_turn(name, text):
    return [f"{name} {function}" for function, held, program in starts(ast.parse(text)) if not held and program not in TOOLS]


def test_every_program_has_a_turn():
    sources = {path.relative_to(TESTS).as_posix(): path.read_text() for path in sorted(TESTS.rglob("*.py"))}
    found = [place for name, text in sources.items() for place in without_a_turn(name, text)]
    assert not [place for place in found if not any(fnmatch.fnmatchcase(place, pattern) for pattern in EXEMPT)]
    assert not [pattern for pattern in EXEMPT if not fnmatch.filter(found, pattern)], "these lines explain nothing"


def test_a_start_without_a_turn_is_found():
    start = "subprocess.run([PROGRAM, 'scene'])"
    assert without_a_turn("a.py", f"def f():\n    {start}\n    with turn(alone=True):\n        {start}") == ["a.py f"]
    assert without_a_turn("a.py", "with open(p):\n    subprocess.Popen(['sh', '-c', p])\nsubprocess.run(['nm', p])") == ["a.py "]
