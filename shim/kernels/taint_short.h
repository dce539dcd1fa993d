/*
 * Instructions in short: what they join, worked out once (taint_short.c), and what that shares with the long way (taint_alu.c).
 */
#ifndef CUCONST_KERNELS_TAINT_SHORT_H
#define CUCONST_KERNELS_TAINT_SHORT_H

#include "shim/kernels/taint.h"

/* How a step runs, by what is known of literals now: the same whenever its block runs. */
void taint_plan(struct taint *t, const struct sass_insn *insn, struct taint_step *step);
/* A step whose plan is not TAINT_IN_FULL. */
void taint_run_short(struct taint *t, const struct sass_insn *insn, const struct taint_step *step);

/* Of taint_alu.c. */
set_id taint_turn_anew(struct taint *t, set_id set, enum taint_turn turn);
/* What becomes of a set. */
static inline set_id taint_turned(struct taint *t, set_id set, enum taint_turn turn)
{
	set_id known = t->sets.derived[set].of[turn];
	return known != SETS_NONE ? known : taint_turn_anew(t, set, turn);
}
static inline set_id taint_short_source(struct taint *t, const struct taint_step *step, unsigned i)
{
	unsigned from = step->from[i];
	set_id set = t->now.registers[from % TAINT_REGISTERS];
	return taint_turned(t, from < TAINT_REGISTERS ? set : (set_id)(from - TAINT_REGISTERS), step->turn[i]);
}
/* What a step without a guard whose plan is TAINT_JOINS leaves in its result. With as few branches as can be: each step does something else. */
static inline set_id taint_short_result(struct taint *t, const struct taint_step *step)
{
	set_id a = taint_short_source(t, step, 0), b = taint_short_source(t, step, 1);
	set_id result = sets_join_two(&t->sets, a, b);
	if (step->from_count > 2)
		result = taint_join(t, result, taint_short_source(t, step, 2));
	return step->plain ? taint_turned(t, result, TURN_PLAIN) : result;
}
bool taint_may_undo(uint32_t factor);
/* Is the operand a literal, or a register that holds one? */
bool taint_is_literal(const struct taint *t, const struct sass_operand *operand, uint32_t *ret_value);
/* Is the operand in slot `index` subtracted? */
bool taint_negated(const struct sass_insn *insn, const struct sass_operand operands[3], unsigned index);
/* The operand that a move takes. */
unsigned taint_moved(const struct sass_insn *insn);
/* Does an operand of a mixing instruction count against the result? */
bool taint_mix_negates(const struct sass_insn *insn);

#endif
