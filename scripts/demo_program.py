#!/usr/bin/env python3
"""A small CUDA program with two bugs, for cuda.core. It runs alone, and under `cuconst run`; scripts/demo shows the latter.

It keeps calibration weights on the device and scales blocks of samples by them. Step 1 passes the arrays to the kernel in the
wrong order, so that the kernel writes into the weights. Step 2 uploads new samples over the weights. Neither is an error for
CUDA: both succeed, and from then on all results are wrong.
"""
import sys

import numpy as np
from cuda.core import Device, LaunchConfig, LegacyPinnedMemoryResource, Program, ProgramOptions, launch

try:
    import cuconst
except ImportError:  # not under `cuconst run`
    cuconst = None

COUNT = 1024

SCALE = r"""
extern "C" __global__ void scale(float *out, const float *samples, const float *weights, unsigned count)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count)
        out[i] = samples[i] * weights[i];
}
"""


class Array:
    """Device memory, and host memory to copy it to and from."""

    def __init__(self, device, stream, value):
        self.stream = stream
        self.staging = LegacyPinnedMemoryResource().allocate(4 * COUNT)
        self.host = np.from_dlpack(self.staging).view(np.float32)
        self.device = device.allocate(4 * COUNT, stream=stream)
        self.host[:] = value
        self.device.copy_from(self.staging, stream=self.stream)

    def first(self):
        self.device.copy_to(self.staging, stream=self.stream)
        self.stream.sync()
        return self.host[0]


def main():
    device = Device()
    device.set_current()
    stream = device.create_stream()
    code = Program(SCALE, "c++", ProgramOptions(arch=f"sm_{device.arch}")).compile("ptx")
    scale = code.get_kernel("scale")

    weights, samples, out = (Array(device, stream, value) for value in (2, 3, 0))
    guard = None
    if cuconst and cuconst.active():
        stream.sync()
        guard = cuconst.protect((int(weights.device.handle), weights.device.size), label="weights")

    shape = LaunchConfig(grid=COUNT // 256, block=256)
    launch(stream, shape, scale, out.device, samples.device, weights.device, np.uint32(COUNT))
    print(f"right:  3 * 2 = {out.first():g}, weights are {weights.first():g}")

    try:
        launch(stream, shape, scale, weights.device, samples.device, out.device, np.uint32(COUNT))  # bug 1: swapped
        print(f"step 1: the kernel ran; weights are {weights.first():g}")
    except Exception as error:  # whatever cuda.core makes of the driver's answer
        print(f"step 1: the kernel was refused: {error}; weights are {weights.first():g}")

    try:
        samples.host[:] = 5
        weights.device.copy_from(samples.staging, stream=stream)  # bug 2: this was meant for samples
        print(f"step 2: the copy ran; weights are {weights.first():g}")
    except Exception as error:
        print(f"step 2: the copy was refused: {error}; weights are {weights.first():g}, and the program goes on")

    if guard:
        guard.close()
    print("done")
    return 0


if __name__ == "__main__":
    sys.exit(main())
