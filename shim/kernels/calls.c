#include <errno.h>
#include <stdlib.h>

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

static int add_pair(struct pairs *pairs, uint32_t from, uint32_t to)
{
	if (program_room(&pairs->of, pairs->count, &pairs->room, sizeof *pairs->of))
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

/* One search over the blocks of a function. */
struct search {
	const struct program *program;
	uint32_t *stack, *seen; /* seen: by block, the last function that reached it, plus 1 */
	size_t depth, visits;
	uint32_t function;
};

static void reach(struct search *search, uint32_t block)
{
	if (block == PROGRAM_NONE || search->seen[block] == search->function + 1)
		return;
	search->seen[block] = search->function + 1;
	search->stack[search->depth++] = block;
	search->visits++;
}

/* Adds the function to each of its returns; with `returns` NULL, marks what the kernel itself reaches. */
static int search_function(struct search *search, uint32_t entry, struct pairs *returns)
{
	const struct program *program = search->program;
	int err = 0;
	reach(search, entry);
	while (search->depth && !err) {
		const struct block *block = &program->blocks[search->stack[--search->depth]];
		for (uint32_t i = block->call_count; i < block->next_count; i++)
			reach(search, program->next[block->next_first + i]);
		reach(search, block->return_point);
		/* Where a barrier leads is in the function that armed it. */
		for (uint32_t insn = block->first; insn <= block->last; insn++)
			if (program->insns[insn].row && program->insns[insn].row->class == SASS_ARM &&
			    program->links[insn] != PROGRAM_NONE)
				reach(search, program->armed[program->links[insn]]);
		if (block->kind == BLOCK_RETURN && returns)
			err = add_pair(returns, (uint32_t)(block - program->blocks), search->function);
	}
	search->depth = 0;
	return err;
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
			    add_pair(points, function_of[entry], block->return_point))
				return -ENOMEM;
		}
	}
	return 0;
}

static int find_returns(struct program *program, const uint32_t *function_of, struct pairs *returns)
{
	uint32_t count = program->block_count, kernel = program->block_of[program->entry];
	struct search search = {.program = program,
	                        .stack = calloc(count + (size_t)1, sizeof *search.stack),
	                        .seen = calloc(count + (size_t)1, sizeof *search.seen)};
	int err = search.stack && search.seen ? 0 : -ENOMEM;
	for (uint32_t i = 0; i < count && !err; i++) {
		if (function_of[i] == PROGRAM_NONE)
			continue;
		search.function = function_of[i];
		err = search_function(&search, i, returns);
		if (search.visits > (size_t)count * VISITS)
			break;
	}
	/* A return that no function has, or that the kernel reaches by jumps, leads everywhere; so do all where the search was too long. */
	bool all = search.visits > (size_t)count * VISITS;
	search.function = program->function_count;
	if (!err && !all)
		err = search_function(&search, kernel, NULL);
	settle(returns);
	for (uint32_t i = 0, at = 0; i < count && !err; i++) {
		struct block *block = &program->blocks[i];
		block->returns_first = at;
		while (at < returns->count && returns->of[at].from == i)
			at++;
		block->returns_count = at - block->returns_first;
		block->returns_anywhere = block->kind == BLOCK_RETURN &&
		                          (all || !block->returns_count || search.seen[i] == search.function + 1);
	}
	free(search.stack);
	free(search.seen);
	return err;
}

int program_calls(struct program *program)
{
	struct pairs points = {NULL, 0, 0}, returns = {NULL, 0, 0};
	uint32_t *function_of = calloc(program->block_count + (size_t)1, sizeof *function_of);
	int err = function_of ? find_functions(program, function_of, &points) : -ENOMEM;
	if (!err)
		err = find_returns(program, function_of, &returns);
	settle(&points);
	program->points = points.of;
	program->returns = returns.of;
	program->functions = calloc(program->function_count + (size_t)1, sizeof *program->functions);
	if (!program->functions)
		err = -ENOMEM;
	for (uint32_t i = 0, at = 0; i < program->function_count && !err; i++) {
		program->functions[i].points_first = at;
		while (at < points.count && points.of[at].from == i)
			at++;
		program->functions[i].points_count = at - program->functions[i].points_first;
	}
	free(function_of);
	return err;
}
