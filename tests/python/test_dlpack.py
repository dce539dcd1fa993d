"""protect() through __dlpack__, with capsules made by hand: what is read, and that each deleter runs exactly once."""

import ctypes
import gc
import itertools

import cuconst
import pytest
from capsules import BASE, DELETER, Producer, pythonapi
from cuconst import _dlpack

VARIANTS = {
    "contiguous": (dict(), [(BASE, 128)], "float32[4,8]"),
    "managed memory": (dict(device=_dlpack.CUDA_MANAGED), [(BASE, 128)], "float32[4,8]"),
    "strided": (dict(strides=(16, 1)), [(BASE + 64 * i, 32) for i in range(4)], "float32[4,8]"),
    "transposed": (dict(strides=(1, 4)), [(BASE, 128)], "float32[4,8]"),
    "negative": (dict(shape=(4,), strides=(-2,)), [(BASE - 24 + 8 * i, 4) for i in range(4)], "float32[4]"),
    "offset": (dict(offset=256), [(BASE + 256, 128)], "float32[4,8]"),
    "scalar": (dict(shape=()), [(BASE, 4)], "float32[]"),
    "no elements": (dict(shape=(0, 3), data=None), [], "float32[0,3]"),
    "bfloat16": (dict(code=4, bits=16), [(BASE, 64)], "bfloat16[4,8]"),
    "bool": (dict(code=6, bits=8), [(BASE, 32)], "bool[4,8]"),
    "vector": (dict(lanes=4), [(BASE, 512)], "float32x4[4,8]"),
    "float8": (dict(code=10, bits=8), [(BASE, 32)], "dtype10_8[4,8]"),
    "packed nibbles": (dict(shape=(3, 3), code=1, bits=4), [(BASE, 5)], "uint4[3,3]"),
}


@pytest.mark.parametrize("name,kind", list(itertools.product(VARIANTS, ["versioned", "legacy", "old"])))
def test_variants(fake, name, kind):
    settings, ranges, label = VARIANTS[name]
    producer = Producer(**settings, versioned=kind == "versioned", old=kind == "old")
    with cuconst.protect(producer) as handle:
        assert fake.ranges == ranges and handle.label == label
        producer.assert_deleted_once_each()
    assert fake.ranges == []
    producer.assert_deleted_once_each()


@pytest.mark.parametrize("device,word", [(1, "CPU"), (3, "pinned host"), (10, "ROCm"), (99, "device type 99")])
def test_other_devices(fake, device, word):
    asked = Producer(device=device)
    with pytest.raises(TypeError, match=f"lives on .*{word}: only CUDA device memory"):
        cuconst.protect(asked)
    assert asked.made == 0
    silent = Producer(device=device, device_method=False)
    with pytest.raises(TypeError, match=f"lives on .*{word}"):
        cuconst.protect(silent)
    silent.assert_deleted_once_each()


@pytest.mark.parametrize("settings,message", [
    (dict(major=2), "version 2.0"),
    (dict(flags=2), "hands out a copy"),
    (dict(shape=(3, 3), strides=(6, 1), code=1, bits=4), "strided array of items of 4 bits"),
    (dict(shape=(-1,)), "negative dimension"),
    (dict(shape=(cuconst.MAX_PIECES + 1,), strides=(2,)), "separate pieces"),
])
def test_refused_capsules_are_deleted_once(fake, settings, message):
    producer = Producer(**settings)
    with pytest.raises((TypeError, ValueError), match=message):
        cuconst.protect(producer)
    producer.assert_deleted_once_each()
    assert fake.ranges == []


def test_read_only_flag_is_accepted(fake):
    producer = Producer(flags=1)
    with cuconst.protect(producer):
        assert fake.ranges == [(BASE, 128)]
    producer.assert_deleted_once_each()


def test_a_refusal_of_the_library_leaks_nothing(fake):
    fake.memory(BASE + 4096, 16)
    producer = Producer()
    with pytest.raises(cuconst.CuconstError) as caught:
        cuconst.protect(producer)
    assert caught.value.code is cuconst.Result.NOT_DEVICE
    del caught
    producer.assert_deleted_once_each()


def test_a_used_capsule_and_no_capsule(fake):
    producer = Producer()
    capsule = producer.capsule()
    used = ctypes.c_char_p(b"used_dltensor")
    assert pythonapi.PyCapsule_SetName(capsule, used) == 0
    for answer in (capsule, None, object(), 5):
        thing = type("Thing", (), {"__dlpack__": lambda self, answer=answer: answer})()
        with pytest.raises(TypeError, match="no unused DLPack capsule"):
            cuconst.protect(thing)
    del capsule, thing, answer
    gc.collect()
    assert producer.deleted == 0


def test_an_error_of_the_producer_is_the_caller_s(fake):
    class Broken:
        def __dlpack__(self, **keywords):
            raise BufferError("read-only arrays cannot be exported")

    with pytest.raises(BufferError, match="read-only arrays"):
        cuconst.protect(Broken())


def test_the_interface_is_preferred_and_dlpack_used_when_it_raises(fake):
    class Both(Producer):
        @property
        def __cuda_array_interface__(self):
            raise RuntimeError("no typestr for bfloat16")

    producer = Both(code=4, bits=16)
    with cuconst.protect(producer) as handle:
        assert handle.label == "bfloat16[4,8]"
    producer.assert_deleted_once_each()


def test_host_arrays_of_numpy(fake):
    import numpy as np

    with pytest.raises(TypeError, match="ndarray: lives on CPU: only CUDA device memory"):
        cuconst.protect(np.zeros(4))
