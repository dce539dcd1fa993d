"""protect(), its handle and the rest of the API, on the fake shim."""

import gc
import pickle
import threading
import warnings

import cuconst
import numpy as np
import pytest

BASE = 0x7000_0000_0000
LIBRARY_ERRORS = [code for code in cuconst.Result if code not in (cuconst.Result.OK, cuconst.Result.NOT_ACTIVE)]


@pytest.fixture(autouse=True)
def no_leaks(fake):
    yield
    gc.collect()


def test_active_and_version(fake):
    assert cuconst.active() is True
    assert cuconst.version() == "0.1.0"


def test_protect_and_close(fake, array):
    x = array(np.zeros(1024, np.float32))
    handle = cuconst.protect(x, label="weights")
    assert fake.entries == [(BASE, 4096, "weights", "", 0, 0)]
    assert handle.label == "weights" and handle.ranges == ((BASE, 4096),)
    assert handle.active and handle.changed is None
    handle.close()
    assert fake.entries == [] and not handle.active and handle.changed is False
    assert handle.ranges == ((BASE, 4096),)
    assert fake.counts.unprotects == 1


def test_default_label_is_dtype_and_shape(fake, array):
    cases = {"<f4": "float32[2,3]", "<i8": "int64[2,3]", "|b1": "bool[2,3]", "<c16": "complex128[2,3]", "|u1": "uint8[2,3]", "<M8[ns]": "M8[2,3]"}
    for typestr, label in cases.items():
        with cuconst.protect(array(np.zeros((2, 3), typestr))) as handle:
            assert handle.label == label
            assert fake.entries[0][2] == label


def test_pair(fake):
    with cuconst.protect((BASE + 3, 5)) as handle:
        assert fake.ranges == [(BASE + 3, 5)]
        assert handle.label == "5 bytes"


@pytest.mark.parametrize("pair", [(1.5, 4), ("a", 4), (BASE, None), (True, 4), (BASE, True)])
def test_pair_of_wrong_types(fake, pair):
    with pytest.raises(TypeError, match="two integers"):
        cuconst.protect(pair)


@pytest.mark.parametrize("pair", [(-1, 4), (BASE, -4), (2**64, 1), (BASE, 2**64)])
def test_pair_out_of_the_address_space(fake, pair):
    with pytest.raises(ValueError, match="0 to 2"):
        cuconst.protect(pair)


@pytest.mark.parametrize("pair", [(0, 4), (BASE, 0), (2**64 - 4, 8)])
def test_null_zero_size_and_wrapping_pairs_are_refused(fake, pair):
    with pytest.raises(cuconst.CuconstError, match="not a range") as caught:
        cuconst.protect(pair)
    assert caught.value.code is cuconst.Result.INVALID_VALUE


def test_pair_beyond_its_allocation_and_outside_any(fake):
    fake.memory(BASE, 100)
    with pytest.raises(cuconst.CuconstError, match="beyond the end") as caught:
        cuconst.protect((BASE, 101))
    assert caught.value.code is cuconst.Result.OUT_OF_RANGE
    with pytest.raises(cuconst.CuconstError, match="not memory of a live CUDA allocation"):
        cuconst.protect((BASE + 100, 1))


@pytest.mark.parametrize("code", LIBRARY_ERRORS)
def test_each_error_of_protect(fake, code):
    fake.fail(code, cuda=201)
    with pytest.raises(cuconst.CuconstError) as caught:
        cuconst.protect((BASE, 64), label="the label")
    assert caught.value.code == code
    assert "the label: " in str(caught.value)
    assert ("CUDA error 201" in str(caught.value)) == (code in (cuconst.Result.CUDA, cuconst.Result.NOT_DEVICE, cuconst.Result.NO_ROOM))
    assert fake.entries == []


def test_an_error_this_module_does_not_know(fake):
    fake.fail(77)
    with pytest.raises(cuconst.CuconstError, match="result 77") as caught:
        cuconst.protect((BASE, 64))
    assert caught.value.code == 77


def test_errors_can_be_pickled(fake):
    for original in (cuconst.CuconstError(cuconst.Result.BUSY, "text"), cuconst.NotActiveError()):
        copy = pickle.loads(pickle.dumps(original))
        assert type(copy) is type(original) and copy.code == original.code and str(copy) == str(original)


def test_disabled_library(fake):
    fake.disable()
    assert not cuconst.active()
    for call in (lambda: cuconst.protect((BASE, 4)), cuconst.check, cuconst.stats):
        with pytest.raises(cuconst.NotActiveError, match="preloaded, but not active"):
            call()


def test_not_preloaded(python):
    result = python(
        "import cuconst\n"
        "assert not cuconst.active() and cuconst.version() is None\n"
        "for call in (lambda: cuconst.protect((1, 1)), cuconst.check, cuconst.stats):\n"
        "    try: call()\n"
        "    except cuconst.NotActiveError as reason: assert 'cuconst run -- python' in str(reason), reason\n"
        "    else: raise SystemExit('no error')\n",
        LD_PRELOAD="",
    )
    assert (result.returncode, result.stderr) == (0, "")


def test_strided_array_is_several_ranges_under_one_handle(fake, array):
    x = array(np.zeros((8, 8), np.float32)[::2, :4])
    with cuconst.protect(x, label="view") as handle:
        assert fake.ranges == [(BASE + 64 * i, 16) for i in range(4)]
        assert {entry[2] for entry in fake.entries} == {"view"}
        assert handle.ranges == tuple(fake.ranges)
    assert fake.ranges == []


def test_failure_in_the_middle_protects_nothing(fake, array):
    fake.fail(cuconst.Result.OUT_OF_MEMORY, after=3)
    with pytest.raises(cuconst.CuconstError):
        cuconst.protect(array(np.zeros((8, 8), np.float32)[:, :4]))
    assert fake.entries == [] and fake.counts.protects == 3


def test_too_many_pieces_names_the_count(fake, array):
    with pytest.raises(ValueError, match=r"4097 separate pieces.*4096.*contiguous copy"):
        cuconst.protect(array(np.zeros((4097, 2), np.int8)[:, :1]))
    with cuconst.protect(array(np.zeros((4096, 2), np.int8)[:, :1])):
        assert len(fake.ranges) == cuconst.MAX_PIECES


def test_empty_array_gives_a_handle_that_does_nothing(fake, array):
    handle = cuconst.protect(array(np.zeros((3, 0, 2), np.float32)))
    assert handle.ranges == () and not handle.active and handle.check() is True and fake.counts.protects == 0
    handle.close()
    assert handle.changed is None


def test_host_arrays_are_refused(fake):
    for host in (np.zeros(4), b"abc", bytearray(3), memoryview(b"abc")):
        with pytest.raises(TypeError, match="only CUDA device memory can be protected"):
            cuconst.protect(host)


def test_other_objects_are_refused(fake):
    for other in (None, 7, "text", [1, 2], (1, 2, 3), object()):
        with pytest.raises(TypeError, match="is no device memory: give one array"):
            cuconst.protect(other)


@pytest.mark.parametrize("wrong", [5, "weights", (4096, 64)])
def test_check_of_no_handle(fake, wrong):
    with pytest.raises(TypeError, match=r"check\(\) takes what protect\(\) gave"):
        cuconst.check(wrong)


BAD_INTERFACES = [
    None,
    {},
    {"shape": (4,), "typestr": "<f4"},
    {"shape": (4,), "typestr": "<f4", "data": None},
    {"shape": (4,), "typestr": "<f4", "data": ("x", False)},
    {"shape": ("4",), "typestr": "<f4", "data": (BASE, False)},
    {"shape": (4,), "typestr": "float", "data": (BASE, False)},
    {"shape": (4,), "typestr": 4, "data": (BASE, False)},
    {"shape": (4,), "typestr": "<f4", "strides": 4, "data": (BASE, False)},
]


@pytest.mark.parametrize("interface", BAD_INTERFACES)
def test_malformed_interfaces(fake, interface):
    thing = type("Thing", (), {"__cuda_array_interface__": interface})()
    with pytest.raises(TypeError):
        cuconst.protect(thing)


@pytest.mark.parametrize("shape,strides", [((4, 4), (4,)), ((-1,), None)])
def test_inconsistent_interfaces(fake, shape, strides):
    interface = {"shape": shape, "typestr": "<f4", "strides": strides, "data": (BASE, False)}
    with pytest.raises(ValueError):
        cuconst.protect(type("Thing", (), {"__cuda_array_interface__": interface})())


def test_an_error_of_the_property_itself_is_the_caller_s(fake):
    class Broken:
        @property
        def __cuda_array_interface__(self):
            raise RuntimeError("spilled")

    with pytest.raises(RuntimeError, match="spilled"):
        cuconst.protect(Broken())


class Torch:
    """As a torch parameter: the interface refuses, the methods answer."""

    class device:
        type = "cuda"

    dtype = "torch.float32"
    shape = (4, 8)

    @property
    def __cuda_array_interface__(self):
        raise RuntimeError("Can't get __cuda_array_interface__ on Variable that requires grad.")

    def data_ptr(self):
        return BASE

    def element_size(self):
        return 4

    def stride(self):
        return (16, 1)


def test_torch_parameter(fake):
    with cuconst.protect(Torch()) as handle:
        assert handle.label == "float32[4,8]"
        assert fake.ranges == [(BASE + 64 * i, 32) for i in range(4)]


def test_torch_on_the_host(fake):
    tensor = Torch()
    tensor.device = type("device", (), {"type": "cpu"})
    with pytest.raises(TypeError, match="lives on cpu"):
        cuconst.protect(tensor)


class CupyStream:
    ptr = 0x55


class TorchStream:
    cuda_stream = 0x56


class NumbaStream:
    class handle:
        value = 0x57


class ProtocolStream:
    def __cuda_stream__(self):
        return (0, 0x58)


@pytest.mark.parametrize("stream,value", [(0, 0), (0x54, 0x54), (CupyStream(), 0x55), (TorchStream(), 0x56), (NumbaStream(), 0x57), (ProtocolStream(), 0x58)])
def test_streams(fake, stream, value):
    with cuconst.protect((BASE, 64), stream=stream):
        assert fake.entries[0][4:] == (2, value)


def test_what_is_no_stream(fake):
    with pytest.raises(TypeError, match="is no stream"):
        cuconst.protect((BASE, 64), stream="0")
    assert fake.entries == []


def test_verify_only(fake):
    with cuconst.protect((BASE, 64), verify_only=True), cuconst.protect((BASE + 64, 64), stream=5, verify_only=True), cuconst.protect((BASE + 128, 64)):
        assert sorted((entry[0] - BASE, entry[4]) for entry in fake.entries) == [(0, 4), (64, 6), (128, 0)]


def test_labels_and_owners(fake):
    with cuconst.protect((BASE, 64), label="größe", owner="*xla*"):
        assert fake.entries[0][2:4] == ("größe", "*xla*")
    with pytest.raises(ValueError, match="NUL"):
        cuconst.protect((BASE, 64), label="a\0b")
    with pytest.raises(TypeError, match="label must be a str"):
        cuconst.protect((BASE, 64), label=5)
    with pytest.raises(TypeError, match="owner must be a str"):
        cuconst.protect((BASE, 64), owner=5)
    assert fake.entries == []


def test_changed(fake, array):
    with cuconst.protect(array(np.zeros((4, 4), np.float32)[:, :2])) as handle:
        fake.change(BASE + 16)
    assert handle.changed is True
    with cuconst.protect((BASE, 4)) as handle:
        pass
    assert handle.changed is False


def test_check(fake):
    with cuconst.protect((BASE, 64)) as one, cuconst.protect((BASE + 64, 64)) as two:
        assert cuconst.check() and cuconst.check(one) and one.changed is False
        fake.change(BASE)
        assert cuconst.check(two) is True
        assert cuconst.check(one) is False and one.changed is True
        fake.change(BASE + 64)
        assert cuconst.check() is False
    with pytest.raises(cuconst.CuconstError, match="has ended"):
        cuconst.check(one)


@pytest.mark.parametrize("code", [cuconst.Result.CUDA, cuconst.Result.BUSY])
def test_errors_of_check(fake, code):
    with cuconst.protect((BASE, 64)) as handle:
        for call in (cuconst.check, handle.check):
            fake.fail(code)
            with pytest.raises(cuconst.CuconstError) as caught:
                call()
            assert caught.value.code is code


def test_memory_freed_under_a_protection(fake):
    handle = cuconst.protect((BASE, 64))
    fake.free(BASE)
    assert not handle.active
    with pytest.raises(cuconst.CuconstError, match="has ended"):
        handle.check()
    handle.close()
    assert handle.changed is None


def test_double_close(fake):
    handle = cuconst.protect((BASE, 64))
    handle.close()
    handle.close()
    handle.release()
    assert fake.counts.unprotects == 1 and fake.counts.releases == 0


def test_close_from_another_thread(fake):
    handle = cuconst.protect((BASE, 64))
    thread = threading.Thread(target=handle.close)
    thread.start()
    thread.join()
    assert not handle.active and fake.counts.unprotects == 1


def test_close_from_many_threads_ends_each_piece_once(fake, array):
    handle = cuconst.protect(array(np.zeros((512, 2), np.int8)[:, :1]))
    threads = [threading.Thread(target=handle.close) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert fake.counts.unprotects == 512 and fake.entries == []


def test_closing_during_a_capture_does_not_say_unchanged(fake):
    handle = cuconst.protect((BASE, 64))
    fake.fail(cuconst.Result.BUSY)
    handle.close()
    assert handle.changed is None and not handle.active and fake.entries == []


def test_another_error_of_close_ends_it(fake):
    handle = cuconst.protect((BASE, 64))
    fake.fail(cuconst.Result.CUDA, cuda=700)
    with pytest.raises(cuconst.CuconstError, match="CUDA error 700"):
        handle.close()
    assert fake.entries == [] and not handle.active and fake.counts.releases == 1


def test_the_body_s_exception_wins(fake):
    with pytest.raises(KeyError):
        with cuconst.protect((BASE, 64)):
            fake.fail(cuconst.Result.CUDA)
            raise KeyError
    assert fake.entries == []


def test_an_error_at_the_end_of_with_releases_and_raises(fake):
    with pytest.raises(cuconst.CuconstError):
        with cuconst.protect((BASE, 64)) as handle:
            fake.fail(cuconst.Result.CUDA)
    assert fake.entries == [] and handle.changed is None


def test_the_handle_keeps_the_object(fake, array):
    import weakref

    x = array(np.zeros(4))
    alive = weakref.ref(x)
    handle = cuconst.protect(x)
    del x
    gc.collect()
    assert alive() is not None
    handle.close()
    gc.collect()
    assert alive() is None


def test_a_dropped_handle_ends_unchecked_with_a_warning(fake):
    with pytest.warns(ResourceWarning, match="dropped while open"):
        handle = cuconst.protect((BASE, 64))
        del handle
        gc.collect()
    assert fake.entries == [] and fake.counts.unprotects == 0 and fake.counts.releases == 1


def test_a_dropped_handle_in_a_cycle(fake):
    with pytest.warns(ResourceWarning):
        ring = [cuconst.protect((BASE, 64))]
        ring.append(ring)
        del ring
        gc.collect()
    assert fake.entries == []


def test_closed_and_empty_handles_go_silently(fake, array):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        handle = cuconst.protect((BASE, 64))
        handle.close()
        del handle
        cuconst.protect(array(np.zeros(0)))
        gc.collect()


def test_follow_ends_with_the_object(fake, array):
    x = array(np.zeros(16))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        cuconst.protect(x, follow=True)
        gc.collect()
        assert fake.ranges == [(BASE, 128)]
        del x
        gc.collect()
    assert fake.entries == [] and fake.counts.releases == 1 and fake.counts.unprotects == 0


def test_follow_does_not_keep_the_object_and_can_be_closed(fake, array):
    import weakref

    x = array(np.zeros(16))
    alive = weakref.ref(x)
    handle = cuconst.protect(x, follow=True)
    handle.close()
    assert handle.changed is False
    x = array(np.zeros(16))
    handle = cuconst.protect(x, follow=True)
    del x
    gc.collect()
    assert alive() is None and not handle.active
    handle.close()
    assert fake.counts.unprotects == 1 and fake.counts.releases == 1


def test_follow_needs_a_weak_reference(fake):
    with pytest.raises(TypeError, match="cannot be weakly referenced"):
        cuconst.protect((BASE, 64), follow=True)
    assert fake.entries == []


def test_follow_in_many_threads(fake, array):
    def work(number):
        for i in range(200):
            cuconst.protect(array(np.zeros(4), base=BASE + number * 4096), label=f"{number}.{i}", follow=True)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    gc.collect()
    assert fake.counts.protects == 1200 and fake.counts.releases == 1200 and fake.entries == []


def test_stats(fake):
    with cuconst.protect((BASE, 64)), cuconst.protect((BASE + 64, 36)):
        stats = cuconst.stats()
    assert (stats.ranges, stats.bytes, stats.calls, stats.launches, stats.suppressed) == (2, 100, 7, 8, 9)


def test_repr(fake):
    handle = cuconst.protect((BASE, 64), label="w")
    assert repr(handle) == "<cuconst.Protection 'w', 64 bytes, open>"
    handle.close()
    assert repr(handle) == "<cuconst.Protection 'w', 64 bytes, closed>"


def test_open_handles_at_exit_are_left_to_the_library(python):
    result = python(
        "import ctypes, cuconst\n"
        "class X:\n"
        "    __cuda_array_interface__ = {'shape': (4,), 'typestr': '<f4', 'data': (4096, True), 'version': 3}\n"
        "handle = cuconst.protect((8192, 16)); x = X(); cuconst.protect(x, follow=True)\n"
        "class Last:\n"
        "    def __del__(self, library=ctypes.CDLL(None), write=__import__('os').write):\n"
        "        counts = (ctypes.c_uint64 * 5)(); library.fake_get_counts(counts); write(1, str(list(counts)).encode())\n"
        "import builtins; builtins.last = Last()\n",
        "-W", "error",
    )
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout == "[2, 0, 0, 0, 2]"


def test_fork_with_open_handles(python):
    result = python(
        "import os, cuconst, ctypes\n"
        "handle = cuconst.protect((4096, 16))\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    ctypes.CDLL(None).fake_disable(1)\n"
        "    try: handle.close()\n"
        "    except cuconst.NotActiveError: os._exit(5)\n"
        "    os._exit(6)\n"
        "assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 5\n"
        "assert handle.active\n"
        "handle.close()\n"
    )
    assert (result.returncode, result.stderr) == (0, "")
