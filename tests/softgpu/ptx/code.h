/*
 * What a loaded module is made of: types, decoded instructions, functions, variables. Built once by the loader,
 * read-only afterwards.
 *
 * A register is a slot: one 64-bit word for each of a warp's 32 lanes, holding the value's bits zero-extended.
 * Immediates and special registers are slots too, so an instruction reads its operands without asking what they are.
 */
#ifndef SOFTGPU_PTX_CODE_H
#define SOFTGPU_PTX_CODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tests/softgpu/ptx.h"

#define WARP_LANES 32u

enum ptx_type {
	TY_NONE,
	TY_PRED,
	TY_B8,
	TY_B16,
	TY_B32,
	TY_B64,
	TY_U8,
	TY_U16,
	TY_U32,
	TY_U64,
	TY_S8,
	TY_S16,
	TY_S32,
	TY_S64,
	TY_F16,
	TY_F16X2,
	TY_BF16,
	TY_BF16X2,
	TY_F32,
	TY_F64,
	TY_COUNT,
};

enum ptx_space { SPACE_GENERIC, SPACE_GLOBAL, SPACE_CONST, SPACE_SHARED, SPACE_LOCAL, SPACE_PARAM };

unsigned ptx_type_bytes(enum ptx_type type); /* 1 for predicates */
bool ptx_type_is_float(enum ptx_type type);
bool ptx_type_is_signed(enum ptx_type type);

/* An operand: which bank in the top two bits, which slot of it below. */
enum bank { BANK_REGISTER, BANK_CONSTANT, BANK_SPECIAL, BANK_COUNT };
#define OPERAND(bank, index) ((uint32_t)(bank) << 30 | (uint32_t)(index))
#define NO_OPERAND UINT32_MAX
/* Register 0 of every frame: where the frame's part of the thread's local memory begins. */
#define LOCAL_BASE OPERAND(BANK_REGISTER, 0)

enum special {
	SP_TID_X,
	SP_TID_Y,
	SP_TID_Z,
	SP_NTID_X,
	SP_NTID_Y,
	SP_NTID_Z,
	SP_CTAID_X,
	SP_CTAID_Y,
	SP_CTAID_Z,
	SP_NCTAID_X,
	SP_NCTAID_Y,
	SP_NCTAID_Z,
	SP_LANEID,
	SP_WARPID,
	SP_NWARPID,
	SP_DYNAMIC_SHARED,
	SP_TOTAL_SHARED,
	SP_DYNAMIC_BASE,
	SP_ZERO,
	SP_ONE,
	SP_MASK_EQ,
	SP_MASK_LE,
	SP_MASK_LT,
	SP_MASK_GE,
	SP_MASK_GT,
	SP_CLUSTERID_X,
	SP_CLUSTERID_Y,
	SP_CLUSTERID_Z,
	SP_NCLUSTERID_X,
	SP_NCLUSTERID_Y,
	SP_NCLUSTERID_Z,
	SP_CLUSTER_CTAID_X,
	SP_CLUSTER_CTAID_Y,
	SP_CLUSTER_CTAID_Z,
	SP_CLUSTER_NCTAID_X,
	SP_CLUSTER_NCTAID_Y,
	SP_CLUSTER_NCTAID_Z,
	SP_CLUSTER_RANK,
	SP_CLUSTER_SIZE,
	SP_CLUSTER_EXPLICIT,
	SP_STORED, /* those before this are slots; those after are read when asked for */
	SP_CLOCK = SP_STORED,
	SP_CLOCK_HI,
	SP_CLOCK64,
	SP_TIMER,
	SP_TIMER_LO,
	SP_TIMER_HI,
};

struct warp;
struct insn;

enum step {
	STEP_NEXT,  /* go on at warp->pc */
	STEP_TURN,  /* the lanes' own program counters were written: choose again which lanes run */
	STEP_YIELD, /* the same, and other warps shall run first: these lanes wait for them */
	STEP_FAULT,
};

/* Executes one instruction for the lanes in mask, which is never empty. */
typedef enum step (*step_fn)(struct warp *warp, const struct insn *insn, uint32_t mask);

enum insn_flags {
	FLAG_FTZ = 1,
	FLAG_SAT = 2,
	FLAG_NAN = 4,
	FLAG_RELU = 8,
	FLAG_UNSIGNED_SECOND = 16,
	FLAG_HIGH = 32,
	FLAG_SIGNED = 64,
	FLAG_CLAMP = 128,
	FLAG_XORSIGN = FLAG_CLAMP, /* of floats: magnitudes, and the product's sign */
};

struct insn {
	step_fn run;
	uint32_t d, e;       /* results */
	uint32_t a, b, c, m; /* sources */
	uint32_t guard;      /* a predicate, or NO_OPERAND */
	uint32_t line;
	uint64_t imm;
	const void *extra; /* operand lists, tables and call sites, owned by the module */
	uint8_t guard_not, type, type2, space;
	uint8_t flags, op, width, count; /* width: bytes of an element or of the result register */
	uint32_t target;
	int8_t round; /* of fesetround, packed by the decoder: 0 nearest, 1 zero, 2 down, 3 up */
};

struct variable {
	char *name;
	uint64_t address;
	size_t bytes;
	struct variable *next;
};

struct formal {
	size_t offset, bytes;
};

struct ptx_function {
	char *name;
	struct ptx_module *module;
	bool entry, defined, called, calls;
	int line;
	struct insn *code;
	uint32_t code_count, code_room;
	uint64_t *constants; /* WARP_LANES words for each */
	uint32_t constant_count;
	uint32_t register_count;
	struct formal *formals,
		*results; /* of an entry: in the parameter block; of a .func: in its frame's local memory */
	unsigned formal_count, result_count;
	size_t params_bytes, local_bytes, shared_bytes;
	uint32_t max_threads, required[3]; /* 0: not said */
	uint32_t cluster[3];               /* blocks, 0: not said */
	step_fn outside;                   /* what a call does when the driver, not the module, has the body; NULL */
	struct ptx_function *next;
};

/* One actual of a call: bytes of the caller's local memory, or a slot. */
struct call_actual {
	uint64_t from;
	uint32_t slot; /* NO_OPERAND: copy from local memory */
	size_t to, bytes;
};

struct call_site {
	struct ptx_function *callee;
	struct call_actual *in, *out; /* of out: "from" is in the caller, "to" in the callee */
	unsigned in_count, out_count;
};

struct arena_block;

/* Memory that is freed all at once. Valid when zero. */
struct arena {
	struct arena_block *blocks;
};

struct ptx_module {
	struct ptx_memory memory;
	struct ptx_function *functions, **functions_end;
	struct ptx_function **entries;
	size_t entry_count;
	struct variable *variables;
	uint64_t shared_used; /* end of the module's own shared variables */
	uint64_t shared_top;  /* end of any shared variable */
	size_t dynamic_align; /* of dynamic shared memory */
	size_t max_func_local;
	struct arena arena;
};

/* Zeroed and aligned for anything; NULL when there is no memory. */
void *ptx_arena_take(struct arena *arena, size_t bytes);
void ptx_arena_free(struct arena *arena);

#define SHARED_LIMIT 232448u     /* bytes a block can have on sm_90 */
#define LOCAL_LIMIT (512u << 10) /* bytes a thread can have */
#define PARAM_LIMIT 32764u
#define REGISTER_LIMIT (1u << 20)
#define CALL_DEPTH_LIMIT 256u
#define CLUSTER_BARRIER 16u /* behind those with numbers */
#define CLUSTER_LIMIT 16u

#endif
