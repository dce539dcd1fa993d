"""Reads DLPack capsules without taking them over, and makes one of another: the same tensor at another address.

A capsule that was not consumed is deleted by its own destructor, exactly once, when it is dropped. So reading only looks: it neither renames the
capsule nor calls the deleter.
"""

from __future__ import annotations

import ctypes
from typing import Any, NamedTuple, Optional

from . import _library

CUDA = 2
CUDA_HOST = 3
CUDA_MANAGED = 13

_DEVICES = {1: "CPU", 3: "pinned host", 4: "OpenCL", 7: "Vulkan", 8: "Metal", 10: "ROCm", 11: "ROCm host", 14: "oneAPI"}
IS_COPIED = 2
IS_PADDED = 4  #: items of less than a byte take one each; without it they lie packed
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
    flags: int


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


def look(capsule: Any) -> Tensor:
    """Raises TypeError for what is no unused capsule and for a version that is not known."""
    flags = 0
    if _is_valid(capsule, b"dltensor_versioned"):
        versioned = _Versioned.from_address(_get_pointer(capsule, b"dltensor_versioned"))
        if versioned.major != 1:
            raise TypeError(f"a DLPack capsule of version {versioned.major}.{versioned.minor}: only version 1 is known")
        flags = versioned.flags
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
        bits=(-(-tensor.bits // 8) * 8 if flags & IS_PADDED else tensor.bits) * tensor.lanes,
        dtype=_dtype_name(tensor),
        flags=flags,
    )


def read(capsule: Any) -> Tensor:
    """As look(). Raises TypeError for a copy, too."""
    tensor = look(capsule)
    if tensor.flags & IS_COPIED:
        raise TypeError("its __dlpack__ hands out a copy: the array itself cannot be protected through it")
    return tensor


def export(obj: Any) -> Any:
    """The capsule of an object: versioned where its producer can, for the sake of the copy flag."""
    try:
        return obj.__dlpack__(max_version=(1, 0))
    except TypeError:
        return obj.__dlpack__()


# A capsule in the hands of its destructor has no references left: it must not become a Python object again, so these take plain addresses.
_DESTRUCTOR = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)
_DELETER = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_valid_at = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p)(("PyCapsule_IsValid", ctypes.pythonapi))
_pointer_at = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)(("PyCapsule_GetPointer", ctypes.pythonapi))
_set_name = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_char_p)(("PyCapsule_SetName", ctypes.pythonapi))
_new = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, _DESTRUCTOR)(("PyCapsule_New", ctypes.pythonapi))

_PLAIN = b"dltensor"
_VERSIONED = b"dltensor_versioned"
# Capsules keep the address of their name, not the name.
_USED = {_PLAIN: b"used_dltensor", _VERSIONED: b"used_dltensor_versioned"}


def _destroy(capsule: int) -> None:
    """A capsule that nobody consumed. The consumer of another one calls its deleter, which is C: no interpreter is needed then."""
    for name, layout in ((_PLAIN, _Managed), (_VERSIONED, _Versioned)):
        if _valid_at(capsule, name):
            address = _pointer_at(capsule, name)
            _DELETER(layout.from_address(address).deleter)(address)


_destructor = _DESTRUCTOR(_destroy)
# Capsules may outlive this module at the end of the interpreter.
ctypes.pythonapi.Py_IncRef(ctypes.py_object(_destructor))


def _replaced(capsule: Any, name: bytes, managed: int, versioned: bool) -> Any:
    """The capsule of the tensor that took over what this one held."""
    _set_name(capsule, _USED[name])
    return _new(managed, _VERSIONED if versioned else _PLAIN, _destructor)


def readdressed(capsule: Any, address: int, versioned: bool) -> Any:
    """Consumes a capsule. Returns one of the same tensor at another address, with the read-only bit where it is versioned."""
    name = _VERSIONED if _is_valid(capsule, _VERSIONED) else _PLAIN
    managed = _library.library().dlpack_view(_get_pointer(capsule, name), name is _VERSIONED, versioned, address)
    if not managed:
        raise MemoryError("no memory for a DLPack tensor")
    return _replaced(capsule, name, managed, versioned)


def viewed(capsule: Any, versioned: bool) -> Any:
    """As readdressed(), at the address of its view, if that takes one look-up. Else None, and the capsule is as it was."""
    name = _VERSIONED if _is_valid(capsule, _VERSIONED) else _PLAIN
    if name is _PLAIN and not _is_valid(capsule, _PLAIN):
        return None
    managed = _library.library().dlpack_view_known(_get_pointer(capsule, name), name is _VERSIONED, versioned)
    return _replaced(capsule, name, managed, versioned) if managed else None
