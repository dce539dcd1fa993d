/*
 * The decoder against NVIDIA's disassembler, where that is installed: nvdisasm_oracle [--sm=80,90] [--limit=INSTRUCTIONS] NVDISASM FILE...
 * Each cubin, alone or in the fatbins of each file, is disassembled, up to so many instructions for each file and machine; of each instruction are compared: the name, the guard, the
 * register of the result, and that every register in the text is one that the decoder has as an operand. Ends with 1 where they differ, with 77 where
 * there is no disassembler. Nothing of its answers goes into the tables: only what it is for which names to differ (below) was learnt from it.
 */
#include <ctype.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shim/kernels/elf.h"
#include "shim/kernels/fatbin.h"
#include "shim/kernels/sass.h"
#include "shim/kernels/zstd.h"

#define TEXT 512
#define MACHINES 16

struct counts {
	unsigned long instructions, unknown, names, guards, results, operands;
};

/* Rows and the names they have there: both are right, or the row stands for all of a family. */
struct pair {
	char row[32], name[48];
	unsigned long count;
};
static struct pair pairs[4096];
static size_t pair_count;
static struct counts counts;
static unsigned long shown;
static unsigned wanted[MACHINES];
static size_t wanted_count;
static unsigned long limit = UINT64_MAX, done[MACHINES];

#include "tests/kernels/nvdisasm_names.h"

/* The name as far as the table goes: IMAD.WIDE.U32 for a row IMAD.WIDE, IMAD.MOV for a row IMAD. */
static bool same_name(const char *row, const char *name)
{
	size_t length = strlen(row);
	if (!strncmp(row, name, length) && (!name[length] || name[length] == '.'))
		return true;
	size_t row_first = strcspn(row, "."), name_first = strcspn(name, ".");
	for (size_t i = 0; i < sizeof other_names / sizeof other_names[0]; i++)
		if (!strcmp(other_names[i].row, row) && strlen(other_names[i].name) == name_first &&
		    !strncmp(other_names[i].name, name, name_first))
			return true;
	/* A modifier in the row that stands elsewhere there. */
	return row[row_first] && row_first == name_first && !strncmp(row, name, row_first);
}

static void note_pair(const char *row, const char *name)
{
	size_t i = 0, length = strcspn(name, ".");
	while (i < pair_count &&
	       (strcmp(pairs[i].row, row) || strncmp(pairs[i].name, name, length) || pairs[i].name[length]))
		i++;
	if (i == sizeof pairs / sizeof pairs[0])
		return;
	if (i == pair_count) {
		snprintf(pairs[i].row, sizeof pairs[i].row, "%s", row);
		snprintf(pairs[i].name, sizeof pairs[i].name, "%.*s", (int)length, name);
		pair_count++;
	}
	pairs[i].count++;
}

static void show(const char *what, const struct sass_insn *insn, const char *text)
{
	if (shown++ < 40)
		printf("  %s: %s, %03x+%u %016" PRIx64 " %016" PRIx64 ": %s\n", what, insn->row ? insn->row->name : "?",
		       (unsigned)(insn->low & 0xfff), insn->bit91, insn->low, insn->high, text);
}

/* "R12", "UR4", "RZ", "URZ" at the start of the text: the number in *ret_reg. */
static bool register_at(const char *text, bool *ret_uniform, unsigned *ret_reg, const char **ret_end)
{
	*ret_uniform = *text == 'U';
	text += *ret_uniform;
	if (*text++ != 'R')
		return false;
	if (*text == 'Z') {
		*ret_reg = UINT32_MAX;
		*ret_end = text + 1;
		return !isalnum((unsigned char)text[1]);
	}
	if (!isdigit((unsigned char)*text))
		return false;
	char *end;
	*ret_reg = (unsigned)strtoul(text, &end, 10);
	*ret_end = end;
	return !isalnum((unsigned char)*end) && *end != '_';
}

static bool has_result(enum sass_class class)
{
	switch (class) {
	case SASS_MOVE:
	case SASS_SELECT:
	case SASS_MIX:
	case SASS_ADD:
	case SASS_MULTIPLY:
	case SASS_MULTIPLY_WIDE:
	case SASS_MULTIPLY_HIGH:
	case SASS_LEA:
	case SASS_SHIFT:
	case SASS_CLEAR:
	case SASS_CLEAR_CONVERT:
	case SASS_CLEAR_CS2R:
	case SASS_CONVERT:
	case SASS_TO_UNIFORM:
	case SASS_UNIFORM_CLEAR:
	case SASS_SPECIAL:
	case SASS_UNIFORM_SPECIAL:
	case SASS_SHUFFLE:
	case SASS_LOAD_CONST:
	case SASS_LOAD_CONST_UNIFORM:
	case SASS_LOAD:
	case SASS_LOAD_LOCAL:
	case SASS_LOAD_SHARED:
	case SASS_LOAD_MATRIX:
		return true;
	default:
		return false;
	}
}

/* Is the register of the result in the text one that the decoder has for it? */
static bool result_fits(const struct sass_machine *machine, const struct sass_insn *insn, bool uniform, unsigned reg)
{
	unsigned d = uniform ? insn->d & machine->uniform_mask : insn->d;
	bool is_uniform = insn->uniform || insn->row->class == SASS_TO_UNIFORM ||
	                  insn->row->class == SASS_UNIFORM_CLEAR || insn->row->class == SASS_UNIFORM_SPECIAL ||
	                  insn->row->class == SASS_LOAD_CONST_UNIFORM;
	if (uniform != is_uniform)
		return false;
	return reg == UINT32_MAX ? d == (uniform ? machine->uniform_zero : SASS_RZ) : d == reg;
}

/* Arithmetic only: the operands of the decoder's forms. Other instructions name registers in fields that their class reads. */
static bool operand_fits(const struct sass_machine *machine, const struct sass_insn *insn, bool uniform, unsigned reg)
{
	struct sass_operand operands[3];
	unsigned mask = uniform ? machine->uniform_mask : 0xff;
	unsigned fields[] = {insn->d & mask, insn->a & mask, insn->b & mask, insn->c & mask};
	if (reg == UINT32_MAX)
		return true;
	if (insn->row->class >= SASS_LOAD_CONST || !has_result(insn->row->class) || insn->row->class == SASS_SHUFFLE ||
	    insn->row->class == SASS_TO_UNIFORM) {
		for (size_t i = 0; i < 4; i++)
			if (fields[i] == reg)
				return true;
		return insn->row->class == SASS_TENSOR || insn->row->class == SASS_NOTHING ||
		       sass_field(insn, 24, 32) == reg || sass_field(insn, 72, 80) == reg;
	}
	sass_operands(machine, insn, operands);
	for (size_t i = 0; i < 3; i++)
		if (operands[i].reg == reg && (operands[i].kind == OPERAND_REGISTER) == !uniform &&
		    (operands[i].kind == OPERAND_REGISTER || operands[i].kind == OPERAND_UNIFORM))
			return true;
	/* The index of a constant. */
	return uniform && insn->bit91 && (insn->form == 3 || insn->form == 5);
}

static void compare_operands(const struct sass_machine *machine, const struct sass_insn *insn, const char *name,
                             const char *text)
{
	bool first = has_result(insn->row->class), bad_result = false, bad_operand = false;
	for (const char *at = text; *at;) {
		bool uniform;
		unsigned reg;
		const char *end;
		if ((at == text || !isalnum((unsigned char)at[-1])) && at[0] && register_at(at, &uniform, &reg, &end)) {
			if (first)
				bad_result = !result_fits(machine, insn, uniform, reg);
			else
				bad_operand |= !operand_fits(machine, insn, uniform, reg);
			first = false;
			at = end;
		} else {
			at++;
		}
	}
	counts.results += bad_result;
	counts.operands += bad_operand;
	if (bad_result || bad_operand)
		show(bad_result ? "result" : "operand", insn, name);
}

/* "@!UP3 " in front; what is behind it in *ret_rest. */
static bool guard_fits(const struct sass_insn *insn, const char *text, const char **ret_rest)
{
	bool negated = false, uniform = false;
	unsigned guard = 7;
	if (*text == '@') {
		text++;
		negated = *text == '!';
		text += negated;
		uniform = *text == 'U';
		text += uniform;
		guard = text[1] == 'T' ? 7 : (unsigned)(text[1] - '0');
		text += strcspn(text, " ");
		text += strspn(text, " ");
	}
	*ret_rest = text;
	return insn->guard == guard && insn->guard_negated == negated && (!uniform || insn->uniform || insn->row);
}

static void compare(const struct sass_machine *machine, const char *text, uint64_t low, uint64_t high)
{
	uint8_t code[SASS_BYTES];
	struct sass_insn insn;
	const char *name;
	char first[48];
	memcpy(code, &low, 8);
	memcpy(code + 8, &high, 8);
	sass_decode(machine, code, &insn);
	counts.instructions++;
	if (!guard_fits(&insn, text, &name)) {
		counts.guards++;
		show("guard", &insn, text);
	}
	snprintf(first, sizeof first, "%.*s", (int)strcspn(name, " ;"), name);
	if (!insn.row) {
		counts.unknown++;
		show("unknown", &insn, text);
		note_pair("unknown", first);
		return;
	}
	if (!same_name(insn.row->name, first)) {
		counts.names++;
		note_pair(insn.row->name, first);
	}
	compare_operands(machine, &insn, text, name + strcspn(name, " ;"));
}

/* A line of an instruction and the one behind it, which has the rest of its code. */
static bool read_text(FILE *in, const struct sass_machine *machine, size_t place)
{
	char line[4096], text[TEXT] = "";
	uint64_t low = 0;
	bool have = false;
	while (fgets(line, sizeof line, in)) {
		char *code = strstr(line, "/* 0x"), *at = strstr(line, "*/");
		if (!code)
			continue;
		uint64_t value = strtoull(code + 3, NULL, 16);
		if (!have && at && at < code) {
			at += 2 + strspn(at + 2, " ");
			snprintf(text, sizeof text, "%.*s", (int)(code - at), at);
			for (size_t end = strlen(text); end && isspace((unsigned char)text[end - 1]);)
				text[--end] = 0;
			low = value;
			have = true;
		} else if (have) {
			compare(machine, text, low, value);
			have = false;
			if (++done[place] >= limit)
				return true;
		}
	}
	return false;
}

static void disassemble(const char *nvdisasm, const uint8_t *image, size_t bytes, size_t place)
{
	char path[] = "/tmp/oracle.XXXXXX", command[4096];
	struct sass_machine machine;
	int fd = mkstemp(path);
	if (fd < 0 || sass_machine_init(&machine, wanted[place])) {
		perror("oracle");
		exit(1);
	}
	if (write(fd, image, bytes) != (ssize_t)bytes)
		exit(1);
	close(fd);
	snprintf(command, sizeof command, "'%s' -ndf -hex -c %s 2>/dev/null", nvdisasm, path);
	FILE *in = popen(command, "r");
	if (in) {
		read_text(in, &machine, place);
		pclose(in);
	}
	unlink(path);
}

static void each_entry(const char *nvdisasm, const struct fatbin_entry *entry)
{
	uint8_t *image;
	size_t place = 0;
	while (place < wanted_count && wanted[place] != entry->sm)
		place++;
	if (place == wanted_count || entry->kind != FATBIN_CUBIN || done[place] >= limit ||
	    fatbin_unpack(entry, zstd_decoder(), &image))
		return;
	disassemble(nvdisasm, image, entry->bytes, place);
	free(image);
}

static void each_cubin(const char *nvdisasm, const uint8_t *image, size_t bytes)
{
	struct elf elf;
	for (size_t place = 0; place < wanted_count && !elf_open(image, bytes, &elf); place++)
		if (wanted[place] == elf.sm)
			disassemble(nvdisasm, image, bytes, place);
}

static void each_file(const char *nvdisasm, const char *path)
{
	struct stat stat;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &stat)) {
		perror(path);
		exit(1);
	}
	size_t bytes = (size_t)stat.st_size, container;
	const uint8_t *file = mmap(NULL, bytes, PROT_READ, MAP_PRIVATE, fd, 0);
	close(fd);
	memset(done, 0, sizeof done);
	unsigned long before = counts.instructions;
	if (file != MAP_FAILED)
		each_cubin(nvdisasm, file, bytes);
	for (size_t at = 0; file != MAP_FAILED && (at = fatbin_find(file, bytes, at)) < bytes; at += container) {
		struct fatbin fatbin;
		struct fatbin_entry entry;
		if (fatbin_open(file + at, bytes - at, &fatbin, &container))
			break;
		while (fatbin_next(&fatbin, &entry) == 1)
			each_entry(nvdisasm, &entry);
	}
	munmap((void *)(uintptr_t)file, bytes);
	printf("%s: %lu instructions\n", strrchr(path, '/') ? strrchr(path, '/') + 1 : path,
	       counts.instructions - before);
	fflush(stdout);
}

static void want(const char *list)
{
	char *end;
	for (wanted_count = 0; *list && wanted_count < MACHINES; list = *end ? end + 1 : end)
		wanted[wanted_count++] = (unsigned)strtoul(list, &end, 10);
}

int main(int argc, char **argv)
{
	const char *nvdisasm = NULL;
	want("80,90,100");
	for (int i = 1; i < argc; i++) {
		if (!strncmp(argv[i], "--sm=", 5)) {
			want(argv[i] + 5);
		} else if (!strncmp(argv[i], "--limit=", 8)) {
			limit = strtoul(argv[i] + 8, NULL, 10);
		} else if (!nvdisasm) {
			nvdisasm = argv[i];
			if (access(nvdisasm, X_OK)) {
				printf("skipped: no nvdisasm at %s\n", nvdisasm);
				return 77;
			}
		} else {
			each_file(nvdisasm, argv[i]);
		}
	}
	for (size_t i = 0; i < pair_count; i++)
		printf("  row %s is called %s, %lu times\n", pairs[i].row, pairs[i].name, pairs[i].count);
	printf("%lu instructions: %lu unknown here, %lu with another name, %lu with another guard, %lu with another result, "
	       "%lu with an operand that is not known here\n",
	       counts.instructions, counts.unknown, counts.names, counts.guards, counts.results, counts.operands);
	return !counts.instructions || counts.unknown || counts.names || counts.guards || counts.results ||
	       counts.operands;
}
