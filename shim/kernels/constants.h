/*
 * For given values of the parameters: what a program computes from them alone, and so which of its branches, guards and selections are decided. Conditional
 * constant propagation over the blocks of a program: a value is known or it is not, edges that cannot be taken are not followed, to a fixed point.
 * constants.c drives, constants_step.c knows the instructions, constants_written.c what each may write.
 */
#ifndef CUCONST_KERNELS_CONSTANTS_H
#define CUCONST_KERNELS_CONSTANTS_H

#include "shim/kernels/paths.h"
#include "shim/kernels/program.h"
#include "shim/kernels/sets.h"

/* What is decided about an instruction. */
enum constants_fact {
	FACT_NEVER = 1,     /* it does not run; a branch is not taken */
	FACT_ALWAYS = 2,    /* where control comes it runs: its guard is true; a branch is taken */
	FACT_FIRST = 4,     /* a selection gives its first operand */
	FACT_SECOND = 8,    /* ... its second */
	FACT_NUMBER_A = 16, /* its first factor is a small number, so it is no part of an address */
	FACT_NUMBER_B = 32, /* ... its second, or the count of a shift */
	FACT_NULL = 64, /* the register that a store goes through holds null: only a uniform one beside it can lead anywhere */
};

/* A value and the bytes of the parameters that it was made from. */
struct constant {
	uint32_t value;
	uint32_t from;
};
#define CONSTANT_UNKNOWN UINT32_MAX /* as `from` */
#define CONSTANT_SMALL (1u << 31)   /* in `from`: known is only that it is below PATHS_SMALL */

#define CONSTANTS_UNIFORM 8 /* of predicates: UP0 */
#define CONSTANTS_TRUE 7    /* PT; UPT is 7 behind UP0 */

/* At the entry of a block. */
struct constants_state {
	struct constant r[256], u[256], p[16];
	uint32_t armed[16]; /* by barrier: place in program.armed, or CONSTANTS_ARMED_ANY */
};
#define CONSTANTS_ARMED_ANY UINT32_MAX

struct constants {
	const struct program *program;
	const struct paths_values *values;
	struct sets sets; /* of bytes of the parameters */
	struct constants_state **states;
	uint64_t *queue;
	uint32_t work;
	struct constants_state now; /* while a block runs */
	uint32_t insn;              /* being run */
	int error;
	bool final;      /* the last pass: what was missed is noted */
	uint32_t missed; /* a set, as paths_values.missed */
	/* Of the instruction that ran last. */
	uint8_t fact;
	uint32_t fact_from;
};

/*
 * Fills in facts[], one for each instruction, and notes in values->used which bytes decided them. 0 or -ENOMEM; beyond its limits there are no facts.
 */
int constants_run(const struct program *program, struct paths_values *values, uint8_t *facts);

/* With this fact about its last instruction, does a block not lead to its `next`th? */
bool constants_cut(const struct program *program, const struct block *block, uint32_t next, uint8_t fact);

/* For the files of this analysis. */
/* What was made from both; of two of which one is small. */
uint32_t constants_join_from(struct constants *c, uint32_t a, uint32_t b);
/* Either value; returns whether that changed `into`. */
bool constants_meet(struct constants *c, struct constant *into, struct constant from);
void constants_step(struct constants *c, const struct sass_insn *insn);
/* All that an instruction may write becomes unknown. */
void constants_forget_written(struct constants *c, const struct sass_insn *insn);
void constants_forget_all(struct constants_state *state);

/* Which predicates an instruction may write: bits of P0 to P6, and of UP0 to UP6 from CONSTANTS_UNIFORM on. */
unsigned constants_predicates(const struct sass_insn *insn);
/* Is the guard certainly a predicate of the file that insn->uniform says? */
bool constants_guard_sure(const struct sass_insn *insn);
/* Adds the registers that it may write. Not of calls and returns: they may write all. */
void constants_registers(const struct sass_machine *machine, const struct sass_insn *insn,
                         struct sass_registers *written);

static inline bool constant_known(struct constant constant)
{
	return constant.from < CONSTANT_SMALL;
}

/* Is it certainly below PATHS_SMALL? */
static inline bool constant_small(struct constant constant)
{
	return constant_known(constant) ? constant.value < PATHS_SMALL : constant.from != CONSTANT_UNKNOWN;
}

/* What is left of a constant where its value is not known, but that it is small. */
static inline struct constant constant_smaller(struct constant constant)
{
	constant.from = constant_small(constant) ? constant.from | CONSTANT_SMALL : CONSTANT_UNKNOWN;
	return constant;
}

#endif
