/*
 * What an instruction reads and writes of the registers, as taint_steps() does it: for the search from the end of the code to its beginning that finds which
 * registers can still matter to an address (taint_live.c).
 */
#ifndef CUCONST_KERNELS_TAINT_EFFECT_H
#define CUCONST_KERNELS_TAINT_EFFECT_H

#include "shim/kernels/program.h"

#define TAINT_REGISTERS SASS_REGISTERS
#define TAINT_UNIFORM SASS_UNIFORM

/* Some registers, one behind the other, packed; all of them lie in one word of a struct taint_live. */
typedef uint16_t taint_packed;

static inline unsigned taint_range_first(taint_packed range)
{
	return range & (TAINT_REGISTERS - 1);
}
static inline unsigned taint_range_count(taint_packed range)
{
	return range >> 9;
}

#define TAINT_WRITES 6 /* three, each in two */
#define TAINT_READS 14
#define TAINT_EFFECT_READS (TAINT_READS + 3)

struct taint_effect {
	uint8_t kill_count, write_count, read_count;
	bool acts;    /* on memory, barriers or the stack pointer: runs whether or not its result is of use */
	bool records; /* tells something while recording: what it reads is of use, whatever comes of its result */
	bool again; /* what it does depends on more than the registers it reads and what is stored: runs whenever its block does */
	bool recalls;                          /* depends on what is stored */
	taint_packed writes[TAINT_WRITES + 1]; /* first those that leave nothing of what was there; none of it behind them */
	taint_packed *reads; /* the caller's room for TAINT_EFFECT_READS: up to TAINT_READS, and none of it, three times, behind them */
};

/* Of instruction `at` of the program. A superset of the reads and, as to `kills`, a subset. */
void taint_effect(const struct program *program, uint32_t at, struct taint_effect *ret_effect);

/* Do the operands of a mixing instruction meet in a comparison? */
bool taint_mix_compares(const struct sass_insn *insn);

#endif
