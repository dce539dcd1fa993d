"""The Python line of a record: from each kind of function and thread."""
import sys

import pytest
from rig import VIOLATED

WRITE = "check(driver.cuMemsetD8(p, 5, 16))"
GUARD = "guard = protect((p, SIZE), label='weights')\n"

# Source, and the qualified name of the function that holds the marked line.
SITES = {
    "module": (f"{WRITE}  # HERE\n", "<module>"),
    "function": (f"def write():\n    {WRITE}  # HERE\nwrite()\n", "write"),
    "inner function": (f"def outer():\n    def inner():\n        {WRITE}  # HERE\n    inner()\nouter()\n", "outer.<locals>.inner"),
    "method": (f"class Layer:\n    def forward(self):\n        {WRITE}  # HERE\nLayer().forward()\n", "Layer.forward"),
    "class method": (f"class Layer:\n    @classmethod\n    def reset(cls):\n        {WRITE}  # HERE\nLayer.reset()\n", "Layer.reset"),
    "property": (f"class Layer:\n    @property\n    def value(self):\n        return {WRITE}  # HERE\nLayer().value\n", "Layer.value"),
    "class body": (f"class Layer:\n    {WRITE}  # HERE\n", "Layer"),
    "generator": (f"def steps():\n    yield 1\n    {WRITE}  # HERE\n    yield 2\nlist(steps())\n", "steps"),
    "coroutine": (f"import asyncio\nasync def step():\n    await asyncio.sleep(0)\n    {WRITE}  # HERE\nasyncio.run(step())\n", "step"),
    "lambda": (f"write = lambda: {WRITE}  # HERE\nwrite()\n", "<lambda>"),
    "call over several lines": ("def write():\n    check(\n        driver.cuMemsetD8(  # HERE\n            p,\n            5,\n            16))\nwrite()\n", "write"),
    "exec": (f"def write():\n    {WRITE}  # HERE\nexec('write()')\n", "write"),
    "thread": (f"import threading\ncontext = check(driver.cuCtxGetCurrent())\ndef work():\n    check(driver.cuCtxSetCurrent(context))\n    {WRITE}  # HERE\nthread = threading.Thread(target=work)\nthread.start()\nthread.join()\n", "work"),
    "destructor": (f"class Layer:\n    def __del__(self):\n        {WRITE}  # HERE\nlayer = Layer()\ndel layer\n", "Layer.__del__"),
    "exception handler": (f"try:\n    raise ValueError\nexcept ValueError:\n    {WRITE}  # HERE\n", "<module>"),
}


def name(qualified):
    """Frames before 3.11 know the plain name only."""
    return qualified if sys.version_info >= (3, 11) else qualified.split(".")[-1]


@pytest.mark.parametrize("source,function", SITES.values(), ids=SITES)
def test_the_line(program, source, function):
    made = program(GUARD + source)
    result = made.run("log")
    assert result.status == VIOLATED
    assert result.first == 'cuconst: violation: cuMemsetD8_v2 wrote 16 bytes of read-only "weights"', result.stderr
    assert result.stderr.splitlines()[1] == f"  at   {made.path}:{made.line()} in {name(function)}"
    assert result.only["python"][0] == made.place(name(function))


def test_a_kernel_is_named_by_the_line_of_its_launch_not_of_its_check(program):
    made = program(GUARD + "def launched():\n    check(driver.cuLaunchKernel(*kernel('fill', p, 7, 4)))  # HERE\ndef waited():\n    synchronize()\nlaunched()\nwaited()\n")
    result = made.run("log")
    assert result.only["python"][0] == made.place("launched")


def test_two_threads_are_two_places(program):
    made = program(GUARD + """
import threading
def one():
    check(driver.cuMemsetD8(p, 5, 16))  # ONE
def two():
    check(driver.cuMemsetD8(p + 32, 6, 8))  # TWO
context = check(driver.cuCtxGetCurrent())
def work(step):
    check(driver.cuCtxSetCurrent(context))
    for i in range(3):
        step()
threads = [threading.Thread(target=work, args=(step,)) for step in (one, two)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(digest(p))
""")
    result = made.run("log")
    assert result.status == VIOLATED and result.stdout == made.alone() == "{1: 4072, 5: 16, 6: 8}\n"
    places = [(record["python"][0]["line"], record["written"]["bytes"], record["tid"]) for record in result.records]
    assert sorted(place[:2] for place in places) == sorted([(made.line("ONE"), 16)] * 3 + [(made.line("TWO"), 8)] * 3)
    assert len({place[2] for place in places}) == 2, "each by a thread of its own"
    assert sorted(record["seq"] for record in result.records) == [1, 2, 3, 4, 5, 6]


def test_the_users_line_is_named_above_a_librarys(program, tmp_path):
    library = tmp_path / "lib/python3/site-packages/arrays.py"
    library.parent.mkdir(parents=True)
    library.write_text("from device import *\ndef fill(address):\n    check(driver.cuMemsetD8(address, 5, 16))\n")
    made = program(GUARD + "import arrays\ndef step():\n    arrays.fill(p)  # HERE\nstep()\n")
    result = made.run("log", path=[library.parent])
    assert result.stderr.splitlines()[1] == f"  at   {made.path}:{made.line()} in step"
    assert [frame["function"] for frame in result.only["python"]] == ["fill", "step", "<module>"]
