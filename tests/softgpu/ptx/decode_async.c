/* Asynchronous barriers in shared memory, the bulk copies that they count, and addresses of a cluster's blocks. */
#include "tests/softgpu/ptx/load.h"

/* Ordering and scope change nothing: a block runs on one host thread. */
static void take_order(struct statement *statement)
{
	static const char *const words[] = {"relaxed", "acquire",     "release", "cta",
	                                    "cluster", "shared::cta", "shared",  "shared::cluster"};

	for (unsigned n = 0; n < sizeof(words) / sizeof(words[0]); n++)
		ptx_modifier(statement, words[n]);
}

static bool is_shared(const struct statement *statement)
{
	for (unsigned n = 0; n < statement->modifier_count; n++)
		if (slice_is(statement->modifiers[n], "shared") || slice_is(statement->modifiers[n], "shared::cta") ||
		    slice_is(statement->modifiers[n], "shared::cluster"))
			return true;
	return false;
}

/* state, [barrier]{, count or bytes}: with .expect_tx the operand is the bytes, and one arrives. */
static bool decode_arrive(struct statement *statement, struct insn *insn)
{
	bool expect = ptx_modifier(statement, "expect_tx");

	if (ptx_modifier(statement, "noComplete"))
		insn->flags |= FLAG_NAN;
	if (!ptx_operand_count(statement, expect ? 3 : 2, 3) || !ptx_address(statement, 1, insn))
		return false;
	if (statement->operands[0].kind != OPERAND_SINK && !ptx_destination(statement, 0, TY_B64, &insn->d))
		return false;
	insn->op = MBARRIER_ARRIVE;
	return statement->operand_count == 2 || ptx_source(statement, 2, TY_U32, expect ? &insn->c : &insn->b);
}

/* done, [barrier], state or parity{, how long to wait} */
static bool decode_wait(struct statement *statement, struct insn *insn, bool may_sleep)
{
	uint32_t unused;
	bool parity = ptx_modifier(statement, "parity");

	insn->op = may_sleep ? MBARRIER_TRY_WAIT : MBARRIER_TEST_WAIT;
	insn->flags |= parity ? FLAG_HIGH : 0;
	if (!ptx_operand_count(statement, 3, may_sleep ? 4 : 3) || !ptx_destination(statement, 0, TY_PRED, &insn->d) ||
	    !ptx_address(statement, 1, insn) || !ptx_source(statement, 2, parity ? TY_U32 : TY_B64, &insn->b))
		return false;
	return statement->operand_count == 3 || ptx_source(statement, 3, TY_U32, &unused);
}

static bool decode_mbarrier(struct statement *statement, int unused)
{
	static const struct {
		const char *word;
		enum mbarrier_op op;
		unsigned operands;
	} plain[] = {{"init", MBARRIER_INIT, 2},
	             {"inval", MBARRIER_INVALIDATE, 1},
	             {"expect_tx", MBARRIER_EXPECT, 2},
	             {"complete_tx", MBARRIER_COMPLETE, 2}};
	struct insn insn = INSN_INIT;
	bool good = false, arrive = ptx_modifier(statement, "arrive"), drop = ptx_modifier(statement, "arrive_drop");

	insn.b = NO_OPERAND;
	insn.space = is_shared(statement) ? SPACE_SHARED : SPACE_GENERIC;
	take_order(statement);
	insn.flags = drop ? FLAG_CLAMP : 0;
	insn.run = ptx_step_mbarrier();
	if (ptx_modifier_type(statement) != TY_B64)
		return ptx_unsupported(statement, NULL);
	if (arrive || drop)
		return decode_arrive(statement, &insn) && ptx_put(statement, insn);
	if (ptx_modifier(statement, "test_wait"))
		return decode_wait(statement, &insn, false) && ptx_put(statement, insn);
	if (ptx_modifier(statement, "try_wait"))
		return decode_wait(statement, &insn, true) && ptx_put(statement, insn);
	if (ptx_modifier(statement, "pending_count")) {
		insn.run = ptx_step_mbarrier_pending();
		return ptx_operand_count(statement, 2, 2) && ptx_destination(statement, 0, TY_B32, &insn.d) &&
		       ptx_source(statement, 1, TY_B64, &insn.a) && ptx_put(statement, insn);
	}
	for (unsigned n = 0; n < sizeof(plain) / sizeof(plain[0]) && !good; n++) {
		if (!ptx_modifier(statement, plain[n].word))
			continue;
		insn.op = plain[n].op;
		if (!ptx_operand_count(statement, plain[n].operands, plain[n].operands) ||
		    !ptx_address(statement, 0, &insn) ||
		    (plain[n].operands == 2 && !ptx_source(statement, 1, TY_U32, &insn.b)))
			return false;
		good = true;
	}
	return good ? ptx_put(statement, insn) : ptx_unsupported(statement, NULL);
}

/*
 * cp.async.mbarrier.arrive{.noinc}: the copies before it are done; without .noinc one arrival more was awaited, which
 * is this one.
 */
static bool decode_copy_arrive(struct statement *statement)
{
	struct insn insn = INSN_INIT;

	insn.b = NO_OPERAND;
	insn.space = is_shared(statement) ? SPACE_SHARED : SPACE_GENERIC;
	take_order(statement);
	insn.op = MBARRIER_ARRIVE;
	insn.run = ptx_modifier(statement, "noinc") ? ptx_step_mbarrier() : ptx_step_control(CONTROL_NOTHING);
	return ptx_modifier(statement, "arrive") && ptx_modifier_type(statement) == TY_B64
	               ? ptx_operand_count(statement, 1, 1) && ptx_address(statement, 0, &insn) &&
	                         ptx_put(statement, insn)
	               : ptx_unsupported(statement, NULL);
}

/* [to], [from], bytes{, [barrier]}{, policy}. Copies at once. */
static bool decode_bulk_copy(struct statement *statement, bool policy)
{
	struct insn insn = INSN_INIT, from = INSN_INIT, barrier = INSN_INIT;
	struct bulk_copy *copy = ptx_load_keep(statement->loader, sizeof(*copy));
	bool group = ptx_modifier(statement, "bulk_group"),
	     counted = ptx_modifier(statement, "mbarrier::complete_tx::bytes");
	bool cluster = ptx_modifier(statement, "shared::cluster"), own = ptx_modifier(statement, "shared::cta"),
	     global = ptx_modifier(statement, "global");
	unsigned operands = 3 + counted + policy;
	uint32_t ignored;

	if (!copy)
		return false;
	/*
	 * To shared memory from global, counted by a barrier; or from shared memory to global, in a group; or within
	 * shared memory.
	 */
	if (group == counted || cluster + own + global != 2 || (group && (!global || !own)))
		return ptx_unsupported(statement, NULL);
	insn.space = group ? SPACE_GLOBAL : SPACE_SHARED;
	from.space = !group && global ? SPACE_GLOBAL : SPACE_SHARED;
	barrier.space = SPACE_SHARED;
	if (!ptx_operand_count(statement, operands, operands) || !ptx_address(statement, 0, &insn) ||
	    !ptx_address(statement, 1, &from) || !ptx_source(statement, 2, TY_U32, &insn.c) ||
	    (counted && !ptx_address(statement, 3, &barrier)) ||
	    (policy && !ptx_source(statement, operands - 1, TY_B64, &ignored)))
		return false;
	*copy = (struct bulk_copy){from.a, counted ? barrier.a : NO_OPERAND, from.imm, barrier.imm,
	                           from.space == SPACE_SHARED};
	insn.extra = copy;
	insn.run = ptx_step_bulk_copy();
	return ptx_put(statement, insn);
}

bool ptx_decode_bulk(struct statement *statement)
{
	struct insn insn = INSN_INIT;
	bool policy = ptx_modifier(statement, "L2::cache_hint");

	if (ptx_modifier(statement, "mbarrier"))
		return decode_copy_arrive(statement);
	if (!ptx_modifier(statement, "bulk"))
		return ptx_unsupported(statement, NULL);
	bool wait = ptx_modifier(statement, "wait_group"), commit = ptx_modifier(statement, "commit_group");
	if (wait || commit) {
		ptx_modifier(statement, "read");
		insn.run = ptx_step_control(CONTROL_NOTHING);
		return ptx_operand_count(statement, wait, wait) && ptx_put(statement, insn);
	}
	if (ptx_modifier(statement, "prefetch") && ptx_modifier(statement, "L2") && ptx_modifier(statement, "global")) {
		insn.run = ptx_step_control(CONTROL_NOTHING);
		return ptx_operand_count(statement, 2, 2 + policy) && ptx_put(statement, insn);
	}
	return decode_bulk_copy(statement, policy);
}

/* mapa d, address, rank; getctarank d, address. */
static bool decode_cluster(struct statement *statement, int op)
{
	struct insn insn = INSN_INIT;
	bool shared = ptx_modifier(statement, "shared::cluster"), map = op == CLUSTER_MAP;
	enum ptx_type type = ptx_modifier_type(statement);

	/* The type is the address's; a rank has 32 bits always. */
	if (type != TY_U32 && type != TY_U64)
		return ptx_unsupported(statement, NULL);
	insn.space = shared ? SPACE_SHARED : SPACE_GENERIC;
	insn.run = ptx_step_cluster(op);
	return ptx_operand_count(statement, map ? 3 : 2, map ? 3 : 2) &&
	       ptx_destination(statement, 0, map ? type : TY_U32, &insn.d) && ptx_source(statement, 1, type, &insn.a) &&
	       (!map || ptx_source(statement, 2, TY_U32, &insn.b)) && ptx_put(statement, insn);
}

const struct rule ptx_rules_async[] = {
	{"mbarrier", decode_mbarrier, 0},
	{"mapa", decode_cluster, CLUSTER_MAP},
	{"getctarank", decode_cluster, CLUSTER_RANK},
	{0},
};
