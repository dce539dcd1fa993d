/* Which registers an instruction may write, as far as the flow of addresses (taint_*.c) is concerned: matrix results are data and count for nothing. */
#include "shim/kernels/sass.h"

/* At most 8, some of which may lie behind the last register. */
static inline void add(uint64_t file[4], unsigned first, unsigned count)
{
	uint64_t ones = ((uint64_t)1 << count) - 1;
	file[first / 64] |= ones << first % 64;
	if (first % 64 + count > 64 && first < 192)
		file[first / 64 + 1] |= ones >> (64 - first % 64);
}

void sass_add_written(const struct sass_machine *machine, const struct sass_insn *insn, struct sass_registers *registers)
{
	bool uniform = insn->uniform;
	if (!insn->row || insn->never)
		return;
	switch (insn->row->class) {
	case SASS_CALL:
	case SASS_CALL_ABSOLUTE:
	case SASS_CALL_REGISTER:
		add(registers->r, 4, 2); /* what a function outside returns */
		return;
	case SASS_LOAD_CONST:
	case SASS_LOAD:
	case SASS_LOAD_LOCAL:
	case SASS_LOAD_SHARED:
		add(registers->r, insn->d, 8);
		return;
	case SASS_LOAD_256:
	case SASS_LOAD_MATRIX:
	case SASS_LOAD_REDUCE:
	case SASS_TEXTURE:
	case SASS_ATOMIC:
	case SASS_ATOMIC_SHARED:
	case SASS_SURFACE:
		add(registers->r, insn->d, 4);
		add(registers->r, insn->c, 4);
		return;
	case SASS_LOAD_CONST_UNIFORM:
		add(registers->u, insn->d & machine->uniform_mask, 8);
		return;
	case SASS_TO_UNIFORM:
	case SASS_UNIFORM_CLEAR:
	case SASS_UNIFORM_SPECIAL:
	case SASS_SYNC_UNIT:
		uniform = true;
		break;
	case SASS_SPECIAL:
	case SASS_SHUFFLE:
	case SASS_PC:
	case SASS_SYNC_REGISTER:
	case SASS_TENSOR:
		uniform = false;
		break;
	default:
		/* Stores and branches have no result, all that comes before the loads has one. */
		if (insn->row->class > SASS_LOAD_CONST)
			return;
	}
	if (uniform)
		add(registers->u, insn->d & machine->uniform_mask, 2);
	else
		add(registers->r, insn->d, 2);
}
