"""Where the device memory of an object lies, for every kind of object that protect() takes."""

from __future__ import annotations

import functools
import operator
import re
from collections.abc import Sequence
from typing import Any, NamedTuple, Optional

from . import _dlpack
from ._pieces import Piece, c_strides, extent, pieces

_TYPESTR = re.compile(r"^[<>|=]?([a-zA-Z])(\d+)(\[.*\])?$")
_KINDS = {"f": "float", "i": "int", "u": "uint", "c": "complex"}


class Memory(NamedTuple):
    pieces: list[Piece]
    description: str  #: dtype and shape, for the label: "float32[4096]"


class Layout(NamedTuple):
    """How an array lies in memory: strides in bytes, None for C-contiguous."""

    ptr: int
    shape: Sequence[int]
    strides: Optional[Sequence[int]]
    itemsize: int
    description: str
    what: str  #: names the array in errors

    def memory(self) -> Memory:
        return Memory(pieces(self.ptr, self.shape, self.strides, self.itemsize, self.what), self.description)

    def extent(self) -> Piece:
        """From the first byte to the last, with what lies between; 0 and 0 for no elements."""
        return extent(self.ptr, self.shape, self.strides, self.itemsize, self.what)


def describe(dtype: str, shape: Sequence[int]) -> str:
    return f"{dtype}[{','.join(map(str, shape))}]"


def type_name(obj: Any) -> str:
    cls = type(obj)
    return cls.__qualname__ if cls.__module__ in ("builtins", "__main__") else f"{cls.__module__}.{cls.__qualname__}"


@functools.lru_cache(maxsize=64)
def _item(typestr: Any) -> tuple[int, str]:
    """Bytes of an item and the name of its type."""
    match = _TYPESTR.match(typestr) if isinstance(typestr, str) else None
    if not match:
        raise TypeError(f"typestr {typestr!r} is not understood")
    kind, size = match[1], int(match[2])
    if kind == "U":
        return size * 4, f"U{size}"
    if kind == "b" and size == 1:
        return 1, "bool"
    return size, f"{_KINDS[kind]}{size * 8}" if kind in _KINDS else f"{kind}{size}"


def _pair_layout(ptr: Any, nbytes: Any) -> Layout:
    if isinstance(ptr, bool) or isinstance(nbytes, bool):
        raise TypeError("(ptr, nbytes) must be two integers")
    try:
        ptr, nbytes = operator.index(ptr), operator.index(nbytes)
    except TypeError:
        raise TypeError("(ptr, nbytes) must be two integers") from None
    if not 0 <= ptr < 2**64 or not 0 <= nbytes < 2**64:
        raise ValueError(f"({ptr}, {nbytes}): an address and a number of bytes are 0 to 2**64 - 1")
    return Layout(ptr, (nbytes,), None, 1, f"{nbytes} bytes", f"{nbytes} bytes")


def from_pair(ptr: Any, nbytes: Any) -> Memory:
    # Not its pieces: zero bytes are an error of the caller's here, which the library names.
    layout = _pair_layout(ptr, nbytes)
    return Memory([Piece(layout.ptr, layout.shape[0])], layout.description)


def interface_layout(interface: Any, what: str) -> Layout:
    """A __cuda_array_interface__ dictionary, of any version."""
    if not isinstance(interface, dict):
        raise TypeError(f"{what}: its __cuda_array_interface__ is no dictionary")
    try:
        shape = tuple(map(operator.index, interface["shape"]))
        itemsize, dtype = _item(interface["typestr"])
        ptr = operator.index(interface["data"][0] or 0)
        strides = interface.get("strides")
        strides = None if strides is None else tuple(map(operator.index, strides))
    except (KeyError, IndexError, TypeError) as reason:
        raise TypeError(f"{what}: its __cuda_array_interface__ is malformed: {reason!r}") from None
    description = describe(dtype, shape)
    return Layout(ptr, shape, strides, itemsize, description, f"{what} {description}")


def from_interface(interface: Any, what: str) -> Memory:
    return interface_layout(interface, what).memory()


def from_capsule(capsule: Any, what: str) -> Memory:
    return tensor_layout(_dlpack.read(capsule), what).memory()


def tensor_layout(tensor: _dlpack.Tensor, what: str) -> Layout:
    if not _dlpack.on_gpu(tensor.device):
        raise TypeError(f"{what}: lives on {_dlpack.device_name(tensor.device)}: only CUDA device memory can be protected")
    description = describe(tensor.dtype, tensor.shape)
    name = f"{what} {description}"
    if tensor.bits % 8 == 0:
        itemsize = tensor.bits // 8
        strides = None if tensor.strides is None else [n * itemsize for n in tensor.strides]
        return Layout(tensor.ptr, tensor.shape, strides, itemsize, description, name)
    # Items of less than a byte lie packed; only a whole array of them has a meaning in bytes.
    if tensor.strides is not None and list(tensor.strides) != c_strides(tensor.shape, 1):
        raise TypeError(f"{name}: a strided array of items of {tensor.bits} bits cannot be protected")
    count = 1
    for n in tensor.shape:
        count *= n
    return Layout(tensor.ptr, [(count * tensor.bits + 7) // 8], None, 1, description, name)


def looks_like_torch(obj: Any) -> bool:
    """A torch tensor, told without importing torch: parameters refuse __cuda_array_interface__, their own methods do not."""
    return all(callable(getattr(obj, name, None)) for name in ("data_ptr", "element_size", "stride")) and hasattr(obj, "device")


def _torch_layout(tensor: Any, what: str) -> Layout:
    device = getattr(tensor.device, "type", str(tensor.device))
    if device != "cuda":
        raise TypeError(f"{what}: lives on {device}: only CUDA device memory can be protected")
    shape = tuple(tensor.shape)
    itemsize = tensor.element_size()
    dtype = str(getattr(tensor, "dtype", f"{itemsize * 8}-bit")).rpartition(".")[2]
    description = describe(dtype, shape)
    strides = [n * itemsize for n in tensor.stride()]
    return Layout(tensor.data_ptr(), shape, strides, itemsize, description, f"{what} {description}")


def _interface_of(obj: Any) -> Optional[Any]:
    """The interface, or None where there is none for this very object (JAX raises on the CPU and for types it cannot name)."""
    try:
        return getattr(obj, "__cuda_array_interface__", None)
    except Exception:
        if hasattr(type(obj), "__dlpack__"):
            return None
        raise


def _dlpack_layout(obj: Any, what: str) -> Layout:
    device = getattr(obj, "__dlpack_device__", None)
    if callable(device):
        kind = int(device()[0])
        if not _dlpack.on_gpu(kind):
            raise TypeError(f"{what}: lives on {_dlpack.device_name(kind)}: only CUDA device memory can be protected")
    return tensor_layout(_dlpack.read(_dlpack.export(obj)), what)


def layout_of(obj: Any) -> Layout:
    """Raises TypeError for what holds no CUDA memory, ValueError for what is no range."""
    if isinstance(obj, tuple) and len(obj) == 2 and not hasattr(obj, "__cuda_array_interface__"):
        return _pair_layout(*obj)
    what = type_name(obj)
    if looks_like_torch(obj):
        return _torch_layout(obj, what)
    interface = _interface_of(obj)
    if interface is not None:
        return interface_layout(interface, what)
    if callable(getattr(obj, "__dlpack__", None)):
        return _dlpack_layout(obj, what)
    if hasattr(obj, "__array_interface__") or isinstance(obj, (bytes, bytearray, memoryview)):
        raise TypeError(f"{what}: lives on the host: only CUDA device memory can be protected")
    raise TypeError(
        f"{what}: is no device memory: give one array of CuPy, PyTorch, JAX or Numba (whatever has __cuda_array_interface__ or __dlpack__), "
        "or a tuple (ptr, nbytes)"
    )


def memory_of(obj: Any) -> Memory:
    """As layout_of(), in pieces. ValueError also for too many of them."""
    if isinstance(obj, tuple) and len(obj) == 2 and not hasattr(obj, "__cuda_array_interface__"):
        return from_pair(*obj)
    return layout_of(obj).memory()
