/*
 * Which registers can still matter, and which instructions. A register that nothing reads before it is written again, or that only goes into results of which
 * that is true, needs no set: it is not joined where paths meet, and a change of it runs no block again. Of a matrix product that leaves the addresses.
 * What the analysis says is the same with and without.
 */
#ifndef CUCONST_KERNELS_TAINT_LIVE_H
#define CUCONST_KERNELS_TAINT_LIVE_H

#include "shim/kernels/sets.h"
#include "shim/kernels/taint_effect.h"

struct taint_live {
	uint64_t bits[TAINT_REGISTERS / 64];
};

#define TAINT_GUARDED_RESULTS 3 /* a register's set, and those of struct taint_guarded */

/* When a step must run again, though nothing has changed that it reads. */
enum taint_when {
	WHEN_FIRST = 1,     /* its block had not run: each step */
	WHEN_ANY = 2,       /* always: as in struct taint_effect, or what it leaves under its guard is not kept */
	WHEN_STORED = 4,    /* something else is stored than when its block ran last */
	WHEN_RECORDING = 8, /* it acts, or tells something */
};

enum taint_need { NEED_NOT, NEED_RECORDING, NEED_ALWAYS };

/* What taint_steps() does about a step. Those in short with one result and no guard just run: to ask whether they must would take as long. */
enum taint_pace { PACE_UNPLANNED, PACE_SKIP, PACE_ASK, PACE_SHORT };

/* How a step runs: taint_short.c. */
enum taint_plan { TAINT_UNPLANNED, TAINT_IN_FULL, TAINT_JOINS, TAINT_WIDE, TAINT_COMPARES };

/* What becomes of a set before it is joined (taint_alu.c); its places in struct sets_derived. */
enum taint_turn {
	TURN_NONE = SETS_ITSELF,
	TURN_SIGN = SETS_SCALED,
	TURN_PLAIN = SETS_PLAIN,
	TURN_SCALED = SETS_OWN,
	TURN_AGAIN,
	TURN_UNDO
};

/* An instruction that matters. */
struct taint_step {
	uint32_t insn;
	uint32_t ranges; /* in taint_liveness.ranges: what it writes, first what it overwrites; then what it reads */
	uint32_t results; /* in taint_liveness.results: what it wrote when it ran last; under a guard TAINT_GUARDED_RESULTS each */
	uint32_t literal; /* the one it leaves in its result, if `is_literal` */
	uint8_t when;     /* enum taint_when */
	uint8_t turn[3];  /* enum taint_turn, of its sources */
	uint8_t kill_count, write_count, read_count;
	uint8_t plan; /* enum taint_plan */
	bool guarded;
	bool single;     /* it overwrites `result` and nothing else */
	uint8_t pace[2]; /* enum taint_pace; while recording */
	/* The rest, and turn[], are there once it is planned. */
	bool is_literal;
	bool tells;    /* runs in full while recording */
	bool compares; /* its sources with one another */
	bool plain;    /* its result */
	bool extends;  /* its high word is but a sign or 0, of a factor times 1 */
	uint8_t from_count;
	uint16_t result; /* register, the first that it writes */
	/* Registers; from TAINT_REGISTERS on sets. Of a comparison low words, then high ones; of TAINT_WIDE both factors, then the words of what is added. */
	uint16_t from[4];
};

/* What all steps of a block do. */
struct taint_summary {
	struct taint_live touched; /* it depends on them */
	struct taint_live killed;  /* it leaves nothing of them */
	bool recalls;              /* depends on what is stored */
	bool tells;                /* something while recording */
	bool arms;                 /* barriers */
};

struct taint_liveness {
	struct taint_live *at; /* by place: at the entry of a block, where returns meet */
	struct taint_step *steps;
	uint32_t *first;                 /* by block, and one more: in steps */
	struct taint_summary *summaries; /* by block */
	taint_packed *ranges;
	uint16_t *results; /* SETS_NONE: it has not run */
};

static inline uint64_t taint_range_bits(taint_packed range)
{
	static const uint16_t ones[16] = {0,    0x1,   0x3,   0x7,   0xf,   0x1f,   0x3f,   0x7f,
	                                  0xff, 0x1ff, 0x3ff, 0x7ff, 0xfff, 0x1fff, 0x3fff, 0x7fff};
	return (uint64_t)ones[taint_range_count(range)] << taint_range_first(range) % 64;
}

static inline bool taint_live_any(const struct taint_live *live, taint_packed range)
{
	return live->bits[taint_range_first(range) / 64] & taint_range_bits(range);
}

static inline void taint_live_add(struct taint_live *live, taint_packed range)
{
	live->bits[taint_range_first(range) / 64] |= taint_range_bits(range);
}

/* `facts` (constants.h) may be NULL. In the program's arena. 0 or -ENOMEM. */
int taint_live_find(const struct program *program, const uint8_t *facts, struct taint_liveness *ret_liveness);

#endif
