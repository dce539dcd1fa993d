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
/* Of a set that is not empty. */
static inline set_id taint_turned(struct taint *t, set_id set, enum taint_turn turn)
{
	set_id known = t->sets.derived[set].of[SETS_OWN + turn - TURN_SCALED];
	return known != SETS_NONE ? known : taint_turn_anew(t, set, turn);
}
static inline set_id taint_source_set(const struct taint *t, unsigned from)
{
	set_id set = t->now.registers[from % TAINT_REGISTERS];
	return from < TAINT_REGISTERS ? set : (set_id)(from - TAINT_REGISTERS);
}
/* What a step without a guard whose plan is TAINT_JOINS leaves in its result. */
static inline set_id taint_short_result(struct taint *t, const struct taint_step *step)
{
	set_id result = 0;
	for (unsigned i = 0; i < step->from_count; i++) {
		set_id set = taint_source_set(t, step->from[i]);
		if (set && step->turn[i])
			set = taint_turned(t, set, step->turn[i]);
		result = taint_join(t, result, set);
	}
	return result && step->plain ? taint_turned(t, result, TURN_PLAIN) : result;
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
