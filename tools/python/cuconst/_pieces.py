"""From a strided array to the bytes it occupies: disjoint, maximal, ascending pieces."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import NamedTuple, Optional

#: An array of more separate pieces is refused: each piece is a range with a baseline of its own.
MAX_PIECES = 4096


class Piece(NamedTuple):
    ptr: int
    nbytes: int


def c_strides(shape: Sequence[int], itemsize: int) -> list[int]:
    """Strides in bytes of a C-contiguous array."""
    strides = []
    step = itemsize
    for n in reversed(shape):
        strides.append(step)
        step *= n
    return strides[::-1]


def _as_progressions(shape: Sequence[int], strides: Sequence[int]) -> list[tuple[int, int]]:
    """(stride, count), by ascending stride, of dimensions that matter; those that continue each other are made one."""
    steps = sorted((stride, n) for n, stride in zip(shape, strides) if n > 1 and stride != 0)
    merged: list[tuple[int, int]] = []
    for stride, n in steps:
        if merged:
            below, count = merged[-1]
            # Multiples of `below` without a gap: 0 .. count-1, then the same again from stride/below <= count on.
            if stride % below == 0 and stride // below <= count:
                merged[-1] = (below, count + (n - 1) * (stride // below))
                continue
        merged.append((stride, n))
    return merged


def _check(shape: Sequence[int], strides: Optional[Sequence[int]], itemsize: int, what: str) -> None:
    """ValueError for a layout that is none."""
    if itemsize < 0 or (shape and min(shape) < 0):
        raise ValueError(f"{what}: a negative dimension")
    if strides is not None and len(strides) != len(shape):
        raise ValueError(f"{what}: {len(shape)} dimensions, but {len(strides)} strides")


def extent(ptr: int, shape: Sequence[int], strides: Optional[Sequence[int]], itemsize: int, what: str) -> Piece:
    """From an array's first byte to its last; (0, 0) when it has no elements."""
    _check(shape, strides, itemsize, what)
    if itemsize == 0 or 0 in shape:
        return Piece(0, 0)
    if strides is None:
        found = Piece(ptr, itemsize * prod(shape))
    else:
        reach = [(n - 1) * stride for n, stride in zip(shape, strides)]
        found = Piece(ptr + sum(r for r in reach if r < 0), itemsize + sum(abs(r) for r in reach))
    # The library takes 64 bits, and ctypes would cut what is more without a word.
    if found.ptr < 0 or found.ptr + found.nbytes > 2**64:
        raise ValueError(f"{what}: reaches beyond the address space")
    return found


def pieces(ptr: int, shape: Sequence[int], strides: Optional[Sequence[int]], itemsize: int, what: str) -> list[Piece]:
    """The pieces of an array. Strides are in bytes and may be zero, negative or overlapping; None means C-contiguous.

    ValueError when it has more than MAX_PIECES; `what` names it there.
    """
    whole = extent(ptr, shape, strides, itemsize, what)
    if strides is None or not whole.nbytes:
        return [whole] if whole.nbytes else []
    start = ptr + sum((n - 1) * stride for n, stride in zip(shape, strides) if stride < 0)
    length = itemsize
    apart: list[tuple[int, int]] = []
    for stride, n in _as_progressions(shape, [abs(stride) for stride in strides]):
        if not apart and stride <= length:
            length += (n - 1) * stride
        else:
            apart.append((stride, n))
    count = 1
    for _, n in apart:
        count *= n
    if count > MAX_PIECES:
        raise ValueError(
            f"{what}: {count} separate pieces of memory, and {MAX_PIECES} is the most: "
            "protect the array it is a view of, or a contiguous copy"
        )
    starts = [start]
    for stride, n in apart:
        starts = [at + i * stride for at in starts for i in range(n)]
    starts.sort()
    found: list[Piece] = []
    for at in starts:
        if found and at <= found[-1].ptr + found[-1].nbytes:
            last = found[-1]
            found[-1] = Piece(last.ptr, max(last.nbytes, at + length - last.ptr))
        else:
            found.append(Piece(at, length))
    return found
