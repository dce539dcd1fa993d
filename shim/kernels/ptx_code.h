/*
 * What is kept of PTX text: functions, their instructions, variables. One program is one analysis: the entry and what it calls.
 */
#ifndef CUCONST_KERNELS_PTX_CODE_H
#define CUCONST_KERNELS_PTX_CODE_H

#include "shim/kernels/paths.h"
#include "shim/kernels/ptx_lex.h"
#include "shim/kernels/ptx_set.h"

/* Past these a kernel is unclear; memory stays below a hundred megabytes. */
#define PTX_TEXT_MAX (32u << 20)
#define PTX_INSTRUCTIONS_MAX (1u << 19)
#define PTX_OPERANDS_MAX (1u << 21)
#define PTX_NAMES_MAX (1u << 19)
#define PTX_TARGETS_MAX (1u << 16)
#define PTX_VARIABLES_MAX (1u << 16)
#define PTX_FUNCTIONS_MAX (1u << 16)
#define PTX_SCOPES_DEEP 64
#define PTX_PARAMETER_BYTES 32768u /* no launch takes more */
#define PTX_NONE UINT32_MAX

enum ptxa_space {
	PTX_GENERIC,
	PTX_GLOBAL,
	PTX_CONST,
	PTX_LOCAL,
	PTX_SHARED,
	PTX_PARAM,
};

/* What an instruction does to taints. */
enum ptxa_class {
	PTX_NOTHING, /* no result, no memory that matters */
	PTX_CLEAR_RESULT,
	PTX_COPY,    /* mov: vectors split and join */
	PTX_ADDRESS, /* cvta */
	PTX_PASS,    /* the first source's value, by another lane or block */
	PTX_UNION,   /* an integer operation that an address may go through */
	PTX_MIX,     /* one that moves bits between the halves */
	PTX_PRODUCT, /* one that no plain address goes through */
	PTX_ADD,
	PTX_SUBTRACT,
	PTX_MULTIPLY,
	PTX_MULTIPLY_ADD,
	PTX_NEGATE,
	PTX_SHIFT_LEFT,
	PTX_SHIFT_RIGHT,
	PTX_INSERT,
	PTX_CONVERT,
	PTX_COMPARE, /* result is a predicate or a mask */
	PTX_EXTREME, /* min, max: compares and chooses */
	PTX_LOAD,
	PTX_FETCH,  /* textures, surfaces, tensor memory: the result is from memory */
	PTX_GATHER, /* the result is from shared memory */
	PTX_STORE,
	PTX_STORE_SHARED, /* only ever to shared memory */
	PTX_ATOMIC,
	PTX_REDUCE,
	PTX_COPY_BULK,  /* destination space is the first one named */
	PTX_DESCRIPTOR, /* a store through a tensor map or a surface */
	PTX_ALLOCATE,
	PTX_BRANCH,
	PTX_BRANCH_TABLE,
	PTX_CALL,
	PTX_LEAVE,
};

struct ptxa_rule {
	const char *name; /* with as many modifiers as matter; the longest match wins */
	enum ptxa_class class;
	const char *kind; /* of a store */
};

enum ptxa_operand_kind {
	PTX_OPERAND_REGISTER,
	PTX_OPERAND_NUMBER,
	PTX_OPERAND_VARIABLE, /* its address */
	PTX_OPERAND_VECTOR,   /* {a, b} or a|b */
	PTX_OPERAND_OTHER,    /* special register, function, label, '_' */
};

struct ptxa_operand {
	uint8_t kind;
	bool memory;    /* in brackets */
	bool inverted;  /* ! or ~ stood before it: the value is another */
	uint32_t id;    /* register, variable, or the first of a vector in the function's operands */
	uint32_t count; /* of a vector */
	int64_t offset; /* of an address; the value of a number */
};

enum {
	PTX_WIDE = 1 << 0,
	PTX_HIGH = 1 << 1,
	PTX_TENSOR = 1 << 2,
	PTX_GUARDED = 1 << 3,
	PTX_MBARRIER = 1 << 4,
	PTX_TO = 1 << 5, /* cvta.to */
};

struct ptxa_type {
	bool is_float, is_signed, is_predicate;
	uint8_t bytes; /* 0: no type */
};

struct ptxa_instruction {
	const struct ptxa_rule *rule;
	const char *text; /* of its name, with the modifiers behind it */
	uint32_t line;
	uint32_t guard; /* register, or PTX_NONE */
	bool guard_inverted;
	uint16_t flags;
	uint8_t space, second_space; /* enum ptxa_space, as named */
	bool has_space, has_second;
	struct ptxa_type type, second_type; /* as named */
	uint32_t first, count;              /* operands */
	uint32_t target; /* PTX_BRANCH: instruction; PTX_CALL: function, or PTX_NONE; PTX_BRANCH_TABLE: first of `extra` targets */
	uint32_t extra; /* PTX_CALL: how many operands are results; PTX_BRANCH_TABLE: how many targets */
};

struct ptxa_register {
	uint32_t definitions;
	uint32_t state; /* place in a block's state, PTX_NONE when one value does for the whole function */
	bool is_float;
};

struct ptxa_block {
	uint32_t first, end;
	bool reached;
	uint32_t next[2]; /* PTX_NONE: none; a table's successors are looked up */
};

struct ptxa_variable {
	uint8_t space;
	uint32_t bytes, align;
	uint32_t place;       /* of a parameter of the entry, in the block; else PTX_NONE */
	uint32_t cells;       /* first of its words, PTX_NONE: not followed word by word */
	uint32_t stored[2];   /* all that was stored, by the parity of its word */
	uint32_t anywhere[2]; /* what was stored at an offset that is not known */
};

struct ptxa_function {
	struct ptxa_slice name;
	struct ptxa_lexer head;                                      /* behind the name */
	struct ptxa_lexer results_head;                              /* at the results' parenthesis */
	bool is_entry, has_body, has_results, wanted, reached, live; /* live: some way leads to it */
	uint32_t *arguments, *results;                               /* variables, or registers with PTX_IS_REGISTER */
	uint32_t argument_count, result_count;
	struct ptxa_instruction *code;
	uint32_t code_count, code_room;
	struct ptxa_operand *operands;
	uint32_t operand_count, operand_room;
	struct ptxa_register *registers;
	uint32_t register_count, register_room;
	uint32_t *targets; /* of branch tables: instructions */
	uint32_t target_count, target_room;
	struct ptxa_block *blocks;
	uint32_t block_count;
	uint32_t *block_of; /* instruction: block */
	uint32_t state_count;
	struct ptxa_value *values; /* of registers that have one value */
	struct ptxa_value *states; /* block after block */
};
#define PTX_IS_REGISTER 0x80000000u

/* What a register may hold: taints of its low and of its high word, and where exactly it points if it points to a variable. */
struct ptxa_value {
	uint32_t low, high;
	uint32_t variable; /* PTX_UNSET: nothing was assigned yet; PTX_MIXED: no one place */
	uint32_t offset;
};
#define PTX_UNSET UINT32_MAX
#define PTX_MIXED (UINT32_MAX - 1)

struct ptxa_program {
	const char *text;
	size_t bytes;
	int error; /* -ENOMEM, or 0 */
	enum paths_reason reason;
	uint32_t reason_line;
	bool stop; /* past a limit, or damaged: do not go on */

	struct ptxa_function *functions;
	uint32_t function_count, function_room;
	struct ptxa_names *names;
	uint32_t entry;
	uint32_t parameter_bytes, words; /* of the entry */

	struct ptxa_variable *variables;
	uint32_t variable_count, variable_room;
	uint32_t *cells;
	uint32_t cell_count, cell_room;
	/* What was stored, by the parity of its word: to shared memory, to local memory at unknown places, to any local memory. */
	uint32_t shared[2], local[2], all_local[2];
	uint64_t instructions;

	struct ptxa_sets sets;
	uint64_t work;
	bool changed;        /* something that is not part of a block's state */
	bool final;          /* the last pass: results are noted */
	uint32_t handed_out; /* a set: what is stored where others can read it */
	struct kernel_paths *paths;
	const struct paths_watch *watch; /* or NULL */
	struct paths_values *values;     /* of the parameters, or NULL: any */
	uint8_t *facts; /* for those values, of the entry's instructions: enum ptxa_fact (ptx_constants.c); NULL: none */
};

/* What is decided about an instruction. */
enum ptxa_fact {
	PTX_FACT_NEVER = 1,  /* its guard is false */
	PTX_FACT_ALWAYS = 2, /* ... true */
	PTX_FACT_FIRST = 4,  /* a selection gives its first source */
	PTX_FACT_SECOND = 8,
};

/* Elements of sets; the next odd number is the weak form. Words of the parameters come first. */
static inline uint32_t ptxa_element_memory(const struct ptxa_program *program)
{
	return 2 * program->words;
}

static inline uint32_t ptxa_element_global(const struct ptxa_program *program)
{
	return 2 * program->words + 2;
}

static inline uint32_t ptxa_element_shared(const struct ptxa_program *program)
{
	return 2 * program->words + 4;
}

static inline uint32_t ptxa_element_local(const struct ptxa_program *program)
{
	return 2 * program->words + 6;
}

static inline uint32_t ptxa_element_variable(const struct ptxa_program *program, uint32_t variable)
{
	return 2 * program->words + 8 + 2 * variable;
}

/* Notes the first reason. Stopping ones end the analysis. Always false. */
bool ptxa_unclear(struct ptxa_program *program, enum paths_reason reason, uint32_t line);
bool ptxa_stop(struct ptxa_program *program, enum paths_reason reason, uint32_t line);
bool ptxa_no_memory(struct ptxa_program *program);
/* Room for one more of `count`; false and -ENOMEM noted when there is none. `list` is a pointer to the array. */
bool ptxa_room(struct ptxa_program *program, void *list, uint32_t *room, uint32_t count, size_t size);

/* ptx_rules.c: the class of an instruction by its name and modifiers, NULL when it is not known. */
const struct ptxa_rule *ptxa_rule_find(struct ptxa_slice name, const struct ptxa_slice *modifiers, unsigned count);

/* The static text of a kind of store, NULL when there is none of that name. */
const char *ptxa_kind_named(const char *name);

/* ptx_module.c: finds functions and module variables; the entry's parameters are laid out. False when stopped. */
bool ptxa_module_read(struct ptxa_program *program);
uint32_t ptxa_function_named(const struct ptxa_program *program, struct ptxa_slice name);
bool ptxa_type_named(struct ptxa_slice name, struct ptxa_type *ret_type);
/* `.align`, type, name and dimensions, from behind the space; the names of a list are told one by one. */
struct ptxa_declaration {
	struct ptxa_slice name;
	struct ptxa_type type;
	uint32_t bytes, align; /* of all elements; 0 bytes: `[]` */
	uint32_t repeat;       /* %r<N>: N names; 0: one */
};
bool ptxa_declaration_type(struct ptxa_program *program, struct ptxa_lexer *lexer, struct ptxa_declaration *declaration);
bool ptxa_declaration_name(struct ptxa_program *program, struct ptxa_lexer *lexer, struct ptxa_declaration *declaration);
bool ptxa_space_named(struct ptxa_slice name, enum ptxa_space *ret_space);
uint32_t ptxa_variable_new(struct ptxa_program *program, enum ptxa_space space,
                           const struct ptxa_declaration *declaration);

/* ptx_names.c: names of one function's body, or of the module, by scope. Scope 0 is the module's. */
enum ptxa_meaning {
	PTX_NAME_VARIABLE,
	PTX_NAME_REGISTER,
	PTX_NAME_REGISTERS,
	PTX_NAME_LABEL,
	PTX_NAME_FUNCTION,
	PTX_NAME_TARGETS
};
struct ptxa_name {
	struct ptxa_slice slice;
	uint32_t scope;
	enum ptxa_meaning meaning;
	uint32_t id, count;
};
struct ptxa_names *ptxa_names_create(void);
void ptxa_names_destroy(struct ptxa_names *names);
/* False when there is no memory, or (with *ret_twice) when the scope has the name already. */
bool ptxa_names_add(struct ptxa_names *names, const struct ptxa_name *name, bool *ret_twice);
uint32_t ptxa_names_count(const struct ptxa_names *names);
struct ptxa_name *ptxa_names_find(struct ptxa_names *names, struct ptxa_slice slice, uint32_t scope);

/* ptx_body.c: reads a function's parameters and body. False when stopped. */
bool ptxa_body_read(struct ptxa_program *program, uint32_t function);
/* ptx_constants.c: program->facts for program->values. False when there is no memory. */
bool ptxa_constants(struct ptxa_program *program);
/* ptx_flow.c: to a fixed point, then the results. False when stopped. */
bool ptxa_flow(struct ptxa_program *program);

#endif
