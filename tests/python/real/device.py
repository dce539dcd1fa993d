"""What the test programs share: device memory and kernels, by cuda-bindings. Buffers p and q hold SIZE bytes of 1 and of 3."""
import ctypes
import os
import weakref

from cuda.bindings import driver
from cuda.bindings.driver import CUresult

try:
    from cuconst import protect
except ImportError:  # the program runs alone

    def protect(*arguments, **keywords):
        return None


SIZE = 4096


def check(answer):
    """The outputs of a driver call; SystemExit with the error's name."""
    error, *outputs = answer
    if error != CUresult.CUDA_SUCCESS:
        raise SystemExit(f"not so: {error.name}")
    return outputs[0] if len(outputs) == 1 else tuple(outputs)


def start():
    check(driver.cuInit(0))
    check(driver.cuCtxSetCurrent(check(driver.cuDevicePrimaryCtxRetain(check(driver.cuDeviceGet(0))))))


start()
stream = check(driver.cuStreamCreate(driver.CUstream_flags.CU_STREAM_NON_BLOCKING))
with open(os.environ["MISUSE_PTX"], "rb") as file:
    _module = check(driver.cuModuleLoadData(file.read() + b"\0"))


def filled(byte, size=SIZE):
    address = int(check(driver.cuMemAlloc(size)))
    check(driver.cuMemsetD8(address, byte, size))
    return address


def kernel(name, *arguments, count=SIZE // 4, where=0):
    """Arguments of cuLaunchKernel, so that the launch is the program's own line. Numbers above 32 bits are addresses."""
    types = tuple(ctypes.c_uint64 if argument >> 32 else ctypes.c_int32 for argument in arguments)
    function = check(driver.cuModuleGetFunction(_module, name.encode()))
    block = min(count, 256)
    return function, -(-count // block), 1, 1, block, 1, 1, 0, where, (arguments, types), 0


def synchronize():
    check(driver.cuCtxSynchronize())


def content(address, size=SIZE):
    host = bytearray(size)
    check(driver.cuMemcpyDtoH(host, address, size))
    return bytes(host)


def digest(address, size=SIZE):
    """For stdout: how many of the bytes there have which value."""
    seen = content(address, size)
    return {value: seen.count(value) for value in sorted(set(seen))}


class Memory:
    """An array in memory of its own, which is freed with it; at exit, as most libraries do, nothing is."""

    def __init__(self, shape=(SIZE // 4,), strides=None, byte=1, size=SIZE, readonly=False):
        self.address, self.size = filled(byte, size), size
        self.__cuda_array_interface__ = {"shape": shape, "strides": strides, "typestr": "<i4", "version": 3,
                                         "data": (self.address, readonly), "stream": None}
        weakref.finalize(self, driver.cuMemFree, self.address).atexit = False


p, q = filled(1), filled(3)
