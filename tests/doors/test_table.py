"""The tables against what they describe: cuda.h, a real driver's symbols, NVIDIA's other headers, and what the library exports."""
import os
import pathlib
import re
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))
import gen_entrypoints  # noqa: E402
import gen_names  # noqa: E402

DOORS = ROOT / "shim/doors"
BUILD = pathlib.Path(os.environ["CUCONST_BUILD"])
HEADERS = pathlib.Path(os.environ["CUDA_INCLUDE"])
LIBRARY = BUILD / "shim/libcuconst.so"
ROWS = gen_entrypoints.read_table(DOORS / "entrypoints.def")
NAMES = gen_names.read_names(DOORS / "names.def")


def preprocessed(header, *defines):
    if not (HEADERS / header).exists():
        pytest.skip(f"{header} is not installed")
    command = [os.environ.get("CC", "cc"), "-E", "-P", "-I", str(HEADERS), *defines, "-x", "c", str(HEADERS / header)]
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout


def functions(text, pattern):
    """name -> parameters of each function that is declared or defined."""
    text = re.sub(r"__attribute__\s*\(\((?:[^()]|\([^()]*\))*\)\)", "", text)
    return {name: " ".join(parameters.split()) for name, parameters in
            re.findall(rf"(?<![\w*.])({pattern})\s*\(([^()]*(?:\([^()]*\)[^()]*)*)\)\s*[;{{]", text)}


@pytest.mark.parametrize("defines", [[], ["-D__CUDA_API_VERSION_INTERNAL"], ["-DCUDA_API_PER_THREAD_DEFAULT_STREAM"]])
def test_every_function_of_cuda_h_has_a_row(defines):
    declared = functions(preprocessed("cuda.h", *defines), r"cu[A-Z]\w*")
    assert len(declared) > 400
    # An inline function of the header itself, no entry point.
    inline = {"cuGetProcAddress_v2_ptsz"}
    missing = sorted(set(declared) - {row.symbol for row in ROWS} - inline)
    assert not missing, f"shim/doors/entrypoints.def does not classify {missing}"


def test_a_function_nobody_classified_is_found():
    text = preprocessed("cuda.h") + "\nCUresult cuFrobnicate(CUdeviceptr a, int b);\n"
    assert set(functions(text, r"cu[A-Z]\w*")) - {row.symbol for row in ROWS} == {"cuFrobnicate"}


@pytest.mark.parametrize("header", ["cudaProfiler.h", "cudaGL.h", "cudaEGL.h", "cudaVDPAU.h"])
def test_every_function_of_the_other_driver_headers_has_a_row(header):
    text = (HEADERS / header).read_text() if (HEADERS / header).exists() else pytest.skip(f"{header} is not installed")
    declared = set(re.findall(r"CUresult\s+CUDAAPI\s+(cu[A-Z]\w*)\s*\(", text))
    windows = {"cuWGLGetDevice"}
    assert declared and not declared - windows - {row.symbol for row in ROWS}


def test_rows_are_what_a_real_driver_exports():
    lines = (ROOT / "tests/softgpu/symbols.tsv").read_text().splitlines()
    real = {line.split("\t")[0] for line in lines if not line.startswith("#")} - {"symbol"}
    assert {row.symbol for row in ROWS} == real


def defined(path):
    out = subprocess.run(["nm", "-D", "--defined-only", str(path)], check=True, capture_output=True, text=True, timeout=60)
    return [line.split()[-1] for line in out.stdout.splitlines()]


def test_exports_are_exactly_these():
    hooks = [row.symbol for row in ROWS if row.verdict in (*gen_entrypoints.HOOKED, "door")]
    header = (ROOT / "shim/cuconst.h").read_text()
    api = set(re.findall(r"^(?:cuconst_result |int |uint64_t |void \*|const char \*)(cuconst_\w+)\(", header, re.M))
    assert len(api) == 13
    wanted = {*hooks, *(name.symbol for name in NAMES), *api, "dlclose", "dlsym", "dlvsym"}
    assert sorted(defined(LIBRARY)) == sorted(wanted)
    assert all("@" not in name for name in defined(LIBRARY)), "a version of our own would not be met by dlsym@GLIBC"


def test_library_is_linked_as_it_must_be():
    dynamic = subprocess.run(["readelf", "-dlW", str(LIBRARY)], check=True, capture_output=True, text=True, timeout=60).stdout
    assert "NOW" in dynamic and "NODELETE" in dynamic and "GNU_RELRO" in dynamic and "TEXTREL" not in dynamic
    sizes = re.findall(r"\((?:INIT|FINI)_ARRAYSZ\)\s+(\d+)", dynamic)
    assert set(sizes) <= {"8"}, "a constructor or destructor besides the compiler's own"
    needed = re.findall(r"NEEDED.*\[(.*)\]", dynamic)
    assert set(needed) <= {"libc.so.6", "libpthread.so.0", "libdl.so.2", "ld-linux-x86-64.so.2"}, "nothing but libc comes into every process"
    assert re.search(r"GNU_STACK.* RW ", dynamic)


def test_no_plain_dlsym():
    undefined = subprocess.run(["nm", "-D", "--undefined-only", str(LIBRARY)], check=True, capture_output=True, text=True,
                               timeout=60).stdout
    assert not re.search(r"\b(dlsym|dlvsym|__libc_dlsym|_dl_sym)\b", undefined)
    assert "__tls_get_addr" not in undefined, "reaching thread-local state may allocate, inside somebody's allocator"
    for path in sorted((ROOT / "shim").rglob("*.c")):
        code = re.sub(r"/\*.*?\*/|\"(?:\\.|[^\"\\])*\"", "", path.read_text(), flags=re.S)
        assert not re.search(r"(?<![\w.>])dlsym\s*\(", code), f"{path} calls dlsym: use door_dlsym"


SIMPLE = {"enum cudaMemcpyKind": "int", "cudaMemcpyKind": "int", "cufftHandle": "int", "cufftType": "int",
          "cudaDataType": "int", "struct cudaPitchedPtr": "struct runtime_pitched",
          "struct cudaExtent": "struct runtime_extent", "long long int": "long long"}
HANDLES = ("cudaStream_t", "cudaArray_t", "cudaArray_const_t", "cudaGraphExec_t", "cudaKernel_t")


def passed_as(parameter):
    """How a parameter is passed: a pointer, or its type."""
    parameter = re.sub(r"=.*|__dv\(.*?\)|__restrict__", "", parameter).strip()
    kind = re.sub(r"\s*\b\w+\s*(\[\d*\])?$", "", parameter) if "*" not in parameter else "*"
    kind = re.sub(r"\bconst\b", "", kind).strip()
    if "*" in kind or kind in HANDLES:
        return "pointer"
    return SIMPLE.get(kind, kind)


@pytest.mark.parametrize("header,library,pattern", [("cuda_runtime_api.h", "cudart", r"cuda[A-Z]\w*"),
                                                    ("cufft.h", "cufft", r"cufft[A-Z]\w*"),
                                                    ("cufftXt.h", "cufft", r"cufftXt[A-Z]\w*")])
def test_names_are_declared_as_in_the_headers(header, library, pattern):
    declared = functions(preprocessed(header, "-D__dv(v)="), pattern)
    rows = [name for name in NAMES if name.library == library and name.symbol in declared]
    assert len(rows) >= {"cuda_runtime_api.h": 30, "cufft.h": 17, "cufftXt.h": 2}[header]
    for name in rows:
        if "BatchAsync" in name.symbol:
            continue  # one word more on purpose: names.def
        wanted = [passed_as(parameter) for parameter in declared[name.symbol].split(",")]
        assert [passed_as(parameter) for parameter in name.params] == wanted, name.symbol


def test_per_thread_names_are_declared_as_the_plain_ones():
    params = {name.symbol: name.params for name in NAMES}
    forms = [symbol for symbol in params if symbol.endswith(("_ptds", "_ptsz"))]
    assert len(forms) > 30
    for symbol in forms:
        assert params[symbol] == params[symbol[:-5]], symbol


@pytest.mark.parametrize("library", ["libcudart.so", "libcufft.so"])
def test_names_are_what_the_real_library_exports(library):
    places = [HEADERS.parent / "lib64" / library, HEADERS.parent / "lib" / library]
    found = next((place for place in places if place.exists()), None) or pytest.skip(f"{library} is not installed")
    # Without a version: libraries of NVIDIA's carry one, "cudaMemcpy@@libcudart.so.13".
    exported = {name.split("@")[0] for name in defined(found)}
    names = {name.symbol for name in NAMES if name.library == library[3:-3]}
    assert not names - exported
    if library == "libcudart.so":
        writers = re.compile(r"(__)?cuda(Memcpy|Memset|GraphLaunch)(?!.*Device$)")
        assert not {name for name in exported if writers.match(name)} - names
        launches = {name for name in exported if re.match(r"(__)?cudaLaunch(Cooperative)?Kernel", name)}
        assert launches and not launches & names, "the stack names them"
