"""Runs inside each interpreter under test: calls the probe in many situations and compares with what Python itself says.

Usage: frames.py PROBE.so SCENARIO. Prints "ok", or what differs, and fails. Standard library only; the syntax is that of Python 3.10.
"""
import asyncio
import atexit
import contextlib
import ctypes
import gc
import os
import sys
import threading

FRAMES = 16  # SITE_PYTHON_FRAMES


def load(kind):
    lib = kind(sys.argv[1])
    for name in ("probe", "probe_in_thread", "probe_user", "probe_library", "probe_native"):
        getattr(lib, name).restype = ctypes.c_char_p
    lib.probe_cost.restype = ctypes.c_double
    lib.probe_start()
    return lib


released = load(ctypes.CDLL)  # ctypes gives the GIL up around the call
held = load(ctypes.PyDLL)


def stack():
    """The caller's stack as the probe must see it."""
    frame, lines = sys._getframe(1), []
    while frame:
        code = frame.f_code
        name = getattr(code, "co_qualname", code.co_name)  # 3.10 has no qualified names in code objects
        lines.append(b"\x1f".join((os.fsencode(code.co_filename), name.encode(), b"%d" % frame.f_lineno)))
        frame = frame.f_back
    return b"\n".join(lines[:FRAMES] + ([b"cut"] if len(lines) > FRAMES else []) + [b""])


def same(pair):
    got, want = pair
    if got != want:
        sys.exit("probe:\n%s\nPython:\n%s" % (os.fsdecode(got), os.fsdecode(want)))
    assert got.count(b"\n") >= 2, got


def nested():
    def outer():
        def inner():
            return released.probe(), stack()
        return inner()
    same(outer())


def gil_held():
    same((held.probe(), stack()))


def gil_released():
    assert released.probe is not held.probe
    same((released.probe(), stack()))


def generator():
    def numbers():
        yield released.probe(), stack()
        yield from more()

    def more():
        yield released.probe(), stack()
    for pair in numbers():
        same(pair)


def method():
    class Model:
        class Layer:
            def step(self):
                return released.probe(), stack()

            @classmethod
            def build(cls):
                return released.probe(), stack()

            @property
            def size(self):
                return released.probe(), stack()
    same(Model.Layer().step())
    same(Model.Layer.build())
    same(Model.Layer().size)


def lambda_function():
    same((lambda: (released.probe(), stack()))())


def executed():
    space = {"released": released, "stack": stack}
    exec("\n\ndef f():\n\n  return released.probe(), stack()\nresult = f()", space)
    same(space["result"])
    assert space["result"][0].startswith(b"<string>\x1ff\x1f5\n<string>\x1f<module>\x1f6\n"), space["result"][0]


def comprehension():
    for pair in [(released.probe(), stack()) for _ in range(3)]:
        same(pair)


def several_lines():
    result = (
        released.probe(
        ), stack(),
        [
            released.probe()], stack())
    lines = [int(text.split(b"\x1f")[2].split(b"\n")[0]) for text in (result[0], result[1], result[2][0])]
    first = several_lines.__code__.co_firstlineno
    assert lines == [first + 2, first + 3, first + 5], (lines, first)


def control_flow():
    results = []
    try:
        with contextlib.suppress(KeyError):
            results.append((released.probe(), stack()))
            raise KeyError
        raise ValueError
    except ValueError:
        results.append((released.probe(), stack()))
    finally:
        results.append((released.probe(), stack()))
    for i in range(2):
        while True:
            results.append((released.probe(), stack()))
            break
    for pair in results:
        same(pair)


def coroutine():
    async def inner():
        await asyncio.sleep(0)
        return released.probe(), stack()

    async def outer():
        return await inner()
    same(asyncio.run(outer()))


def callback():
    """Python, C, Python, C: the frames on both sides of the C code."""
    results = []
    call = ctypes.CFUNCTYPE(None)(lambda: results.append((released.probe(), stack())))
    released.probe_call(call)
    held_call = ctypes.PYFUNCTYPE(None)(lambda: results.append((released.probe(), stack())))
    held.probe_call(held_call)
    assert len(results) == 2
    for pair in results:
        same(pair)
        assert pair[0].split(b"\n")[1].split(b"\x1f")[1] == b"callback"  # behind the lambda and the C code


def finalizer():
    results = []

    class Dying:
        def __del__(self):
            results.append((released.probe(), stack()))
    Dying()
    cycle = Dying()
    cycle.me = cycle
    del cycle
    gc.collect()
    assert len(results) == 2
    for pair in results:
        same(pair)


def sorted_key():
    """A Python function that C code calls."""
    results = []
    sorted([1, 2, 3], key=lambda item: results.append((released.probe(), stack())) or item)
    for pair in results:
        same(pair)


def traced():
    results = []
    sys.settrace(lambda frame, event, argument: results.append((released.probe(), stack())))
    sorted([2, 1])
    method()
    sys.settrace(None)
    assert results
    for pair in results:
        same(pair)


def monitored():
    """Instrumented bytecode (3.12): positions must still be right."""
    monitoring = getattr(sys, "monitoring", None)
    if not monitoring:
        return gil_released()
    monitoring.use_tool_id(3, "test")
    monitoring.register_callback(3, monitoring.events.LINE, lambda *arguments: None)
    monitoring.set_events(3, monitoring.events.LINE | monitoring.events.INSTRUCTION)
    try:
        nested()
        generator()
        control_flow()
    finally:
        monitoring.set_events(3, 0)


def warm():
    """Specialised bytecode: the same call, many times."""
    def step(n):
        return released.probe(), stack()
    for n in range(3000):
        same(step(n))


def recursion():
    def down(n):
        if n == 0:
            return released.probe(), stack()
        return down(n - 1)
    pair = down(500)
    same(pair)
    assert pair[0].endswith(b"cut\n") and pair[0].count(b"\n") == FRAMES + 1
    for n in range(12):
        same(down(n))


def thread():
    results = []

    def work():
        results.append((released.probe(), stack()))
    threads = [threading.Thread(target=work) for _ in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert len(results) == 4
    for pair in results:
        same(pair)


def threads_at_once():
    """Many threads capture while others run Python code: each sees its own stack only."""
    failures = []

    def work(n):
        space = {"released": released, "stack": stack}
        exec(compile("def f():\n" + "\n" * n + " return released.probe(), stack()", "file%d.py" % n, "exec"), space)
        for _ in range(300):
            got, want = space["f"]()
            if got != want:
                failures.append((got, want))
    threads = [threading.Thread(target=work, args=(n,)) for n in range(6)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert not failures, failures[0]


def no_state():
    assert released.probe_in_thread() == b"0"


def names():
    """File and function names of each width that Python stores, and bytes that are not UTF-8."""
    for name in ("plain.py", "größe.py", "数据.py", "mix€.py", "😀.py", "bad\udcff\udc80.py"):
        space = {"released": released, "stack": stack}
        function = name.split(".")[0].rstrip("\udcff\udc80")
        function = function if function.isidentifier() else "f"
        exec(compile("def %s():\n return released.probe(), stack()\nresult = %s()" % (function, function), name, "exec"), space)
        same(space["result"])
        assert space["result"][0].startswith(os.fsencode(name) + b"\x1f" + function.encode() + b"\x1f2\n")


def long_names():
    space = {"released": released}
    exec(compile("result = released.probe()", "d/" * 2000 + "x.py", "exec"), space)
    file = space["result"].split(b"\x1f")[0]
    assert file == (b"d/" * 512) + b"...", file[-20:]


def far_lines():
    """Line numbers and gaps beyond one byte of the table; a table of many entries; code longer than 65536 instructions."""
    for gap, filler in ((0, 3000), (5000, 10), (70000, 10), (300, 30000)):
        text = "x = 0\n" * filler + "\n" * gap + "result = released.probe(), stack()\n"
        space = {"released": released, "stack": stack}
        exec(compile(text, "far.py", "exec"), space)
        same(space["result"])
        assert b"far.py\x1f<module>\x1f%d\n" % (filler + gap + 1) in space["result"][0]


def reused():
    """Code objects die and others take their addresses: no stale name."""
    seen = set()
    for n in range(3000):
        space = {"released": released, "stack": stack}
        code = compile("def f%d(): return released.probe(), stack()\nresult = f%d()" % (n, n), "file%d.py" % (n % 7), "exec")
        seen.add(id(code))
        exec(code, space)
        same(space["result"])
        del code, space
    assert len(seen) < 3000, "no address was used again: the test tests nothing"


def reused_tables():
    """The same, where file, names, first line and sizes are the same, and a byte of the table of lines is not: no stale line."""
    seen = set()
    for n in range(3000):
        space = {"released": released, "stack": stack}
        code = compile("x = 1\n" * (n % 40) + "\n" * (n % 29) + "result = released.probe(), stack()\n" + "x = 1\n" * (39 - n % 40), "same.py", "exec")
        seen.add(id(code))
        exec(code, space)
        same(space["result"])
        del code, space
    assert len(seen) < 3000, "no address was used again: the test tests nothing"


def user_frame():
    space = {"released": released}
    library = "/opt/venv/lib/python3.11/site-packages/lib/core.py"
    exec(compile("def call(): return released.probe_user()", library, "exec"), space)
    line = sys._getframe().f_lineno + 1
    got = space["call"]().split(b"\x1f")
    assert got == [os.fsencode(__file__), b"user_frame", b"%d" % line], got


def library():
    """The first frame outside the shim (here: the probe itself) and plumbing (libffi) is ctypes' own extension."""
    assert released.probe_library().startswith(b"_ctypes."), released.probe_library()


def deep_library():
    """A library that calls itself more often than a site has frames: the user's own frame is still there, at the end."""
    space = {"released": released}
    text = "def call(n): return call(n - 1) if n else (released.probe_user(), released.probe())"
    exec(compile(text, "/usr/lib/python3/dist-packages/lib/core.py", "exec"), space)
    for depth in (13, 14, 15, 16, 40):
        line = sys._getframe().f_lineno + 1
        user, frames = space["call"](depth)
        assert user.split(b"\x1f") == [os.fsencode(__file__), b"deep_library", b"%d" % line], user
        assert frames.count(b"\n") <= FRAMES + 1, frames


def native():
    """The native stack is this library's caller down to the interpreter, not the interpreter's calls of itself."""
    def down(n):
        return down(n - 1) if n else released.probe_native()
    for depth in (0, 200):
        names = down(depth).split()
        assert names[-1].startswith((b"libpython3", b"python3")), names
        assert not [name for name in names[:-1] if name.startswith((b"libpython", b"python"))], names
        assert names[0].startswith(b"libffi.") and 2 < len(names) < 16, names


def sandboxed():
    """A seccomp filter that refuses process_vm_readv, as container run times do: addresses are asked about in another way."""
    class Instruction(ctypes.Structure):
        _fields_ = [("code", ctypes.c_uint16), ("yes", ctypes.c_uint8), ("no", ctypes.c_uint8), ("value", ctypes.c_uint32)]

    class Program(ctypes.Structure):
        _fields_ = [("length", ctypes.c_uint16), ("instructions", ctypes.POINTER(Instruction))]
    code = (Instruction * 4)((0x20, 0, 0, 0), (0x15, 0, 1, 310), (0x06, 0, 0, 0x00050001), (0x06, 0, 0, 0x7fff0000))
    libc = ctypes.CDLL(None, use_errno=True)
    zero = ctypes.c_ulong(0)
    assert libc.prctl(38, ctypes.c_ulong(1), zero, zero, zero) == 0
    assert libc.prctl(22, ctypes.c_ulong(2), ctypes.byref(Program(4, code)), zero, zero) == 0, os.strerror(ctypes.get_errno())
    assert libc.process_vm_readv(os.getpid(), None, zero, None, zero, zero) == -1 and ctypes.get_errno() == 1, "the filter does not work"
    same((released.probe(), stack()))
    same((released.probe(), stack()))


def cost():
    released.probe()
    assert held.probe_cost(10000) < 20000
    print("%.0f ns a capture" % held.probe_cost(100000), file=sys.stderr)


def at_exit():
    """While the interpreter shuts down; the answer goes to stderr, the parent compares it."""
    atexit.register(lambda: held.probe_to_stderr())


def late_finalizer():
    """Modules are gone, threads are gone: whatever is found, nothing crashes."""
    class Late:
        probe = held.probe_to_stderr

        def __del__(self):
            self.probe()
    sys.late = Late()


def daemon():
    """Threads that still capture while the interpreter is torn down under them."""
    def work():
        while True:
            released.probe()
    for _ in range(4):
        threading.Thread(target=work, daemon=True).start()
    end = threading.Event()
    end.wait(0.2)


SCENARIOS = [nested, gil_held, gil_released, generator, method, lambda_function, executed, comprehension, several_lines, control_flow, coroutine,
             callback, finalizer, sorted_key, traced, monitored, warm, recursion, thread, threads_at_once, no_state, names, long_names, far_lines,
             reused, reused_tables, user_frame, library, deep_library, native, sandboxed, cost, at_exit, late_finalizer, daemon]

if __name__ == "__main__":
    {scenario.__name__: scenario for scenario in SCENARIOS}[sys.argv[2]]()
    print("ok")
