"""readonly() and what it returns."""

from __future__ import annotations

import ctypes
from math import prod
from typing import Any, Optional

from . import _dlpack, _library
from ._errors import Result
from ._memory import Layout, _interface_of, interface_layout, layout_of, looks_like_torch, tensor_layout, type_name
from ._pieces import Piece

_u64 = ctypes.c_uint64
_END = 2**64
#: Bytes of an item, of the types that arrays usually have: of the others _memory knows.
_SIZES = {
    f"{order}{kind}{size}": size
    for order in "<|"
    for kind, sizes in {"f": (2, 4, 8), "i": (1, 2, 4, 8), "u": (1, 2, 4, 8), "c": (8, 16), "b": (1,)}.items()
    for size in sizes
}


class _Pair:
    """(ptr, nbytes) as an exporter."""

    __slots__ = ("__cuda_array_interface__",)

    def __init__(self, ptr: int, nbytes: int) -> None:
        self.__cuda_array_interface__ = {"shape": (nbytes,), "typestr": "|u1", "data": (ptr, False), "version": 3}


def _view(layout: Layout) -> tuple[Piece, int]:
    """The bytes of an array from its first to its last, and where they start in the twin; zeros for no elements."""
    found = layout.extent()
    if not found.nbytes:
        return found, 0
    twin = _u64()
    code = _library.library().view(found.ptr, found.nbytes, ctypes.byref(twin))
    if code != Result.OK:
        raise _library.fail(code, layout.what)
    return found, twin.value


def _address(layout: Layout) -> int:
    """Where the array's first element is in the twin, which need not be its lowest."""
    found, twin = _view(layout)
    return twin + (layout.ptr - found.ptr) if twin else 0


def _known(interface: Any) -> int:
    """The address of what nearly every array is, contiguous memory that has a twin, in one look-up; 0: whatever else it is, or may be."""
    try:
        shape = interface["shape"]
        if type(shape) is not tuple:
            return 0  # what can be read once only is left as it is
        ptr = interface["data"][0]
        nbytes = _SIZES[interface["typestr"]] * prod(shape)
        # Whole numbers of Python's: others make products of their own type.
        if type(nbytes) is not int or type(ptr) is not int or not 0 < ptr < ptr + nbytes <= _END:
            return 0
        if interface.get("strides") is not None or interface.get("mask") is not None or (len(shape) > 1 and min(shape) < 0):
            return 0
        found: int = _library._library.view_known(ptr, nbytes)  # type: ignore[union-attr]
        return found
    except Exception:
        return 0


def _read_only(interface: Any, owner: Any) -> dict[str, Any]:
    """The interface of a view of what has this one."""
    address = _known(interface) or _address(interface_layout(interface, type_name(owner)))
    found: dict[str, Any] = interface.copy()
    found["data"] = (address, True)
    found["version"] = 3
    found.setdefault("strides", None)
    found.setdefault("stream", None)
    if found.get("mask") is not None:
        # Which elements count is part of the array: who may not write it may not write this.
        found["mask"] = readonly(found["mask"])
    return found


def _stays(obj: Any, interface: Any) -> bool:
    """Is this what the object will answer until it says that it is deleted? JAX's arrays are immutable, and export no stream."""
    return interface["data"][1] is True and interface.get("stream") is None and hasattr(obj, "is_deleted")


class ReadOnly:
    """A view of device memory through which nobody can write, as returned by readonly(). It keeps the object it was made of alive.

    Hand it to any consumer of ``__cuda_array_interface__`` or ``__dlpack__``. Shape, strides, type and stream are those that the object exports at
    that moment; only the address is another. Thread-safe.
    """

    __slots__ = ("__weakref__", "_owner", "_source", "_staying")

    def __init__(self, owner: Any, source: Any, staying: Optional[dict[str, Any]] = None) -> None:
        self._owner = owner
        self._source = source
        self._staying = staying  # its interface, if that stays: asking for it is most of what a view costs

    @property
    def owner(self) -> Any:
        """What readonly() was given."""
        return self._owner

    @property
    def nbytes(self) -> int:
        """From the array's first byte to its last: of a strided one, with what lies between."""
        return layout_of(self._source).extent().nbytes

    @property
    def ptr(self) -> int:
        """The read-only address of the array's lowest byte; 0 for an array of no elements."""
        return _view(layout_of(self._source))[1]

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        interface = self._staying
        try:
            if interface is None or self._source.is_deleted():
                interface = self._source.__cuda_array_interface__
        except Exception as reason:
            # Consumers ask with hasattr(), and go on to DLPack.
            raise AttributeError(f"{type_name(self._owner)} has no __cuda_array_interface__: {reason}") from None
        return _read_only(interface, self._owner)

    def __dlpack_device__(self) -> Any:
        self._needs_dlpack()
        return self._source.__dlpack_device__()

    def __dlpack__(
        self, *, stream: Any = None, max_version: Any = None, dl_device: Any = None, copy: Optional[bool] = None
    ) -> Any:
        """A capsule of the read-only address. It is versioned, with the read-only bit set, where the consumer understands that.

        For a consumer that does not, DLPack asks producers of read-only arrays to refuse, since nothing would keep it from writing. Here
        the hardware does, so it gets a capsule without the bit. What is asked for as a copy is the consumer's own memory, and not read-only.
        """
        self._needs_dlpack()
        wanted = {"stream": stream, "dl_device": dl_device, "copy": copy}
        versioned = max_version is not None and max_version[0] >= 1
        capsule = _ask(self._source, {name: value for name, value in wanted.items() if value is not None}, versioned)
        found = None if copy else _dlpack.viewed(capsule, versioned)
        if found is not None:
            return found
        tensor = _dlpack.look(capsule)
        if copy or tensor.flags & _dlpack.IS_COPIED or not _dlpack.on_gpu(tensor.device):
            return capsule
        return _dlpack.readdressed(capsule, _address(tensor_layout(tensor, type_name(self._owner))), versioned)

    def _needs_dlpack(self) -> None:
        if not callable(getattr(self._source, "__dlpack__", None)):
            raise BufferError(
                f"{type_name(self._owner)} has no __dlpack__: hand this view to a consumer of __cuda_array_interface__"
            )

    def __repr__(self) -> str:
        return f"<cuconst.ReadOnly of {type_name(self._owner)} {layout_of(self._source).description}>"


def _ask(source: Any, keywords: dict[str, Any], versioned: bool) -> Any:
    """The source's own capsule: it knows its streams. Producers from before DLPack 1.0 know no max_version."""
    if versioned:
        try:
            return source.__dlpack__(max_version=(1, 0), **keywords)
        except TypeError:
            pass
    return source.__dlpack__(**keywords)


def _source_of(obj: Any) -> Any:
    if isinstance(obj, tuple) and len(obj) == 2 and not hasattr(obj, "__cuda_array_interface__"):
        layout = layout_of(obj)
        return _Pair(layout.ptr, layout.shape[0])
    # A tensor that wants a gradient exports nothing; the same memory without that does.
    if looks_like_torch(obj) and getattr(obj, "requires_grad", False):
        return obj.detach()
    return obj


def _checked(obj: Any) -> ReadOnly:
    """The view, made where it is the first of its memory. Raises what readonly() does."""
    _library.library()
    source = _source_of(obj)
    _view(layout_of(obj if isinstance(source, _Pair) else source))
    mask = (_interface_of(source) or {}).get("mask")
    if mask is not None:
        readonly(mask)
    return ReadOnly(obj, source)


def readonly(obj: Any) -> ReadOnly:
    """A view of `obj` through which no library, kernel or call can write, whatever it tries: the GPU's memory management refuses.

    obj  anything with __cuda_array_interface__ or __dlpack__, a torch tensor, or (ptr, nbytes)

    The owner goes on as before: it may write, free and use its memory again, and the view shows what is there. A write through the view by a kernel ends
    the CUDA context, as any illegal address does; by a copy or set it is an error, and nothing happens. The first view of memory maps it
    a second time, once for each reserved address range; nothing is copied.

    Raises NotActiveError when libcuconst.so is not preloaded, TypeError for what holds no CUDA memory, and CuconstError, with what can be done, for
    memory that cannot be mapped a second time: cuMemAlloc without ``twins=all``, pools, managed and pinned memory.
    """
    if type(obj) is ReadOnly:
        return obj
    try:
        interface = obj.__cuda_array_interface__
        if _known(interface):
            return ReadOnly(obj, obj, interface if _stays(obj, interface) else None)
    except Exception:
        pass  # the long way tells what it is
    return _checked(obj)
