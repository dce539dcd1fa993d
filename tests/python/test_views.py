"""readonly(): what a view exports, for each kind of owner, and that DLPack's deleters run exactly once. The fake shim's twins lie 4 GiB above."""

import ctypes
import gc
import pathlib
import subprocess
import sys
import threading
import weakref

import cuconst
import numpy as np
import pytest
from capsules import BASE, DELETER, Producer, pythonapi
from cuconst import _dlpack

AWAY = 0x1_0000_0000


class Array:
    """As CuPy and Numba export."""

    def __init__(self, ptr=BASE, shape=(4, 8), strides=None, typestr="<f4", **more):
        self.interface = {"shape": shape, "typestr": typestr, "data": (ptr, False), "version": 3, "strides": strides, **more}
        self.asked = 0

    @property
    def __cuda_array_interface__(self):
        self.asked += 1
        return dict(self.interface)


class Both(Producer):
    """As CuPy, JAX and torch export: both protocols."""

    @property
    def __cuda_array_interface__(self):
        return {"shape": (4, 8), "typestr": "<f4", "data": (BASE, True), "version": 2}


def unpack(capsule):
    """(tensor, flags, versioned) of a capsule that stays unused."""
    versioned = bool(_dlpack._is_valid(capsule, b"dltensor_versioned"))
    tensor = _dlpack.look(capsule)
    return tensor, tensor.flags, versioned


def consume(capsule):
    """As a consumer does: renames, and deletes later."""
    name = b"dltensor_versioned" if _dlpack._is_valid(capsule, b"dltensor_versioned") else b"dltensor"
    layout = _dlpack._Versioned if name == b"dltensor_versioned" else _dlpack._Managed
    address = _dlpack._get_pointer(capsule, name)
    assert pythonapi.PyCapsule_SetName(capsule, _dlpack._USED[name]) == 0
    return lambda: DELETER(layout.from_address(address).deleter)(address)


def test_interface_says_read_only_at_the_twin(fake):
    owner = Array(stream=7)
    interface = cuconst.readonly(owner).__cuda_array_interface__
    assert interface == {"shape": (4, 8), "typestr": "<f4", "data": (BASE + AWAY, True), "version": 3, "strides": None, "stream": 7}
    assert owner.interface["data"] == (BASE, False), "the owner's own dictionary is untouched"


def test_what_the_owner_says_now_counts(fake):
    owner = Array(stream=7)
    view = cuconst.readonly(owner)
    owner.interface.update(stream=9, data=(BASE + 4096, False), shape=(2,))
    assert view.__cuda_array_interface__["stream"] == 9
    assert view.__cuda_array_interface__["data"] == (BASE + AWAY + 4096, True)


class Immutable(Array):
    """As JAX: read-only, no stream, and the same until it is deleted."""

    deleted = False

    def __init__(self, **more):
        super().__init__(**more)
        self.interface.update(version=2, data=(BASE, True))

    def is_deleted(self):
        return self.deleted


def test_an_immutable_array_is_asked_once(fake):
    owner = Immutable()
    view = cuconst.readonly(owner)
    first = view.__cuda_array_interface__
    assert first["data"] == (BASE + AWAY, True) and owner.asked == 1
    first["shape"] = "a consumer's own dictionary"
    assert view.__cuda_array_interface__["shape"] == (4, 8) and owner.asked == 1
    owner.deleted = True
    Immutable.__cuda_array_interface__ = property(lambda self: 1 / 0)
    try:
        assert not hasattr(view, "__cuda_array_interface__")
    finally:
        del Immutable.__cuda_array_interface__


@pytest.mark.parametrize("change", [{"data": (BASE, False)}, {"stream": 7}])
def test_what_may_change_is_asked_again(fake, change):
    owner = Immutable()
    owner.interface.update(change)
    view = cuconst.readonly(owner)
    owner.interface.update(data=(BASE + 512, True))
    assert view.__cuda_array_interface__["data"] == (BASE + 512 + AWAY, True)


def test_an_immutable_array_whose_memory_went_away(fake):
    view = cuconst.readonly(Immutable())
    fake.memory(BASE + (1 << 30), 4096)
    with pytest.raises(cuconst.CuconstError):
        view.__cuda_array_interface__


@pytest.mark.parametrize("typestr,itemsize", [("<f4", 4), ("|b1", 1), ("<c16", 16), ("|V3", 3), (">f8", 8), ("<U2", 8), ("<M8[ns]", 8)])
@pytest.mark.parametrize("shape", [(), (1,), (7,), (3, 5), (1, 1, 9), (True, 4), (np.int64(3), np.int32(5))])
def test_short_and_long_way_agree(fake, typestr, itemsize, shape):
    strides = tuple(int(n) for n in np.cumprod([itemsize, *reversed(shape[1:])])[::-1]) if shape else ()
    short = cuconst.readonly(Array(shape=shape, typestr=typestr))
    long = cuconst.readonly(Array(shape=shape, typestr=typestr, strides=strides))
    assert short.__cuda_array_interface__["data"] == long.__cuda_array_interface__["data"] == (BASE + AWAY, True)
    assert short.nbytes == long.nbytes == itemsize * int(np.prod(shape))


@pytest.mark.parametrize("shape", [[4, 8], iter, np.array([4, 8])], ids=["list", "iterator", "array"])
def test_shapes_that_are_no_tuple(fake, shape):
    class Odd:
        @property
        def __cuda_array_interface__(self):
            return {"shape": iter((4, 8)) if shape is iter else shape, "typestr": "<f4", "data": (BASE, False), "version": 3}

    view = cuconst.readonly(Odd())
    assert view.nbytes == 128 and view.__cuda_array_interface__["data"] == (BASE + AWAY, True)


@pytest.mark.parametrize("shape", [(-2, -3), (-1,), (2, -1), (1.5,), ("a",), 4, None])
def test_shapes_that_are_none(fake, shape):
    with pytest.raises((TypeError, ValueError)):
        cuconst.readonly(Array(shape=shape))


@pytest.mark.parametrize("interface", [[], (), 5, "text", {}, {"shape": (4,)}, {"shape": (4,), "typestr": ["<f4"], "data": (BASE, False)}])
def test_interfaces_that_are_none(fake, interface):
    owner = type("Odd", (), {"__cuda_array_interface__": interface})()
    with pytest.raises(TypeError):
        cuconst.readonly(owner)


def test_a_mask_is_read_only_too(fake):
    mask = Array(BASE + 4096, (4, 8), typestr="|b1")
    view = cuconst.readonly(Array(mask=mask))
    assert view.__cuda_array_interface__["data"] == (BASE + AWAY, True)
    shown = view.__cuda_array_interface__["mask"]
    assert isinstance(shown, cuconst.ReadOnly) and shown.owner is mask
    assert shown.__cuda_array_interface__["data"] == (BASE + 4096 + AWAY, True)
    assert "mask" not in cuconst.readonly(Array()).__cuda_array_interface__
    assert cuconst.readonly(Array(mask=None)).__cuda_array_interface__["mask"] is None


def test_a_mask_that_has_no_view(fake):
    fake.memory(BASE, 4096)
    with pytest.raises(cuconst.CuconstError):
        cuconst.readonly(Array(mask=Array(BASE + 4096, (4, 8), typestr="|b1")))


def test_version_2_becomes_3(fake):
    interface = cuconst.readonly(Both()).__cuda_array_interface__
    assert (interface["version"], interface["strides"], interface["stream"]) == (3, None, None)


@pytest.mark.parametrize("shape,strides,first,lowest,nbytes", [
    ((4, 8), (64, 4), BASE, BASE, 3 * 64 + 32),
    ((4,), (-8,), BASE + 64, BASE + 40, 28),
    ((3, 2), (4, -16), BASE + 64, BASE + 48, 28),
    ((), (), BASE, BASE, 4),
    ((1000, 1000), (1 << 20, 8), BASE, BASE, 999 * (1 << 20) + 999 * 8 + 4),
], ids=["rows", "backwards", "mixed", "scalar", "too many pieces to protect"])
def test_strided_views_cover_first_to_last(fake, monkeypatch, shape, strides, first, lowest, nbytes):
    asked = []
    library = cuconst._library._library
    real = library.view
    monkeypatch.setattr(library, "view_known", lambda *_: 0)
    library.view = lambda ptr, size, out: asked.append((ptr, size)) or real(ptr, size, out)
    try:
        view = cuconst.readonly(Array(first, shape, strides))
        assert view.__cuda_array_interface__["data"][0] == first + AWAY
        assert view.__cuda_array_interface__["strides"] == strides
        assert (view.ptr, view.nbytes) == (lowest + AWAY, nbytes)
    finally:
        library.view = real
    assert set(asked) == {(lowest, nbytes)}


def test_no_elements(fake):
    view = cuconst.readonly(Array(0, (0, 3)))
    assert view.__cuda_array_interface__["data"] == (0, True)
    assert (view.ptr, view.nbytes) == (0, 0)


def test_pair(fake):
    view = cuconst.readonly((BASE, 100))
    assert view.__cuda_array_interface__["data"] == (BASE + AWAY, True)
    assert (view.__cuda_array_interface__["typestr"], view.__cuda_array_interface__["shape"]) == ("|u1", (100,))
    with pytest.raises(BufferError, match="__cuda_array_interface__"):
        view.__dlpack__()
    with pytest.raises(BufferError):
        view.__dlpack_device__()


def test_an_error_names_a_pair_by_its_bytes(fake):
    fake.memory(BASE, 64)
    with pytest.raises(cuconst.CuconstError, match="^100 bytes: "):
        cuconst.readonly((BASE, 100))


@pytest.mark.parametrize("bad", [(1, 2, 3), (BASE, -1), (BASE, 1.5), (True, 4), object(), b"bytes", "text", None])
def test_no_memory(fake, bad):
    with pytest.raises((TypeError, ValueError)):
        cuconst.readonly(bad)


BEYOND = [
    ({"shape": (2**64 + 64,)}, "|u1"),  # cut to 64 bits it would be 64 bytes, which are there
    ({"shape": (2**32 + 1, 2**32)}, "|u1"),
    ({"shape": (2, 4), "strides": (2**64, 1)}, "|u1"),
    ({"shape": (2, 4), "strides": (-BASE - 1, 1)}, "|u1"),
    ({"shape": (4,), "ptr": BASE + 2**64}, "|u1"),
    ({"shape": (4,), "ptr": -2**64 + BASE}, "|u1"),
    ({"shape": (1,)}, f"|V{2**64 + 64}"),
]


@pytest.mark.parametrize("layout,typestr", BEYOND)
def test_a_layout_beyond_all_addresses_is_no_view_of_what_its_lower_bits_say(fake, layout, typestr):
    with pytest.raises(ValueError, match="address space"):
        cuconst.readonly(Array(typestr=typestr, **layout))
    with pytest.raises(ValueError, match="address space"):
        cuconst.protect(Array(typestr=typestr, **layout))


def test_an_array_that_grows_beyond_all_addresses(fake):
    owner = Array()
    view = cuconst.readonly(owner)
    owner.interface["shape"] = (2**62 + 8,)
    for ask in (lambda: view.__cuda_array_interface__, lambda: view.ptr, lambda: view.nbytes):
        with pytest.raises(ValueError, match="address space"):
            ask()
    producer = Producer(shape=(2**32 + 1, 2**32), bits=8)
    with pytest.raises(ValueError, match="address space"):
        cuconst.readonly(producer)
    gc.collect()
    assert producer.made == producer.deleted


@pytest.mark.parametrize("flags,nbytes", [(0, 16), (4, 32)])
def test_items_of_less_than_a_byte(fake, flags, nbytes):
    producer = Producer(code=17, bits=4, flags=flags)
    assert cuconst.readonly(producer).nbytes == nbytes
    with cuconst.protect(producer):
        assert [entry[:2] for entry in fake.entries] == [(BASE, nbytes)]


def test_view_of_a_view_is_itself(fake):
    view = cuconst.readonly(Array())
    assert cuconst.readonly(view) is view


@pytest.mark.parametrize("code,word", [(11, "twins=off"), (12, "twins=all"), (13, "pool"), (14, "managed"), (15, "host"), (16, "address space")])
def test_reasons_name_the_way_out(fake, code, word):
    fake.fail(code)
    with pytest.raises(cuconst.CuconstError, match=word) as raised:
        cuconst.readonly(Array())
    assert raised.value.code == code and "float32[4,8]" in str(raised.value)


def test_not_active(fake):
    fake.disable()
    with pytest.raises(cuconst.NotActiveError):
        cuconst.readonly(Array())


def test_memory_that_went_away_is_an_error_not_an_address(fake):
    view = cuconst.readonly(Array())
    fake.memory(BASE + (1 << 30), 4096)
    with pytest.raises(cuconst.CuconstError):
        view.__cuda_array_interface__
    producer = Producer()
    view = cuconst.readonly(Array(BASE + (1 << 30), (4,)))
    fake.memory(BASE, 4096)
    view = cuconst.readonly(producer)
    fake.reset()
    fake.memory(BASE + (1 << 30), 4096)
    with pytest.raises(cuconst.CuconstError):
        view.__dlpack__(max_version=(1, 0))
    gc.collect()
    assert producer.made == producer.deleted


def test_keeps_its_owner_alive(fake):
    owner = Array()
    gone = weakref.ref(owner)
    view = cuconst.readonly(owner)
    assert view.owner is owner
    del owner
    gc.collect()
    assert gone() is not None
    del view
    gc.collect()
    assert gone() is None


def test_capsule_keeps_the_memory_alive(fake):
    producer = Producer()
    view = cuconst.readonly(producer)
    seen = producer.deleted
    delete = consume(view.__dlpack__(max_version=(1, 0)))
    del view
    gc.collect()
    assert producer.made - producer.deleted == 1 and producer.deleted == seen
    delete()
    assert producer.made == producer.deleted


@pytest.mark.parametrize("kind", ["versioned", "legacy", "old"])
@pytest.mark.parametrize("wanted", [None, (0, 8), (1, 0), (1, 3), (2, 0)])
def test_dlpack_versions(fake, kind, wanted):
    producer = Producer(strides=(16, 1), offset=256, versioned=kind == "versioned", old=kind == "old")
    if kind == "versioned" and (wanted is None or wanted < (1, 0)):
        producer.versioned = False  # as a producer that honours max_version
    capsule = cuconst.readonly(producer).__dlpack__(max_version=wanted)
    tensor, flags, versioned = unpack(capsule)
    assert versioned == (wanted is not None and wanted[0] >= 1)
    assert flags == (1 if versioned else 0)
    assert tensor.ptr == BASE + 256 + AWAY
    assert (tensor.shape, tensor.strides, tensor.dtype, tensor.device) == ((4, 8), (16, 1), "float32", _dlpack.CUDA)
    del capsule
    gc.collect()
    assert producer.made == producer.deleted, "a capsule that nobody consumed is deleted"


def test_consumed_capsule_is_deleted_by_its_consumer_alone(fake):
    producer = Producer()
    view = cuconst.readonly(producer)
    for wanted in ((1, 0), None):
        producer.versioned = wanted is not None
        before = producer.deleted
        capsule = view.__dlpack__(max_version=wanted)
        delete = consume(capsule)
        del capsule
        gc.collect()
        assert producer.deleted == before
        thread = threading.Thread(target=delete)
        thread.start()
        thread.join()
        assert producer.deleted == before + 1


def test_dtype_without_a_typestr_goes_by_dlpack(fake):
    view = cuconst.readonly(Producer(code=4, bits=16))
    assert not hasattr(view, "__cuda_array_interface__")
    tensor, flags, _ = unpack(view.__dlpack__(max_version=(1, 0)))
    assert (tensor.dtype, tensor.ptr, flags) == ("bfloat16", BASE + AWAY, 1)


def test_an_interface_that_raises_is_none(fake):
    class Jax(Producer):
        @property
        def __cuda_array_interface__(self):
            raise RuntimeError("no such type")

    view = cuconst.readonly(Jax())
    assert not hasattr(view, "__cuda_array_interface__")
    assert view.__dlpack_device__() == (_dlpack.CUDA, 0)


class Recorder(Producer):
    """Keeps what it was asked with; answers a copy as one."""

    def __dlpack__(self, **keywords):
        self.keywords = keywords
        self.flags = 2 if keywords.get("copy") else 0
        return self.capsule()


def test_arguments_reach_the_producer(fake):
    producer = Recorder()
    view = cuconst.readonly(producer)
    view.__dlpack__(stream=5, max_version=(1, 2), dl_device=(2, 0), copy=False)
    assert producer.keywords == {"stream": 5, "max_version": (1, 0), "dl_device": (2, 0), "copy": False}
    producer.versioned = False
    view.__dlpack__()
    assert producer.keywords == {}


@pytest.mark.parametrize("strides,offset,lanes", [(None, 0, 1), ((8, 1), 256, 1), ((16, 1), 0, 1), (None, 8, 2)])
@pytest.mark.parametrize("wanted", [None, (1, 0)])
def test_short_and_long_way_of_capsules_agree(fake, monkeypatch, strides, offset, lanes, wanted):
    said = []
    for known in (True, False):
        producer = Producer(strides=strides, offset=offset, lanes=lanes, versioned=wanted is not None)
        if not known:
            monkeypatch.setattr(_dlpack, "viewed", lambda *_: None)
        capsule = cuconst.readonly(producer).__dlpack__(max_version=wanted)
        said.append(unpack(capsule))
        del capsule
        gc.collect()
        assert producer.made == producer.deleted
    assert said[0] == said[1] and said[0][0].ptr == BASE + offset + AWAY


@pytest.mark.parametrize("settings", [{"shape": (0, 8)}, {"bits": 4}, {"device": 13}, {"strides": (0, 1)}, {"strides": (-8, 1), "data": BASE + 4096}])
def test_capsules_that_take_the_long_way(fake, settings):
    producer = Producer(**settings)
    assert _dlpack.viewed(producer.capsule(), True) is None
    producer.keep.clear()
    assert producer.made == producer.deleted, "and are as they were: their own destructor deletes them"


@pytest.mark.parametrize("shape", [(-1, 8), (-2, -4), (2**62, 8), (2**40, 2**40)])
def test_capsules_whose_sizes_are_none(fake, shape):
    assert _dlpack.viewed(Producer(shape=shape).capsule(), True) is None


@pytest.mark.parametrize("settings", [{"flags": 2}, {"major": 2}])
def test_capsules_that_are_not_looked_into(fake, settings):
    assert _dlpack.viewed(Producer(**settings).capsule(), True) is None


@pytest.mark.parametrize("odd", [None, 5, "text", object()])
def test_no_capsule(fake, odd):
    assert _dlpack.viewed(odd, True) is None


def test_a_copy_is_the_consumers_own(fake):
    tensor, flags, _ = unpack(cuconst.readonly(Recorder()).__dlpack__(max_version=(1, 0), copy=True))
    assert (tensor.ptr, flags) == (BASE, 2)


def test_existing_flags_stay(fake):
    producer = Producer(flags=1 | 8)
    _, flags, _ = unpack(cuconst.readonly(producer).__dlpack__(max_version=(1, 0)))
    assert flags == 9


class Tensor(Producer):
    """As torch: a tensor that wants a gradient exports nothing."""

    def __init__(self, requires_grad):
        super().__init__()
        self.requires_grad, self.device, self.shape, self.dtype = requires_grad, "cuda", (4, 8), "torch.float32"

    def data_ptr(self):
        return BASE

    def element_size(self):
        return 4

    def stride(self):
        return (8, 1)

    def detach(self):
        return Tensor(False)

    def __dlpack__(self, **keywords):
        if self.requires_grad:
            raise RuntimeError("Can't export tensors that require gradient, use tensor.detach()")
        return self.capsule()


Tensor.device = None


def test_torch_parameter(fake):
    parameter = Tensor(True)
    parameter.device = type("Device", (), {"type": "cuda"})()
    parameter.detach = lambda: detached
    detached = Tensor(False)
    detached.device = parameter.device
    view = cuconst.readonly(parameter)
    assert view.owner is parameter
    assert unpack(view.__dlpack__(max_version=(1, 0)))[0].ptr == BASE + AWAY


def test_deleter_needs_no_interpreter(fake, tmp_path):
    """A consumer that lives until after the end of Python: a C destructor calls the deleter when no thread may run Python any more."""
    program = tmp_path / "outlives.py"
    program.write_text("""
import atexit, ctypes, sys
sys.path[:0] = [%r, %r]
import cuconst
from cuconst import _dlpack, _library
libc = ctypes.CDLL(None)
plain = _dlpack._Managed()
shape = (ctypes.c_int64 * 1)(4)
plain.tensor.data, plain.tensor.device_type, plain.tensor.ndim, plain.tensor.bits, plain.tensor.lanes = 0x1000, 2, 1, 32, 1
plain.tensor.shape = ctypes.cast(shape, ctypes.POINTER(ctypes.c_int64))
size = ctypes.sizeof(plain)
libc.malloc.restype = ctypes.c_void_p
memory = libc.malloc(size)
plain.deleter = ctypes.cast(libc.free, ctypes.c_void_p).value
ctypes.memmove(memory, ctypes.addressof(plain), size)
out = _library.library().dlpack_view(memory, 0, 1, 0x2000)
deleter = _dlpack._Versioned.from_address(out).deleter
libc.__cxa_atexit.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p]
assert libc.__cxa_atexit(deleter, out, None) == 0
print("end")
""" % (str(pathlib.Path(cuconst.__file__).parent.parent), ""))
    done = subprocess.run([sys.executable, str(program)], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (0, "end\n"), done


def test_many_capsules_leave_nothing(fake):
    producer = Producer()
    view = cuconst.readonly(producer)
    for _ in range(1000):
        view.__dlpack__(max_version=(1, 0))
        producer.keep.clear()
    gc.collect()
    assert producer.made == producer.deleted


def test_repr(fake):
    assert repr(cuconst.readonly(Array())).startswith("<cuconst.ReadOnly of ") and "float32[4,8]" in repr(cuconst.readonly(Array()))


def test_structs_have_the_sizes_of_dlpack():
    assert (ctypes.sizeof(_dlpack._Tensor), ctypes.sizeof(_dlpack._Managed), ctypes.sizeof(_dlpack._Versioned)) == (48, 64, 80)
