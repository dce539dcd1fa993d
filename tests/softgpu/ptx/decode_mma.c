/* ldmatrix and mma.sync: operands are vectors of registers, one for each part of a lane's fragment. */
#include "tests/softgpu/ptx/load.h"

/* Exactly so many registers; those that a load or a product writes, or sources. */
static bool take_fragment(struct statement *statement, unsigned index, bool result, unsigned count, enum ptx_type type,
                          uint32_t *slots)
{
	struct operand *operand = &statement->operands[index];

	if (operand->kind != OPERAND_VECTOR || operand->count != count)
		return ptx_bad(statement, "a fragment's number of registers is not the shape's");
	for (unsigned n = 0; n < count; n++) {
		struct operand item = {
			.kind = operand->item_kinds[n], .operand = operand->items[n], .type = operand->item_types[n]};

		if (result ? item.kind == OPERAND_SINK ||
		                     !ptx_destination_of(statement, &item, type, false, &slots[n], NULL)
		           : !ptx_item_source(statement, operand, n, type, false, &slots[n]))
			return item.kind == OPERAND_SINK ? ptx_bad(statement, "a register is due") : false;
	}
	return true;
}

static bool whole_warp(struct statement *statement, struct insn *insn)
{
	if (!ptx_modifier(statement, "sync") || !ptx_modifier(statement, "aligned"))
		return ptx_bad(statement, ".sync.aligned is due");
	return ptx_constant(statement->loader, UINT32_MAX, &insn->m);
}

static bool decode_ldmatrix(struct statement *statement, int unused)
{
	struct insn insn = INSN_INIT;
	uint32_t *slots = ptx_load_keep(statement->loader, 4 * sizeof(*slots));

	if (!slots || !whole_warp(statement, &insn))
		return false;
	unsigned count = ptx_modifier(statement, "x4") ? 4 : ptx_modifier(statement, "x2") ? 2 : 1;
	if (count == 1 && !ptx_modifier(statement, "x1"))
		return ptx_bad(statement, "one of .x1, .x2 and .x4 is due");
	if (ptx_modifier(statement, "trans"))
		insn.flags |= FLAG_HIGH;
	if (ptx_modifier(statement, "shared") || ptx_modifier(statement, "shared::cta"))
		insn.space = SPACE_SHARED;
	if (!ptx_modifier(statement, "m8n8") || ptx_modifier_type(statement) != TY_B16)
		return ptx_unsupported(statement, NULL);
	insn.count = (uint8_t)count;
	insn.extra = slots;
	insn.run = ptx_step_matrix(MATRIX_LOAD);
	return ptx_operand_count(statement, 2, 2) && take_fragment(statement, 0, true, count, TY_B32, slots) &&
	       ptx_address(statement, 1, &insn) && ptx_put(statement, insn);
}

static enum ptx_type take_factor_type(struct statement *statement)
{
	return ptx_modifier(statement, "tf32") ? TY_F32 : ptx_modifier_type(statement);
}

/* mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 d, a, b, c; the first type is D's and the last is C's. */
static bool decode_mma(struct statement *statement, int unused)
{
	static const struct {
		const char *word;
		unsigned depth;
	} shapes[] = {{"m16n8k4", 4}, {"m16n8k8", 8}, {"m16n8k16", 16}};
	struct mma_operands *operands = ptx_load_keep(statement->loader, sizeof(*operands));
	struct insn insn = INSN_INIT;
	unsigned shape = 0;

	if (!operands || !whole_warp(statement, &insn))
		return false;
	while (shape < 3 && !ptx_modifier(statement, shapes[shape].word))
		shape++;
	if (shape == 3 || !ptx_modifier(statement, "row") || !ptx_modifier(statement, "col"))
		return ptx_unsupported(statement, NULL);
	enum ptx_type to = ptx_modifier_type(statement);
	bool is_tf32 = ptx_modifier(statement, "tf32");
	enum ptx_type from = is_tf32 ? TY_F32 : ptx_modifier_type(statement);
	if (take_factor_type(statement) != from || ptx_modifier_type(statement) != to)
		return ptx_unsupported(statement, NULL);
	bool right = is_tf32 ? to == TY_F32 && shape < 2
	                     : shape > 0 && ((from == TY_F16 && (to == TY_F32 || to == TY_F16)) ||
	                                     (from == TY_BF16 && to == TY_F32));
	if (!right)
		return ptx_unsupported(statement, NULL);
	insn.op = (uint8_t)shapes[shape].depth;
	insn.type = from;
	insn.type2 = to;
	insn.extra = operands;
	operands->b_count = insn.op / (is_tf32 ? 4 : 8);
	operands->a_count = 2 * operands->b_count;
	unsigned sums = to == TY_F32 ? 4 : 2;
	enum ptx_type sum_type = to == TY_F32 ? TY_F32 : TY_B32;
	insn.run = ptx_step_matrix(MATRIX_MULTIPLY);
	return ptx_operand_count(statement, 4, 4) && take_fragment(statement, 0, true, sums, sum_type, operands->d) &&
	       take_fragment(statement, 1, false, operands->a_count, TY_B32, operands->a) &&
	       take_fragment(statement, 2, false, operands->b_count, TY_B32, operands->b) &&
	       take_fragment(statement, 3, false, sums, sum_type, operands->c) && ptx_put(statement, insn);
}

const struct rule ptx_rules_matrix[] = {{"ldmatrix", decode_ldmatrix, 0}, {"mma", decode_mma, 0}, {0}};
