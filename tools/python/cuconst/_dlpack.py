"""Reads a DLPack capsule without taking it over.

A capsule that was not consumed is deleted by its own destructor, exactly once, when it is dropped. So this module only looks: it
neither renames the capsule nor calls the deleter.
"""

from __future__ import annotations

import ctypes
from typing import Any, NamedTuple, Optional

CUDA = 2
CUDA_HOST = 3
CUDA_MANAGED = 13

_DEVICES = {1: "CPU", 3: "pinned host", 4: "OpenCL", 7: "Vulkan", 8: "Metal", 10: "ROCm", 11: "ROCm host", 14: "oneAPI"}
_IS_COPIED = 2
_CODES = {0: "int", 1: "uint", 2: "float", 3: "opaque", 4: "bfloat", 5: "complex", 6: "bool"}


class _Tensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


class _Managed(ctypes.Structure):
    _fields_ = [("tensor", _Tensor), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p)]


class _Versioned(ctypes.Structure):
    _fields_ = [
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", _Tensor),
    ]


class Tensor(NamedTuple):
    """What a capsule says; strides in elements, None for C-contiguous."""

    ptr: int
    device: int
    shape: tuple[int, ...]
    strides: Optional[tuple[int, ...]]
    bits: int
    dtype: str


_get_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_get_pointer.restype = ctypes.c_void_p
_get_pointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
_is_valid = ctypes.pythonapi.PyCapsule_IsValid
_is_valid.restype = ctypes.c_int
_is_valid.argtypes = [ctypes.py_object, ctypes.c_char_p]


def device_name(device: int) -> str:
    return _DEVICES.get(device, f"DLPack device type {device}")


def on_gpu(device: int) -> bool:
    return device in (CUDA, CUDA_MANAGED)


def _dtype_name(tensor: _Tensor) -> str:
    kind = _CODES.get(tensor.code, f"dtype{tensor.code}_")
    name = kind if tensor.code == 6 else f"{kind}{tensor.bits}"
    return name if tensor.lanes == 1 else f"{name}x{tensor.lanes}"


def read(capsule: Any) -> Tensor:
    """Raises TypeError for what is no unused capsule, for a version that is not known and for a copy."""
    if _is_valid(capsule, b"dltensor_versioned"):
        versioned = _Versioned.from_address(_get_pointer(capsule, b"dltensor_versioned"))
        if versioned.major != 1:
            raise TypeError(f"a DLPack capsule of version {versioned.major}.{versioned.minor}: only version 1 is known")
        if versioned.flags & _IS_COPIED:
            raise TypeError("its __dlpack__ hands out a copy: the array itself cannot be protected through it")
        tensor = versioned.tensor
    elif _is_valid(capsule, b"dltensor"):
        tensor = _Managed.from_address(_get_pointer(capsule, b"dltensor")).tensor
    else:
        raise TypeError("its __dlpack__ gave no unused DLPack capsule")
    if tensor.ndim < 0:
        raise TypeError("a DLPack capsule with a negative number of dimensions")
    return Tensor(
        ptr=(tensor.data or 0) + tensor.byte_offset,
        device=tensor.device_type,
        shape=tuple(tensor.shape[: tensor.ndim]) if tensor.ndim else (),
        strides=tuple(tensor.strides[: tensor.ndim]) if tensor.strides and tensor.ndim else None,
        bits=tensor.bits * tensor.lanes,
        dtype=_dtype_name(tensor),
    )


def export(obj: Any) -> Any:
    """The capsule of an object: versioned where its producer can, for the sake of the copy flag."""
    try:
        return obj.__dlpack__(max_version=(1, 0))
    except TypeError:
        return obj.__dlpack__()
