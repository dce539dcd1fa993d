"""cuconst.protect() over real device memory: what it takes, when a protection ends, what check() and stats() say."""
import time

import pytest
from rig import VIOLATED

WRITE = "check(driver.cuMemsetD8({}, 5, {}))  # HERE\n"
CHECKED = 'cuconst: violation: an unknown writer wrote {} bytes of read-only "x", found {}'

TAKEN = {
    "an address": "address, made = p, protect((p, SIZE), label='x')\n",
    "an interface": "array = Memory()\naddress, made = array.address, protect(array, label='x')\n",
    "a capsule": "from capsules import Producer\naddress, producer = p, Producer(shape=(1024,), data=p)\nmade = protect(producer, label='x')\nassert producer.deleted == 1\n",
}


@pytest.mark.parametrize("source", TAKEN.values(), ids=TAKEN)
def test_what_is_taken(program, source):
    result = program(source + "assert made.ranges == ((address, SIZE),), made.ranges\n" + WRITE.format("address + 8", 32)).run("log")
    assert result.status == VIOLATED
    assert result.first == 'cuconst: violation: cuMemsetD8_v2 wrote 32 bytes of read-only "x"', result.stderr
    assert result.only["range"]["bytes"] == 4096


def test_default_labels(program):
    made = program("array = Memory(shape=(4, 8))\nguard = protect(array)\n" + WRITE.format("array.address", 1))
    result = made.run("log")
    assert result.first == 'cuconst: violation: cuMemsetD8_v2 wrote 1 byte of read-only "int32[4,8]"'


# A write that no call names: a kernel that finds its address in device memory.
HIDDEN = """
table = filled(0, 64)
check(driver.cuMemcpyHtoD(table, p.to_bytes(8, "little"), 8))
def hide():
    check(driver.cuLaunchKernel(*kernel("fill_table", table, 7, count=16)))
    synchronize()
"""

STRIDED = "array = Memory(shape=(4, 4), strides=(256, 4))\nguard = protect(array, label='x')\nassert len(guard.ranges) == 4\n"


@pytest.mark.parametrize("offset,size,hit", [(16, 240, 0), (0, 1, 1), (15, 1, 1), (256 + 12, 8, 4), (512 + 16, 240, 0), (3 * 256 + 16, 3000, 0)])
def test_strided_arrays_are_their_pieces(program, offset, size, hit):
    result = program(STRIDED + WRITE.format(f"array.address + {offset}", size)).run("deny")
    if not hit:
        assert (result.status, result.first) == (0, ""), result.stderr
    else:
        assert result.only["written"]["bytes"] == hit and result.only["range"]["bytes"] == 16
        assert "not so: CUDA_ERROR_NOT_PERMITTED" in result.stderr and result.status == 1, "the program's own status stays"


def test_a_kernel_over_all_pieces(program):
    """The parameter points into one piece; those beside it are looked at after a kernel's first launch, too."""
    result = program(STRIDED + "check(driver.cuLaunchKernel(*kernel('fill', array.address, 7, 1024)))\nsynchronize()\n").run("log")
    assert [record["written"]["bytes"] for record in result.records] == [16] * 4, result.stderr
    assert len({record["range"]["start"] for record in result.records}) == 4
    assert [record["api"] for record in result.records] == ["cuLaunchKernel"] * 4
    assert sorted(record["kernel"]["verdict"] for record in result.records) == ["near"] * 3 + ["stores"]


def test_the_last_look_does_not_wait_for_ever(program):
    made = program(HIDDEN + "guard = protect((p, SIZE), label='x')\ncheck(driver.cuLaunchKernel(*kernel('spin_fill', q, 7, 1024, 1 << 22)))\nprint('end')\n")
    started = time.monotonic()
    result = made.run("log", "--option", "exit_wait=100", SOFTGPU_DELAY_US=str(3_000_000))
    assert (result.status, result.stdout) == (0, "end\n") and result.summary["unverified"] == 1, result.stderr
    assert time.monotonic() - started < 30


ENDS = {
    "with": "with protect((p, SIZE), label='x'): pass\n",
    "close": "guard = protect((p, SIZE), label='x')\nguard.close()\nguard.close()\nassert guard.changed is False\n",
    "release": "guard = protect((p, SIZE), label='x')\nguard.release()\n",
    "another thread": "import threading\nguard = protect((p, SIZE), label='x')\ncontext = check(driver.cuCtxGetCurrent())\n"
                      "def work():\n    check(driver.cuCtxSetCurrent(context))\n    guard.close()\n"
                      "thread = threading.Thread(target=work)\nthread.start()\nthread.join()\nassert guard.changed is False\n",
}


@pytest.mark.parametrize("source", ENDS.values(), ids=ENDS)
def test_after_its_end_nothing_is_said(program, source):
    made = program(source + "import cuconst\nassert cuconst.stats().ranges == 0\n" + WRITE.format("p", 16) + "print(digest(p))\n")
    result = made.run("strict")
    assert (result.status, result.stdout) == (0, "{1: 4080, 5: 16}\n"), result.stderr
    assert not [record for record in result.records if record["kind"] == "violation"]


def test_a_dropped_handle_ends_unchecked_and_warns(program):
    made = program("import gc, warnings\nwarnings.simplefilter('always')\nguard = protect((p, SIZE), label='x')\ndel guard\ngc.collect()\n"
                   + WRITE.format("p", 16))
    result = made.run("log")
    assert "ResourceWarning: <cuconst.Protection 'x', 4096 bytes, open> was dropped while open" in result.stderr
    assert (result.status, result.records, result.summary["ended_unverified"]) == (0, [], 1)


def test_one_end_of_two_leaves_the_other(program):
    made = program("one = protect((p, 64), label='one')\ntwo = protect((p, SIZE), label='two')\ntwo.close()\n" + WRITE.format("p", "SIZE"))
    result = made.run("log")
    assert result.only["range"]["label"] == "one" and result.only["written"]["bytes"] == 64


def test_check_finds_what_no_call_tells(program):
    made = program(HIDDEN + "import cuconst\nguard = protect((p, SIZE), label='x')\nprint(cuconst.check(), guard.check())\nhide()\n"
                   "print(cuconst.check())  # HERE\nprint(guard.changed, cuconst.check())\n")
    result = made.run("log")
    # The handle was not asked by the check that found it.
    assert result.stdout == "True True\nFalse\nFalse True\n", result.stdout
    assert result.status == VIOLATED and result.first == CHECKED.format(64, "by cuconst_check"), result.stderr
    assert result.only["python"][-1]["line"] == made.line()


def test_a_change_is_found_once(program):
    made = program(HIDDEN + "guard = protect((p, SIZE), label='x')\nhide()\nprint(guard.check(), guard.check(), guard.changed)\n")
    result = made.run("log")
    assert result.stdout == "False True True\n" and result.only["kind"] == "violation", result.stderr


@pytest.mark.parametrize("end,by", [("guard.close()\nprint(guard.changed)\n", "by cuconst_unprotect"), ("print(True)\n", "at exit")])
def test_the_last_check_finds_it(program, end, by):
    made = program(HIDDEN + "guard = protect((p, SIZE), label='x')\nhide()\n" + end)
    result = made.run("log")
    assert (result.status, result.stdout) == (VIOLATED, "True\n"), result.stderr
    assert result.only["kind"] == "violation" and result.only["written"]["bytes"] == 64
    assert result.first == CHECKED.format(64, by)


def test_follow_ends_with_the_object_and_does_not_hold_it(program):
    made = program("import gc, weakref, cuconst\narray = Memory()\nseen = weakref.ref(array)\nguard = protect(array, follow=True, label='x')\n"
                   "assert cuconst.stats().ranges == 1\ndel array\ngc.collect()\nprint(seen() is None, cuconst.stats().ranges)\n")
    result = made.run("strict")
    assert (result.status, result.stdout) == (0, "True 0\n"), result.stderr


def test_a_handle_holds_the_memory(program):
    made = program("import gc, weakref\narray = Memory()\nseen = weakref.ref(array)\nguard = protect(array, label='x')\ndel array\ngc.collect()\n"
                   "print(seen() is None)\nguard.close()\ngc.collect()\nprint(seen() is None)\n")
    result = made.run("strict")
    assert (result.status, result.stdout, result.first) == (0, "False\nTrue\n", ""), result.stderr


def test_memory_freed_under_it(program):
    made = program("guard = protect((p, SIZE), label='x')\ncheck(driver.cuMemFree(p))  # HERE\nprint(guard.active)\nguard.close()\nprint(guard.changed)\n")
    result = made.run("strict")
    assert (result.status, result.stdout) == (0, "False\nNone\n"), result.stderr
    assert result.first.startswith("cuconst: freed: cuMemFree_v2 freed ") and result.only["kind"] == "freed"
    assert result.only["python"][0] == made.place("<module>")


def test_stats_and_active(program):
    made = program("import cuconst\nassert cuconst.active() and cuconst.version() == cuconst.__version__\n"
                   "guard = protect((p, SIZE), label='x')\nbefore = cuconst.stats()\n"
                   "check(driver.cuMemsetD8(p, 5, 16))\ncheck(driver.cuLaunchKernel(*kernel('fill', p, 7, 4)))\nsynchronize()\ncuconst.check()\n"
                   "now = cuconst.stats()\nprint(now.ranges, now.bytes, now.violations - before.violations, now.launches - before.launches,"
                   " now.denied)\n")
    result = made.run("log")
    assert result.stdout == "1 4096 2 1 0\n", result.stdout + result.stderr
    assert len(result.records) == 2


@pytest.mark.parametrize("source,message", [
    ("protect((p, 0))", "CuconstError"), ("protect((0, 16))", "CuconstError"), ("protect((p, 1 << 40))", "CuconstError"),
    ("protect((p + SIZE - 1, SIZE * 4096))", "CuconstError"), ("protect(object())", "TypeError"), ("protect(Memory(), label=3)", "TypeError"),
    ("protect((id(p), 16))", "CuconstError"),
])
def test_what_is_refused(program, source, message):
    made = program(f"import cuconst\ntry:\n    {source}\nexcept Exception as error:\n    print(type(error).__name__)\nassert cuconst.stats().ranges == 0\n")
    result = made.run("strict")
    assert (result.status, result.stdout) == (0, message + "\n"), result.stderr
