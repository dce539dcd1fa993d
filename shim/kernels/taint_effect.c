#include "shim/kernels/taint_effect.h"

/* Adds registers to a list, in two parts where they do not lie in one word. */
static inline uint8_t add(taint_packed *list, uint8_t at, unsigned first, unsigned count, unsigned end)
{
	if (count == 1) {
		list[at] = (taint_packed)(first | 1u << 9);
		return (uint8_t)(at + (first < end));
	}
	if (first >= end)
		return at;
	count = count > end - first ? end - first : count;
	unsigned room = 64 - first % 64, within = count < room ? count : room;
	if (within)
		list[at++] = (taint_packed)(first | within << 9);
	if (count > room)
		list[at++] = (taint_packed)((first + room) | (count - room) << 9);
	return at;
}

static inline unsigned end_of(const struct sass_machine *machine, unsigned reg)
{
	return reg < TAINT_UNIFORM ? SASS_RZ : TAINT_UNIFORM + machine->uniform_zero;
}

static inline void reads(struct taint_effect *effect, unsigned reg, unsigned count)
{
	effect->read_count = add(effect->reads, effect->read_count, reg, count, SASS_RZ);
}

static inline void reads_uniform(struct taint_effect *effect, const struct sass_machine *machine, unsigned reg,
                                 unsigned count)
{
	effect->read_count = add(effect->reads, effect->read_count, TAINT_UNIFORM + reg, count,
	                         TAINT_UNIFORM + machine->uniform_zero);
}

static inline void add_write(struct taint_effect *effect, const struct sass_insn *insn, unsigned first, unsigned count,
                             unsigned end, bool kills)
{
	effect->write_count = add(effect->writes, effect->write_count, first, count, end);
	if (kills && insn->guard == 7)
		effect->kill_count = effect->write_count;
}

static inline void writes(struct taint_effect *effect, const struct sass_insn *insn, unsigned reg, unsigned count,
                          bool kills)
{
	add_write(effect, insn, reg, count, SASS_RZ, kills);
}

static inline void writes_uniform(struct taint_effect *effect, const struct program *program,
                                  const struct sass_insn *insn, unsigned reg, unsigned count)
{
	reg &= program->machine.uniform_mask;
	add_write(effect, insn, TAINT_UNIFORM + reg, count, TAINT_UNIFORM + program->machine.uniform_zero, true);
}

static inline void result(struct taint_effect *effect, const struct program *program, const struct sass_insn *insn,
                          unsigned words)
{
	if (insn->uniform)
		writes_uniform(effect, program, insn, insn->d, words);
	else
		writes(effect, insn, insn->d, words, true);
}

/* A source, with so many words; none of the registers that are always 0. */
static inline uint8_t add_source(taint_packed *list, uint8_t at, const struct program *program, uint16_t source,
                                 unsigned words)
{
	if (words == 1)
		return add(list, at, source, 1, TAINT_REGISTERS);
	return source < TAINT_REGISTERS ? add(list, at, source, words, end_of(&program->machine, source)) : at;
}

/* May a factor be negative, so that a product and what it is added to are a difference? Not where one of them is nothing. */
static bool may_subtract(const struct sass_insn *insn, const uint16_t sources[3])
{
	bool zero_a = sources[0] == SASS_SOURCE_ZERO, zero_b = sources[1] == SASS_SOURCE_ZERO;
	if (sources[2] == SASS_SOURCE_ZERO || (zero_a && zero_b))
		return false;
	if (sass_field(insn, 63, 64) || sass_field(insn, 75, 76) || sass_field(insn, 72, 73))
		return true;
	return !zero_a && !zero_b && !(insn->form == 4 && insn->immediate <= INT32_MAX);
}

static bool negates(const struct sass_insn *insn)
{
	return sass_field(insn, 72, 73) || sass_field(insn, 75, 76) || sass_field(insn, 63, 64);
}

bool taint_mix_compares(const struct sass_insn *insn)
{
	return insn->base == OP_ICMP || insn->base == OP_LOP3 || insn->base == OP_ULOP3 || insn->base == OP_IMNMX ||
	       insn->base == OP_046 || insn->base == OP_VIMNMX || insn->base == OP_UIMNMX;
}

static void arithmetic(struct taint_effect *effect, const struct program *program, const struct sass_insn *insn)
{
	uint16_t sources[3];
	sass_sources(&program->machine, insn, sources);
	bool wide = sass_wide_modifier(&program->machine, insn);
	unsigned first = 0, end = 3, words = wide ? 2 : 1, written = wide ? 2 : 1;
	uint8_t read = 0;
	switch (insn->row->class) {
	case SASS_COMPARE:
		effect->records = true;
		words = 2, end = 2, written = 0;
		break;
	case SASS_MOVE:
		first = insn->form == 2 || insn->form == 3 || insn->form == 7 ? 2 : 1;
		end = first + 1;
		break;
	case SASS_ADD:
		effect->records = negates(insn);
		words = wide || effect->records ? 2 : 1;
		break;
	case SASS_MULTIPLY:
	case SASS_MULTIPLY_HIGH:
	case SASS_MULTIPLY_WIDE:
		effect->records = may_subtract(insn, sources);
		words = 1, end = 2, written = insn->row->class == SASS_MULTIPLY_WIDE ? 2 : 1;
		read = add_source(effect->reads, read, program, sources[2],
		                  effect->records || insn->row->class != SASS_MULTIPLY ? 2 : 1);
		break;
	case SASS_LEA:
		effect->records = sass_field(insn, 72, 73) || sass_field(insn, 63, 64);
		words = written = 1;
		break;
	case SASS_SHIFT:
		words = written = 1;
		break;
	case SASS_CONVERT:
		first = 1, end = 2, words = 2;
		written = insn->base >= OP_F2F_64 && sass_field(insn, 75, 77) == 3 ? 2 : 1;
		break;
	default:
		effect->records = taint_mix_compares(insn);
	}
	for (unsigned i = 0; i < 3; i++)
		read = add_source(effect->reads, read, program, i >= first && i < end ? sources[i] : SASS_SOURCE_OTHER,
		                  words);
	effect->read_count = read;
	result(effect, program, insn, written);
}

static void reads_address(struct taint_effect *effect, const struct program *program, const struct sass_insn *insn,
                          bool with_uniform)
{
	reads(effect, insn->a, 2);
	if (with_uniform)
		reads_uniform(effect, &program->machine, insn->c & program->machine.uniform_mask, 2);
}

static void atomic(struct taint_effect *effect, const struct program *program, const struct sass_insn *insn)
{
	reads_address(effect, program, insn, insn->bit91);
	reads(effect, insn->b, 4);
	reads(effect, insn->c, 4);
	/* A reduction has no result. */
	if (insn->base == OP_RED || insn->base == OP_RED_LATER)
		return;
	writes(effect, insn, insn->d, 1, true);
	if (insn->d < SASS_RZ)
		writes(effect, insn, insn->d + 1u, 3, false);
}

static void constant(struct taint_effect *effect, const struct program *program, const struct sass_insn *insn)
{
	unsigned words = sass_memory_words(insn);
	if (insn->row->class == SASS_LOAD_CONST_UNIFORM) {
		reads_uniform(effect, &program->machine, insn->a & program->machine.uniform_mask, 1);
		writes_uniform(effect, program, insn, insn->d, words);
		return;
	}
	reads(effect, insn->a, 1);
	writes(effect, insn, insn->d, words, true);
}

static void memory(struct taint_effect *effect, const struct program *program, const struct sass_insn *insn)
{
	const struct sass_machine *machine = &program->machine;
	unsigned words = sass_memory_words(insn);
	switch (insn->row->class) {
	case SASS_LOAD_CONST:
	case SASS_LOAD_CONST_UNIFORM:
		constant(effect, program, insn);
		return;
	case SASS_LOAD:
	case SASS_LOAD_256:
		effect->records = true;
		reads(effect, insn->a, 2);
		if (insn->bit91)
			reads_uniform(effect, machine, insn->b & machine->uniform_mask, 2);
		words = insn->row->class == SASS_LOAD_256 || words > 4 ? 4 : words;
		writes(effect, insn, insn->d, words, true);
		if (insn->row->class == SASS_LOAD_256)
			writes(effect, insn, insn->c, 4, true);
		return;
	case SASS_LOAD_LOCAL:
	case SASS_LOAD_SHARED:
		writes(effect, insn, insn->d, words, true);
		return;
	case SASS_LOAD_MATRIX:
		writes(effect, insn, insn->d, sass_field(insn, 72, 74) < 3 ? 1u << sass_field(insn, 72, 74) : 4, true);
		return;
	case SASS_LOAD_REDUCE:
		effect->records = true;
		reads(effect, insn->a, 2);
		writes(effect, insn, insn->d, 4, true);
		return;
	case SASS_TEXTURE:
		writes(effect, insn, insn->d, 4, true);
		writes(effect, insn, insn->c, 4, true);
		return;
	case SASS_STORE:
	case SASS_STORE_GENERIC:
		reads(effect, insn->row->class == SASS_STORE_GENERIC ? insn->c : insn->b, words);
		reads_address(effect, program, insn, insn->bit91 && !sass_field(insn, 76, 77));
		break;
	case SASS_STORE_256:
		reads(effect, insn->b, 4);
		reads(effect, insn->d, 4);
		reads(effect, insn->a, 2);
		break;
	case SASS_STORE_UNIFORM:
		reads(effect, insn->b, 4);
		reads_uniform(effect, machine, insn->a & machine->uniform_mask, 2);
		break;
	case SASS_STORE_LOCAL:
	case SASS_STORE_SHARED:
		reads(effect, insn->b, words);
		break;
	case SASS_STORE_REMOTE:
		reads(effect, insn->b, 4);
		reads(effect, insn->c, 4);
		break;
	case SASS_ATOMIC:
		atomic(effect, program, insn);
		break;
	case SASS_ATOMIC_SHARED:
		reads(effect, insn->b, 4);
		reads(effect, insn->c, 4);
		writes(effect, insn, insn->d, 1, true);
		if (insn->d < SASS_RZ)
			writes(effect, insn, insn->d + 1u, 3, false);
		break;
	case SASS_CACHE:
	case SASS_COPY_TO_SHARED:
		reads(effect, insn->a, 2);
		break;
	case SASS_BULK:
		reads_uniform(effect, machine, insn->a & machine->uniform_mask, 2);
		reads_uniform(effect, machine, insn->b & machine->uniform_mask, 2);
		break;
	case SASS_SURFACE:
		writes(effect, insn, insn->d, insn->row->words, true);
		break;
	default:
		break;
	}
	effect->acts = true;
}

static void calls(struct taint_effect *effect, const struct sass_insn *insn)
{
	effect->acts = effect->again = true;
	if (insn->row->class == SASS_CALL_REGISTER)
		reads(effect, insn->a, 2);
	writes(effect, insn, 4, 2, false);
}

/* An ordinary instruction that reads R and has one result. */
static void simple(struct taint_effect *effect, const struct program *program, const struct sass_insn *insn)
{
	switch (insn->row->class) {
	case SASS_TENSOR:
		writes(effect, insn, insn->d, insn->row->words ? 1 : 0, true);
		return;
	case SASS_TO_UNIFORM:
		reads(effect, insn->a, 1);
		writes_uniform(effect, program, insn, insn->d, 1);
		return;
	case SASS_UNIFORM_CLEAR:
	case SASS_UNIFORM_SPECIAL:
		writes_uniform(effect, program, insn, insn->d, 1);
		return;
	case SASS_SYNC_UNIT:
		writes_uniform(effect, program, insn, insn->d, 2);
		return;
	case SASS_SHUFFLE:
		reads(effect, insn->a, 1);
		writes(effect, insn, insn->d, 1, true);
		return;
	case SASS_SPECIAL:
		writes(effect, insn, insn->d, 1, true);
		return;
	default:
		writes(effect, insn, insn->d, 2, true);
	}
}

/* Instructions that move the stack pointer are followed by their literals, not by the set of R1. */
static bool moves_stack(const struct taint_effect *effect)
{
	for (unsigned i = 0; i < effect->write_count; i++) {
		unsigned first = taint_range_first(effect->writes[i]);
		if (first <= 1 && first + taint_range_count(effect->writes[i]) > 1)
			return true;
	}
	return false;
}

/* Does its result, or what it leaves in other memory, depend on what was stored before? */
static bool recalls(const struct sass_insn *insn)
{
	static const bool those[SASS_WARP_SYNC + 1] = {
		[SASS_LOAD] = true,         [SASS_LOAD_256] = true,      [SASS_LOAD_LOCAL] = true,
		[SASS_LOAD_SHARED] = true,  [SASS_LOAD_MATRIX] = true,   [SASS_LOAD_REDUCE] = true,
		[SASS_ATOMIC] = true,       [SASS_ATOMIC_SHARED] = true, [SASS_BULK] = true,
		[SASS_TENSOR_STORE] = true, [SASS_COPY_TO_SHARED] = true};
	return insn->row && those[insn->row->class];
}

static void find_effect(const struct program *program, uint32_t at, struct taint_effect *ret_effect)
{
	const struct sass_insn *insn = &program->insns[at];
	struct taint_effect *effect = ret_effect;
	effect->kill_count = effect->read_count = effect->write_count = 0;
	effect->acts = effect->records = effect->again = false;
	effect->recalls = recalls(insn);
	if (insn->never)
		return;
	if (!insn->row) {
		effect->acts = effect->again = true;
		return;
	}
	switch (insn->row->class) {
	case SASS_NOTHING:
	case SASS_TO_PREDICATES:
	case SASS_BRANCH:
	case SASS_BRANCH_TABLE:
	case SASS_RETURN:
	case SASS_EXIT:
	case SASS_WAIT:
	case SASS_WARP_SYNC:
	case SASS_CALL_LOCAL_REGISTER:
		return;
	case SASS_ARM:
	case SASS_ARM_FROM_REGISTER:
		effect->acts = effect->again = true;
		return;
	case SASS_CALL:
	case SASS_CALL_ABSOLUTE:
	case SASS_CALL_REGISTER:
		calls(effect, insn);
		return;
	case SASS_TENSOR:
	case SASS_TO_UNIFORM:
	case SASS_UNIFORM_CLEAR:
	case SASS_UNIFORM_SPECIAL:
	case SASS_SPECIAL:
	case SASS_SHUFFLE:
	case SASS_PC:
	case SASS_SYNC_UNIT:
	case SASS_SYNC_REGISTER:
		simple(effect, program, insn);
		break;
	case SASS_CLEAR:
		result(effect, program, insn, insn->row->words == 2 ? 2 : 1);
		break;
	case SASS_CLEAR_CONVERT:
		result(effect, program, insn, sass_field(insn, 75, 77) == 3 ? 2 : 1);
		break;
	case SASS_CLEAR_CS2R:
		result(effect, program, insn, sass_field(insn, 80, 81) ? 2 : 1);
		break;
	default:
		if (insn->row->class < SASS_LOAD_CONST)
			arithmetic(effect, program, insn);
		else
			memory(effect, program, insn);
	}
	bool stack = moves_stack(effect);
	effect->acts |= stack;
	effect->again = stack || insn->row->class == SASS_STORE_LOCAL || insn->row->class == SASS_LOAD_LOCAL;
}

/* What stands behind the lists is no register, each in a word of its own and of those that are least in use: adding it must not wait for another. */
void taint_effect(const struct program *program, uint32_t at, struct taint_effect *ret_effect)
{
	find_effect(program, at, ret_effect);
	ret_effect->writes[ret_effect->write_count] = TAINT_REGISTERS - 1;
	for (unsigned i = 0; i < 3; i++)
		ret_effect->reads[ret_effect->read_count + i] = (taint_packed)(TAINT_REGISTERS - 1 - 64 * i);
}
