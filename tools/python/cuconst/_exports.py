"""Protects what programs hand out as read-only: JAX arrays that are exported, and objects whose __cuda_array_interface__ says so.

Called by the start-up module after the import of a watched library. Everything here runs inside somebody else's program: what
goes wrong is said once and swallowed, and the wrapped function does what it did before.
"""

from __future__ import annotations

import functools
import os
import threading
import weakref
from collections import OrderedDict
from typing import Any, Callable, Optional

from . import _library
from ._memory import Memory, describe, from_capsule, from_interface
from ._protection import Protection, protect_memory

#: XLA recycles and donates its own buffers: the PJRT plugin's library file, xla_cuda_plugin.so of jax_plugins/xla_cuda12 and 13.
XLA = "*xla_cuda_plugin*"

#: How many earlier exports are looked at, at each new one, for arrays that were donated or deleted since.
SWEEP = 32

Say = Callable[[str, BaseException], None]
Note = Callable[[bytes], None]


class Exports:
    """The objects that were protected, by identity, each once. Thread-safe.

    Entries hold weak references, so identity of a live object is certain: an id is used again only after the old object's callback.
    """

    def __init__(self) -> None:
        # Re-entrant: the collector may run a callback of ours while the lock is held.
        self._lock = threading.RLock()
        self._entries: OrderedDict[int, tuple[weakref.ref[Any], Protection]] = OrderedDict()
        os.register_at_fork(after_in_child=self._forked)

    def _forked(self) -> None:
        """The lock may be held by a thread that the child does not have; what the parent protects is the parent's."""
        self._lock = threading.RLock()
        self._entries = OrderedDict()

    def __contains__(self, obj: Any) -> bool:
        with self._lock:
            entry = self._entries.get(id(obj))
            return entry is not None and entry[0]() is obj

    def add(self, obj: Any, protection: Protection) -> None:
        key = id(obj)

        def forget(gone: weakref.ref[Any]) -> None:
            with self._lock:
                entry = self._entries.get(key)
                if entry is not None and entry[0] is gone:
                    del self._entries[key]

        with self._lock:
            self._entries[key] = (weakref.ref(obj, forget), protection)

    def sweep(self) -> None:
        """Ends the protection of arrays that were donated or deleted: their memory belongs to somebody else by now."""
        for _ in range(SWEEP):
            with self._lock:
                if not self._entries:
                    return
                key, entry = self._entries.popitem(last=False)
                obj = entry[0]()
                if obj is not None and not _is_deleted(obj):
                    self._entries[key] = entry
                    continue
            entry[1].release()


jax_arrays = Exports()
read_only = Exports()


def _is_deleted(obj: Any) -> bool:
    deleted = getattr(obj, "is_deleted", None)
    return bool(deleted()) if callable(deleted) else False


def _protect(table: Exports, obj: Any, found: Memory, label: str, owner: Optional[str], note: Note) -> None:
    if found.pieces:
        table.add(obj, protect_memory(obj, found, label, follow=True, owner=owner))
        note(b"e")


def _jax_memory(array: Any, interface: Any, capsule: Any) -> Optional[Memory]:
    """The array's memory by what was just handed out; None when that is a copy or host memory."""
    if interface is not None:
        return from_interface(interface, "jax array")
    try:
        found = from_capsule(capsule, "jax array")
    except TypeError:
        return None
    # A copy on the device looks like any other capsule.
    address = getattr(array, "unsafe_buffer_pointer", None)
    if callable(address) and found.pieces and found.pieces[0].ptr != address():
        return None
    return found


def _jax_label(array: Any, found: Memory) -> str:
    """As JAX names it: DLPack has no word for some of its types."""
    dtype, shape = getattr(array, "dtype", None), getattr(array, "shape", None)
    return "jax " + (found.description if dtype is None or shape is None else describe(str(dtype), shape))


def _exported_by_jax(array: Any, interface: Any, capsule: Any, say: Say, note: Note) -> None:
    try:
        if array in jax_arrays or not _library.active():
            return
        jax_arrays.sweep()
        found = _jax_memory(array, interface, capsule)
        if found is None:
            return
        # The baseline must be of finished bytes, and XLA dispatches its work from threads of its own.
        ready = getattr(array, "block_until_ready", None)
        if callable(ready):
            ready()
        _protect(jax_arrays, array, found, _jax_label(array, found), XLA, note)
    except Exception as reason:
        say("a JAX array could not be protected", reason)


def _wrapped(attribute: Any) -> bool:
    return hasattr(getattr(attribute, "fget", attribute), "_cuconst_wrapped")


def _wrap_interface(cls: type, say: Say, note: Note) -> None:
    inner = cls.__dict__.get("__cuda_array_interface__")
    if inner is None or _wrapped(inner):
        return
    get = inner.__get__

    def interface(self: Any) -> Any:
        answer = get(self, type(self))
        _exported_by_jax(self, answer, None, say, note)
        return answer

    interface.__name__ = "__cuda_array_interface__"
    interface.__doc__ = getattr(inner, "__doc__", None)
    interface._cuconst_wrapped = inner  # type: ignore[attr-defined]
    setattr(cls, "__cuda_array_interface__", property(interface, doc=interface.__doc__))


def _wrap_dlpack(cls: type, say: Say, note: Note) -> None:
    inner = cls.__dict__.get("__dlpack__")
    if inner is None or _wrapped(inner):
        return

    @functools.wraps(inner)
    def dlpack(self: Any, *args: Any, **kwargs: Any) -> Any:
        capsule = inner(self, *args, **kwargs)
        _exported_by_jax(self, None, capsule, say, note)
        return capsule

    dlpack._cuconst_wrapped = inner  # type: ignore[attr-defined]
    setattr(cls, "__dlpack__", dlpack)


def patch_jaxlib(module: Any, say: Say, note: Note) -> None:
    """jaxlib makes the class, jax._src.array adds methods to it later: called after each, wraps what is there and not wrapped yet."""
    cls = getattr(module, "ArrayImpl", None)
    if isinstance(cls, type):
        _wrap_interface(cls, say, note)
        _wrap_dlpack(cls, say, note)


#: Whose own arrays never say read-only: they are passed without a look.
_PLAIN = ("cupy", "numba", "numpy", "torch", "builtins")


def _consumed(obj: Any, say: Say, note: Note) -> None:
    try:
        if type(obj).__module__.partition(".")[0] in _PLAIN or obj in read_only or obj in jax_arrays or not _library.active():
            return
        interface = getattr(obj, "__cuda_array_interface__", None)
        # Reading it may just have protected a JAX array.
        if not isinstance(interface, dict) or not interface["data"][1] or obj in jax_arrays:
            return
        name = type(obj).__name__
        found = from_interface(interface, name)
        _protect(read_only, obj, found, f"{name} {found.description}", None, note)
    except Exception as reason:
        say("a read-only object could not be protected", reason)


def _wrap_consumer(module: Any, name: str, parameter: str, say: Say, note: Note) -> None:
    inner = getattr(module, name, None)
    if not callable(inner) or _wrapped(inner):
        return

    @functools.wraps(inner)
    def consumer(*args: Any, **kwargs: Any) -> Any:
        _consumed(args[0] if args else kwargs.get(parameter), say, note)
        return inner(*args, **kwargs)

    consumer._cuconst_wrapped = inner  # type: ignore[attr-defined]
    setattr(module, name, consumer)


def patch_cupy(module: Any, say: Say, note: Note) -> None:
    _wrap_consumer(module, "array", "obj", say, note)
    for name in ("asarray", "asanyarray", "ascontiguousarray", "asfortranarray"):
        _wrap_consumer(module, name, "a", say, note)


def patch_numba(module: Any, say: Say, note: Note) -> None:
    _wrap_consumer(module, "as_cuda_array", "obj", say, note)
