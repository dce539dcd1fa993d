/*
 * `.debug_line` of a cubin: DWARF line programs, versions 2 to 5. Each sequence begins with the address of a function, which a relocation gives: section and
 * offset in it. ptxas writes version 2, with extended operations of its own (0x90: where code was inlined), which are skipped by their length.
 */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "shim/kernels/line_info.h"

#define SECTION_BYTES ((size_t)64 << 20) /* more is not looked at */
#define RELOCATIONS 1000000u
#define FILES 65536u
#define STEPS 16000000u /* rows, and queries that they answer */

enum {
	LINE_EXTENDED,
	LINE_COPY,
	LINE_ADVANCE_PC,
	LINE_ADVANCE_LINE,
	LINE_SET_FILE,
	LINE_CONST_ADD_PC = 8,
	LINE_FIXED_ADVANCE_PC
};
enum { EXTENDED_END = 1, EXTENDED_SET_ADDRESS, EXTENDED_DEFINE_FILE };
enum { CONTENT_PATH = 1, CONTENT_DIRECTORY };
enum {
	FORM_BLOCK2 = 3,
	FORM_BLOCK4,
	FORM_DATA2,
	FORM_DATA4,
	FORM_DATA8,
	FORM_STRING,
	FORM_BLOCK,
	FORM_BLOCK1,
	FORM_DATA1,
	FORM_STRP = 0x0e,
	FORM_UDATA = 0x0f,
	FORM_DATA16 = 0x1e,
	FORM_LINE_STRP = 0x1f
};

/* Reads within [at, end); what would go beyond reads as 0 and sets `bad`. */
struct bytes {
	const uint8_t *at, *end;
	bool bad;
};

struct table {
	struct line_text *list;
	uint32_t count;
};

struct relocations {
	struct elf_relocation *list;
	size_t count, room;
	bool failed;
};

/* One unit: a header with its tables, and the program. */
struct unit {
	const struct elf *elf;
	const struct elf_section *section;
	const struct relocations *relocations;
	struct line_query *queries;
	size_t query_count;
	uint32_t *steps; /* that are left for the whole section */
	unsigned version, address_bytes, offset_bytes, least_instruction, line_range, opcode_base;
	int line_base;
	const uint8_t *lengths; /* of standard operations: how many operands */
	struct table directories, files;
	uint32_t *file_directories;
};

struct row {
	bool placed; /* its section is known */
	uint32_t section;
	uint64_t address;
	uint32_t file, line;
};

static const uint8_t *take(struct bytes *bytes, size_t count)
{
	if (bytes->bad || (size_t)(bytes->end - bytes->at) < count) {
		bytes->bad = true;
		return NULL;
	}
	const uint8_t *at = bytes->at;
	bytes->at += count;
	return at;
}

static uint64_t take_fixed(struct bytes *bytes, unsigned count)
{
	const uint8_t *at = take(bytes, count);
	uint64_t value = 0;
	for (unsigned i = 0; at && i < count && i < 8; i++)
		value |= (uint64_t)at[i] << 8 * i;
	return value;
}

/* LEB128. Bits beyond 64 are lost: no honest number has them. */
static uint64_t take_number(struct bytes *bytes, bool is_signed)
{
	uint64_t value = 0;
	for (unsigned shift = 0;; shift += 7) {
		const uint8_t *at = take(bytes, 1);
		if (!at)
			return 0;
		if (shift < 64)
			value |= (uint64_t)(*at & 0x7f) << shift;
		if (!(*at & 0x80)) {
			if (is_signed && *at & 0x40 && shift + 7 < 64)
				value |= ~(uint64_t)0 << (shift + 7);
			return value;
		}
	}
}

static struct line_text take_text(struct bytes *bytes)
{
	const uint8_t *end = bytes->bad ? NULL : memchr(bytes->at, 0, (size_t)(bytes->end - bytes->at));
	if (!end) {
		bytes->bad = true;
		return (struct line_text){"", 0};
	}
	struct line_text text = {(const char *)bytes->at, (size_t)(end - bytes->at)};
	bytes->at = end + 1;
	return text;
}

static bool add_text(struct table *table, struct line_text text)
{
	if (table->count >= FILES)
		return false;
	if (!(table->count & (table->count - 1))) {
		struct line_text *list = realloc(table->list, (table->count ? 2 * table->count : 1) * sizeof *list);
		if (!list)
			return false;
		table->list = list;
	}
	table->list[table->count++] = text;
	return true;
}

static bool add_file(struct unit *unit, struct line_text name, uint64_t directory)
{
	uint32_t count = unit->files.count;
	if (!(count & (count - 1))) {
		uint32_t *list = realloc(unit->file_directories, (count ? 2 * count : 1) * sizeof *list);
		if (!list)
			return false;
		unit->file_directories = list;
	}
	unit->file_directories[count] = directory < FILES ? (uint32_t)directory : FILES;
	return add_text(&unit->files, name);
}

/* Versions 2 to 4: directories from 1 (0 is the compiler's, not told), files from 1. */
static bool old_tables(struct unit *unit, struct bytes *header)
{
	bool good = add_text(&unit->directories, (struct line_text){"", 0}) &&
	            add_file(unit, (struct line_text){"", 0}, 0);
	for (struct line_text name = take_text(header); good && name.length; name = take_text(header))
		good = add_text(&unit->directories, name);
	for (struct line_text name = take_text(header); good && name.length; name = take_text(header)) {
		uint64_t directory = take_number(header, false);
		take_number(header, false); /* time */
		take_number(header, false); /* size */
		good = add_file(unit, name, directory);
	}
	return good && !header->bad;
}

static struct line_text text_in(const struct unit *unit, const char *section, uint64_t offset)
{
	struct elf_section texts;
	if (elf_section_named(unit->elf, section, "", &texts) || !texts.data || offset >= texts.bytes)
		return (struct line_text){"", 0};
	return take_text(&(struct bytes){texts.data + offset, texts.data + texts.bytes, false});
}

/* One member of an entry, of whatever form. Numbers in *ret_number, texts in *ret_text. */
static void take_form(const struct unit *unit, struct bytes *header, uint64_t form, struct line_text *ret_text,
                      uint64_t *ret_number)
{
	switch (form) {
	case FORM_STRING:
		*ret_text = take_text(header);
		break;
	case FORM_LINE_STRP:
		*ret_text = text_in(unit, ".debug_line_str", take_fixed(header, unit->offset_bytes));
		break;
	case FORM_STRP:
		*ret_text = text_in(unit, ".debug_str", take_fixed(header, unit->offset_bytes));
		break;
	case FORM_UDATA:
		*ret_number = take_number(header, false);
		break;
	case FORM_DATA1:
		*ret_number = take_fixed(header, 1);
		break;
	case FORM_DATA2:
		*ret_number = take_fixed(header, 2);
		break;
	case FORM_DATA4:
		*ret_number = take_fixed(header, 4);
		break;
	case FORM_DATA8:
		*ret_number = take_fixed(header, 8);
		break;
	case FORM_DATA16:
		take(header, 16);
		break;
	case FORM_BLOCK:
		take(header, take_number(header, false));
		break;
	case FORM_BLOCK1:
		take(header, take_fixed(header, 1));
		break;
	case FORM_BLOCK2:
		take(header, take_fixed(header, 2));
		break;
	case FORM_BLOCK4:
		take(header, take_fixed(header, 4));
		break;
	default:
		header->bad = true;
	}
}

/* Version 5: a table that says of what its entries are made. Directories and files count from 0. */
static bool new_table(struct unit *unit, struct bytes *header, bool files)
{
	uint64_t formats[2 * 255] = {0};
	unsigned format_count = (unsigned)take_fixed(header, 1);
	for (unsigned i = 0; i < 2 * format_count; i++)
		formats[i] = take_number(header, false);
	uint64_t count = take_number(header, false);
	for (uint64_t i = 0; i < count && !header->bad; i++) {
		struct line_text name = {"", 0}, text = name;
		uint64_t directory = 0, number = 0;
		for (unsigned f = 0; f < format_count; f++) {
			take_form(unit, header, formats[2 * f + 1], &text, &number);
			if (formats[2 * f] == CONTENT_PATH)
				name = text;
			else if (formats[2 * f] == CONTENT_DIRECTORY)
				directory = number;
		}
		if (!format_count || !(files ? add_file(unit, name, directory) : add_text(&unit->directories, name)))
			return false;
	}
	return !header->bad;
}

static int collect(void *ctx, const struct elf_relocation *relocation)
{
	struct relocations *all = ctx;
	if (all->count == all->room) {
		size_t room = all->room ? 2 * all->room : 64;
		struct elf_relocation *list = room > RELOCATIONS ? NULL : realloc(all->list, room * sizeof *list);
		if (!list) {
			all->failed = true;
			return 1;
		}
		all->list = list;
		all->room = room;
	}
	all->list[all->count++] = *relocation;
	return 0;
}

static int by_offset(const void *left, const void *right)
{
	const struct elf_relocation *a = left, *b = right;
	return (a->offset > b->offset) - (a->offset < b->offset);
}

/* The address at this place of the section: what its relocation says. */
static void set_address(const struct unit *unit, const uint8_t *place, struct row *row)
{
	const struct elf_relocation wanted = {.offset = (uint64_t)(place - unit->section->data)};
	const struct relocations *all = unit->relocations;
	const struct elf_relocation *found = bsearch(&wanted, all->list, all->count, sizeof wanted, by_offset);
	struct elf_symbol symbol;
	row->placed = found && !elf_symbol_at(unit->elf, found->symbol, &symbol) && symbol.section;
	if (!row->placed)
		return;
	row->section = symbol.section;
	row->address = symbol.value + (uint64_t)found->addend;
}

/* Code in [from, to) came from this row's line. */
static void answer(const struct unit *unit, const struct row *row, uint64_t to)
{
	if (!row->placed || !row->line || row->file >= unit->files.count)
		return;
	size_t at = line_first(unit->queries, unit->query_count, row->section, row->address);
	for (; at < unit->query_count; at++) {
		struct line_query *query = &unit->queries[at];
		if (query->section != row->section || query->offset >= to || !*unit->steps)
			return;
		--*unit->steps;
		if (query->line)
			continue;
		uint32_t directory = unit->file_directories[row->file];
		query->file = line_file(directory < unit->directories.count ? unit->directories.list[directory]
		                                                            : (struct line_text){"", 0},
		                        unit->files.list[row->file]);
		query->line = row->line;
	}
}

/* The rows of a program as they come: each ends the one before. */
struct rows {
	struct row now, last;
	bool any;
};

static void emit(const struct unit *unit, struct rows *rows)
{
	if (rows->any && rows->last.section == rows->now.section)
		answer(unit, &rows->last, rows->now.address);
	rows->last = rows->now;
	rows->any = true;
}

static void begin(struct rows *rows)
{
	*rows = (struct rows){.now = {.file = 1, .line = 1}};
}

static void extended(struct unit *unit, struct bytes *program, struct rows *rows)
{
	uint64_t length = take_number(program, false);
	const uint8_t *at = length <= SIZE_MAX ? take(program, length) : NULL;
	if (!at || !length)
		return;
	switch (*at) {
	case EXTENDED_END:
		emit(unit, rows);
		begin(rows);
		break;
	case EXTENDED_SET_ADDRESS:
		set_address(unit, at + 1, &rows->now);
		break;
	case EXTENDED_DEFINE_FILE: {
		struct bytes file = {at + 1, at + length, false};
		struct line_text name = take_text(&file);
		if (!file.bad)
			add_file(unit, name, take_number(&file, false));
		break;
	}
	default:
		break;
	}
}

static void standard(struct unit *unit, unsigned operation, struct bytes *program, struct rows *rows)
{
	switch (operation) {
	case LINE_COPY:
		emit(unit, rows);
		break;
	case LINE_ADVANCE_PC:
		rows->now.address += take_number(program, false) * unit->least_instruction;
		break;
	case LINE_ADVANCE_LINE:
		rows->now.line += (uint32_t)take_number(program, true);
		break;
	case LINE_SET_FILE: {
		uint64_t file = take_number(program, false);
		rows->now.file = file < FILES ? (uint32_t)file : FILES;
		break;
	}
	case LINE_CONST_ADD_PC:
		rows->now.address += (uint64_t)((255 - unit->opcode_base) / unit->line_range) * unit->least_instruction;
		break;
	case LINE_FIXED_ADVANCE_PC:
		rows->now.address += take_fixed(program, 2);
		break;
	default:
		for (unsigned i = 0; i < unit->lengths[operation - 1]; i++)
			take_number(program, false);
	}
}

static void run(struct unit *unit, struct bytes *program)
{
	struct rows rows;
	begin(&rows);
	for (; *unit->steps; --*unit->steps) {
		const uint8_t *at = take(program, 1);
		if (!at)
			return;
		unsigned operation = *at;
		if (operation >= unit->opcode_base) {
			unsigned special = operation - unit->opcode_base;
			rows.now.address += (uint64_t)(special / unit->line_range) * unit->least_instruction;
			rows.now.line += (uint32_t)(unit->line_base + (int)(special % unit->line_range));
			emit(unit, &rows);
		} else if (operation == LINE_EXTENDED) {
			extended(unit, program, &rows);
		} else {
			standard(unit, operation, program, &rows);
		}
	}
}

/* The header up to its tables. False: another version, or damaged. */
static bool read_header(struct unit *unit, struct bytes *all, struct bytes *ret_header)
{
	unit->version = (unsigned)take_fixed(all, 2);
	if (unit->version < 2 || unit->version > 5)
		return false;
	if (unit->version == 5)
		take(all, 2); /* sizes of an address and of a segment */
	uint64_t length = take_fixed(all, unit->offset_bytes);
	const uint8_t *start = length <= SIZE_MAX ? take(all, length) : NULL;
	if (!start)
		return false;
	*ret_header = (struct bytes){start, start + length, false};
	unit->least_instruction = (unsigned)take_fixed(ret_header, 1);
	if (unit->version >= 4)
		take(ret_header, 1); /* operations of one instruction: 1 but for VLIW */
	take(ret_header, 1);         /* is a statement */
	unit->line_base = (int)take_fixed(ret_header, 1);
	unit->line_base -= unit->line_base > INT8_MAX ? 256 : 0;
	unit->line_range = (unsigned)take_fixed(ret_header, 1);
	unit->opcode_base = (unsigned)take_fixed(ret_header, 1);
	if (!unit->line_range || !unit->opcode_base)
		return false;
	unit->lengths = take(ret_header, unit->opcode_base - 1);
	return unit->lengths && !ret_header->bad;
}

static void read_unit(struct unit *unit, struct bytes *all)
{
	struct bytes header;
	if (!read_header(unit, all, &header))
		return;
	bool good = unit->version < 5 ? old_tables(unit, &header)
	                              : new_table(unit, &header, false) && new_table(unit, &header, true);
	if (good)
		run(unit, all);
}

void line_info_cubin(const struct elf *elf, struct line_query *queries, size_t count)
{
	struct elf_section section;
	struct relocations relocations = {0};
	uint32_t steps = STEPS;
	if (!count || elf_section_named(elf, ".debug_line", "", &section) || !section.data ||
	    section.bytes > SECTION_BYTES)
		return;
	if (elf_relocations(elf, section.index, collect, &relocations) || relocations.failed) {
		free(relocations.list);
		return;
	}
	if (relocations.count)
		qsort(relocations.list, relocations.count, sizeof *relocations.list, by_offset);
	line_sort(queries, count);
	for (struct bytes all = {section.data, section.data + section.bytes, false}; all.at < all.end;) {
		struct unit unit = {.elf = elf,
		                    .section = &section,
		                    .relocations = &relocations,
		                    .queries = queries,
		                    .query_count = count,
		                    .steps = &steps,
		                    .offset_bytes = 4};
		uint64_t length = take_fixed(&all, 4);
		if (length == UINT32_MAX) {
			unit.offset_bytes = 8;
			length = take_fixed(&all, 8);
		}
		const uint8_t *start = length <= SIZE_MAX ? take(&all, length) : NULL;
		if (!start)
			break;
		read_unit(&unit, &(struct bytes){start, start + length, false});
		free(unit.directories.list);
		free(unit.files.list);
		free(unit.file_directories);
	}
	free(relocations.list);
}
