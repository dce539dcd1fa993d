#include <immintrin.h>
#include <string.h>

#include "shim/kernels/taint.h"

/* What flows from one place to others: from the end of a block into those behind it, from where the returns of a function meet to its callers. */

#define FLOW_WORK 16 /* of taint.work, for each flow */

/*
 * Places run in sweeps from the first to the last: what a loop brings back waits for the next sweep, so that it comes with all that changed meanwhile. (Sweeps in
 * reverse post-order were tried, and took more: code lies in an order that suits.)
 */
void taint_push(struct taint *t, uint32_t place)
{
	t->queue[place / 64] |= (uint64_t)1 << place % 64;
}

/* Blocks for which what is stored matters, where that is not what it was when they ran. */
static void push_readers(struct taint *t)
{
	for (uint32_t i = 0; i < t->program->block_count; i++)
		if (t->live.summaries[i].recalls && taint_runs(t, i) && t->entries[i].memory != t->memory_version)
			taint_push(t, i);
}

/* The first that waits, from `place` on. */
static bool find_waiting(struct taint *t, uint32_t place, uint32_t *ret_place)
{
	size_t words = program_places(t->program) / 64 + 1, word = place / 64;
	uint64_t bits = t->queue[word] & ~(uint64_t)0 << place % 64;
	while (!bits && ++word < words)
		bits = t->queue[word];
	if (!bits)
		return false;
	*ret_place = (uint32_t)(word * 64 + (unsigned)__builtin_ctzll(bits));
	return true;
}

bool taint_pop(struct taint *t, uint32_t *ret_place)
{
	if (!find_waiting(t, t->sweep, &t->sweep)) {
		push_readers(t);
		if (!find_waiting(t, 0, &t->sweep))
			return false;
	}
	t->queue[t->sweep / 64] &= ~((uint64_t)1 << t->sweep % 64);
	*ret_place = t->sweep;
	return true;
}

/* The registers of t->source, those that are chosen, into the entry of a place: those that are live there. Has any changed? */
static bool join_registers(struct taint *t, uint32_t place, const struct taint_live *chosen)
{
	if (!t->entries[place].filled)
		taint_clear_entry(t, &t->entries[place]);
	return t->join(t, place, chosen);
}

/* ... into one where nothing came before: all of them, which for those that are not live means nothing. */
static void fill(struct taint *t, uint32_t place)
{
	struct taint_entry *entry = &t->entries[place];
	for (unsigned i = 0; i < t->row_count; i++)
		memcpy(entry->sets + (size_t)i * 64, t->source.rows[i], 64 * sizeof *entry->sets);
	memset(&entry->changed, 0xff, sizeof entry->changed);
	entry->filled = true;
}

static inline __m128i eight(const set_id *sets)
{
	return _mm_loadu_si128((const __m128i *)(const void *)sets);
}

/* Of eight barriers those that grow as they did last take what comes. Which are others, of which something comes? A bit for each byte. */
static unsigned grow_armed(const struct taint_growth *growth, unsigned first, set_id *into, const set_id *from,
                           bool *changed)
{
	__m128i before = eight(into), after = eight(from),
		alike = _mm_or_si128(_mm_cmpeq_epi16(before, after), _mm_cmpeq_epi16(after, _mm_setzero_si128())),
		grows = _mm_and_si128(_mm_cmpeq_epi16(before, eight(growth->armed_before + first)),
	                              _mm_cmpeq_epi16(after, eight(growth->armed_after + first)));
	grows = _mm_andnot_si128(alike, grows);
	*changed |= _mm_movemask_epi8(grows) != 0;
	_mm_storeu_si128((__m128i *)(void *)into,
	                 _mm_or_si128(_mm_andnot_si128(grows, before), _mm_and_si128(grows, after)));
	return (unsigned)_mm_movemask_epi8(_mm_or_si128(alike, grows)) ^ 0xffff;
}

/* (Not inline: it would take the registers of what it is called from.) */
static __attribute__((noinline)) bool join_armed(struct taint *t, struct taint_entry *into)
{
	bool changed = false;
	for (unsigned first = 0; first < 16; first += 8) {
		unsigned others = grow_armed(&t->growth, first, into->armed + first, t->source.armed + first, &changed);
		for (; others; others &= others - 1, others &= others - 1) {
			unsigned i = first + (unsigned)__builtin_ctz(others) / 2;
			set_id before = into->armed[i], after = t->source.armed[i],
			       joined = sets_join(&t->targets, before, after);
			changed |= joined != before;
			into->armed[i] = joined;
			if (joined == after) {
				t->growth.armed_before[i] = before;
				t->growth.armed_after[i] = after;
			}
		}
	}
	into->moved |= changed ? FLOW_BARRIERS : 0;
	return changed;
}

static bool join_stack(struct taint *t, struct taint_entry *into)
{
	int32_t from = t->source.stack;
	if (from == STACK_NONE || into->stack == from || into->stack == STACK_ANY)
		return false;
	into->stack = into->stack == STACK_NONE ? from : STACK_ANY;
	into->moved |= FLOW_STACK;
	return true;
}

/* t->source flows into the entry of a place: of its registers those that have changed since it did so before. */
static void flow_into(struct taint *t, uint32_t place, unsigned parts, const struct taint_live *changed_registers)
{
	struct taint_entry *into = &t->entries[place];
	t->work += FLOW_WORK;
	bool changed = !into->reached;
	into->reached = true;
	if (into->filled)
		changed |= join_registers(t, place, changed_registers);
	else
		fill(t, place);
	if (parts & FLOW_BARRIERS)
		changed |= join_armed(t, into);
	if (parts & FLOW_STACK)
		changed |= join_stack(t, into);
	if (changed && (into->stack != STACK_NONE || place >= t->program->block_count))
		taint_push(t, place);
}

static void set_source(struct taint *t, const struct taint_entry *entry)
{
	for (unsigned i = 0; i < t->row_count; i++)
		t->source.rows[i] = entry->sets + (size_t)i * 64;
	t->source.armed = entry->armed;
	t->source.stack = entry->stack;
}

static void set_source_now(struct taint *t)
{
	for (unsigned i = 0; i < t->row_count; i++)
		t->source.rows[i] = t->now.registers + (size_t)t->rows[i] * 64;
	t->source.armed = t->now.armed;
	t->source.stack = t->now.stack;
}

/* From where the returns of a function meet, which is the source, to one of its callers: what it may have written. */
static bool return_to(struct taint *t, uint32_t function, uint32_t block, const struct taint_live *changed_registers)
{
	struct taint_entry *point = &t->entries[block];
	const struct sass_registers *written = &t->program->functions[function].written;
	struct taint_live brought;
	if (!point->called || !t->entries[t->program->block_count + function].reached)
		return false;
	t->work += FLOW_WORK;
	bool changed = !point->reached;
	point->reached = true;
	for (unsigned row = 0; row < 4; row++) {
		brought.bits[row] = written->r[row] & changed_registers->bits[row];
		brought.bits[row + 4] = written->u[row] & changed_registers->bits[row + 4];
	}
	return changed | join_registers(t, block, &brought);
}

/* Which registers some function that is called here does not write. */
static struct taint_live kept_by_caller(const struct program *program, const struct block *call)
{
	struct taint_live kept = {{0}};
	for (uint32_t i = 0; i < call->call_count; i++) {
		uint32_t function = program->function_of[program->next[call->next_first + i]];
		const struct sass_registers *written = &program->functions[function].written;
		for (unsigned row = 0; row < 4; row++) {
			kept.bits[row] |= ~written->r[row];
			kept.bits[row + 4] |= ~written->u[row];
		}
	}
	return kept;
}

/* Past a call: what the caller keeps; the first time also what those that it calls have written so far: what they write later comes by flow_back(). */
static void flow_past(struct taint *t, const struct block *call, unsigned parts)
{
	const struct program *program = t->program;
	struct taint_entry *point = &t->entries[call->return_point];
	struct taint_live kept = kept_by_caller(program, call);
	bool changed = !point->called;
	for (unsigned row = 0; row < TAINT_REGISTERS / 64; row++)
		kept.bits[row] &= t->changed.bits[row];
	changed |= join_registers(t, call->return_point, &kept);
	if (parts & FLOW_STACK)
		changed |= join_stack(t, point);
	if (parts & FLOW_BARRIERS)
		changed |= join_armed(t, point);
	if (!point->called) {
		struct taint_source source = t->source;
		point->called = true;
		for (uint32_t i = 0; i < call->call_count; i++) {
			uint32_t function = program->function_of[program->next[call->next_first + i]];
			set_source(t, &t->entries[program->block_count + function]);
			changed |= return_to(t, function, call->return_point, &taint_all);
		}
		t->source = source;
	}
	if (changed && point->reached)
		taint_push(t, call->return_point);
}

/* A warp goes on where the barrier that it waited at was armed. */
static void flow_from_barrier(struct taint *t, uint32_t id, unsigned parts)
{
	const struct program *program = t->program;
	struct taint_entry *entry = &t->entries[id];
	unsigned barrier = sass_field(&program->insns[program->blocks[id].last], 16, 20);
	set_id armed = t->source.armed[barrier];
	/* The same places as before have what has not changed; to others all of it is new, the stack pointer too. */
	const struct taint_live *changed = &t->changed;
	if (armed != entry->waited) {
		changed = &taint_all;
		parts = FLOW_STACK | FLOW_BARRIERS;
	}
	entry->waited = armed;
	for (size_t i = 0; !armed && i < program->armed_count; i++)
		if (program_may_wait(program, barrier, i))
			flow_into(t, program->armed[i], parts, changed);
	for (size_t word = 0; armed && word < t->targets.half; word++)
		for (uint64_t bits = sets_bits(&t->targets, armed)[word]; bits; bits &= bits - 1)
			flow_into(t, program->armed[word * 64 + (unsigned)__builtin_ctzll(bits)], parts, changed);
}

static void flow_out(struct taint *t, uint32_t id, unsigned parts)
{
	const struct program *program = t->program;
	const struct block *block = &program->blocks[id];
	uint8_t fact = taint_fact(t, block->last);
	for (uint32_t i = 0; i < block->next_count; i++)
		if (!fact || !constants_cut(program, block, i, fact))
			flow_into(t, program->next[block->next_first + i], parts, &t->changed);
	if (block->return_point != PROGRAM_NONE)
		flow_past(t, block, parts);
	for (uint32_t i = 0; i < block->returns_count; i++)
		flow_into(t, program->block_count + program->returns[block->returns_first + i].to,
		          parts & FLOW_BARRIERS, &t->changed);
	if (block->returns_anywhere)
		flow_into(t, program->block_count + program->function_count, parts & FLOW_BARRIERS, &t->changed);
	if (block->kind == BLOCK_WAIT)
		flow_from_barrier(t, id, parts);
}

void taint_flow_out(struct taint *t, uint32_t id)
{
	set_source_now(t);
	/* Both come of what they were at the block's entry alone. */
	flow_out(t, id, t->moved);
}

bool taint_flow_through(struct taint *t, uint32_t id)
{
	const struct taint_summary *summary = &t->live.summaries[id];
	struct taint_entry *entry = &t->entries[id];
	uint64_t touched = 0, through = 0;
	bool waits = t->program->blocks[id].kind == BLOCK_WAIT;
	/*
	 * What the barrier that it waits at is armed with is not in the entry where the block itself arms one. Where that has changed, all that the block leaves
	 * flows to new places.
	 */
	if (!entry->ran || (summary->recalls && entry->memory != t->memory_version) || entry->moved & FLOW_STACK ||
	    (entry->moved && (summary->arms || waits)) || (summary->arms && waits))
		return false;
	for (unsigned row = 0; row < TAINT_REGISTERS / 64; row++)
		touched |= entry->changed.bits[row] & summary->touched.bits[row];
	if (touched)
		return false;
	for (unsigned row = 0; row < TAINT_REGISTERS / 64; row++)
		through |= t->changed.bits[row] = entry->changed.bits[row] & ~summary->killed.bits[row];
	entry->changed = (struct taint_live){{0}};
	unsigned parts = entry->moved;
	entry->moved = 0;
	if (!through && !parts)
		return true;
	set_source(t, entry);
	flow_out(t, id, parts);
	return true;
}

void taint_flow_back(struct taint *t, uint32_t function)
{
	const struct program *program = t->program;
	struct taint_entry *meeting = &t->entries[program->block_count + function];
	struct taint_live changed = meeting->changed;
	meeting->changed = (struct taint_live){{0}};
	set_source(t, meeting);
	if (function == program->function_count) {
		for (size_t i = 0; i < program->return_count; i++)
			flow_into(t, program->return_points[i], FLOW_BARRIERS, &changed);
		return;
	}
	const struct program_function *callers = &program->functions[function];
	for (uint32_t i = 0; i < callers->points_count; i++) {
		uint32_t point = program->points[callers->points_first + i].to;
		if (return_to(t, function, point, &changed) && t->entries[point].stack != STACK_NONE)
			taint_push(t, point);
	}
	for (size_t i = 0; i < program->loose_count; i++)
		flow_into(t, program->loose[i], FLOW_BARRIERS, &changed);
}
