#include "shim/kernels/elf.h"

#include <errno.h>
#include <string.h>

#define MACHINE_CUDA 190
#define ABI_OLD 7 /* the version of the machine in e_flags bits 0-7; in ABI 8 in bits 8-15 */
#define TYPE_SYMTAB 2
#define TYPE_RELA 4
#define TYPE_NOBITS 8
#define TYPE_REL 9
#define TYPE_SHARED_DEBUG 0x7000000a /* .nv_debug.shared: takes no room, as NOBITS */
#define TYPE_SYMTAB_SHNDX 0x12
#define INDEX_EXTENDED 0xffff
#define OTHER_ENTRY 0x10
#define SYMBOL_BYTES 24
#define HEADER_BYTES 64
#define SECTION_BYTES 64

static bool inside(const struct elf *elf, uint64_t offset, uint64_t bytes)
{
	return offset <= elf->bytes && bytes <= elf->bytes - offset;
}

/* How much of a string table is texts that end inside. */
static size_t ended(const char *table, size_t bytes)
{
	const char *last = memrchr(table, 0, bytes);
	return last ? (size_t)(last - table) + 1 : 0;
}

/* The text at `offset` of a string table, of so many bytes that ended() counts; NULL when it does not end inside. */
static const char *text_at(const char *table, size_t bytes, uint64_t offset)
{
	return offset < bytes ? table + offset : NULL;
}

static const uint8_t *section_header(const struct elf *elf, uint32_t index)
{
	return elf->image + elf->sections_at + (uint64_t)index * elf->section_bytes;
}

int elf_section_at(const struct elf *elf, uint32_t index, struct elf_section *ret_section)
{
	if (index >= elf->section_count)
		return -EINVAL;
	const uint8_t *header = section_header(elf, index);
	struct elf_section section = {.index = index,
	                              .type = elf_u32(header + 4),
	                              .link = elf_u32(header + 40),
	                              .info = elf_u32(header + 44),
	                              .name = ""};
	if (elf->names && !(section.name = text_at(elf->names, elf->names_bytes, elf_u32(header))))
		return -EINVAL;
	uint64_t offset = elf_u64(header + 24), bytes = elf_u64(header + 32);
	if (index && section.type && section.type != TYPE_NOBITS && section.type != TYPE_SHARED_DEBUG) {
		if (!inside(elf, offset, bytes))
			return -EINVAL;
		section.data = elf->image + offset;
		section.bytes = bytes;
	}
	*ret_section = section;
	return 0;
}

static int read_symbols(struct elf *elf)
{
	for (uint32_t i = 1; i < elf->section_count; i++) {
		struct elf_section section, names;
		int err = elf_section_at(elf, i, &section);
		if (err)
			return err;
		if (section.type == TYPE_SYMTAB && !elf->symbols) {
			err = elf_section_at(elf, section.link, &names);
			if (err || !names.data)
				return -EINVAL;
			elf->symbols = section.data;
			elf->symbol_count = section.bytes / SYMBOL_BYTES > UINT32_MAX
			                            ? 0
			                            : (uint32_t)(section.bytes / SYMBOL_BYTES);
			elf->symbol_names = (const char *)names.data;
			elf->symbol_names_bytes = ended(elf->symbol_names, names.bytes);
		} else if (section.type == TYPE_SYMTAB_SHNDX && !elf->symbol_sections) {
			elf->symbol_sections = section.data;
			elf->symbol_sections_count = (uint32_t)(section.bytes / 4);
		}
	}
	return 0;
}

int elf_open(const void *image, size_t bytes, struct elf *ret_elf)
{
	const uint8_t *header = image;
	if (bytes < HEADER_BYTES || memcmp(header, "\177ELF\2\1", 6) || elf_u16(header + 18) != MACHINE_CUDA)
		return -EINVAL;
	struct elf elf = {.image = image,
	                  .bytes = bytes,
	                  .sections_at = elf_u64(header + 40),
	                  .section_count = elf_u16(header + 60),
	                  .section_bytes = elf_u16(header + 58)};
	uint32_t flags = elf_u32(header + 48), names = elf_u16(header + 62);
	elf.sm = header[8] <= ABI_OLD ? flags & 0xff : flags >> 8 & 0xff;
	if (elf.section_bytes < SECTION_BYTES || !inside(&elf, elf.sections_at, elf.section_bytes))
		return -EINVAL;
	/* More than 65279 sections: counts and indices are in the first section's header. */
	const uint8_t *first = elf.image + elf.sections_at;
	if (!elf.section_count) {
		uint64_t count = elf_u64(first + 32);
		if (!count || count > bytes / SECTION_BYTES)
			return -EINVAL;
		elf.section_count = (uint32_t)count;
	}
	if (names == INDEX_EXTENDED)
		names = elf_u32(first + 40);
	struct elf_section section;
	if (!inside(&elf, elf.sections_at, (uint64_t)elf.section_count * elf.section_bytes) ||
	    elf_section_at(&elf, names, &section) || !section.data)
		return -EINVAL;
	elf.names = (const char *)section.data;
	elf.names_bytes = ended(elf.names, section.bytes);
	int err = read_symbols(&elf);
	if (err)
		return err;
	*ret_elf = elf;
	return 0;
}

int elf_symbol_at(const struct elf *elf, uint32_t index, struct elf_symbol *ret_symbol)
{
	if (index >= elf->symbol_count)
		return -EINVAL;
	const uint8_t *raw = elf->symbols + (size_t)index * SYMBOL_BYTES;
	struct elf_symbol symbol = {.type = raw[4] & 15,
	                            .entry = raw[5] & OTHER_ENTRY,
	                            .section = elf_u16(raw + 6),
	                            .value = elf_u64(raw + 8),
	                            .bytes = elf_u64(raw + 16)};
	symbol.name = text_at(elf->symbol_names, elf->symbol_names_bytes, elf_u32(raw));
	if (!symbol.name)
		return -EINVAL;
	if (symbol.section == INDEX_EXTENDED) {
		if (index >= elf->symbol_sections_count)
			return -EINVAL;
		symbol.section = elf_u32(elf->symbol_sections + (size_t)index * 4);
	}
	*ret_symbol = symbol;
	return 0;
}

/* A name in two parts, to be looked for. */
struct wanted {
	const char *prefix, *name;
	size_t prefix_length, length;
};

/* Is it the text at `offset` of a table, of so many bytes that ended() counts? Mostly the length says no: names of kernels begin alike. */
static bool is_wanted(const struct wanted *wanted, const char *table, size_t bytes, uint64_t offset)
{
	size_t length = wanted->prefix_length + wanted->length;
	return offset < bytes && length < bytes - offset && !table[offset + length] &&
	       !memcmp(table + offset, wanted->prefix, wanted->prefix_length) &&
	       !memcmp(table + offset + wanted->prefix_length, wanted->name, wanted->length);
}

int elf_section_named(const struct elf *elf, const char *prefix, const char *name, struct elf_section *ret_section)
{
	const struct wanted wanted = {prefix, name, strlen(prefix), strlen(name)};
	/* That all sections are in order elf_open() has seen. */
	for (uint32_t i = 1; i < elf->section_count; i++)
		if (is_wanted(&wanted, elf->names, elf->names_bytes, elf_u32(section_header(elf, i))))
			return elf_section_at(elf, i, ret_section);
	return -ENOENT;
}

int elf_function(const struct elf *elf, const char *name, struct elf_symbol *ret_symbol)
{
	const struct wanted wanted = {"", name, 0, strlen(name)};
	for (uint32_t i = 0; i < elf->symbol_count; i++) {
		struct elf_symbol symbol;
		if (elf_symbol_at(elf, i, &symbol))
			return -EINVAL;
		if (symbol.type == ELF_SYMBOL_FUNCTION && symbol.section &&
		    is_wanted(&wanted, elf->symbol_names, elf->symbol_names_bytes,
		              (uint64_t)(symbol.name - elf->symbol_names))) {
			*ret_symbol = symbol;
			return 0;
		}
	}
	return -ENOENT;
}

int elf_relocations(const struct elf *elf, uint32_t section,
                    int (*each)(void *ctx, const struct elf_relocation *relocation), void *ctx)
{
	for (uint32_t i = 1; i < elf->section_count; i++) {
		struct elf_section list;
		const uint8_t *header = section_header(elf, i);
		uint32_t type = elf_u32(header + 4);
		if ((type != TYPE_REL && type != TYPE_RELA) || elf_u32(header + 44) != section)
			continue;
		if (elf_section_at(elf, i, &list))
			return -EINVAL;
		size_t stride = list.type == TYPE_REL ? 16 : 24;
		for (size_t at = 0; at + stride <= list.bytes; at += stride) {
			const uint8_t *raw = list.data + at;
			struct elf_relocation relocation = {elf_u64(raw), elf_u32(raw + 8), elf_u32(raw + 12),
			                                    stride == 24 ? (int64_t)elf_u64(raw + 16) : 0};
			int answer = each(ctx, &relocation);
			if (answer)
				return answer;
		}
	}
	return 0;
}

int elf_nvinfo(const struct elf_section *section,
               int (*each)(void *ctx, unsigned attribute, const uint8_t *data, size_t bytes), void *ctx)
{
	for (size_t at = 0; at + 4 <= section->bytes;) {
		const uint8_t *raw = section->data + at;
		size_t bytes = 2;
		const uint8_t *data = raw + 2;
		if (raw[0] == 4) {
			bytes = elf_u16(raw + 2);
			data = raw + 4;
			if (bytes > section->bytes - at - 4)
				return -EINVAL;
			at += 4 + bytes;
		} else if (raw[0] >= 1 && raw[0] <= 3) {
			at += 4;
		} else {
			return -EINVAL;
		}
		int answer = each(ctx, raw[1], data, bytes);
		if (answer)
			return answer;
	}
	return 0;
}
