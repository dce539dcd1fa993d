/* Logic, bit fields, moves, selection, address spaces. */
#include "tests/softgpu/ptx/load.h"

/* Result and sources all of the instruction's type. */
static bool take_uniform(struct statement *statement, struct insn *insn, enum ptx_type type, unsigned sources)
{
	uint32_t *const slots[] = {&insn->a, &insn->b, &insn->c, &insn->m};

	if (!ptx_operand_count(statement, sources + 1, sources + 1) || !ptx_destination(statement, 0, type, &insn->d))
		return false;
	for (unsigned n = 0; n < sources; n++)
		if (!ptx_source(statement, n + 1, type, slots[n]))
			return false;
	return true;
}

static bool decode_logic(struct statement *statement, int op)
{
	struct insn insn = INSN_INIT;
	enum ptx_type type = ptx_modifier_type(statement);

	if (type != TY_PRED && (type < TY_B16 || type > TY_B64))
		return ptx_unsupported(statement, NULL);
	insn.run = ptx_step_bit(op, type);
	return take_uniform(statement, &insn, type, op == BIT_NOT || op == BIT_CNOT ? 1 : 2) && ptx_put(statement, insn);
}

static bool decode_shift(struct statement *statement, int op)
{
	struct insn insn = INSN_INIT;
	enum ptx_type type = ptx_modifier_type(statement);

	insn.run = type == TY_NONE ? NULL : ptx_step_bit(op, type);
	return ptx_operand_count(statement, 3, 3) && ptx_destination(statement, 0, type, &insn.d) &&
	       ptx_source(statement, 1, type, &insn.a) && ptx_source(statement, 2, TY_U32, &insn.b) &&
	       ptx_put(statement, insn);
}

/* clz, popc and bfind give 32 bits whatever they look at. */
static bool decode_count(struct statement *statement, int op)
{
	struct insn insn = INSN_INIT;

	if (op == BIT_BFIND && ptx_modifier(statement, "shiftamt"))
		insn.flags |= FLAG_CLAMP;
	enum ptx_type type = ptx_modifier_type(statement);
	insn.run = type == TY_NONE ? NULL : ptx_step_bit(op, type);
	return ptx_operand_count(statement, 2, 2) && ptx_destination(statement, 0, TY_U32, &insn.d) &&
	       ptx_source(statement, 1, type, &insn.a) && ptx_put(statement, insn);
}

static bool decode_field(struct statement *statement, int op)
{
	struct insn insn = INSN_INIT;
	enum ptx_type type = ptx_modifier_type(statement);
	bool insert = op == BIT_BFI;

	insn.run = type == TY_NONE ? NULL : ptx_step_bit(op, type);
	if (op == BIT_BREV)
		return take_uniform(statement, &insn, type, 1) && ptx_put(statement, insn);
	if (!ptx_operand_count(statement, insert ? 5 : 4, insert ? 5 : 4) ||
	    !ptx_destination(statement, 0, type, &insn.d) || !ptx_source(statement, 1, type, &insn.a))
		return false;
	if (insert)
		return ptx_source(statement, 2, type, &insn.b) && ptx_source(statement, 3, TY_U32, &insn.c) &&
		       ptx_source(statement, 4, TY_U32, &insn.m) && ptx_put(statement, insn);
	return ptx_source(statement, 2, TY_U32, &insn.b) && ptx_source(statement, 3, TY_U32, &insn.c) &&
	       ptx_put(statement, insn);
}

/* mov.b64 d, {a, b} and mov.b64 {a, b}, s. */
static bool decode_pack(struct statement *statement, enum ptx_type type)
{
	struct operand *to = &statement->operands[0], *from = &statement->operands[1];
	bool pack = from->kind == OPERAND_VECTOR;
	struct operand *vector = pack ? from : to;
	struct insn insn = INSN_INIT;
	unsigned bytes = ptx_type_bytes(type) / vector->count;
	enum ptx_type element = bytes == 1 ? TY_B8 : bytes == 2 ? TY_B16 : TY_B32;
	uint32_t *slots = ptx_load_keep(statement->loader, vector->count * sizeof(*slots));

	if (!slots)
		return false;
	if (to->kind == from->kind || type < TY_B16 || type > TY_B64 || bytes * vector->count != ptx_type_bytes(type) ||
	    bytes == 8 || (bytes != 1 && bytes != 2 && bytes != 4))
		return ptx_unsupported(statement, "this vector move");
	insn.run = ptx_step_misc(pack ? BIT_PACK : BIT_UNPACK);
	insn.extra = slots;
	insn.count = (uint8_t)vector->count;
	insn.width = (uint8_t)bytes;
	for (unsigned n = 0; n < vector->count; n++) {
		struct operand item = {
			.kind = vector->item_kinds[n], .operand = vector->items[n], .type = vector->item_types[n]};

		if (pack ? !ptx_item_source(statement, vector, n, element, false, &slots[n])
		         : !ptx_destination_of(statement, &item, element, false, &slots[n], NULL))
			return false;
	}
	if (pack ? !ptx_destination(statement, 0, type, &insn.d) : !ptx_source(statement, 1, type, &insn.a))
		return false;
	return ptx_put(statement, insn);
}

static bool decode_move(struct statement *statement, int unused)
{
	struct insn insn = INSN_INIT;
	enum ptx_type type = ptx_modifier_type(statement);

	if (type == TY_NONE || type == TY_B8 || type == TY_U8 || type == TY_S8)
		return ptx_unsupported(statement, NULL);
	if (!ptx_operand_count(statement, 2, 2))
		return false;
	if (statement->operands[0].kind == OPERAND_VECTOR || statement->operands[1].kind == OPERAND_VECTOR)
		return decode_pack(statement, type);
	insn.run = ptx_step_bit(BIT_MOV, type);
	return ptx_destination(statement, 0, type, &insn.d) && ptx_source(statement, 1, type, &insn.a) &&
	       ptx_put(statement, insn);
}

static bool decode_select(struct statement *statement, int unused)
{
	struct insn insn = INSN_INIT;
	enum ptx_type type = ptx_modifier_type(statement);

	insn.run = type == TY_NONE || type == TY_PRED ? NULL : ptx_step_bit(BIT_SELECT, type);
	return ptx_operand_count(statement, 4, 4) && ptx_destination(statement, 0, type, &insn.d) &&
	       ptx_source(statement, 1, type, &insn.a) && ptx_source(statement, 2, type, &insn.b) &&
	       ptx_source(statement, 3, TY_PRED, &insn.c) && ptx_put(statement, insn);
}

static bool decode_slct(struct statement *statement, int unused)
{
	struct insn insn = INSN_INIT;

	if (ptx_modifier(statement, "ftz"))
		insn.flags |= FLAG_FTZ;
	enum ptx_type type = ptx_modifier_type(statement), by = ptx_modifier_type(statement);
	if (type < TY_B16 || type == TY_U8 || type == TY_S8 || (by != TY_S32 && by != TY_F32))
		return ptx_unsupported(statement, NULL);
	insn.type2 = by;
	insn.run = ptx_step_misc(BIT_SLCT);
	return ptx_operand_count(statement, 4, 4) && ptx_destination(statement, 0, type, &insn.d) &&
	       ptx_source(statement, 1, type, &insn.a) && ptx_source(statement, 2, type, &insn.b) &&
	       ptx_source(statement, 3, by, &insn.c) && ptx_put(statement, insn);
}

static bool decode_lop3(struct statement *statement, int unused)
{
	struct insn insn = INSN_INIT;

	if (ptx_modifier_type(statement) != TY_B32)
		return ptx_unsupported(statement, NULL);
	if (!ptx_operand_count(statement, 5, 5))
		return false;
	const struct operand *table = &statement->operands[4];
	if (table->kind != OPERAND_CONSTANT || table->constant.is_float || table->constant.bits > 255)
		return ptx_bad(statement, "a table from 0 to 255 is due");
	insn.imm = table->constant.bits;
	insn.run = ptx_step_misc(BIT_LOP3);
	statement->operand_count = 4;
	return take_uniform(statement, &insn, TY_B32, 3) && ptx_put(statement, insn);
}

static bool decode_prmt(struct statement *statement, int unused)
{
	static const char *const modes[] = {"f4e", "b4e", "rc8", "ecl", "ecr", "rc16"};
	struct insn insn = INSN_INIT;

	for (unsigned n = 0; n < 6; n++)
		if (ptx_modifier(statement, modes[n]))
			insn.imm = n + 1;
	if (ptx_modifier_type(statement) != TY_B32)
		return ptx_unsupported(statement, NULL);
	insn.run = ptx_step_misc(BIT_PRMT);
	return take_uniform(statement, &insn, TY_B32, 3) && ptx_put(statement, insn);
}

static bool take_clamp(struct statement *statement, struct insn *insn)
{
	bool clamp = ptx_modifier(statement, "clamp"), wrap = ptx_modifier(statement, "wrap");

	if (clamp)
		insn->flags |= FLAG_CLAMP;
	return clamp != wrap || ptx_bad(statement, "one of .clamp and .wrap is due");
}

static bool decode_shf(struct statement *statement, int unused)
{
	struct insn insn = INSN_INIT;
	bool left = ptx_modifier(statement, "l");

	if (ptx_modifier(statement, "r") == left)
		return ptx_bad(statement, "one of .l and .r is due");
	if (!take_clamp(statement, &insn))
		return false;
	if (ptx_modifier_type(statement) != TY_B32)
		return ptx_unsupported(statement, NULL);
	insn.run = ptx_step_misc(left ? BIT_SHF_L : BIT_SHF_R);
	return take_uniform(statement, &insn, TY_B32, 3) && ptx_put(statement, insn);
}

/* dp4a and dp2a: the types are those of the packed a and b; c and d follow. */
static bool decode_dot(struct statement *statement, int op)
{
	struct insn insn = INSN_INIT;

	if (op == BIT_DP2A) {
		if (ptx_modifier(statement, "hi"))
			insn.flags |= FLAG_HIGH;
		else if (!ptx_modifier(statement, "lo"))
			return ptx_bad(statement, "one of .lo and .hi is due");
	}
	enum ptx_type a = ptx_modifier_type(statement), b = ptx_modifier_type(statement);
	if ((a != TY_U32 && a != TY_S32) || (b != TY_U32 && b != TY_S32))
		return ptx_unsupported(statement, NULL);
	insn.flags |= (a == TY_S32 ? FLAG_SIGNED : 0) | (b == TY_U32 ? FLAG_UNSIGNED_SECOND : 0);
	insn.run = ptx_step_misc(op);
	return take_uniform(statement, &insn, TY_B32, 3) && ptx_put(statement, insn);
}

/* vadd4.u32.s32.u32{.sat,.add} d, a, b, c: all parts, in their places. vset4.u32.u32.lt has no type of the result. */
static bool decode_video(struct statement *statement, int what)
{
	static const char *const comparisons[] = {"eq", "ne", "lt", "le", "gt", "ge"};
	struct insn insn = INSN_INIT;
	enum ptx_type types[3] = {TY_U32, TY_NONE, TY_NONE};

	for (unsigned n = (what & 15) == VIDEO_SET; n < 3; n++) {
		types[n] = ptx_modifier_type(statement);
		if (types[n] != TY_U32 && types[n] != TY_S32)
			return ptx_unsupported(statement, NULL);
	}
	if (ptx_modifier(statement, "sat"))
		insn.flags |= FLAG_SAT;
	insn.count = ptx_modifier(statement, "add");
	if ((what & 15) == VIDEO_SET) {
		while (insn.imm < 6 && !ptx_modifier(statement, comparisons[insn.imm]))
			insn.imm++;
		if (insn.imm == 6 || insn.flags)
			return ptx_bad(statement, "a comparison is due");
	}
	insn.op = what & 15;
	insn.width = (uint8_t)(what >> 4);
	insn.flags |= (types[0] == TY_S32 ? FLAG_HIGH : 0) | (types[1] == TY_S32 ? FLAG_SIGNED : 0) |
	              (types[2] == TY_U32 ? FLAG_UNSIGNED_SECOND : 0);
	insn.run = ptx_step_video();
	return take_uniform(statement, &insn, TY_B32, 3) && ptx_put(statement, insn);
}

static bool decode_mask(struct statement *statement, int op)
{
	struct insn insn = INSN_INIT;
	enum ptx_type type;

	if (op != BIT_FNS && !take_clamp(statement, &insn))
		return false;
	type = ptx_modifier_type(statement);
	if (type != TY_B32 && !(op == BIT_SZEXT && (type == TY_U32 || type == TY_S32)))
		return ptx_unsupported(statement, NULL);
	insn.flags |= type == TY_S32 ? FLAG_SIGNED : 0;
	insn.run = ptx_step_misc(op);
	return take_uniform(statement, &insn, TY_B32, op == BIT_FNS ? 3 : 2) && ptx_put(statement, insn);
}

static bool decode_copysign(struct statement *statement, int unused)
{
	struct insn insn = INSN_INIT;
	enum ptx_type type = ptx_modifier_type(statement);

	insn.type = type;
	insn.run = type == TY_F32 || type == TY_F64 ? ptx_step_misc(BIT_COPYSIGN) : NULL;
	return take_uniform(statement, &insn, type, 2) && ptx_put(statement, insn);
}

static bool decode_testp(struct statement *statement, int unused)
{
	static const char *const tests[] = {"finite", "infinite", "number", "notanumber", "normal", "subnormal"};
	struct insn insn = INSN_INIT;
	unsigned test = 0;

	while (test < 6 && !ptx_modifier(statement, tests[test]))
		test++;
	enum ptx_type type = ptx_modifier_type(statement);
	insn.op = (uint8_t)test;
	insn.type = type;
	insn.run = test < 6 && (type == TY_F32 || type == TY_F64) ? ptx_step_misc(BIT_TESTP) : NULL;
	return ptx_operand_count(statement, 2, 2) && ptx_destination(statement, 0, TY_PRED, &insn.d) &&
	       ptx_source(statement, 1, type, &insn.a) && ptx_put(statement, insn);
}

static bool take_space(struct statement *statement, struct insn *insn)
{
	static const struct {
		const char *word;
		enum ptx_space space;
	} words[] = {{"global", SPACE_GLOBAL},      {"const", SPACE_CONST}, {"shared", SPACE_SHARED},
	             {"shared::cta", SPACE_SHARED}, {"local", SPACE_LOCAL}, {"param", SPACE_PARAM},
	             {"param::entry", SPACE_PARAM}};

	/* Of the cluster's blocks together, which only isspacep tells from the block's own. */
	if (ptx_modifier(statement, "shared::cluster")) {
		insn->space = SPACE_SHARED;
		insn->width = 1;
		return true;
	}
	for (unsigned n = 0; n < sizeof(words) / sizeof(words[0]); n++)
		if (ptx_modifier(statement, words[n].word)) {
			insn->space = words[n].space;
			/* A .func's parameters are in its frame. */
			if (insn->space == SPACE_PARAM && !statement->loader->function->entry)
				insn->space = SPACE_LOCAL;
			return true;
		}
	return ptx_unsupported(statement, NULL);
}

static bool decode_cvta(struct statement *statement, int unused)
{
	struct insn insn = INSN_INIT;
	bool to = ptx_modifier(statement, "to");
	enum ptx_type type;

	if (!take_space(statement, &insn))
		return false;
	type = ptx_modifier_type(statement);
	if (type != TY_U64)
		return ptx_unsupported(statement, NULL);
	insn.width = 8;
	insn.run = insn.space == SPACE_GLOBAL || insn.space == SPACE_CONST ? ptx_step_bit(BIT_MOV, TY_B64)
	                                                                   : ptx_step_misc(to ? BIT_CVTA_TO : BIT_CVTA);
	return take_uniform(statement, &insn, TY_U64, 1) && ptx_put(statement, insn);
}

static bool decode_isspacep(struct statement *statement, int unused)
{
	struct insn insn = INSN_INIT;

	if (!take_space(statement, &insn))
		return false;
	insn.run = insn.space == SPACE_CONST ? NULL : ptx_step_misc(BIT_ISSPACE);
	return ptx_operand_count(statement, 2, 2) && ptx_destination(statement, 0, TY_PRED, &insn.d) &&
	       ptx_source(statement, 1, TY_U64, &insn.a) && ptx_put(statement, insn);
}

const struct rule ptx_rules_bits[] = {
	{"and", decode_logic, BIT_AND},
	{"or", decode_logic, BIT_OR},
	{"xor", decode_logic, BIT_XOR},
	{"not", decode_logic, BIT_NOT},
	{"cnot", decode_logic, BIT_CNOT},
	{"shl", decode_shift, BIT_SHL},
	{"shr", decode_shift, BIT_SHR},
	{"clz", decode_count, BIT_CLZ},
	{"popc", decode_count, BIT_POPC},
	{"bfind", decode_count, BIT_BFIND},
	{"brev", decode_field, BIT_BREV},
	{"bfe", decode_field, BIT_BFE},
	{"bfi", decode_field, BIT_BFI},
	{"mov", decode_move, 0},
	{"selp", decode_select, 0},
	{"slct", decode_slct, 0},
	{"lop3", decode_lop3, 0},
	{"prmt", decode_prmt, 0},
	{"shf", decode_shf, 0},
	{"dp4a", decode_dot, BIT_DP4A},
	{"dp2a", decode_dot, BIT_DP2A},
	{"bmsk", decode_mask, BIT_BMSK},
	{"szext", decode_mask, BIT_SZEXT},
	{"fns", decode_mask, BIT_FNS},
	{"vadd4", decode_video, VIDEO_ADD | 8 << 4},
	{"vadd2", decode_video, VIDEO_ADD | 16 << 4},
	{"vsub4", decode_video, VIDEO_SUB | 8 << 4},
	{"vsub2", decode_video, VIDEO_SUB | 16 << 4},
	{"vabsdiff4", decode_video, VIDEO_ABSDIFF | 8 << 4},
	{"vabsdiff2", decode_video, VIDEO_ABSDIFF | 16 << 4},
	{"vmin4", decode_video, VIDEO_MIN | 8 << 4},
	{"vmin2", decode_video, VIDEO_MIN | 16 << 4},
	{"vmax4", decode_video, VIDEO_MAX | 8 << 4},
	{"vmax2", decode_video, VIDEO_MAX | 16 << 4},
	{"vset4", decode_video, VIDEO_SET | 8 << 4},
	{"vset2", decode_video, VIDEO_SET | 16 << 4},
	{"copysign", decode_copysign, 0},
	{"testp", decode_testp, 0},
	{"cvta", decode_cvta, 0},
	{"isspacep", decode_isspacep, 0},
	{0},
};
