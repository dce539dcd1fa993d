/*
 * SASS, the machine code of sm_70 to sm_121: 128-bit instructions, decoded as far as the flow of addresses needs. sass_table.c is the one list of what is
 * known; an instruction without a row there is unknown, and whoever meets it must give up.
 */
#ifndef CUCONST_KERNELS_SASS_H
#define CUCONST_KERNELS_SASS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SASS_BYTES 16
#define SASS_RZ 255

/* What an instruction does with addresses. */
enum sass_class {
	SASS_NOTHING, /* no register result: fences, barriers, predicates from predicates */
	SASS_COMPARE, /* predicate results from values */
	SASS_TO_PREDICATES,
	SASS_MOVE,
	SASS_SELECT,
	SASS_MIX,
	SASS_ADD,
	SASS_MULTIPLY,
	SASS_MULTIPLY_WIDE,
	SASS_MULTIPLY_HIGH,
	SASS_LEA,
	SASS_SHIFT,
	SASS_CLEAR, /* a result that no address survives: floating point, counts, votes */
	SASS_CLEAR_CONVERT,
	SASS_CLEAR_CS2R,
	SASS_CONVERT, /* between float and integer, which an address survives in a double: one source, maybe 64-bit */
	SASS_TENSOR,  /* matrix results: data only, written registers keep what they had */
	SASS_TO_UNIFORM,
	SASS_UNIFORM_CLEAR,
	SASS_SPECIAL,
	SASS_UNIFORM_SPECIAL,
	SASS_SHUFFLE,
	SASS_PC,
	SASS_LOAD_CONST,
	SASS_LOAD_CONST_UNIFORM,
	SASS_LOAD,
	SASS_LOAD_256,
	SASS_LOAD_LOCAL,
	SASS_LOAD_SHARED,
	SASS_LOAD_MATRIX,
	SASS_LOAD_REDUCE,
	SASS_TEXTURE,
	SASS_STORE,
	SASS_STORE_GENERIC,
	SASS_STORE_256,
	SASS_STORE_UNIFORM,
	SASS_STORE_LOCAL,
	SASS_STORE_SHARED,
	SASS_STORE_REMOTE,
	SASS_ATOMIC,
	SASS_ATOMIC_SHARED,
	SASS_CACHE,
	SASS_BULK,
	SASS_TENSOR_STORE,
	SASS_SURFACE,
	SASS_COPY_TO_SHARED,
	SASS_SYNC_UNIT,
	SASS_SYNC_REGISTER,
	SASS_BRANCH,
	SASS_BRANCH_TABLE,
	SASS_CALL,
	SASS_CALL_ABSOLUTE,
	SASS_CALL_REGISTER,
	SASS_CALL_LOCAL_REGISTER,
	SASS_RETURN,
	SASS_EXIT,
	SASS_ARM,
	SASS_WAIT,
	SASS_ARM_FROM_REGISTER,
	SASS_WARP_SYNC,
};

enum sass_op {
#define SASS_OP(name, number) OP_##name = (number),
#include "shim/kernels/sass_ops.def"
#undef SASS_OP
	/* Uniform arithmetic lies in between. */
	OP_UNIFORM = 0x080,
	OP_UNIFORM_END = 0x0c0,
};

/* Predicates among the results: none; the one of bits 81 to 83; that of bits 84 to 86, too. Where it is not sure, both: one too many is right, one too few is not. */
enum sass_predicates { SASS_PREDICATES_NONE, SASS_PREDICATES_FIRST, SASS_PREDICATES_BOTH };

struct sass_row {
	uint16_t base;       /* bits 0-8 of the instruction */
	uint8_t forms;       /* which values of bits 9-11, as a mask */
	uint8_t bit91;       /* SASS_ANY, or what the bit must be */
	uint8_t first, last; /* versions of the machine */
	uint8_t class;       /* enum sass_class */
	uint8_t words;       /* 32-bit registers of the result, where neither class nor modifiers say */
	uint8_t predicates;  /* enum sass_predicates */
	const char *name;
};
#define SASS_ANY 2

extern const struct sass_row sass_rows[];
extern const size_t sass_row_count;

/* A generation: what differs between machines besides rows, and an index into them. */
struct sass_machine {
	unsigned sm;
	unsigned uniform_zero, uniform_mask; /* the number of URZ; the bits of a UR field */
	uint32_t params_at, params_pointer;  /* bank 0: usual start of parameters; 8 bytes with their generic address */
	uint16_t index[512 + 1];             /* first row of each base */
};

/* Half of a cache line: a kernel has thousands, and they are gone through several times. Fields that are whole bytes are read in their place. */
struct sass_insn {
	union {
		uint64_t low;
		struct {
			uint16_t head;
			uint8_t d, a; /* register fields at bits 16, 24, 32, 64 */
			union {
				uint8_t b;
				uint32_t immediate;
			};
		};
	};
	union {
		uint64_t high;
		uint8_t c;
	};
	const struct sass_row *row; /* NULL: unknown */
	uint16_t base;
	uint8_t form, guard;                       /* guard: 7 none */
	bool guard_negated, never, bit91, uniform; /* uniform: works on UR, guarded by UP */
};
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the order of the fields in the bytes");
_Static_assert(sizeof(struct sass_insn) == 32, "half of a cache line");

enum sass_operand_kind { OPERAND_NONE, OPERAND_REGISTER, OPERAND_UNIFORM, OPERAND_IMMEDIATE, OPERAND_CONST };
struct sass_operand {
	enum sass_operand_kind kind;
	unsigned reg;
	uint32_t bank, offset; /* of OPERAND_CONST; bank UINT32_MAX: bindless */
};

/* 0, or -ENOTSUP for a machine that is not known. */
int sass_machine_init(struct sass_machine *machine, unsigned sm);

void sass_decode(const struct sass_machine *machine, const uint8_t *code, struct sass_insn *ret_insn);
/* So many, one behind the other: the row of each kind is looked for once. */
void sass_decode_all(const struct sass_machine *machine, const uint8_t *code, uint32_t count,
                     struct sass_insn *ret_insns);

/* The three source operands of an instruction of the arithmetic kind, by its form. */
void sass_operands(const struct sass_machine *machine, const struct sass_insn *insn, struct sass_operand ret_operands[3]);

/* Registers by one number: those of R first, then those of UR. */
#define SASS_REGISTERS 512
#define SASS_UNIFORM 256
#define SASS_SOURCE_ZERO SASS_REGISTERS         /* a register that is always 0 */
#define SASS_SOURCE_OTHER (SASS_REGISTERS + 1u) /* no register */

/* Of the same operands the registers: their numbers, or one of the two above. */
void sass_sources(const struct sass_machine *machine, const struct sass_insn *insn, uint16_t ret_sources[3]);

/*
 * Where a branch, call or barrier at byte `pc` leads, in bytes from the start of its section; may lie anywhere: the caller checks.
 */
int64_t sass_target(const struct sass_machine *machine, const struct sass_insn *insn, int64_t pc);

/* Bits [first, end) of the instruction, at most 32 of them. */
static inline uint32_t sass_field(const struct sass_insn *insn, unsigned first, unsigned end)
{
	uint64_t bits = first >= 64 ? insn->high >> (first - 64) : insn->low >> first;
	if (first < 64 && end > 64)
		bits |= insn->high << (64 - first);
	return (uint32_t)(bits & (((uint64_t)1 << (end - first)) - 1));
}

/* Of control flow, which has a second predicate beside its guard: does it run wherever control comes? */
static inline bool sass_always(const struct sass_insn *insn)
{
	return insn->guard == 7 && sass_field(insn, 87, 91) == 7;
}

/* 32-bit registers that a load or store moves: its size field. */
unsigned sass_memory_words(const struct sass_insn *insn);

/* Registers of either file: a bit for each. */
struct sass_registers {
	uint64_t r[4], u[4];
};

/* Adds those that an instruction may write (registers.c). */
void sass_add_written(const struct sass_machine *machine, const struct sass_insn *insn, struct sass_registers *registers);

/* Is the result 64 bits wide by a modifier (sm_120)? */
bool sass_wide_modifier_120(const struct sass_insn *insn);
static inline bool sass_wide_modifier(const struct sass_machine *machine, const struct sass_insn *insn)
{
	return machine->sm < 120 ? insn->base == OP_UIADD3_64 : sass_wide_modifier_120(insn);
}

#endif
