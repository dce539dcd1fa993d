/*
 * The code one kernel can reach: its own section and, one after the other, those of the functions it calls or takes the address of, in one row of
 * instructions; cut into blocks with their successors. Built once from a cubin, not changed by the analysis.
 */
#ifndef CUCONST_KERNELS_PROGRAM_H
#define CUCONST_KERNELS_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shim/kernels/arena.h"
#include "shim/kernels/elf.h"
#include "shim/kernels/paths.h"
#include "shim/kernels/sass.h"

#define PROGRAM_NONE UINT32_MAX

/* What the relocations of an instruction say. */
enum program_mark {
	MARK_GLOBAL = 1,   /* an immediate is part of the address of a module variable */
	MARK_FUNCTION = 2, /* ... of a function that is known */
	MARK_EXTERNAL = 4, /* calls a known function of the driver's (vprintf, malloc...) */
	MARK_UNKNOWN = 8,  /* calls, or names, a function that is not known */
};

struct program_part {
	uint32_t section, first, count; /* instructions */
};

struct program_param {
	uint32_t offset, bytes, index;
};

enum block_kind {
	BLOCK_PLAIN,
	BLOCK_RETURN,        /* leads to the return points of its functions' callers */
	BLOCK_WAIT,          /* leads on, and to what the barrier was armed with */
	BLOCK_CALL,          /* leads to its target; its return point follows */
	BLOCK_CALL_UNKNOWN,  /* leads to all functions of which an address is taken, and on */
	BLOCK_BROKEN,        /* leads outside the code */
	BLOCK_TABLE_UNKNOWN, /* an indirect branch without a list of targets */
};

struct block {
	uint32_t first, last;                  /* instructions, both included */
	uint32_t next_first, next_count;       /* in program.next */
	uint32_t call_count;                   /* so many of them, the first, are functions that are called */
	uint32_t return_point;                 /* block, or PROGRAM_NONE */
	uint32_t returns_first, returns_count; /* of a return: functions, in program.returns */
	bool returns_anywhere;                 /* ... and to all return points */
	uint8_t kind;                          /* enum block_kind */
};

/* A function's return point, or the function of a return. */
struct program_return {
	uint32_t from, to;
};

struct program_function {
	uint32_t points_first, points_count; /* in program.points */
	struct sass_registers written;       /* also by what it calls */
};

struct program {
	struct arena *arena; /* of all that is here, and of what is made of it */
	const struct elf *elf;
	const char *kernel;
	struct sass_machine machine;
	uint32_t params_at, params_bytes; /* in bank 0 */
	struct program_param *params;
	size_t param_count, param_room;
	struct program_part *parts;
	size_t part_count, part_room;
	struct sass_insn *insns;
	uint8_t *marks;    /* of each instruction: enum program_mark */
	uint8_t *classes;  /* of each instruction: enum sass_class, SASS_NOTHING where it is not known */
	uint32_t *control; /* instructions from SASS_BRANCH on, those that do not simply lead on */
	uint32_t control_count;
	uint32_t *links; /* calls with a relocation: the instruction called; BSSY: place in `armed` */
	uint32_t count;
	uint32_t entry;  /* instruction of the kernel's first */
	uint32_t *taken; /* first instructions of the functions of which an address is taken */
	size_t taken_count, taken_room;
	uint32_t *table; /* targets of indirect branches */
	size_t table_count, table_room;
	bool bank2_global, bank2_function;
	uint32_t *bank4_functions; /* offsets in bank 4 that hold a function's address */
	size_t bank4_count, bank4_room;

	struct block *blocks;
	uint32_t block_count;
	uint32_t *block_of; /* of each instruction */
	uint32_t *next;
	size_t next_count, next_room;
	uint32_t *armed; /* blocks that BSSY instructions name */
	size_t armed_count, armed_room;
	uint8_t *armed_by; /* of each: the barrier */
	size_t armed_by_count, armed_by_room;
	uint32_t wild_barriers;  /* a bit for each that is also set from a register: may lead to all of them */
	uint32_t named_barriers; /* a bit for each that a BSSY names */
	uint32_t *return_points; /* blocks: all of them */
	size_t return_count, return_room;
	uint32_t *loose; /* return points that any function may return to */
	size_t loose_count, loose_room;

	uint32_t *function_of; /* by block: the function that begins there, or PROGRAM_NONE */
	struct program_function *functions;
	uint32_t function_count;
	struct program_return *points, *returns; /* function: return point; block: function */
};

/* Places: blocks; then, for each function, where its returns meet; then where all those returns meet that may lead anywhere. */
static inline uint32_t program_places(const struct program *program)
{
	return program->block_count + program->function_count + 1;
}

/* May a warp that waits at the barrier go on at any of program.armed? One that nobody arms counts too: better too much than too little. */
static inline bool program_waits_anywhere(const struct program *program, unsigned barrier)
{
	return (program->wild_barriers | ~program->named_barriers) >> barrier & 1;
}

/* May a warp that waits at barrier `barrier` go on where the instruction armed[i] says? As far as one can say without the data flow. */
bool program_may_wait(const struct program *program, unsigned barrier, size_t i);

/*
 * Gathers and cuts. PATHS_CLEAR, or why not, with the offset; *ret_error is 0, -ENOENT (no such kernel) or -ENOMEM. To be freed in every case.
 */
enum paths_reason program_build(struct program *program, const struct elf *elf, const char *kernel, int *ret_error);
void program_free(struct program *program);

/* Finds blocks and their successors (flow.c). 0 or -ENOMEM. */
int program_cut(struct program *program);

/* Finds functions and where they return to (calls.c), once the blocks are cut. 0 or -ENOMEM. */
int program_calls(struct program *program);

/* Does bank 4 hold a known function's address there? */
bool program_bank4_function(const struct program *program, uint32_t offset);

/* Room for one more element of an array of `bytes` each. 0 or -ENOMEM. */
int program_room(struct arena *arena, void *array, size_t count, size_t *room, size_t bytes);
#define PROGRAM_PUSH(program, name, count, room_of, value)                                                                \
	(program_room((program)->arena, &(program)->name, (program)->count, &(program)->room_of, sizeof *(program)->name) \
	         ? -ENOMEM                                                                                                \
	         : ((program)->name[(program)->count++] = (value), 0))

#endif
