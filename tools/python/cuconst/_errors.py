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


def error(code: int, what: str, text: str, cuda_error: int = 0) -> CuconstError:
    """The exception for a result that is not OK. `what` names the object, `text` is ``cuconst_result_text``; `cuda_error` is a CUresult, 0 for none."""
    if code == Result.NOT_ACTIVE:
        return NotActiveError(Result.NOT_ACTIVE, f"{what}: {text}")
    try:
        known = Result(code)
    except ValueError:
        return CuconstError(code, f"{what}: result {code}, which this version of the module does not know")
    detail = f" (CUDA error {cuda_error})" if cuda_error and known in (Result.CUDA, Result.NOT_DEVICE, Result.NO_ROOM) else ""
    return CuconstError(known, f"{what}: {text}{detail}")
