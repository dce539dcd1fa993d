#include "shim/kernels/constants.h"

/*
 * What an instruction may write. Here too much is right and too little is not, so whatever is not listed counts as writing the fields where results can be.
 */

/* The two fields of predicate results, as one can say from the number of the instruction. */
enum predicate_fields { FIELDS_BOTH, FIELDS_FIRST, FIELDS_NONE };

static enum predicate_fields fields_of(const struct sass_insn *insn)
{
	/* HFMA2.MMA had the number before IADD. */
	if (insn->base == 0x035 && insn->row->class == SASS_CLEAR)
		return FIELDS_NONE;
	switch (insn->base) {
	case 0x002: /* moves, selections, shifts */
	case 0x003:
	case 0x005:
	case 0x007:
	case 0x008:
	case 0x013:
	case 0x016:
	case 0x019:
	case 0x082:
	case 0x083:
	case 0x087:
	case 0x096:
	case 0x099:
	case 0x0b9:
	case 0x0bb:
	case 0x009: /* floating point */
	case 0x020:
	case 0x021:
	case 0x023:
	case 0x028:
	case 0x029:
	case 0x02b:
	case 0x030:
	case 0x031:
	case 0x032:
	case 0x03e:
	case 0x040:
	case 0x045:
	case 0x104:
	case 0x105:
	case 0x106:
	case 0x107:
	case 0x108:
	case 0x110:
	case 0x111:
	case 0x112:
	case 0x024: /* products that are not wide, matrices */
	case 0x026:
	case 0x0a4:
	case 0x036:
	case 0x037:
	case 0x03b:
	case 0x03c:
	case 0x03f:
	case 0x101:
	case 0x109:
	case 0x118: /* control, special registers */
	case 0x119:
	case 0x11a:
	case 0x141:
	case 0x142:
	case 0x145:
	case 0x146:
	case 0x147:
	case 0x14d:
	case 0x1c3:
	case 0x180: /* memory */
	case 0x182:
	case 0x183:
	case 0x184:
	case 0x185:
	case 0x186:
	case 0x187:
	case 0x188:
	case 0x18e:
	case 0x192:
	case 0x1ac:
	case 0x1ae:
	case 0x1af:
		return FIELDS_NONE;
	case 0x006:
	case 0x011:
	case 0x012:
	case 0x025:
	case 0x027:
	case 0x02f:
	case 0x086:
	case 0x091:
	case 0x092:
	case 0x0a5:
	case 0x0a6:
	case 0x0bd:
	case 0x0ca:
	case 0x100:
	case 0x102:
	case 0x181:
	case 0x189:
	case 0x18a:
	case 0x18b:
	case 0x1a1:
	case 0x1a2:
	case 0x1a3:
	case 0x1a7:
	case 0x1a8:
	case 0x1a9:
	case 0x1c2:
		return FIELDS_FIRST;
	default:
		return FIELDS_BOTH;
	}
}

/* Ordinary arithmetic and memory write P, uniform arithmetic UP; of the rest that is not sure. */
static bool file_sure(const struct sass_insn *insn)
{
	if (insn->uniform)
		return insn->base >= 0x080 && insn->base != 0x086;
	return insn->base < 0x03f || insn->base == 0x181 || insn->base == 0x189;
}

/* FMNMX.IS_A and its like say which operand it was, in fields of their own. */
static unsigned which_operand(const struct sass_insn *insn)
{
	bool tells = (insn->base == 0x009 || insn->base == 0x040 || insn->base == 0x050) && sass_field(insn, 65, 66);
	return tells ? 1u << sass_field(insn, 66, 69) | 1u << sass_field(insn, 69, 72) : 0;
}

unsigned constants_predicates(const struct sass_insn *insn)
{
	enum predicate_fields fields = fields_of(insn);
	unsigned written = which_operand(insn);
	if (insn->base == 0x004)
		return 0x7f7f;
	if (fields != FIELDS_NONE)
		written |= 1u << sass_field(insn, 81, 84);
	if (fields == FIELDS_BOTH)
		written |= 1u << sass_field(insn, 84, 87);
	written &= 0x7f;
	if (!file_sure(insn))
		return written | written << CONSTANTS_UNIFORM;
	return insn->uniform ? written << CONSTANTS_UNIFORM : written;
}

bool constants_guard_sure(const struct sass_insn *insn)
{
	if (insn->uniform)
		return insn->base >= 0x080 && insn->base != 0x086;
	return insn->base < 0x1b0 && insn->base != 0x177 && insn->base != 0x1ac;
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
		case 0x00b:
		case 0x01c:
		case 0x02a:
		case 0x034:
		case 0x09c:
		case 0x102:
		case 0x118:
		case 0x11a:
		case 0x11d:
		case 0x142:
		case 0x146:
		case 0x15d:
		case 0x192:
		case 0x1af:
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
		if (insn->base > 0x07f)
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
