"""Results of the C API as exceptions whose text says what to do."""

from __future__ import annotations

import enum


class Result(enum.IntEnum):
    """``cuconst_result`` of cuconst.h."""

    OK = 0
    NOT_ACTIVE = 1
    INVALID_VALUE = 2
    NOT_DEVICE = 3
    OUT_OF_RANGE = 4
    STALE_HANDLE = 5
    BAD_HANDLE = 6
    OUT_OF_MEMORY = 7
    CUDA = 8
    CHANGED = 9
    BUSY = 10
    TWINS_OFF = 11
    PLAIN_MEMORY = 12
    POOL_MEMORY = 13
    MANAGED_MEMORY = 14
    HOST_MEMORY = 15
    NO_ROOM = 16


_MESSAGES = {
    Result.NOT_ACTIVE: "cuconst is preloaded, but not active: the program has not initialised CUDA yet, "
    "or cuconst is disabled in this process (then stderr has the reason)",
    Result.INVALID_VALUE: "not a range: the address is 0, the length is 0, or the end lies beyond the address space",
    Result.NOT_DEVICE: "not memory of a live CUDA allocation: it is host memory, or was freed",
    Result.OUT_OF_RANGE: "the range goes beyond the end of its allocation: check the length",
    Result.STALE_HANDLE: "this protection has ended: it was closed before, or its memory was freed",
    Result.BAD_HANDLE: "not a handle of this process",
    Result.OUT_OF_MEMORY: "no host or device memory left for the bookkeeping or the baseline: free some, or protect less",
    Result.CUDA: "the CUDA driver refused what a baseline or a check needs",
    Result.CHANGED: "read-only memory was changed: the log has a record",
    Result.BUSY: "a stream capture is running, nothing was done: ask again when it has ended",
    Result.TWINS_OFF: "no read-only views: the option twins=off is set, or the driver has no virtual memory management",
    Result.PLAIN_MEMORY: "memory of cuMemAlloc cannot be mapped a second time: run with --option twins=all, or let the library allocate "
    "by virtual memory management (PyTorch: PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True), or protect() it instead",
    Result.POOL_MEMORY: "memory of a pool (cuMemAllocAsync) cannot be mapped a second time: allocate by cuMemAlloc under twins=all "
    "(CuPy: leave MemoryAsyncPool), or protect() it instead",
    Result.MANAGED_MEMORY: "managed memory cannot be mapped a second time: use device memory, or protect() it instead",
    Result.HOST_MEMORY: "host memory has no read-only view on the device: use device memory",
    Result.NO_ROOM: "no address space, or no memory for page tables, for the second mapping: free some, or protect() it instead",
}


class CuconstError(RuntimeError):
    """A call of libcuconst.so failed. ``code`` is its ``Result`` (an int if a newer library has one this module does not know)."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code

    def __reduce__(self) -> tuple[type, tuple[int, str]]:
        return type(self), (self.code, str(self))


class NotActiveError(CuconstError):
    """libcuconst.so is not preloaded, is disabled in this process, or CUDA was not initialised yet; the text says which."""

    def __init__(
        self,
        code: int = Result.NOT_ACTIVE,
        message: str = "cuconst is not preloaded: start the program with `cuconst run -- python ...`",
    ) -> None:
        super().__init__(code, message)


def error(code: int, what: str, cuda_error: int = 0) -> CuconstError:
    """The exception for a result that is not OK. `what` names the object; `cuda_error` is a CUresult, 0 for none."""
    if code == Result.NOT_ACTIVE:
        return NotActiveError(Result.NOT_ACTIVE, f"{what}: {_MESSAGES[Result.NOT_ACTIVE]}")
    try:
        known = Result(code)
    except ValueError:
        return CuconstError(code, f"{what}: result {code}, which this version of the module does not know")
    detail = f" (CUDA error {cuda_error})" if cuda_error and known in (Result.CUDA, Result.NOT_DEVICE, Result.NO_ROOM) else ""
    return CuconstError(known, f"{what}: {_MESSAGES[known]}{detail}")
