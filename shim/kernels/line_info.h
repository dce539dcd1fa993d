/*
 * Source lines of instructions, where an image was built with them (nvcc -lineinfo, -G; NVRTC --generate-line-info): `.debug_line` of a cubin, `.loc` of PTX.
 * Reads in place, trusts nothing, and goes without a line where something is wrong. Thread-safe.
 */
#ifndef CUCONST_KERNELS_LINE_INFO_H
#define CUCONST_KERNELS_LINE_INFO_H

#include <stddef.h>
#include <stdint.h>

#include "shim/kernels/elf.h"

/* One instruction: in, where it is; out, where it came from. Not found: file NULL. */
struct line_query {
	uint64_t offset;  /* bytes in that section; PTX: line of the text, from 1 */
	const char *file; /* lives for ever */
	uint32_t section; /* of the cubin; PTX: unused */
	uint32_t line;
	uint32_t store; /* the caller's: sorting moves queries */
};

/* Sorts the queries, and answers what it can. DWARF versions 2 to 5. */
void line_info_cubin(const struct elf *elf, struct line_query *queries, size_t count);

/* Of PTX text, which must stay where it is: where its lines begin, read once for all that is asked. *ret_index is NULL where it has no lines of sources. 0 or -ENOMEM. */
struct line_index;
int line_index_ptx(const char *text, size_t bytes, struct line_index **ret_index);
void line_index_free(struct line_index *index);
void line_info_ptx(const struct line_index *index, struct line_query *queries, size_t count);

/*
 * For line_dwarf.c and line_ptx.c: a name of `directory` (may be empty) and `name` that lives for ever, one pointer for equal names; NULL: too long, too many, or no
 * memory.
 */
struct line_text {
	const char *text;
	size_t length;
};
const char *line_file(struct line_text directory, struct line_text name);

/* The first query, of those sorted, at or behind (section, offset). */
size_t line_first(const struct line_query *queries, size_t count, uint32_t section, uint64_t offset);
void line_sort(struct line_query *queries, size_t count);

/* The most queries of one call. */
#define LINE_QUERIES 256

#endif
