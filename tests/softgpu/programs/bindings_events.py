"""The low-level bindings: a kernel by nvrtc calls, two streams in order by an event, managed memory, a read-only alias."""
import ctypes

import numpy as np
from cuda.bindings import driver, nvrtc

SOURCE = b"""
extern "C" __global__ void fill(unsigned *to, unsigned value) { to[threadIdx.x] = value; }
extern "C" __global__ void twice(unsigned *to, const unsigned *from) { to[threadIdx.x] = 2 * from[threadIdx.x]; }
"""


def ok(result):
    status, *rest = result
    assert int(status) == 0, status
    return rest[0] if len(rest) == 1 else rest


ok(driver.cuInit(0))
ok(driver.cuCtxSetCurrent(ok(driver.cuDevicePrimaryCtxRetain(0))))
program = ok(nvrtc.nvrtcCreateProgram(SOURCE, b"events.cu", 0, [], []))
ok(nvrtc.nvrtcCompileProgram(program, 1, [b"--gpu-architecture=compute_80"]))
text = b" " * ok(nvrtc.nvrtcGetPTXSize(program))
ok(nvrtc.nvrtcGetPTX(program, text))
module = ok(driver.cuModuleLoadData(np.char.array(text)))
fill, twice = (ok(driver.cuModuleGetFunction(module, name)) for name in (b"fill", b"twice"))

managed = ok(driver.cuMemAllocManaged(256, driver.CUmemAttach_flags.CU_MEM_ATTACH_GLOBAL.value))
device = ok(driver.cuMemAlloc(256))
first, second = (ok(driver.cuStreamCreate(driver.CUstream_flags.CU_STREAM_NON_BLOCKING.value)) for _ in range(2))
event = ok(driver.cuEventCreate(driver.CUevent_flags.CU_EVENT_DISABLE_TIMING.value))
ok(driver.cuLaunchKernel(fill, 1, 1, 1, 64, 1, 1, 0, first, ((int(device), 21), (ctypes.c_void_p, ctypes.c_uint)), 0))
ok(driver.cuEventRecord(event, first))
ok(driver.cuStreamWaitEvent(second, event, 0))
ok(driver.cuLaunchKernel(twice, 1, 1, 1, 64, 1, 1, 0, second, ((int(managed), int(device)), (ctypes.c_void_p, ctypes.c_void_p)), 0))
ok(driver.cuStreamSynchronize(second))
seen = np.ctypeslib.as_array((ctypes.c_uint * 64).from_address(int(managed)))
assert (seen == 42).all(), seen

status, = driver.cuMemcpyHtoD(int(device) + 200, seen.ctypes.data, 256)
assert status == driver.CUresult.CUDA_ERROR_INVALID_VALUE, status
ok(driver.cuModuleUnload(module))
print("bindings_events: two streams in order, managed memory seen by the host")
