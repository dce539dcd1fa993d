"""Takes the hooks out of a running program and puts them back, so that "with" and "without" can be timed in turns in one process.

Libraries keep the addresses of the driver's functions that they were given: in tables (cudart, CuPy) and in their global offset tables. Each such word
that holds the address of one of our hooks is found and set to the address of the driver's (or the runtime's) own function, and back. What stays is what
a program without the shim would run: the same instructions, the same memory, the same device.
"""
import ctypes
import os
import re
import struct

KEY = 0x5A5A5A5A5A5A5A5A  # addresses are kept so changed, lest our own tables be found and edited
LARGEST = 4 << 30  # a mapping beyond this is a reservation
DOORS = ("dlsym", "dlvsym", "cuGetProcAddress", "cuGetProcAddress_v2")


def mappings():
    """(start, end, permissions, path) of this process, one for each line of /proc/self/maps."""
    with open("/proc/self/maps") as lines:
        for line in lines:
            found = re.match(r"([0-9a-f]+)-([0-9a-f]+) (\S+) \S+ \S+ \S+ *(.*)", line)
            yield int(found[1], 16), int(found[2], 16), found[3], found[4]


def exported(path):
    """Functions a shared library defines: name to offset from its base."""
    with open(path, "rb") as file:
        image = file.read()
    (shoff,), (shentsize, shnum) = struct.unpack_from("<Q", image, 0x28), struct.unpack_from("<HH", image, 0x3A)
    sections = [struct.unpack_from("<IIQQQQIIQQ", image, shoff + i * shentsize) for i in range(shnum)]
    names = {}
    for section in sections:
        if section[1] != 11:  # SHT_DYNSYM
            continue
        strings = sections[section[6]][4]
        for at in range(section[4], section[4] + section[5], 24):
            name, info, _, index, value, _ = struct.unpack_from("<IBBHQQ", image, at)
            if index and info & 15 == 2:  # defined, STT_FUNC
                names[image[strings + name : image.index(b"\0", strings + name)].decode()] = value
    return names


def read_only_after_relocation(path, base):
    """[start, end) of the part that the loader makes read-only: global offset tables."""
    with open(path, "rb") as file:
        head = file.read(4096)
    phoff, phentsize, phnum = struct.unpack_from("<Q", head, 0x20)[0], *struct.unpack_from("<HH", head, 0x36)
    for i in range(phnum):
        kind, _, _, address, _, _, size, _ = struct.unpack_from("<IIQQQQQQ", head, phoff + i * phentsize)
        if kind == 0x6474E552:  # PT_GNU_RELRO
            return base + address, base + address + size
    return None


class Hooks:
    """The words of this process that name a hook."""

    def __init__(self):
        import numpy

        self.memory = os.open("/proc/self/mem", os.O_RDWR)
        bases, regions = {}, []
        for start, end, permissions, path in mappings():
            if path.startswith("/") and ".so" in path:
                bases.setdefault(path, start)
        shim = next(path for path in bases if os.path.basename(path) == "libcuconst.so")
        ours = {name: bases[shim] + offset for name, offset in exported(shim).items() if name.startswith("cu") and name not in DOORS}
        real = {}
        for path, base in bases.items():
            if re.match(r"lib(cuda|cudart|cufft)\b", os.path.basename(path)):
                for name, offset in exported(path).items():
                    if name in ours and real.setdefault(name, base + offset) != base + offset:
                        raise SystemExit(f"two libraries define {name}: which one is beneath the hook is not known")
        self.ours = {ours[name] ^ KEY: real[name] ^ KEY for name in ours if name in real}
        guarded = [span for path, base in bases.items() if path != shim and (span := read_only_after_relocation(path, base))]
        last = ""
        for start, end, permissions, path in mappings():
            last = path or last  # a library's zero-initialised data follow it without a name
            if not permissions.endswith("p") or permissions[0] != "r" or last == shim or path.startswith("[") and path != "[heap]":
                continue
            if permissions[1] == "w" and end - start <= LARGEST:
                regions.append((start, end))
            elif any(start < high and end > low for low, high in guarded):
                regions.append((start, end))
        wanted = numpy.array([key ^ KEY for key in self.ours], dtype=numpy.uint64)
        found = []
        for start, end in regions:
            for at in range(start, end, 1 << 24):
                try:
                    words = numpy.frombuffer(os.pread(self.memory, min(end - at, 1 << 24), at), dtype=numpy.uint64)
                except OSError:
                    continue
                found += [at + 8 * int(i) for i in numpy.flatnonzero(numpy.isin(words, wanted))]
        del wanted
        words = None
        self.places = [(at, word ^ KEY) for at in found if (word := self.word(at)) and word ^ KEY in self.ours]
        self.active = True

    def word(self, at):
        return struct.unpack("<Q", os.pread(self.memory, 8, at))[0]

    def set(self, active):
        """Puts the hooks in (True) or takes them out. Words that changed meanwhile are left alone."""
        for at, hook in self.places:
            old, new = (self.ours[hook], hook) if active else (hook, self.ours[hook])
            if self.word(at) == old ^ KEY:
                os.pwrite(self.memory, struct.pack("<Q", new ^ KEY), at)
        self.active = active


class Stats(ctypes.Structure):
    """The first members of struct cuconst_stats."""

    _fields_ = [("size", ctypes.c_size_t)] + [(name, ctypes.c_uint64) for name in ("ranges", "bytes", "calls", "launches", "graph_launches")]


def calls_seen():
    """Calls and launches that the hooks counted so far."""
    stats = Stats(size=ctypes.sizeof(Stats))
    if ctypes.CDLL(None).cuconst_stats(ctypes.byref(stats)):
        raise SystemExit("cuconst_stats failed")
    return stats.calls + stats.launches + stats.graph_launches


def measure(step, synchronise, seconds, block=0.008):
    """
    Pairs of blocks of steps, with and without the hooks, for about so many seconds: the ratios with / without, of each pair the order turned round.
    Before each block comes a step that is not timed: hooks are put in and taken out by thousands of system calls, and a step is to find the caches as the step before it
    left them. Prints one JSON line.
    """
    import json
    import statistics
    import time

    hooks = Hooks()
    clock = time.perf_counter

    def timed(active, steps):
        hooks.set(active)
        step()
        synchronise()
        began = clock()
        for _ in range(steps):
            step()
        synchronise()
        return (clock() - began) / steps

    timed(True, 20)
    steps = max(1, round(block / timed(True, 20)))
    ratios, alone, seen = [], {True: [], False: []}, {True: 0, False: 0}
    end = clock() + seconds
    while clock() < end or len(ratios) % 2:
        took = {}
        for active in (True, False) if len(ratios) % 2 == 0 else (False, True):
            before = calls_seen()
            took[active] = timed(active, steps)
            seen[active] += calls_seen() - before
            alone[active].append(took[active])
        ratios.append(took[True] / took[False])
    hooks.set(True)
    ratios.sort()
    count = len(ratios)
    half = round(0.98 * count**0.5)  # order statistics that enclose the median with 95 %
    print("alternate", json.dumps({
        "pairs": count, "steps": steps, "words": len(hooks.places),
        "with_us": 1e6 * statistics.median(alone[True]), "without_us": 1e6 * statistics.median(alone[False]),
        "median": statistics.median(ratios), "low": ratios[max(0, count // 2 - half)], "high": ratios[min(count - 1, count // 2 + half)],
        "seen_with": seen[True] / (count * steps), "seen_without": seen[False] / (count * steps)}))
