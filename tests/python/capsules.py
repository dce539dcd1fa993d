"""DLPack capsules made by hand, as a producer written in C makes them; each counts its deletions."""

import ctypes
import gc

from cuconst import _dlpack

BASE = 0x7000_0000_0000
pythonapi = ctypes.pythonapi
pythonapi.PyCapsule_New.restype = ctypes.py_object
pythonapi.PyCapsule_New.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
pythonapi.PyCapsule_SetName.argtypes = [ctypes.py_object, ctypes.c_char_p]

DELETER = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
DESTRUCTOR = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)
_valid = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p)(("PyCapsule_IsValid", pythonapi))
_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)(("PyCapsule_GetPointer", pythonapi))


@DESTRUCTOR
def destructor(capsule):
    """As producers write it: a capsule that nobody consumed is deleted by its own destructor."""
    for name, layout in ((b"dltensor", _dlpack._Managed), (b"dltensor_versioned", _dlpack._Versioned)):
        if _valid(capsule, name):
            address = _pointer(capsule, name)
            DELETER(layout.from_address(address).deleter)(address)


class Producer:
    """Makes capsules; counts deletions. `old` refuses keywords, as producers from before DLPack 1.0 do."""

    def __init__(self, shape=(4, 8), strides=None, device=_dlpack.CUDA, code=2, bits=32, lanes=1, offset=0, data=BASE,
                 versioned=True, major=1, flags=0, old=False, device_method=True):
        self.keep = []
        self.made = self.deleted = 0
        self.old, self.versioned, self.major, self.flags = old, versioned and not old, major, flags
        self.arguments = (shape, strides, device, code, bits, lanes, offset, data)
        if device_method:
            self.__dlpack_device__ = lambda: (device, 0)

    def fill(self, tensor):
        shape, strides, device, code, bits, lanes, offset, data = self.arguments
        shape_array = (ctypes.c_int64 * max(len(shape), 1))(*shape)
        self.keep.append(shape_array)
        tensor.data, tensor.device_type, tensor.ndim = data, device, len(shape)
        tensor.code, tensor.bits, tensor.lanes, tensor.byte_offset = code, bits, lanes, offset
        tensor.shape = ctypes.cast(shape_array, ctypes.POINTER(ctypes.c_int64))
        if strides is not None:
            strides_array = (ctypes.c_int64 * max(len(strides), 1))(*strides)
            self.keep.append(strides_array)
            tensor.strides = ctypes.cast(strides_array, ctypes.POINTER(ctypes.c_int64))

    def capsule(self):
        managed = _dlpack._Versioned() if self.versioned else _dlpack._Managed()
        name = ctypes.c_char_p(b"dltensor_versioned" if self.versioned else b"dltensor")

        def delete(address):
            assert address == ctypes.addressof(managed)
            self.deleted += 1

        deleter = DELETER(delete)
        managed.deleter = ctypes.cast(deleter, ctypes.c_void_p).value
        if self.versioned:
            managed.major, managed.flags = self.major, self.flags
        self.fill(managed.tensor)
        self.keep += [managed, name, deleter]
        self.made += 1
        return pythonapi.PyCapsule_New(ctypes.addressof(managed), name, ctypes.cast(destructor, ctypes.c_void_p))

    def __dlpack__(self, **keywords):
        if self.old and keywords:
            raise TypeError("unexpected keyword")
        return self.capsule()

    def assert_deleted_once_each(self):
        gc.collect()
        assert (self.made, self.deleted) == (1, 1)
