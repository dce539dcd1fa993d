#include "shim/doors/elf_read.h"

#include <stdint.h>
#include <string.h>

struct tables {
	const ElfW(Sym) * symbols;
	const char *strings;
	const uint32_t *gnu_hash, *sysv_hash;
	const ElfW(Rela) * plain, *plt;
	size_t plain_bytes, plt_bytes;
	size_t soname;
};

/*
 * ld.so turns these offsets into addresses in place, except in objects whose dynamic section is read-only (the vDSO).
 */
static const void *table_address(const struct elf_object *object, ElfW(Addr) value)
{
	return (const void *)(value < object->base ? object->base + value : value);
}

static bool read_tables(const struct elf_object *object, struct tables *ret_tables)
{
	struct tables tables = {0};
	if (!object->dynamic)
		return false;
	for (const ElfW(Dyn) *entry = object->dynamic; entry->d_tag != DT_NULL; entry++) {
		ElfW(Addr) value = entry->d_un.d_ptr;
		switch (entry->d_tag) {
		case DT_SYMTAB:
			tables.symbols = table_address(object, value);
			break;
		case DT_STRTAB:
			tables.strings = table_address(object, value);
			break;
		case DT_GNU_HASH:
			tables.gnu_hash = table_address(object, value);
			break;
		case DT_HASH:
			tables.sysv_hash = table_address(object, value);
			break;
		case DT_RELA:
			tables.plain = table_address(object, value);
			break;
		case DT_RELASZ:
			tables.plain_bytes = value;
			break;
		case DT_JMPREL:
			tables.plt = table_address(object, value);
			break;
		case DT_PLTRELSZ:
			tables.plt_bytes = value;
			break;
		case DT_SONAME:
			tables.soname = value;
			break;
		default:
			break;
		}
	}
	*ret_tables = tables;
	return tables.symbols && tables.strings;
}

static void *symbol_address(const struct elf_object *object, const struct tables *tables, uint32_t index, const char *name)
{
	const ElfW(Sym) *symbol = &tables->symbols[index];
	unsigned type = ELF64_ST_TYPE(symbol->st_info);
	if (symbol->st_shndx == SHN_UNDEF || (type != STT_FUNC && type != STT_OBJECT && type != STT_NOTYPE))
		return NULL;
	if (strcmp(tables->strings + symbol->st_name, name))
		return NULL;
	return (void *)(object->base + symbol->st_value);
}

static void *find_gnu(const struct elf_object *object, const struct tables *tables, const char *name)
{
	uint32_t bucket_count = tables->gnu_hash[0], first = tables->gnu_hash[1];
	uint32_t bloom_count = tables->gnu_hash[2], shift = tables->gnu_hash[3];
	const ElfW(Addr) *bloom = (const ElfW(Addr) *)&tables->gnu_hash[4];
	const uint32_t *buckets = (const uint32_t *)&bloom[bloom_count];
	const uint32_t *chain = &buckets[bucket_count];
	uint32_t hash = 5381;
	for (const unsigned char *c = (const unsigned char *)name; *c; c++)
		hash = hash * 33 + *c;
	unsigned bits = 8 * sizeof *bloom;
	ElfW(Addr) mask = (ElfW(Addr))1 << hash % bits | (ElfW(Addr))1 << (hash >> shift) % bits;
	if (!bucket_count || !bloom_count || (bloom[hash / bits % bloom_count] & mask) != mask)
		return NULL;
	uint32_t index = buckets[hash % bucket_count];
	if (index < first)
		return NULL;
	for (;; index++) {
		uint32_t word = chain[index - first];
		void *found = (word | 1) == (hash | 1) ? symbol_address(object, tables, index, name) : NULL;
		if (found || word & 1)
			return found;
	}
}

static void *find_sysv(const struct elf_object *object, const struct tables *tables, const char *name)
{
	uint32_t bucket_count = tables->sysv_hash[0];
	const uint32_t *buckets = &tables->sysv_hash[2], *chain = &buckets[bucket_count];
	uint32_t hash = 0;
	for (const unsigned char *c = (const unsigned char *)name; *c; c++) {
		hash = (hash << 4) + *c;
		hash = (hash ^ (hash & 0xf0000000) >> 24) & 0x0fffffff;
	}
	for (uint32_t index = bucket_count ? buckets[hash % bucket_count] : 0; index; index = chain[index]) {
		void *found = symbol_address(object, tables, index, name);
		if (found)
			return found;
	}
	return NULL;
}

bool elf_of_phdr(const struct dl_phdr_info *info, struct elf_object *ret_object)
{
	for (int i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_DYNAMIC) {
			ret_object->base = info->dlpi_addr;
			ret_object->dynamic = (const ElfW(Dyn) *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
			return true;
		}
	return false;
}

struct elf_object elf_of_map(const struct link_map *map)
{
	return (struct elf_object){.base = map->l_addr, .dynamic = map->l_ld};
}

void *elf_symbol(const struct elf_object *object, const char *name)
{
	struct tables tables;
	if (!read_tables(object, &tables))
		return NULL;
	if (tables.gnu_hash)
		return find_gnu(object, &tables, name);
	return tables.sysv_hash ? find_sysv(object, &tables, name) : NULL;
}

const char *elf_soname(const struct elf_object *object)
{
	struct tables tables;
	return read_tables(object, &tables) && tables.soname ? tables.strings + tables.soname : "";
}

/* Calls fits() for the imports of one relocation table. Returns the slot of the first that fits. */
static void *const *each_import(const struct elf_object *object, const struct tables *tables, const ElfW(Rela) * relocs,
                                size_t bytes, bool (*fits)(const char *, const void *, void *), void *data)
{
	for (size_t i = 0; relocs && i < bytes / sizeof *relocs; i++) {
		unsigned type = ELF64_R_TYPE(relocs[i].r_info);
		if (type != R_X86_64_GLOB_DAT && type != R_X86_64_JUMP_SLOT)
			continue;
		const ElfW(Sym) *symbol = &tables->symbols[ELF64_R_SYM(relocs[i].r_info)];
		void *const *slot = (void *const *)(object->base + relocs[i].r_offset);
		if (fits(tables->strings + symbol->st_name, *slot, data))
			return slot;
	}
	return NULL;
}

static void *const *find_import(const struct elf_object *object, bool (*fits)(const char *, const void *, void *),
                                void *data)
{
	struct tables tables;
	if (!read_tables(object, &tables))
		return NULL;
	void *const *slot = each_import(object, &tables, tables.plt, tables.plt_bytes, fits, data);
	return slot ? slot : each_import(object, &tables, tables.plain, tables.plain_bytes, fits, data);
}

static bool same_name(const char *symbol, const void *bound, void *data)
{
	return !strcmp(symbol, data);
}

void *const *elf_import(const struct elf_object *object, const char *name)
{
	return find_import(object, same_name, (void *)(uintptr_t)name);
}

bool elf_any_import(const struct elf_object *object, bool (*fits)(const char *symbol, const void *bound, void *data),
                    void *data)
{
	return find_import(object, fits, data) != NULL;
}
