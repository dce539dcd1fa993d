#!/usr/bin/env python3
"""NVIDIA's own Python bindings, unmodified, on the software GPU: initialise, allocate, copy, load PTX, launch, capture a graph.

Needs cuda-bindings 13 from PyPI and LD_LIBRARY_PATH with the folder of libcuda.so.1. Exits with 77 where the package is missing."""
import ctypes
import sys

try:
    from cuda.bindings import driver as cu
except ImportError:
    sys.exit(77)

PTX = b"""
.version 7.0
.target sm_70
.address_size 64
.visible .entry scale(.param .u64 data, .param .f32 factor, .param .u32 count)
{
    .reg .pred %p1;
    .reg .f32 %f<3>;
    .reg .b32 %r<6>;
    .reg .b64 %rd<5>;
    ld.param.u64 %rd1, [data];
    ld.param.f32 %f1, [factor];
    ld.param.u32 %r1, [count];
    mov.u32 %r2, %ctaid.x;
    mov.u32 %r3, %ntid.x;
    mov.u32 %r4, %tid.x;
    mad.lo.s32 %r5, %r2, %r3, %r4;
    setp.ge.u32 %p1, %r5, %r1;
    @%p1 bra DONE;
    cvta.to.global.u64 %rd2, %rd1;
    mul.wide.u32 %rd3, %r5, 4;
    add.s64 %rd4, %rd2, %rd3;
    ld.global.f32 %f2, [%rd4];
    mul.f32 %f2, %f2, %f1;
    st.global.f32 [%rd4], %f2;
DONE:
    ret;
}
\0"""


def ok(result):
    status, *rest = result
    assert status == cu.CUresult.CUDA_SUCCESS, status
    return rest[0] if len(rest) == 1 else tuple(rest)


def main():
    ok(cu.cuInit(0))
    device = ok(cu.cuDeviceGet(0))
    name = ok(cu.cuDeviceGetName(64, device)).split(b"\0")[0].decode()
    assert name == "cuconst software GPU", name
    ok(cu.cuCtxSetCurrent(ok(cu.cuDevicePrimaryCtxRetain(device))))
    count = 1000
    bytes_ = 4 * count
    host = (ctypes.c_float * count)(*range(count))
    memory = ok(cu.cuMemAlloc(bytes_))
    ok(cu.cuMemcpyHtoD(memory, ctypes.addressof(host), bytes_))

    module = ok(cu.cuModuleLoadData(PTX))
    function = ok(cu.cuModuleGetFunction(module, b"scale"))
    arguments = ((int(memory), 3.0, count), (ctypes.c_void_p, ctypes.c_float, ctypes.c_uint))
    stream = ok(cu.cuStreamCreate(0))
    ok(cu.cuLaunchKernel(function, 8, 1, 1, 128, 1, 1, 0, stream, arguments, 0))
    ok(cu.cuStreamSynchronize(stream))
    back = (ctypes.c_float * count)()
    ok(cu.cuMemcpyDtoH(ctypes.addressof(back), memory, bytes_))
    assert list(back) == [3.0 * i for i in range(count)]

    ok(cu.cuStreamBeginCapture(stream, cu.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_GLOBAL))
    ok(cu.cuLaunchKernel(function, 8, 1, 1, 128, 1, 1, 0, stream, arguments, 0))
    graph = ok(cu.cuStreamEndCapture(stream))
    executable = ok(cu.cuGraphInstantiate(graph, 0))
    for _ in range(2):
        ok(cu.cuGraphLaunch(executable, stream))
    ok(cu.cuStreamSynchronize(stream))
    ok(cu.cuMemcpyDtoH(ctypes.addressof(back), memory, bytes_))
    assert list(back) == [27.0 * i for i in range(count)]

    status, = cu.cuMemcpyHtoD(memory, ctypes.addressof(host), bytes_ + 1)
    assert status == cu.CUresult.CUDA_ERROR_INVALID_VALUE, status
    ok(cu.cuMemFree(memory))
    print(f"{name}: allocate, copy, launch, capture and replay: as computed")


if __name__ == "__main__":
    main()
