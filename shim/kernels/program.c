#include "shim/kernels/program.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define INSNS_LIMIT 400000 /* of one kernel with its callees; the largest seen in a library has a tenth of that */

#define INFO_PARAM_CBANK 0x0a
#define INFO_KPARAM 0x17
#define INFO_KPARAM_V2 0x45
#define INFO_BRANCH_TARGETS 0x34

#define RELOCATION_SHARED 55
#define RELOCATION_CALL_OLD 58
#define RELOCATION_YIELD 68
#define RELOCATION_YIELD_2 69
#define RELOCATION_SHARED_OFFSET 74
#define RELOCATION_CALL 75

/* What is being gathered: the first thing that went wrong stays. */
struct gathering {
	struct program *program;
	const struct program_part *part;
	enum paths_reason reason;
	int error;
	bool uses_bank2, uses_bank4;
};

int program_room(struct arena *arena, void *array, size_t count, size_t *room, size_t bytes)
{
	if (count < *room)
		return 0;
	size_t larger = *room ? 2 * *room : 16;
	void *old, *grown;
	memcpy(&old, array, sizeof old);
	grown = arena_grow(arena, old, *room * bytes, larger * bytes);
	if (!grown)
		return -ENOMEM;
	memcpy(array, &grown, sizeof grown);
	*room = larger;
	return 0;
}

static int kernel_info(void *ctx, unsigned attribute, const uint8_t *data, size_t bytes)
{
	struct gathering *gathering = ctx;
	struct program *program = gathering->program;
	struct program_param param;
	if (attribute == INFO_PARAM_CBANK && bytes >= 8) {
		program->params_at = elf_u16(data + 4);
		program->params_bytes = elf_u16(data + 6);
	} else if (attribute == INFO_KPARAM && bytes >= 12) {
		param = (struct program_param){elf_u16(data + 6), elf_u32(data + 8) >> 18, elf_u16(data + 4)};
		return gathering->error = PROGRAM_PUSH(program, params, param_count, param_room, param);
	} else if (attribute == INFO_KPARAM_V2 && bytes >= 12) {
		param = (struct program_param){elf_u16(data + 6), elf_u16(data + 8), elf_u16(data + 4)};
		return gathering->error = PROGRAM_PUSH(program, params, param_count, param_room, param);
	}
	return 0;
}

/* Records of: offset of the branch, 0, number of targets, targets; all bytes from the start of the section. */
static int branch_info(void *ctx, unsigned attribute, const uint8_t *data, size_t bytes)
{
	struct gathering *gathering = ctx;
	struct program *program = gathering->program;
	if (attribute != INFO_BRANCH_TARGETS)
		return 0;
	for (size_t at = 0; at + 12 <= bytes;) {
		uint32_t targets = elf_u32(data + at + 8);
		at += 12;
		if (targets > (bytes - at) / 4)
			return -EINVAL;
		for (uint32_t i = 0; i < targets; i++, at += 4) {
			uint32_t target = elf_u32(data + at);
			if (target % SASS_BYTES || target / SASS_BYTES >= gathering->part->count)
				return -EINVAL;
			uint32_t insn = gathering->part->first + target / SASS_BYTES;
			if ((gathering->error = PROGRAM_PUSH(program, table, table_count, table_room, insn)))
				return gathering->error;
		}
	}
	return 0;
}

static inline void note_bank(struct gathering *gathering, const struct sass_insn *insn)
{
	uint32_t bank = sass_field(insn, 54, 59);
	if (bank != 2 && bank != 4)
		return;
	bool constant = insn->row && (insn->row->class == SASS_LOAD_CONST || insn->row->class == SASS_LOAD_CONST_UNIFORM);
	bool operand = insn->base < OP_LD && (insn->form == 3 || insn->form == 5);
	gathering->uses_bank4 |= (constant || operand) && bank == 4;
	gathering->uses_bank2 |= (constant || operand) && bank == 2;
}

static bool grow_to(struct program *program, void *array, uint32_t count, size_t bytes)
{
	void *old, *grown;
	memcpy(&old, array, sizeof old);
	grown = arena_grow(program->arena, old, program->count * bytes, count * bytes);
	if (grown)
		memcpy(array, &grown, sizeof grown);
	return grown;
}

static int make_room(struct program *program, uint32_t more)
{
	uint32_t count = program->count + more;
	return grow_to(program, &program->insns, count, sizeof *program->insns) &&
	                       grow_to(program, &program->marks, count, sizeof *program->marks) &&
	                       grow_to(program, &program->classes, count, sizeof *program->classes) &&
	                       grow_to(program, &program->control, count, sizeof *program->control) &&
	                       grow_to(program, &program->links, count, sizeof *program->links)
	               ? 0
	               : -ENOMEM;
}

static void decode_part(struct gathering *gathering, const struct program_part *part, const uint8_t *code)
{
	struct program *program = gathering->program;
	uint32_t end = part->first + part->count;
	sass_decode_all(&program->machine, code, part->count, program->insns + part->first);
	memset(program->marks + part->first, 0, part->count);
	memset(program->links + part->first, 0xff, part->count * sizeof *program->links); /* PROGRAM_NONE */
	for (uint32_t i = part->first; i < end; i++) {
		const struct sass_insn *insn = &program->insns[i];
		uint8_t class = insn->row ? insn->row->class : SASS_NOTHING;
		program->classes[i] = class;
		program->control[program->control_count] = i;
		program->control_count += class >= SASS_BRANCH;
		note_bank(gathering, insn);
	}
	program->count = end;
}

/* The first instruction of a defined function, whose section is added where it is new. PROGRAM_NONE: not in order. */
static uint32_t function_at(struct gathering *gathering, const struct elf_symbol *symbol)
{
	struct program *program = gathering->program;
	struct elf_section section;
	if (elf_section_at(program->elf, symbol->section, &section) || !section.data || symbol->value % SASS_BYTES ||
	    symbol->value >= section.bytes / SASS_BYTES * SASS_BYTES)
		return PROGRAM_NONE;
	for (size_t i = 0; i < program->part_count; i++)
		if (program->parts[i].section == symbol->section)
			return program->parts[i].first + (uint32_t)(symbol->value / SASS_BYTES);
	struct program_part part = {symbol->section, program->count, (uint32_t)(section.bytes / SASS_BYTES)};
	if (section.bytes / SASS_BYTES > INSNS_LIMIT - program->count) {
		gathering->reason = PATHS_LIMIT;
		return PROGRAM_NONE;
	}
	if (make_room(program, part.count) || PROGRAM_PUSH(program, parts, part_count, part_room, part)) {
		gathering->error = -ENOMEM;
		return PROGRAM_NONE;
	}
	decode_part(gathering, &part, section.data);
	return part.first + (uint32_t)(symbol->value / SASS_BYTES);
}

/* Functions that the driver provides and that store nothing but what they allocate or print. */
static bool known_external(const char *name)
{
	static const char *const names[] = {"vprintf", "__assertfail", "malloc", "free"};
	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
		if (!strcmp(name, names[i]))
			return true;
	return false;
}

static int taken_function(struct gathering *gathering, const struct elf_symbol *symbol, bool *ret_known)
{
	struct program *program = gathering->program;
	*ret_known = true;
	if (!symbol->section) {
		*ret_known = known_external(symbol->name);
		return 0;
	}
	uint32_t insn = function_at(gathering, symbol);
	if (insn == PROGRAM_NONE) {
		*ret_known = false;
		return gathering->error;
	}
	for (size_t i = 0; i < program->taken_count; i++)
		if (program->taken[i] == insn)
			return 0;
	return gathering->error = PROGRAM_PUSH(program, taken, taken_count, taken_room, insn);
}

static int text_relocation(void *ctx, const struct elf_relocation *relocation)
{
	struct gathering *gathering = ctx;
	struct program *program = gathering->program;
	struct elf_symbol symbol;
	uint32_t at = (uint32_t)(relocation->offset / SASS_BYTES);
	if (relocation->offset / SASS_BYTES >= gathering->part->count ||
	    elf_symbol_at(program->elf, relocation->symbol, &symbol)) {
		gathering->reason = PATHS_DAMAGED;
		return -EINVAL;
	}
	at += gathering->part->first;
	if (relocation->type == RELOCATION_YIELD || relocation->type == RELOCATION_YIELD_2 ||
	    relocation->type == RELOCATION_SHARED || relocation->type == RELOCATION_SHARED_OFFSET)
		return 0;
	const struct sass_row *row = program->insns[at].row;
	if (row && (row->class == SASS_CALL || row->class == SASS_CALL_ABSOLUTE)) {
		if (!symbol.section && known_external(symbol.name)) {
			program->marks[at] |= MARK_EXTERNAL;
			return 0;
		}
		uint32_t target = symbol.section && symbol.type == ELF_SYMBOL_FUNCTION ? function_at(gathering, &symbol)
		                                                                       : PROGRAM_NONE;
		if (gathering->error)
			return gathering->error;
		if (target == PROGRAM_NONE)
			program->marks[at] |= MARK_UNKNOWN;
		program->links[at] = target;
		return 0;
	}
	if (symbol.type != ELF_SYMBOL_FUNCTION) {
		program->marks[at] |= MARK_GLOBAL;
		return 0;
	}
	bool known;
	int err = taken_function(gathering, &symbol, &known);
	program->marks[at] |= known ? MARK_FUNCTION : MARK_UNKNOWN | MARK_FUNCTION;
	return err;
}

/* Bank 4 holds addresses of variables and functions. */
static int bank4_relocation(void *ctx, const struct elf_relocation *relocation)
{
	struct gathering *gathering = ctx;
	struct program *program = gathering->program;
	struct elf_symbol symbol;
	if (elf_symbol_at(program->elf, relocation->symbol, &symbol))
		return gathering->reason = PATHS_DAMAGED, -EINVAL;
	if (symbol.type != ELF_SYMBOL_FUNCTION)
		return 0;
	bool used = false;
	for (uint32_t i = 0; i < program->count && !used; i++) {
		const struct sass_insn *insn = &program->insns[i];
		uint32_t offset = sass_field(insn, 38, 54);
		bool indexed = insn->base == OP_LDC ? insn->a != SASS_RZ
		                                    : insn->base == OP_ULDC_INDEXED || insn->base == OP_LDCU;
		used = insn->row && sass_field(insn, 54, 59) == 4 &&
		       (indexed || (offset <= relocation->offset + 4 && offset + 16 > relocation->offset));
	}
	if (!used)
		return 0;
	bool known;
	int err = taken_function(gathering, &symbol, &known);
	if (!err && known)
		err = PROGRAM_PUSH(program, bank4_functions, bank4_count, bank4_room, (uint32_t)relocation->offset);
	return gathering->error = err;
}

static int bank2_relocation(void *ctx, const struct elf_relocation *relocation)
{
	struct gathering *gathering = ctx;
	struct elf_symbol symbol;
	if (elf_symbol_at(gathering->program->elf, relocation->symbol, &symbol))
		return gathering->reason = PATHS_DAMAGED, -EINVAL;
	bool known = false;
	int err = symbol.type == ELF_SYMBOL_FUNCTION ? taken_function(gathering, &symbol, &known) : 0;
	/* What is not a known function counts as a variable: never silent. */
	gathering->program->bank2_function |= known;
	gathering->program->bank2_global |= !known;
	return err;
}

bool program_bank4_function(const struct program *program, uint32_t offset)
{
	for (size_t i = 0; i < program->bank4_count; i++)
		if ((program->bank4_functions[i] & ~7u) == (offset & ~7u))
			return true;
	return false;
}

static void gather_part(struct gathering *gathering, size_t index)
{
	struct program *program = gathering->program;
	const struct elf *elf = program->elf;
	struct program_part part = program->parts[index];
	struct elf_section text, info;
	gathering->part = &part;
	elf_relocations(elf, part.section, text_relocation, gathering);
	if (gathering->error || gathering->reason || elf_section_at(elf, part.section, &text))
		return;
	const char *name = strncmp(text.name, ".text.", 6) ? "" : text.name + 6;
	if (!elf_section_named(elf, ".nv.info.", name, &info) && elf_nvinfo(&info, branch_info, gathering) &&
	    !gathering->error)
		gathering->reason = PATHS_DAMAGED;
	struct elf_section bank2;
	if (gathering->uses_bank2 && !elf_section_named(elf, ".nv.constant2.", name, &bank2))
		elf_relocations(elf, bank2.index, bank2_relocation, gathering);
}

enum paths_reason program_build(struct program *program, const struct elf *elf, const char *kernel, int *ret_error)
{
	*program = (struct program){.elf = elf, .kernel = kernel, .arena = arena_open()};
	*ret_error = program->arena ? 0 : -ENOMEM;
	if (*ret_error)
		return PATHS_DAMAGED;
	struct gathering gathering = {.program = program};
	struct elf_symbol symbol;
	struct elf_section info;
	*ret_error = elf_function(elf, kernel, &symbol);
	if (*ret_error == -EINVAL)
		return *ret_error = 0, PATHS_DAMAGED;
	if (*ret_error)
		return PATHS_DAMAGED;
	if (sass_machine_init(&program->machine, elf->sm))
		return PATHS_ARCHITECTURE;
	program->params_at = program->machine.params_at;
	int info_error = elf_section_named(elf, ".nv.info.", kernel, &info);
	if (info_error == -EINVAL || (!info_error && elf_nvinfo(&info, kernel_info, &gathering) && !gathering.error))
		return PATHS_DAMAGED;
	for (size_t i = 0; i < program->param_count; i++)
		if (program->params[i].offset + program->params[i].bytes > program->params_bytes)
			return PATHS_DAMAGED;
	program->entry = gathering.error ? PROGRAM_NONE : function_at(&gathering, &symbol);
	for (size_t i = 0;
	     program->entry != PROGRAM_NONE && !gathering.error && !gathering.reason && i < program->part_count; i++) {
		gather_part(&gathering, i);
		struct elf_section bank4;
		/* Functions found in bank 4 are parts to gather too, so this stands in the loop. */
		if (i + 1 == program->part_count && gathering.uses_bank4 && !gathering.error && !gathering.reason &&
		    !elf_section_named(elf, ".nv.constant4", "", &bank4))
			elf_relocations(elf, bank4.index, bank4_relocation, &gathering);
	}
	*ret_error = gathering.error;
	if (program->entry == PROGRAM_NONE && !gathering.reason)
		return PATHS_DAMAGED;
	if (!gathering.error && !gathering.reason)
		*ret_error = program_cut(program);
	if (!gathering.error && !gathering.reason && !*ret_error)
		*ret_error = program_calls(program);
	return gathering.reason;
}

void program_free(struct program *program)
{
	arena_close(program->arena);
	*program = (struct program){0};
}
