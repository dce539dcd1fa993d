"""A PTX kernel under construction: pools of values by class, instructions, and the results that it stores.

Thread t reads 64 bytes (sixteen words: four of bits, four f32, two f64, two pairs of f16, two of bf16) at in + 64 * t and stores its results,
packed into words of 64 bits, at out + 8 * slots * t.
"""
import struct

from operations import WIDTH

FLOAT_IMMEDIATES = (0.0, -0.0, 1.0, -1.0, 0.5, 3.0, 1e-40, 65504.0, 1e30, float("inf"), float("-inf"), float("nan"))
EDGES = (0, 1, 2, 31, 32, 33, 63, 64, 0x7f, 0x80, 0xff, 0x7fff, 0x8000, 0xffff, 0x7fffffff, 0x80000000, 0xffffffff)
COUNTS = (0, 1, 5, 8, 15, 16, 17, 31, 32, 33, 40, 63, 64, 65, 127, 255)


class Kernel:
    def __init__(self, name, random, block=64, grid=2):
        self.name, self.random, self.block, self.grid = name, random, block, grid
        self.lines, self.results, self.outside, self.inside = [], [], [], []
        self.count = 0
        self.pools = {letter: [] for letter in "rdhfgewxyp"}
        self.declared = []
        self.slot_class = None  # of bounded kernels
        self.read_inputs()

    def emit(self, text):
        self.lines.append("\t" + text)

    def label(self):
        self.count += 1
        return f"L{self.count}"

    def new(self, letter):
        letter = {"k": "r", "n": "r", "N": "d", "B": "r"}.get(letter, letter)
        self.count += 1
        register = f"%{letter}{self.count}"
        self.declared.append((letter, register))
        return register

    def keep(self, letter, register):
        self.pools[letter].append(register)
        return register

    def make(self, letter, text):
        """A new value: {} in the text is its register."""
        register = self.new(letter)
        self.emit(text.replace("{}", register) + ";")
        return register

    def read_inputs(self):
        self.emit("ld.param.b64 %in, [in];")
        self.emit("ld.param.b64 %out, [out];")
        self.emit("mov.u32 %thread, %tid.x;")
        self.emit("mov.u32 %place, %ctaid.x;")
        self.emit("mov.u32 %size, %ntid.x;")
        self.emit("mad.lo.u32 %index, %place, %size, %thread;")
        self.emit("cvta.to.global.u64 %in, %in;")
        self.emit("cvta.to.global.u64 %out, %out;")
        self.emit("mad.wide.u32 %in, %index, 64, %in;")
        for offset, letters in ((0, "rrrr"), (16, "ffff"), (48, "xxyy")):
            made = [self.keep(letter, self.new(letter)) for letter in letters]
            self.emit(f"ld.global.v4.b32 {{{', '.join(made)}}}, [%in+{offset}];")
        made = [self.keep("g", self.new("g")) for _ in range(2)]
        self.emit(f"ld.global.v2.b64 {{{', '.join(made)}}}, [%in+32];")
        r = self.pools["r"]
        self.keep("d", self.make("d", f"mov.b64 {{}}, {{{r[0]}, {r[1]}}}"))
        self.keep("d", self.make("d", f"mov.b64 {{}}, {{{r[2]}, {r[3]}}}"))
        self.keep("d", self.make("d", f"cvt.s64.s32 {{}}, {r[1]}"))
        for letter, source in (("h", r[0]), ("h", r[2]), ("e", self.pools["x"][0]), ("w", self.pools["y"][0]), ("w", self.pools["y"][1])):
            made = [self.keep(letter, self.new(letter)) for _ in range(2)]
            self.emit(f"mov.b32 {{{', '.join(made)}}}, {source};")
        self.keep("p", self.make("p", f"setp.lt.s32 {{}}, {r[0]}, {r[1]}"))
        self.keep("p", self.make("p", f"setp.lt.f32 {{}}, {self.pools['f'][0]}, {self.pools['f'][1]}"))

    def pick(self, letter):
        pool = self.pools[letter]
        # Mostly late values, so that chains form.
        return self.random.choice(pool[-6:] if self.random.random() < 0.6 else pool)

    def immediate(self, letter):
        random = self.random
        if letter == "f":
            return "0f%08X" % struct.unpack("<I", struct.pack("<f", random.choice(FLOAT_IMMEDIATES)))
        if letter == "g":
            return "0d%016X" % struct.unpack("<Q", struct.pack("<d", random.choice(FLOAT_IMMEDIATES)))
        value = random.choice(EDGES) if random.random() < 0.6 else random.getrandbits(WIDTH[letter])
        return str(value & (0xffff if letter == "h" else 0xffffffff if letter == "r" else 0xffffffffffffffff))

    def source(self, letter, may_be_immediate):
        random = self.random
        if letter == "8":
            return str(random.getrandbits(8))
        if letter == "O":
            return str(random.randint(-5, 5))
        if letter == "R":
            return self.pick("r")
        if letter == "B":
            return self.make("r", f"and.b32 {{}}, {self.pick('r')}, 31")
        if letter == "n":
            return self.make("r", f"or.b32 {{}}, {self.pick('r')}, {random.choice((1, 2, 0x40, 0x10000))}")
        if letter == "N":
            return self.make("d", f"or.b64 {{}}, {self.pick('d')}, {random.choice((1, 2, 0x4000, 0x100000000))}")
        if letter == "k":
            chance = random.random()
            if chance < 0.4:
                return str(random.choice(COUNTS))
            return self.make("r", f"and.b32 {{}}, {self.pick('r')}, {random.choice((31, 63, 127))}") if chance < 0.8 else self.pick("r")
        if may_be_immediate and letter in "rdhfg" and random.random() < 0.12:
            return self.immediate(letter)
        return self.pick(letter)

    def operation(self, name, result, sources, store=True, guard=None):
        """One instruction of the tables of operations.py."""
        if name == "CARRY":
            self.carry_chain()
            return
        values = [self.source(letter, n > 0) for n, letter in enumerate(sources)]
        made = [self.new("p") for _ in result] if result == "pq" else [self.new(result)]
        if guard:
            self.emit(f"mov.b{WIDTH[result]} {made[0]}, {self.pick(result)};")
        self.emit(f"{guard or ''}{name} {'|'.join(made)}, {', '.join(values)};")
        for register in made:
            letter = "p" if result == "pq" else result
            self.keep(letter, register)
            if store:
                self.store(letter, register)

    def carry_chain(self):
        random, letter = self.random, self.random.choice("rrd")
        bits = WIDTH[letter]
        first, middle, last = random.choice((("add.cc", "addc.cc", "addc"), ("sub.cc", "subc.cc", "subc"), ("mad.lo.cc", "madc.hi.cc", "madc.lo")))
        for name in (first, middle, random.choice((middle, last)), last):
            count = 3 if name.startswith("mad") else 2
            kind = random.choice("us") if name.startswith("mad") else "u"
            made = self.make(letter, f"{name}.{kind}{bits} {{}}, {', '.join(self.pick(letter) for _ in range(count))}")
            self.store(letter, made)
            self.keep(letter, made)

    def store(self, letter, register):
        self.results.append((letter, register))

    def packed(self):
        """The results as 64-bit registers; the code that packs them goes at the end."""
        words, by_width = [], {16: [], 32: [], 64: []}
        for letter, register in self.results:
            if letter == "p":
                register = self.make("r", f"selp.b32 {{}}, 1, 0, {register}")
            by_width[WIDTH.get(letter, 32)].append(register)
        words += by_width[64]
        for width, count, zero in ((32, 2, "r"), (16, 4, "h")):
            group = by_width[width]
            if len(group) % count:
                filler = self.make(zero, f"mov.b{width} {{}}, 0")
                group += [filler] * (count - len(group) % count)
            for at in range(0, len(group), count):
                words.append(self.make("d", f"mov.b64 {{}}, {{{', '.join(group[at:at + count])}}}"))
        return words

    def text(self):
        words = self.packed()
        self.slots = len(words)
        self.emit(f"mad.wide.u32 %out, %index, {8 * len(words)}, %out;")
        for n, word in enumerate(words):
            self.emit(f"st.global.b64 [%out+{8 * n}], {word};")
        self.emit("ret;")
        registers = ["\t.reg .b64 %in, %out;", "\t.reg .b32 %thread, %place, %size, %index;"]
        for kind, letters in ((".b64", "dg"), (".b32", "rfxy"), (".b16", "hew"), (".pred", "p")):
            names = [register for letter, register in self.declared if letter in letters]
            if names:
                registers.append(f"\t.reg {kind} {', '.join(names)};")
        head = [".version 8.3", ".target sm_90", ".address_size 64", ""]
        entry = [f".visible .entry {self.name}(.param .b64 in, .param .b64 out)", f".maxntid {self.block}, 1, 1", "{"]
        return "\n".join(head + self.outside + entry + registers + self.inside + self.lines + ["}", ""])
