/* Memory that threads keep values in: local variables, parameters of calls, shared memory. What global memory holds is one taint of its own. */
#include <string.h>

#include "shim/kernels/ptx_step.h"

static void add_to(struct ptxa_step *step, uint32_t *set, uint32_t more)
{
	uint32_t grown = ptxa_join(step, *set, more);

	step->program->changed |= grown != *set;
	*set = grown;
}

static uint32_t whole(struct ptxa_step *step, struct ptxa_value value)
{
	return ptxa_join(step, value.low, value.high);
}

/* Two words of memory by parity, read by so many bytes. An address of 8 bytes is aligned to 8, its low word is at an even place. */
static struct ptxa_value by_parity(struct ptxa_step *step, const uint32_t words[2], uint32_t bytes, bool aligned)
{
	uint32_t all = ptxa_join(step, words[0], words[1]);

	if (bytes == 8 && aligned)
		return ptxa_plain(words[0], words[1]);
	return ptxa_plain(all, bytes >= 8 ? all : 0);
}

static void add_by_parity(struct ptxa_step *step, uint32_t words[2], uint32_t bytes, bool aligned, struct ptxa_value value)
{
	uint32_t all = bytes >= 8 ? whole(step, value) : value.low;

	add_to(step, &words[0], bytes == 8 && aligned ? value.low : all);
	add_to(step, &words[1], bytes == 8 && aligned ? value.high : all);
}

static bool is_exact(const struct ptxa_variable *variable, bool exact, uint32_t offset, uint32_t bytes)
{
	return exact && variable->cells != PTX_NONE && offset < variable->bytes && bytes <= variable->bytes - offset &&
	       (bytes < 4 ? offset / 4 == (offset + bytes - 1) / 4 : offset % 4 == 0);
}

struct ptxa_value ptxa_variable_load(struct ptxa_step *step, uint32_t number, bool exact, uint32_t offset, uint32_t bytes)
{
	struct ptxa_program *program = step->program;
	const struct ptxa_variable *variable = &program->variables[number];
	bool aligned = variable->align >= 8;
	struct ptxa_value value, more;

	if (is_exact(variable, exact, offset, bytes)) {
		const uint32_t *cell = &program->cells[variable->cells + offset / 4];
		struct ptxa_value anywhere = by_parity(step, variable->anywhere, 8, aligned);

		if (offset / 4 & 1)
			anywhere = ptxa_plain(anywhere.high, anywhere.low);
		value = ptxa_plain(ptxa_join(step, cell[0], anywhere.low),
		                   bytes >= 8 ? ptxa_join(step, cell[1], anywhere.high) : 0);
		for (uint32_t word = 2; word < bytes / 4; word++)
			value.low = ptxa_join(step, value.low, ptxa_join(step, cell[word], whole(step, anywhere)));
		if (bytes > 8)
			value.low = value.high = whole(step, value);
	} else {
		value = by_parity(step, variable->stored, bytes, aligned);
	}
	if (variable->space != PTX_LOCAL)
		return value;
	more = by_parity(step, program->local, bytes, true);
	return ptxa_plain(ptxa_join(step, value.low, more.low), ptxa_join(step, value.high, more.high));
}

void ptxa_variable_store(struct ptxa_step *step, uint32_t number, bool exact, uint32_t offset, uint32_t bytes,
                         struct ptxa_value value)
{
	struct ptxa_program *program = step->program;
	struct ptxa_variable *variable = &program->variables[number];
	bool aligned = variable->align >= 8;

	if (is_exact(variable, exact, offset, bytes)) {
		uint32_t *cell = &program->cells[variable->cells + offset / 4];
		uint32_t all = whole(step, value), word = offset / 4;

		for (uint32_t i = 0; i < (bytes + 3) / 4; i++) {
			uint32_t part = bytes > 8 ? all : i ? value.high : value.low;

			add_to(step, &cell[i], part);
			add_to(step, &variable->stored[(word + i) & 1], part);
		}
	} else {
		add_by_parity(step, variable->anywhere, bytes, aligned, value);
		add_by_parity(step, variable->stored, bytes, aligned, value);
	}
	if (variable->space == PTX_LOCAL)
		add_by_parity(step, program->all_local, bytes, aligned, value);
}

/* The variable of an element, PTX_NONE for other taints. */
static uint32_t variable_of(const struct ptxa_program *program, uint32_t element)
{
	uint32_t first = ptxa_element_variable(program, 0);

	return element >= first ? (element - first) / 2 : PTX_NONE;
}

static const struct ptxa_set *elements(const struct ptxa_step *step, uint32_t set)
{
	return &step->program->sets.sets[set];
}

bool ptxa_has_variable(struct ptxa_step *step, struct ptxa_value address)
{
	const struct ptxa_set *set = elements(step, address.low);

	return set->count && variable_of(step->program, set->elements[set->count - 1]) != PTX_NONE;
}

static bool has(const struct ptxa_step *step, struct ptxa_value address, uint32_t element)
{
	const struct ptxa_sets *sets = &step->program->sets;

	return ptxa_set_has(sets, address.low, element) || ptxa_set_has(sets, address.low, element + 1);
}

/* Can a generic address be one of global memory? An index into a local or shared array is no base. */
static bool may_be_global(const struct ptxa_step *step, struct ptxa_value address)
{
	const struct ptxa_set *set = elements(step, address.low);
	bool window = false;

	for (uint32_t i = 0; i < set->count; i++) {
		if (set->elements[i] >= ptxa_element_shared(step->program))
			window = true;
		else if (!(set->elements[i] & 1))
			return true;
	}
	return !window;
}

/* What lies behind an address, `offset` bytes on. */
static struct ptxa_value load(struct ptxa_step *step, struct ptxa_value address, enum ptxa_space space, uint32_t offset,
                              uint32_t bytes)
{
	struct ptxa_program *program = step->program;
	uint32_t memory = ptxa_set_one(&program->sets, ptxa_element_memory(program));
	struct ptxa_value value = ptxa_plain(0, 0), more;
	bool variables = false;

	if (space == PTX_GLOBAL || space == PTX_CONST || (space == PTX_GENERIC && may_be_global(step, address)))
		value = ptxa_plain(memory, bytes >= 8 ? memory : 0);
	if (space == PTX_SHARED || (space == PTX_GENERIC && has(step, address, ptxa_element_shared(program)))) {
		more = by_parity(step, program->shared, bytes, true);
		value = ptxa_plain(ptxa_join(step, value.low, more.low), ptxa_join(step, value.high, more.high));
	}
	if (space != PTX_GENERIC && space != PTX_LOCAL && space != PTX_PARAM)
		return value;
	for (uint32_t i = 0; i < elements(step, address.low)->count; i++) {
		uint32_t variable = variable_of(program, elements(step, address.low)->elements[i]);

		if (variable == PTX_NONE)
			continue;
		variables = true;
		more = ptxa_variable_load(step, variable, address.variable == variable, address.offset + offset, bytes);
		value = ptxa_plain(ptxa_join(step, value.low, more.low), ptxa_join(step, value.high, more.high));
	}
	if (!variables && (space == PTX_LOCAL || has(step, address, ptxa_element_local(program)))) {
		more = by_parity(step, program->all_local, bytes, true);
		value = ptxa_plain(ptxa_join(step, value.low, more.low), ptxa_join(step, value.high, more.high));
	}
	if (!variables && space == PTX_PARAM && program->final)
		ptxa_unclear(program, PATHS_SPLIT, step->instruction->line);
	return value;
}

static void store(struct ptxa_step *step, struct ptxa_value address, enum ptxa_space space, uint32_t offset,
                  uint32_t bytes, struct ptxa_value value)
{
	struct ptxa_program *program = step->program;
	bool variables = false;

	if (space == PTX_SHARED || (space == PTX_GENERIC && has(step, address, ptxa_element_shared(program))))
		add_by_parity(step, program->shared, bytes, true, value);
	if (space != PTX_GENERIC && space != PTX_LOCAL && space != PTX_PARAM)
		return;
	for (uint32_t i = 0; i < elements(step, address.low)->count; i++) {
		uint32_t variable = variable_of(program, elements(step, address.low)->elements[i]);

		if (variable == PTX_NONE)
			continue;
		variables = true;
		ptxa_variable_store(step, variable, address.variable == variable, address.offset + offset, bytes, value);
	}
	if (!variables && (space == PTX_LOCAL || has(step, address, ptxa_element_local(program)))) {
		add_by_parity(step, program->local, bytes, true, value);
		add_by_parity(step, program->all_local, bytes, true, value);
	}
	if (!variables && space == PTX_PARAM && program->final)
		ptxa_unclear(program, PATHS_SPLIT, step->instruction->line);
}

static uint32_t item_bytes(const struct ptxa_step *step)
{
	return step->instruction->type.bytes ? step->instruction->type.bytes : 4;
}

/* Global, or generic: what the parameters are asked about. */
static bool is_outside(enum ptxa_space space)
{
	return space == PTX_GLOBAL || space == PTX_GENERIC || space == PTX_CONST;
}

void ptxa_step_load(struct ptxa_step *step)
{
	struct ptxa_value address = ptxa_source(step, 1);
	const struct ptxa_operand *to = &step->operands[0];
	uint32_t bytes = item_bytes(step);

	if (step->instruction->count < 2)
		return;
	if (is_outside(step->instruction->space))
		ptxa_note_load(step, address);
	if (to->kind != PTX_OPERAND_VECTOR) {
		ptxa_write(step, to, load(step, address, step->instruction->space, 0, bytes));
		return;
	}
	for (uint32_t i = 0; i < to->count; i++)
		ptxa_write(step, &step->function->operands[to->id + i],
		           load(step, address, step->instruction->space, i * bytes, bytes));
}

static void store_operand(struct ptxa_step *step, struct ptxa_value address, enum ptxa_space space,
                          const struct ptxa_operand *from)
{
	uint32_t bytes = item_bytes(step), count = from->kind == PTX_OPERAND_VECTOR ? from->count : 1;

	for (uint32_t i = 0; i < count; i++) {
		struct ptxa_value value = ptxa_read(
			step, from->kind == PTX_OPERAND_VECTOR ? &step->function->operands[from->id + i] : from);
		store(step, address, space, i * bytes, bytes, value);
		if (is_outside(space))
			ptxa_note_handed_out(step, address, space, value);
	}
}

void ptxa_step_store(struct ptxa_step *step)
{
	const struct ptxa_instruction *instruction = step->instruction;
	struct ptxa_value address = ptxa_source(step, 0);
	enum ptxa_space space = instruction->rule->class == PTX_STORE_SHARED ? PTX_SHARED
	                                                                     : (enum ptxa_space)instruction->space;

	/* st.async that completes an mbarrier goes to shared memory of the cluster. */
	if (instruction->flags & PTX_MBARRIER)
		space = PTX_SHARED;
	if (instruction->count > 1)
		store_operand(step, address, space, &step->operands[1]);
	if (is_outside(space))
		ptxa_note_store(step, address, space, instruction->rule->kind);
}

void ptxa_step_atomic(struct ptxa_step *step)
{
	const struct ptxa_instruction *instruction = step->instruction;
	uint32_t at = instruction->rule->class == PTX_ATOMIC;
	struct ptxa_value address = ptxa_source(step, at);

	if (instruction->count <= at)
		return;
	if (at)
		ptxa_write_all(step, &step->operands[0], load(step, address, instruction->space, 0, item_bytes(step)));
	for (uint32_t i = at + 1; i < instruction->count; i++)
		store_operand(step, address, instruction->space, &step->operands[i]);
	if (is_outside(instruction->space))
		ptxa_note_store(step, address, instruction->space, instruction->rule->kind);
}

/* Asynchronous copies: the first space named is where they go. */
void ptxa_step_bulk(struct ptxa_step *step)
{
	const struct ptxa_instruction *instruction = step->instruction;
	struct ptxa_program *program = step->program;
	uint32_t memory = ptxa_set_one(&program->sets, ptxa_element_memory(program));

	if (instruction->space == PTX_SHARED) {
		ptxa_note_load(step, ptxa_source(step, 1));
		if (!instruction->has_second || instruction->second_space != PTX_SHARED)
			add_by_parity(step, program->shared, 8, true, ptxa_plain(memory, memory));
	} else if (instruction->flags & PTX_TENSOR) {
		ptxa_note_descriptor(step, ptxa_source(step, 0), instruction->rule->kind);
	} else {
		ptxa_note_store(step, ptxa_source(step, 0), PTX_GLOBAL, instruction->rule->kind);
		ptxa_note_handed_out(step, ptxa_source(step, 0), PTX_GLOBAL,
		                     ptxa_plain(program->shared[0], program->shared[1]));
	}
}

/* What came through tiles of shared memory, or by a texture. */
void ptxa_step_gather(struct ptxa_step *step)
{
	uint32_t memory = ptxa_set_one(&step->program->sets, ptxa_element_memory(step->program));
	bool shared = step->instruction->rule->class == PTX_GATHER;
	uint32_t all = shared ? ptxa_join(step, step->program->shared[0], step->program->shared[1]) : memory;

	if (step->instruction->count)
		ptxa_write_all(step, &step->operands[0], ptxa_plain(all, all));
}

static void pass(struct ptxa_step *step, const struct ptxa_operand *operand, uint32_t callee, uint32_t bytes,
                 struct ptxa_function *function)
{
	struct ptxa_program *program = step->program;
	struct ptxa_value value;

	if (callee & PTX_IS_REGISTER) {
		uint32_t number = callee & ~PTX_IS_REGISTER;

		/* Set before the callee starts: one value is enough where it is only read, else the entry block's state takes it. */
		value = operand->kind == PTX_OPERAND_VARIABLE ? ptxa_variable_load(step, operand->id, true, 0, 8)
		                                              : ptxa_read(step, operand);
		if (function->registers[number].state == PTX_NONE)
			program->changed |= ptxa_value_join(program, &function->values[number], value);
		else if (function->block_count)
			program->changed |=
				ptxa_value_join(program, &function->states[function->registers[number].state], value);
		return;
	}
	if (operand->kind != PTX_OPERAND_VARIABLE) {
		ptxa_variable_store(step, callee, true, 0, bytes < 8 ? bytes : 8, ptxa_read(step, operand));
		return;
	}
	for (uint32_t offset = 0; offset < bytes; offset += 4) {
		uint32_t width = bytes - offset < 4 ? bytes - offset : 4;

		ptxa_variable_store(step, callee, true, offset, width,
		                    ptxa_variable_load(step, operand->id, true, offset, width));
	}
}

/* The way back: a variable of the callee, or the value of its register wherever it was assigned. */
static void take(struct ptxa_step *step, const struct ptxa_operand *operand, uint32_t callee,
                 const struct ptxa_function *function)
{
	struct ptxa_program *program = step->program;
	struct ptxa_value value;
	uint32_t bytes;

	if (callee & PTX_IS_REGISTER) {
		uint32_t number = callee & ~PTX_IS_REGISTER;

		/* Such registers are given one value for the whole function. */
		value = function->values[number];
		if (operand->kind == PTX_OPERAND_VARIABLE)
			ptxa_variable_store(step, operand->id, true, 0, 8, value);
		else
			ptxa_write(step, operand, value);
		return;
	}
	bytes = program->variables[callee].bytes;
	if (operand->kind != PTX_OPERAND_VARIABLE) {
		ptxa_write(step, operand, ptxa_variable_load(step, callee, true, 0, bytes < 8 ? bytes : 8));
		return;
	}
	for (uint32_t offset = 0; offset < bytes; offset += 4) {
		uint32_t width = bytes - offset < 4 ? bytes - offset : 4;

		ptxa_variable_store(step, operand->id, true, offset, width,
		                    ptxa_variable_load(step, callee, true, offset, width));
	}
}

/* Functions without a body. The runtime's own are known; what malloc() gives is memory like any other. */
static void call_outside(struct ptxa_step *step, const struct ptxa_function *function)
{
	static const char *const harmless[] = {"vprintf", "__assertfail", "free"};
	struct ptxa_program *program = step->program;
	uint32_t memory = ptxa_set_one(&program->sets, ptxa_element_memory(program));
	struct ptxa_value value = ptxa_plain(memory, memory);
	bool known = false;

	for (size_t i = 0; function && i < sizeof(harmless) / sizeof(harmless[0]); i++)
		known |= ptxa_slice_is(function->name, harmless[i]);
	known |= function && ptxa_slice_is(function->name, "malloc");
	if (!known)
		ptxa_unclear(program, PATHS_CALL, step->instruction->line);
	for (uint32_t i = 0; i < step->instruction->extra; i++) {
		const struct ptxa_operand *operand = &step->operands[i];

		if (operand->kind == PTX_OPERAND_VARIABLE)
			ptxa_variable_store(step, operand->id, false, 0, 8, value);
		else
			ptxa_write(step, operand, value);
	}
}

void ptxa_step_call(struct ptxa_step *step)
{
	const struct ptxa_instruction *instruction = step->instruction;
	struct ptxa_program *program = step->program;
	struct ptxa_function *function = instruction->target == PTX_NONE ? NULL
	                                                                 : &program->functions[instruction->target];
	uint32_t arguments = instruction->count - instruction->extra;

	if (!function || !function->has_body) {
		call_outside(step, function);
		return;
	}
	if (arguments != function->argument_count || instruction->extra != function->result_count || function->is_entry) {
		ptxa_stop(program, PATHS_DAMAGED, instruction->line);
		return;
	}
	program->changed |= !function->live;
	function->live = true;
	for (uint32_t i = 0; i < arguments; i++) {
		uint32_t callee = function->arguments[i];

		pass(step, &step->operands[instruction->extra + i], callee,
		     callee & PTX_IS_REGISTER ? 8 : program->variables[callee].bytes, function);
	}
	for (uint32_t i = 0; i < instruction->extra; i++)
		take(step, &step->operands[i], function->results[i], function);
}
