"""The C API of libcuconst.so, found in what is loaded. The layouts are those of cuconst.h."""

from __future__ import annotations

import ctypes
import dataclasses
from typing import Any, Optional

from ._errors import CuconstError, NotActiveError, Result, error

NO_BASELINE = 1
STREAM = 2
VERIFY_ONLY = 4


class ProtectInfo(ctypes.Structure):
    _fields_ = [
        ("size", ctypes.c_size_t),
        ("label", ctypes.c_char_p),
        ("owner", ctypes.c_char_p),
        ("file", ctypes.c_char_p),
        ("function", ctypes.c_char_p),
        ("line", ctypes.c_int),
        ("stream", ctypes.c_void_p),
    ]


class RangeInfo(ctypes.Structure):
    _fields_ = [
        ("ptr", ctypes.c_uint64),
        ("bytes", ctypes.c_uint64),
        ("handle", ctypes.c_uint64),
        ("checks", ctypes.c_uint64),
        ("violations", ctypes.c_uint64),
        ("label", ctypes.c_char * 256),
    ]


@dataclasses.dataclass(frozen=True)
class Stats:
    """Counters of this process; ``struct cuconst_stats`` of cuconst.h tells what each counts."""

    ranges: int
    bytes: int
    calls: int
    launches: int
    graph_launches: int
    checked: int
    verified: int
    violations: int
    denied: int
    inconclusive: int
    unverified: int
    suppressed: int
    clean: int
    near: int
    unknown: int
    stores: int


class _Stats(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t)] + [(field.name, ctypes.c_uint64) for field in dataclasses.fields(Stats)]


_u64 = ctypes.c_uint64
_PROTOTYPES = {
    "cuconst_protect": (
        ctypes.c_int,
        [_u64, ctypes.c_size_t, ctypes.c_char_p, ctypes.c_uint, ctypes.POINTER(ProtectInfo), ctypes.POINTER(_u64)],
    ),
    "cuconst_unprotect": (ctypes.c_int, [_u64]),
    "cuconst_release": (ctypes.c_int, [_u64]),
    "cuconst_check": (ctypes.c_int, [_u64]),
    "cuconst_query": (
        ctypes.c_int,
        [_u64, ctypes.c_size_t, ctypes.POINTER(RangeInfo), ctypes.c_size_t, ctypes.POINTER(ctypes.c_size_t)],
    ),
    "cuconst_stats": (ctypes.c_int, [ctypes.POINTER(_Stats)]),
    "cuconst_version": (ctypes.c_int, []),
    "cuconst_view": (ctypes.c_int, [_u64, ctypes.c_size_t, ctypes.POINTER(_u64)]),
    "cuconst_dlpack_view": (ctypes.c_void_p, [ctypes.c_void_p, ctypes.c_int, ctypes.c_int, _u64]),
    "cuconst_dlpack_view_known": (ctypes.c_void_p, [ctypes.c_void_p, ctypes.c_int, ctypes.c_int]),
    "cuconst_last_cuda_error": (ctypes.c_int, []),
    "cuconst_result_text": (ctypes.c_char_p, [ctypes.c_int]),
}


class Library:
    """Typed calls. The GIL is released during each but `view_known`: a baseline or a check may wait for the GPU."""

    def __init__(self, loaded: Any) -> None:
        # Looks up and waits for nobody, so the GIL can stay. Addresses as pointers: ctypes converts those the fastest; it cuts what is beyond 64 bits.
        self.view_known = ctypes.PYFUNCTYPE(_u64, ctypes.c_void_p, ctypes.c_void_p)(("cuconst_view_known", loaded))
        for name, (result, arguments) in _PROTOTYPES.items():
            function = getattr(loaded, name)
            function.restype = result
            function.argtypes = arguments
            setattr(self, name[len("cuconst_"):], function)

    protect: Any
    unprotect: Any
    release: Any
    check: Any
    query: Any
    stats: Any
    version: Any
    view: Any
    view_known: Any
    dlpack_view: Any
    dlpack_view_known: Any
    last_cuda_error: Any
    result_text: Any


def _load() -> Optional[Library]:
    try:
        return Library(ctypes.CDLL(None))
    except (AttributeError, OSError):
        return None


# What is preloaded is fixed when the process starts, so this is asked once.
_library = _load()


def library() -> Library:
    """The preloaded library. Raises NotActiveError."""
    if _library is None:
        raise NotActiveError()
    return _library


def fail(code: int, what: str) -> CuconstError:
    """The exception for a result; asks for the driver's error of this thread, so call it right after the failing call."""
    loaded = library()
    return error(code, what, loaded.result_text(code).decode(), loaded.last_cuda_error())


def active() -> bool:
    """True when libcuconst.so is preloaded and enabled in this process. Does not initialise CUDA."""
    if _library is None:
        return False
    values = _Stats(size=ctypes.sizeof(_Stats))
    return bool(_library.version()) and _library.stats(ctypes.byref(values)) != Result.NOT_ACTIVE


def stats() -> Stats:
    """The counters of this process. Raises NotActiveError when there is nothing that counts."""
    values = _Stats(size=ctypes.sizeof(_Stats))
    code = library().stats(ctypes.byref(values))
    if code != Result.OK:
        raise fail(code, "stats()")
    return Stats(**{field.name: getattr(values, field.name) for field in dataclasses.fields(Stats)})


def version() -> Optional[str]:
    """Version of the preloaded library, "major.minor.patch"; None when there is none. The module's own is ``__version__``."""
    number = _library.version() if _library else 0
    return f"{number // 10000}.{number // 100 % 100}.{number % 100}" if number else None


def live(handle: int, ptr: int, nbytes: int) -> bool:
    """Does the library still know this handle? (Freeing the memory ends a protection from below.)"""
    if _library is None:
        return False
    count = ctypes.c_size_t()
    room = 16
    while True:
        found = (RangeInfo * room)()
        if _library.query(ptr, nbytes, found, room, ctypes.byref(count)) != Result.OK:
            return False
        if count.value <= room:
            return any(info.handle == handle for info in found[: count.value])
        room = count.value + 16
