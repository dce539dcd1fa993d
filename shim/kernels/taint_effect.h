/*
 * What an instruction reads and writes of the registers, as taint_steps() does it: for the search from the end of the code to its beginning that finds which
 * registers can still matter to an address (taint_live.c).
 */
#ifndef CUCONST_KERNELS_TAINT_EFFECT_H
#define CUCONST_KERNELS_TAINT_EFFECT_H

#include "shim/kernels/program.h"

/* Registers by one number: those of R first, then those of UR. */
#define TAINT_REGISTERS 512
#define TAINT_UNIFORM 256

struct taint_range {
	uint16_t first;
	uint8_t count;
	bool kills; /* of a write: nothing of what was there stays */
};

struct taint_effect {
	uint8_t read_count, write_count;
	bool acts;    /* on memory, barriers or the stack pointer: runs whether or not its result is of use */
	bool records; /* tells something while recording: what it reads is of use, whatever comes of its result */
	bool again; /* what it does depends on more than the registers it reads and what is stored: runs whenever its block does */
	bool recalls; /* depends on what is stored */
	struct taint_range reads[7], writes[3];
};

/* Of instruction `at` of the program. A superset of the reads and, as to `kills`, a subset. */
void taint_effect(const struct program *program, uint32_t at, struct taint_effect *ret_effect);

/* Do the operands of a mixing instruction meet in a comparison? */
bool taint_mix_compares(const struct sass_insn *insn);

#endif
