/* What the address of a store says: which slots it may come from, and whether it came from them at all. */
#include "shim/kernels/ptx_step.h"

static const struct ptxa_set *elements(const struct ptxa_step *step, uint32_t set)
{
	return &step->program->sets.sets[set];
}

static bool strong(const struct ptxa_step *step, uint32_t set, uint32_t element)
{
	return ptxa_set_has(&step->program->sets, set, element);
}

static bool any(const struct ptxa_step *step, uint32_t set, uint32_t element)
{
	return strong(step, set, element) || strong(step, set, element + 1);
}

static void use(struct ptxa_step *step, uint32_t slot, enum slot_use use)
{
	struct slot_paths *paths = &step->program->paths->slots[slot];

	if (paths->use < use)
		paths->use = (uint8_t)use;
	paths->loaded |= use == SLOT_LOAD;
	if (use == SLOT_STORE && step->program->watch && step->program->watch->base)
		step->program->watch->base(step->program->watch->ctx, step->program->paths->store_count, slot);
}

/*
 * A slot reaches an address when its low word reaches the low half and its high word the high half. Each call gives the next one, PTX_NONE at
 * the end; *at starts at 0.
 */
static uint32_t next_slot(const struct ptxa_step *step, struct ptxa_value address, uint32_t *at)
{
	const struct ptxa_set *low = elements(step, address.low);

	while (*at < low->count) {
		uint32_t word = low->elements[*at] / 2, last = PTX_NONE;

		++*at;
		if (word >= step->program->words)
			return PTX_NONE;
		if (*at > 1)
			last = low->elements[*at - 2] / 2;
		if (word % 2 == 0 && word != last && any(step, address.high, 2 * (word + 1)))
			return word / 2;
	}
	return PTX_NONE;
}

static bool is_base(const struct ptxa_step *step, struct ptxa_value address, uint32_t slot)
{
	return strong(step, address.low, 4 * slot) && strong(step, address.high, 4 * slot + 2);
}

/* A word in the high half whose slot's low word is not in the low half: two pieces of different places. */
static bool is_torn(const struct ptxa_step *step, struct ptxa_value address)
{
	const struct ptxa_set *high = elements(step, address.high);

	for (uint32_t i = 0; i < high->count; i++) {
		uint32_t element = high->elements[i];

		if (element >= 2 * step->program->words)
			break;
		/* Of a slot that is whole, also its low word may have come up, by shifts. */
		if (!(element & 1) && !is_base(step, address, element / 4))
			return true;
	}
	return false;
}

static bool has_window(const struct ptxa_step *step, struct ptxa_value address)
{
	const struct ptxa_set *low = elements(step, address.low);

	for (uint32_t i = low->count; i-- > 0 && low->elements[i] >= ptxa_element_shared(step->program);)
		if (!(low->elements[i] & 1))
			return true;
	return false;
}

static void keep_site(struct ptxa_step *step, uint32_t base, const char *kind)
{
	struct kernel_paths *paths = step->program->paths;

	if (paths->store_count < PATHS_STORES)
		paths->stores[paths->store_count] =
			(struct store_site){.offset = step->instruction->line, .base = base, .kind = kind};
	paths->store_count++;
}

static const char *kind_in(enum ptxa_space space, const char *kind)
{
	if (space != PTX_GLOBAL)
		return kind;
	if (kind[0] == 's' && kind[1] == 't' && kind[2] == '\0')
		return "st.global";
	if (kind[0] == 'a')
		return "atom.global";
	return kind[0] == 'r' ? "red.global" : kind;
}

void ptxa_note_store(struct ptxa_step *step, struct ptxa_value address, enum ptxa_space space, const char *kind)
{
	struct ptxa_program *program = step->program;
	uint32_t memory = ptxa_element_memory(program), line = step->instruction->line;
	uint32_t bases = 0, base = PTX_NONE, slot, at = 0;
	bool window, table, global, torn;

	if (!program->final)
		return;
	window = space != PTX_GLOBAL && has_window(step, address);
	table = strong(step, address.high, memory);
	global = strong(step, address.low, ptxa_element_global(program));
	torn = is_torn(step, address);
	while ((slot = next_slot(step, address, &at)) != PTX_NONE) {
		use(step, slot, SLOT_STORE);
		if (is_base(step, address, slot)) {
			bases++;
			base = slot;
		}
	}
	if (table)
		ptxa_unclear(program, PATHS_TABLE, line);
	if (global)
		ptxa_unclear(program, PATHS_GLOBAL, line);
	if (torn)
		ptxa_unclear(program, PATHS_SPLIT, line);
	if (!bases && !window && !table && !global) {
		if (any(step, address.low, memory) || any(step, address.high, memory))
			ptxa_unclear(program, PATHS_TABLE, line);
		else if (address.low || address.high)
			ptxa_unclear(program, PATHS_SPLIT, line);
		else
			ptxa_unclear(program, PATHS_NO_BASE, line);
	}
	if (bases != 1 || window || table || global || torn)
		base = PTX_NONE;
	else
		program->paths->slots[base].only_base = true;
	/* A store to local or shared memory alone is none that anybody asks about. */
	if (bases || !window || table || global)
		keep_site(step, base, kind_in(space, kind));
}

void ptxa_note_load(struct ptxa_step *step, struct ptxa_value address)
{
	uint32_t slot, at = 0;

	while (step->program->final && (slot = next_slot(step, address, &at)) != PTX_NONE)
		use(step, slot, SLOT_LOAD);
}

/* The memory is named inside a descriptor: a parameter, or behind one. Its words say nothing of addresses, so all of them count. */
void ptxa_note_descriptor(struct ptxa_step *step, struct ptxa_value address, const char *kind)
{
	struct ptxa_program *program = step->program;
	const struct ptxa_set *low = elements(step, address.low);

	if (!program->final)
		return;
	for (uint32_t i = 0; i < low->count; i++) {
		uint32_t element = low->elements[i];

		if (element < 2 * program->words)
			use(step, element / 4, SLOT_STORE);
		if (element < ptxa_element_variable(program, 0))
			continue;
		for (int parity = 0; parity < 2; parity++) {
			const struct ptxa_set *held = elements(
				step,
				program->variables[(element - ptxa_element_variable(program, 0)) / 2].stored[parity]);

			for (uint32_t j = 0; j < held->count && held->elements[j] < 2 * program->words; j++)
				use(step, held->elements[j] / 4, SLOT_STORE);
		}
	}
	ptxa_unclear(program, PATHS_TABLE, step->instruction->line);
	keep_site(step, PTX_NONE, kind);
}

/* One word of one slot in either half is enough: compilers compare addresses half by half too. */
static bool only_slot(const struct ptxa_step *step, struct ptxa_value value, uint32_t slot)
{
	const uint32_t sets[] = {value.low, value.high};

	for (size_t half = 0; half < 2; half++) {
		const struct ptxa_set *set = elements(step, sets[half]);

		for (uint32_t i = 0; i < set->count; i++)
			if (set->elements[i] / 4 != slot)
				return false;
	}
	return true;
}

static void mark_compared(struct ptxa_step *step, struct ptxa_value value, struct ptxa_value other)
{
	const uint32_t sets[] = {value.low, value.high};

	for (size_t half = 0; half < 2; half++) {
		const struct ptxa_set *set = elements(step, sets[half]);

		for (uint32_t i = 0; i < set->count && set->elements[i] < 2 * step->program->words; i++)
			if (!only_slot(step, other, set->elements[i] / 4))
				step->program->paths->slots[set->elements[i] / 4].compared = true;
	}
}

void ptxa_note_compared(struct ptxa_step *step, struct ptxa_value left, struct ptxa_value right)
{
	if (!step->program->final)
		return;
	mark_compared(step, left, right);
	mark_compared(step, right, left);
}

void ptxa_note_turned(struct ptxa_step *step, struct ptxa_value value)
{
	uint32_t slot, at = 0;

	while (step->program->final && (slot = next_slot(step, value, &at)) != PTX_NONE)
		step->program->paths->slots[slot].compared = true;
}

/* Local and shared memory alone is nothing that others read. */
static bool goes_out(const struct ptxa_step *step, struct ptxa_value address, enum ptxa_space space)
{
	uint32_t at = 0;

	return space == PTX_GLOBAL || !has_window(step, address) || next_slot(step, address, &at) != PTX_NONE ||
	       strong(step, address.high, ptxa_element_memory(step->program)) ||
	       strong(step, address.low, ptxa_element_global(step->program));
}

void ptxa_note_handed_out(struct ptxa_step *step, struct ptxa_value address, enum ptxa_space space,
                          struct ptxa_value value)
{
	uint32_t *all = &step->program->handed_out;

	if (step->program->final && goes_out(step, address, space))
		*all = ptxa_join(step, *all, ptxa_join(step, value.low, value.high));
}

void ptxa_judge_handed_out(struct ptxa_program *program)
{
	const struct ptxa_set *set = &program->sets.sets[program->handed_out];

	for (uint32_t i = 0; i < set->count && set->elements[i] < 2 * program->words; i++) {
		struct slot_paths *slot = &program->paths->slots[set->elements[i] / 4];

		slot->compared |= slot->use != SLOT_NONE;
	}
}
