#include "shim/kernels/taint.h"

#include <errno.h>
#include <string.h>

#include "shim/kernels/wide.h"

#define STATE_LIMIT ((size_t)28 << 20) /* bytes of the entries of all blocks of one kernel */
#define WORK_LIMIT                                                                                                     \
	1200000 /* instructions, and 16 for each flow into a block: three times what the largest seen needs */

#define MANY 1500 /* instructions: of kernels with more, most have more sets than sets_init() begins with */

const struct taint_live taint_all = {{~UINT64_C(0), ~UINT64_C(0), ~UINT64_C(0), ~UINT64_C(0), ~UINT64_C(0),
                                      ~UINT64_C(0), ~UINT64_C(0), ~UINT64_C(0)}};
/* What a place begins with becomes what the registers hold now. */
static void enter(struct taint *t, uint32_t place)
{
	const struct taint_entry *entry = &t->entries[place];
	for (unsigned i = 0; i < t->row_count; i++)
		memcpy(t->now.registers + (size_t)t->rows[i] * 64, entry->sets + (size_t)i * 64,
		       64 * sizeof *entry->sets);
	memcpy(t->now.armed, entry->armed, sizeof t->now.armed);
	t->now.stack = entry->stack;
}

static void run_block(struct taint *t, uint32_t id)
{
	const struct block *block = &t->program->blocks[id];
	struct taint_step *step = t->live.steps + t->live.first[id], *end = t->live.steps + t->live.first[id + 1];
	struct taint_entry *entry = &t->entries[id];
	enter(t, id);
	t->first = !entry->ran;
	t->when = WHEN_ANY;
	if (!entry->ran)
		t->when |= WHEN_FIRST;
	if (entry->memory != t->memory_version)
		t->when |= WHEN_STORED;
	if (t->recording)
		t->when |= WHEN_RECORDING;
	t->changed = entry->changed;
	if (!entry->ran)
		memset(&t->changed, 0xff, sizeof t->changed);
	t->changed_guarded = (struct taint_live){{0}};
	entry->changed = (struct taint_live){{0}};
	t->moved = t->first ? FLOW_STACK | FLOW_BARRIERS : entry->moved;
	entry->ran = true;
	entry->moved = 0;
	entry->memory = t->memory_version;
	t->stamp++;
	t->work += (uint32_t)(end - step) + 1;
	taint_steps(t, step, end);
	if (t->stop)
		return;
	t->insn = block->last;
	if (block->kind == BLOCK_BROKEN)
		t->stop = PATHS_DAMAGED;
	else if (block->kind == BLOCK_TABLE_UNKNOWN)
		taint_reason(t, PATHS_CALL);
	else if (block->kind == BLOCK_CALL_UNKNOWN && t->program->insns[block->last].row->class != SASS_CALL_REGISTER)
		taint_reason(t, PATHS_CALL);
}

static void solve(struct taint *t)
{
	const struct program *program = t->program;
	uint32_t id = program->block_of[program->entry];
	t->entries[id].reached = true;
	taint_clear_entry(t, &t->entries[id]);
	t->entries[id].stack = 0;
	taint_push(t, id);
	while (!t->stop && !t->error && taint_pop(t, &id)) {
		if (t->work > WORK_LIMIT || t->sets.error == -E2BIG || t->targets.error == -E2BIG) {
			t->stop = PATHS_LIMIT;
			return;
		}
		if (id >= program->block_count) {
			taint_flow_back(t, id - program->block_count);
			continue;
		}
		if (taint_flow_through(t, id))
			continue;
		run_block(t, id);
		if (!t->stop)
			taint_flow_out(t, id);
	}
}

static void record(struct taint *t)
{
	t->recording = true;
	for (uint32_t i = 0; i < t->program->block_count && !t->stop && !t->error; i++)
		if (taint_runs(t, i) && t->live.summaries[i].tells)
			run_block(t, i);
}

static void find_rows(struct taint *t)
{
	uint64_t used[TAINT_REGISTERS / 64] = {0};
	for (uint32_t place = 0; place < program_places(t->program); place++)
		for (unsigned row = 0; row < TAINT_REGISTERS / 64; row++)
			used[row] |= t->live.at[place].bits[row];
	for (unsigned row = 0; row < TAINT_REGISTERS / 64; row++)
		if (used[row])
			t->rows[t->row_count++] = (uint8_t)row;
}

static void prepare_params(struct taint *t)
{
	const struct program *program = t->program;
	t->all_params = sets_range(&t->sets, FROM_PARAMS, FROM_PARAMS + t->word_count);
	t->loaded = sets_range(&t->sets, FROM_LOADED_LOW, FROM_LOADED_32 + 1);
	for (size_t i = 0; i < program->param_count; i++) {
		uint32_t first = program->params[i].offset, end = first + program->params[i].bytes;
		for (uint32_t slot = (first + 7) / 8; slot * 8 + 8 <= end; slot++)
			t->wide[slot] = true, t->whole[slot] = end - first == 8;
		/* Only arrays and structs can be indexed in constant memory. */
		if (program->params[i].bytes > 8)
			t->indexed_params =
				taint_join(t, t->indexed_params,
			                   sets_range(&t->sets, FROM_PARAMS + first / 4, FROM_PARAMS + (end + 3) / 4));
	}
	if (!t->indexed_params)
		t->indexed_params = t->all_params;
}

/* The entries of all places, once it is known what is live there. */
static int prepare_entries(struct taint *t)
{
	size_t places = program_places(t->program);
	find_rows(t);
	size_t sets = (size_t)t->row_count * 64;
	if (places * (sizeof *t->entries + sets * sizeof *t->entry_sets) > STATE_LIMIT) {
		t->stop = PATHS_LIMIT;
		t->insn = t->program->entry;
		return 0;
	}
	t->entries = arena_get_zeroed(t->program->arena, places, sizeof *t->entries);
	t->entry_sets = arena_get(t->program->arena, (places * sets + 1) * sizeof *t->entry_sets);
	if (!t->entries || !t->entry_sets)
		return -ENOMEM;
	for (size_t place = 0; place < places; place++) {
		t->entries[place].stack = STACK_NONE;
		t->entries[place].sets = t->entry_sets + place * sets;
	}
	return 0;
}

static int prepare(struct taint *t)
{
	struct arena *arena = t->program->arena;
	t->word_count = (t->program->params_bytes + 3) / 4;
	t->queue = arena_get_zeroed(arena, program_places(t->program) / 64 + (size_t)1, sizeof *t->queue);
	t->wide = arena_get_zeroed(arena, t->paths->slot_count + 1, sizeof *t->wide);
	t->whole = arena_get_zeroed(arena, t->paths->slot_count + 1, sizeof *t->whole);
	t->ones = arena_get_zeroed(arena, FROM_PARAMS + t->word_count + (size_t)1, sizeof *t->ones);
	t->arms = arena_get_zeroed(arena, t->program->armed_count + 1, sizeof *t->arms);
	if (!t->queue || !t->wide || !t->whole || !t->ones || !t->arms)
		return -ENOMEM;
	int err = taint_live_find(t->program, t->facts, &t->live);
	if (!err)
		err = guards_find(t->program, t->facts, &t->guards);
	if (!err)
		err = prepare_entries(t);
	if (!err)
		err = sets_init(&t->sets, arena, FROM_PARAMS + t->word_count + 1, t->program->count > MANY);
	if (!err)
		err = sets_init(&t->targets, arena, t->program->armed_count, false);
	if (err)
		return err;
	prepare_params(t);
	return 0;
}

int taint_run(const struct program *program, const uint8_t *facts, const struct paths_watch *watch,
              struct kernel_paths *paths)
{
	struct arena_mark mark;
	arena_mark(program->arena, &mark);
	struct taint *t = arena_get_zeroed(program->arena, 1, sizeof *t);
	if (!t)
		return -ENOMEM;
	t->program = program;
	t->paths = paths;
	t->watch = watch;
	t->facts = facts;
	t->join = wide_is_there() ? taint_join_wide : taint_join_narrow;
	t->error = prepare(t);
	if (!t->error && !t->stop)
		solve(t);
	if (!t->error && !t->stop)
		record(t);
	if (t->sets.error == -ENOMEM || t->targets.error == -ENOMEM)
		t->error = -ENOMEM;
	else if (t->sets.error || t->targets.error)
		t->stop = PATHS_LIMIT;
	if (t->stop) {
		paths->reason = t->stop;
		paths->reason_offset = (t->insn - program->entry) * SASS_BYTES;
	}
	int err = t->error;
	arena_reset(program->arena, &mark);
	return err;
}
