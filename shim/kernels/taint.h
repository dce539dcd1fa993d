/*
 * The data flow: for each register, what its value may be made from (words of the parameters, loaded values, variables, windows), through all paths of a
 * program, to a fixed point; then each memory instruction's address is judged. taint_run.c drives, taint_flow.c joins, taint_alu.c and taint_memory.c know the instructions,
 * taint_judge.c draws the conclusions.
 */
#ifndef CUCONST_KERNELS_TAINT_H
#define CUCONST_KERNELS_TAINT_H

#include <string.h>

#include "shim/kernels/constants.h"
#include "shim/kernels/guards.h"
#include "shim/kernels/program.h"
#include "shim/kernels/sets.h"
#include "shim/kernels/taint_live.h"

/* Members of the sets; words of the parameters (4 bytes each) follow from FROM_PARAMS on, so that a slot is an even and an odd member. */
enum taint_member {
	FROM_LOADED_LOW,  /* low word of a load of 64 bits or more */
	FROM_LOADED_HIGH, /* its high word */
	FROM_LOADED_32,
	FROM_GLOBAL,   /* address of a module variable */
	FROM_FUNCTION, /* address of a known function */
	FROM_WINDOW,   /* where local or shared memory begins among generic addresses */
	FROM_BLOCK,    /* generic address of the parameters themselves */
	FROM_SHIFTED, /* went down by a right shift, or around by a large factor: a multiple may restore it, so that is not a mere index */
	FROM_PIECE, /* a byte or 16 bits of a parameter */
	FROM_PARAMS = 16,
};

#define STACK_NONE INT32_MIN      /* not known yet: the block waits */
#define STACK_ANY (INT32_MIN + 1) /* differs between paths */

/* While a block runs. Registers that are not live (taint_live.h) hold anything. */
struct taint_state {
	union {
		struct {
			set_id r[256], u[256];
		};
		set_id registers[TAINT_REGISTERS];
	};
	set_id armed[16]; /* of taint.targets */
	int32_t stack;    /* R1, in bytes from its first value */
};

/* What of a state flows besides registers. A return brings neither: each caller's stack pointer and barriers are what they were before the call. */
enum flow_part { FLOW_STACK = 1, FLOW_BARRIERS = 2 };

/* At the entry of a block, or where returns meet. */
struct taint_entry {
	set_id *sets; /* rows of 64 registers, those of t->rows one after the other */
	set_id armed[16];
	set_id waited; /* what the barrier that the block waits at was armed with when it ran last */
	int32_t stack;
	uint32_t memory;      /* t->memory_version when it ran last */
	bool reached, called; /* called: what comes before a return point was reached */
	bool filled;          /* `sets` are there */
	bool ran;
	uint8_t moved;             /* enum flow_part, since it ran last */
	struct taint_live changed; /* registers, since it ran last */
};

/* What flows on: where it lies. */
struct taint_source {
	const set_id *rows[TAINT_REGISTERS / 64]; /* those of t->rows */
	const set_id *armed;
	int32_t stack;
};

/* A register written under a predicate: what it holds where the predicate was true, and where it was not. */
struct taint_guarded {
	uint32_t stamp, guard; /* of the block being run; of the predicate's value (guards.h) */
	set_id when[2];        /* by "predicate holds" */
};

struct taint_known {
	uint32_t stamp, value;
};

struct taint_cell {
	int32_t word; /* of local memory, from the first stack pointer */
	bool used;
	set_id set;
};

/*
 * What was ever stored in memory of one kind, without order: by the parity of the 4-byte word, because accesses of 8 bytes and more are aligned; a narrower one,
 * whose place is not known, counts for both.
 */
struct taint_words {
	set_id of[2];
};

/* By register: what it held where another state flowed in last, and what came and took its place, since it was no less: mostly it is so at the next place, too. */
struct taint_growth {
	set_id before[TAINT_REGISTERS], after[TAINT_REGISTERS];
	set_id armed_before[16], armed_after[16]; /* ... by barrier */
};

struct taint_pair {
	set_id low, high;
};

/* What a set pair says about an address. */
struct taint_findings {
	uint32_t plain, plain_wide; /* slots that are bases as they stand; those inside parameters of 8 bytes or more */
	uint32_t slot, slot_wide;   /* one of each */
	bool stray; /* the halves have words that are not of one slot, and not the same ones: perhaps an address in two of them */
};

/* ... once found: most loads and stores of a kernel have one of a few addresses. */
struct taint_judged {
	struct taint_pair address;
	struct taint_findings found;
	bool filled, loaded, stored; /* loaded, stored: its slots are marked so */
};
#define TAINT_JUDGED 64

struct taint;

/* The registers of t->source, those that are chosen, into the entry of a place, which is filled: those that are live there. Has any changed? (taint_join.c; wide.h) */
typedef bool taint_joins(struct taint *t, uint32_t place, const struct taint_live *chosen);
taint_joins taint_join_narrow, taint_join_wide;

struct taint {
	const struct program *program;
	struct kernel_paths *paths;
	const struct paths_watch *watch; /* or NULL */
	const uint8_t *facts; /* of each instruction, for given values of the parameters (constants.h); or NULL */
	struct sets sets, targets;
	uint32_t word_count;
	bool *wide, *whole; /* by slot: inside a parameter of 8 bytes or more; is one of 8 bytes */
	set_id all_params, indexed_params, loaded;

	struct taint_liveness live;
	struct taint_entry *entries; /* by block; behind them, where returns meet */
	set_id *entry_sets;
	uint8_t rows[TAINT_REGISTERS / 64]; /* of the registers, those in which any is live anywhere */
	unsigned row_count;
	taint_joins *join;
	uint64_t *queue; /* a bit for each place that waits */
	uint32_t work;
	uint32_t sweep; /* the place that ran last */
	struct taint_source source;
	struct taint_growth growth;
	set_id *ones, *arms; /* the set of each single member, and of `targets`; 0: not made yet */

	struct taint_state now; /* while a block runs */
	/* ... registers that hold something else than they did at the same point when it ran last; all of them when it had not. */
	struct taint_live changed;
	/* ... or something else where their predicates are true. */
	struct taint_live changed_guarded;
	bool first;    /* it had not run */
	uint8_t moved; /* enum flow_part: what of its entry has changed since; all when it had not run */
	uint8_t when;  /* which steps run again: enum taint_when */
	uint32_t stamp;
	uint32_t *guards; /* by instruction: guards.h */
	struct taint_guarded guarded[TAINT_REGISTERS];
	struct taint_known known[TAINT_REGISTERS];
	uint32_t insn; /* being run */
	bool recording;

	struct taint_words local_any, local_unplaced, shared, global;
	struct taint_cell *cells;
	size_t cell_count, cell_used;
	uint32_t memory_version;                  /* raised by each change */
	struct taint_judged judged[TAINT_JUDGED]; /* direct-mapped */
	int error;
	enum paths_reason stop; /* gave up, at insn */
};

/* Fills paths->slots and so on. `facts` and `watch` may be NULL. 0 or -ENOMEM. */
int taint_run(const struct program *program, const uint8_t *facts, const struct paths_watch *watch,
              struct kernel_paths *paths);

/* For the files of this analysis. */
extern const struct taint_live taint_all;

/* Registers that hold nothing yet. */
static inline void taint_clear_entry(const struct taint *t, struct taint_entry *entry)
{
	memset(entry->sets, 0, (size_t)t->row_count * 64 * sizeof *entry->sets);
	entry->filled = true;
}

/* Places that wait to be run (taint_flow.c). */
void taint_push(struct taint *t, uint32_t place);
bool taint_pop(struct taint *t, uint32_t *ret_place);
static inline bool taint_runs(const struct taint *t, uint32_t block)
{
	return t->entries[block].reached && t->entries[block].stack != STACK_NONE;
}
/* What a block that has just run leaves flows on. */
void taint_flow_out(struct taint *t, uint32_t id);
/* Where nothing has changed since a block ran that it depends on: what changed flows through it, without running it. False: it must run. */
bool taint_flow_through(struct taint *t, uint32_t id);
/* From where the returns of a function meet to where it was called. */
void taint_flow_back(struct taint *t, uint32_t function);

/* Those of a block, one after the other. */
void taint_steps(struct taint *t, struct taint_step *step, struct taint_step *end);
void taint_alu(struct taint *t, const struct sass_insn *insn);
void taint_memory(struct taint *t, const struct sass_insn *insn);

set_id taint_read_guarded(const struct taint *t, const struct sass_insn *insn, bool uniform, unsigned reg);
void taint_write_guarded(struct taint *t, const struct sass_insn *insn, bool uniform, unsigned reg, set_id set);

static inline set_id taint_read(const struct taint *t, const struct sass_insn *insn, unsigned reg)
{
	if (reg >= SASS_RZ)
		return 0;
	return insn->guard == 7 ? t->now.r[reg] : taint_read_guarded(t, insn, false, reg);
}
static inline set_id taint_read_uniform(const struct taint *t, const struct sass_insn *insn, unsigned reg)
{
	if (reg >= t->program->machine.uniform_zero)
		return 0;
	return insn->guard == 7 || !insn->uniform ? t->now.u[reg] : taint_read_guarded(t, insn, true, reg);
}
static inline void taint_write_either(struct taint *t, const struct sass_insn *insn, bool uniform, unsigned reg,
                                      set_id set)
{
	unsigned place = uniform ? TAINT_UNIFORM + reg : reg;
	t->known[place].stamp = 0;
	if (insn->guard != 7) {
		taint_write_guarded(t, insn, uniform, reg, set);
		return;
	}
	t->guarded[place].stamp = 0;
	t->now.registers[place] = set;
}
static inline void taint_write(struct taint *t, const struct sass_insn *insn, unsigned reg, set_id set)
{
	if (reg < SASS_RZ)
		taint_write_either(t, insn, false, reg, set);
}
static inline void taint_write_uniform(struct taint *t, const struct sass_insn *insn, unsigned reg, set_id set)
{
	if (reg < t->program->machine.uniform_zero)
		taint_write_either(t, insn, true, reg, set);
}
/* `reg` and the one behind it. */
static inline struct taint_pair taint_read_pair(const struct taint *t, const struct sass_insn *insn, unsigned reg)
{
	return (struct taint_pair){taint_read(t, insn, reg), taint_read(t, insn, reg + 1)};
}
static inline struct taint_pair taint_read_uniform_pair(const struct taint *t, const struct sass_insn *insn, unsigned reg)
{
	return (struct taint_pair){taint_read_uniform(t, insn, reg), taint_read_uniform(t, insn, reg + 1)};
}
/* The 4 bytes at `offset` of a constant bank. */
set_id taint_const(struct taint *t, uint32_t bank, uint32_t offset);

static inline set_id taint_join(struct taint *t, set_id a, set_id b)
{
	return sets_join(&t->sets, a, b);
}
static inline set_id taint_one(struct taint *t, size_t member)
{
	if (!t->ones[member])
		t->ones[member] = sets_one(&t->sets, member);
	return t->ones[member];
}

/* The kind of a store that is told apart from its row: a cache line whose contents are dropped. */
#define TAINT_KIND_DISCARD "CCTL.D"

/* What is decided about an instruction: enum constants_fact. */
static inline uint8_t taint_fact(const struct taint *t, uint32_t insn)
{
	return t->facts ? t->facts[insn] : 0;
}

/* Conclusions; heeded only while recording. */
void taint_stored(struct taint *t, struct taint_pair address, const char *kind);
void taint_loaded(struct taint *t, struct taint_pair address);
void taint_reason(struct taint *t, enum paths_reason reason);
/* Stores that a register does not address: through an object or a descriptor. */
void taint_stored_indirectly(struct taint *t, const char *kind);
/* A word went where others can read it, so another address in its place would be seen. */
void taint_handed_out(struct taint *t, set_id set);
/* Two addresses met in one comparison or difference. */
void taint_compared(struct taint *t, set_id a, set_id b);

#endif
