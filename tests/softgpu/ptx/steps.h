/*
 * The instruction set by family. Each look-up returns the function that executes an operation on a type, or NULL when
 * there is none; the decoder turns NULL into PTX_UNSUPPORTED. Which fields of struct insn an operation reads is said
 * beside its name.
 */
#ifndef SOFTGPU_PTX_STEPS_H
#define SOFTGPU_PTX_STEPS_H

#include "tests/softgpu/ptx/code.h"

/* d <- a, b, c */
enum int_op {
	INT_ADD,
	INT_SUB,
	INT_MUL_LO,
	INT_MUL_HI,
	INT_MUL_WIDE,
	INT_MAD_LO,
	INT_MAD_HI,
	INT_MAD_WIDE,
	INT_MUL24_LO,
	INT_MUL24_HI,
	INT_MAD24_LO,
	INT_MAD24_HI,
	INT_SAD,
	INT_DIV,
	INT_REM,
	INT_ABS,
	INT_NEG,
	INT_MIN,
	INT_MAX,
	INT_ADD_SAT,
	INT_SUB_SAT,
	INT_MAD_HI_SAT,
	INT_MAD24_HI_SAT,
	INT_ADD_CC,
	INT_SUB_CC,
	INT_MAD_LO_CC,
	INT_MAD_HI_CC, /* carry in: m or NO_OPERAND; carry out: e or NO_OPERAND */
	INT_COUNT,
};
step_fn ptx_step_int(enum int_op op, enum ptx_type type);
/* add, min and max of two 16-bit integers in one register; FLAG_RELU. */
step_fn ptx_step_int_pair(enum int_op op, bool is_signed);

/* d <- a, b, c, m; typed by width, and by sign for SHR, BFE and BFIND */
enum bit_op {
	BIT_AND,
	BIT_OR,
	BIT_XOR,
	BIT_NOT,
	BIT_CNOT,
	BIT_MOV,
	BIT_SHL,
	BIT_SHR,
	BIT_SELECT,
	BIT_CLZ,
	BIT_POPC,
	BIT_BREV,
	BIT_BFE,
	BIT_BFI,
	BIT_BFIND,
	BIT_COUNT,
};
step_fn ptx_step_bit(enum bit_op op, enum ptx_type type);
enum bit32_op {
	BIT_LOP3, /* imm: table */
	BIT_PRMT, /* imm: mode */
	BIT_SHF_L,
	BIT_SHF_R, /* FLAG_CLAMP */
	BIT_DP4A,
	BIT_DP2A, /* FLAG_HIGH */
	BIT_BMSK,
	BIT_SZEXT, /* both FLAG_CLAMP */
	BIT_FNS,
	BIT_SLCT, /* type2: of c */
	BIT_PACK,
	BIT_UNPACK,
	BIT_COPYSIGN,
	BIT_TESTP, /* op: enum testp */
	BIT_CLOCK, /* op: enum special */
	BIT_ISSPACE,
	BIT_CVTA,
	BIT_CVTA_TO, /* space */
	BIT32_COUNT,
};
enum testp { TESTP_FINITE, TESTP_INFINITE, TESTP_NUMBER, TESTP_NOTANUMBER, TESTP_NORMAL, TESTP_SUBNORMAL };
step_fn ptx_step_misc(enum bit32_op op);

/* d <- a, b, c; flags and round as said by the instruction */
enum float_op {
	FLOAT_ADD,
	FLOAT_SUB,
	FLOAT_MUL,
	FLOAT_FMA,
	FLOAT_DIV,
	FLOAT_MIN,
	FLOAT_MAX,
	FLOAT_ABS,
	FLOAT_NEG,
	FLOAT_RCP,
	FLOAT_SQRT,
	FLOAT_RSQRT,
	FLOAT_SIN,
	FLOAT_COS,
	FLOAT_EX2,
	FLOAT_LG2,
	FLOAT_TANH,
	FLOAT_COUNT,
};
step_fn ptx_step_float(enum float_op op, enum ptx_type type, bool plain);
/* Instructions with .approx that are coarser than rounding makes them; NULL for all others. */
step_fn ptx_step_coarse(enum float_op op, enum ptx_type type, bool ftz);
/* min and max of f32 with .xorsign.abs. */
step_fn ptx_step_xorsign(enum float_op op);
/* f16, bf16 and their pairs. */
step_fn ptx_step_half(enum float_op op, enum ptx_type type);

enum cmp_op {
	CMP_EQ,
	CMP_NE,
	CMP_LT,
	CMP_LE,
	CMP_GT,
	CMP_GE,
	CMP_EQU,
	CMP_NEU,
	CMP_LTU,
	CMP_LEU,
	CMP_GTU,
	CMP_GEU,
	CMP_NUM,
	CMP_NAN,
	CMP_COUNT,
};
/* op of the SIMD video instructions; imm: enum cmp_op of VIDEO_SET. */
enum video_op { VIDEO_ADD, VIDEO_SUB, VIDEO_ABSDIFF, VIDEO_MIN, VIDEO_MAX, VIDEO_SET };
step_fn ptx_step_video(void);

enum cmp_join { JOIN_NONE, JOIN_AND, JOIN_OR, JOIN_XOR };
/*
 * a, b, and c joined as insn->width says. setp: d, and e or NO_OPERAND. set: d, as type2. Of pairs, setp writes the
 * lower half's to d and the upper's to e.
 */
step_fn ptx_step_compare(enum cmp_op op, enum ptx_type type, bool set);

/* type2 is the source's, type the destination's, width the destination register's bytes. */
step_fn ptx_step_convert(enum ptx_type to, enum ptx_type from, bool plain);
/* Two f32 into a pair. */
step_fn ptx_step_convert_pair(void);
/* f32 to tf32, ties away from zero. */
step_fn ptx_step_convert_tf32(void);

/* Value of a half, exactly; and the nearest half by the rounding of insn->round. */
double ptx_half_value(uint16_t bits, bool brain);
uint16_t ptx_half_bits(double value, bool brain, int round);
/* a * b + c so that rounding it again to a half is right: computed in double, rounded to odd. */
double ptx_fma_odd(double a, double b, double c);

enum mem_op { MEM_LOAD, MEM_STORE, MEM_COPY };
/* Address a + imm in space; count elements of type; extra: their operands. */
step_fn ptx_step_memory(enum mem_op op);

enum atom_op {
	ATOM_ADD,
	ATOM_MIN,
	ATOM_MAX,
	ATOM_INC,
	ATOM_DEC,
	ATOM_AND,
	ATOM_OR,
	ATOM_XOR,
	ATOM_EXCH,
	ATOM_CAS,
	ATOM_COUNT,
};
/* Address a + imm in space; operands b and c; d or NO_OPERAND. */
step_fn ptx_step_atomic(enum atom_op op, enum ptx_type type);

enum warp_op {
	WARP_SYNC, /* m */
	WARP_SHFL_UP,
	WARP_SHFL_DOWN,
	WARP_SHFL_BFLY,
	WARP_SHFL_IDX, /* d, e <- a, b, c, m */
	WARP_VOTE_ALL,
	WARP_VOTE_ANY,
	WARP_VOTE_UNI,
	WARP_BALLOT, /* d <- a, m */
	WARP_MATCH_ANY,
	WARP_MATCH_ALL, /* d, e <- a, m */
	WARP_REDUX,     /* op: enum atom_op, type */
	WARP_ELECT,     /* d, e <- m */
	WARP_ACTIVEMASK,
	WARP_COUNT,
};
step_fn ptx_step_warp(enum warp_op op);

/* What a call does of a function that the driver provides; NULL when it provides none of that name and shape. */
step_fn ptx_step_outside(const struct ptx_function *function);

enum matrix_op { MATRIX_LOAD, MATRIX_MULTIPLY };
/* insn->extra of a product. */
struct mma_operands {
	uint32_t d[4], a[4], b[2], c[4];
	unsigned a_count, b_count;
};
step_fn ptx_step_matrix(enum matrix_op op);

/* Address a + imm in space; see step_async.c for the rest. */
enum mbarrier_op {
	MBARRIER_INIT,
	MBARRIER_INVALIDATE,
	MBARRIER_EXPECT,
	MBARRIER_COMPLETE,
	MBARRIER_ARRIVE,
	MBARRIER_TEST_WAIT,
	MBARRIER_TRY_WAIT,
};
step_fn ptx_step_mbarrier(void);
/* d <- a, a state */
step_fn ptx_step_mbarrier_pending(void);
/* insn->extra of a bulk copy, to a + imm in space, of c bytes. */
struct bulk_copy {
	uint32_t from, barrier; /* operands; NO_OPERAND: no barrier counts it */
	uint64_t from_offset, barrier_offset;
	bool from_shared;
};
step_fn ptx_step_bulk_copy(void);
enum cluster_op {
	CLUSTER_ARRIVE,
	CLUSTER_WAIT,
	CLUSTER_MAP,  /* d <- a, b; space: SHARED, or GENERIC */
	CLUSTER_RANK, /* d <- a */
};
step_fn ptx_step_cluster(enum cluster_op op);

enum texture_op { TEXTURE_SAMPLE, TEXTURE_LOAD, TEXTURE_STORE, TEXTURE_SIZE };
enum edge { EDGE_TRAP, EDGE_CLAMP, EDGE_ZERO };
/* insn->extra of these, with the object's handle in a; of SIZE: op says which, d. */
struct texel {
	uint32_t place[3], value[4]; /* operands */
	uint8_t dimensions, count, bytes, edge;
	bool by_float, to_float;
};
step_fn ptx_step_texture(enum texture_op op);

enum control_op {
	CONTROL_BRANCH, /* target */
	CONTROL_TABLE,  /* a; extra: targets, imm: how many */
	CONTROL_CALL,   /* extra: call_site */
	CONTROL_RETURN,
	CONTROL_EXIT,
	CONTROL_TRAP,
	CONTROL_NOTHING,
	CONTROL_SLEEP, /* a: nanoseconds */
	CONTROL_FENCE,
	CONTROL_BARRIER, /* a: id, b: count or NO_OPERAND */
	CONTROL_ARRIVE,
	CONTROL_BARRIER_RED, /* c: predicate, d; op: enum atom_op */
	CONTROL_COUNT,
};
step_fn ptx_step_control(enum control_op op);

#endif
