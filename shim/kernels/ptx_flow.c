/* Blocks, and the way to a fixed point. */
#include <stdlib.h>
#include <string.h>

#include "shim/kernels/ptx_step.h"

#define WORK_MAX (1u << 26)
#define STATE_VALUES_MAX (2u << 20)

static bool ends_block(enum ptxa_class class)
{
	return class == PTX_BRANCH || class == PTX_BRANCH_TABLE || class == PTX_LEAVE;
}

/* block_of first marks the instructions that start a block. */
static bool make_blocks(struct ptxa_program *program, struct ptxa_function *function)
{
	uint32_t count = function->code_count, block = PTX_NONE;
	uint32_t *start = calloc(count + 1, sizeof(*start));

	function->block_of = start;
	if (!start)
		return ptxa_no_memory(program);
	start[0] = 1;
	for (uint32_t i = 0; i < count; i++) {
		const struct ptxa_instruction *instruction = &function->code[i];

		if (ends_block(instruction->rule->class))
			start[i + 1] = 1;
		if (instruction->rule->class == PTX_BRANCH)
			start[instruction->target] = 1;
	}
	for (uint32_t i = 0; i < function->target_count; i++)
		start[function->targets[i]] = 1;
	for (uint32_t i = 0; i < count; i++)
		function->block_count += start[i];
	function->blocks = calloc(function->block_count + 1, sizeof(*function->blocks));
	if (!function->blocks)
		return ptxa_no_memory(program);
	for (uint32_t i = 0; i < count; i++) {
		if (start[i])
			function->blocks[++block].first = i;
		function->blocks[block].end = i + 1;
		start[i] = block;
	}
	start[count] = PTX_NONE;
	for (uint32_t i = 0; i < function->block_count; i++) {
		struct ptxa_block *at = &function->blocks[i];
		const struct ptxa_instruction *last = &function->code[at->end - 1];
		bool goes_on = !ends_block(last->rule->class) || (last->flags & PTX_GUARDED);

		at->next[0] = goes_on ? start[at->end] : PTX_NONE;
		at->next[1] = last->rule->class == PTX_BRANCH ? start[last->target] : PTX_NONE;
	}
	return true;
}

/*
 * A register that is assigned in one place has one value wherever it may be read. The others have one per block. Registers of a call's
 * results are read by callers and keep one value; so do all when there are too many.
 */
static bool make_states(struct ptxa_program *program, struct ptxa_function *function)
{
	uint64_t size;

	for (uint32_t i = 0; i < function->argument_count; i++)
		if (function->arguments[i] & PTX_IS_REGISTER)
			function->registers[function->arguments[i] & ~PTX_IS_REGISTER].definitions++;
	for (uint32_t i = 0; i < function->result_count; i++)
		if (function->results[i] & PTX_IS_REGISTER)
			function->registers[function->results[i] & ~PTX_IS_REGISTER].definitions = 0;
	for (uint32_t i = 0; i < function->register_count; i++)
		function->registers[i].state = function->registers[i].definitions > 1 ? function->state_count++
		                                                                      : PTX_NONE;
	size = (uint64_t)function->state_count * (function->block_count + 1);
	if (size > STATE_VALUES_MAX) {
		for (uint32_t i = 0; i < function->register_count; i++)
			function->registers[i].state = PTX_NONE;
		function->state_count = 0;
		size = 0;
	}
	function->values = malloc((function->register_count + 1) * sizeof(*function->values));
	function->states = malloc((size + 1) * sizeof(*function->states));
	if (!function->values || !function->states)
		return ptxa_no_memory(program);
	for (uint32_t i = 0; i < function->register_count; i++)
		function->values[i] = (struct ptxa_value){0, 0, PTX_UNSET, 0};
	for (uint64_t i = 0; i < size; i++)
		function->states[i] = (struct ptxa_value){0, 0, PTX_UNSET, 0};
	return true;
}

static void step_one(struct ptxa_step *step)
{
	switch (step->instruction->rule->class) {
	case PTX_NOTHING:
	case PTX_BRANCH:
	case PTX_BRANCH_TABLE:
	case PTX_LEAVE:
		break;
	case PTX_LOAD:
		ptxa_step_load(step);
		break;
	case PTX_FETCH:
	case PTX_GATHER:
		ptxa_step_gather(step);
		break;
	case PTX_STORE:
	case PTX_STORE_SHARED:
		ptxa_step_store(step);
		break;
	case PTX_ATOMIC:
	case PTX_REDUCE:
		ptxa_step_atomic(step);
		break;
	case PTX_COPY_BULK:
		ptxa_step_bulk(step);
		break;
	case PTX_DESCRIPTOR:
		ptxa_note_descriptor(step, ptxa_source(step, 0), step->instruction->rule->kind);
		break;
	case PTX_CALL:
		ptxa_step_call(step);
		break;
	default:
		ptxa_step_arithmetic(step);
	}
}

static void flow_to(struct ptxa_step *step, uint32_t next)
{
	struct ptxa_function *function = step->function;
	struct ptxa_value *into = &function->states[(uint64_t)next * function->state_count];

	if (next == PTX_NONE)
		return;
	step->program->changed |= !function->blocks[next].reached;
	function->blocks[next].reached = true;
	for (uint32_t i = 0; i < function->state_count; i++)
		step->program->changed |= ptxa_value_join(step->program, &into[i], step->current[i]);
	step->program->work += function->state_count + 1;
}

static uint8_t fact_of(const struct ptxa_step *step, uint32_t instruction)
{
	const struct ptxa_program *program = step->program;

	return program->facts && step->function == &program->functions[program->entry] ? program->facts[instruction] : 0;
}

static void follow(struct ptxa_step *step, uint32_t number)
{
	struct ptxa_function *function = step->function;
	const struct ptxa_block *block = &function->blocks[number];
	const struct ptxa_instruction *last = &function->code[block->end - 1];

	/* The place behind the last block's state is the working copy. */
	step->current = &function->states[(uint64_t)function->block_count * function->state_count];
	memcpy(step->current, &function->states[(uint64_t)number * function->state_count],
	       function->state_count * sizeof(*step->current));
	for (uint32_t i = block->first; i < block->end && !step->program->stop; i++) {
		step->instruction = &function->code[i];
		step->operands = &function->operands[step->instruction->first];
		step->fact = fact_of(step, i);
		if (!(step->fact & PTX_FACT_NEVER))
			step_one(step);
		step->program->work += 1 + step->instruction->count;
	}
	if (!ends_block(last->rule->class) || !(step->fact & PTX_FACT_ALWAYS))
		flow_to(step, block->next[0]);
	if (!(step->fact & PTX_FACT_NEVER))
		flow_to(step, block->next[1]);
	for (uint32_t i = 0; last->rule->class == PTX_BRANCH_TABLE && i < last->extra; i++)
		flow_to(step, function->block_of[function->targets[last->target + i]]);
}

static bool pass(struct ptxa_program *program)
{
	program->changed = false;
	for (uint32_t i = 0; i < program->function_count; i++) {
		struct ptxa_step step = {.program = program, .function = &program->functions[i]};

		if (!step.function->live)
			continue;
		if (step.function->block_count)
			step.function->blocks[0].reached = true;
		for (uint32_t block = 0; block < step.function->block_count; block++) {
			if (step.function->blocks[block].reached)
				follow(&step, block);
			if (program->sets.error)
				return false;
			if (program->work + program->sets.work > WORK_MAX)
				return ptxa_stop(program, PATHS_LIMIT, 0);
			if (program->stop)
				return false;
		}
	}
	return true;
}

bool ptxa_flow(struct ptxa_program *program)
{
	for (uint32_t i = 0; i < program->function_count; i++) {
		struct ptxa_function *function = &program->functions[i];

		if ((i == program->entry || function->wanted) &&
		    !(make_blocks(program, function) && make_states(program, function)))
			return false;
	}
	program->functions[program->entry].live = true;
	if (program->values && !ptxa_constants(program))
		return false;
	do {
		if (!pass(program))
			return false;
	} while (program->changed);
	program->final = true;
	if (!pass(program))
		return false;
	ptxa_judge_handed_out(program);
	return true;
}
