"""Compiles kernels to PTX for ptx/: nvcc, NVRTC and Triton, none of which needs a GPU.

usage: make_ptx.py nvcc|nvrtc|triton FOLDER

What each kernel does to its parameters is written by hand, here or in compiled.cu; nothing of it comes from the analyser.
"""
import ctypes
import glob
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.path.join(HERE, "compiled.cu")


# Unoptimised code calls atomicAdd() as a function, for shared and for global memory.
DEBUG = {
    "histogram": "load store none : clear",
}


def expectations(others=None):
    with open(SOURCE, encoding="utf-8") as file:
        lines = [line for line in file if line.startswith("//= ")]
    for name, slots in (others or {}).items():
        lines = [f"//= {name}: {slots}\n" if line.startswith(f"//= {name}:") else line for line in lines]
    return lines


def save(folder, name, text, lines):
    # Debug sections and comments of the compiler only make the file larger.
    lines_of_text = [line for line in text.replace("\0", "").splitlines() if line.strip() and not line.startswith("//")]
    kept = [line for line in lines_of_text if line.split()[0] != ".loc"]
    cut = next((i for i, line in enumerate(kept) if line.strip().startswith((".file", ".section"))), len(kept))
    with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
        file.writelines(lines)
        file.write("\n".join(kept[:cut]) + "\n")


def nvcc(folder):
    for name, options, others in (("o3", ["-O3"], {}), ("debug", ["-G"], DEBUG)):
        with tempfile.TemporaryDirectory() as scratch:
            out = os.path.join(scratch, "out.ptx")
            subprocess.run(["nvcc", "-ptx", "-arch=sm_90", *options, "-o", out, SOURCE], check=True)
            with open(out, encoding="utf-8") as file:
                save(folder, f"nvcc_{name}.ptx", file.read(), expectations(others))


def nvrtc(folder):
    import nvidia

    path = glob.glob(os.path.join(list(nvidia.__path__)[0], "*", "lib", "libnvrtc.so*"))[0]
    library = ctypes.CDLL(path)
    with open(SOURCE, "rb") as file:
        source = file.read()
    for arch in ("80", "100"):
        program = ctypes.c_void_p()
        options = (ctypes.c_char_p * 2)(f"--gpu-architecture=compute_{arch}".encode(), b"--std=c++17")
        if library.nvrtcCreateProgram(ctypes.byref(program), source, b"compiled.cu", 0, None, None):
            raise SystemExit("nvrtcCreateProgram")
        if library.nvrtcCompileProgram(program, 2, options):
            size = ctypes.c_size_t()
            library.nvrtcGetProgramLogSize(program, ctypes.byref(size))
            log = ctypes.create_string_buffer(size.value)
            library.nvrtcGetProgramLog(program, log)
            raise SystemExit(log.value.decode())
        size = ctypes.c_size_t()
        library.nvrtcGetPTXSize(program, ctypes.byref(size))
        text = ctypes.create_string_buffer(size.value)
        library.nvrtcGetPTX(program, text)
        save(folder, f"nvrtc_{arch}.ptx", text.value.decode(), expectations())


def triton(folder):
    import triton_kernels

    for kernel, signature, constants, slots in triton_kernels.KERNELS:
        for arch in (80, 90):
            text = triton_kernels.compile(kernel, signature, constants, arch)
            save(folder, f"triton_{kernel.__name__}_{arch}.ptx", text, [f"//= {kernel.__name__}: {slots}\n"])


if __name__ == "__main__":
    sys.path.insert(0, HERE)
    {"nvcc": nvcc, "nvrtc": nvrtc, "triton": triton}[sys.argv[1]](sys.argv[2])
