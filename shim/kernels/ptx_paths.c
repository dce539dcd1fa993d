/* paths_of_ptx(): the parts put together. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "shim/kernels/ptx_code.h"
#include "shim/kernels/special.h"

bool ptxa_unclear(struct ptxa_program *program, enum paths_reason reason, uint32_t line)
{
	if (program->reason == PATHS_CLEAR) {
		program->reason = reason;
		program->reason_line = line;
	}
	return false;
}

bool ptxa_stop(struct ptxa_program *program, enum paths_reason reason, uint32_t line)
{
	/* What ends the analysis says more than what was met on the way. */
	if (!program->stop) {
		program->reason = reason;
		program->reason_line = line;
	}
	program->stop = true;
	return false;
}

bool ptxa_no_memory(struct ptxa_program *program)
{
	program->error = -ENOMEM;
	program->stop = true;
	return false;
}

bool ptxa_room(struct ptxa_program *program, void *list, uint32_t *room, uint32_t count, size_t size)
{
	uint32_t more = *room ? 2 * *room : 16;
	void *old, *new;

	if (count < *room)
		return true;
	memcpy(&old, list, sizeof(old));
	new = realloc(old, more * size);
	if (!new)
		return ptxa_no_memory(program);
	memcpy(list, &new, sizeof(new));
	*room = more;
	return true;
}

static bool read_all(struct ptxa_program *program)
{
	if (!ptxa_body_read(program, program->entry))
		return false;
	/* Functions that are called may call others, also ones in front of them. */
	for (bool more = true; more;) {
		more = false;
		for (uint32_t i = 0; i < program->function_count; i++) {
			struct ptxa_function *function = &program->functions[i];

			if (!function->wanted || i == program->entry || function->reached)
				continue;
			function->reached = more = true;
			if (!ptxa_body_read(program, i))
				return false;
		}
	}
	return true;
}

static void free_program(struct ptxa_program *program)
{
	for (uint32_t i = 0; i < program->function_count; i++) {
		struct ptxa_function *function = &program->functions[i];

		free(function->arguments);
		free(function->results);
		free(function->code);
		free(function->operands);
		free(function->registers);
		free(function->targets);
		free(function->blocks);
		free(function->block_of);
		free(function->values);
		free(function->states);
	}
	free(program->facts);
	free(program->functions);
	free(program->variables);
	free(program->cells);
	ptxa_names_destroy(program->names);
	ptxa_sets_end(&program->sets);
}

static int analyse(struct ptxa_program *program, struct ptxa_slice kernel, struct kernel_paths *paths)
{
	bool good = ptxa_module_read(program);

	if (program->error)
		return program->error;
	program->entry = ptxa_function_named(program, kernel);
	if (program->entry == PTX_NONE || !program->functions[program->entry].is_entry ||
	    !program->functions[program->entry].has_body)
		return -ENOENT;
	program->paths = paths;
	good = good && read_all(program);
	if (program->error)
		return program->error;
	paths->slot_count = (program->parameter_bytes + 7) / 8;
	paths->slots = calloc(paths->slot_count + 1, sizeof(*paths->slots));
	paths->stores = calloc(PATHS_STORES, sizeof(*paths->stores));
	if (!paths->slots || !paths->stores)
		return -ENOMEM;
	if (good)
		ptxa_flow(program);
	if (program->sets.error == -E2BIG)
		ptxa_stop(program, PATHS_LIMIT, 0);
	return program->error ? program->error : program->sets.error == -ENOMEM ? -ENOMEM : 0;
}

int paths_of_ptx(const char *text, size_t bytes, const char *kernel, struct kernel_paths *ret_paths)
{
	return paths_watch_ptx(text, bytes, kernel, NULL, ret_paths);
}

/* One run: for these values, where there are some. */
static int run(const char *text, size_t bytes, const char *kernel, const struct paths_watch *watch,
               struct paths_values *values, struct kernel_paths *ret_paths)
{
	struct ptxa_program program = {.text = text, .bytes = bytes, .watch = watch, .values = values};
	struct kernel_paths paths = {.slot_count = 0};
	struct ptxa_slice name = {kernel, (uint32_t)strnlen(kernel, UINT32_MAX)};
	int error;

	program.names = ptxa_names_create();
	error = ptxa_sets_start(&program.sets);
	if (!error)
		error = program.names ? analyse(&program, name, &paths) : -ENOMEM;
	paths.reason = program.reason;
	paths.reason_offset = program.reason_line;
	free_program(&program);
	if (error)
		kernel_paths_free(&paths);
	else
		*ret_paths = paths;
	return error;
}

int paths_watch_ptx(const char *text, size_t bytes, const char *kernel, const struct paths_watch *watch,
                    struct kernel_paths *ret_paths)
{
	int error;

	if (bytes > PTX_TEXT_MAX) {
		*ret_paths = (struct kernel_paths){.reason = PATHS_LIMIT};
		return 0;
	}
	error = run(text, bytes, kernel, watch, NULL, ret_paths);
	if (!error)
		paths_add_text_lines(text, bytes, ret_paths);
	return error;
}

struct question {
	const char *text, *kernel;
	size_t bytes;
};

static int run_for(void *ctx, struct paths_values *values, struct kernel_paths *ret_paths)
{
	const struct question *question = ctx;

	return run(question->text, question->bytes, question->kernel, NULL, values, ret_paths);
}

int paths_for_ptx(const char *text, size_t bytes, const char *kernel, struct paths_values *values,
                  struct kernel_paths *ret_paths, bool *ret_better)
{
	struct question question = {text, kernel, bytes};
	int error;

	*ret_paths = (struct kernel_paths){.reason = PATHS_LIMIT};
	*ret_better = false;
	if (bytes > PTX_TEXT_MAX)
		return 0;
	/* A line has some 20 bytes. */
	error = special_paths(run_for, &question, bytes / 20, values, ret_paths, ret_better);
	if (!error && *ret_better)
		paths_add_text_lines(text, bytes, ret_paths);
	return error;
}
