"""What the programs here share: a device, kernels from CUDA C++, arrays that the host and the device both see."""
import numpy as np
from cuda.core import Device, LaunchConfig, LegacyPinnedMemoryResource, Program, ProgramOptions, launch

device = Device()
device.set_current()
stream = device.create_stream()
random = np.random.default_rng(2026)


def kernels(source, *names):
    """Compiled by NVRTC to PTX; the driver does the rest."""
    code = Program(source, "c++", ProgramOptions(arch=f"sm_{device.arch}", std="c++17")).compile("ptx")
    return [code.get_kernel(name) for name in names]


def pinned(shape, dtype):
    """Host memory as a numpy array, and its buffer."""
    buffer = LegacyPinnedMemoryResource().allocate(int(np.prod(shape)) * np.dtype(dtype).itemsize)
    return np.from_dlpack(buffer).view(dtype).reshape(shape), buffer


class Array:
    """Device memory with a host copy."""

    def __init__(self, values):
        values = np.asarray(values)
        self.host, self._host_buffer = pinned(values.shape, values.dtype)
        self.host[...] = values
        self.buffer = device.allocate(self._host_buffer.size, stream=stream)
        self.upload()

    def upload(self):
        self.buffer.copy_from(self._host_buffer, stream=stream)

    def download(self):
        self.buffer.copy_to(self._host_buffer, stream=stream)
        stream.sync()
        return self.host


def run(kernel, grid, block, *arguments, shared=0, on=stream):
    config = LaunchConfig(grid=grid, block=block, shmem_size=shared)
    launch(on, config, kernel, *[a.buffer if isinstance(a, Array) else a for a in arguments])
