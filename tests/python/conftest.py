"""Frame of the suite: everything runs with the fake shim preloaded, in a child of pytest where a test needs a process of its own.

The API tests need the fake shim in the very process that imports cuconst, so pytest itself is started with it preloaded (meson does that; by
hand: LD_PRELOAD=build/tests/python/libfake_shim.so PYTHONPATH=tools/python .venv/bin/python -m pytest tests/python/test_*.py). Without it they fail; they are not skipped.
"""

import ctypes
import os
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BUILD = pathlib.Path(os.environ.get("CUCONST_BUILD", ROOT / "build"))
TOOL = BUILD / "tools" / "cuconst"
SHIM = BUILD / "tests" / "python" / "libfake_shim.so"
PYTHON = ROOT / "tools" / "python"
TIMEOUT = 60


class Counts(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint64) for name in ("protects", "unprotects", "releases", "checks", "live")]


class Fake:
    """The fake shim of this process."""

    def __init__(self):
        self.library = ctypes.CDLL(None)

    def reset(self):
        self.library.fake_reset()

    def memory(self, ptr, nbytes):
        self.library.fake_memory(ctypes.c_uint64(ptr), ctypes.c_uint64(nbytes))

    def fail(self, code, after=0, cuda=0):
        self.library.fake_fail(int(code), after, cuda)

    def disable(self):
        self.library.fake_disable(1)

    def change(self, address):
        self.library.fake_change(ctypes.c_uint64(address))

    def free(self, address):
        self.library.fake_free(ctypes.c_uint64(address))

    @property
    def counts(self):
        counts = Counts()
        self.library.fake_get_counts(ctypes.byref(counts))
        return counts

    @property
    def entries(self):
        """(ptr, bytes, label, owner, flags, stream) of what is protected, ascending."""
        found = []
        ptr, nbytes, stream = ctypes.c_uint64(), ctypes.c_uint64(), ctypes.c_uint64()
        label, owner = ctypes.create_string_buffer(256), ctypes.create_string_buffer(256)
        flags = ctypes.c_uint()
        refs = [ctypes.byref(ptr), ctypes.byref(nbytes), label, owner, ctypes.byref(flags), ctypes.byref(stream)]
        while self.library.fake_entry(ctypes.c_size_t(len(found)), *refs):
            found.append((ptr.value, nbytes.value, label.value.decode(), owner.value.decode(), flags.value, stream.value))
        return sorted(found)

    @property
    def ranges(self):
        return [entry[:2] for entry in self.entries]


@pytest.fixture
def fake():
    fake = Fake()
    fake.reset()
    yield fake
    fake.reset()


def clean_environment(**more):
    """Ours, without anything that would already guard the child."""
    env = {k: v for k, v in os.environ.items() if not k.startswith("CUCONST_") and k not in ("LD_PRELOAD", "PYTHONPATH")}
    env.update({k: str(v) for k, v in more.items()})
    return env


@pytest.fixture
def tool():
    """Runs the tool with the fake shim as its library; keywords are environment variables."""

    def run(*arguments, cwd=None, stdin=None, **env):
        return subprocess.run(
            [TOOL, *map(str, arguments)],
            env=clean_environment(**{"CUCONST_LIBRARY": SHIM, "CUCONST_PYTHON": PYTHON, **env}),
            cwd=cwd, input=stdin, capture_output=True, text=True, timeout=TIMEOUT,
        )

    return run


@pytest.fixture
def python():
    """Runs a Python program with the fake shim preloaded and the module importable."""

    def run(source, *options, **env):
        return subprocess.run(
            [sys.executable, *options, "-c", source],
            env=clean_environment(**{"LD_PRELOAD": SHIM, "PYTHONPATH": PYTHON, **env}),
            capture_output=True, text=True, timeout=TIMEOUT,
        )

    return run


class Array:
    """An object with __cuda_array_interface__ that numpy describes; `base` is where the memory of numpy's array would lie on the device."""

    def __init__(self, array, base=0x7000_0000_0000, readonly=False):
        owner = array
        while owner.base is not None:
            owner = owner.base
        self.offset = array.__array_interface__["data"][0] - owner.__array_interface__["data"][0]
        self.array, self.base, self.readonly = array, base, readonly

    @property
    def __cuda_array_interface__(self):
        return {
            "shape": self.array.shape, "typestr": self.array.dtype.str, "strides": self.array.strides, "version": 3,
            "data": (self.base + self.offset, self.readonly), "stream": None,
        }


@pytest.fixture
def array():
    return Array
