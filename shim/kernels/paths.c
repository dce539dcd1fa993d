#include "shim/kernels/paths.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "shim/kernels/program.h"
#include "shim/kernels/ptx_code.h"
#include "shim/kernels/taint.h"

void kernel_paths_free(struct kernel_paths *paths)
{
	if (!paths)
		return;
	free(paths->slots);
	free(paths->stores);
	*paths = (struct kernel_paths){0};
}

const char *paths_reason_text(enum paths_reason reason)
{
	static const char *const texts[] = {
		[PATHS_CLEAR] = "every store goes through a parameter",
		[PATHS_TABLE] = "stores through an address loaded from memory",
		[PATHS_GLOBAL] = "stores to a variable of its module",
		[PATHS_SPLIT] = "stores through an address put together from pieces",
		[PATHS_NO_BASE] = "stores through an address of unknown origin",
		[PATHS_CALL] = "calls or jumps to where is not known",
		[PATHS_INSTRUCTION] = "has an instruction that is not known",
		[PATHS_ARCHITECTURE] = "is for a machine that is not known",
		[PATHS_DAMAGED] = "the image is cut or contradicts itself",
		[PATHS_LIMIT] = "is too large to follow",
	};
	return (unsigned)reason < sizeof texts / sizeof texts[0] ? texts[reason] : "?";
}

const char *paths_kind_named(const char *name)
{
	for (size_t i = 0; i < sass_row_count; i++)
		if (!strcmp(sass_rows[i].name, name))
			return sass_rows[i].name;
	return strcmp(name, TAINT_KIND_DISCARD) ? ptxa_kind_named(name) : TAINT_KIND_DISCARD;
}

int paths_of_cubin(const void *image, size_t bytes, const char *kernel, struct kernel_paths *ret_paths)
{
	struct kernel_paths paths = {.reason = PATHS_DAMAGED};
	struct program program = {0};
	struct elf elf;
	int err = 0;
	if (elf_open(image, bytes, &elf)) {
		*ret_paths = paths;
		return 0;
	}
	paths.reason = program_build(&program, &elf, kernel, &err);
	if (!err) {
		paths.slot_count = (program.params_bytes + 7) / 8;
		paths.slots = calloc(paths.slot_count + 1, sizeof *paths.slots);
		paths.stores = calloc(PATHS_STORES, sizeof *paths.stores);
		if (!paths.slots || !paths.stores)
			err = -ENOMEM;
	}
	if (!err && paths.reason == PATHS_CLEAR)
		err = taint_run(&program, &paths);
	program_free(&program);
	/* Results are kept for as long as the kernel is loaded. */
	size_t kept = paths.store_count < PATHS_STORES ? paths.store_count : PATHS_STORES;
	struct store_site *stores = err ? NULL : realloc(paths.stores, (kept + 1) * sizeof *stores);
	paths.stores = stores ? stores : paths.stores;
	if (err) {
		kernel_paths_free(&paths);
		return err;
	}
	*ret_paths = paths;
	return 0;
}
