#include "shim/kernels/constants.h"

#include <errno.h>

#define STATE_LIMIT ((size_t)28 << 20) /* bytes of all block states of one kernel */
#define WORK_LIMIT 1200000             /* instructions, and FLOW_WORK for each flow into a block */
#define FLOW_WORK 16

static void push(struct constants *c, uint32_t block)
{
	c->queue[block / 64] |= (uint64_t)1 << block % 64;
}

/* The first that waits, from `from` on and then from the beginning. */
static bool pop(struct constants *c, uint32_t from, uint32_t *ret_block)
{
	size_t words = c->program->block_count / 64 + 1, word = from / 64;
	uint64_t bits = c->queue[word] & ~(uint64_t)0 << from % 64;
	for (size_t looked = 0; !bits; looked++) {
		if (looked == words)
			return false;
		word = word + 1 < words ? word + 1 : 0;
		bits = c->queue[word];
	}
	*ret_block = (uint32_t)(word * 64 + (unsigned)__builtin_ctzll(bits));
	c->queue[word] &= ~((uint64_t)1 << *ret_block % 64);
	return true;
}

uint32_t constants_join_from(struct constants *c, uint32_t a, uint32_t b)
{
	return sets_join(&c->sets, a & ~CONSTANT_SMALL, b & ~CONSTANT_SMALL) | CONSTANT_SMALL;
}

bool constants_meet(struct constants *c, struct constant *into, struct constant from)
{
	uint32_t before = into->from;
	if (before == CONSTANT_UNKNOWN || (before == from.from && into->value == from.value))
		return false;
	if (constant_known(*into) && constant_known(from) && into->value == from.value)
		into->from = sets_join(&c->sets, before, from.from);
	else if (constant_small(*into) && constant_small(from))
		*into = (struct constant){0, constants_join_from(c, before, from.from)};
	else
		into->from = CONSTANT_UNKNOWN;
	return into->from != before;
}

static bool join_values(struct constants *c, struct constant *into, const struct constant *from, unsigned count)
{
	bool changed = false;
	for (unsigned i = 0; i < count; i++)
		changed |= constants_meet(c, &into[i], from[i]);
	return changed;
}

static void flow_into(struct constants *c, uint32_t block, const struct constants_state *from)
{
	struct constants_state *into = c->states[block];
	bool changed = false;
	c->work += FLOW_WORK;
	if (!into) {
		into = c->states[block] = arena_get(c->program->arena, sizeof *into);
		if (!into) {
			c->error = -ENOMEM;
			return;
		}
		*into = *from;
		push(c, block);
		return;
	}
	changed |= join_values(c, into->r, from->r, 256);
	changed |= join_values(c, into->u, from->u, 256);
	changed |= join_values(c, into->p, from->p, 16);
	for (unsigned i = 0; i < 16; i++) {
		if (into->armed[i] == from->armed[i] || into->armed[i] == CONSTANTS_ARMED_ANY)
			continue;
		into->armed[i] = CONSTANTS_ARMED_ANY;
		changed = true;
	}
	if (changed)
		push(c, block);
}

/* Where a return may lead nothing is known. */
static void flow_back(struct constants *c)
{
	const struct program *program = c->program;
	constants_forget_all(&c->now);
	for (unsigned i = 0; i < 16; i++)
		c->now.armed[i] = CONSTANTS_ARMED_ANY;
	for (size_t i = 0; i < program->return_count; i++)
		flow_into(c, program->return_points[i], &c->now);
	for (size_t i = 0; i < program->loose_count; i++)
		flow_into(c, program->loose[i], &c->now);
}

static void flow_out(struct constants *c, const struct block *block)
{
	const struct program *program = c->program;
	const struct sass_insn *last = &program->insns[block->last];
	unsigned barrier = sass_field(last, 16, 20);
	for (uint32_t i = 0; i < block->next_count; i++)
		if (!constants_cut(program, block, i, c->fact))
			flow_into(c, program->next[block->next_first + i], &c->now);
	if (block->return_point != PROGRAM_NONE)
		flow_into(c, block->return_point, &c->now);
	if (block->kind == BLOCK_RETURN)
		flow_back(c);
	if (block->kind != BLOCK_WAIT)
		return;
	uint32_t armed = c->now.armed[barrier];
	for (size_t i = 0; i < program->armed_count; i++)
		if (armed != CONSTANTS_ARMED_ANY ? i == armed : program_may_wait(program, barrier, i))
			flow_into(c, program->armed[i], &c->now);
}

bool constants_cut(const struct program *program, const struct block *block, uint32_t next, uint8_t fact)
{
	const struct sass_insn *last = &program->insns[block->last];
	bool branch = last->row && last->row->class == SASS_BRANCH, leaves = last->row && last->row->class == SASS_EXIT;
	if (last->never || (!branch && !leaves))
		return false;
	/* The target, where there is one, comes first; then what follows. */
	bool target = branch && next == 0;
	return target ? fact & FACT_NEVER : fact & FACT_ALWAYS;
}

/* False: there is an instruction that is not known. */
static bool run_block(struct constants *c, const struct block *block, uint8_t *facts, uint32_t *used)
{
	const struct program *program = c->program;
	c->now = *c->states[block - program->blocks];
	c->work += block->last - block->first + 1;
	for (c->insn = block->first; c->insn <= block->last; c->insn++) {
		if (!program->insns[c->insn].row && !program->insns[c->insn].never)
			return false;
		constants_step(c, &program->insns[c->insn]);
		if (facts && c->fact) {
			facts[c->insn] = c->fact;
			*used = sets_join(&c->sets, *used, c->fact_from);
		}
	}
	return true;
}

static void start(struct constants *c)
{
	struct constants_state first = {0};
	constants_forget_all(&first);
	for (unsigned p = CONSTANTS_TRUE; p < 16; p += CONSTANTS_UNIFORM)
		first.p[p] = (struct constant){1, 0};
	for (unsigned i = 0; i < 16; i++)
		first.armed[i] = CONSTANTS_ARMED_ANY;
	flow_into(c, c->program->block_of[c->program->entry], &first);
}

/* False: beyond the limits, or not to be known. */
static bool solve(struct constants *c)
{
	uint32_t block = 0;
	start(c);
	while (!c->error && !c->sets.error && pop(c, block, &block)) {
		if (c->work > WORK_LIMIT || !run_block(c, &c->program->blocks[block], NULL, NULL))
			return false;
		flow_out(c, &c->program->blocks[block]);
	}
	return !c->error && !c->sets.error;
}

static void collect(struct constants *c, struct paths_values *values, uint8_t *facts)
{
	uint32_t used = 0;
	c->final = values->missed;
	for (uint32_t i = 0; i < c->program->block_count; i++)
		if (c->states[i])
			run_block(c, &c->program->blocks[i], facts, &used);
	for (size_t i = 0; i < values->count && i < c->program->params_bytes; i++) {
		values->used[i] = sets_has(&c->sets, used, i) ? values->known[i] : VALUE_UNKNOWN;
		if (values->missed)
			values->missed[i] = sets_has(&c->sets, c->missed, i) ? values->known[i] : VALUE_UNKNOWN;
	}
}

int constants_run(const struct program *program, struct paths_values *values, uint8_t *facts)
{
	if (program->block_count * sizeof(struct constants_state) > STATE_LIMIT)
		return 0;
	struct arena *arena = program->arena;
	struct arena_mark mark;
	arena_mark(arena, &mark);
	struct constants *c = arena_get_zeroed(arena, 1, sizeof *c);
	if (!c)
		return -ENOMEM;
	c->program = program;
	c->values = values;
	c->states = arena_get_zeroed(arena, program->block_count + (size_t)1, sizeof *c->states);
	c->queue = arena_get_zeroed(arena, program->block_count / 64 + (size_t)1, sizeof *c->queue);
	c->error = c->states && c->queue ? sets_init(&c->sets, arena, program->params_bytes + (size_t)1, false) : -ENOMEM;
	if (!c->error && solve(c))
		collect(c, values, facts);
	int err = c->error == -ENOMEM || c->sets.error == -ENOMEM ? -ENOMEM : 0;
	if (err || c->sets.error)
		for (uint32_t i = 0; i < program->count; i++)
			facts[i] = 0;
	arena_reset(arena, &mark);
	return err;
}
