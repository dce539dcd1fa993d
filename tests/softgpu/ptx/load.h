/* What the loader's files share while a module is read. Nothing of this outlives ptx_load. */
#ifndef SOFTGPU_PTX_LOAD_H
#define SOFTGPU_PTX_LOAD_H

#include "tests/softgpu/ptx/code.h"
#include "tests/softgpu/ptx/steps.h"
#include "tests/softgpu/ptx/text.h"

#define NESTING_LIMIT 64u
#define MODIFIERS_LIMIT 16u
#define OPERANDS_LIMIT 8u
#define SYMBOL_BUCKETS 4096u

enum symbol_kind { SYMBOL_REGISTER, SYMBOL_RANGE, SYMBOL_VARIABLE, SYMBOL_FUNCTION, SYMBOL_LABEL, SYMBOL_TABLE };

struct symbol {
	struct slice name;
	enum symbol_kind kind;
	enum ptx_type type;         /* of registers */
	uint32_t slot;              /* of a register; 0: not used yet */
	uint32_t *slots, count;     /* of a range %r<count> */
	uint32_t *targets_of_table; /* count instruction indices, kept with the module */
	enum ptx_space space;       /* of a variable */
	bool is_entry_param, is_extern, is_dynamic;
	uint64_t address; /* in its space; of a label: the instruction */
	size_t bytes;
	struct ptx_function *function;
	struct scope *scope;
	struct symbol *in_bucket, *in_scope;
};

/* A use of a label that may come later. */
struct fixup {
	struct slice name;
	int line;
	uint32_t insn;    /* whose target is set */
	uint32_t *target; /* or this, when not NULL */
	struct fixup *next;
};

struct scope {
	struct scope *outer;
	struct symbol *symbols;
	struct fixup *fixups;
};

struct loader {
	struct ptx_text text;
	struct ptx_module *module;
	struct arena scratch;
	struct symbol *buckets[SYMBOL_BUCKETS];
	struct scope *scope;
	unsigned depth;

	struct statement *statement; /* the one buffer for statements, which are large */

	/* The function that is read. */
	struct ptx_function *function;
	uint32_t declared;   /* registers */
	uint32_t carry;      /* slot of the carry flag; 0: not used yet */
	uint64_t *constants; /* values by index */
	uint32_t constant_count, constant_room;
	uint32_t *constant_index; /* hash of values: index + 1 */
	uint32_t constant_buckets;
};

static inline struct ptx_text *text_of(struct loader *loader)
{
	return &loader->text;
}

/* Memory for the load; fails the text when there is none. */
void *ptx_load_scratch(struct loader *loader, size_t bytes);
/* Memory for the module's life; fails the text when there is none. */
void *ptx_load_keep(struct loader *loader, size_t bytes);
char *ptx_load_keep_string(struct loader *loader, struct slice slice);

/* symbols.c */
struct symbol *ptx_symbol_find(struct loader *loader, struct slice name);
/* A new symbol in the scope at hand; fails when the scope has the name already. */
struct symbol *ptx_symbol_add(struct loader *loader, struct slice name, enum symbol_kind kind);
bool ptx_scope_enter(struct loader *loader);
/* Resolves the labels of the scope and forgets its names. */
bool ptx_scope_leave(struct loader *loader);
bool ptx_label_use(struct loader *loader, struct slice name, int line, uint32_t insn, uint32_t *target);
/* The register's slot and type; false when the name is no register (not a failure). */
bool ptx_register_find(struct loader *loader, struct slice name, uint32_t *ret_operand, enum ptx_type *ret_type);
/* A register no text names. */
bool ptx_register_new(struct loader *loader, uint32_t *ret_operand);
bool ptx_constant(struct loader *loader, uint64_t value, uint32_t *ret_operand);
bool ptx_constants_finish(struct loader *loader);

/* expr.c: constant expressions, all in 64 bits. */
struct constant {
	uint64_t bits;
	bool is_float, single; /* bits are of a .f32 when single, else of a .f64 */
};
bool ptx_expression(struct loader *loader, struct constant *ret_value);
/* As bits of the type; fails at the line when the constant is not for it. */
bool ptx_constant_as(struct loader *loader, int line, const struct constant *constant, enum ptx_type type,
                     uint64_t *ret_bits);
bool ptx_integer(struct loader *loader, uint64_t *ret_value);

/* vars.c */
struct slice ptx_take_dot(struct loader *loader); /* the word of a TOKEN_DOT; empty and failed when there is none */
enum ptx_type ptx_type_named(struct slice word);  /* TY_NONE when there is no such type */
/* A declaration behind its state space's word, up to and with the semicolon. */
bool ptx_variable_read(struct loader *loader, enum ptx_space space, bool is_extern);
bool ptx_registers_read(struct loader *loader);
struct declaration {
	struct slice name;
	enum ptx_type type;
	size_t align, bytes, element;
	bool open; /* [] */
};
/* Types, vectors, alignment, name and dimensions. */
bool ptx_declaration_read(struct loader *loader, struct declaration *ret_declaration);

/* functions.c */
bool ptx_function_read(struct loader *loader, bool entry, bool is_extern);
/* body.c: from the opening brace to the closing one. */
bool ptx_body_read(struct loader *loader);

/* One instruction as written. */
enum operand_kind {
	OPERAND_REGISTER,
	OPERAND_CONSTANT,
	OPERAND_VARIABLE,
	OPERAND_FUNCTION,
	OPERAND_ADDRESS,
	OPERAND_VECTOR,
	OPERAND_SINK,
	OPERAND_NAME,
	OPERAND_CLOCK,
};

struct operand {
	enum operand_kind kind;
	bool negated;       /* !p */
	uint32_t operand;   /* of a register; of an address: its base, or NO_OPERAND */
	enum ptx_type type; /* of a register, or of an address's base */
	struct constant constant;
	struct symbol *symbol; /* of a variable or function, also as an address's base */
	uint64_t offset;       /* of addresses and variables */
	struct slice name;
	enum special special;
	enum operand_kind item_kinds[8]; /* of a vector, also behind an address: registers, constants, sinks */
	uint32_t items[8];
	enum ptx_type item_types[8];
	struct constant item_constants[8];
	unsigned count;
};

struct statement {
	struct loader *loader;
	int line;
	uint32_t guard;
	bool guard_not;
	struct slice opcode;
	struct slice modifiers[MODIFIERS_LIMIT];
	bool used[MODIFIERS_LIMIT];
	unsigned modifier_count;
	struct operand operands[OPERANDS_LIMIT];
	struct operand second; /* the q of p|q */
	bool has_second;
	unsigned operand_count;
};

/* Empties the loader's statement and returns it. */
struct statement *ptx_load_statement(struct loader *loader);
bool ptx_loc_skip(struct loader *loader);

/* operand.c */
bool ptx_operands_read(struct loader *loader, struct statement *statement);

/* decode.c: turns a statement into instructions of the function at hand. */
bool ptx_decode(struct loader *loader, struct statement *statement);
/* decode_call.c: the operands of a call, which have a syntax of their own. */
bool ptx_call_read(struct loader *loader, struct statement *statement);
/* Appends; takes guard and line from the statement when there is one. */
bool ptx_emit(struct loader *loader, const struct statement *statement, struct insn insn);

/* For the decoders. */
bool ptx_unsupported(struct statement *statement, const char *why);
bool ptx_bad(struct statement *statement, const char *why);
bool ptx_modifier(struct statement *statement, const char *word); /* takes it if it is there */
enum ptx_type ptx_modifier_type(struct statement *statement);     /* the next unused type; TY_NONE */
bool ptx_operand_count(struct statement *statement, unsigned least, unsigned most);
bool ptx_source(struct statement *statement, unsigned index, enum ptx_type type, uint32_t *ret_operand);
bool ptx_destination(struct statement *statement, unsigned index, enum ptx_type type, uint32_t *ret_operand);
/* Any width from the type's own on, as ld, st and cvt allow; the register's own type comes back. */
bool ptx_wide_source(struct statement *statement, unsigned index, enum ptx_type type, uint32_t *ret_operand);
bool ptx_wide_destination(struct statement *statement, unsigned index, enum ptx_type type, uint32_t *ret_operand,
                          unsigned *ret_bytes);
bool ptx_destination_of(struct statement *statement, const struct operand *operand, enum ptx_type type, bool wide,
                        uint32_t *ret_operand, unsigned *ret_bytes);
/* Address operand: a and imm of the instruction; space is corrected for parameters that live in local memory. */
bool ptx_address(struct statement *statement, unsigned index, struct insn *insn);
bool ptx_item_source(struct statement *statement, struct operand *operand, unsigned item, enum ptx_type type, bool wide,
                     uint32_t *ret_operand);
/* decode_async.c: cp.async.bulk and cp.async.mbarrier, behind "cp.async". */
bool ptx_decode_bulk(struct statement *statement);
/* Emits when the step is there, else says that the instruction is not supported. */
bool ptx_put(struct statement *statement, struct insn insn);
#define INSN_INIT                                                                                                      \
	{                                                                                                              \
		.d = NO_OPERAND, .e = NO_OPERAND, .c = NO_OPERAND, .m = NO_OPERAND, .guard = NO_OPERAND                \
	}

struct rule {
	const char *name;
	bool (*decode)(struct statement *statement, int op);
	int op;
};
extern const struct rule ptx_rules_arithmetic[], ptx_rules_bits[], ptx_rules_memory[], ptx_rules_control[],
	ptx_rules_matrix[], ptx_rules_async[], ptx_rules_texture[];

#endif
