#include "shim/kernels/sass.h"

#include <errno.h>
#include <string.h>

#include "shim/kernels/elf.h"

int sass_machine_init(struct sass_machine *machine, unsigned sm)
{
	static const uint8_t known[] = {70, 72, 75, 80, 86, 87, 89, 90, 100, 103, 110, 120, 121};
	if (!memchr(known, (int)sm, sizeof known) || sm > UINT8_MAX)
		return -ENOTSUP;
	machine->sm = sm;
	machine->uniform_zero = sm < 100 ? 63 : 255;
	machine->uniform_mask = sm < 100 ? 63 : 255;
	machine->params_at = sm < 90 ? 0x160 : sm < 100 ? 0x210 : 0x380;
	machine->params_pointer = sm < 90 ? 0x40 : sm < 100 ? 0x198 : 0x348;
	size_t row = 0;
	for (unsigned base = 0; base <= 512; base++) {
		while (row < sass_row_count && sass_rows[row].base < base)
			row++;
		machine->index[base] = (uint16_t)row;
	}
	return 0;
}

static const struct sass_row *find_row(const struct sass_machine *machine, unsigned base, unsigned form, bool bit91)
{
	const struct sass_row *row = &sass_rows[machine->index[base]], *end = &sass_rows[machine->index[base + 1]];
	for (; row < end; row++)
		if (row->forms >> form & 1 && machine->sm >= row->first && machine->sm <= row->last &&
		    (row->bit91 == SASS_ANY || row->bit91 == bit91))
			return row;
	return NULL;
}

static bool is_uniform(unsigned base, unsigned form, bool bit91)
{
	return (base >= OP_UNIFORM && base < OP_UNIFORM_END) || base == OP_0CB ||
	       (bit91 && base < OP_UNIFORM_END && (form == 1 || form == 2 || form == 4));
}

static inline void decode_fields(uint64_t low, uint64_t high, struct sass_insn *ret_insn)
{
	ret_insn->low = low;
	ret_insn->high = high;
	ret_insn->base = low & 0x1ff;
	ret_insn->form = low >> 9 & 7;
	ret_insn->guard = low >> 12 & 7;
	ret_insn->guard_negated = low >> 15 & 1;
	ret_insn->never = (low >> 12 & 15) == 15;
	ret_insn->bit91 = high >> (91 - 64) & 1;
}

void sass_decode(const struct sass_machine *machine, const uint8_t *code, struct sass_insn *ret_insn)
{
	decode_fields(elf_u64(code), elf_u64(code + 8), ret_insn);
	ret_insn->row = find_row(machine, ret_insn->base, ret_insn->form, ret_insn->bit91);
	ret_insn->uniform = is_uniform(ret_insn->base, ret_insn->form, ret_insn->bit91);
}

/* Rows and files by bits 0 to 11 and bit 91. */
#define KINDS (1 << 13)
#define KIND_KNOWN 1
#define KIND_UNIFORM 2
#define KIND_ROW 4 /* times the number of the row, plus 1; 0: it has none */

static uint16_t find_kind(const struct sass_machine *machine, const struct sass_insn *insn)
{
	const struct sass_row *row = find_row(machine, insn->base, insn->form, insn->bit91);
	return (uint16_t)(KIND_KNOWN | (is_uniform(insn->base, insn->form, insn->bit91) ? KIND_UNIFORM : 0) |
	                  KIND_ROW * (row ? row - sass_rows + 1 : 0));
}

void sass_decode_all(const struct sass_machine *machine, const uint8_t *code, uint32_t count, struct sass_insn *ret_insns)
{
	uint16_t kinds[KINDS] = {0};
	for (uint32_t i = 0; i < count; i++, code += SASS_BYTES) {
		struct sass_insn *insn = &ret_insns[i];
		uint64_t low = elf_u64(code), high = elf_u64(code + 8);
		uint16_t *kind = &kinds[(low & 0xfff) << 1 | (high >> (91 - 64) & 1)];
		decode_fields(low, high, insn);
		if (!*kind)
			*kind = find_kind(machine, insn);
		insn->row = *kind / KIND_ROW ? &sass_rows[*kind / KIND_ROW - 1] : NULL;
		insn->uniform = *kind & KIND_UNIFORM;
	}
}

static struct sass_operand const_operand(const struct sass_insn *insn)
{
	struct sass_operand operand = {OPERAND_CONST, 0, sass_field(insn, 54, 59), sass_field(insn, 38, 54)};
	if (insn->bit91)
		operand.bank = UINT32_MAX;
	return operand;
}

/* In these no modifier makes a third source of bits 64 to 71: compilers leave them 0, which elsewhere is R0. */
static inline bool has_third_source(const struct sass_insn *insn)
{
	static const bool two[512] = {
		[OP_P2R] = true,  [OP_P2R_B] = true, [OP_UP2UR] = true, [OP_SEL] = true,   [OP_FSEL] = true,
		[OP_IABS] = true, [OP_IMNMX] = true, [OP_SGXT] = true,  [OP_VIADD] = true, [OP_VIMNMX] = true,
		[OP_USEL] = true, [OP_UFLO] = true,  [OP_UPOPC] = true};
	return !two[insn->base];
}

static struct sass_operand register_operand(const struct sass_machine *machine, bool uniform, unsigned field)
{
	return uniform ? (struct sass_operand){.kind = OPERAND_UNIFORM, .reg = field & machine->uniform_mask}
	               : (struct sass_operand){.kind = OPERAND_REGISTER, .reg = field};
}

static struct sass_operand third_source(const struct sass_machine *machine, const struct sass_insn *insn)
{
	return has_third_source(insn) ? register_operand(machine, insn->uniform, insn->c)
	                              : (struct sass_operand){.kind = OPERAND_NONE};
}

void sass_operands(const struct sass_machine *machine, const struct sass_insn *insn, struct sass_operand ret_operands[3])
{
	const struct sass_operand none = {.kind = OPERAND_NONE},
				  immediate = {.kind = OPERAND_IMMEDIATE, .offset = insn->immediate};
	bool uniform = insn->uniform;
	ret_operands[0] = register_operand(machine, uniform, insn->a);
	/* Where the field at 32 holds no register, that at 64 holds the second one in some forms. */
	switch (insn->form) {
	case 1:
		ret_operands[1] = register_operand(machine, uniform, insn->b);
		ret_operands[2] = third_source(machine, insn);
		break;
	case 2:
		ret_operands[1] = register_operand(machine, uniform, insn->c);
		ret_operands[2] = immediate;
		break;
	case 3:
		ret_operands[1] = register_operand(machine, uniform, insn->c);
		ret_operands[2] = uniform ? register_operand(machine, true, insn->b) : const_operand(insn);
		/* sm_120 took this form of the 64-bit select for a second register. */
		if (machine->sm >= 120 && insn->base == OP_SEL)
			ret_operands[1] = register_operand(machine, uniform, insn->b), ret_operands[2] = none;
		break;
	case 4:
		ret_operands[1] = immediate;
		ret_operands[2] = third_source(machine, insn);
		break;
	case 5:
		ret_operands[1] = const_operand(insn);
		ret_operands[2] = third_source(machine, insn);
		break;
	case 6:
		ret_operands[1] = register_operand(machine, true, insn->b);
		ret_operands[2] = third_source(machine, insn);
		break;
	case 7:
		ret_operands[1] = register_operand(machine, uniform, insn->c);
		ret_operands[2] = register_operand(machine, true, insn->b);
		break;
	default:
		ret_operands[1] = ret_operands[2] = none;
	}
}

static inline uint16_t source_at(const struct sass_machine *machine, bool uniform, unsigned field)
{
	unsigned masked = field & machine->uniform_mask,
		 other = masked == machine->uniform_zero ? SASS_SOURCE_ZERO : SASS_UNIFORM + masked,
		 ordinary = field == SASS_RZ ? SASS_SOURCE_ZERO : field;
	return (uint16_t)(uniform ? other : ordinary);
}

/* Looked up instead of decided: what comes next is not foreseen. */
void sass_sources(const struct sass_machine *machine, const struct sass_insn *insn, uint16_t ret_sources[3])
{
	enum { NONE, B, C, UNIFORM_B, THIRD };
	static const uint8_t second[8] = {NONE, B, C, C, NONE, NONE, UNIFORM_B, C},
			     third[8] = {NONE, THIRD, NONE, NONE, THIRD, THIRD, THIRD, UNIFORM_B};
	bool uniform = insn->uniform;
	uint16_t c = source_at(machine, uniform, insn->c);
	uint16_t sources[] = {[NONE] = SASS_SOURCE_OTHER,
	                      [B] = source_at(machine, uniform, insn->b),
	                      [C] = c,
	                      [UNIFORM_B] = source_at(machine, true, insn->b),
	                      [THIRD] = has_third_source(insn) ? c : SASS_SOURCE_OTHER};
	ret_sources[0] = source_at(machine, uniform, insn->a);
	ret_sources[1] = sources[second[insn->form]];
	ret_sources[2] = sources[uniform && insn->form == 3 ? UNIFORM_B : third[insn->form]];
	if (machine->sm >= 120 && insn->base == OP_SEL && insn->form == 3) {
		ret_sources[1] = sources[B];
		ret_sources[2] = SASS_SOURCE_OTHER;
	}
}

static int64_t sign_extend(uint64_t value, unsigned bits)
{
	return (int64_t)(value << (64 - bits)) >> (64 - bits);
}

int64_t sass_target(const struct sass_machine *machine, const struct sass_insn *insn, int64_t pc)
{
	uint64_t raw = insn->low >> 34 | insn->high << 30; /* bits 34 and up */
	int64_t words;
	if (insn->row && insn->row->class == SASS_ARM)
		words = sign_extend(raw & 0x3fffffff, 30);
	else if (machine->sm >= 90)
		words = (int64_t)((uint64_t)sign_extend(raw & 0xffffffffffff, 48) << 8 | insn->d);
	else
		words = sign_extend(raw & 0xffffffffffff, 48);
	return (int64_t)((uint64_t)pc + SASS_BYTES + (uint64_t)words * 4);
}

unsigned sass_memory_words(const struct sass_insn *insn)
{
	static const uint8_t words[8] = {1, 1, 1, 1, 1, 2, 4, 8};
	return words[sass_field(insn, 73, 76)];
}

bool sass_wide_modifier_120(const struct sass_insn *insn)
{
	switch (insn->base) {
	case OP_UIADD3_64:
	case OP_UIMNMX:
		return true;
	case OP_MOV:
	case OP_UMOV:
		return insn->form == 2 || sass_field(insn, 80, 81);
	case OP_SEL:
		return insn->form == 2 || insn->form == 3 || insn->form == 7;
	case OP_USEL:
		return insn->form == 2 || insn->form == 3 || insn->form == 6 || insn->form == 7;
	case OP_IADD:
		return sass_field(insn, 73, 74);
	case OP_IMNMX:
		return sass_field(insn, 74, 75);
	default:
		return false;
	}
}
