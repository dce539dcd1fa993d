#!/usr/bin/env python3
"""demo_program.py for cuda.bindings, with the kernel as PTX text: for machines without cuda-core or NVRTC.

It keeps calibration weights on the device and scales blocks of samples by them. Step 1 passes the arrays to the kernel in the
wrong order, so that the kernel writes into the weights. Step 2 uploads new samples to the address of the weights. Neither
is an error for CUDA: both succeed, and from then on all results are wrong.
"""
import array
import ctypes
import sys

from cuda.bindings import driver

try:
    import cuconst
except ImportError:  # not under `cuconst run`
    cuconst = None

COUNT = 1024
BYTES = 4 * COUNT

# out[i] = samples[i] * weights[i]
SCALE = b"""
.version 7.0
.target sm_60
.address_size 64

.visible .entry scale(.param .u64 out, .param .u64 samples, .param .u64 weights, .param .u32 count)
{
    .reg .pred %p<2>;
    .reg .b32 %r<6>;
    .reg .f32 %f<4>;
    .reg .b64 %rd<11>;

    ld.param.u64 %rd1, [out];
    ld.param.u64 %rd2, [samples];
    ld.param.u64 %rd3, [weights];
    ld.param.u32 %r1, [count];
    mov.u32 %r2, %ntid.x;
    mov.u32 %r3, %ctaid.x;
    mov.u32 %r4, %tid.x;
    mad.lo.s32 %r5, %r3, %r2, %r4;
    setp.ge.u32 %p1, %r5, %r1;
    @%p1 bra done;
    cvta.to.global.u64 %rd4, %rd1;
    cvta.to.global.u64 %rd5, %rd2;
    cvta.to.global.u64 %rd6, %rd3;
    mul.wide.u32 %rd7, %r5, 4;
    add.s64 %rd8, %rd5, %rd7;
    ld.global.f32 %f1, [%rd8];
    add.s64 %rd9, %rd6, %rd7;
    ld.global.f32 %f2, [%rd9];
    mul.f32 %f3, %f1, %f2;
    add.s64 %rd10, %rd4, %rd7;
    st.global.f32 [%rd10], %f3;
done:
    ret;
}
\0"""


class CudaError(RuntimeError):
    """A driver call that did not succeed; its text is the name of the error."""


def check(answer):
    """The outputs of a driver call, or an exception."""
    error, *outputs = answer
    if error != driver.CUresult.CUDA_SUCCESS:
        raise CudaError(error.name)
    return outputs[0] if len(outputs) == 1 else tuple(outputs)


def floats(value):
    return array.array("f", [value]) * COUNT


def upload(host):
    device = check(driver.cuMemAlloc(BYTES))
    check(driver.cuMemcpyHtoD(device, host, BYTES))
    return device


def first(device):
    host = floats(0.0)
    check(driver.cuMemcpyDtoH(host, device, BYTES))
    return host[0]


def arguments(out, samples, weights):
    """The kernel's parameters, as values and types."""
    return ((int(out), int(samples), int(weights), COUNT),
            (ctypes.c_uint64, ctypes.c_uint64, ctypes.c_uint64, ctypes.c_uint32))


def main():
    check(driver.cuInit(0))
    device = check(driver.cuDeviceGet(0))
    check(driver.cuCtxSetCurrent(check(driver.cuDevicePrimaryCtxRetain(device))))
    function = check(driver.cuModuleGetFunction(check(driver.cuModuleLoadData(SCALE)), b"scale"))

    weights, samples, out = upload(floats(2.0)), upload(floats(3.0)), upload(floats(0.0))
    guard = None
    if cuconst and cuconst.active():
        guard = cuconst.protect((int(weights), BYTES), label="weights")

    shape = (COUNT // 256, 1, 1, 256, 1, 1, 0, 0)  # blocks, threads, shared memory, stream
    check(driver.cuLaunchKernel(function, *shape, arguments(out, samples, weights), 0))
    print(f"right:  3 * 2 = {first(out):g}, weights are {first(weights):g}")

    try:
        check(driver.cuLaunchKernel(function, *shape, arguments(weights, samples, out), 0))  # bug 1: swapped
        print(f"step 1: the kernel ran; weights are {first(weights):g}")
    except CudaError as error:
        print(f"step 1: the kernel was refused: {error}; weights are {first(weights):g}")

    try:
        check(driver.cuMemcpyHtoD(weights, floats(5.0), BYTES))  # bug 2: this was meant for samples
        print(f"step 2: the copy ran; weights are {first(weights):g}")
    except CudaError as error:
        print(f"step 2: the copy was refused: {error}; weights are {first(weights):g}, and the program goes on")

    if guard:
        guard.close()
    for pointer in (weights, samples, out):
        check(driver.cuMemFree(pointer))
    print("done")
    return 0


if __name__ == "__main__":
    sys.exit(main())
