#include "shim/kernels/paths.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "shim/kernels/line_info.h"
#include "shim/kernels/program.h"
#include "shim/kernels/ptx_code.h"
#include "shim/kernels/special.h"
#include "shim/kernels/taint.h"

_Static_assert(PATHS_STORES <= LINE_QUERIES, "all stores fit into one look");

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
		[PATHS_UNSEEN] = "the image was not seen being loaded, or is gone",
		[PATHS_UNKEPT] = "the image was too large to keep",
		[PATHS_UNPACKED] = "the image is packed with zstd, and there is no libzstd.so.1",
		[PATHS_NO_CODE] = "the image holds no code of it for this device",
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

static void take_lines(const struct line_query *queries, struct kernel_paths *paths, size_t kept)
{
	for (size_t i = 0; i < kept; i++) {
		paths->stores[queries[i].store].file = queries[i].file;
		paths->stores[queries[i].store].line = queries[i].file ? queries[i].line : 0;
	}
}

/* A store's instruction lies in the section of its function. */
static void add_lines(const struct program *program, struct kernel_paths *paths, size_t kept)
{
	struct line_query queries[PATHS_STORES] = {0};
	for (size_t i = 0; i < kept; i++) {
		uint32_t insn = program->entry + paths->stores[i].offset / SASS_BYTES;
		queries[i].store = (uint32_t)i;
		for (size_t k = 0; k < program->part_count; k++) {
			const struct program_part *part = &program->parts[k];
			if (insn - part->first >= part->count)
				continue;
			queries[i].section = part->section;
			queries[i].offset = (uint64_t)(insn - part->first) * SASS_BYTES;
		}
	}
	line_info_cubin(program->elf, queries, kept);
	take_lines(queries, paths, kept);
}

void paths_add_text_lines(const struct line_index *index, struct kernel_paths *paths)
{
	struct line_query queries[PATHS_STORES] = {0};
	size_t kept = paths->store_count < PATHS_STORES ? paths->store_count : PATHS_STORES;
	for (size_t i = 0; i < kept; i++)
		queries[i] = (struct line_query){.offset = paths->stores[i].offset, .store = (uint32_t)i};
	line_info_ptx(index, queries, kept);
	take_lines(queries, paths, kept);
}

static void tell_params(const struct program *program, const struct paths_watch *watch)
{
	for (size_t i = 0; watch && watch->param && i < program->param_count; i++)
		watch->param(watch->ctx, program->params[i].index, program->params[i].offset, program->params[i].bytes);
}

int paths_of_cubin(const void *image, size_t bytes, const char *kernel, struct kernel_paths *ret_paths)
{
	return paths_watch_cubin(image, bytes, kernel, NULL, ret_paths);
}

static int make_room(struct kernel_paths *paths, uint32_t params_bytes)
{
	paths->slot_count = (params_bytes + 7) / 8;
	paths->slots = calloc(paths->slot_count + 1, sizeof *paths->slots);
	paths->stores = calloc(PATHS_STORES, sizeof *paths->stores);
	return paths->slots && paths->stores ? 0 : -ENOMEM;
}

/* Results are kept for as long as the kernel is loaded. */
static void trim(struct kernel_paths *paths)
{
	size_t kept = paths->store_count < PATHS_STORES ? paths->store_count : PATHS_STORES;
	struct store_site *stores = realloc(paths->stores, (kept + 1) * sizeof *stores);
	paths->stores = stores ? stores : paths->stores;
}

static void find_lines(const struct program *program, struct kernel_paths *paths)
{
	size_t kept = paths->store_count < PATHS_STORES ? paths->store_count : PATHS_STORES;
	if (kept)
		add_lines(program, paths, kept);
}

int paths_watch_cubin(const void *image, size_t bytes, const char *kernel, const struct paths_watch *watch,
                      struct kernel_paths *ret_paths)
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
	if (!err)
		err = make_room(&paths, program.params_bytes);
	if (!err)
		tell_params(&program, watch);
	if (!err && paths.reason == PATHS_CLEAR)
		err = taint_run(&program, NULL, watch, &paths);
	if (!err)
		find_lines(&program, &paths);
	program_free(&program);
	if (err) {
		kernel_paths_free(&paths);
		return err;
	}
	trim(&paths);
	*ret_paths = paths;
	return 0;
}

/* One run for given values: special_run. */
static int run_for(void *ctx, struct paths_values *values, struct kernel_paths *ret_paths)
{
	const struct program *program = ctx;
	uint8_t *facts = calloc(program->count + (size_t)1, 1);
	*ret_paths = (struct kernel_paths){.reason = PATHS_CLEAR};
	int err = facts ? make_room(ret_paths, program->params_bytes) : -ENOMEM;
	if (!err)
		err = constants_run(program, values, facts);
	if (!err)
		err = taint_run(program, facts, NULL, ret_paths);
	free(facts);
	if (err)
		kernel_paths_free(ret_paths);
	return err;
}

int paths_for_cubin(const void *image, size_t bytes, const char *kernel, struct paths_values *values,
                    struct kernel_paths *ret_paths, bool *ret_better)
{
	struct program program = {0};
	struct elf elf;
	int err = 0;
	*ret_paths = (struct kernel_paths){.reason = PATHS_DAMAGED};
	*ret_better = false;
	if (elf_open(image, bytes, &elf))
		return 0;
	ret_paths->reason = program_build(&program, &elf, kernel, &err);
	if (!err && ret_paths->reason == PATHS_CLEAR)
		err = special_paths(run_for, &program, program.count, values, ret_paths, ret_better);
	if (!err && *ret_better) {
		find_lines(&program, ret_paths);
		trim(ret_paths);
	}
	program_free(&program);
	return err;
}
