"""Strided arrays as their pieces, compared with a mask of the bytes that numpy touches."""

import random

import numpy as np
import pytest
from cuconst._pieces import MAX_PIECES, Piece, pieces

BASE = 1 << 40


def expected_pieces(view, owner):
    """By asking numpy: every byte of the view is set, then the runs of set bytes in its owner are read off."""
    owner[...] = 0
    if view.size:
        view[...] = np.frombuffer(b"\xff" * view.itemsize, view.dtype)[0]
    raw = owner.view(np.uint8).reshape(-1) != 0
    edges = np.flatnonzero(np.diff(np.concatenate(([False], raw, [False])).astype(np.int8)))
    return [Piece(BASE + int(a), int(b - a)) for a, b in zip(edges[::2], edges[1::2])]


def of_view(array, owner):
    offset = array.__array_interface__["data"][0] - owner.__array_interface__["data"][0]
    return pieces(BASE + offset, array.shape, array.strides, array.itemsize, "view")


def random_view(rng, owner):
    """A random view without changing the item size: slices, steps of both signs, transposition, reshaping, broadcasting, windows."""
    view = owner
    for _ in range(rng.randrange(1, 5)):
        kind = rng.choice(["slice", "slice", "flip", "transpose", "index", "broadcast", "window", "expand"])
        axis = rng.randrange(view.ndim) if view.ndim else 0
        if kind == "slice" and view.ndim:
            n = view.shape[axis]
            start, stop = sorted((rng.randrange(n + 1), rng.randrange(n + 1)))
            view = view[(slice(None),) * axis + (slice(start, stop, rng.choice([1, 1, 2, 3])),)]
        elif kind == "flip" and view.ndim:
            view = np.flip(view, axis)
        elif kind == "transpose":
            view = view.transpose(rng.sample(range(view.ndim), view.ndim))
        elif kind == "index" and view.ndim and view.shape[axis]:
            view = view[(slice(None),) * axis + (rng.randrange(view.shape[axis]), ...)]
        elif kind == "broadcast" and view.ndim < 4:
            view = np.lib.stride_tricks.as_strided(view, (3, *view.shape), (0, *view.strides))
        elif kind == "window" and view.ndim and view.ndim < 4 and view.shape[axis] > 3:
            view = np.lib.stride_tricks.sliding_window_view(view, rng.randrange(1, 4), axis, writeable=True)
        elif kind == "expand":
            view = np.expand_dims(view, rng.randrange(view.ndim + 1))
    return view


@pytest.mark.parametrize("seed", range(12))
def test_random_views(seed):
    rng = random.Random(seed)
    for _ in range(150):
        shape = [rng.randrange(1, 9) for _ in range(rng.randrange(1, 4))]
        owner = np.zeros(shape, rng.choice([np.uint8, np.int16, np.float32, np.float64, np.complex128]))
        view = random_view(rng, owner)
        assert of_view(view, owner) == expected_pieces(view, owner), (view.shape, view.strides, view.itemsize)


CASES = {
    "contiguous": ((4, 5), None, 4, [(0, 80)]),
    "scalar": ((), None, 8, [(0, 8)]),
    "fortran order": ((4, 5), (4, 16), 4, [(0, 80)]),
    "rows of a wider array": ((3, 2), (16, 4), 4, [(0, 8), (16, 8), (32, 8)]),
    "every other item": ((3,), (8,), 4, [(0, 4), (8, 4), (16, 4)]),
    "backwards": ((3,), (-8,), 4, [(-16, 4), (-8, 4), (0, 4)]),
    "backwards without gaps": ((3,), (-4,), 4, [(-8, 12)]),
    "broadcast": ((1000, 4), (0, 4), 4, [(0, 16)]),
    "broadcast in the middle": ((2, 1000, 2), (64, 0, 4), 4, [(0, 8), (64, 8)]),
    "dimension of one with an odd stride": ((1, 4), (123456, 4), 4, [(0, 16)]),
    "windows over gaps": ((1000, 1000), (8, 8), 4, [(8 * i, 4) for i in range(1999)]),
    "windows that overlap": ((100, 7), (4, 4), 4, [(0, 424)]),
    "interleaved dimensions that fill each other": ((2, 50), (4, 8), 4, [(0, 400)]),
    "items that overlap": ((5,), (2,), 4, [(0, 12)]),
    "two dimensions of unrelated strides": ((2, 2), (12, 20), 8, [(0, 8), (12, 16), (32, 8)]),
    "whole gigabytes": ((1 << 20, 1 << 20), None, 8, [(0, 1 << 43)]),
    "no elements": ((5, 0), (4, 4), 4, []),
    "items of no bytes": ((5,), None, 0, []),
}


@pytest.mark.parametrize("name", CASES)
def test_cases(name):
    shape, strides, itemsize, expected = CASES[name]
    assert pieces(BASE, shape, strides, itemsize, name) == [Piece(BASE + at, n) for at, n in expected]


@pytest.mark.parametrize("shape,strides", [((MAX_PIECES + 1,), (8,)), ((1 << 40, 3), (1 << 20, 8)), ((65, 64), (1 << 20, 8))])
def test_too_many(shape, strides):
    count = shape[0] * (shape[1] if len(shape) > 1 else 1)
    with pytest.raises(ValueError, match=rf"^big: {count} separate pieces .*{MAX_PIECES} is the most"):
        pieces(BASE, shape, strides, 4, "big")


def test_inconsistent():
    with pytest.raises(ValueError, match="2 dimensions, but 1 strides"):
        pieces(BASE, (2, 2), (4,), 4, "x")
    with pytest.raises(ValueError, match="negative dimension"):
        pieces(BASE, (-2,), None, 4, "x")
