/*
 * Source lines of stores: lines FILE... compares those of lines/lines.cu, in each image, with what is known of them; then the images are damaged in many ways
 * (run with sanitizers), and a line program of version 5 takes the place of a cubin's own.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shim/kernels/elf.h"
#include "shim/kernels/line_info.h"
#include "shim/kernels/paths.h"
#include "tests/kernels/file.h"

static int failures;

#define EXPECT(condition, ...)                                                                                         \
	do {                                                                                                           \
		if (!(condition)) {                                                                                    \
			printf("line %d: %s: ", __LINE__, #condition);                                                 \
			printf(__VA_ARGS__);                                                                           \
			printf("\n");                                                                                  \
			failures++;                                                                                    \
		}                                                                                                      \
	} while (0)

static bool is_ptx(const char *name)
{
	return strstr(name, ".ptx") != NULL;
}

static int read_paths(const char *name, const void *image, size_t bytes, const char *kernel, struct kernel_paths *ret)
{
	return is_ptx(name) ? paths_of_ptx(image, bytes, kernel, ret) : paths_of_cubin(image, bytes, kernel, ret);
}

/* Does a store of the kernel come from this line? */
static bool has(const struct kernel_paths *paths, const char *file, uint32_t line)
{
	for (size_t i = 0; i < paths->store_count; i++) {
		const struct store_site *store = &paths->stores[i];
		const char *name = store->file ? strrchr(store->file, '/') : NULL;
		if (name && !strcmp(name + 1, file) && store->line == line)
			return true;
	}
	return false;
}

static void all_have_lines(const char *name, const char *kernel, const struct kernel_paths *paths)
{
	EXPECT(paths->store_count > 0, "%s %s", name, kernel);
	for (size_t i = 0; i < paths->store_count; i++) {
		const struct store_site *store = &paths->stores[i];
		EXPECT(store->file && store->line, "%s %s: store %zu, %s at %u", name, kernel, i, store->kind,
		       store->offset);
		EXPECT(!store->file || store->file[0] == '/', "%s %s: %s", name, kernel, store->file);
	}
}

static void check(const char *name)
{
	struct kernel_paths paths;
	size_t bytes;
	char *image = read_whole(name, &bytes);
	bool debug = strstr(name, "debug") != NULL;
	if (read_paths(name, image, bytes, "fill", &paths)) {
		EXPECT(false, "%s", name);
		return;
	}
	all_have_lines(name, "fill", &paths);
	EXPECT(has(&paths, "lines.cu", 8), "%s", name);
	EXPECT(has(&paths, "helper.cuh", 8), "%s", name);
	EXPECT(has(&paths, "helper.cuh", 3), "%s", name);
	kernel_paths_free(&paths);
	if (read_paths(name, image, bytes, "other", &paths)) {
		EXPECT(false, "%s", name);
		return;
	}
	if (!debug)
		all_have_lines(name, "other", &paths);
	EXPECT(has(&paths, "lines.cu", 15), "%s", name);
	/* Inlined from a header of the toolkit; not so with -G, where it is a function without lines. */
	EXPECT(debug || has(&paths, "sm_20_atomic_functions.hpp", 84), "%s", name);
	kernel_paths_free(&paths);
	free(image);
}

/* Small enough for the exact end of each copy to be guarded by the sanitizer. */
static void try_image(const char *name, const char *image, size_t bytes)
{
	struct kernel_paths paths;
	char *copy = malloc(bytes ? bytes : 1);
	memcpy(copy, image, bytes);
	if (!read_paths(name, copy, bytes, "fill", &paths))
		kernel_paths_free(&paths);
	free(copy);
}

static uint32_t next_random(uint64_t *state)
{
	*state = *state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(*state >> 33);
}

/* Where the line info lies: the whole text, or the section. */
static void find_lines(const char *name, const char *image, size_t bytes, size_t *ret_from, size_t *ret_to)
{
	struct elf elf;
	struct elf_section section;
	*ret_from = 0;
	*ret_to = bytes;
	if (is_ptx(name) || elf_open(image, bytes, &elf) || elf_section_named(&elf, ".debug_line", "", &section))
		return;
	*ret_from = (size_t)((const char *)section.data - image);
	*ret_to = *ret_from + section.bytes;
}

static void damage(const char *name, unsigned rounds)
{
	size_t bytes, from, to;
	char *image = read_whole(name, &bytes);
	uint64_t state = bytes;
	find_lines(name, image, bytes, &from, &to);
	for (size_t end = 0; end < bytes; end += 1 + bytes / 500)
		try_image(name, image, end);
	for (unsigned round = 0; round < rounds; round++) {
		char old[8];
		size_t at[8], count = 1 + next_random(&state) % 8;
		for (size_t i = 0; i < count; i++) {
			at[i] = from + next_random(&state) % (to - from);
			old[i] = image[at[i]];
			image[at[i]] = (char)(next_random(&state) % 4 ? next_random(&state)
			                                              : 0xff * (next_random(&state) & 1));
		}
		try_image(name, image, bytes);
		for (size_t i = count; i-- > 0;)
			image[at[i]] = old[i];
	}
	free(image);
}

static size_t put(uint8_t *to, size_t at, const void *bytes, size_t count)
{
	memcpy(to + at, bytes, count);
	return at + count;
}

/*
 * A program of version 5: two directories, two files, texts in place and in .debug_str, an MD5 sum; one row for offset 0 on, of line 1234 in file 1. Returns its
 * length; *ret_address is where the relocation belongs.
 */
static size_t version_5(uint8_t *to, size_t *ret_address)
{
	static const uint8_t head[] = {5, 0, 8, 0};
	static const uint8_t lengths[] = {0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1};
	static const uint8_t tables[] = {
		1,  1,  0x08, 2,  '/',  'd', 0,    's', 'u', 'b', 0, /* directories: a path each, as text */
		3,  1,  0x08, 2,  0x0b, 5,   0x1e, 2,   'a', '.', 'c', 0, 0, 1, 2, 3, 4, 5, 6,  7,  8,  9,  10, 11, 12,
		13, 14, 15,   16, 'b',  '.', 'c',  0,   1,   1,   2,   3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};
	static const uint8_t rows[] = {3,    0xd1, 9, 1, 2, 0x80,
	                               0x80, 4,    0, 1, 1}; /* line += 1233; row; address += 65536; end */
	size_t at = 4, header, program;
	uint32_t length;
	at = put(to, at, head, sizeof head);
	header = at;
	at += 4;
	program = at;
	at = put(to, at, (const uint8_t[]){1, 1, 1, 0xfb, 14, 13}, 6);
	at = put(to, at, lengths, sizeof lengths);
	at = put(to, at, tables, sizeof tables);
	length = (uint32_t)(at - program);
	memcpy(to + header, &length, 4);
	at = put(to, at, (const uint8_t[]){0, 9, 2}, 3);
	*ret_address = at;
	at = put(to, at, (const uint8_t[8]){0}, 8);
	at = put(to, at, rows, sizeof rows);
	length = (uint32_t)at - 4;
	memcpy(to, &length, 4);
	return at;
}

struct place {
	uint64_t offset;
	uint32_t symbol;
};

static int first_relocation(void *ctx, const struct elf_relocation *relocation)
{
	*(struct place *)ctx = (struct place){relocation->offset, relocation->symbol};
	return 1;
}

/* The bytes `old` become `new`, wherever they are, once. */
static void replace(char *image, size_t bytes, const void *old, const void *new, size_t count)
{
	char *at = memmem(image, bytes, old, count);
	if (at)
		memcpy(at, new, count);
}

static void new_version(const char *name)
{
	size_t bytes, from, to, address;
	char *image = read_whole(name, &bytes);
	struct elf elf;
	struct elf_section section;
	struct elf_symbol symbol;
	struct place place = {0};
	find_lines(name, image, bytes, &from, &to);
	uint8_t program[512];
	size_t length = version_5(program, &address);
	EXPECT(length <= to - from && !elf_open(image, bytes, &elf), "%zu bytes in %zu", length, to - from);
	EXPECT(!elf_section_named(&elf, ".debug_line", "", &section), "%s", name);
	elf_relocations(&elf, section.index, first_relocation, &place);
	EXPECT(!elf_symbol_at(&elf, place.symbol, &symbol), "%s", name);
	/* The first relocation's offset moves; its symbol stays. What is behind the program is a unit that is too long, so the end. */
	uint64_t old[2] = {place.offset, 0}, new[2] = {address, 0};
	replace(image, bytes, old, new, sizeof old[0]);
	memset(image + from, 0xff, to - from);
	memcpy(image + from, program, length);
	struct line_query query = {.section = symbol.section, .offset = symbol.value + 0x40};
	EXPECT(!elf_open(image, bytes, &elf), "%s", name);
	line_info_cubin(&elf, &query, 1);
	EXPECT(query.file && !strcmp(query.file, "sub/b.c") && query.line == 1234, "%s:%u",
	       query.file ? query.file : "none", query.line);
	free(image);
}

#define MANY 600

/*
 * A text of many kernels, read once for all of them: each has some lines of text more than the one before, so that all places between two marks of the index
 * come up; each third has no `.loc`, and the line of the one before; the names of the files stand behind all of them.
 */
static void many_kernels(void)
{
	static char text[MANY * 1000];
	size_t bytes = (size_t)snprintf(text, sizeof text, ".version 8.0\n.target sm_90\n.address_size 64\n");
	for (int i = 0; i < MANY; i++) {
		bytes += (size_t)snprintf(
			text + bytes, sizeof text - bytes,
			".visible .entry many_%d(.param .u64 p)\n{\n.reg .b64 %%rd<3>;\n%.*s", i, i % 257,
			"\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n"
			"\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n");
		if (i % 3)
			bytes += (size_t)snprintf(text + bytes, sizeof text - bytes, "\t.loc\t%d %d 1\n", 1 + i % 2,
			                          1000 + i);
		bytes += (size_t)snprintf(text + bytes, sizeof text - bytes,
		                          "ld.param.u64 %%rd1, [p];\nst.global.u64 [%%rd1], %%rd1;\nret;\n}\n");
	}
	bytes += (size_t)snprintf(text + bytes, sizeof text - bytes,
	                          ".file 1 \"/src/odd.cu\"\n.file 2 \"/src/even.cu\"\n");
	struct ptx_module *module = NULL;
	EXPECT(!ptx_module_open(text, bytes, &module) && module, "%zu bytes", bytes);
	for (int i = MANY; module && i-- > 0;) {
		char name[32];
		struct kernel_paths paths = {0};
		int from = i % 3 ? i : i - 1;
		snprintf(name, sizeof name, "many_%d", i);
		EXPECT(!ptx_module_paths(module, name, NULL, &paths) && paths.store_count == 1, "%s", name);
		if (from < 0)
			EXPECT(!paths.stores[0].file && !paths.stores[0].line, "%s: %u", name, paths.stores[0].line);
		else if (paths.store_count)
			EXPECT(has(&paths, from % 2 ? "even.cu" : "odd.cu", (uint32_t)(1000 + from)), "%s: %s:%u", name,
			       paths.stores[0].file, paths.stores[0].line);
		kernel_paths_free(&paths);
	}
	ptx_module_close(module);
}

int main(int argc, char **argv)
{
	many_kernels();
	for (int i = 2; i < argc; i++) {
		check(argv[i]);
		damage(argv[i], (unsigned)atoi(argv[1]));
	}
	new_version(argv[2]);
	printf("%d images, %d failures\n", argc - 2, failures);
	return failures != 0;
}
