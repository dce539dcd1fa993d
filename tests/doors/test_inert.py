"""Programs that have nothing to do with CUDA, and Python's ctypes, under the preload."""
import os
import pathlib
import subprocess
import sys

import pytest

BUILD = pathlib.Path(os.environ["CUCONST_BUILD"])
LIBRARY = BUILD / "shim/libcuconst.so"
DRIVER = BUILD / "tests/doors"


def run(command, **environment):
    base = {key: value for key, value in os.environ.items() if key not in ("LD_PRELOAD", "CUCONST_OPTIONS", "LD_LIBRARY_PATH")}
    return subprocess.run(command, env=base | environment, capture_output=True, text=True, timeout=30)


@pytest.mark.parametrize("command", [["/bin/true"], ["/bin/false"], ["timeout", "5", "sh", "-c", "echo a; exit 3"],
                                     ["sh", "-c", "exec 0<&- 1>&- 2>&-; sleep 0; exit 5"], ["ldconfig", "-p"],
                                     ["cc", "--version"], ["env", "-i", "/bin/echo", "x"], ["nosuchprogram"]])
def test_the_program_is_undisturbed(command, tmp_path):
    if command[0] == "nosuchprogram":
        command = ["sh", "-c", "nosuchprogram 2>/dev/null"]
    bare = run(command)
    log = tmp_path / "log.jsonl"
    shimmed = run(command, LD_PRELOAD=str(LIBRARY), CUCONST_OPTIONS=f"log={log}:help=1:nonsense=1")
    assert (shimmed.returncode, shimmed.stdout, shimmed.stderr) == (bare.returncode, bare.stdout, bare.stderr)
    assert not log.exists()


def test_no_driver_comes_in():
    maps = run(["cat", "/proc/self/maps"], LD_PRELOAD=str(LIBRARY), LD_LIBRARY_PATH=str(DRIVER)).stdout
    assert "libcuconst.so" in maps
    assert "libcuda.so" not in maps


def test_closed_descriptors():
    script = f"exec 0<&- 1>&- 2>&-; LD_PRELOAD={LIBRARY} LD_LIBRARY_PATH={DRIVER} {sys.executable} -c 'import ctypes; " \
             "ctypes.CDLL(\"libcuda.so.1\").cuMemcpyHtoD_v2(0, 0, 0)'"
    assert run(["sh", "-c", script]).returncode == 0


CTYPES = """
import ctypes
driver = ctypes.CDLL({name!r}, mode={mode})
class Stats(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t)] + [(n, ctypes.c_uint64) for n in "ranges bytes calls launches graphs".split()]
for _ in range(5):
    driver.cuMemcpyHtoD_v2(0, 0, 0)
    driver.cuLaunchKernel(*[0] * 11)
resolve = driver.cuGetProcAddress_v2
found = ctypes.c_void_p()
assert resolve(b"cuMemcpyDtoD", ctypes.byref(found), 12000, ctypes.c_uint64(0), None) == 0
ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_uint64, ctypes.c_uint64, ctypes.c_size_t)(found.value)(0, 0, 0)
stats = Stats(size=ctypes.sizeof(Stats))
assert ctypes.CDLL(None).cuconst_stats(ctypes.byref(stats)) == 0
print(stats.calls, stats.launches, stats.graphs)
"""


@pytest.mark.parametrize("name", ["libcuda.so.1", "libcuda.so", str(DRIVER / "libcuda.so.1")])
@pytest.mark.parametrize("mode", ["ctypes.RTLD_LOCAL", "ctypes.RTLD_GLOBAL"])
def test_ctypes(name, mode):
    out = run([sys.executable, "-c", CTYPES.format(name=name, mode=mode)], LD_PRELOAD=str(LIBRARY),
              LD_LIBRARY_PATH=str(DRIVER))
    assert out.stderr == ""
    assert out.stdout.split() == ["6", "5", "0"]


def test_python_without_cuda_finds_none():
    script = "import ctypes\nfor n in ('cuMemFree_v2', 'cudaMemcpy', 'cufftExecC2C'):\n assert not hasattr(ctypes.CDLL(None), n), n"
    out = run([sys.executable, "-c", script], LD_PRELOAD=str(LIBRARY))
    assert out.returncode == 0 and out.stderr == ""


def test_shim_from_an_odd_path(tmp_path):
    """A path with blanks cannot be preloaded by LD_PRELOAD's rules, but a link of any name can."""
    link = tmp_path / "x.bin"
    link.symlink_to(LIBRARY)
    out = run([sys.executable, "-c", CTYPES.format(name="libcuda.so.1", mode="ctypes.RTLD_LOCAL")], LD_PRELOAD=str(link),
              LD_LIBRARY_PATH=str(DRIVER))
    assert out.stdout.split() == ["6", "5", "0"], out.stderr


def test_nothing_inside_ends_the_process_or_prints_through_stdio():
    """The one way out is _exit() or abort(), in strict; uthash, unless told otherwise, calls exit() when memory runs out."""
    names = run(["nm", "-D", "--undefined-only", str(LIBRARY)]).stdout.split()
    used = {name.split("@")[0] for name in names}
    assert {"_exit", "malloc"} <= used
    assert not used & {"exit", "quick_exit", "dlsym", "printf", "fprintf", "__fprintf_chk", "puts", "fputs", "fwrite", "perror"}
