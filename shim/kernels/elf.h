/*
 * Cubins: 64-bit ELF images of NVIDIA's machine. Reads in place, allocates nothing, trusts nothing: every offset is checked against the image.
 */
#ifndef CUCONST_KERNELS_ELF_H
#define CUCONST_KERNELS_ELF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct elf {
	const uint8_t *image;
	size_t bytes;
	unsigned sm; /* compute capability times ten: 75, 90, 121 */
	uint64_t sections_at;
	uint32_t section_count, section_bytes;
	const char *names; /* of sections */
	size_t names_bytes;
	const uint8_t *symbols; /* 24 bytes each */
	uint32_t symbol_count;
	const char *symbol_names;
	size_t symbol_names_bytes;
	const uint8_t *symbol_sections; /* SHT_SYMTAB_SHNDX, or NULL */
	uint32_t symbol_sections_count;
};

struct elf_section {
	uint32_t index, type, link, info;
	const char *name;
	const uint8_t *data; /* NULL when it takes no room in the image */
	size_t bytes;
};

struct elf_symbol {
	const char *name;
	unsigned type;    /* ELF_SYMBOL_... */
	bool entry;       /* a kernel, not a device function */
	uint32_t section; /* 0: not defined here */
	uint64_t value, bytes;
};
#define ELF_SYMBOL_FUNCTION 2

struct elf_relocation {
	uint64_t offset;
	uint32_t type, symbol;
	int64_t addend;
};

/* Little-endian reads from memory of any alignment. */
static inline uint16_t elf_u16(const uint8_t *at)
{
	return (uint16_t)(at[0] | at[1] << 8);
}
static inline uint32_t elf_u32(const uint8_t *at)
{
	return elf_u16(at) | (uint32_t)elf_u16(at + 2) << 16;
}
static inline uint64_t elf_u64(const uint8_t *at)
{
	return elf_u32(at) | (uint64_t)elf_u32(at + 4) << 32;
}

/* 0, or -EINVAL: not a cubin, cut, or contradicting itself. The image must outlive *ret_elf. */
int elf_open(const void *image, size_t bytes, struct elf *ret_elf);

/* 0, or -EINVAL where the index or what it says lies outside the image. */
int elf_section_at(const struct elf *elf, uint32_t index, struct elf_section *ret_section);
int elf_symbol_at(const struct elf *elf, uint32_t index, struct elf_symbol *ret_symbol);

/* The section of that name: `prefix` and `name` joined. 0, -ENOENT, -EINVAL. */
int elf_section_named(const struct elf *elf, const char *prefix, const char *name, struct elf_section *ret_section);

/* The defined function of that name. 0, -ENOENT, -EINVAL. */
int elf_function(const struct elf *elf, const char *name, struct elf_symbol *ret_symbol);

/*
 * Calls `each` for all relocations of one section, until it does not return 0. Its answer, 0, or -EINVAL.
 */
int elf_relocations(const struct elf *elf, uint32_t section,
                    int (*each)(void *ctx, const struct elf_relocation *relocation), void *ctx);

/* The records of an `.nv.info` section, in order; `each` as above. */
int elf_nvinfo(const struct elf_section *section,
               int (*each)(void *ctx, unsigned attribute, const uint8_t *data, size_t bytes), void *ctx);

#endif
