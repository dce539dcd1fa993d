#include "shim/kernels/constants.h"

/* What an instruction may write. Here too much is right and too little is not. */

/* Ordinary arithmetic and memory write P, uniform arithmetic UP; of the rest that is not sure. */
static bool file_sure(const struct sass_insn *insn)
{
	if (insn->uniform)
		return insn->base >= OP_UNIFORM && insn->base != OP_VOTEU;
	return insn->base < OP_DMMA || insn->base == OP_LDG || insn->base == OP_SHFL;
}

/* FMNMX.IS_A and its like say which operand it was, in fields of their own. */
static unsigned which_operand(const struct sass_insn *insn)
{
	bool tells = (insn->base == OP_FMNMX || insn->base == OP_HMNMX2 || insn->base == OP_UFMNMX) &&
	             sass_field(insn, 65, 66);
	return tells ? 1u << sass_field(insn, 66, 69) | 1u << sass_field(insn, 69, 72) : 0;
}

unsigned constants_predicates(const struct sass_insn *insn)
{
	unsigned written = which_operand(insn);
	if (insn->base == OP_R2P)
		return 0x7f7f;
	if (insn->row->predicates != SASS_PREDICATES_NONE)
		written |= 1u << sass_field(insn, 81, 84);
	if (insn->row->predicates == SASS_PREDICATES_BOTH)
		written |= 1u << sass_field(insn, 84, 87);
	written &= 0x7f;
	if (!file_sure(insn))
		return written | written << CONSTANTS_UNIFORM;
	return insn->uniform ? written << CONSTANTS_UNIFORM : written;
}

bool constants_guard_sure(const struct sass_insn *insn)
{
	if (insn->uniform)
		return insn->base >= OP_UNIFORM && insn->base != OP_VOTEU;
	return insn->base < OP_1B0 && insn->base != OP_UST && insn->base != OP_LDCU;
}

/* Has it certainly no register as a result? */
static bool no_result(const struct sass_insn *insn)
{
	switch (insn->row->class) {
	case SASS_COMPARE:
	case SASS_TO_PREDICATES:
	case SASS_BRANCH:
	case SASS_EXIT:
	case SASS_ARM:
	case SASS_WAIT:
	case SASS_WARP_SYNC:
	case SASS_BRANCH_TABLE:
	case SASS_STORE:
	case SASS_STORE_GENERIC:
	case SASS_STORE_256:
	case SASS_STORE_UNIFORM:
	case SASS_STORE_LOCAL:
	case SASS_STORE_SHARED:
		return true;
	case SASS_NOTHING:
		switch (insn->base) {
		case OP_FSETP:
		case OP_PLOP3:
		case OP_DSETP:
		case OP_HSETP2:
		case OP_UPLOP3:
		case OP_FCHK:
		case OP_NOP:
		case OP_DEPBAR:
		case OP_BAR:
		case OP_BREAK:
		case OP_YIELD:
		case OP_NANOSLEEP:
		case OP_MEMBAR:
		case OP_LDGDEPBAR:
			return true;
		default:
			return false;
		}
	default:
		return false;
	}
}

static void forget(struct constant *file, const uint64_t written[4])
{
	for (unsigned word = 0; word < 4; word++)
		for (uint64_t bits = written[word]; bits; bits &= bits - 1)
			file[word * 64 + (unsigned)__builtin_ctzll(bits)].from = CONSTANT_UNKNOWN;
}

static void forget_file(struct constant *file)
{
	for (unsigned reg = 0; reg < 256; reg++)
		file[reg].from = CONSTANT_UNKNOWN;
}

void constants_forget_all(struct constants_state *state)
{
	forget_file(state->r);
	forget_file(state->u);
	for (unsigned p = 0; p < 16; p++)
		if (p % CONSTANTS_UNIFORM != CONSTANTS_TRUE)
			state->p[p].from = CONSTANT_UNKNOWN;
}

static void add(uint64_t file[4], unsigned first, unsigned count)
{
	for (unsigned reg = first; reg < first + count && reg < 256; reg++)
		file[reg / 64] |= (uint64_t)1 << reg % 64;
}

void constants_registers(const struct sass_machine *machine, const struct sass_insn *insn, struct sass_registers *written)
{
	unsigned words;
	if (no_result(insn))
		return;
	switch (insn->row->class) {
	case SASS_TENSOR:
		/* Small ones write up to 8 registers; of the others the results lie where their shape says, or are read back later. */
		if (insn->base >= OP_UNIFORM)
			add(written->r, 0, 256);
		else
			add(written->r, insn->d, 8);
		break;
	case SASS_LOAD_CONST:
	case SASS_LOAD:
	case SASS_LOAD_LOCAL:
	case SASS_LOAD_SHARED:
		add(written->r, insn->d, sass_memory_words(insn));
		break;
	case SASS_CLEAR:
	case SASS_MOVE:
	case SASS_SELECT:
	case SASS_MIX:
	case SASS_ADD:
	case SASS_MULTIPLY:
	case SASS_MULTIPLY_HIGH:
	case SASS_LEA:
	case SASS_SHIFT:
		words = insn->row->words > 1 || sass_wide_modifier(machine, insn) ? 2 : 1;
		if (insn->uniform)
			add(written->u, insn->d & machine->uniform_mask, words);
		else
			add(written->r, insn->d, words);
		break;
	case SASS_LOAD_CONST_UNIFORM:
		add(written->u, insn->d & machine->uniform_mask, sass_memory_words(insn));
		break;
	default:
		sass_add_written(machine, insn, written);
	}
	if (insn->row->class == SASS_NOTHING)
		add(written->r, insn->d, 2), add(written->u, insn->d & machine->uniform_mask, 2);
}

static void forget_registers(struct constants *c, const struct sass_insn *insn)
{
	struct sass_registers written = {{0}, {0}};
	constants_registers(&c->program->machine, insn, &written);
	forget(c->now.r, written.r);
	forget(c->now.u, written.u);
}

void constants_forget_written(struct constants *c, const struct sass_insn *insn)
{
	switch (insn->row->class) {
	case SASS_CALL:
	case SASS_CALL_ABSOLUTE:
	case SASS_CALL_REGISTER:
	case SASS_CALL_LOCAL_REGISTER:
	case SASS_RETURN:
		constants_forget_all(&c->now);
		return;
	default:
		break;
	}
	forget_registers(c, insn);
	for (unsigned bits = constants_predicates(insn) & 0x7f7f; bits; bits &= bits - 1)
		c->now.p[__builtin_ctz(bits)].from = CONSTANT_UNKNOWN;
}
