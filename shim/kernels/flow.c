#include <errno.h>
#include <string.h>

#include "shim/kernels/program.h"

/* Where an instruction leads, as far as one can say without the data flow. */
struct way {
	enum block_kind kind;
	bool ends;                          /* a block ends here */
	bool on;                            /* the next instruction follows */
	bool returns;                       /* the next instruction is a return point */
	uint32_t target;                    /* instruction, or PROGRAM_NONE */
	bool table, taken, local_functions; /* all targets of those lists */
};

static const struct program_part *part_of(const struct program *program, uint32_t insn)
{
	size_t i = 0;
	while (insn - program->parts[i].first >= program->parts[i].count)
		i++;
	return &program->parts[i];
}

static uint32_t jump_target(const struct program *program, uint32_t insn)
{
	const struct program_part *part = part_of(program, insn);
	int64_t pc = (int64_t)(insn - part->first) * SASS_BYTES;
	int64_t target = sass_target(&program->machine, &program->insns[insn], pc);
	if (target < 0 || target % SASS_BYTES || target / SASS_BYTES >= part->count)
		return PROGRAM_NONE;
	return part->first + (uint32_t)(target / SASS_BYTES);
}

static void call_way(const struct program *program, uint32_t i, struct way *way)
{
	uint8_t marks = program->marks[i];
	way->returns = true;
	if (marks & MARK_EXTERNAL) {
		way->on = true;
		way->returns = false;
	} else if (marks & MARK_UNKNOWN) {
		way->kind = BLOCK_CALL_UNKNOWN;
		way->on = true;
	} else {
		way->kind = BLOCK_CALL;
		way->target = program->links[i] != PROGRAM_NONE ? program->links[i] : jump_target(program, i);
		if (way->target == PROGRAM_NONE)
			way->kind = BLOCK_BROKEN;
	}
}

static struct way way_of(const struct program *program, uint32_t i)
{
	const struct sass_insn *insn = &program->insns[i];
	struct way way = {.on = true, .target = PROGRAM_NONE};
	if (!insn->row || insn->never)
		return way;
	bool guarded = !sass_always(insn);
	switch (insn->row->class) {
	case SASS_BRANCH:
		way.ends = true;
		way.target = jump_target(program, i);
		way.kind = way.target == PROGRAM_NONE ? BLOCK_BROKEN : BLOCK_PLAIN;
		way.on = !(sass_always(insn) && insn->form == 4 && !insn->bit91);
		break;
	case SASS_EXIT:
		way.ends = true;
		way.on = !sass_always(insn);
		break;
	case SASS_CALL:
	case SASS_CALL_ABSOLUTE:
		way.ends = true;
		way.on = guarded;
		call_way(program, i, &way);
		way.on |= guarded;
		break;
	case SASS_CALL_REGISTER:
		way = (struct way){BLOCK_CALL_UNKNOWN, true, true, true, PROGRAM_NONE, false, true, false};
		break;
	case SASS_CALL_LOCAL_REGISTER:
		way = (struct way){BLOCK_CALL, true, guarded, true, PROGRAM_NONE, false, false, true};
		break;
	case SASS_RETURN:
		way.ends = true;
		way.kind = BLOCK_RETURN;
		way.on = guarded;
		break;
	case SASS_BRANCH_TABLE:
		way.ends = true;
		way.on = guarded;
		way.table = true;
		way.kind = program->table_count ? BLOCK_PLAIN : BLOCK_TABLE_UNKNOWN;
		break;
	case SASS_WAIT:
		way.ends = true;
		way.kind = BLOCK_WAIT;
		break;
	case SASS_WARP_SYNC:
		/* May carry a label; where none is meant, the fields read as the next instruction, or as nonsense. */
		way.target = insn->form == 4 ? jump_target(program, i) : PROGRAM_NONE;
		way.ends = way.target != PROGRAM_NONE;
		break;
	default:
		break;
	}
	return way;
}

/* Functions inside the section of a computed relative call: the assembler makes such calls only among them. */
static int each_local(const struct program *program, uint32_t insn, int (*each)(void *ctx, uint32_t insn), void *ctx)
{
	const struct program_part *part = part_of(program, insn);
	for (uint32_t i = 0; i < program->elf->symbol_count; i++) {
		struct elf_symbol symbol;
		if (elf_symbol_at(program->elf, i, &symbol) || symbol.type != ELF_SYMBOL_FUNCTION ||
		    symbol.section != part->section || !symbol.value || symbol.value % SASS_BYTES ||
		    symbol.value / SASS_BYTES >= part->count)
			continue;
		int err = each(ctx, part->first + (uint32_t)(symbol.value / SASS_BYTES));
		if (err)
			return err;
	}
	return 0;
}

static int each_target(const struct program *program, uint32_t insn, const struct way *way,
                       int (*each)(void *ctx, uint32_t insn), void *ctx)
{
	int err = way->target == PROGRAM_NONE ? 0 : each(ctx, way->target);
	for (size_t i = 0; !err && way->table && i < program->table_count; i++)
		err = each(ctx, program->table[i]);
	for (size_t i = 0; !err && way->taken && i < program->taken_count; i++)
		err = each(ctx, program->taken[i]);
	return err || !way->local_functions ? err : each_local(program, insn, each, ctx);
}

static int mark_leader(void *ctx, uint32_t insn)
{
	uint32_t *block_of = ctx;
	block_of[insn] |= 1;
	return 0;
}

static int add_next(void *ctx, uint32_t insn)
{
	struct program *program = ctx;
	return PROGRAM_PUSH(program, next, next_count, next_room, program->block_of[insn]);
}

/* Registers that RET instructions name, and the instructions that move a return address into one of them, with where that leads. */
struct return_addresses {
	bool any, named[256];
	struct program_return *literals;
	size_t count, room;
};

/*
 * A return address is a literal moved into the register that RET names; nearly always the instruction behind the call, which is a return point anyway.
 */
static bool return_literal(const struct program *program, uint32_t i, uint32_t *ret_insn)
{
	const struct sass_insn *insn = &program->insns[i];
	bool move = (insn->base == OP_MOV && insn->form == 4) ||
	            (insn->base == OP_IMAD && insn->form == 2 && insn->a == SASS_RZ);
	if (!move || insn->uniform || program->marks[i] || insn->immediate % SASS_BYTES)
		return false;
	const struct program_part *part = part_of(program, i);
	if (insn->immediate / SASS_BYTES >= part->count)
		return false;
	*ret_insn = part->first + insn->immediate / SASS_BYTES;
	return true;
}

static int find_return_addresses(const struct program *program, struct return_addresses *addresses)
{
	uint32_t target;
	for (uint32_t k = 0; k < program->control_count; k++) {
		uint32_t i = program->control[k];
		if (program->classes[i] == SASS_RETURN && program->insns[i].a != SASS_RZ)
			addresses->any = addresses->named[program->insns[i].a] = true;
	}
	for (uint32_t i = 0; addresses->any && i < program->count; i++) {
		if (!addresses->named[program->insns[i].d] || !return_literal(program, i, &target))
			continue;
		if (program_room(program->arena, &addresses->literals, addresses->count, &addresses->room,
		                 sizeof *addresses->literals))
			return -ENOMEM;
		addresses->literals[addresses->count++] = (struct program_return){i, target};
	}
	return 0;
}

static void find_leaders(struct program *program, const struct return_addresses *addresses, uint32_t *block_of)
{
	for (size_t i = 0; i < program->part_count; i++)
		if (program->parts[i].count)
			block_of[program->parts[i].first] |= 1;
	block_of[program->entry] |= 1;
	for (size_t i = 0; i < program->taken_count; i++)
		block_of[program->taken[i]] |= 1;
	for (size_t i = 0; i < addresses->count; i++)
		block_of[addresses->literals[i].to] |= 2;
	for (uint32_t k = 0; k < program->control_count; k++) {
		uint32_t i = program->control[k], target;
		struct way way = way_of(program, i);
		if (way.ends && i + 1 < program->count)
			block_of[i + 1] |= 1;
		each_target(program, i, &way, mark_leader, block_of);
		if (program->classes[i] == SASS_ARM && (target = jump_target(program, i)) != PROGRAM_NONE)
			block_of[target] |= 1;
	}
}

static int cut_block(struct program *program, struct block *block, const bool *is_return)
{
	uint32_t last = block->last, id = (uint32_t)(block - program->blocks);
	struct way way = way_of(program, last);
	const struct program_part *part = part_of(program, last);
	bool at_end = last + 1 == part->first + part->count;
	block->kind = (uint8_t)way.kind;
	block->next_first = (uint32_t)program->next_count;
	block->return_point = PROGRAM_NONE;
	size_t before = program->next_count;
	int err = way.ends ? each_target(program, last, &way, add_next, program) : 0;
	if (err)
		return err;
	block->call_count = way.returns ? (uint32_t)(program->next_count - before) : 0;
	if (way.local_functions && program->next_count == before)
		block->kind = BLOCK_CALL_UNKNOWN, way.on = true;
	if (way.on && at_end)
		block->kind = BLOCK_BROKEN;
	else if (way.on)
		err = add_next(program, last + 1);
	if (way.returns && !at_end)
		block->return_point = id + 1;
	block->next_count = (uint32_t)(program->next_count - before);
	if (!err && ((id && program->blocks[id - 1].return_point == id) || is_return[id]))
		err = PROGRAM_PUSH(program, return_points, return_count, return_room, id);
	return err;
}

/* Return addresses that are not those of the instruction behind the call that ends the block: any function may return there. */
static int find_loose(struct program *program, const struct return_addresses *addresses, bool *is_loose)
{
	int err = 0;
	for (size_t i = 0; !err && i < addresses->count; i++) {
		uint32_t target = program->block_of[addresses->literals[i].to],
			 block = program->block_of[addresses->literals[i].from];
		if ((target == block + 1 && program->blocks[block].return_point == target) || is_loose[target])
			continue;
		is_loose[target] = true;
		err = PROGRAM_PUSH(program, loose, loose_count, loose_room, target);
	}
	return err;
}

bool program_may_wait(const struct program *program, unsigned barrier, size_t i)
{
	return program->armed_by[i] == barrier || program_waits_anywhere(program, barrier);
}

/* What the instructions that arm barriers name. */
static int find_armed(struct program *program)
{
	int err = 0;
	for (uint32_t k = 0; !err && k < program->control_count; k++) {
		uint32_t i = program->control[k], target;
		if (program->classes[i] == SASS_ARM_FROM_REGISTER)
			program->wild_barriers |= 1u << sass_field(&program->insns[i], 24, 28);
		if (program->classes[i] != SASS_ARM || (target = jump_target(program, i)) == PROGRAM_NONE)
			continue;
		unsigned barrier = sass_field(&program->insns[i], 16, 20);
		program->links[i] = (uint32_t)program->armed_count;
		err = PROGRAM_PUSH(program, armed, armed_count, armed_room, program->block_of[target]);
		if (!err)
			err = PROGRAM_PUSH(program, armed_by, armed_by_count, armed_by_room, (uint8_t)barrier);
		program->named_barriers |= 1u << barrier;
	}
	return err;
}

/* From marks at the first instructions of blocks to the blocks; in is_return those that a return address names. */
static void number_blocks(struct program *program, bool *is_return)
{
	uint32_t *block_of = program->block_of, block = 0;
	for (uint32_t i = 0; i < program->count; i++) {
		if (block_of[i]) {
			if (block)
				program->blocks[block - 1].last = i - 1;
			program->blocks[block].first = i;
			is_return[block++] = block_of[i] & 2;
		}
		block_of[i] = block - 1;
	}
	if (block)
		program->blocks[block - 1].last = program->count - 1;
}

static int cut_at(struct program *program, const struct return_addresses *addresses)
{
	for (uint32_t i = 0; i < program->count; i++)
		program->block_count += program->block_of[i] != 0;
	size_t room = program->block_count + (size_t)1;
	program->blocks = arena_get_zeroed(program->arena, room, sizeof *program->blocks);
	bool *is_return = arena_get_zeroed(program->arena, room, sizeof *is_return);
	int err = program->blocks && is_return ? 0 : -ENOMEM;
	if (!err) {
		number_blocks(program, is_return);
		err = find_armed(program);
	}
	for (uint32_t i = 0; !err && i < program->block_count; i++)
		err = cut_block(program, &program->blocks[i], is_return);
	if (!err) {
		memset(is_return, 0, program->block_count * sizeof *is_return);
		err = find_loose(program, addresses, is_return);
	}
	arena_put(program->arena, is_return, room * sizeof *is_return);
	return err;
}

int program_cut(struct program *program)
{
	struct return_addresses addresses = {0};
	program->block_of = arena_get_zeroed(program->arena, program->count + (size_t)1, sizeof *program->block_of);
	int err = program->block_of ? find_return_addresses(program, &addresses) : -ENOMEM;
	if (!err) {
		find_leaders(program, &addresses, program->block_of);
		err = cut_at(program, &addresses);
	}
	arena_put(program->arena, addresses.literals, addresses.room * sizeof *addresses.literals);
	return err;
}
