/* Instructions by name. What is not here makes a kernel unclear. */
#include <string.h>

#include "shim/kernels/ptx_code.h"

/* Of two rows that match, the one with more modifiers stands first. */
static const struct ptxa_rule rules[] = {
	{"mov", PTX_COPY, NULL},
	{"ld", PTX_LOAD, NULL},
	{"ldu", PTX_LOAD, NULL},
	{"st.async", PTX_STORE, "st.async"},
	{"st.bulk", PTX_STORE, "st.bulk"},
	{"st", PTX_STORE, "st"},
	{"add", PTX_ADD, NULL},
	{"addc", PTX_ADD, NULL},
	{"sub", PTX_SUBTRACT, NULL},
	{"subc", PTX_SUBTRACT, NULL},
	{"mul", PTX_MULTIPLY, NULL},
	{"mul24", PTX_MULTIPLY, NULL},
	{"mad", PTX_MULTIPLY_ADD, NULL},
	{"madc", PTX_MULTIPLY_ADD, NULL},
	{"mad24", PTX_MULTIPLY_ADD, NULL},
	{"fma", PTX_MULTIPLY_ADD, NULL},
	{"dp4a", PTX_MULTIPLY_ADD, NULL},
	{"dp2a", PTX_MULTIPLY_ADD, NULL},
	{"setp", PTX_COMPARE, NULL},
	{"set", PTX_COMPARE, NULL},
	{"selp", PTX_UNION, NULL},
	{"slct", PTX_UNION, NULL},
	{"bra", PTX_BRANCH, NULL},
	{"brx.idx", PTX_BRANCH_TABLE, NULL},
	{"call", PTX_CALL, NULL},
	{"ret", PTX_LEAVE, NULL},
	{"exit", PTX_LEAVE, NULL},
	{"trap", PTX_LEAVE, NULL},
	{"cvta", PTX_ADDRESS, NULL},
	{"cvt.pack", PTX_PRODUCT, NULL},
	{"cvt", PTX_CONVERT, NULL},
	{"szext", PTX_UNION, NULL},
	{"and", PTX_UNION, NULL},
	{"or", PTX_UNION, NULL},
	{"xor", PTX_EXTREME, NULL},
	{"not", PTX_NEGATE, NULL},
	{"cnot", PTX_CLEAR_RESULT, NULL},
	{"neg", PTX_NEGATE, NULL},
	{"abs", PTX_UNION, NULL},
	{"lop3", PTX_EXTREME, NULL},
	{"shl", PTX_SHIFT_LEFT, NULL},
	{"shr", PTX_SHIFT_RIGHT, NULL},
	{"shf", PTX_MIX, NULL},
	{"prmt", PTX_MIX, NULL},
	{"brev", PTX_MIX, NULL},
	{"bfe", PTX_SHIFT_RIGHT, NULL},
	{"bfi", PTX_INSERT, NULL},
	{"min", PTX_EXTREME, NULL},
	{"max", PTX_EXTREME, NULL},
	{"sad", PTX_PRODUCT, NULL},
	{"div", PTX_PRODUCT, NULL},
	{"rem", PTX_PRODUCT, NULL},
	{"copysign", PTX_UNION, NULL},
	{"popc", PTX_CLEAR_RESULT, NULL},
	{"clz", PTX_CLEAR_RESULT, NULL},
	{"bfind", PTX_CLEAR_RESULT, NULL},
	{"fns", PTX_CLEAR_RESULT, NULL},
	{"bmsk", PTX_CLEAR_RESULT, NULL},
	{"rcp", PTX_CLEAR_RESULT, NULL},
	{"sqrt", PTX_CLEAR_RESULT, NULL},
	{"rsqrt", PTX_CLEAR_RESULT, NULL},
	{"sin", PTX_CLEAR_RESULT, NULL},
	{"cos", PTX_CLEAR_RESULT, NULL},
	{"lg2", PTX_CLEAR_RESULT, NULL},
	{"ex2", PTX_CLEAR_RESULT, NULL},
	{"tanh", PTX_CLEAR_RESULT, NULL},
	{"testp", PTX_CLEAR_RESULT, NULL},
	{"isspacep", PTX_CLEAR_RESULT, NULL},
	{"istypep", PTX_CLEAR_RESULT, NULL},
	{"activemask", PTX_CLEAR_RESULT, NULL},
	{"vote", PTX_CLEAR_RESULT, NULL},
	{"match", PTX_CLEAR_RESULT, NULL},
	{"elect", PTX_CLEAR_RESULT, NULL},
	{"getctarank", PTX_CLEAR_RESULT, NULL},
	{"createpolicy", PTX_CLEAR_RESULT, NULL},
	{"redux", PTX_PASS, NULL},
	{"shfl", PTX_PASS, NULL},
	{"mapa", PTX_PASS, NULL},
	{"vadd", PTX_PRODUCT, NULL},
	{"vsub", PTX_PRODUCT, NULL},
	{"vabsdiff", PTX_PRODUCT, NULL},
	{"vmin", PTX_PRODUCT, NULL},
	{"vmax", PTX_PRODUCT, NULL},
	{"vshl", PTX_PRODUCT, NULL},
	{"vshr", PTX_PRODUCT, NULL},
	{"vmad", PTX_PRODUCT, NULL},
	{"vset", PTX_PRODUCT, NULL},
	{"vadd2", PTX_PRODUCT, NULL},
	{"vsub2", PTX_PRODUCT, NULL},
	{"vavrg2", PTX_PRODUCT, NULL},
	{"vabsdiff2", PTX_PRODUCT, NULL},
	{"vmin2", PTX_PRODUCT, NULL},
	{"vmax2", PTX_PRODUCT, NULL},
	{"vset2", PTX_PRODUCT, NULL},
	{"vadd4", PTX_PRODUCT, NULL},
	{"vsub4", PTX_PRODUCT, NULL},
	{"vavrg4", PTX_PRODUCT, NULL},
	{"vabsdiff4", PTX_PRODUCT, NULL},
	{"vmin4", PTX_PRODUCT, NULL},
	{"vmax4", PTX_PRODUCT, NULL},
	{"vset4", PTX_PRODUCT, NULL},
	{"atom", PTX_ATOMIC, "atom"},
	{"red.async", PTX_STORE_SHARED, NULL},
	{"red", PTX_REDUCE, "red"},
	{"multimem.ld_reduce", PTX_LOAD, NULL},
	{"multimem.st", PTX_STORE, "multimem.st"},
	{"multimem.red", PTX_REDUCE, "multimem.red"},
	{"multimem.cp", PTX_COPY_BULK, "multimem.cp"},
	{"cp.async.commit_group", PTX_NOTHING, NULL},
	{"cp.async.wait_group", PTX_NOTHING, NULL},
	{"cp.async.wait_all", PTX_NOTHING, NULL},
	{"cp.async.mbarrier", PTX_NOTHING, NULL},
	{"cp.async.bulk.commit_group", PTX_NOTHING, NULL},
	{"cp.async.bulk.wait_group", PTX_NOTHING, NULL},
	{"cp.async.bulk.prefetch", PTX_NOTHING, NULL},
	{"cp.async.bulk.tensor", PTX_COPY_BULK, "cp.async.bulk.tensor"},
	{"cp.async.bulk", PTX_COPY_BULK, "cp.async.bulk"},
	{"cp.async", PTX_COPY_BULK, "cp.async"},
	{"cp.reduce.async.bulk.tensor", PTX_COPY_BULK, "cp.reduce.async.bulk.tensor"},
	{"cp.reduce.async.bulk", PTX_COPY_BULK, "cp.reduce.async.bulk"},
	{"tensormap.replace", PTX_STORE, "tensormap.replace"},
	{"tensormap.cp_fenceproxy", PTX_STORE, "tensormap.cp_fenceproxy"},
	{"discard", PTX_STORE, "discard"},
	{"applypriority", PTX_NOTHING, NULL},
	{"prefetch", PTX_NOTHING, NULL},
	{"prefetchu", PTX_NOTHING, NULL},
	{"alloca", PTX_ALLOCATE, NULL},
	{"stacksave", PTX_ALLOCATE, NULL},
	{"stackrestore", PTX_NOTHING, NULL},
	{"bar.red", PTX_CLEAR_RESULT, NULL},
	{"bar.cta.red", PTX_CLEAR_RESULT, NULL},
	{"barrier.red", PTX_CLEAR_RESULT, NULL},
	{"barrier.cta.red", PTX_CLEAR_RESULT, NULL},
	{"bar", PTX_NOTHING, NULL},
	{"barrier", PTX_NOTHING, NULL},
	{"membar", PTX_NOTHING, NULL},
	{"fence", PTX_NOTHING, NULL},
	{"nanosleep", PTX_NOTHING, NULL},
	{"pmevent", PTX_NOTHING, NULL},
	{"brkpt", PTX_NOTHING, NULL},
	{"griddepcontrol", PTX_NOTHING, NULL},
	{"setmaxnreg", PTX_NOTHING, NULL},
	{"mbarrier", PTX_CLEAR_RESULT, NULL},
	{"clusterlaunchcontrol", PTX_CLEAR_RESULT, NULL},
	{"tex", PTX_FETCH, NULL},
	{"tld4", PTX_FETCH, NULL},
	{"txq", PTX_CLEAR_RESULT, NULL},
	{"suq", PTX_CLEAR_RESULT, NULL},
	{"suld", PTX_FETCH, NULL},
	{"sust", PTX_DESCRIPTOR, "sust"},
	{"sured", PTX_DESCRIPTOR, "sured"},
	{"ldmatrix", PTX_GATHER, NULL},
	{"stmatrix", PTX_STORE_SHARED, NULL},
	{"movmatrix", PTX_PASS, NULL},
	{"wmma.load", PTX_LOAD, NULL},
	{"wmma.store", PTX_STORE, "wmma.store"},
	{"wmma.mma", PTX_CLEAR_RESULT, NULL},
	{"mma", PTX_CLEAR_RESULT, NULL},
	{"wgmma", PTX_CLEAR_RESULT, NULL},
	{"tcgen05.ld", PTX_FETCH, NULL},
	{"tcgen05", PTX_NOTHING, NULL},
};

/* A row's name is words joined by dots. */
static bool matches(const char *row, struct ptxa_slice name, const struct ptxa_slice *modifiers, unsigned count)
{
	for (unsigned n = 0;; n++) {
		size_t length = strcspn(row, ".");

		if (length != name.length || memcmp(row, name.text, length) != 0)
			return false;
		if (row[length] == '\0')
			return true;
		if (n == count)
			return false;
		row += length + 1;
		name = modifiers[n];
	}
}

const struct ptxa_rule *ptxa_rule_find(struct ptxa_slice name, const struct ptxa_slice *modifiers, unsigned count)
{
	for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++)
		if (rules[i].name[0] == name.text[0] && matches(rules[i].name, name, modifiers, count))
			return &rules[i];
	return NULL;
}

/* Those of rules, and those that ptx_store.c makes of them where the space is known. */
const char *ptxa_kind_named(const char *name)
{
	static const char *const global[] = {"st.global", "atom.global", "red.global"};

	for (size_t i = 0; i < sizeof(global) / sizeof(global[0]); i++)
		if (strcmp(global[i], name) == 0)
			return global[i];
	for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++)
		if (rules[i].kind && strcmp(rules[i].kind, name) == 0)
			return rules[i].kind;
	return NULL;
}
