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

void sass_decode(const struct sass_machine *machine, const uint8_t *code, struct sass_insn *ret_insn)
{
	uint64_t low = elf_u64(code), high = elf_u64(code + 8);
	unsigned base = low & 0x1ff, form = low >> 9 & 7;
	bool bit91 = high >> (91 - 64) & 1;
	ret_insn->low = low;
	ret_insn->high = high;
	ret_insn->row = find_row(machine, base, form, bit91);
	ret_insn->base = (uint16_t)base;
	ret_insn->form = (uint8_t)form;
	ret_insn->guard = low >> 12 & 7;
	ret_insn->guard_negated = low >> 15 & 1;
	ret_insn->never = (low >> 12 & 15) == 15;
	ret_insn->bit91 = bit91;
	ret_insn->uniform = (base >= OP_UNIFORM && base < OP_UNIFORM_END) || base == OP_0CB ||
	                    (bit91 && base < OP_UNIFORM_END && (form == 1 || form == 2 || form == 4));
	ret_insn->d = (uint8_t)(low >> 16);
	ret_insn->a = (uint8_t)(low >> 24);
	ret_insn->b = (uint8_t)(low >> 32);
	ret_insn->c = (uint8_t)high;
	ret_insn->immediate = (uint32_t)(low >> 32);
}

static struct sass_operand const_operand(const struct sass_insn *insn)
{
	struct sass_operand operand = {OPERAND_CONST, 0, sass_field(insn, 54, 59), sass_field(insn, 38, 54)};
	if (insn->bit91)
		operand.bank = UINT32_MAX;
	return operand;
}

/* In these no modifier makes a third source of bits 64 to 71: compilers leave them 0, which elsewhere is R0. */
static bool has_third_source(const struct sass_insn *insn)
{
	switch (insn->base) {
	case OP_SEL:
	case OP_FSEL:
	case OP_IABS:
	case OP_IMNMX:
	case OP_SGXT:
	case OP_VIADD:
	case OP_VIMNMX:
	case OP_USEL:
	case OP_UFLO:
	case OP_UPOPC:
		return false;
	default:
		return true;
	}
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

bool sass_wide_modifier(const struct sass_machine *machine, const struct sass_insn *insn)
{
	if (machine->sm < 120)
		return insn->base == OP_UIADD3_64;
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
