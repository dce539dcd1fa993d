"""Launches from many Python lines, scene by scene: lines.py SCENE. Line n of "launches" launches with the n-th word of protected memory, so that a record's address tells which line it must name."""
import ctypes
import sys
import threading

LINES = 2500
WORDS = LINES + 1
PTX = b"""
.version 7.0
.target sm_75
.address_size 64
.visible .entry two(.param .u64 a, .param .u64 b, .param .u32 store)
{
    .reg .pred %p<2>;
    .reg .b32 %r<4>;
    .reg .b64 %rd<3>;
    ld.param.u64 %rd1, [a];
    ld.param.u64 %rd2, [b];
    ld.param.u32 %r1, [store];
    mov.u32 %r2, %tid.z;
    or.b32 %r3, %r1, %r2;
    setp.eq.s32 %p1, %r3, 0;
    @%p1 bra done;
    st.global.u32 [%rd1], %r3;
    st.global.u32 [%rd2], %r3;
done:
    ret;
}
.visible .entry one(.param .u64 a, .param .u32 store)
{
    .reg .pred %p<2>;
    .reg .b32 %r<4>;
    .reg .b64 %rd<2>;
    ld.param.u64 %rd1, [a];
    ld.param.u32 %r1, [store];
    mov.u32 %r2, %tid.z;
    or.b32 %r3, %r1, %r2;
    setp.eq.s32 %p1, %r3, 0;
    @%p1 bra done;
    st.global.u32 [%rd1], %r3;
done:
    ret;
}
"""
cuda = ctypes.CDLL("libcuda.so.1")


def check(result):
    assert result == 0, result


def made(call, *arguments, kind=ctypes.c_void_p):
    value = kind()
    check(call(ctypes.byref(value), *arguments))
    return value


def listed(*values):
    """Of a launch; what it points to lives as long as it."""
    pointers = (ctypes.c_void_p * len(values))(*(ctypes.addressof(value) for value in values))
    pointers.values = values
    return pointers


def stream():
    return made(cuda.cuStreamCreate, 0)


check(cuda.cuInit(0))
check(cuda.cuCtxSetCurrent(made(cuda.cuDevicePrimaryCtxRetain, 0)))
module = made(cuda.cuModuleLoadData, PTX)
one, two = (made(cuda.cuModuleGetFunction, module, name) for name in (b"one", b"two"))
words = made(cuda.cuMemAlloc_v2, ctypes.c_size_t(WORDS * 4), kind=ctypes.c_uint64)
handle = ctypes.c_uint64()
check(ctypes.CDLL(None).cuconst_protect(words, ctypes.c_uint64(WORDS * 4), b"w", 0, None, ctypes.byref(handle)))
print(words.value, flush=True)


def word(line):
    return ctypes.c_uint64(words.value + 4 * line)


READ = [listed(word(line), ctypes.c_uint(0)) for line in range(WORDS)]
STORE = [listed(word(line), ctypes.c_uint(1)) for line in range(WORDS)]
names = {"launch": cuda.cuLaunchKernel}
exec(compile("".join(f"def at{line}(f, params, stream): launch(f, 1, 1, 1, 1, 1, 1, 0, stream, params, None)\n" for line in range(1, WORDS)), "launches", "exec"), names)
AT = [None] + [names[f"at{line}"] for line in range(1, WORDS)]


def read(lines, on, every=50):
    """Each ends before the last one's end is asked for."""
    for count, line in enumerate(lines, 1):
        AT[line](one, READ[line], on)
        if count % every == 0:
            check(cuda.cuStreamSynchronize(on))
    check(cuda.cuStreamSynchronize(on))


def in_flight(lines, on):
    for line in lines:
        AT[line](one, READ[line], on)


def store(line, on):
    AT[line](one, STORE[line], on)
    cuda.cuStreamSynchronize(on)
    sys.exit(7)  # not reached in strict


def many(on):
    for _ in range(4):
        read(range(1, LINES), on)
    in_flight(range(1, 51), on)
    store(LINES, on)


def old(on):
    """A place that was met long ago, and whose next use outlives its first. All are launched from one line of this."""
    for lines, known_to_end in ([1] * 5, True), (range(2, 2001), True), ([1, *range(2001, 2061)], False):
        in_flight(lines, on)
        if known_to_end:
            check(cuda.cuStreamSynchronize(on))
    store(LINES, on)


def turns(on):
    """The same launch from two places in turns: the address says nothing."""
    for _ in range(500):
        AT[1](one, READ[1], on)
        AT[2](one, READ[1], on)
        check(cuda.cuStreamSynchronize(on))
    for line in (1, 2, 1):
        AT[line](one, READ[1], on)
    AT[2](one, STORE[1], on)
    cuda.cuStreamSynchronize(on)
    sys.exit(7)


def slots(on):
    """Two words of one launch."""
    for flag in [0] * 10 + [1]:
        AT[20](two, listed(word(20), word(21), ctypes.c_uint(flag)), on)
        cuda.cuStreamSynchronize(on)
    sys.exit(7)


def threads(on):
    """Each has its own lines; one stores in the end, and any may be told."""
    def run(first, on, last):
        check(cuda.cuCtxSetCurrent(context))
        for _ in range(4):
            read(range(first, first + 500), on, 20)
        if last:
            store(first + 500, on)

    context = made(cuda.cuCtxGetCurrent)
    running = [threading.Thread(target=run, args=(1 + 501 * number, stream(), number == 3)) for number in range(4)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    sys.exit(7)


globals()[sys.argv[1]](stream())
