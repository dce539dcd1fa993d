/* One instruction's effect on what is known: what ptx_flow.c, ptx_step.c, ptx_memory.c and ptx_store.c share. */
#ifndef CUCONST_KERNELS_PTX_STEP_H
#define CUCONST_KERNELS_PTX_STEP_H

#include "shim/kernels/ptx_code.h"

struct ptxa_step {
	struct ptxa_program *program;
	struct ptxa_function *function;
	struct ptxa_value *current; /* registers with a value per place */
	const struct ptxa_instruction *instruction;
	const struct ptxa_operand *operands;
	uint8_t fact; /* enum ptxa_fact */
};

static inline uint32_t ptxa_join(struct ptxa_step *step, uint32_t left, uint32_t right)
{
	return ptxa_set_join(&step->program->sets, left, right);
}

static inline uint32_t ptxa_weak(struct ptxa_step *step, uint32_t set)
{
	return ptxa_set_weak(&step->program->sets, set);
}

static inline struct ptxa_value ptxa_plain(uint32_t low, uint32_t high)
{
	return (struct ptxa_value){low, high, PTX_MIXED, 0};
}

/* True when *into grew. */
bool ptxa_value_join(struct ptxa_program *program, struct ptxa_value *into, struct ptxa_value value);

/* A register, number, or address of a variable; of a vector the union of its items. */
struct ptxa_value ptxa_read(struct ptxa_step *step, const struct ptxa_operand *operand);
/* The same by place among the operands; nothing when there is none. */
struct ptxa_value ptxa_source(struct ptxa_step *step, uint32_t index);
/* Registers only; other operands take nothing. */
void ptxa_write(struct ptxa_step *step, const struct ptxa_operand *operand, struct ptxa_value value);
/* To all items of a vector. */
void ptxa_write_all(struct ptxa_step *step, const struct ptxa_operand *operand, struct ptxa_value value);

void ptxa_step_arithmetic(struct ptxa_step *step);

/* ptx_memory.c */
void ptxa_step_load(struct ptxa_step *step);
void ptxa_step_store(struct ptxa_step *step);
void ptxa_step_atomic(struct ptxa_step *step);
void ptxa_step_bulk(struct ptxa_step *step);
void ptxa_step_gather(struct ptxa_step *step);
void ptxa_step_call(struct ptxa_step *step);
struct ptxa_value ptxa_variable_load(struct ptxa_step *step, uint32_t variable, bool exact, uint32_t offset,
                                     uint32_t bytes);
void ptxa_variable_store(struct ptxa_step *step, uint32_t variable, bool exact, uint32_t offset, uint32_t bytes,
                         struct ptxa_value value);
bool ptxa_has_variable(struct ptxa_step *step, struct ptxa_value address);

/* ptx_store.c: what an address says of the parameters. Only the last pass notes it. */
void ptxa_note_store(struct ptxa_step *step, struct ptxa_value address, enum ptxa_space space, const char *kind);
void ptxa_note_load(struct ptxa_step *step, struct ptxa_value address);
void ptxa_note_descriptor(struct ptxa_step *step, struct ptxa_value address, const char *kind);
/*
 * What is stored outside of local and shared memory: others can read it, so that another address in its place would be seen. Judged at the end, of the slots that
 * turned out to be addresses.
 */
void ptxa_note_handed_out(struct ptxa_step *step, struct ptxa_value address, enum ptxa_space space,
                          struct ptxa_value value);
void ptxa_judge_handed_out(struct ptxa_program *program);
void ptxa_note_compared(struct ptxa_step *step, struct ptxa_value left, struct ptxa_value right);
/* Turned round, so that sums with it are differences. */
void ptxa_note_turned(struct ptxa_step *step, struct ptxa_value value);

#endif
