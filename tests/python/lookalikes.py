"""Look-alikes of jaxlib, jax, cupy and numba, as far as --protect=exports touches them: file name and text of each."""

import pytest

MODULES = {
    "jaxlib/__init__.py": "",
    # The class is made here, __dlpack__ is added to it by jax._src.array, as in jax 0.5 and later.
    "jaxlib/_jax.py": '''
class ArrayImpl:
    """An array."""
    def __init__(self, address, shape=(4096,), gpu=True, interface=True, dtype="float32"):
        self.address, self.shape, self.gpu, self.with_interface, self.dtype = address, shape, gpu, interface, dtype
        self.deleted = self.ready = False
        self.asked = 0
    @property
    def __cuda_array_interface__(self):
        """The interface."""
        self.asked += 1
        if not self.gpu or not self.with_interface:
            raise AttributeError("__cuda_array_interface__ is only defined for GPU buffers.")
        return {"shape": self.shape, "typestr": "<f4", "data": (self.address, True), "version": 2}
    def unsafe_buffer_pointer(self):
        return self.address
    def block_until_ready(self):
        self.ready = True
    def is_deleted(self):
        return self.deleted
''',
    "jax/__init__.py": "from jax._src import array\nfrom jaxlib._jax import ArrayImpl\n",
    "jax/_src/__init__.py": "",
    "jax/_src/array.py": '''
import ctypes
from jaxlib._jax import ArrayImpl
from cuconst import _dlpack
new = ctypes.pythonapi.PyCapsule_New
new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
kept = []
def __dlpack__(self, *, stream=None, max_version=None, copy=None):
    """The capsule."""
    managed = _dlpack._Managed()
    shape = (ctypes.c_int64 * len(self.shape))(*self.shape)
    managed.tensor.data = self.address + 64 if copy else self.address
    managed.tensor.device_type, managed.tensor.ndim = 2 if self.gpu else 1, len(self.shape)
    managed.tensor.code, managed.tensor.bits, managed.tensor.lanes = 2, 32, 1
    managed.tensor.shape = ctypes.cast(shape, ctypes.POINTER(ctypes.c_int64))
    kept.append((managed, shape))
    return new(ctypes.addressof(managed), b"dltensor", None)
ArrayImpl.__dlpack__ = __dlpack__
''',
    "cupy/__init__.py": '''
def asarray(a, dtype=None, order=None):
    """asarray of cupy"""
    return ("asarray", a.__cuda_array_interface__["data"][0], dtype)
def array(obj, dtype=None):
    return ("array", obj.__cuda_array_interface__["data"][0], dtype)
asanyarray = asarray
''',
    "numba/__init__.py": "",
    "numba/cuda.py": "def as_cuda_array(obj, sync=True):\n    return obj.__cuda_array_interface__['data'][0], sync\n",
}


@pytest.fixture
def modules(tmp_path):
    """The folder that holds them, for PYTHONPATH."""
    folder = tmp_path / "modules"
    for name, text in MODULES.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder
