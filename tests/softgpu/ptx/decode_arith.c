/* Arithmetic, comparison and conversion. */
#include "tests/softgpu/ptx/load.h"

#define INT_LIKE(type) ((type) >= TY_U16 && (type) <= TY_S64 && (type) != TY_S8)

static enum ptx_type doubled(enum ptx_type type)
{
	return type == TY_U16   ? TY_U32
	       : type == TY_S16 ? TY_S32
	       : type == TY_U32 ? TY_U64
	       : type == TY_S32 ? TY_S64
	                        : TY_NONE;
}

static bool is_half(enum ptx_type type)
{
	return type >= TY_F16 && type <= TY_BF16X2;
}

/* d and the sources in order; the last may have a type of its own. */
static bool take_operands(struct statement *statement, struct insn *insn, enum ptx_type to, enum ptx_type from,
                          unsigned sources)
{
	uint32_t *const slots[] = {&insn->a, &insn->b, &insn->c, &insn->m};

	if (!ptx_operand_count(statement, sources + 1, sources + 1) || !ptx_destination(statement, 0, to, &insn->d))
		return false;
	for (unsigned n = 0; n < sources; n++)
		if (!ptx_source(statement, n + 1, n == 2 ? to : from, slots[n]))
			return false;
	return true;
}

static int take_rounding(struct statement *statement)
{
	static const char *const words[] = {"rn", "rz", "rm", "rp"};

	for (int n = 0; n < 4; n++)
		if (ptx_modifier(statement, words[n]))
			return n;
	return -1;
}

static void take_flags(struct statement *statement, struct insn *insn)
{
	if (ptx_modifier(statement, "ftz"))
		insn->flags |= FLAG_FTZ;
	if (ptx_modifier(statement, "sat"))
		insn->flags |= FLAG_SAT;
	if (ptx_modifier(statement, "NaN"))
		insn->flags |= FLAG_NAN;
	if (ptx_modifier(statement, "relu"))
		insn->flags |= FLAG_RELU;
}

static bool decode_float(struct statement *statement, enum float_op op, enum ptx_type type, unsigned sources)
{
	struct insn insn = INSN_INIT;
	int round = take_rounding(statement);
	bool coarse = ptx_modifier(statement, "approx");
	bool approximate = coarse || ptx_modifier(statement, "full");
	bool is_approximate = op == FLOAT_SIN || op == FLOAT_COS || op == FLOAT_EX2 || op == FLOAT_LG2 ||
	                      op == FLOAT_TANH || op == FLOAT_RSQRT;
	bool rounds = op != FLOAT_ABS && op != FLOAT_NEG && op != FLOAT_MIN && op != FLOAT_MAX && !is_approximate;

	if (approximate &&
	    (op == FLOAT_ADD || op == FLOAT_SUB || op == FLOAT_MUL || op == FLOAT_FMA || !(rounds || is_approximate)))
		return ptx_bad(statement, ".approx does not apply");
	if (round >= 0 && (approximate || !rounds || (is_half(type) && round)))
		return ptx_bad(statement, "a rounding does not apply");
	take_flags(statement, &insn);
	if ((op == FLOAT_MIN || op == FLOAT_MAX) && type != TY_F64 && ptx_modifier(statement, "xorsign")) {
		if (!ptx_modifier(statement, "abs"))
			return ptx_bad(statement, ".xorsign goes with .abs");
		insn.flags |= FLAG_XORSIGN;
	}
	if (type == TY_F64 && insn.flags & FLAG_FTZ && !approximate)
		return ptx_bad(statement, ".ftz does not apply to f64");
	if (insn.flags & FLAG_SAT && !rounds)
		return ptx_bad(statement, ".sat does not apply");
	if (insn.flags & FLAG_RELU && !is_half(type))
		return ptx_unsupported(statement, NULL);
	insn.round = round > 0 ? (int8_t)round : 0;
	insn.type = type;
	insn.op = op;
	insn.run = is_half(type)               ? ptx_step_half(op, type)
	           : insn.flags & FLAG_XORSIGN ? ptx_step_xorsign(op)
	                                       : ptx_step_float(op, type, !insn.flags && !insn.round);
	step_fn step = coarse ? ptx_step_coarse(op, type, insn.flags & FLAG_FTZ) : NULL;
	insn.run = step ? step : insn.run;
	return take_operands(statement, &insn, type, type, sources) && ptx_put(statement, insn);
}

enum arithmetic {
	AR_ADD,
	AR_SUB,
	AR_MUL,
	AR_MAD,
	AR_FMA,
	AR_DIV,
	AR_REM,
	AR_ABS,
	AR_NEG,
	AR_MIN,
	AR_MAX,
	AR_SAD,
	AR_MUL24,
	AR_MAD24
};

static const struct {
	enum int_op integer;
	enum float_op real; /* FLOAT_COUNT: none */
	unsigned sources;
} shapes[] = {
	[AR_ADD] = {INT_ADD, FLOAT_ADD, 2},          [AR_SUB] = {INT_SUB, FLOAT_SUB, 2},
	[AR_MUL] = {INT_MUL_LO, FLOAT_MUL, 2},       [AR_MAD] = {INT_MAD_LO, FLOAT_FMA, 3},
	[AR_FMA] = {INT_COUNT, FLOAT_FMA, 3},        [AR_DIV] = {INT_DIV, FLOAT_DIV, 2},
	[AR_REM] = {INT_REM, FLOAT_COUNT, 2},        [AR_ABS] = {INT_ABS, FLOAT_ABS, 1},
	[AR_NEG] = {INT_NEG, FLOAT_NEG, 1},          [AR_MIN] = {INT_MIN, FLOAT_MIN, 2},
	[AR_MAX] = {INT_MAX, FLOAT_MAX, 2},          [AR_SAD] = {INT_SAD, FLOAT_COUNT, 3},
	[AR_MUL24] = {INT_MUL24_LO, FLOAT_COUNT, 2}, [AR_MAD24] = {INT_MAD24_LO, FLOAT_COUNT, 3},
};

/* .hi and .wide change what a product is; .lo is the default of the tables. */
static bool take_part(struct statement *statement, enum int_op *op, bool *ret_wide)
{
	bool lo = ptx_modifier(statement, "lo"), hi = ptx_modifier(statement, "hi"),
	     wide = ptx_modifier(statement, "wide");

	if (*op != INT_MUL_LO && *op != INT_MAD_LO && *op != INT_MUL24_LO && *op != INT_MAD24_LO)
		return !lo && !hi && !wide ? true : ptx_bad(statement, ".lo, .hi and .wide are for products");
	if (lo + hi + wide != 1)
		return ptx_bad(statement, "one of .lo, .hi and .wide is due");
	if (hi)
		*op += 1;
	if (wide)
		*op += 2;
	*ret_wide = wide;
	return !wide || *op == INT_MUL_WIDE || *op == INT_MAD_WIDE ? true : ptx_bad(statement, ".wide does not apply");
}

static bool carry_slot(struct loader *loader, uint32_t *ret_operand)
{
	if (!loader->carry && !ptx_register_new(loader, &loader->carry))
		return false;
	*ret_operand = loader->carry;
	return true;
}

/* add.cc, addc, addc.cc, sub.cc, subc, mad.cc, madc. */
static bool decode_carry(struct statement *statement, enum int_op op, unsigned sources, bool carry_in, bool carry_out)
{
	struct insn insn = INSN_INIT;
	enum ptx_type type;

	if (op == INT_MAD_LO_CC) {
		bool hi = ptx_modifier(statement, "hi");

		if (ptx_modifier(statement, "lo") == hi)
			return ptx_bad(statement, "one of .lo and .hi is due");
		op = hi ? INT_MAD_HI_CC : op;
	}
	type = ptx_modifier_type(statement);
	insn.run = ptx_step_int(op, type);
	if (!take_operands(statement, &insn, type, type, sources))
		return false;
	if ((carry_in && !carry_slot(statement->loader, &insn.m)) ||
	    (carry_out && !carry_slot(statement->loader, &insn.e)))
		return false;
	return ptx_put(statement, insn);
}

/* .u16x2 and .s16x2, of which only add, min and max exist. */
static bool decode_int_pair(struct statement *statement, enum int_op op, bool is_signed)
{
	struct insn insn = INSN_INIT;

	if (is_signed && op != INT_ADD && ptx_modifier(statement, "relu"))
		insn.flags |= FLAG_RELU;
	insn.run = ptx_step_int_pair(op, is_signed);
	return take_operands(statement, &insn, TY_B32, TY_B32, 2) && ptx_put(statement, insn);
}

static bool decode_arithmetic(struct statement *statement, int which)
{
	struct insn insn = INSN_INIT;
	enum int_op op = shapes[which].integer;
	bool wide = false;

	if ((which == AR_ADD || which == AR_SUB || which == AR_MAD) && ptx_modifier(statement, "cc"))
		return decode_carry(statement,
		                    which == AR_ADD   ? INT_ADD_CC
		                    : which == AR_SUB ? INT_SUB_CC
		                                      : INT_MAD_LO_CC,
		                    shapes[which].sources, false, true);
	bool pair = ptx_modifier(statement, "u16x2"), signed_pair = ptx_modifier(statement, "s16x2");
	if (pair || signed_pair)
		return decode_int_pair(statement, op, signed_pair);
	enum ptx_type type = ptx_modifier_type(statement);
	if (ptx_type_is_float(type))
		return shapes[which].real == FLOAT_COUNT
		               ? ptx_unsupported(statement, NULL)
		               : decode_float(statement, shapes[which].real, type, shapes[which].sources);
	if (op == INT_COUNT || !INT_LIKE(type))
		return ptx_unsupported(statement, NULL);
	if (!take_part(statement, &op, &wide))
		return false;
	if ((op == INT_ADD || op == INT_SUB || op == INT_MAD_HI || op == INT_MAD24_HI) && ptx_modifier(statement, "sat"))
		op = op == INT_ADD      ? INT_ADD_SAT
		     : op == INT_SUB    ? INT_SUB_SAT
		     : op == INT_MAD_HI ? INT_MAD_HI_SAT
		                        : INT_MAD24_HI_SAT;
	enum ptx_type to = wide ? doubled(type) : type;
	if (to == TY_NONE)
		return ptx_unsupported(statement, NULL);
	insn.run = ptx_step_int(op, type);
	return take_operands(statement, &insn, to, type, shapes[which].sources) && ptx_put(statement, insn);
}

static bool decode_with_carry(struct statement *statement, int op)
{
	return decode_carry(statement, op, op == INT_MAD_LO_CC ? 3 : 2, true, ptx_modifier(statement, "cc"));
}

static bool decode_function(struct statement *statement, int op)
{
	enum ptx_type type = ptx_modifier_type(statement);

	if (!ptx_type_is_float(type))
		return ptx_unsupported(statement, NULL);
	return decode_float(statement, op, type, 1);
}

static const char *const comparisons[CMP_COUNT] = {
	[CMP_EQ] = "eq",   [CMP_NE] = "ne",   [CMP_LT] = "lt",   [CMP_LE] = "le",   [CMP_GT] = "gt",
	[CMP_GE] = "ge",   [CMP_EQU] = "equ", [CMP_NEU] = "neu", [CMP_LTU] = "ltu", [CMP_LEU] = "leu",
	[CMP_GTU] = "gtu", [CMP_GEU] = "geu", [CMP_NUM] = "num", [CMP_NAN] = "nan",
};

static enum cmp_op take_comparison(struct statement *statement, bool *ret_unsigned)
{
	static const char *const unsigned_words[] = {"lo", "ls", "hi", "hs"};

	*ret_unsigned = false;
	for (enum cmp_op op = 0; op < CMP_COUNT; op++)
		if (ptx_modifier(statement, comparisons[op]))
			return op;
	*ret_unsigned = true;
	for (int n = 0; n < 4; n++)
		if (ptx_modifier(statement, unsigned_words[n]))
			return CMP_LT + (enum cmp_op)n;
	return CMP_COUNT;
}

static uint8_t take_join(struct statement *statement)
{
	return ptx_modifier(statement, "and")   ? JOIN_AND
	       : ptx_modifier(statement, "or")  ? JOIN_OR
	       : ptx_modifier(statement, "xor") ? JOIN_XOR
	                                        : JOIN_NONE;
}

static enum ptx_type as_unsigned(enum ptx_type type)
{
	return type >= TY_S8 && type <= TY_S64 ? (enum ptx_type)(type - TY_S8 + TY_U8) : type;
}

static bool decode_compare(struct statement *statement, int set)
{
	struct insn insn = INSN_INIT;
	bool unsigned_words;
	enum cmp_op op = take_comparison(statement, &unsigned_words);
	enum ptx_type to = TY_PRED, type;

	if (op == CMP_COUNT)
		return ptx_bad(statement, "a comparison is due");
	insn.width = take_join(statement);
	if (ptx_modifier(statement, "ftz"))
		insn.flags |= FLAG_FTZ;
	if (set)
		to = ptx_modifier_type(statement);
	type = ptx_modifier_type(statement);
	if (unsigned_words)
		type = as_unsigned(type);
	bool half = type == TY_F16 || type == TY_BF16, pair = type == TY_F16X2 || type == TY_BF16X2;
	bool settable = pair ? to == type || to == TY_U32 || to == TY_S32
	                     : to == TY_U32 || to == TY_S32 || to == TY_F32 ||
	                                (half && (to == type || to == TY_U16 || to == TY_S16));
	if (type == TY_NONE || (set && !settable))
		return ptx_unsupported(statement, NULL);
	/* Of pairs, setp has two results always: it would be a mistake to drop one. */
	if (pair && !set && !statement->has_second)
		return ptx_bad(statement, "two predicates are due");
	insn.op = op;
	insn.type = type;
	insn.type2 = to;
	insn.run = ptx_step_compare(op, type, set);
	unsigned sources = insn.width == JOIN_NONE ? 2 : 3;
	if (!ptx_operand_count(statement, sources + 1, sources + 1) || !ptx_destination(statement, 0, to, &insn.d) ||
	    !ptx_source(statement, 1, type, &insn.a) || !ptx_source(statement, 2, type, &insn.b))
		return false;
	if (sources == 3 && !ptx_source(statement, 3, TY_PRED, &insn.c))
		return false;
	if (statement->has_second &&
	    (set || !ptx_destination_of(statement, &statement->second, TY_PRED, false, &insn.e, NULL)))
		return set ? ptx_bad(statement, "only setp has two results") : false;
	return ptx_put(statement, insn);
}

static bool decode_convert_pair(struct statement *statement, struct insn insn, enum ptx_type to, enum ptx_type from)
{
	if (from != TY_F32 || insn.flags & FLAG_SAT)
		return ptx_unsupported(statement, NULL);
	insn.type = to;
	insn.run = ptx_step_convert_pair();
	return ptx_operand_count(statement, 3, 3) && ptx_destination(statement, 0, to, &insn.d) &&
	       ptx_source(statement, 1, TY_F32, &insn.a) && ptx_source(statement, 2, TY_F32, &insn.b) &&
	       ptx_put(statement, insn);
}

/* cvt.rna.tf32.f32 d, a: d has 32 bits. */
static bool decode_convert_tf32(struct statement *statement, struct insn insn)
{
	if (!ptx_modifier(statement, "rna") || insn.flags || ptx_modifier_type(statement) != TY_F32)
		return ptx_unsupported(statement, NULL);
	insn.run = ptx_step_convert_tf32();
	return take_operands(statement, &insn, TY_B32, TY_F32, 1) && ptx_put(statement, insn);
}

static bool decode_convert(struct statement *statement, int unused)
{
	static const char *const integral[] = {"rni", "rzi", "rmi", "rpi"};
	struct insn insn = INSN_INIT;
	int round = take_rounding(statement), whole = -1;
	unsigned bytes = 0;

	for (int n = 0; n < 4 && whole < 0; n++)
		if (ptx_modifier(statement, integral[n]))
			whole = n;
	take_flags(statement, &insn);
	if (ptx_modifier(statement, "tf32"))
		return decode_convert_tf32(statement, insn);
	enum ptx_type to = ptx_modifier_type(statement), from = ptx_modifier_type(statement);
	if (to == TY_NONE || from == TY_NONE || insn.flags & FLAG_NAN)
		return ptx_unsupported(statement, NULL);
	bool float_to = ptx_type_is_float(to), float_from = ptx_type_is_float(from);
	insn.round = (int8_t)(round > 0 ? round : whole > 0 ? whole : 0);
	if (to == TY_F16X2 || to == TY_BF16X2)
		return decode_convert_pair(statement, insn, to, from);
	if (float_from && !float_to && whole < 0)
		return ptx_bad(statement, "one of .rni, .rzi, .rmi and .rpi is due");
	if (round >= 0 && (whole >= 0 || !float_to))
		return ptx_bad(statement, "a rounding does not apply");
	if (whole >= 0 && !float_from)
		return ptx_bad(statement, "an integral rounding does not apply");
	bool loses = float_to && (!float_from || ptx_type_bytes(to) < ptx_type_bytes(from));
	if (loses && round < 0 && whole < 0)
		return ptx_bad(statement, "a rounding is due");
	insn.type = to;
	insn.type2 = from;
	insn.count = float_from && whole >= 0;
	insn.run = ptx_step_convert(to, from, !insn.flags && !insn.round && !insn.count);
	if (!ptx_operand_count(statement, 2, 2) || !ptx_wide_destination(statement, 0, to, &insn.d, &bytes) ||
	    !ptx_wide_source(statement, 1, from, &insn.a))
		return false;
	insn.width = (uint8_t)bytes;
	return ptx_put(statement, insn);
}

const struct rule ptx_rules_arithmetic[] = {
	{"add", decode_arithmetic, AR_ADD},
	{"sub", decode_arithmetic, AR_SUB},
	{"mul", decode_arithmetic, AR_MUL},
	{"mad", decode_arithmetic, AR_MAD},
	{"fma", decode_arithmetic, AR_FMA},
	{"div", decode_arithmetic, AR_DIV},
	{"rem", decode_arithmetic, AR_REM},
	{"abs", decode_arithmetic, AR_ABS},
	{"neg", decode_arithmetic, AR_NEG},
	{"min", decode_arithmetic, AR_MIN},
	{"max", decode_arithmetic, AR_MAX},
	{"sad", decode_arithmetic, AR_SAD},
	{"mul24", decode_arithmetic, AR_MUL24},
	{"mad24", decode_arithmetic, AR_MAD24},
	{"addc", decode_with_carry, INT_ADD_CC},
	{"subc", decode_with_carry, INT_SUB_CC},
	{"madc", decode_with_carry, INT_MAD_LO_CC},
	{"rcp", decode_function, FLOAT_RCP},
	{"sqrt", decode_function, FLOAT_SQRT},
	{"rsqrt", decode_function, FLOAT_RSQRT},
	{"sin", decode_function, FLOAT_SIN},
	{"cos", decode_function, FLOAT_COS},
	{"ex2", decode_function, FLOAT_EX2},
	{"lg2", decode_function, FLOAT_LG2},
	{"tanh", decode_function, FLOAT_TANH},
	{"setp", decode_compare, false},
	{"set", decode_compare, true},
	{"cvt", decode_convert, 0},
	{0},
};
