"""protect() and its handle."""

from __future__ import annotations

import ctypes
import sys
import warnings
import weakref
from types import TracebackType
from typing import Any, Optional

from . import _library
from ._errors import CuconstError, Result
from ._memory import Memory, memory_of
from ._pieces import Piece


class _Open:
    """The open handles of one protection, shared by a Protection and the finalizer of what it follows.

    Whoever takes a handle ends it. Taking is one atomic list operation, not a lock: a finalizer may run inside close(), in the same
    thread, at any allocation.
    """

    __slots__ = ("__weakref__", "handles")

    def __init__(self) -> None:
        self.handles: list[tuple[int, Piece]] = []

    def take(self) -> Optional[tuple[int, Piece]]:
        try:
            return self.handles.pop()
        except IndexError:
            return None

    def release(self) -> None:
        """Ends what is open without a check and without any GPU work: for finalizers."""
        library = _library._library
        taken = self.take()
        while taken and library is not None:
            library.release(taken[0])
            taken = self.take()


class Protection:
    """One protection, as returned by protect(). A context manager.

    It holds the protected object, so the memory stays alive, until close() (or the end of the ``with`` block), which makes a last check. A
    protection made with ``follow=True`` holds a weak reference instead and ends with the object, without a check.

    A handle that is dropped while open ends its protection unchecked, with a ResourceWarning; one that is open when the interpreter
    ends is checked by the library at exit. Thread-safe: any thread may close it, and of several only one ends each piece.
    """

    __slots__ = ("__weakref__", "_changed", "_finalizer", "_follow", "_label", "_open", "_owner", "_pieces")

    def __init__(self, owner: Any, label: str, found: Memory, opened: _Open, follow: bool) -> None:
        self._label = label
        self._pieces = tuple(found.pieces)
        self._open = opened
        self._follow = follow
        self._changed: Optional[bool] = None
        self._owner: Any = weakref.ref(owner) if follow else owner
        self._finalizer: Optional[weakref.finalize[..., Any]] = None
        if follow:
            self._finalizer = weakref.finalize(owner, opened.release)
            # At exit the library makes a last check of everything; releasing first would take that away.
            self._finalizer.atexit = False

    @property
    def label(self) -> str:
        return self._label

    @property
    def ranges(self) -> tuple[tuple[int, int], ...]:
        """(address, bytes) of each contiguous piece, ascending; empty for an array of no elements. The same before and after closing."""
        return tuple((piece.ptr, piece.nbytes) for piece in self._pieces)

    @property
    def active(self) -> bool:
        """True while something is protected: not closed, and not ended because the memory was freed."""
        return any(_library.live(handle, *piece) for handle, piece in list(self._open.handles))

    @property
    def changed(self) -> Optional[bool]:
        """What the checks of close() and check() found: True if bytes had changed, False if none had, None while nothing was checked."""
        return self._changed

    def check(self) -> bool:
        """Waits for pending work and compares with the baseline. True: unchanged since the last check. Raises CuconstError, also when
        it was closed. A change becomes the new baseline, so it is found once; ``changed`` goes on saying that there was one.
        """
        opened = list(self._open.handles)
        if not opened and self._pieces:
            raise _library.fail(Result.STALE_HANDLE, self._label)
        unchanged = True
        for handle, _ in opened:
            code = _library.library().check(handle)
            if code not in (Result.OK, Result.CHANGED):
                raise _library.fail(code, self._label)
            self._note(code)
            unchanged &= code == Result.OK
        return unchanged

    def close(self) -> None:
        """Ends the protection after a last check; its result is in ``changed``, and a change is in the log: it is not raised.

        Closing twice is allowed. Memory that was freed before has ended its protection already. While a stream capture is running no check can be
        made: the protection ends unchecked, and ``changed`` stays as it was. Raises CuconstError when a check failed; the protection has ended then, too.
        """
        failure: Optional[Exception] = None
        taken = self._open.take()
        while taken:
            code = _library.library().unprotect(taken[0])
            if code in (Result.OK, Result.CHANGED):
                self._note(code)
            elif code not in (Result.STALE_HANDLE, Result.BUSY):
                failure = failure or _library.fail(code, self._label)
                _library.library().release(taken[0])
            taken = self._open.take()
        self._forget()
        if failure:
            raise failure

    def release(self) -> None:
        """Ends the protection at once, without a check and without any GPU work. ``changed`` stays what it was."""
        self._open.release()
        self._forget()

    def _note(self, code: int) -> None:
        self._changed = bool(self._changed) or code == Result.CHANGED

    def _forget(self) -> None:
        self._owner = None
        if self._finalizer is not None:
            self._finalizer.detach()

    def __enter__(self) -> Protection:
        return self

    def __exit__(
        self, kind: Optional[type[BaseException]], value: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        try:
            self.close()
        except CuconstError:
            self.release()
            if kind is None:
                raise

    def __del__(self) -> None:
        opened = getattr(self, "_open", None)
        if opened is None or not opened.handles or self._follow or sys is None or sys.is_finalizing():
            return
        try:
            warnings.warn(f"{self!r} was dropped while open: it ends unchecked; use close() or with", ResourceWarning, 2, self)
        finally:
            opened.release()

    def __repr__(self) -> str:
        state = "open" if self._open.handles else "closed" if self._pieces else "empty"
        return f"<cuconst.Protection {self._label!r}, {sum(p.nbytes for p in self._pieces)} bytes, {state}>"


def _text(value: Optional[str], name: str) -> Optional[bytes]:
    if value is None:
        return None
    if not isinstance(value, str):
        raise TypeError(f"{name} must be a str, not {type(value).__name__}")
    if "\0" in value:
        raise ValueError(f"{name} must not hold a NUL character")
    return value.encode("utf-8", "replace")


def _stream(stream: Any) -> Optional[int]:
    """The CUstream as a number: of an int, or a stream of CuPy, PyTorch, Numba, or anything with __cuda_stream__."""
    if stream is None or isinstance(stream, int):
        return stream
    protocol = getattr(stream, "__cuda_stream__", None)
    if protocol is not None:
        return int((protocol() if callable(protocol) else protocol)[1])
    for name in ("cuda_stream", "ptr", "handle"):
        value = getattr(stream, name, None)
        value = getattr(value, "value", value)
        if isinstance(value, int):
            return value
    raise TypeError(f"stream: {type(stream).__name__} is no stream: give an int, or a stream of CuPy, PyTorch or Numba")


def _protect_pieces(
    found: Memory, label: bytes, owner: Optional[bytes], stream: Optional[int], flags: int, opened: _Open
) -> None:
    library = _library.library()
    info = _library.ProtectInfo(size=ctypes.sizeof(_library.ProtectInfo), label=label, owner=owner, stream=stream)
    flags |= 0 if stream is None else _library.STREAM
    for piece in found.pieces:
        handle = ctypes.c_uint64()
        code = library.protect(piece.ptr, piece.nbytes, label, flags, ctypes.byref(info), ctypes.byref(handle))
        if code != Result.OK:
            failure = _library.fail(code, label.decode())
            taken = opened.take()
            while taken:
                library.unprotect(taken[0])
                taken = opened.take()
            raise failure
        opened.handles.append((handle.value, piece))


def protect_memory(
    obj: Any,
    found: Memory,
    label: Optional[str],
    stream: Any = None,
    follow: bool = False,
    owner: Optional[str] = None,
    verify_only: bool = False,
) -> Protection:
    """As protect(), for memory that was looked up before."""
    if follow:
        try:
            weakref.ref(obj)
        except TypeError:
            raise TypeError(f"follow=True: {type(obj).__name__} cannot be weakly referenced: keep the handle instead") from None
    name = found.description if label is None else label
    text = _text(name, "label")
    opened = _Open()
    flags = _library.VERIFY_ONLY if verify_only else 0
    _protect_pieces(found, text or b"", _text(owner, "owner"), _stream(stream), flags, opened)
    return Protection(obj, name, found, opened, follow)


def protect(
    obj: Any,
    label: Optional[str] = None,
    stream: Any = None,
    follow: bool = False,
    owner: Optional[str] = None,
    verify_only: bool = False,
) -> Protection:
    """Makes the device memory of `obj` read-only for everyone but its owner, until the returned handle is closed.

    obj     anything with __cuda_array_interface__ or __dlpack__, a torch tensor (parameters too), or (ptr, nbytes); a strided
            array is protected as its contiguous pieces, an array of no elements gives a handle that does nothing
    label   shown in records; by default dtype and shape, "float32[4096]"
    stream  the stream whose pending work produces the bytes; by default the context is synchronised
    follow  hold the object weakly and end with it, instead of keeping it alive
    owner   glob over file names of libraries that may go on writing, e.g. "*xla_cuda_plugin*"
    verify_only  never refuse a kernel for these bytes, compare them instead: for layouts in which their address is rightly the base of stores beyond them
            (paged caches)

    Raises NotActiveError when libcuconst.so is not preloaded, TypeError for what holds no CUDA memory, ValueError for what is no range or is
    more than MAX_PIECES pieces, and CuconstError for what the library refuses. Then nothing is protected.
    """
    _library.library()
    return protect_memory(obj, memory_of(obj), label, stream, follow, owner, verify_only)


def check(handle: Optional[Protection] = None) -> bool:
    """Waits for pending work and compares one protection, or everything, with its baseline. True: unchanged since the last check; a
    change is in the log. Raises CuconstError, with code BUSY while a stream capture is running.
    """
    if isinstance(handle, Protection):
        return handle.check()
    if handle is not None:
        raise TypeError(f"check() takes what protect() gave, or nothing for all, not {type(handle).__name__}")
    code = _library.library().check(0)
    if code not in (Result.OK, Result.CHANGED):
        raise _library.fail(code, "check()")
    return bool(code == Result.OK)
