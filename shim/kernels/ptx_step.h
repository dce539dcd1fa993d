/* One instruction's effect on what is known: what ptx_flow.c, ptx_step.c, ptx_memory.c and ptx_store.c share. */
#ifndef CUCONST_KERNELS_PTX_STEP_H
#define CUCONST_KERNELS_PTX_STEP_H

#include "shim/kernels/ptx_code.h"

struct ptx_step {
	struct ptx_program *program;
	struct ptx_function *function;
	struct ptx_value *current; /* registers with a value per place */
	const struct ptx_instruction *instruction;
	const struct ptx_operand *operands;
};

static inline uint32_t ptx_join(struct ptx_step *step, uint32_t left, uint32_t right)
{
	return ptx_set_join(&step->program->sets, left, right);
}

static inline uint32_t ptx_weak(struct ptx_step *step, uint32_t set)
{
	return ptx_set_weak(&step->program->sets, set);
}

static inline struct ptx_value ptx_plain(uint32_t low, uint32_t high)
{
	return (struct ptx_value){low, high, PTX_MIXED, 0};
}

/* True when *into grew. */
bool ptx_value_join(struct ptx_program *program, struct ptx_value *into, struct ptx_value value);

/* A register, number, or address of a variable; of a vector the union of its items. */
struct ptx_value ptx_read(struct ptx_step *step, const struct ptx_operand *operand);
/* The same by place among the operands; nothing when there is none. */
struct ptx_value ptx_source(struct ptx_step *step, uint32_t index);
/* Registers only; other operands take nothing. */
void ptx_write(struct ptx_step *step, const struct ptx_operand *operand, struct ptx_value value);
/* To all items of a vector. */
void ptx_write_all(struct ptx_step *step, const struct ptx_operand *operand, struct ptx_value value);

void ptx_step_arithmetic(struct ptx_step *step);

/* ptx_memory.c */
void ptx_step_load(struct ptx_step *step);
void ptx_step_store(struct ptx_step *step);
void ptx_step_atomic(struct ptx_step *step);
void ptx_step_bulk(struct ptx_step *step);
void ptx_step_gather(struct ptx_step *step);
void ptx_step_call(struct ptx_step *step);
struct ptx_value ptx_variable_load(struct ptx_step *step, uint32_t variable, bool exact, uint32_t offset, uint32_t bytes);
void ptx_variable_store(struct ptx_step *step, uint32_t variable, bool exact, uint32_t offset, uint32_t bytes,
                        struct ptx_value value);
bool ptx_has_variable(struct ptx_step *step, struct ptx_value address);

/* ptx_store.c: what an address says of the parameters. Only the last pass notes it. */
void ptx_note_store(struct ptx_step *step, struct ptx_value address, enum ptx_space space, const char *kind);
void ptx_note_load(struct ptx_step *step, struct ptx_value address);
void ptx_note_descriptor(struct ptx_step *step, struct ptx_value address, const char *kind);
void ptx_note_compared(struct ptx_step *step, struct ptx_value left, struct ptx_value right);
/* Turned round, so that sums with it are differences. */
void ptx_note_turned(struct ptx_step *step, struct ptx_value value);

#endif
