"""protect() through __dlpack__, with capsules made by hand: what is read, and that each deleter runs exactly once."""

import ctypes
import gc
import itertools

import cuconst
import pytest
from cuconst import _dlpack

BASE = 0x7000_0000_0000
pythonapi = ctypes.pythonapi
pythonapi.PyCapsule_New.restype = ctypes.py_object
pythonapi.PyCapsule_New.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
pythonapi.PyCapsule_SetName.argtypes = [ctypes.py_object, ctypes.c_char_p]

DELETER = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
DESTRUCTOR = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)
_valid = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p)(("PyCapsule_IsValid", pythonapi))
_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)(("PyCapsule_GetPointer", pythonapi))


@DESTRUCTOR
def destructor(capsule):
    """As producers write it: a capsule that nobody consumed is deleted by its own destructor."""
    for name, layout in ((b"dltensor", _dlpack._Managed), (b"dltensor_versioned", _dlpack._Versioned)):
        if _valid(capsule, name):
            address = _pointer(capsule, name)
            DELETER(layout.from_address(address).deleter)(address)


class Producer:
    """Makes capsules; counts deletions. `old` refuses keywords, as producers from before DLPack 1.0 do."""

    def __init__(self, shape=(4, 8), strides=None, device=_dlpack.CUDA, code=2, bits=32, lanes=1, offset=0, data=BASE,
                 versioned=True, major=1, flags=0, old=False, device_method=True):
        self.keep = []
        self.made = self.deleted = 0
        self.old, self.versioned, self.major, self.flags = old, versioned and not old, major, flags
        self.arguments = (shape, strides, device, code, bits, lanes, offset, data)
        if device_method:
            self.__dlpack_device__ = lambda: (device, 0)

    def fill(self, tensor):
        shape, strides, device, code, bits, lanes, offset, data = self.arguments
        shape_array = (ctypes.c_int64 * max(len(shape), 1))(*shape)
        self.keep.append(shape_array)
        tensor.data, tensor.device_type, tensor.ndim = data, device, len(shape)
        tensor.code, tensor.bits, tensor.lanes, tensor.byte_offset = code, bits, lanes, offset
        tensor.shape = ctypes.cast(shape_array, ctypes.POINTER(ctypes.c_int64))
        if strides is not None:
            strides_array = (ctypes.c_int64 * max(len(strides), 1))(*strides)
            self.keep.append(strides_array)
            tensor.strides = ctypes.cast(strides_array, ctypes.POINTER(ctypes.c_int64))

    def capsule(self):
        managed = _dlpack._Versioned() if self.versioned else _dlpack._Managed()
        name = ctypes.c_char_p(b"dltensor_versioned" if self.versioned else b"dltensor")

        def delete(address):
            assert address == ctypes.addressof(managed)
            self.deleted += 1

        deleter = DELETER(delete)
        managed.deleter = ctypes.cast(deleter, ctypes.c_void_p).value
        if self.versioned:
            managed.major, managed.flags = self.major, self.flags
        self.fill(managed.tensor)
        self.keep += [managed, name, deleter]
        self.made += 1
        return pythonapi.PyCapsule_New(ctypes.addressof(managed), name, ctypes.cast(destructor, ctypes.c_void_p))

    def __dlpack__(self, **keywords):
        if self.old and keywords:
            raise TypeError("unexpected keyword")
        return self.capsule()

    def assert_deleted_once_each(self):
        gc.collect()
        assert (self.made, self.deleted) == (1, 1)


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
