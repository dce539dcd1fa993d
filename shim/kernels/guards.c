#include "shim/kernels/guards.h"

#include <errno.h>

#define KEPT 16
#define PREDICATES 16 /* P0 to P6, and UP0 to UP6 from CONSTANTS_UNIFORM on */

/* Not 0 where a predicate holds: P2R of one puts that into a register, ISETP.NE takes it back. */
struct kept {
	unsigned reg;
	uint32_t number;
};

/* While a block is walked. */
struct numbering {
	const struct program *program;
	const uint8_t *facts;
	uint32_t last, of[PREDICATES];
	struct kept kept[KEPT]; /* the oldest first */
	unsigned kept_count;
};

static uint8_t fact_of(const struct numbering *n, uint32_t insn)
{
	return n->facts ? n->facts[insn] : 0;
}

static uint32_t number_of_guard(struct numbering *n, const struct sass_insn *insn)
{
	return constants_guard_sure(insn) ? n->of[insn->guard + (insn->uniform ? CONSTANTS_UNIFORM : 0u)]
	                                  : GUARDS_UNKNOWN;
}

static void drop_kept(struct numbering *n, unsigned place)
{
	for (n->kept_count--; place < n->kept_count; place++)
		n->kept[place] = n->kept[place + 1];
}

static void forget_written(struct numbering *n, const struct sass_insn *insn)
{
	struct sass_registers written = {{0}, {0}};
	if (n->kept_count)
		constants_registers(&n->program->machine, insn, &written);
	for (unsigned i = n->kept_count; i-- > 0;)
		if (written.r[n->kept[i].reg / 64] >> n->kept[i].reg % 64 & 1)
			drop_kept(n, i);
}

/* P2R Rd, PR, RZ, MASK: the number of the one predicate of the mask. */
static uint32_t moved_out(const struct numbering *n, const struct sass_insn *insn)
{
	uint32_t mask = insn->immediate;
	bool one = mask && !(mask & (mask - 1)) && mask < 1u << CONSTANTS_TRUE;
	if (insn->base != OP_P2R || insn->form != 4 || insn->a != SASS_RZ || sass_field(insn, 64, 91) || !one)
		return GUARDS_UNKNOWN;
	return n->of[__builtin_ctz(mask)];
}

/* ISETP.NE.AND Pd, PT, Ra, RZ, PT: the number that its register keeps. */
static uint32_t moved_back(const struct numbering *n, const struct sass_insn *insn)
{
	bool not_zero = insn->base == OP_ISETP && !insn->uniform && insn->form == 1 && insn->b == SASS_RZ &&
	                !sass_field(insn, 72, 73) && !sass_field(insn, 74, 76) && sass_field(insn, 76, 81) == 5 &&
	                sass_field(insn, 84, 91) == 0x3f;
	for (unsigned i = n->kept_count; not_zero && i-- > 0;)
		if (n->kept[i].reg == insn->a)
			return n->kept[i].number;
	return GUARDS_UNKNOWN;
}

static void keep(struct numbering *n, unsigned reg, uint32_t number)
{
	if (reg >= SASS_RZ)
		return;
	if (n->kept_count == KEPT)
		drop_kept(n, 0);
	n->kept[n->kept_count++] = (struct kept){reg, number};
}

/* What an instruction that may run leaves behind. */
static void step(struct numbering *n, const struct sass_insn *insn, bool always)
{
	uint32_t out = always ? moved_out(n, insn) : GUARDS_UNKNOWN, back = always ? moved_back(n, insn) : GUARDS_UNKNOWN;
	forget_written(n, insn);
	for (unsigned bits = constants_predicates(insn) & 0x7f7f; bits; bits &= bits - 1)
		n->of[__builtin_ctz(bits)] = ++n->last;
	if (out)
		keep(n, insn->d, out);
	if (back && sass_field(insn, 81, 84) != CONSTANTS_TRUE)
		n->of[sass_field(insn, 81, 84)] = back;
}

/* Behind the last instruction of a block that is asked about; of control flow only calls have registers. The block's first: none is. */
static uint32_t end_of_guards(const struct program *program, const struct block *block)
{
	uint32_t end = block->last + 1;
	for (; end > block->first; end--) {
		const struct sass_insn *insn = &program->insns[end - 1];
		if (insn->guard != 7 && insn->row && insn->row->class < SASS_RETURN && insn->row->class != SASS_BRANCH)
			break;
	}
	return end;
}

static void number_block(struct numbering *n, const struct block *block, uint32_t *guards)
{
	uint32_t end = end_of_guards(n->program, block);
	if (end == block->first)
		return;
	n->kept_count = 0;
	for (unsigned p = 0; p < PREDICATES; p++)
		n->of[p] = ++n->last;
	for (uint32_t i = block->first; i < end; i++) {
		const struct sass_insn *insn = &n->program->insns[i];
		uint8_t fact = fact_of(n, i);
		if (insn->never || !insn->row || fact & FACT_NEVER)
			continue;
		if (insn->guard != 7)
			guards[i] = number_of_guard(n, insn);
		step(n, insn, insn->guard == 7 || fact & FACT_ALWAYS);
	}
}

int guards_find(const struct program *program, const uint8_t *facts, uint32_t **ret_guards)
{
	struct numbering n = {.program = program, .facts = facts};
	uint32_t *guards = arena_get_zeroed(program->arena, program->count + (size_t)1, sizeof *guards);
	if (!guards)
		return -ENOMEM;
	for (uint32_t i = 0; i < program->block_count; i++)
		number_block(&n, &program->blocks[i], guards);
	*ret_guards = guards;
	return 0;
}
