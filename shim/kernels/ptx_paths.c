/* paths_of_ptx(): the parts put together. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "shim/kernels/line_info.h"
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
	for (uint32_t i = 0; program->functions && i < program->function_count; i++) {
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
	ptxa_sets_end(&program->sets);
}

/* What is found by reading a text once: where its functions begin, its variables and the names of both. */
struct ptx_module {
	struct ptxa_program read;
	bool good;
	struct line_index *lines; /* or NULL: it says nothing of sources */
};

int ptx_module_open(const char *text, size_t bytes, struct ptx_module **ret_module)
{
	struct ptx_module *module = calloc(1, sizeof(*module));

	if (!module)
		return -ENOMEM;
	module->read = (struct ptxa_program){.text = text, .bytes = bytes, .names = ptxa_names_create()};
	if (!module->read.names)
		module->read.error = -ENOMEM;
	else if (bytes <= PTX_TEXT_MAX)
		module->good = ptxa_module_read(&module->read);
	if (module->read.error || (bytes <= PTX_TEXT_MAX && line_index_ptx(text, bytes, &module->lines))) {
		ptx_module_close(module);
		return -ENOMEM;
	}
	*ret_module = module;
	return 0;
}

void ptx_module_close(struct ptx_module *module)
{
	if (!module)
		return;
	ptxa_names_destroy(module->read.names);
	line_index_free(module->lines);
	free_program(&module->read);
	free(module);
}

static void *copy_of(const void *list, size_t bytes)
{
	void *copy = malloc(bytes + 1);

	return copy && bytes ? memcpy(copy, list, bytes) : copy;
}

/* The analysis of a kernel writes into what was read: each has its own. Only the names stay as they are. */
static int copy_program(const struct ptxa_program *read, struct ptxa_program *ret_program)
{
	struct ptxa_program program = *read;

	program.functions = copy_of(read->functions, read->function_count * sizeof(*read->functions));
	program.variables = copy_of(read->variables, read->variable_count * sizeof(*read->variables));
	program.cells = copy_of(read->cells, read->cell_count * sizeof(*read->cells));
	program.function_room = read->function_count;
	program.variable_room = read->variable_count;
	program.cell_room = read->cell_count;
	if (program.functions && program.variables && program.cells && !ptxa_sets_start(&program.sets)) {
		*ret_program = program;
		return 0;
	}
	free(program.functions);
	free(program.variables);
	free(program.cells);
	return -ENOMEM;
}

static int analyse(struct ptxa_program *program, bool good, struct kernel_paths *paths)
{
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

static uint32_t entry_named(const struct ptxa_program *read, const char *kernel)
{
	uint32_t entry = ptxa_function_named(read, (struct ptxa_slice){kernel, (uint32_t)strnlen(kernel, UINT32_MAX)});

	return entry != PTX_NONE && read->functions[entry].is_entry && read->functions[entry].has_body ? entry : PTX_NONE;
}

/* One run: for these values, where there are some. */
static int run(const struct ptx_module *module, const char *kernel, const struct paths_watch *watch,
               struct paths_values *values, struct kernel_paths *ret_paths)
{
	struct ptxa_program program;
	struct kernel_paths paths = {.slot_count = 0};
	uint32_t entry = entry_named(&module->read, kernel);
	int error;

	if (entry == PTX_NONE)
		return -ENOENT;
	error = copy_program(&module->read, &program);
	if (error)
		return error;
	program.entry = entry;
	program.watch = watch;
	program.values = values;
	error = analyse(&program, module->good, &paths);
	paths.reason = program.reason;
	paths.reason_offset = program.reason_line;
	free_program(&program);
	if (error)
		kernel_paths_free(&paths);
	else
		*ret_paths = paths;
	return error;
}

int ptx_module_paths(const struct ptx_module *module, const char *kernel, const struct paths_watch *watch,
                     struct kernel_paths *ret_paths)
{
	int error;

	if (module->read.bytes > PTX_TEXT_MAX) {
		*ret_paths = (struct kernel_paths){.reason = PATHS_LIMIT};
		return 0;
	}
	error = run(module, kernel, watch, NULL, ret_paths);
	if (!error && module->lines)
		paths_add_text_lines(module->lines, ret_paths);
	return error;
}

int paths_of_ptx(const char *text, size_t bytes, const char *kernel, struct kernel_paths *ret_paths)
{
	return paths_watch_ptx(text, bytes, kernel, NULL, ret_paths);
}

int paths_watch_ptx(const char *text, size_t bytes, const char *kernel, const struct paths_watch *watch,
                    struct kernel_paths *ret_paths)
{
	struct ptx_module *module;
	int error = ptx_module_open(text, bytes, &module);

	if (error)
		return error;
	error = ptx_module_paths(module, kernel, watch, ret_paths);
	ptx_module_close(module);
	return error;
}

struct question {
	const struct ptx_module *module;
	const char *kernel;
};

static int run_for(void *ctx, struct paths_values *values, struct kernel_paths *ret_paths)
{
	const struct question *question = ctx;

	return run(question->module, question->kernel, NULL, values, ret_paths);
}

int paths_for_ptx(const char *text, size_t bytes, const char *kernel, struct paths_values *values,
                  struct kernel_paths *ret_paths, bool *ret_better)
{
	struct ptx_module *module;
	struct question question = {NULL, kernel};
	int error;

	*ret_paths = (struct kernel_paths){.reason = PATHS_LIMIT};
	*ret_better = false;
	if (bytes > PTX_TEXT_MAX)
		return 0;
	error = ptx_module_open(text, bytes, &module);
	if (error)
		return error;
	question.module = module;
	/* A line has some 20 bytes. */
	error = special_paths(run_for, &question, bytes / 20, values, ret_paths, ret_better);
	if (!error && *ret_better && module->lines)
		paths_add_text_lines(module->lines, ret_paths);
	ptx_module_close(module);
	return error;
}
