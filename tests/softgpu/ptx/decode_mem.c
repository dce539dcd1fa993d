/* Loads, stores, atomics, and hints about memory that change nothing here. */
#include <string.h>

#include "tests/softgpu/ptx/load.h"

static bool begins(struct slice word, const char *with)
{
	size_t length = strlen(with);

	return word.length >= length && !memcmp(word.at, with, length);
}

/*
 * Caching, ordering, scope and eviction: every access here is coherent, and fences are separate or implied by the
 * host's order.
 */
static void take_hints(struct statement *statement, bool *ret_policy)
{
	static const char *const words[] = {"ca",  "cg",       "cs",      "lu",      "cv",      "wb",      "wt",
	                                    "nc",  "volatile", "relaxed", "acquire", "release", "acq_rel", "weak",
	                                    "cta", "cluster",  "gpu",     "sys",     "mmio",    "noftz",   "unified"};

	*ret_policy = false;
	for (unsigned n = 0; n < statement->modifier_count; n++) {
		struct slice word = statement->modifiers[n];

		if (slice_is(word, "L2::cache_hint"))
			*ret_policy = true;
		for (unsigned k = 0; k < sizeof(words) / sizeof(words[0]); k++)
			statement->used[n] = statement->used[n] || slice_is(word, words[k]);
		statement->used[n] = statement->used[n] || begins(word, "L1::") || begins(word, "L2::") ||
		                     begins(word, "level::");
	}
}

static enum ptx_space take_space(struct statement *statement)
{
	static const struct {
		const char *word;
		enum ptx_space space;
	} words[] = {{"global", SPACE_GLOBAL},
	             {"const", SPACE_CONST},
	             {"shared", SPACE_SHARED},
	             {"shared::cta", SPACE_SHARED},
	             {"shared::cluster", SPACE_SHARED},
	             {"local", SPACE_LOCAL},
	             {"param", SPACE_PARAM},
	             {"param::entry", SPACE_PARAM},
	             {"param::func", SPACE_PARAM}};

	for (unsigned n = 0; n < sizeof(words) / sizeof(words[0]); n++)
		if (ptx_modifier(statement, words[n].word))
			return words[n].space;
	return SPACE_GENERIC;
}

/* A cache policy operand is checked and dropped. */
static bool drop_policy(struct statement *statement, bool policy)
{
	uint32_t ignored;

	if (!policy)
		return true;
	if (!statement->operand_count || !ptx_source(statement, statement->operand_count - 1, TY_B64, &ignored))
		return ptx_bad(statement, "a cache policy is due");
	statement->operand_count--;
	return true;
}

static unsigned take_vector(struct statement *statement)
{
	return ptx_modifier(statement, "v2")   ? 2
	       : ptx_modifier(statement, "v4") ? 4
	       : ptx_modifier(statement, "v8") ? 8
	                                       : 1;
}

/* The registers or values of a load or store, one or a vector of them. */
static bool take_elements(struct statement *statement, unsigned index, bool load, enum ptx_type type, struct insn *insn)
{
	struct operand *operand = &statement->operands[index];
	bool vector = operand->kind == OPERAND_VECTOR;
	uint32_t *slots = ptx_load_keep(statement->loader, insn->count * sizeof(*slots));
	unsigned bytes = insn->width;

	if (!slots)
		return false;
	/* Braces around a single element are usual in generated code. */
	if (vector ? operand->count != insn->count : insn->count > 1)
		return ptx_bad(statement, "the vector's length is not the instruction's");
	insn->op = 0;
	for (unsigned n = 0; n < insn->count; n++) {
		struct operand item = *operand;

		if (vector)
			item = (struct operand){.kind = operand->item_kinds[n],
			                        .operand = operand->items[n],
			                        .type = operand->item_types[n]};
		if (!load) {
			if (vector ? !ptx_item_source(statement, operand, n, type, true, &slots[n])
			           : !ptx_wide_source(statement, index, type, &slots[n]))
				return false;
			continue;
		}
		if (!ptx_destination_of(statement, &item, type, true, &slots[n], &bytes))
			return false;
		if (n && item.kind != OPERAND_SINK && insn->op && bytes != insn->op)
			return ptx_unsupported(statement, "registers of different widths");
		if (item.kind != OPERAND_SINK)
			insn->op = (uint8_t)bytes;
	}
	if (!insn->op)
		insn->op = insn->width;
	insn->extra = slots;
	return true;
}

static bool decode_access(struct statement *statement, int op)
{
	struct insn insn = INSN_INIT;
	bool load = op == MEM_LOAD, policy;

	insn.space = take_space(statement);
	take_hints(statement, &policy);
	insn.count = (uint8_t)take_vector(statement);
	enum ptx_type type = ptx_modifier_type(statement);
	if (type == TY_NONE || type == TY_PRED)
		return ptx_unsupported(statement, NULL);
	insn.type = type;
	insn.width = (uint8_t)ptx_type_bytes(type);
	if (insn.count * insn.width > 32)
		return ptx_bad(statement, "more than 32 bytes");
	if (!drop_policy(statement, policy) || !ptx_operand_count(statement, 2, 2) ||
	    !ptx_address(statement, load ? 1 : 0, &insn))
		return false;
	if (!load && (insn.space == SPACE_CONST || insn.space == SPACE_PARAM))
		return ptx_bad(statement, "this state space cannot be written");
	insn.run = ptx_step_memory(op);
	return take_elements(statement, load ? 0 : 1, load, type, &insn) && ptx_put(statement, insn);
}

static const char *const atomics[ATOM_COUNT] = {
	[ATOM_ADD] = "add", [ATOM_MIN] = "min", [ATOM_MAX] = "max", [ATOM_INC] = "inc",   [ATOM_DEC] = "dec",
	[ATOM_AND] = "and", [ATOM_OR] = "or",   [ATOM_XOR] = "xor", [ATOM_EXCH] = "exch", [ATOM_CAS] = "cas",
};

static bool decode_atomic(struct statement *statement, int is_red)
{
	struct insn insn = INSN_INIT;
	unsigned op = 0, at = is_red ? 0 : 1;
	bool policy;

	insn.space = take_space(statement);
	take_hints(statement, &policy);
	while (op < ATOM_COUNT && !ptx_modifier(statement, atomics[op]))
		op++;
	enum ptx_type type = ptx_modifier_type(statement);
	if (op == ATOM_COUNT || type == TY_NONE ||
	    (insn.space != SPACE_GENERIC && insn.space != SPACE_GLOBAL && insn.space != SPACE_SHARED) ||
	    (is_red && (op == ATOM_EXCH || op == ATOM_CAS)))
		return ptx_unsupported(statement, NULL);
	insn.run = ptx_step_atomic(op, type);
	insn.type = type;
	unsigned operands = at + (op == ATOM_CAS ? 3 : 2);
	if (!drop_policy(statement, policy) || !ptx_operand_count(statement, operands, operands) ||
	    !ptx_address(statement, at, &insn) || !ptx_source(statement, at + 1, type, &insn.b))
		return false;
	if (op == ATOM_CAS && !ptx_source(statement, at + 2, type, &insn.c))
		return false;
	/* atom with "_" as destination is red. */
	if (!is_red && statement->operands[0].kind != OPERAND_SINK && !ptx_destination(statement, 0, type, &insn.d))
		return false;
	return ptx_put(statement, insn);
}

static bool accept_all(struct statement *statement)
{
	for (unsigned n = 0; n < statement->modifier_count; n++)
		statement->used[n] = true;
	return true;
}

static bool has_modifier(const struct statement *statement, const char *word)
{
	for (unsigned n = 0; n < statement->modifier_count; n++)
		if (slice_is(statement->modifiers[n], word))
			return true;
	return false;
}

/* Copies at once; committing and waiting have nothing to do. */
static bool decode_cp(struct statement *statement, int unused)
{
	struct insn insn = INSN_INIT, from = INSN_INIT;
	bool policy;

	if (!ptx_modifier(statement, "async"))
		return ptx_unsupported(statement, NULL);
	if (has_modifier(statement, "bulk") || has_modifier(statement, "mbarrier"))
		return ptx_decode_bulk(statement);
	if (ptx_modifier(statement, "commit_group") || ptx_modifier(statement, "wait_group") ||
	    ptx_modifier(statement, "wait_all")) {
		insn.run = ptx_step_control(CONTROL_NOTHING);
		return ptx_operand_count(statement, 0, 1) && ptx_put(statement, insn);
	}
	take_hints(statement, &policy);
	bool shared = ptx_modifier(statement, "shared") || ptx_modifier(statement, "shared::cta");
	if (!shared || !ptx_modifier(statement, "global"))
		return ptx_unsupported(statement, NULL);
	insn.space = SPACE_SHARED;
	from.space = SPACE_GLOBAL;
	if (!drop_policy(statement, policy) || !ptx_operand_count(statement, 3, 4) ||
	    !ptx_address(statement, 0, &insn) || !ptx_address(statement, 1, &from))
		return false;
	const struct operand *bytes = &statement->operands[2];
	if (bytes->kind != OPERAND_CONSTANT ||
	    (bytes->constant.bits != 4 && bytes->constant.bits != 8 && bytes->constant.bits != 16))
		return ptx_bad(statement, "4, 8 or 16 bytes are due");
	insn.width = (uint8_t)bytes->constant.bits;
	insn.b = from.a;
	insn.extra = (const void *)(uintptr_t)from.imm;
	if (statement->operand_count == 4 && !ptx_source(statement, 3, TY_U32, &insn.c))
		return false;
	insn.run = ptx_step_memory(MEM_COPY);
	return ptx_put(statement, insn);
}

static bool decode_hint(struct statement *statement, int unused)
{
	struct insn insn = INSN_INIT;

	insn.run = ptx_step_control(CONTROL_NOTHING);
	return accept_all(statement) && ptx_emit(statement->loader, statement, insn);
}

static bool decode_fence(struct statement *statement, int unused)
{
	static const char *const words[] = {
		"cta",     "gl",    "sys",   "gpu",   "cluster", "sc",          "acq_rel",         "acquire",
		"release", "proxy", "async", "alias", "global",  "shared::cta", "shared::cluster", "mbarrier_init"};
	struct insn insn = INSN_INIT;

	for (unsigned n = 0; n < sizeof(words) / sizeof(words[0]); n++)
		ptx_modifier(statement, words[n]);
	insn.run = ptx_step_control(CONTROL_FENCE);
	return ptx_operand_count(statement, 0, 0) && ptx_put(statement, insn);
}

/* Policies only steer caches, so any value will do. */
static bool decode_policy(struct statement *statement, int unused)
{
	struct insn insn = INSN_INIT;

	accept_all(statement);
	insn.run = ptx_step_bit(BIT_MOV, TY_B64);
	return ptx_operand_count(statement, 1, 4) && ptx_destination(statement, 0, TY_B64, &insn.d) &&
	       ptx_constant(statement->loader, 0, &insn.a) && ptx_put(statement, insn);
}

const struct rule ptx_rules_memory[] = {
	{"ld", decode_access, MEM_LOAD},
	{"ldu", decode_access, MEM_LOAD},
	{"st", decode_access, MEM_STORE},
	{"atom", decode_atomic, false},
	{"red", decode_atomic, true},
	{"cp", decode_cp, 0},
	{"prefetch", decode_hint, 0},
	{"prefetchu", decode_hint, 0},
	{"applypriority", decode_hint, 0},
	{"discard", decode_hint, 0},
	{"griddepcontrol", decode_hint, 0}, /* launches here wait for those before them anyway */
	{"pmevent", decode_hint, 0},
	{"membar", decode_fence, 0},
	{"fence", decode_fence, 0},
	{"createpolicy", decode_policy, 0},
	{0},
};
