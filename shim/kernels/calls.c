#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "shim/kernels/program.h"

/*
 * Who returns to whom: a function is what is reached from the target of a call without entering another; its returns lead to the return points of its
 * callers. A return address is a literal that the caller moves into a register, nearly always that of the instruction behind the call, in the block that the
 * call ends; what does not fit that is a loose return point, to which every return leads.
 */

#define VISITS                                                                                                         \
	8 /* blocks visited for each block of the program, over all functions: more where they share code without end */

struct pairs {
	struct program_return *of;
	size_t count, room;
};

static int add_pair(struct arena *arena, struct pairs *pairs, uint32_t from, uint32_t to)
{
	if (program_room(arena, &pairs->of, pairs->count, &pairs->room, sizeof *pairs->of))
		return -ENOMEM;
	pairs->of[pairs->count++] = (struct program_return){from, to};
	return 0;
}

static int by_from(const void *a, const void *b)
{
	const struct program_return *x = a, *y = b;
	if (x->from != y->from)
		return x->from < y->from ? -1 : 1;
	return x->to < y->to ? -1 : x->to > y->to;
}

/* Sorted, and each pair once. */
static void settle(struct pairs *pairs)
{
	size_t kept = 0;
	if (pairs->count)
		qsort(pairs->of, pairs->count, sizeof *pairs->of, by_from);
	for (size_t i = 0; i < pairs->count; i++)
		if (!kept || by_from(&pairs->of[kept - 1], &pairs->of[i]))
			pairs->of[kept++] = pairs->of[i];
	pairs->count = kept;
}

/* What a block's instructions write, and whether any arms a barrier: functions have blocks in common. */
struct summary {
	struct sass_registers written;
	bool there; /* `written` is */
	bool arms;
};

/* One search over the blocks of a function: notes its returns, what it writes, and whom it calls. */
struct search {
	const struct program *program;
	uint32_t *stack, *seen; /* seen: by block, the last function that reached it, plus 1 */
	size_t depth, visits;
	uint32_t function;
	struct summary *summaries; /* by block */
	struct sass_registers written;
	const uint32_t *function_of; /* by block that is one's entry */
	struct pairs returns, calls;
};

static void reach(struct search *search, uint32_t block)
{
	if (block == PROGRAM_NONE || search->seen[block] == search->function + 1)
		return;
	search->seen[block] = search->function + 1;
	search->stack[search->depth++] = block;
	search->visits++;
}

static bool add_all(struct sass_registers *to, const struct sass_registers *from)
{
	bool changed = false;
	for (unsigned i = 0; i < 4; i++) {
		changed |= (from->r[i] & ~to->r[i]) || (from->u[i] & ~to->u[i]);
		to->r[i] |= from->r[i];
		to->u[i] |= from->u[i];
	}
	return changed;
}

static void sum_up(const struct program *program, const struct block *block, struct summary *summary)
{
	for (uint32_t insn = block->first; insn <= block->last; insn++)
		sass_add_written(&program->machine, &program->insns[insn], &summary->written);
	summary->there = true;
}

static int look_at(struct search *search, const struct block *block)
{
	const struct program *program = search->program;
	int err = 0;
	for (uint32_t i = 0; i < block->next_count; i++) {
		uint32_t next = program->next[block->next_first + i];
		if (i >= block->call_count)
			reach(search, next);
		else if (!err)
			err = add_pair(program->arena, &search->calls, search->function, search->function_of[next]);
	}
	reach(search, block->return_point);
	struct summary *summary = &search->summaries[block - program->blocks];
	/* Nobody asks what the kernel itself writes. */
	if (search->function < program->function_count) {
		if (!summary->there)
			sum_up(program, block, summary);
		add_all(&search->written, &summary->written);
	}
	/* Where a barrier leads is in the function that armed it. */
	for (uint32_t insn = block->first; insn <= block->last && summary->arms; insn++)
		if (program->classes[insn] == SASS_ARM && program->links[insn] != PROGRAM_NONE)
			reach(search, program->armed[program->links[insn]]);
	if (block->kind == BLOCK_RETURN && !err)
		err = add_pair(program->arena, &search->returns, (uint32_t)(block - program->blocks), search->function);
	return err;
}

static int search_function(struct search *search, uint32_t entry)
{
	int err = 0;
	search->written = (struct sass_registers){{0}, {0}};
	reach(search, entry);
	while (search->depth && !err)
		err = look_at(search, &search->program->blocks[search->stack[--search->depth]]);
	search->depth = 0;
	return err;
}

/* What a callee writes, its caller writes. */
static void close_written(struct program *program, const struct pairs *calls)
{
	for (bool changed = true; changed;) {
		changed = false;
		for (size_t i = 0; i < calls->count; i++)
			if (calls->of[i].from < program->function_count)
				changed |= add_all(&program->functions[calls->of[i].from].written,
				                   &program->functions[calls->of[i].to].written);
	}
}

/* The functions that are called, and where each was called from. */
static int find_functions(struct program *program, uint32_t *function_of, struct pairs *points)
{
	for (uint32_t i = 0; i < program->block_count; i++)
		function_of[i] = PROGRAM_NONE;
	for (uint32_t i = 0; i < program->block_count; i++) {
		const struct block *block = &program->blocks[i];
		for (uint32_t k = 0; k < block->call_count; k++) {
			uint32_t entry = program->next[block->next_first + k];
			if (function_of[entry] == PROGRAM_NONE)
				function_of[entry] = program->function_count++;
			if (block->return_point != PROGRAM_NONE &&
			    add_pair(program->arena, points, function_of[entry], block->return_point))
				return -ENOMEM;
		}
	}
	return 0;
}

/* A return that no function has, or that the kernel reaches by jumps, leads everywhere; so do all where the search was too long. */
static void link_returns(struct program *program, const struct search *search, bool all)
{
	const struct pairs *returns = &search->returns;
	for (uint32_t i = 0, at = 0; i < program->block_count; i++) {
		struct block *block = &program->blocks[i];
		block->returns_first = at;
		for (; at < returns->count && returns->of[at].from == i; at++) {
			block->returns_anywhere |= returns->of[at].to == program->function_count;
			block->returns_count += returns->of[at].to < program->function_count;
		}
		block->returns_anywhere |= block->kind == BLOCK_RETURN && (all || !block->returns_count);
	}
}

static bool has_returns(const struct program *program)
{
	for (uint32_t i = 0; i < program->block_count; i++)
		if (program->blocks[i].kind == BLOCK_RETURN)
			return true;
	return program->function_count > 0;
}

static int find_returns(struct program *program, const uint32_t *function_of)
{
	if (!has_returns(program))
		return 0;
	uint32_t count = program->block_count;
	struct search search = {.program = program,
	                        .stack = arena_get(program->arena, (count + (size_t)1) * sizeof *search.stack),
	                        .seen = arena_get_zeroed(program->arena, count + (size_t)1, sizeof *search.seen),
	                        .summaries = arena_get_zeroed(program->arena, count, sizeof *search.summaries),
	                        .function_of = function_of};
	int err = search.stack && search.seen && search.summaries ? 0 : -ENOMEM;
	for (uint32_t k = 0; k < program->control_count && !err; k++)
		if (program->classes[program->control[k]] == SASS_ARM)
			search.summaries[program->block_of[program->control[k]]].arms = true;
	size_t limit = (size_t)count * VISITS;
	for (uint32_t i = 0; i < count && !err && search.visits <= limit; i++) {
		if (function_of[i] == PROGRAM_NONE)
			continue;
		search.function = function_of[i];
		err = search_function(&search, i);
		program->functions[search.function].written = search.written;
	}
	bool all = search.visits > limit;
	search.function = program->function_count;
	if (!err && !all)
		err = search_function(&search, program->block_of[program->entry]);
	if (all)
		for (uint32_t i = 0; i < program->function_count; i++)
			memset(&program->functions[i].written, 0xff, sizeof program->functions[i].written);
	else if (!err)
		close_written(program, &search.calls);
	settle(&search.returns);
	if (!err)
		link_returns(program, &search, all);
	program->returns = search.returns.of;
	arena_put(program->arena, search.calls.of, search.calls.room * sizeof *search.calls.of);
	arena_put(program->arena, search.summaries, count * sizeof *search.summaries);
	arena_put(program->arena, search.stack, (count + (size_t)1) * sizeof *search.stack);
	arena_put(program->arena, search.seen, (count + (size_t)1) * sizeof *search.seen);
	return err;
}

int program_calls(struct program *program)
{
	struct pairs points = {NULL, 0, 0};
	uint32_t *function_of = program->function_of =
		arena_get_zeroed(program->arena, program->block_count + (size_t)1, sizeof *function_of);
	int err = function_of ? find_functions(program, function_of, &points) : -ENOMEM;
	settle(&points);
	program->points = points.of;
	program->functions =
		arena_get_zeroed(program->arena, program->function_count + (size_t)1, sizeof *program->functions);
	if (!program->functions)
		err = -ENOMEM;
	if (!err)
		err = find_returns(program, function_of);
	for (uint32_t i = 0, at = 0; i < program->function_count && !err; i++) {
		program->functions[i].points_first = at;
		while (at < points.count && points.of[at].from == i)
			at++;
		program->functions[i].points_count = at - program->functions[i].points_first;
	}
	return err;
}
