/* Textures and surfaces by object: tex of one texel, suld.b, sust.b, and the sizes. */
#include "tests/softgpu/ptx/load.h"

/* .1d, .2d or .3d; 0 for all that has layers, faces or samples. */
static unsigned take_dimensions(struct statement *statement)
{
	return ptx_modifier(statement, "1d")   ? 1
	       : ptx_modifier(statement, "2d") ? 2
	       : ptx_modifier(statement, "3d") ? 3
	                                       : 0;
}

/* [object, {x, y, z}]: of three coordinates a fourth is written and not read. */
static bool take_place(struct statement *statement, unsigned index, enum ptx_type type, struct insn *insn,
                       struct texel *texel)
{
	struct operand *operand = &statement->operands[index];

	if (operand->kind != OPERAND_ADDRESS || operand->symbol || operand->operand == NO_OPERAND ||
	    ptx_type_bytes(operand->type) != 8 || operand->offset)
		return operand->kind == OPERAND_ADDRESS && operand->symbol
		               ? ptx_unsupported(statement, "a texture by its name")
		               : ptx_bad(statement, "an object and coordinates in brackets are due");
	if (operand->count < texel->dimensions)
		return ptx_bad(statement, "coordinates are missing");
	insn->a = operand->operand;
	for (unsigned n = 0; n < texel->dimensions; n++)
		if (!ptx_item_source(statement, operand, n, type, false, &texel->place[n]))
			return false;
	return true;
}

static bool decode_texture(struct statement *statement, int unused)
{
	struct insn insn = INSN_INIT;
	struct texel *texel = ptx_load_keep(statement->loader, sizeof(*texel));
	struct operand *result = &statement->operands[0];

	if (!texel)
		return false;
	texel->dimensions = take_dimensions(statement);
	bool four = ptx_modifier(statement, "v4");
	enum ptx_type type = ptx_modifier_type(statement), place = ptx_modifier_type(statement);
	if (!texel->dimensions || !four || (type != TY_F32 && type != TY_U32 && type != TY_S32) ||
	    (place != TY_F32 && place != TY_S32))
		return ptx_unsupported(statement, NULL);
	texel->count = 4;
	texel->bytes = 4;
	texel->by_float = place == TY_F32;
	texel->to_float = type == TY_F32;
	if (!ptx_operand_count(statement, 2, 2) || !take_place(statement, 1, place, &insn, texel))
		return false;
	if (result->kind != OPERAND_VECTOR || result->count != 4)
		return ptx_bad(statement, "four registers are due");
	for (unsigned n = 0; n < 4; n++) {
		struct operand item = {
			.kind = result->item_kinds[n], .operand = result->items[n], .type = result->item_types[n]};

		if (!ptx_destination_of(statement, &item, type, false, &texel->value[n], NULL))
			return false;
	}
	insn.extra = texel;
	insn.run = ptx_step_texture(TEXTURE_SAMPLE);
	return ptx_put(statement, insn);
}

/* The registers or values of a surface's load or store: braces, also around one. */
static bool take_values(struct statement *statement, unsigned index, bool load, enum ptx_type type, struct texel *texel)
{
	struct operand *operand = &statement->operands[index];

	if (operand->kind != OPERAND_VECTOR ? texel->count != 1 : operand->count != texel->count)
		return ptx_bad(statement, "the vector's length is not the instruction's");
	for (unsigned n = 0; n < texel->count; n++) {
		struct operand item = *operand;

		if (operand->kind == OPERAND_VECTOR)
			item = (struct operand){.kind = operand->item_kinds[n],
			                        .operand = operand->items[n],
			                        .type = operand->item_types[n]};
		if (load ? !ptx_destination_of(statement, &item, type, true, &texel->value[n], NULL)
		    : operand->kind == OPERAND_VECTOR
		            ? !ptx_item_source(statement, operand, n, type, true, &texel->value[n])
		            : !ptx_wide_source(statement, index, type, &texel->value[n]))
			return false;
	}
	return true;
}

static bool decode_surface(struct statement *statement, int load)
{
	struct insn insn = INSN_INIT;
	struct texel *texel = ptx_load_keep(statement->loader, sizeof(*texel));

	if (!texel)
		return false;
	bool bytes = ptx_modifier(statement, "b");
	texel->dimensions = take_dimensions(statement);
	texel->count = ptx_modifier(statement, "v2") ? 2 : ptx_modifier(statement, "v4") ? 4 : 1;
	enum ptx_type type = ptx_modifier_type(statement);
	bool trap = ptx_modifier(statement, "trap"), clamp = ptx_modifier(statement, "clamp");
	if (!bytes || !texel->dimensions || (type != TY_B8 && type != TY_B16 && type != TY_B32 && type != TY_B64) ||
	    (!trap && !clamp && !ptx_modifier(statement, "zero")))
		return ptx_unsupported(statement, NULL);
	texel->bytes = (uint8_t)ptx_type_bytes(type);
	texel->edge = trap ? EDGE_TRAP : clamp ? EDGE_CLAMP : EDGE_ZERO;
	if (!ptx_operand_count(statement, 2, 2) || !take_place(statement, load ? 1 : 0, TY_S32, &insn, texel) ||
	    !take_values(statement, load ? 0 : 1, load, type, texel))
		return false;
	insn.extra = texel;
	insn.run = ptx_step_texture(load ? TEXTURE_LOAD : TEXTURE_STORE);
	return ptx_put(statement, insn);
}

static bool decode_size(struct statement *statement, int unused)
{
	static const char *const words[] = {"width", "height", "depth"};
	struct insn insn = INSN_INIT;
	struct operand *operand = &statement->operands[1];
	unsigned which = 0;

	while (which < 3 && !ptx_modifier(statement, words[which]))
		which++;
	if (which == 3 || ptx_modifier_type(statement) != TY_B32)
		return ptx_unsupported(statement, NULL);
	if (!ptx_operand_count(statement, 2, 2) || !ptx_destination(statement, 0, TY_B32, &insn.d))
		return false;
	if (operand->kind != OPERAND_ADDRESS || operand->symbol || operand->operand == NO_OPERAND || operand->count ||
	    operand->offset || ptx_type_bytes(operand->type) != 8)
		return ptx_bad(statement, "an object in brackets is due");
	insn.a = operand->operand;
	insn.op = (uint8_t)which;
	insn.run = ptx_step_texture(TEXTURE_SIZE);
	return ptx_put(statement, insn);
}

const struct rule ptx_rules_texture[] = {
	{"tex", decode_texture, 0}, {"suld", decode_surface, true}, {"sust", decode_surface, false},
	{"txq", decode_size, 0},    {"suq", decode_size, 0},        {0},
};
