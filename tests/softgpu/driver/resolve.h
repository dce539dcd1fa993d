/* The table of exported functions, written at build time from symbols.tsv. */
#ifndef SOFTGPU_RESOLVE_H
#define SOFTGPU_RESOLVE_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

struct sg_symbol {
	const char *name;     /* exported */
	const char *gpa_name; /* what cuGetProcAddress calls it */
	int min_version;
	int flag; /* 0, or 2: only for CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM */
	void (*address)(void);
};

extern const struct sg_symbol sg_symbols[];
extern const size_t sg_symbol_count;
extern _Atomic uint64_t sg_calls[];

/* By exact exported name; NULL when there is none. */
const struct sg_symbol *sg_symbol_named(const char *name);

#endif
