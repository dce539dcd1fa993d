/* Branches, calls, barriers, and what the lanes of a warp do together. */
#include "tests/softgpu/ptx/load.h"

static bool decode_branch(struct statement *statement, int unused)
{
	struct loader *loader = statement->loader;
	struct insn insn = INSN_INIT;

	ptx_modifier(statement, "uni");
	if (!ptx_operand_count(statement, 1, 1))
		return false;
	if (statement->operands[0].kind != OPERAND_NAME)
		return ptx_bad(statement, "a label is due");
	insn.run = ptx_step_control(CONTROL_BRANCH);
	return ptx_put(statement, insn) && ptx_label_use(loader, statement->operands[0].name, statement->line,
	                                                 loader->function->code_count - 1, NULL);
}

static bool decode_table(struct statement *statement, int unused)
{
	struct insn insn = INSN_INIT;

	ptx_modifier(statement, "uni");
	if (!ptx_modifier(statement, "idx"))
		return ptx_unsupported(statement, NULL);
	if (!ptx_operand_count(statement, 2, 2) || !ptx_source(statement, 0, TY_U32, &insn.a))
		return false;
	const struct symbol *symbol = statement->operands[1].symbol;
	if (statement->operands[1].kind != OPERAND_NAME || !symbol || symbol->kind != SYMBOL_TABLE)
		return ptx_bad(statement, "a list of branch targets, declared before, is due");
	insn.extra = symbol->targets_of_table;
	insn.imm = symbol->count;
	insn.run = ptx_step_control(CONTROL_TABLE);
	return ptx_put(statement, insn);
}

/* (a, b, c): each a .param variable of this body, or a register or constant. */
static bool read_actuals(struct loader *loader, struct statement *statement, const struct formal *formals,
                         unsigned count, bool out, struct call_actual **ret_actuals)
{
	struct ptx_text *text = text_of(loader);
	struct call_actual *actuals = ptx_load_keep(loader, (count + 1) * sizeof(*actuals));

	if (!actuals)
		return false;
	for (unsigned n = 0; n < count; n++) {
		const struct formal *formal = &formals[n];
		struct call_actual *actual = &actuals[n];
		enum ptx_type type = TY_NONE;
		struct symbol *symbol = text->token == TOKEN_NAME ? ptx_symbol_find(loader, text->word) : NULL;

		*actual = (struct call_actual){.slot = NO_OPERAND, .to = formal->offset, .bytes = formal->bytes};
		if (symbol && symbol->kind == SYMBOL_VARIABLE && symbol->space == SPACE_LOCAL) {
			if (symbol->bytes != formal->bytes)
				return ptx_bad(statement, "an argument's size is not the parameter's");
			actual->from = symbol->address;
			ptx_text_next(text);
		} else if (text->token == TOKEN_NAME) {
			if (!ptx_register_find(loader, text->word, &actual->slot, &type))
				return ptx_bad(statement, "an argument is neither a .param variable nor a register");
			if (type == TY_PRED || ptx_type_bytes(type) != formal->bytes)
				return ptx_bad(statement, "an argument's size is not the parameter's");
			if (out)
				actual->slot &= 0x3fffffff;
			ptx_text_next(text);
		} else {
			struct constant value;

			if (out || formal->bytes > 8)
				return ptx_bad(statement, "an argument is neither a .param variable nor a register");
			if (!ptx_expression(loader, &value) || !ptx_constant(loader, value.bits, &actual->slot))
				return false;
		}
		if (n + 1 < count && !ptx_text_need(text, ','))
			return false;
	}
	*ret_actuals = actuals;
	return ptx_text_need(text, ')');
}

/*
 * call{.uni} [(results),] name[, (arguments)][, prototype]; results come before the callee is known, so they are read
 * twice.
 */
bool ptx_call_read(struct loader *loader, struct statement *statement)
{
	struct ptx_text *text = text_of(loader), results = *text;
	bool has_results = text_is(text, '(');
	struct insn insn = INSN_INIT;

	ptx_modifier(statement, "uni");
	if (has_results) {
		while (text->token != TOKEN_END && !text_is(text, ')'))
			ptx_text_next(text);
		if (!ptx_text_need(text, ')') || !ptx_text_need(text, ','))
			return false;
	}
	if (text->token != TOKEN_NAME)
		return ptx_bad(statement, "a function's name is due");
	struct symbol *symbol = ptx_symbol_find(loader, text->word);
	if (!symbol || symbol->kind != SYMBOL_FUNCTION)
		return symbol || text->word.at[0] == '%'
		               ? ptx_unsupported(statement, "only functions of the module can be called, by name")
		               : ptx_bad(statement, "the function is not declared");
	struct ptx_function *callee = symbol->function;
	struct call_site *site = ptx_load_keep(loader, sizeof(*site));
	if (!site || callee->entry)
		return site ? ptx_unsupported(statement, "a kernel cannot be called") : false;
	ptx_text_next(text);
	site->callee = callee;
	site->in_count = callee->formal_count;
	site->out_count = callee->result_count;
	if (has_results != (callee->result_count != 0))
		return ptx_bad(statement, "the number of results is not the function's");
	if (has_results) {
		struct ptx_text rest = *text;

		*text = results;
		ptx_text_next(text);
		if (!read_actuals(loader, statement, callee->results, callee->result_count, true, &site->out))
			return false;
		*text = rest;
	}
	if (ptx_text_take(text, ',')) {
		if (!ptx_text_need(text, '('))
			return false;
		if (!callee->formal_count
		            ? !ptx_text_need(text, ')')
		            : !read_actuals(loader, statement, callee->formals, callee->formal_count, false, &site->in))
			return false;
	} else if (callee->formal_count) {
		return ptx_bad(statement, "the number of arguments is not the function's");
	}
	callee->called = true;
	loader->function->calls = true;
	insn.extra = site;
	insn.run = ptx_step_control(CONTROL_CALL);
	return ptx_put(statement, insn);
}

static bool decode_plain(struct statement *statement, int op)
{
	struct insn insn = INSN_INIT;

	ptx_modifier(statement, "uni");
	insn.run = ptx_step_control(op);
	return ptx_operand_count(statement, 0, 0) && ptx_put(statement, insn);
}

static bool decode_nanosleep(struct statement *statement, int unused)
{
	struct insn insn = INSN_INIT;

	insn.run = ptx_modifier_type(statement) == TY_U32 ? ptx_step_control(CONTROL_SLEEP) : NULL;
	return ptx_operand_count(statement, 1, 1) && ptx_source(statement, 0, TY_U32, &insn.a) &&
	       ptx_put(statement, insn);
}

static bool decode_cluster_barrier(struct statement *statement)
{
	struct insn insn = INSN_INIT;
	bool arrive = ptx_modifier(statement, "arrive"), wait = ptx_modifier(statement, "wait");

	ptx_modifier(statement, "release");
	ptx_modifier(statement, "relaxed");
	ptx_modifier(statement, "acquire");
	ptx_modifier(statement, "aligned");
	insn.run = arrive == wait ? NULL : ptx_step_cluster(arrive ? CLUSTER_ARRIVE : CLUSTER_WAIT);
	return ptx_operand_count(statement, 0, 0) && ptx_put(statement, insn);
}

/* bar.warp.sync is a warp's; all others are the block's. */
static bool decode_barrier(struct statement *statement, int unused)
{
	struct insn insn = INSN_INIT;
	bool arrive, red;
	unsigned at = 0;

	if (ptx_modifier(statement, "warp")) {
		if (!ptx_modifier(statement, "sync"))
			return ptx_unsupported(statement, NULL);
		insn.run = ptx_step_warp(WARP_SYNC);
		return ptx_operand_count(statement, 1, 1) && ptx_source(statement, 0, TY_B32, &insn.m) &&
		       ptx_put(statement, insn);
	}
	if (ptx_modifier(statement, "cluster"))
		return decode_cluster_barrier(statement);
	ptx_modifier(statement, "cta");
	ptx_modifier(statement, "aligned");
	arrive = ptx_modifier(statement, "arrive");
	red = ptx_modifier(statement, "red");
	if (!arrive && !red && !ptx_modifier(statement, "sync"))
		return ptx_unsupported(statement, NULL);
	insn.run = ptx_step_control(arrive ? CONTROL_ARRIVE : CONTROL_BARRIER);
	insn.b = NO_OPERAND;
	if (red) {
		bool popc = ptx_modifier(statement, "popc"), both = ptx_modifier(statement, "and"),
		     any = ptx_modifier(statement, "or");
		enum ptx_type type = ptx_modifier_type(statement);

		if (popc + both + any != 1 || type != (popc ? TY_U32 : TY_PRED))
			return ptx_unsupported(statement, NULL);
		insn.op = popc ? ATOM_ADD : both ? ATOM_AND : ATOM_OR;
		if (!ptx_operand_count(statement, 3, 4) || !ptx_destination(statement, 0, type, &insn.d) ||
		    !ptx_source(statement, statement->operand_count - 1, TY_PRED, &insn.c))
			return false;
		statement->operand_count--;
		at = 1;
	} else if (!ptx_operand_count(statement, arrive ? 2 : 1, 2)) {
		return false;
	}
	if (!ptx_source(statement, at, TY_U32, &insn.a))
		return false;
	if (statement->operand_count > at + 1 && !ptx_source(statement, at + 1, TY_U32, &insn.b))
		return false;
	return ptx_put(statement, insn);
}

static bool second_predicate(struct statement *statement, struct insn *insn)
{
	return !statement->has_second ||
	       ptx_destination_of(statement, &statement->second, TY_PRED, false, &insn->e, NULL);
}

static bool decode_shuffle(struct statement *statement, int unused)
{
	static const char *const modes[] = {"up", "down", "bfly", "idx"};
	struct insn insn = INSN_INIT;
	bool is_sync = ptx_modifier(statement, "sync");
	unsigned mode = 0;

	while (mode < 4 && !ptx_modifier(statement, modes[mode]))
		mode++;
	if (mode == 4 || ptx_modifier_type(statement) != TY_B32)
		return ptx_unsupported(statement, NULL);
	insn.run = ptx_step_warp(WARP_SHFL_UP + mode);
	if (!ptx_operand_count(statement, 4 + is_sync, 4 + is_sync) || !ptx_destination(statement, 0, TY_B32, &insn.d) ||
	    !second_predicate(statement, &insn) || !ptx_source(statement, 1, TY_B32, &insn.a) ||
	    !ptx_source(statement, 2, TY_B32, &insn.b) || !ptx_source(statement, 3, TY_B32, &insn.c))
		return false;
	return (!is_sync || ptx_source(statement, 4, TY_B32, &insn.m)) && ptx_put(statement, insn);
}

static bool decode_vote(struct statement *statement, int unused)
{
	static const char *const modes[] = {"all", "any", "uni", "ballot"};
	struct insn insn = INSN_INIT;
	bool is_sync = ptx_modifier(statement, "sync");
	unsigned mode = 0;

	while (mode < 4 && !ptx_modifier(statement, modes[mode]))
		mode++;
	enum ptx_type type = ptx_modifier_type(statement);
	if (mode == 4 || type != (mode == 3 ? TY_B32 : TY_PRED))
		return ptx_unsupported(statement, NULL);
	insn.run = ptx_step_warp(WARP_VOTE_ALL + mode);
	if (!ptx_operand_count(statement, 2 + is_sync, 2 + is_sync) || !ptx_destination(statement, 0, type, &insn.d) ||
	    !ptx_source(statement, 1, TY_PRED, &insn.a))
		return false;
	return (!is_sync || ptx_source(statement, 2, TY_B32, &insn.m)) && ptx_put(statement, insn);
}

static bool decode_match(struct statement *statement, int unused)
{
	struct insn insn = INSN_INIT;
	bool any = ptx_modifier(statement, "any");

	if (ptx_modifier(statement, "all") == any || !ptx_modifier(statement, "sync") || (any && statement->has_second))
		return ptx_unsupported(statement, NULL);
	enum ptx_type type = ptx_modifier_type(statement);
	if (type != TY_B32 && type != TY_B64)
		return ptx_unsupported(statement, NULL);
	insn.run = ptx_step_warp(any ? WARP_MATCH_ANY : WARP_MATCH_ALL);
	return ptx_operand_count(statement, 3, 3) && ptx_destination(statement, 0, TY_B32, &insn.d) &&
	       second_predicate(statement, &insn) && ptx_source(statement, 1, type, &insn.a) &&
	       ptx_source(statement, 2, TY_B32, &insn.m) && ptx_put(statement, insn);
}

static bool decode_redux(struct statement *statement, int unused)
{
	static const struct {
		const char *word;
		enum atom_op op;
	} ops[] = {{"add", ATOM_ADD}, {"min", ATOM_MIN}, {"max", ATOM_MAX},
	           {"and", ATOM_AND}, {"or", ATOM_OR},   {"xor", ATOM_XOR}};
	struct insn insn = INSN_INIT;
	unsigned n = 0;

	while (n < 6 && !ptx_modifier(statement, ops[n].word))
		n++;
	enum ptx_type type = ptx_modifier_type(statement);
	if (n == 6 || !ptx_modifier(statement, "sync") || (n < 3 ? type != TY_U32 && type != TY_S32 : type != TY_B32))
		return ptx_unsupported(statement, NULL);
	insn.op = ops[n].op;
	insn.type = type;
	insn.run = ptx_step_warp(WARP_REDUX);
	return ptx_operand_count(statement, 3, 3) && ptx_destination(statement, 0, type, &insn.d) &&
	       ptx_source(statement, 1, type, &insn.a) && ptx_source(statement, 2, TY_B32, &insn.m) &&
	       ptx_put(statement, insn);
}

static bool decode_elect(struct statement *statement, int unused)
{
	struct insn insn = INSN_INIT;

	if (!ptx_modifier(statement, "sync") || !statement->has_second)
		return ptx_unsupported(statement, NULL);
	insn.run = ptx_step_warp(WARP_ELECT);
	if (!ptx_operand_count(statement, 2, 2) || !second_predicate(statement, &insn) ||
	    !ptx_source(statement, 1, TY_B32, &insn.m))
		return false;
	return (statement->operands[0].kind == OPERAND_SINK || ptx_destination(statement, 0, TY_B32, &insn.d)) &&
	       ptx_put(statement, insn);
}

static bool decode_activemask(struct statement *statement, int unused)
{
	struct insn insn = INSN_INIT;

	insn.run = ptx_modifier_type(statement) == TY_B32 ? ptx_step_warp(WARP_ACTIVEMASK) : NULL;
	return ptx_operand_count(statement, 1, 1) && ptx_destination(statement, 0, TY_B32, &insn.d) &&
	       ptx_put(statement, insn);
}

const struct rule ptx_rules_control[] = {
	{"bra", decode_branch, 0},
	{"brx", decode_table, 0},
	{"ret", decode_plain, CONTROL_RETURN},
	{"exit", decode_plain, CONTROL_EXIT},
	{"trap", decode_plain, CONTROL_TRAP},
	{"brkpt", decode_plain, CONTROL_TRAP},
	{"nanosleep", decode_nanosleep, 0},
	{"bar", decode_barrier, 0},
	{"barrier", decode_barrier, 0},
	{"shfl", decode_shuffle, 0},
	{"vote", decode_vote, 0},
	{"match", decode_match, 0},
	{"redux", decode_redux, 0},
	{"elect", decode_elect, 0},
	{"activemask", decode_activemask, 0},
	{0},
};
