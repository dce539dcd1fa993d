"""cuconst run --protect=exports, on small look-alikes of jaxlib, jax, cupy and numba, and on the real jax (on the CPU) where it is installed."""

import importlib.util
import json
import sys

import pytest
from lookalikes import modules  # noqa: F401

PRELUDE = """
import ctypes, gc, json, sys
library = ctypes.CDLL(None)
def entries():
    found = []
    ptr, nbytes, stream, flags = ctypes.c_uint64(), ctypes.c_uint64(), ctypes.c_uint64(), ctypes.c_uint()
    label, owner = ctypes.create_string_buffer(256), ctypes.create_string_buffer(256)
    while library.fake_entry(ctypes.c_size_t(len(found)), ctypes.byref(ptr), ctypes.byref(nbytes), label, owner, ctypes.byref(flags), ctypes.byref(stream)):
        found.append([ptr.value, nbytes.value, label.value.decode(), owner.value.decode()])
    return found
def live():
    return sorted(e[0] for e in entries())
class ReadOnly:
    def __init__(self, address, readonly=True):
        self.__cuda_array_interface__ = {"shape": (2, 3), "typestr": "<i8", "data": (address, readonly), "version": 3}
"""


@pytest.fixture
def exports(tool, modules, tmp_path):
    """Runs a program, in a file, under --protect=exports."""

    def run(source, *python_options, options=(), **env):
        program = tmp_path / "program.py"
        program.write_text(PRELUDE + source)
        return tool("run", "--protect=exports", *options, "--", sys.executable, *python_options, program, **{"PYTHONPATH": modules, **env})

    return run


def good(result, stdout=""):
    assert (result.returncode, result.stderr, result.stdout) == (0, "", stdout)


def test_jax_interface(exports):
    good(exports(
        "import jax\n"
        "x = jax.ArrayImpl(4096)\n"
        "assert live() == [] and not x.ready\n"
        "assert x.__cuda_array_interface__['data'] == (4096, True)\n"
        "assert entries() == [[4096, 16384, 'jax float32[4096]', '*xla_cuda_plugin*']], entries()\n"
        "assert x.ready\n"
        "x.__cuda_array_interface__; x.__dlpack__()\n"
        "assert live() == [4096]\n"
        "del x; gc.collect()\n"
        "assert live() == []\n"
    ))


def test_jax_dlpack(exports):
    good(exports(
        "import jax\n"
        "x = jax.ArrayImpl(4096, (8, 4), interface=False, dtype='bfloat16')\n"
        "capsule = x.__dlpack__(stream=1)\n"
        "assert 'dltensor' in repr(capsule)\n"
        "assert entries() == [[4096, 128, 'jax bfloat16[8,4]', '*xla_cuda_plugin*']], entries()\n"
    ))


def test_jax_copies_and_host_arrays_are_left_alone(exports):
    good(exports(
        "import jax\n"
        "x = jax.ArrayImpl(4096, interface=False)\n"
        "x.__dlpack__(copy=True)\n"
        "assert live() == []\n"
        "y = jax.ArrayImpl(8192, gpu=False)\n"
        "try: y.__cuda_array_interface__\n"
        "except AttributeError as reason: assert 'only defined for GPU' in str(reason)\n"
        "else: raise SystemExit('no error')\n"
        "assert not hasattr(y, '__cuda_array_interface__')\n"
        "y.__dlpack__()\n"
        "assert live() == [] and not y.ready and y.asked == 2\n"
    ))


def test_donated_arrays_end_at_the_next_export(exports):
    good(exports(
        "import jax\n"
        "x, y, z = (jax.ArrayImpl(a) for a in (1 << 20, 2 << 20, 3 << 20))\n"
        "x.__cuda_array_interface__; y.__cuda_array_interface__\n"
        "x.deleted = True\n"
        "z.__cuda_array_interface__\n"
        "assert live() == [2 << 20, 3 << 20], live()\n"
    ))


def test_the_class_looks_as_before(exports):
    good(exports(
        "import jax, inspect, jaxlib._jax\n"
        "cls = jax.ArrayImpl\n"
        "assert cls.__cuda_array_interface__.__doc__ == 'The interface.'\n"
        "assert cls.__dlpack__.__name__ == '__dlpack__' and cls.__dlpack__.__doc__ == 'The capsule.'\n"
        "assert str(inspect.signature(cls.__dlpack__)) == '(self, *, stream=None, max_version=None, copy=None)'\n"
        "module = jaxlib._jax\n"
        "assert type(module.__loader__).__name__ == type(module.__spec__.loader).__name__ == 'SourceFileLoader'\n"
        "assert not any('startup' in str(p) for p in sys.path), sys.path\n"
    ))


@pytest.mark.parametrize("call", ["cupy.asarray(x)", "cupy.asarray(a=x)", "cupy.array(x, dtype=1)", "cupy.array(obj=x)", "cupy.asanyarray(x)",
                                  "numba.cuda.as_cuda_array(x, sync=False)"])
def test_read_only_objects_at_their_consumers(exports, call):
    good(exports(
        "import cupy, numba.cuda\n"
        f"x = ReadOnly(4096); result = {call}\n"
        "assert 4096 in result\n"
        "assert entries() == [[4096, 48, 'ReadOnly int64[2,3]', '']], entries()\n"
        f"{call}\n"
        "assert live() == [4096]\n"
        "del x, result; gc.collect()\n"
        "assert live() == []\n"
        "x = ReadOnly(4096, readonly=False)\n"
        f"{call}\n"
        "assert live() == []\n"
    ))


def test_consumers_look_as_before(exports):
    good(exports(
        "import cupy, inspect\n"
        "assert cupy.asarray.__name__ == 'asarray' and cupy.asarray.__doc__ == 'asarray of cupy'\n"
        "assert str(inspect.signature(cupy.asarray)) == '(a, dtype=None, order=None)'\n"
        "try: cupy.asarray(5)\n"
        "except AttributeError as reason: assert '__cuda_array_interface__' in str(reason)\n"
        "else: raise SystemExit('no error')\n"
        "try: cupy.asarray()\n"
        "except TypeError as reason: assert \"missing 1 required positional argument: 'a'\" in str(reason)\n"
        "else: raise SystemExit('no error')\n"
    ))


def test_a_jax_array_at_a_consumer_is_protected_once(exports):
    good(exports(
        "import cupy, jax\n"
        "x = jax.ArrayImpl(4096)\n"
        "cupy.asarray(x); cupy.array(x)\n"
        "assert [e[2] for e in entries()] == ['jax float32[4096]']\n"
    ))


def test_modules_imported_by_the_user_s_sitecustomize(exports, modules):
    (modules / "sitecustomize.py").write_text("import jax, builtins\nbuiltins.early = jax.ArrayImpl(4096)\n")
    good(exports("early.__cuda_array_interface__\nassert live() == [4096]\n"))


def test_the_user_s_sitecustomize_runs_as_if_ours_were_not_there(exports, modules):
    (modules / "sitecustomize.py").write_text("import sys\nname, path = __name__, __file__\nsys.user = 1\n")
    good(exports(
        "import sitecustomize\n"
        "assert sys.user == 1 and sitecustomize.name == 'sitecustomize'\n"
        f"assert sitecustomize.path == sitecustomize.__file__ == {str(modules / 'sitecustomize.py')!r}\n"
        "assert sitecustomize.__spec__.origin == sitecustomize.__file__\n"
    ))


def test_a_broken_sitecustomize_is_reported_by_python_as_always(exports, modules):
    (modules / "sitecustomize.py").write_text("raise KeyError('mine')\n")
    result = exports("import jax\nx = jax.ArrayImpl(4096); x.__cuda_array_interface__\nassert live() == [4096]\n")
    assert result.returncode == 0
    assert "Error in sitecustomize; set PYTHONVERBOSE for traceback:\nKeyError: 'mine'\n" == result.stderr


def test_nothing_is_imported_that_the_program_does_not_import(exports):
    good(exports("assert not {'cuconst', 'jax', 'jaxlib', 'cupy', 'numba', 'torch', 'inspect'} & set(sys.modules), sys.modules.keys()\n"))


def test_python_subprocesses_are_covered(exports):
    good(exports(
        "import subprocess\n"
        "code = 'import jax; x = jax.ArrayImpl(4096); x.__cuda_array_interface__; import cuconst; raise SystemExit(10 + cuconst.stats().ranges)'\n"
        "assert subprocess.run([sys.executable, '-c', code]).returncode == 11\n"
    ))


@pytest.mark.parametrize("fault,message", [
    ("library.fake_fail(3, 0, 0)", "a JAX array could not be protected: CuconstError: jax float32[4096]: not memory of a live"),
    ("jax.ArrayImpl.block_until_ready = lambda self: 1 / 0", "a JAX array could not be protected: ZeroDivisionError"),
])
def test_what_goes_wrong_is_one_line_and_nothing_else(exports, fault, message):
    result = exports(
        "import jax\n"
        f"{fault}\n"
        "for address in (4096, 8192):\n"
        f"    {fault}\n"
        "    assert jax.ArrayImpl(address).__cuda_array_interface__['data'] == (address, True)\n"
    )
    assert result.returncode == 0 and result.stdout == ""
    assert result.stderr.startswith(f"cuconst: --protect=exports: {message}") and result.stderr.count("\n") == 1


def test_a_watched_module_that_fails_to_import(exports, modules):
    (modules / "cupy" / "__init__.py").write_text("raise ImportError('no GPU')\n")
    good(exports(
        "for i in range(2):\n"
        "    try: import cupy\n"
        "    except ImportError as reason: assert str(reason) == 'no GPU'\n"
        "    else: raise SystemExit('no error')\n"
        "try: import numba.cuda.missing\n"
        "except ModuleNotFoundError: pass\n"
    ))


def test_a_module_without_what_is_looked_for(exports, modules):
    (modules / "jaxlib" / "_jax.py").write_text("ArrayImpl = 5\n")
    (modules / "cupy" / "__init__.py").write_text("asarray = None\n")
    good(exports("import jaxlib._jax, cupy\nassert jaxlib._jax.ArrayImpl == 5 and cupy.asarray is None\n"))


def test_an_inactive_library_leaves_everything_alone(exports):
    good(exports(
        "import cupy, jax\n"
        "library.fake_disable(1)\n"
        "x = jax.ArrayImpl(4096); x.__cuda_array_interface__; x.__dlpack__(); cupy.asarray(ReadOnly(8192))\n"
        "assert live() == []\n"
    ))


def test_many_threads(exports):
    good(exports(
        "import jax, threading\n"
        "def work(n):\n"
        "    for i in range(100):\n"
        "        x = jax.ArrayImpl(((n * 1000 + i) << 20) + 4096); x.__cuda_array_interface__; x.deleted = i % 3 == 0\n"
        "threads = [threading.Thread(target=work, args=(n,)) for n in range(6)]\n"
        "for t in threads: t.start()\n"
        "for t in threads: t.join()\n"
        "gc.collect()\n"
        "counts = (ctypes.c_uint64 * 5)(); library.fake_get_counts(counts)\n"
        "assert list(counts) == [600, 0, 600, 0, 0], list(counts)\n"
    ))


def test_fork_while_another_thread_is_inside(exports):
    good(exports(
        "import warnings; warnings.simplefilter('ignore')\n"  # Python warns of a fork with threads
        "import jax, cuconst._exports, os, signal, threading\n"
        "inside, leave = threading.Event(), threading.Event()\n"
        "def work():\n"
        "    with cuconst._exports.jax_arrays._lock: inside.set(); leave.wait()\n"
        "thread = threading.Thread(target=work); thread.start(); inside.wait()\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    signal.alarm(20)\n"
        "    x = jax.ArrayImpl(4096); x.__cuda_array_interface__\n"
        "    os._exit(10 + len(live()))\n"
        "assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 11\n"
        "leave.set(); thread.join()\n"
    ))


@pytest.mark.parametrize("option", ["-I", "-E", "-S"])
def test_python_that_loads_no_start_up_module_is_named(tool, option):
    source = "import ctypes; ctypes.CDLL(None).fake_status(1, 0, 0, 0)"
    result = tool("run", "--protect=exports", "--", sys.executable, option, "-c", source)
    assert result.returncode == 0
    assert result.stderr == "cuconst: warning: --protect=exports: no Python process loaded the start-up module (was it started with -I, -E or -S?)\n"


def test_verbose_counts(exports):
    result = exports("import jax\nx = jax.ArrayImpl(4096); x.__dlpack__()\nlibrary.fake_status(1, 0, 0, 0)\n", options=["-v"])
    assert result.returncode == 0
    assert "cuconst: 1 exported object was protected, in 1 Python process\n" in result.stderr


def test_without_the_option_no_start_up_module(tool, modules):
    result = tool("run", "--", sys.executable, "-c",
                  "import jax\nx = jax.ArrayImpl(4096); x.__dlpack__()\nimport cuconst\nassert cuconst.stats().ranges == 0", PYTHONPATH=modules)
    good(result)


def test_without_the_python_module(tool, tmp_path):
    result = tool("run", "--protect=exports", "--", "true", CUCONST_PYTHON=tmp_path)
    assert result.returncode == 69
    assert result.stderr == f"cuconst: $CUCONST_PYTHON: {tmp_path}: no cuconst/__init__.py in it\n"


REAL = """
import json, pickle, weakref
import jax, jax.numpy as jnp, numpy as np
x = jnp.arange(6, dtype=jnp.float32).reshape(2, 3)
try:
    x.__cuda_array_interface__
    interface = "there"
except AttributeError as reason:
    interface = str(reason)
back = jax.dlpack.from_dlpack(x)
seen = np.from_dlpack(x)
f = jax.jit(lambda a: a + 1, donate_argnums=0)
y = f(x * 2)
print(json.dumps({
    "interface": interface, "has": hasattr(x, "__cuda_array_interface__"), "back": back.tolist(), "seen": seen.tolist(), "y": y.tolist(),
    "grad": jax.grad(lambda a: (a ** 2).sum())(x).tolist(), "pickle": pickle.loads(pickle.dumps(x)).tolist(), "type": repr(type(x)),
    "doc": type(x).__dlpack__.__doc__, "device": [int(n) for n in x.__dlpack_device__()],
}, sort_keys=True))
"""


@pytest.mark.skipif(importlib.util.find_spec("jax") is None, reason="jax is not installed: the look-alikes cover the hooks, this covers that the real one is not disturbed")
def test_real_jax_on_the_cpu_is_unchanged(tool, tmp_path):
    program = tmp_path / "program.py"
    program.write_text(REAL)
    plain = tool("run", "--", sys.executable, program, JAX_PLATFORMS="cpu")
    hooked = tool("run", "--protect=exports", "--option", "help=0", "--", sys.executable, program, JAX_PLATFORMS="cpu")
    assert plain.returncode == 0, plain.stderr
    assert (hooked.returncode, hooked.stderr, hooked.stdout) == (plain.returncode, plain.stderr, plain.stdout)
    assert json.loads(plain.stdout)["y"] == [[1.0, 3.0, 5.0], [7.0, 9.0, 11.0]]
