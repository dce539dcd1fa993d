"""The kernels with a shape of their own: memory, control flow, warps, atomics, calls, variables, bounded instructions."""
import struct

from operations import APPROXIMATE, BITS, FLOAT32, INTEGER32, INTEGER64, SELECT, WIDTH

CHEAP = [op for op in INTEGER32 if not op[0].startswith(("div", "rem"))] + [op for op in BITS if op[1] == "r"]
MIXED = CHEAP + INTEGER64 + SELECT + [op for op in FLOAT32 if "rn" in op[0]]


def operations(kernel, table, count, store=False):
    for _ in range(count):
        kernel.operation(*kernel.random.choice(table), store=store)


def store_last(kernel, letters="rrrr"):
    for letter in letters:
        kernel.store(letter, kernel.pools[letter].pop())


def mixed(kernel):
    for _ in range(16):
        name, result, sources = kernel.random.choice(MIXED)
        guard = None
        if result in "rdfg" and kernel.random.random() < 0.25:
            guard = f"@{kernel.random.choice(('', '!'))}{kernel.pick('p')} "
        kernel.operation(name, result, sources, guard=guard)


def memory(kernel):
    """Loads and stores of all widths, in the thread's own bytes of local or shared memory, at places that the data choose."""
    random = kernel.random
    space = random.choice(("local", "shared"))
    room = 64
    if space == "local":
        kernel.inside.append(f"\t.local .align 16 .b8 room[{room}];")
        base = kernel.make("d", "mov.u64 {}, room")
    else:
        kernel.inside.append(f"\t.shared .align 16 .b8 room[{room * kernel.block}];")
        base = kernel.make("d", "mov.u64 {}, room")
        base = kernel.make("d", f"mad.wide.u32 {{}}, %thread, {room}, {base}")
    prefix = f".{space}"
    if random.random() < 0.3:
        base, prefix = kernel.make("d", f"cvta.{space}.u64 {{}}, {base}"), ""
    for at in range(0, room, 16):
        kernel.emit(f"st{prefix}.v4.b32 [{base}+{at}], {{{', '.join(kernel.pick('r') for _ in range(4))}}};")
    for _ in range(5):
        letter, kind = random.choice((("r", "b32"), ("h", "b16"), ("d", "b64"), ("h", "b8"), ("r", "b8"), ("d", "b16"), ("d", "s8")))
        kind = kind if kind[0] == "s" else random.choice("us") + kind[1:]
        size = int(kind[1:]) // 8
        vector = random.choice((1, 1, 2, 4)) if size < 8 else random.choice((1, 2))
        whole = size * vector
        place = kernel.make("r", f"and.b32 {{}}, {kernel.pick('r')}, {room - whole}")
        place = kernel.make("r", f"and.b32 {{}}, {place}, {-whole & 0xffffffff}")
        other = kernel.make("r", f"xor.b32 {{}}, {place}, {whole}")
        address, other = (kernel.make("d", f"cvt.u64.u32 {{}}, {at}") for at in (place, other))
        address, other = (kernel.make("d", f"add.u64 {{}}, {at}, {base}") for at in (address, other))
        mode = "" if vector == 1 else f".v{vector}"
        from_ = [kernel.pick(letter) for _ in range(vector)]
        kernel.emit(f"st{prefix}{mode}.{kind} [{address}], " + (from_[0] if vector == 1 else f"{{{', '.join(from_)}}}") + ";")
        made = [kernel.new(letter) for _ in range(vector)]
        kernel.emit(f"ld{prefix}{mode}.{kind} " + (made[0] if vector == 1 else f"{{{', '.join(made)}}}") + f", [{other}];")
        for register in made:
            kernel.keep(letter, register)
            kernel.store(letter, register)
    for at in range(0, room, 16):
        made = [kernel.new("d") for _ in range(2)]
        kernel.emit(f"ld{prefix}.v2.b64 {{{', '.join(made)}}}, [{base}+{at}];")
        for register in made:
            kernel.store("d", register)


def loads(kernel):
    """Loads of the input in every width, with sign and to wider registers."""
    for _ in range(10):
        letter = kernel.random.choice("rdh")
        size = kernel.random.choice([bits for bits in (8, 16, 32, 64) if bits <= WIDTH[letter]])
        vector = kernel.random.choice([n for n in (1, 2, 4) if n * size <= 128])
        at = kernel.random.randrange(0, 64, size * vector // 8)
        way = kernel.random.choice(("", ".nc", ".ca", ".volatile", ".cs", ".relaxed.gpu"))
        made = [kernel.new(letter) for _ in range(vector)]
        mode = "" if vector == 1 else f".v{vector}"
        if way in (".volatile", ".relaxed.gpu"):
            text = f"ld{way}.global{mode}"
        else:
            text = f"ld.global{way}{mode}"
        kernel.emit(f"{text}.{kernel.random.choice('us')}{size} " + (made[0] if vector == 1 else f"{{{', '.join(made)}}}") + f", [%in+{at}];")
        for register in made:
            kernel.keep(letter, register)
            kernel.store(letter, register)


def shared(kernel):
    """Rounds of: everyone stores, barrier, everyone reads another's, barrier."""
    random = kernel.random
    kernel.inside.append(f"\t.shared .align 8 .b8 room[{8 * kernel.block}];")
    base = kernel.make("r", "mov.u32 {}, room")
    mine = kernel.make("r", f"mad.lo.u32 {{}}, %thread, 8, {base}")
    for _ in range(random.randint(2, 4)):
        operations(kernel, CHEAP, 2)
        kernel.emit(f"st.shared.b64 [{mine}], {kernel.pick('d')};")
        kernel.emit(f"st.shared.b32 [{mine}], {kernel.pick('r')};")
        kernel.emit(random.choice(("bar.sync 0;", "barrier.sync 0;", f"bar.sync 1, {kernel.block};", "barrier.cta.sync.aligned 2;")))
        other = kernel.make("r", f"mad.lo.u32 {{}}, %thread, {random.choice((1, 3, 5, 63))}, {random.randrange(64)}")
        other = kernel.make("r", f"and.b32 {{}}, {other}, {kernel.block - 1}")
        other = kernel.make("r", f"mad.lo.u32 {{}}, {other}, 8, {base}")
        kernel.store("d", kernel.keep("d", kernel.make("d", f"ld.shared.b64 {{}}, [{other}]")))
        way = random.randrange(4)
        if way == 0:
            made = kernel.make("r", f"barrier.red.popc.u32 {{}}, 0, {kernel.pick('p')}")
            kernel.store("r", kernel.keep("r", made))
        elif way == 1:
            made = kernel.make("p", f"barrier.red.{random.choice(('and', 'or'))}.pred {{}}, 0, {random.choice(('', '!'))}{kernel.pick('p')}")
            kernel.store("p", kernel.keep("p", made))
        else:
            kernel.emit("bar.sync 0;")


def reduction(kernel):
    """A tree in shared memory, with a loop and a barrier in it."""
    op, letter = kernel.random.choice((("add.u32", "r"), ("xor.b32", "r"), ("max.s32", "r"), ("add.rn.f32", "f"), ("mul.rn.f32", "f"), ("min.f32", "f"),
                                       ("add.u64", "d"), ("add.rn.f64", "g")))
    size = WIDTH[letter] // 8
    kernel.inside.append(f"\t.shared .align 8 .b8 room[{size * kernel.block}];")
    base = kernel.make("r", "mov.u32 {}, room")
    mine = kernel.make("r", f"mad.lo.u32 {{}}, %thread, {size}, {base}")
    kernel.emit(f"st.shared.b{8 * size} [{mine}], {kernel.pick(letter)};")
    step, done = kernel.make("r", f"mov.u32 {{}}, {kernel.block // 2}"), kernel.new("p")
    head, skip = kernel.label(), kernel.label()
    kernel.lines.append(f"{head}:")
    kernel.emit("bar.sync 0;")
    inside = kernel.make("p", f"setp.ge.u32 {{}}, %thread, {step}")
    kernel.emit(f"@{inside} bra {skip};")
    other = kernel.make("r", f"mad.lo.u32 {{}}, {step}, {size}, {mine}")
    left = kernel.make(letter, f"ld.shared.b{8 * size} {{}}, [{mine}]")
    right = kernel.make(letter, f"ld.shared.b{8 * size} {{}}, [{other}]")
    kernel.emit(f"st.shared.b{8 * size} [{mine}], {kernel.make(letter, f'{op} {{}}, {left}, {right}')};")
    kernel.lines.append(f"{skip}:")
    kernel.emit(f"shr.u32 {step}, {step}, 1;")
    kernel.emit(f"setp.ne.u32 {done}, {step}, 0;")
    kernel.emit(f"@{done} bra {head};")
    kernel.emit("bar.sync 0;")
    kernel.store(letter, kernel.make(letter, f"ld.shared.b{8 * size} {{}}, [{base}]"))
    kernel.store(letter, kernel.make(letter, f"ld.shared.b{8 * size} {{}}, [{mine}]"))


class Flow:
    """Nested branches, loops and tables over variables that live through them all."""

    def __init__(self, kernel):
        self.kernel, self.random = kernel, kernel.random
        self.variables = [kernel.make("r", f"mov.b32 {{}}, {register}") for register in kernel.pools["r"][:4]]

    def change(self):
        random, names = self.random, self.variables
        op = random.choice(("add.u32", "sub.u32", "mul.lo.u32", "xor.b32", "or.b32", "min.s32", "max.u32", "shf.l.wrap.b32", "mad.lo.u32"))
        if op in ("shf.l.wrap.b32", "mad.lo.u32"):
            sources = f"{random.choice(names)}, {random.choice(names)}, {random.choice(names + ['7', '13'])}"
        else:
            sources = f"{random.choice(names)}, {random.choice(names + [str(random.getrandbits(16))])}"
        guard = f"@{random.choice(('', '!'))}{self.condition()} " if random.random() < 0.3 else ""
        self.kernel.emit(f"{guard}{op} {random.choice(names)}, {sources};")

    def condition(self):
        word = self.random.choice(("lt.s32", "gt.u32", "ne.s32", "ge.s32"))
        if self.random.random() < 0.5:
            bits = self.kernel.make("r", f"and.b32 {{}}, {self.random.choice(self.variables)}, {1 << self.random.randrange(8)}")
            return self.kernel.make("p", f"setp.ne.u32 {{}}, {bits}, 0")
        return self.kernel.make("p", f"setp.{word} {{}}, {self.random.choice(self.variables)}, {self.random.choice(self.variables)}")

    def block(self, depth):
        for _ in range(self.random.randint(1, 3)):
            way = self.random.randrange(7) if depth else 0
            (self.change, self.change, self.choice, self.choice, self.loop, self.table, self.loop)[way](*((depth,) if way > 1 else ()))

    def choice(self, depth):
        kernel = self.kernel
        other, end = kernel.label(), kernel.label()
        kernel.emit(f"@{self.random.choice(('', '!'))}{self.condition()} bra {other};")
        self.block(depth - 1)
        kernel.emit(f"bra{self.random.choice(('', ''))} {end};")
        kernel.lines.append(f"{other}:")
        self.block(depth - 1)
        kernel.lines.append(f"{end}:")

    def loop(self, depth):
        kernel = self.kernel
        head, out = kernel.label(), kernel.label()
        turns = kernel.make("r", f"and.b32 {{}}, {self.random.choice(self.variables)}, 7")
        kernel.lines.append(f"{head}:")
        kernel.emit(f"@{kernel.make('p', f'setp.eq.u32 {{}}, {turns}, 0')} bra {out};")
        kernel.emit(f"sub.u32 {turns}, {turns}, 1;")
        self.block(depth - 1)
        if self.random.random() < 0.4:
            kernel.emit(f"@{self.condition()} bra {out};")
            self.change()
        kernel.emit(f"bra {head};")
        kernel.lines.append(f"{out}:")

    def table(self, depth):
        kernel = self.kernel
        names = [kernel.label() for _ in range(4)]
        table, end = kernel.label(), kernel.label()
        which = kernel.make("r", f"and.b32 {{}}, {self.random.choice(self.variables)}, 3")
        kernel.lines.append(f"{table}: .branchtargets {', '.join(names)};")
        kernel.emit(f"brx.idx {which}, {table};")
        for name in names:
            kernel.lines.append(f"{name}:")
            self.block(depth - 1)
            kernel.emit(f"bra {end};")
        kernel.lines.append(f"{end}:")


def control(kernel):
    flow = Flow(kernel)
    for _ in range(3):
        flow.block(3)
    for register in flow.variables:
        kernel.store("r", register)


def warp_step(kernel, mask):
    """One instruction among the lanes of mask, all of them here."""
    random, r, p = kernel.random, kernel.pick("r"), kernel.pick("p")
    full = mask == "0xffffffff"
    way = random.randrange(8)
    if way < 3 and full:
        mode = random.choice(("up", "down", "bfly", "idx"))
        width = random.choice((32, 32, 16, 8, 4))
        limit = (32 - width) << 8 | (0 if mode == "up" else 31)
        offset = random.choice((str(random.randrange(32)), kernel.make("r", f"and.b32 {{}}, {r}, 31"), r))
        made, inside = kernel.new("r"), kernel.new("p")
        kernel.emit(f"shfl.sync.{mode}.b32 {made}|{inside}, {kernel.pick('r')}, {offset}, {limit}, {mask};")
        kernel.store("r", kernel.keep("r", made))
        kernel.store("p", kernel.keep("p", inside))
    elif way < 3:
        first = kernel.make("r", f"brev.b32 {{}}, {mask}")
        first = kernel.make("r", f"clz.b32 {{}}, {first}")
        kernel.store("r", kernel.keep("r", kernel.make("r", f"shfl.sync.idx.b32 {{}}, {r}, {first}, 31, {mask}")))
    elif way == 3:
        mode = random.choice(("all", "any", "uni"))
        kernel.store("p", kernel.keep("p", kernel.make("p", f"vote.sync.{mode}.pred {{}}, {random.choice(('', '!'))}{p}, {mask}")))
    elif way == 4:
        kernel.store("r", kernel.keep("r", kernel.make("r", f"vote.sync.ballot.b32 {{}}, {p}, {mask}")))
    elif way == 5:
        small = kernel.make("r", f"and.b32 {{}}, {r}, {random.choice((0, 1, 3, 7))}")
        if random.random() < 0.4:
            wide = kernel.make("d", f"cvt.u64.u32 {{}}, {small}")
            kernel.store("r", kernel.keep("r", kernel.make("r", f"match.any.sync.b64 {{}}, {wide}, {mask}")))
        elif random.random() < 0.5:
            kernel.store("r", kernel.keep("r", kernel.make("r", f"match.any.sync.b32 {{}}, {small}, {mask}")))
        else:
            made, same = kernel.new("r"), kernel.new("p")
            kernel.emit(f"match.all.sync.b32 {made}|{same}, {small}, {mask};")
            kernel.store("r", kernel.keep("r", made))
            kernel.store("p", kernel.keep("p", same))
    else:
        op = random.choice(("add.u32", "add.s32", "min.u32", "min.s32", "max.u32", "max.s32", "and.b32", "or.b32", "xor.b32"))
        kernel.store("r", kernel.keep("r", kernel.make("r", f"redux.sync.{op} {{}}, {r}, {mask}")))


def warps(kernel):
    for _ in range(kernel.random.randint(5, 8)):
        operations(kernel, CHEAP, 1)
        warp_step(kernel, "0xffffffff")
    kernel.emit("bar.warp.sync 0xffffffff;")


def split_warps(kernel):
    """The lanes with a condition work among themselves, and the others too; registers set on one side only are zeroed before."""
    condition = kernel.pick("p")
    mask = kernel.make("r", f"vote.sync.ballot.b32 {{}}, {condition}, 0xffffffff")
    others = kernel.make("r", f"not.b32 {{}}, {mask}")
    other, end = kernel.label(), kernel.label()
    start = len(kernel.lines)
    pools = {letter: list(pool) for letter, pool in kernel.pools.items()}
    first = len(kernel.declared)
    kernel.emit(f"@!{condition} bra {other};")
    for _ in range(3):
        warp_step(kernel, mask)
    kernel.emit(f"bra {end};")
    kernel.pools = {letter: list(pool) for letter, pool in pools.items()}
    kernel.lines.append(f"{other}:")
    for _ in range(3):
        warp_step(kernel, others)
    kernel.lines.append(f"{end}:")
    zeroes = []
    for letter, register in kernel.declared[first:]:
        zeroes.append(f"\tsetp.ne.u32 {register}, 0, 0;" if letter == "p" else f"\tmov.b{WIDTH[letter]} {register}, 0;")
    kernel.lines[start:start] = zeroes
    kernel.pools = pools
    kernel.emit("bar.warp.sync 0xffffffff;")
    warp_step(kernel, "0xffffffff")


ATOMIC_OPS = {
    "u32": ("r", ("add", "min", "max", "inc", "dec")), "s32": ("r", ("add", "min", "max")), "b32": ("r", ("and", "or", "xor", "exch", "cas")),
    "u64": ("d", ("add", "min", "max")), "s64": ("d", ("min", "max")), "b64": ("d", ("and", "or", "xor", "exch", "cas")),
    "f32": ("f", ("add",)), "f64": ("g", ("add",)), "f16": ("e", ("add.noftz",)), "bf16": ("w", ("add.noftz",)), "f16x2": ("x", ("add.noftz",)),
    "bf16x2": ("y", ("add.noftz",)), "b16": ("h", ("cas",)),
}


def own_atomics(kernel):
    """Atomics on a cell that no other thread touches: results and old values."""
    random = kernel.random
    space = random.choice(("shared", "global"))
    if space == "shared":
        kernel.inside.append(f"\t.shared .align 8 .b8 room[{8 * kernel.block}];")
        base = kernel.make("d", "mov.u64 {}, room")
        cell = kernel.make("d", f"mad.wide.u32 {{}}, %thread, 8, {base}")
    else:
        kernel.outside.append(f".global .align 8 .b8 cells_{kernel.name}[{8 * kernel.block * kernel.grid}];")
        base = kernel.make("d", f"mov.u64 {{}}, cells_{kernel.name}")
        cell = kernel.make("d", f"mad.wide.u32 {{}}, %index, 8, {base}")
    where = f".{space}"
    if random.random() < 0.3:
        cell, where = kernel.make("d", f"cvta.{space}.u64 {{}}, {cell}"), ""
    for _ in range(5):
        kind = random.choice(list(ATOMIC_OPS))
        letter, ops = ATOMIC_OPS[kind]
        op = random.choice(ops)
        kernel.emit(f"st{where}.b{WIDTH[letter]} [{cell}], {kernel.pick(letter)};")
        operands = ", ".join(kernel.pick(letter) for _ in range(2 if op == "cas" else 1))
        order = random.choice(("", ".relaxed", ".acq_rel"))
        scope = ".gpu" if order else random.choice(("", ".cta", ".gpu", ".sys"))
        if op in ("exch", "cas") or random.random() < 0.6:
            kernel.store(letter, kernel.make(letter, f"atom{order}{scope}{where}.{op}.{kind} {{}}, [{cell}], {operands}"))
        else:
            kernel.emit(f"red{'.relaxed' if order else ''}{scope}{where}.{op}.{kind} [{cell}], {operands};")
        kernel.store(letter, kernel.make(letter, f"ld{where}.b{WIDTH[letter]} {{}}, [{cell}]"))


def common_atomics(kernel):
    """Atomics of a whole block on a few cells, of kinds whose end does not depend on the order."""
    random = kernel.random
    kernel.inside.append("\t.shared .align 8 .b8 room[64];")
    kernel.emit("{")
    base = kernel.make("r", "mov.u32 {}, room")
    zeroing = kernel.make("p", "setp.ge.u32 {}, %thread, 8")
    over = kernel.label()
    kernel.emit(f"@{zeroing} bra {over};")
    zero = kernel.make("r", f"mad.lo.u32 {{}}, %thread, 8, {base}")
    kernel.emit(f"st.shared.b64 [{zero}], {random.choice((0, 1, 0x7fffffff))};")
    kernel.lines.append(f"{over}:")
    for _ in range(4):
        kernel.emit("bar.sync 0;")
        cell = kernel.make("r", f"and.b32 {{}}, {kernel.pick('r')}, 7")
        cell = kernel.make("r", f"mad.lo.u32 {{}}, {cell}, 8, {base}")
        way = random.randrange(5)
        if way == 0:
            kernel.emit(f"red.shared.add.{random.choice(('u32', 's32'))} [{cell}], {kernel.pick('r')};")
        elif way == 1:
            kernel.emit(f"red.shared.{random.choice(('and', 'or', 'xor'))}.b{random.choice((32, 64))} [{cell}], ".replace("b64", "b32") + f"{kernel.pick('r')};")
        elif way == 2:
            kernel.emit(f"red.shared.{random.choice(('min', 'max'))}.{random.choice('us')}64 [{cell}], {kernel.pick('d')};")
        elif way == 3:
            kernel.emit(f"red.shared.add.u64 [{cell}], {kernel.pick('d')};")
        else:  # a loop of compare and swap: xor, whatever the order
            old, new, seen = (kernel.new("r") for _ in range(3))
            loop, again = kernel.label(), kernel.new("p")
            kernel.emit(f"ld.volatile.shared.b32 {old}, [{cell}];")
            kernel.lines.append(f"{loop}:")
            kernel.emit(f"xor.b32 {new}, {old}, {kernel.pick('r')};")
            kernel.emit(f"atom.shared.cas.b32 {seen}, [{cell}], {old}, {new};")
            kernel.emit(f"setp.ne.u32 {again}, {seen}, {old};")
            kernel.emit(f"mov.b32 {old}, {seen};")
            kernel.emit(f"@{again} bra {loop};")
        kernel.emit("bar.sync 0;")
        mine = kernel.make("r", "and.b32 {}, %thread, 7")
        mine = kernel.make("r", f"mad.lo.u32 {{}}, {mine}, 8, {base}")
        kernel.store("d", kernel.make("d", f"ld.shared.b64 {{}}, [{mine}]"))
    kernel.emit("}")


def calls(kernel):
    """Functions of the module, with numbers and structures as parameters; one may call the other or itself."""
    random, name = kernel.random, kernel.name
    inner = random.choice(("add.u32", "xor.b32", "mul.lo.u32", "min.s32"))
    kernel.outside += [
        f".func (.param .b32 ret) inner_{name}(.param .b32 a, .param .b64 b)", "{", "\t.reg .b32 %x, %y;", "\t.reg .b64 %z;",
        "\tld.param.b32 %x, [a];", "\tld.param.b64 %z, [b];", "\tcvt.u32.u64 %y, %z;", f"\t{inner} %x, %x, %y;", "\tst.param.b32 [ret], %x;", "\tret;", "}",
        f".func (.param .align 8 .b8 ret[16]) outer_{name}(.param .align 8 .b8 s[16], .param .b32 turns)", "{",
        "\t.reg .b32 %a, %b, %t;", "\t.reg .b64 %c;", "\t.reg .pred %p;", "\t.local .align 8 .b8 own[16];",
        "\tld.param.v2.b32 {%a, %b}, [s];", "\tld.param.b64 %c, [s+8];", "\tld.param.b32 %t, [turns];",
        "\tst.local.b64 [own], %c;", "again:", "\tsetp.eq.u32 %p, %t, 0;", "\t@%p bra done;", "\tsub.u32 %t, %t, 1;",
        "\t{", "\t.param .b32 i0;", "\t.param .b64 i1;", "\t.param .b32 o0;", "\tst.param.b32 [i0], %a;", "\tst.param.b64 [i1], %c;",
        f"\tcall.uni (o0), inner_{name}, (i0, i1);", "\tld.param.b32 %a, [o0];", "\t}", f"\tadd.u32 %b, %b, {random.getrandbits(8)};",
        "\txor.b32 %a, %a, %b;", "\tbra again;", "done:", "\tld.local.b64 %c, [own];", "\tst.param.v2.b32 [ret], {%a, %b};", "\tst.param.b64 [ret+8], %c;", "\tret;", "}"]
    for _ in range(3):
        a, b, c = kernel.pick("r"), kernel.pick("r"), kernel.pick("d")
        turns = kernel.make("r", f"and.b32 {{}}, {kernel.pick('r')}, {random.choice((0, 1, 3))}")
        x, y, z = kernel.new("r"), kernel.new("r"), kernel.new("d")
        kernel.emit("{")
        kernel.emit(".param .align 8 .b8 p0[16];")
        kernel.emit(".param .b32 p1;")
        kernel.emit(".param .align 8 .b8 q0[16];")
        kernel.emit(f"st.param.v2.b32 [p0], {{{a}, {b}}};")
        kernel.emit(f"st.param.b64 [p0+8], {c};")
        kernel.emit(f"st.param.b32 [p1], {turns};")
        kernel.emit(f"call (q0), outer_{name}, (p0, p1);")
        kernel.emit(f"ld.param.v2.b32 {{{x}, {y}}}, [q0];")
        kernel.emit(f"ld.param.b64 {z}, [q0+8];")
        kernel.emit("}")
        for letter, register in (("r", x), ("r", y), ("d", z)):
            kernel.store(letter, kernel.keep(letter, register))


def variables(kernel):
    """Variables with initial values, read at places that the data choose; one holds another's address."""
    random, name = kernel.random, kernel.name
    rows = []
    for space in ("const", "global"):
        for kind, make in (("u8", lambda: str(random.getrandbits(8))), ("s16", lambda: str(random.getrandbits(15) - 9999)),
                           ("u32", lambda: str(random.getrandbits(32))), ("u64", lambda: str(random.getrandbits(64))),
                           ("f32", lambda: "0f%08X" % struct.unpack("<I", struct.pack("<f", random.uniform(-9, 9)))),
                           ("f64", lambda: "0d%016X" % struct.unpack("<Q", struct.pack("<d", random.uniform(-9, 9))))):
            values = ", ".join(make() for _ in range(random.choice((8, 8, 5))))
            rows.append((space, kind, f"{kind}_{space}_{name}"))
            kernel.outside.append(f".{space} .align 8 .{kind} {rows[-1][2]}[8] = {{{values}}};")
    kernel.outside.append(f".global .align 8 .u64 pointers_{name}[2] = {{generic(u32_global_{name}), generic(u64_global_{name})+8}};")
    kernel.outside.append(f".const .align 4 .u32 square_{name}[2][4] = {{{{1, 2, 3, {random.getrandbits(31)}}}, {{-5, 6}}}};")
    letters = {"u8": "h", "s16": "h", "u32": "r", "u64": "d", "f32": "f", "f64": "g"}
    for space, kind, variable in random.sample(rows, 6):
        size = int(kind[1:]) // 8
        at = kernel.make("r", f"and.b32 {{}}, {kernel.pick('r')}, 7")
        base = kernel.make("d", f"mov.u64 {{}}, {variable}")
        address = kernel.make("d", f"mad.wide.u32 {{}}, {at}, {size}, {base}")
        letter = letters[kind]
        kernel.store(letter, kernel.keep(letter, kernel.make(letter, f"ld.{space}.{kind} {{}}, [{address}]")))
    pointer = kernel.make("d", f"ld.global.u64 {{}}, [pointers_{name}+8]")
    kernel.store("d", kernel.make("d", f"ld.u64 {{}}, [{pointer}]"))
    at = kernel.make("r", f"and.b32 {{}}, {kernel.pick('r')}, 7")
    base = kernel.make("d", f"mov.u64 {{}}, square_{name}")
    kernel.store("r", kernel.make("r", f"ld.const.u32 {{}}, [{kernel.make('d', f'mad.wide.u32 {{}}, {at}, 4, {base}')}]"))


def division_by_zero(kernel):
    """PTX leaves these open; the hardware does not."""
    zero = kernel.make("r", f"and.b32 {{}}, {kernel.pick('r')}, 1")
    wide = kernel.make("d", f"cvt.u64.u32 {{}}, {zero}")
    minus = kernel.make("r", f"neg.s32 {{}}, {zero}")
    wide_minus = kernel.make("d", f"neg.s64 {{}}, {wide}")
    half = kernel.make("h", f"cvt.u16.u32 {{}}, {zero}")
    for op in ("div", "rem"):
        for sign in "us":
            for letter, by in (("r", zero), ("d", wide), ("h", half)):
                kernel.store(letter, kernel.make(letter, f"{op}.{sign}{WIDTH[letter]} {{}}, {kernel.pick(letter)}, {by}"))
        for letter, least, by in (("r", "0x80000000", minus), ("d", "0x8000000000000000", wide_minus)):
            start = kernel.make(letter, f"mov.b{WIDTH[letter]} {{}}, {least}")
            kernel.store(letter, kernel.make(letter, f"{op}.s{WIDTH[letter]} {{}}, {start}, {by}"))


def approximate(kernel, row):
    """A bounded instruction on inputs of the kinds that its bound is for."""
    name, result, sources, _, _, inputs = row
    for turn in range(4):
        values = [kernel.pools[letter][(turn + n) % len(kernel.pools[letter])] for n, letter in enumerate(sources)]
        if inputs == "angle":
            small = [kernel.make("r", f"and.b32 {{}}, {value}, 0xffff") for value in values]
            values = [kernel.make("f", f"cvt.rn.f32.u32 {{}}, {value}") for value in small]
            values = [kernel.make("f", f"fma.rn.f32 {{}}, {value}, 0f38C90FDB, 0fC0490FDB") for value in values]
        kernel.store(result, kernel.make(result, f"{name} {{}}, {', '.join(values)}"))
    kernel.slot_class = result


def matrix(kernel, shape, to, kind, mask, bits):
    """One mma.sync whose factors are between 2^-15 and 2 in size."""
    depth = int(shape.split("k")[1])
    count = depth // (4 if kind == "tf32" else 8)
    letters = {"f16": "x", "bf16": "y", "tf32": "f"}
    pool = [kernel.make("r", f"lop3.b32 {{}}, {value}, {mask}, {bits}, 0xea") for value in kernel.pools[letters[kind]] + kernel.pools["r"]]
    a = [pool[n % len(pool)] for n in range(2 * count)]
    b = [pool[(n + 3) % len(pool)] for n in range(count)]
    start = "0f3F800000" if to == "f32" else "0x3c003c00"
    c = [kernel.make("f" if to == "f32" else "r", f"mov.b32 {{}}, {start}") for _ in range(4 if to == "f32" else 2)]
    d = [kernel.new("f" if to == "f32" else "x") for _ in c]
    kernel.emit(f"mma.sync.aligned.{shape}.row.col.{to}.{kind}.{kind}.{to} {{{', '.join(d)}}}, {{{', '.join(a)}}}, {{{', '.join(b)}}}, {{{', '.join(c)}}};")
    for register in d:
        kernel.store("f" if to == "f32" else "x", register)


MATRICES = [(f"matrix_{kind}_{to}_{shape}", check, (shape, to, kind, mask, bits))
            for kind, to, shapes, mask, bits, check in (
                ("f16", "f32", ("m16n8k8", "m16n8k16"), "0xbfffbfff", "0", "f32:2:-17"), ("f16", "f16", ("m16n8k8", "m16n8k16"), "0xbfffbfff", "0", "f16:1:-5"),
                ("bf16", "f32", ("m16n8k8", "m16n8k16"), "0x87ff87ff", "0x38003800", "f32:2:-17"),
                ("tf32", "f32", ("m16n8k4", "m16n8k8"), "0x87ffffff", "0x38000000", "f32:2:-17")) for shape in shapes]
SHAPED = {"mixed": (mixed, 30), "memory": (memory, 25), "loads": (loads, 10), "shared": (shared, 20), "reduction": (reduction, 10),
          "control": (control, 55), "warps": (warps, 30), "split_warps": (split_warps, 15), "own_atomics": (own_atomics, 25),
          "common_atomics": (common_atomics, 15), "calls": (calls, 15), "variables": (variables, 12), "division_by_zero": (division_by_zero, 2)}
BOUNDED = [(f"approx_{row[0].replace('.', '_')}", row) for row in APPROXIMATE]
