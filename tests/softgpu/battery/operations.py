"""The instructions of the straight-line kernels: name, result, sources, by family.

A letter is a class of values: r d h integers of 32, 64, 16 bits; f g floats of 32, 64 bits; e w halves (f16, bf16); x y pairs of them; p predicates;
k a 32-bit shift count or field position, often out of range; B a bit number; O a small offset, as an immediate; 8 a byte as an immediate; R a 32-bit register, never an immediate; n a nonzero 32-bit integer, N one of 64 bits.
"""
ROUNDINGS = ("rn", "rz", "rm", "rp")
COMPARE_SIGNED = ("eq", "ne", "lt", "le", "gt", "ge")
COMPARE_UNSIGNED = COMPARE_SIGNED + ("lo", "ls", "hi", "hs")
COMPARE_FLOAT = COMPARE_SIGNED + ("equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan")
WIDTH = {"r": 32, "d": 64, "h": 16, "f": 32, "g": 64, "e": 16, "w": 16, "x": 32, "y": 32, "k": 32, "n": 32, "N": 64}


def integer_arithmetic(letter, bits):
    nonzero = {"r": "n", "d": "N", "h": "h"}[letter]
    ops = []
    for sign in "us":
        kind = f"{sign}{bits}"
        ops += [(f"{op}.{kind}", letter, letter * 2) for op in ("add", "sub", "mul.lo", "mul.hi", "min", "max")]
        ops += [(f"mad.lo.{kind}", letter, letter * 3), (f"mad.hi.{kind}", letter, letter * 3), (f"sad.{kind}", letter, letter * 3)]
        if letter != "h":
            ops += [(f"div.{kind}", letter, letter + nonzero), (f"rem.{kind}", letter, letter + nonzero)]
    ops += [(f"abs.s{bits}", letter, letter), (f"neg.s{bits}", letter, letter)]
    return ops


INTEGER32 = integer_arithmetic("r", 32) + [
    ("add.sat.s32", "r", "rr"), ("sub.sat.s32", "r", "rr"), ("mad.hi.sat.s32", "r", "rrr"),
    ("mul24.lo.s32", "r", "rr"), ("mul24.hi.s32", "r", "rr"), ("mul24.lo.u32", "r", "rr"), ("mul24.hi.u32", "r", "rr"),
    ("mad24.lo.s32", "r", "rrr"), ("mad24.hi.s32", "r", "rrr"), ("mad24.lo.u32", "r", "rrr"), ("mad24.hi.u32", "r", "rrr"),
    ("mad24.hi.sat.s32", "r", "rrr"),
    ("dp4a.u32.u32", "r", "rrr"), ("dp4a.s32.s32", "r", "rrr"), ("dp4a.u32.s32", "r", "rrr"), ("dp4a.s32.u32", "r", "rrr"),
    ("dp2a.lo.u32.u32", "r", "rrr"), ("dp2a.hi.s32.s32", "r", "rrr"), ("dp2a.lo.s32.u32", "r", "rrr"), ("dp2a.hi.u32.s32", "r", "rrr"),
]
INTEGER64 = integer_arithmetic("d", 64)
INTEGER16 = integer_arithmetic("h", 16)
WIDE = [("mul.wide.u32", "d", "rr"), ("mul.wide.s32", "d", "rr"), ("mul.wide.u16", "r", "hh"), ("mul.wide.s16", "r", "hh"),
        ("mad.wide.u32", "d", "rrd"), ("mad.wide.s32", "d", "rrd"), ("mad.wide.u16", "r", "hhr"), ("mad.wide.s16", "r", "hhr"),
        ("mul.hi.u64", "d", "dd"), ("mul.hi.s64", "d", "dd"), ("mad.hi.s64", "d", "ddd"), ("CARRY", "", "")]
BITS = [(f"{op}.b{WIDTH[c]}", c, c * 2) for op in ("and", "or", "xor") for c in "rdh"]
BITS += [(f"{op}.b{WIDTH[c]}", c, c) for op in ("not", "cnot") for c in "rdh"]
BITS += [(f"{op}{WIDTH[c]}", c, c + "k") for op in ("shl.b", "shr.u", "shr.s", "shr.b") for c in "rdh"]
BITS += [(f"{op}.b{WIDTH[c]}", "r", c) for op in ("clz", "popc") for c in "rd"]
BITS += [(f"bfind{amount}.{sign}{WIDTH[c]}", "r", c) for amount in ("", ".shiftamt") for sign in "us" for c in "rd"]
BITS += [(f"brev.b{WIDTH[c]}", c, c) for c in "rd"]
BITS += [(f"bfe.{sign}{WIDTH[c]}", c, c + "kk") for sign in "us" for c in "rd"]
BITS += [(f"bfi.b{WIDTH[c]}", c, c + c + "kk") for c in "rd"]
BITS += [("prmt.b32", "r", "rrr"), ("prmt.b32", "r", "rrk")]
BITS += [(f"prmt.b32.{mode}", "r", "rrr") for mode in ("f4e", "b4e", "rc8", "ecl", "ecr", "rc16")]
BITS += [(f"shf.{way}.{mode}.b32", "r", "rrk") for way in "lr" for mode in ("clamp", "wrap")]
BITS += [("lop3.b32", "r", "rrr8")] * 3
BITS += [(f"bmsk.{mode}.b32", "r", "kk") for mode in ("clamp", "wrap")]
BITS += [(f"szext.{mode}.{sign}32", "r", "rk") for mode in ("clamp", "wrap") for sign in "us"]
BITS += [("fns.b32", "r", "rBO")]
SELECT = [(f"selp.b{WIDTH[c]}", c, c + c + "p") for c in "rdh"]
SELECT += [(f"slct.{kind}.s32", c, c + c + "r") for kind, c in (("b32", "r"), ("u64", "d"), ("b16", "h"), ("f32", "f"), ("f64", "g"))]
SELECT += [("slct.b32.f32", "r", "rrf"), ("slct.ftz.s32.f32", "r", "rrf"), ("slct.f64.f32", "g", "ggf")]
SELECT += [(f"{op}.pred", "p", "pp") for op in ("and", "or", "xor")] + [("not.pred", "p", "p")]
SELECT += [(f"testp.{test}.f{WIDTH[c]}", "p", c) for c in "fg"
           for test in ("finite", "infinite", "number", "notanumber", "normal", "subnormal")]
SELECT += [("copysign.f32", "f", "ff"), ("copysign.f64", "g", "gg")]
COMPARE = []
for _kind, _class, _words in (("u32", "r", COMPARE_UNSIGNED), ("s32", "r", COMPARE_SIGNED), ("b32", "r", ("eq", "ne")),
                              ("u64", "d", COMPARE_UNSIGNED), ("s64", "d", COMPARE_SIGNED), ("b64", "d", ("eq", "ne")),
                              ("u16", "h", COMPARE_UNSIGNED), ("s16", "h", COMPARE_SIGNED), ("f32", "f", COMPARE_FLOAT),
                              ("f64", "g", COMPARE_FLOAT), ("f16", "e", COMPARE_FLOAT), ("bf16", "w", COMPARE_FLOAT),
                              ("f16x2", "x", COMPARE_FLOAT), ("bf16x2", "y", COMPARE_FLOAT)):
    for _word in _words:
        if _kind.endswith("x2"):
            COMPARE.append((f"setp.{_word}.{_kind}", "pq", _class * 2))
            COMPARE.append((f"set.{_word}.{_kind}.{_kind}", _class, _class * 2))
            continue
        COMPARE.append((f"setp.{_word}.{_kind}", "p", _class * 2))
        _both = "p" if _class in "ew" else "pq"
        COMPARE.append((f"setp.{_word}.and.{_kind}", _both, _class * 2 + "p"))
        COMPARE.append((f"setp.{_word}.or.{_kind}", "p", _class * 2 + "p"))
        COMPARE.append((f"setp.{_word}.xor.{_kind}", _both, _class * 2 + "p"))
        if _kind in ("f16", "bf16"):
            COMPARE.append((f"set.{_word}.{_kind}.{_kind}", _class, _class * 2))
            COMPARE.append((f"set.{_word}.u16.{_kind}", "h", _class * 2))
        elif _class != "h":
            COMPARE.append((f"set.{_word}.u32.{_kind}", "r", _class * 2))
            COMPARE.append((f"set.{_word}.and.f32.{_kind}", "f", _class * 2 + "p"))
COMPARE += [(f"setp.{word}.ftz.f32", "p", "ff") for word in COMPARE_FLOAT] + [(f"set.{word}.ftz.f32.f32", "f", "ff") for word in COMPARE_FLOAT]

FLOAT32 = []
for _mode in ("", ".ftz"):
    for _round in ROUNDINGS:
        for _sat in ("", ".sat"):
            FLOAT32 += [(f"{op}.{_round}{_mode}{_sat}.f32", "f", "ff") for op in ("add", "sub", "mul")]
            FLOAT32 += [(f"fma.{_round}{_mode}{_sat}.f32", "f", "fff")]
        FLOAT32 += [(f"div.{_round}{_mode}.f32", "f", "ff"), (f"rcp.{_round}{_mode}.f32", "f", "f"), (f"sqrt.{_round}{_mode}.f32", "f", "f")]
    for _op in ("min", "max"):
        FLOAT32 += [(f"{_op}{_mode}{extra}.f32", "f", "ff") for extra in ("", ".NaN", ".xorsign.abs", ".NaN.xorsign.abs")]
    FLOAT32 += [(f"abs{_mode}.f32", "f", "f"), (f"neg{_mode}.f32", "f", "f")]
FLOAT64 = []
for _round in ROUNDINGS:
    FLOAT64 += [(f"{op}.{_round}.f64", "g", "gg") for op in ("add", "sub", "mul", "div")]
    FLOAT64 += [(f"fma.{_round}.f64", "g", "ggg"), (f"rcp.{_round}.f64", "g", "g"), (f"sqrt.{_round}.f64", "g", "g")]
FLOAT64 += [("min.f64", "g", "gg"), ("max.f64", "g", "gg"), ("abs.f64", "g", "g"), ("neg.f64", "g", "g")]
HALF = []
for _kind, _class in (("f16", "e"), ("f16x2", "x")):
    for _mode in ("", ".ftz"):
        HALF += [(f"{op}.rn{_mode}{sat}.{_kind}", _class, _class * 2) for op in ("add", "sub", "mul") for sat in ("", ".sat")]
        HALF += [(f"fma.rn{_mode}{extra}.{_kind}", _class, _class * 3) for extra in ("", ".sat", ".relu")]
        HALF += [(f"{op}{_mode}{extra}.{_kind}", _class, _class * 2) for op in ("min", "max") for extra in ("", ".NaN", ".xorsign.abs")]
        HALF += [(f"abs{_mode}.{_kind}", _class, _class), (f"neg{_mode}.{_kind}", _class, _class)]
for _kind, _class in (("bf16", "w"), ("bf16x2", "y")):
    HALF += [(f"{op}.rn.{_kind}", _class, _class * 2) for op in ("add", "sub", "mul")]
    HALF += [(f"fma.rn{extra}.{_kind}", _class, _class * 3) for extra in ("", ".relu")]
    HALF += [(f"{op}{extra}.{_kind}", _class, _class * 2) for op in ("min", "max") for extra in ("", ".NaN", ".xorsign.abs")]
    HALF += [(f"abs.{_kind}", _class, _class), (f"neg.{_kind}", _class, _class)]

INTEGER_TYPES = {"u8": "h", "s8": "h", "u16": "h", "s16": "h", "u32": "r", "s32": "r", "u64": "d", "s64": "d"}


def holds(to, source):
    """Whether every value of one integer type is one of the other: then .sat is illegal."""
    least, most = {kind: -(1 << (int(kind[1:]) - 1)) if kind[0] == "s" else 0 for kind in (to, source)}, {}
    for kind in (to, source):
        most[kind] = (1 << (int(kind[1:]) - (kind[0] == "s"))) - 1
    return least[to] <= least[source] and most[to] >= most[source]


CONVERT_INTEGER = [(f"cvt{sat}.{to}.{source}", INTEGER_TYPES[to], INTEGER_TYPES[source])
                   for to in INTEGER_TYPES for source in INTEGER_TYPES for sat in ("", ".sat")
                   if to != source and not (sat and holds(to, source))]
_FLOATS = {"f32": "f", "f64": "g", "f16": "e", "bf16": "w"}
CONVERT_TO_INTEGER = [(f"cvt.{r}i{extra}.{to}.{source}", INTEGER_TYPES[to], _FLOATS[source])
                      for to in INTEGER_TYPES for source in _FLOATS for r in ROUNDINGS
                      for extra in (("", ".ftz", ".sat") if source == "f32" else ("",) if source == "bf16" else ("", ".sat"))
                      if source != "bf16" or not to.endswith("8")]
CONVERT_FROM_INTEGER = [(f"cvt.{r}{sat}.{to}.{source}", _FLOATS[to], INTEGER_TYPES[source])
                        for to in _FLOATS for source in INTEGER_TYPES for r in ROUNDINGS for sat in ("", ".sat")
                        if to != "bf16" or (sat == "" and not source.endswith("8"))]
CONVERT_FLOAT = [(f"cvt.{r}{extra}.{kind}.f64", c, "g") for r in ROUNDINGS for kind, c, extras in
                 (("f32", "f", ("", ".ftz", ".sat", ".ftz.sat")), ("f16", "e", ("", ".sat")), ("bf16", "w", ("",))) for extra in extras]
CONVERT_FLOAT += [(f"cvt.{r}{extra}.f16.f32", "e", "f") for r in ROUNDINGS for extra in ("", ".ftz", ".sat")]
CONVERT_FLOAT += [(f"cvt.{r}{extra}.{kind}.f32", c, "f") for r in ("rn", "rz") for extra in ("", ".relu") for kind, c in (("bf16", "w"), ("f16", "e"))]
CONVERT_FLOAT += [(f"cvt.{r}{extra}.{kind}.f32", c, "ff") for r in ("rn", "rz") for extra in ("", ".relu")
                  for kind, c in (("bf16x2", "y"), ("f16x2", "x"))]
CONVERT_FLOAT += [(f"cvt{extra}.f32.{kind}", "f", c) for kind, c in (("f16", "e"), ("bf16", "w")) for extra in ("", ".sat", ".ftz")
                  if kind == "f16" or not extra]
CONVERT_FLOAT += [("cvt.f64.f16", "g", "e"), ("cvt.f64.bf16", "g", "w"), ("cvt.f64.f32", "g", "f"), ("cvt.sat.f64.f32", "g", "f"), ("cvt.ftz.f64.f32", "g", "f")]
CONVERT_FLOAT += [(f"cvt.{r}i{extra}.{kind}.{kind}", c, c) for r in ROUNDINGS
                  for kind, c, extras in (("f32", "f", ("", ".ftz", ".sat")), ("f64", "g", ("", ".sat")), ("f16", "e", ("", ".sat"))) for extra in extras]
CONVERT_FLOAT += [(f"cvt.{r}.tf32.f32", "r", "f") for r in ("rna",)]

PACKED = [(f"{op}.{kind}", "r", "RR") for op in ("add", "min", "max") for kind in ("u16x2", "s16x2")]
PACKED += [("min.s16x2.relu", "r", "RR"), ("max.s16x2.relu", "r", "RR")]
PACKED += [(f"{op}{n}.{d}32.{a}32.{b}32{extra}", "r", "RRR") for op in ("vadd", "vsub", "vabsdiff", "vmin", "vmax") for n in (2, 4)
           for d, a, b in ("uuu", "sss", "usu", "uus", "suu") for extra in ("", ".sat", ".add")]
PACKED += [(f"vset{n}.{a}32.{b}32.{word}{extra}", "r", "RRR") for n in (2, 4) for a, b in ("uu", "ss", "us") for word in COMPARE_SIGNED
           for extra in ("", ".add")]

# Instructions whose result the ISA bounds instead of saying: sources, the way to compare, the bound, how the sources are made.
APPROXIMATE = [
    ("rcp.approx.f32", "f", "f", "ulp", 1, "bits"), ("rcp.approx.ftz.f32", "f", "f", "ulp", 1, "bits"),
    ("sqrt.approx.f32", "f", "f", "ulp", 1, "bits"), ("sqrt.approx.ftz.f32", "f", "f", "ulp", 1, "bits"),
    ("rsqrt.approx.f32", "f", "f", "ulp", 2, "bits"), ("rsqrt.approx.ftz.f32", "f", "f", "ulp", 2, "bits"),
    ("div.approx.f32", "f", "ff", "ulp", 2, "bits"), ("div.approx.ftz.f32", "f", "ff", "ulp", 2, "bits"),
    ("div.full.f32", "f", "ff", "ulp", 2, "bits"), ("div.full.ftz.f32", "f", "ff", "ulp", 2, "bits"),
    ("ex2.approx.f32", "f", "f", "ulp", 2, "bits"), ("ex2.approx.ftz.f32", "f", "f", "ulp", 2, "bits"),
    ("lg2.approx.f32", "f", "f", "abs22", 2, "bits"), ("lg2.approx.ftz.f32", "f", "f", "abs22", 2, "bits"),
    ("sin.approx.f32", "f", "f", "abs20", 0, "angle"), ("cos.approx.f32", "f", "f", "abs20", 0, "angle"),
    ("sin.approx.ftz.f32", "f", "f", "abs20", 0, "angle"), ("cos.approx.ftz.f32", "f", "f", "abs20", 0, "angle"),
    ("tanh.approx.f32", "f", "f", "ulp", 8192, "bits"),
    ("rcp.approx.ftz.f64", "g", "g", "ulp", 1 << 33, "bits"), ("rsqrt.approx.f64", "g", "g", "ulp", 1 << 33, "bits"),
    ("rsqrt.approx.ftz.f64", "g", "g", "ulp", 1 << 33, "bits"),
    ("ex2.approx.f16", "e", "e", "ulp", 2, "bits"), ("ex2.approx.ftz.bf16", "w", "w", "ulp", 1, "bits"),
    ("tanh.approx.f16", "e", "e", "ulp", 2, "bits"), ("tanh.approx.bf16", "w", "w", "ulp", 1, "bits"),
    ("ex2.approx.f16x2", "x", "x", "ulp", 2, "bits"), ("ex2.approx.ftz.bf16x2", "y", "y", "ulp", 1, "bits"),
    ("tanh.approx.f16x2", "x", "x", "ulp", 2, "bits"), ("tanh.approx.bf16x2", "y", "y", "ulp", 1, "bits"),
]

STRAIGHT = {
    "int32": (INTEGER32, 55), "int64": (INTEGER64, 35), "int16": (INTEGER16, 20), "wide": (WIDE, 25), "bits": (BITS, 60),
    "select": (SELECT, 25), "compare": (COMPARE, 70), "f32": (FLOAT32, 55), "f64": (FLOAT64, 25), "half": (HALF, 45),
    "cvt_int": (CONVERT_INTEGER, 30), "cvt_to_int": (CONVERT_TO_INTEGER, 40), "cvt_from_int": (CONVERT_FROM_INTEGER, 35), "cvt_float": (CONVERT_FLOAT, 35),
    "packed": (PACKED, 20),
}
