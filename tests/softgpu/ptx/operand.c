/* Operands as written: registers, special registers, constants, names, addresses, vectors. */
#include <string.h>

#include "tests/softgpu/ptx/load.h"

static const struct {
	const char *name;
	enum special special;
	enum ptx_type type;
} specials[] = {
	{"%tid.x", SP_TID_X, TY_U32},
	{"%tid.y", SP_TID_Y, TY_U32},
	{"%tid.z", SP_TID_Z, TY_U32},
	{"%ntid.x", SP_NTID_X, TY_U32},
	{"%ntid.y", SP_NTID_Y, TY_U32},
	{"%ntid.z", SP_NTID_Z, TY_U32},
	{"%ctaid.x", SP_CTAID_X, TY_U32},
	{"%ctaid.y", SP_CTAID_Y, TY_U32},
	{"%ctaid.z", SP_CTAID_Z, TY_U32},
	{"%nctaid.x", SP_NCTAID_X, TY_U32},
	{"%nctaid.y", SP_NCTAID_Y, TY_U32},
	{"%nctaid.z", SP_NCTAID_Z, TY_U32},
	{"%laneid", SP_LANEID, TY_U32},
	{"%warpid", SP_WARPID, TY_U32},
	{"%nwarpid", SP_NWARPID, TY_U32},
	{"%clusterid.x", SP_CLUSTERID_X, TY_U32},
	{"%clusterid.y", SP_CLUSTERID_Y, TY_U32},
	{"%clusterid.z", SP_CLUSTERID_Z, TY_U32},
	{"%nclusterid.x", SP_NCLUSTERID_X, TY_U32},
	{"%nclusterid.y", SP_NCLUSTERID_Y, TY_U32},
	{"%nclusterid.z", SP_NCLUSTERID_Z, TY_U32},
	{"%cluster_ctaid.x", SP_CLUSTER_CTAID_X, TY_U32},
	{"%cluster_ctaid.y", SP_CLUSTER_CTAID_Y, TY_U32},
	{"%cluster_ctaid.z", SP_CLUSTER_CTAID_Z, TY_U32},
	{"%cluster_nctaid.x", SP_CLUSTER_NCTAID_X, TY_U32},
	{"%cluster_nctaid.y", SP_CLUSTER_NCTAID_Y, TY_U32},
	{"%cluster_nctaid.z", SP_CLUSTER_NCTAID_Z, TY_U32},
	{"%cluster_ctarank", SP_CLUSTER_RANK, TY_U32},
	{"%cluster_nctarank", SP_CLUSTER_SIZE, TY_U32},
	{"%is_explicit_cluster", SP_CLUSTER_EXPLICIT, TY_PRED},
	{"%smid", SP_ZERO, TY_U32},
	{"%nsmid", SP_ONE, TY_U32},
	{"%gridid", SP_ZERO, TY_U64},
	{"%dynamic_smem_size", SP_DYNAMIC_SHARED, TY_U32},
	{"%total_smem_size", SP_TOTAL_SHARED, TY_U32},
	{"%lanemask_eq", SP_MASK_EQ, TY_U32},
	{"%lanemask_le", SP_MASK_LE, TY_U32},
	{"%lanemask_lt", SP_MASK_LT, TY_U32},
	{"%lanemask_ge", SP_MASK_GE, TY_U32},
	{"%lanemask_gt", SP_MASK_GT, TY_U32},
	{"%clock", SP_CLOCK, TY_U32},
	{"%clock_hi", SP_CLOCK_HI, TY_U32},
	{"%clock64", SP_CLOCK64, TY_U64},
	{"%globaltimer", SP_TIMER, TY_U64},
	{"%globaltimer_lo", SP_TIMER_LO, TY_U32},
	{"%globaltimer_hi", SP_TIMER_HI, TY_U32},
};

static bool find_special(struct slice name, struct operand *operand)
{
	for (size_t n = 0; n < sizeof(specials) / sizeof(specials[0]); n++) {
		if (!slice_is(name, specials[n].name))
			continue;
		operand->type = specials[n].type;
		operand->special = specials[n].special;
		operand->kind = specials[n].special >= SP_STORED ? OPERAND_CLOCK : OPERAND_REGISTER;
		operand->operand = OPERAND(BANK_SPECIAL, specials[n].special);
		return true;
	}
	return false;
}

/* Special registers of the ISA that mean something only to a driver or a profiler. */
static bool is_unknown_special(struct slice name)
{
	static const char *const begins[] = {"%envreg", "%pm", "%reserved_smem_offset", "%aggr_smem_size",
	                                     "%current_graph_exec"};

	for (size_t n = 0; n < sizeof(begins) / sizeof(begins[0]); n++)
		if (name.length >= strlen(begins[n]) && !memcmp(name.at, begins[n], strlen(begins[n])))
			return true;
	return false;
}

/* A name by what it stands for. Unknown names stay OPERAND_NAME: only some instructions take labels. */
static bool resolve_name(struct loader *loader, struct operand *operand)
{
	struct ptx_text *text = text_of(loader);
	struct slice name = text->word;

	operand->name = name;
	operand->kind = OPERAND_NAME;
	if (slice_is(name, "_")) {
		operand->kind = OPERAND_SINK;
	} else if (slice_is(name, "WARP_SZ")) {
		operand->kind = OPERAND_CONSTANT;
		operand->constant = (struct constant){.bits = WARP_LANES};
	} else if (ptx_register_find(loader, name, &operand->operand, &operand->type)) {
		operand->kind = OPERAND_REGISTER;
	} else if (text->status == PTX_OK && !find_special(name, operand)) {
		operand->symbol = ptx_symbol_find(loader, name);
		if (operand->symbol && operand->symbol->kind == SYMBOL_VARIABLE)
			operand->kind = OPERAND_VARIABLE;
		else if (operand->symbol && operand->symbol->kind == SYMBOL_FUNCTION)
			operand->kind = OPERAND_FUNCTION;
		else if (name.at[0] == '%' && !operand->symbol)
			return ptx_text_fail(text, is_unknown_special(name) ? PTX_UNSUPPORTED : PTX_INVALID,
			                     "'%.*s' is not %s", SLICE(name),
			                     is_unknown_special(name) ? "supported" : "declared");
	}
	ptx_text_next(text);
	return text->status == PTX_OK;
}

static bool read_offset(struct loader *loader, struct operand *operand)
{
	struct ptx_text *text = text_of(loader);

	if (text_is(text, '+')) {
		/* "+-8" is usual, and a single minus is a sign of the constant. */
		ptx_text_next(text);
		return ptx_integer(loader, &operand->offset);
	}
	return !text_is(text, '-') || ptx_integer(loader, &operand->offset);
}

static bool read_vector(struct loader *loader, struct operand *operand);

/* Behind an object stand coordinates; the operand stays an address. */
static bool read_coordinates(struct loader *loader, struct operand *operand)
{
	struct ptx_text *text = text_of(loader);

	if (!ptx_text_take(text, ','))
		return true;
	if (!ptx_text_need(text, '{') || !read_vector(loader, operand))
		return false;
	operand->kind = OPERAND_ADDRESS;
	return true;
}

static bool read_address(struct loader *loader, struct operand *operand)
{
	struct ptx_text *text = text_of(loader);
	struct operand base = {0};

	operand->kind = OPERAND_ADDRESS;
	operand->operand = NO_OPERAND;
	if (text->token != TOKEN_NAME)
		return ptx_integer(loader, &operand->offset) && ptx_text_need(text, ']');
	if (!resolve_name(loader, &base))
		return false;
	if (base.kind != OPERAND_REGISTER && base.kind != OPERAND_VARIABLE)
		return ptx_text_fail(text, PTX_INVALID, "'%.*s' is no address", SLICE(base.name));
	if (base.kind == OPERAND_REGISTER)
		operand->operand = base.operand;
	operand->type = base.type;
	operand->symbol = base.symbol;
	operand->name = base.name;
	return read_offset(loader, operand) && read_coordinates(loader, operand) && ptx_text_need(text, ']');
}

static bool read_vector(struct loader *loader, struct operand *operand)
{
	struct ptx_text *text = text_of(loader);

	operand->kind = OPERAND_VECTOR;
	do {
		struct operand item = {0};
		unsigned n = operand->count;

		if (n == 8)
			return ptx_text_fail(text, PTX_INVALID, "more than 8 elements in a vector");
		if (text->token == TOKEN_NAME) {
			if (!resolve_name(loader, &item))
				return false;
			if (item.kind != OPERAND_REGISTER && item.kind != OPERAND_SINK)
				return ptx_text_fail(text, item.kind == OPERAND_NAME ? PTX_INVALID : PTX_UNSUPPORTED,
				                     "'%.*s' in a vector", SLICE(item.name));
		} else {
			item.kind = OPERAND_CONSTANT;
			if (!ptx_expression(loader, &item.constant))
				return false;
		}
		operand->item_kinds[n] = item.kind;
		operand->items[n] = item.operand;
		operand->item_types[n] = item.type;
		operand->item_constants[n] = item.constant;
		operand->count++;
	} while (ptx_text_take(text, ','));
	return ptx_text_need(text, '}');
}

static bool read_operand(struct loader *loader, struct operand *operand)
{
	struct ptx_text *text = text_of(loader);

	*operand = (struct operand){0};
	if (ptx_text_take(text, '{'))
		return read_vector(loader, operand);
	if (ptx_text_take(text, '['))
		return read_address(loader, operand);
	if (text_is(text, '!')) {
		ptx_text_next(text);
		operand->negated = true;
		if (text->token != TOKEN_NAME)
			return ptx_text_fail(text, PTX_INVALID, "a predicate is due here");
	}
	if (text->token != TOKEN_NAME) {
		operand->kind = OPERAND_CONSTANT;
		return ptx_expression(loader, &operand->constant);
	}
	if (!resolve_name(loader, operand))
		return false;
	if (operand->kind == OPERAND_VARIABLE || operand->kind == OPERAND_CONSTANT)
		return read_offset(loader, operand);
	return true;
}

bool ptx_operands_read(struct loader *loader, struct statement *statement)
{
	struct ptx_text *text = text_of(loader);

	if (text_is(text, ';'))
		return true;
	do {
		if (statement->operand_count == OPERANDS_LIMIT)
			return ptx_text_fail(text, PTX_INVALID, "more than %u operands", OPERANDS_LIMIT);
		if (!read_operand(loader, &statement->operands[statement->operand_count++]))
			return false;
		if (text_is(text, '|')) {
			ptx_text_next(text);
			if (statement->operand_count != 1)
				return ptx_text_fail(text, PTX_INVALID, "'|' belongs behind the first operand");
			if (!read_operand(loader, &statement->second))
				return false;
			statement->has_second = true;
		}
	} while (ptx_text_take(text, ','));
	return true;
}
