#include "shim/kernels/taint_live.h"

#include <errno.h>
#include <string.h>

#include "shim/kernels/constants.h"

#define SWEEPS 64 /* then every register counts as live: sets are kept for too many, never for too few */
#define WORDS (TAINT_REGISTERS / 64)

#define BARRIERS 16
#define ANY_BARRIER BARRIERS /* of those that may lead to all places that are armed */

#define SHORT                                                                                                          \
	4 /* ranges of most instructions: one that is written, or none of it, and three that are read, or none of them */

#define ROOM (TAINT_WRITES + TAINT_EFFECT_READS) /* for those of one more */

/* An instruction: what becomes of a struct taint_step where it is needed. */
struct packed_insn {
	uint32_t ranges; /* SHORT of them, or what is written, then what is read */
	uint8_t kill_count, write_count, read_count;
	bool is_short, acts;
	uint8_t when, least, need; /* enum taint_when; enum taint_need: whatever becomes of its results; in all */
};

struct search {
	const struct program *program;
	struct taint_live *at, *out; /* by place; by block */
	struct taint_live *written;  /* by block: what its instructions write */
	uint32_t *waiting;           /* by block: a bit for each barrier from which a warp may come there */
	struct taint_live waits[BARRIERS + 1];
	uint32_t waits_moved[BARRIERS + 1]; /* as `moved` */
	struct packed_insn *insns;
	taint_packed *ranges;
	size_t range_count, range_room;
	uint32_t *moved; /* by place: the sweep in which it changed last, 0: none */
	uint32_t sweep;
};

static int make_room(struct search *search)
{
	if (search->range_count + ROOM <= search->range_room)
		return 0;
	size_t room = 2 * search->range_room;
	taint_packed *ranges = arena_grow(search->program->arena, search->ranges, search->range_room * sizeof *ranges,
	                                  room * sizeof *ranges);
	if (!ranges)
		return -ENOMEM;
	search->ranges = ranges;
	search->range_room = room;
	return 0;
}

/* Of an effect whose reads lie behind the place of one write. */
static bool pack_ranges(struct search *search, const struct taint_effect *effect)
{
	taint_packed *to = search->ranges + search->range_count;
	if (effect->write_count <= 1 && effect->read_count < SHORT) {
		to[0] = effect->writes[0];
		search->range_count += SHORT;
		return true;
	}
	memmove(to + effect->write_count, effect->reads, effect->read_count * sizeof *to);
	memcpy(to, effect->writes, effect->write_count * sizeof *to);
	search->range_count += effect->write_count + (size_t)effect->read_count;
	return false;
}

/* What an instruction reads and writes. */
static int pack_insn(struct search *search, uint32_t at, struct taint_live *written)
{
	struct taint_effect effect;
	struct packed_insn *insn = &search->insns[at];
	if (make_room(search))
		return -ENOMEM;
	/* Not copied from where they have just been written, several at once: that would wait for them. */
	effect.reads = search->ranges + search->range_count + 1;
	taint_effect(search->program, at, &effect);
	insn->ranges = (uint32_t)search->range_count;
	insn->is_short = pack_ranges(search, &effect);
	insn->kill_count = effect.kill_count;
	insn->write_count = effect.write_count;
	insn->read_count = effect.read_count;
	insn->acts = effect.acts;
	insn->least = effect.acts ? NEED_ALWAYS : effect.records ? NEED_RECORDING : NEED_NOT;
	insn->when = (uint8_t)(WHEN_FIRST | (effect.again ? WHEN_ANY : 0) | (effect.recalls ? WHEN_STORED : 0) |
	                       (insn->least ? WHEN_RECORDING : 0));
	taint_live_add(written, effect.writes[0]);
	for (unsigned i = 1; i < effect.write_count; i++)
		taint_live_add(written, effect.writes[i]);
	return 0;
}

static int pack(struct search *search)
{
	int err = 0;
	for (uint32_t i = 0; i < search->program->block_count && !err; i++) {
		const struct block *block = &search->program->blocks[i];
		for (uint32_t insn = block->first; insn <= block->last && !err; insn++)
			err = pack_insn(search, insn, &search->written[i]);
	}
	return err;
}

static void drop(struct taint_live *live, taint_packed range)
{
	live->bits[taint_range_first(range) / 64] &= ~taint_range_bits(range);
}

/* Adds what is live somewhere to what is live at the end of a block, and to *more what was not yet. */
static void take(const struct taint_live *from, struct taint_live *out, struct taint_live *more)
{
	struct taint_live taken = *from, were = *out, added = *more;
	for (unsigned i = 0; i < WORDS; i++) {
		added.bits[i] |= taken.bits[i] & ~were.bits[i];
		were.bits[i] |= taken.bits[i];
	}
	*out = were;
	*more = added;
}

/* ... where it may have changed since the block took it last. */
static void take_place(const struct search *search, uint32_t place, struct taint_live *out, struct taint_live *more)
{
	if (search->moved[place] + 1 >= search->sweep)
		take(&search->at[place], out, more);
}

static bool any(const struct taint_live *live)
{
	uint64_t bits = 0;
	for (unsigned i = 0; i < WORDS; i++)
		bits |= live->bits[i];
	return bits != 0;
}

static bool meet(const struct taint_live *a, const struct taint_live *b)
{
	uint64_t bits = 0;
	for (unsigned i = 0; i < WORDS; i++)
		bits |= a->bits[i] & b->bits[i];
	return bits != 0;
}

/* A block's entry has changed, and so what is live at the barriers from which a warp may come there. */
static void note_moved(struct search *search, uint32_t id)
{
	search->moved[id] = search->sweep;
	for (uint32_t bits = search->waiting[id]; bits; bits &= bits - 1) {
		unsigned barrier = (unsigned)__builtin_ctz(bits);
		struct taint_live more = {{0}};
		take(&search->at[id], &search->waits[barrier], &more);
		if (any(&more))
			search->waits_moved[barrier] = search->sweep;
	}
}

static void step_back_long(struct packed_insn *insn, const taint_packed *range, struct taint_live *live)
{
	const taint_packed *reads = range + insn->write_count, *end = reads + insn->read_count;
	insn->need = insn->least;
	for (const taint_packed *write = range; write < reads; write++)
		insn->need = taint_live_any(live, *write) ? NEED_ALWAYS : insn->need;
	if (insn->need == NEED_NOT)
		return;
	for (const taint_packed *write = range; write < range + insn->kill_count; write++)
		drop(live, *write);
	for (const taint_packed *read = reads; read < end; read++)
		taint_live_add(live, *read);
}

static inline void step_back(struct packed_insn *insn, const taint_packed *range, struct taint_live *live)
{
	/* Without branches: whether it is needed is not foreseen. */
	uint64_t bits = taint_range_bits(range[0]), *word = &live->bits[taint_range_first(range[0]) / 64];
	uint8_t need = (uint8_t)(((*word & bits) != 0) * NEED_ALWAYS);
	insn->need = need > insn->least ? need : insn->least;
	uint64_t needed = -(uint64_t)(insn->need != NEED_NOT);
	*word &= ~(bits & needed & -(uint64_t)(insn->kill_count != 0));
	for (unsigned i = 1; i < SHORT; i++)
		live->bits[taint_range_first(range[i]) / 64] |= taint_range_bits(range[i]) & needed;
}

/* From the end of a block to its beginning. */
static void run_back(struct search *search, uint32_t id)
{
	const struct block *block = &search->program->blocks[id];
	struct taint_live live = search->out[id];
	for (uint32_t at = block->last + 1; at-- > block->first;) {
		struct packed_insn *insn = &search->insns[at];
		if (insn->is_short)
			step_back(insn, search->ranges + insn->ranges, &live);
		else
			step_back_long(insn, search->ranges + insn->ranges, &live);
	}
	if (!memcmp(&search->at[id], &live, sizeof live))
		return;
	search->at[id] = live;
	note_moved(search, id);
}

/* What became live at the end of a block is so at its beginning too, where the block does not write it. */
static void pass_back(struct search *search, uint32_t id, const struct taint_live *more)
{
	struct taint_live moved = {{0}};
	take(more, &search->at[id], &moved);
	if (any(&moved))
		note_moved(search, id);
}

/* What is live at the end of a block, by the same ways out as in taint_run.c; to *more what was not yet. */
static void gather_out(struct search *search, uint32_t id, struct taint_live *more)
{
	const struct program *program = search->program;
	const struct block *block = &program->blocks[id];
	struct taint_live *out = &search->out[id];
	for (uint32_t i = 0; i < block->next_count; i++)
		take_place(search, program->next[block->next_first + i], out, more);
	if (block->return_point != PROGRAM_NONE)
		take_place(search, block->return_point, out, more);
	for (uint32_t i = 0; i < block->returns_count; i++)
		take_place(search, program->block_count + program->returns[block->returns_first + i].to, out, more);
	if (block->returns_anywhere)
		take_place(search, program->block_count + program->function_count, out, more);
	if (block->kind != BLOCK_WAIT)
		return;
	unsigned barrier = sass_field(&program->insns[block->last], 16, 20);
	if (program_waits_anywhere(program, barrier))
		barrier = ANY_BARRIER;
	if (search->waits_moved[barrier] + 1 >= search->sweep)
		take(&search->waits[barrier], out, more);
}

/* Of what is live where a function's callers go on, it brings them what it may have written: the rest they keep. */
static void gather_point(const struct search *search, uint32_t point, const struct sass_registers *written,
                         struct taint_live *meeting, struct taint_live *more)
{
	struct taint_live brought = search->at[point];
	if (search->moved[point] + 1 < search->sweep)
		return;
	for (unsigned i = 0; i < WORDS; i++)
		brought.bits[i] &= i < 4 ? written->r[i] : written->u[i - 4];
	take(&brought, meeting, more);
}

static bool gather_meetings(struct search *search)
{
	const struct program *program = search->program;
	bool changed = false;
	for (uint32_t f = 0; f <= program->function_count; f++) {
		uint32_t place = program->block_count + f;
		struct taint_live *meeting = &search->at[place], more = {{0}};
		if (f == program->function_count) {
			for (size_t i = 0; i < program->return_count; i++)
				take_place(search, program->return_points[i], meeting, &more);
		} else {
			const struct program_function *function = &program->functions[f];
			for (uint32_t i = 0; i < function->points_count; i++)
				gather_point(search, program->points[function->points_first + i].to, &function->written,
				             meeting, &more);
			for (size_t i = 0; i < program->loose_count; i++)
				take_place(search, program->loose[i], meeting, &more);
		}
		if (!any(&more))
			continue;
		search->moved[place] = search->sweep;
		changed = true;
	}
	return changed;
}

static void mark_waiting(struct search *search)
{
	const struct program *program = search->program;
	for (size_t i = 0; i < program->armed_count; i++)
		search->waiting[program->armed[i]] |= 1u << program->armed_by[i] | 1u << ANY_BARRIER;
}

static void search_back(struct search *search)
{
	const struct program *program = search->program;
	bool changed = true;
	mark_waiting(search);
	for (search->sweep = 1; changed && search->sweep <= SWEEPS; search->sweep++) {
		changed = program->return_count && gather_meetings(search);
		for (uint32_t id = program->block_count; id-- > 0;) {
			struct taint_live more = {{0}};
			gather_out(search, id, &more);
			if (search->sweep > 1 && !any(&more))
				continue;
			changed = true;
			if (search->sweep > 1 && !meet(&more, &search->written[id]))
				pass_back(search, id, &more);
			else
				run_back(search, id);
		}
	}
	if (!changed)
		return;
	memset(search->at, 0xff, program_places(program) * sizeof *search->at);
	for (uint32_t i = 0; i < program->count; i++)
		search->insns[i].need = NEED_ALWAYS;
}

/* What an instruction that always runs does for its block. */
static inline void sum_up(const struct packed_insn *insn, const taint_packed *ranges, struct taint_summary *summary)
{
	unsigned count = insn->write_count + (unsigned)insn->read_count;
	if (insn->is_short) {
		taint_live_add(insn->kill_count ? &summary->killed : &summary->touched, ranges[0]);
		for (unsigned i = 1; i < SHORT; i++)
			taint_live_add(&summary->touched, ranges[i]);
		return;
	}
	for (unsigned i = 0; i < insn->kill_count; i++)
		taint_live_add(&summary->killed, ranges[i]);
	for (unsigned i = insn->kill_count; i < count; i++)
		taint_live_add(&summary->touched, ranges[i]);
}

static void make_step(const struct search *search, uint32_t at, size_t *results, struct taint_step *to)
{
	const struct packed_insn *insn = &search->insns[at];
	const taint_packed *writes = search->ranges + insn->ranges;
	bool guarded = search->program->insns[at].guard != 7;
	unsigned written = taint_range_count(writes[0]);
	*to = (struct taint_step){.insn = at,
	                          /* In short there is a range at the place of what is written where there is none. */
	                          .ranges = insn->ranges + (insn->is_short && !insn->write_count),
	                          .results = (uint32_t)*results,
	                          .when = insn->when,
	                          .kill_count = insn->kill_count,
	                          .write_count = insn->write_count,
	                          .read_count = insn->read_count,
	                          .guarded = guarded,
	                          .single = insn->kill_count == 1 && insn->write_count == 1 && written == 1,
	                          .result = (uint16_t)taint_range_first(writes[0]),
	                          .pace[0] = insn->need == NEED_ALWAYS ? PACE_UNPLANNED : PACE_SKIP};
	written *= insn->write_count != 0;
	for (unsigned i = 1; i < insn->write_count; i++)
		written += taint_range_count(writes[i]);
	*results += written * (guarded ? TAINT_GUARDED_RESULTS : 1);
}

/* Those of a block that are needed. The end of them. */
static struct taint_step *list_block(const struct search *search, uint32_t id, const uint8_t *facts, size_t *results,
                                     struct taint_step *to, struct taint_summary *summary)
{
	const struct block *block = &search->program->blocks[id];
	unsigned when = 0;
	for (uint32_t at = block->first; at <= block->last; at++) {
		const struct packed_insn *insn = &search->insns[at];
		if (insn->need == NEED_NOT)
			continue;
		when |= insn->when;
		if (facts && facts[at] & FACT_NEVER)
			continue;
		make_step(search, at, results, to);
		if (insn->need == NEED_ALWAYS)
			sum_up(insn, search->ranges + insn->ranges, summary);
		uint8_t class = search->program->classes[at];
		summary->arms |= class == SASS_ARM || class == SASS_ARM_FROM_REGISTER;
		to++;
	}
	summary->recalls = when & WHEN_STORED;
	summary->tells = when & WHEN_RECORDING;
	summary->tells |= block->kind == BLOCK_BROKEN || block->kind == BLOCK_TABLE_UNKNOWN ||
	                  block->kind == BLOCK_CALL_UNKNOWN;
	return to;
}

static int list_steps(const struct search *search, const uint8_t *facts, struct taint_liveness *liveness)
{
	const struct program *program = search->program;
	size_t results = 0, count = 0;
	for (uint32_t i = 0; i < program->count; i++)
		count += search->insns[i].need != NEED_NOT;
	liveness->first = arena_get(program->arena, (program->block_count + (size_t)1) * sizeof *liveness->first);
	liveness->steps = arena_get(program->arena, (count + 1) * sizeof *liveness->steps);
	liveness->summaries =
		arena_get_zeroed(program->arena, program->block_count + (size_t)1, sizeof *liveness->summaries);
	if (!liveness->first || !liveness->steps || !liveness->summaries)
		return -ENOMEM;
	struct taint_step *to = liveness->steps;
	for (uint32_t id = 0; id < program->block_count; id++) {
		liveness->first[id] = (uint32_t)(to - liveness->steps);
		to = list_block(search, id, facts, &results, to, &liveness->summaries[id]);
	}
	liveness->first[program->block_count] = (uint32_t)(to - liveness->steps);
	liveness->results = arena_get(program->arena, (results + 1) * sizeof *liveness->results);
	if (!liveness->results)
		return -ENOMEM;
	memset(liveness->results, 0xff, (results + 1) * sizeof *liveness->results);
	return 0;
}

int taint_live_find(const struct program *program, const uint8_t *facts, struct taint_liveness *ret_liveness)
{
	struct arena *arena = program->arena;
	size_t blocks = program->block_count + (size_t)1, places = program_places(program),
	       insns = program->count + (size_t)1, room = (size_t)SHORT * program->count + ROOM;
	struct search search = {.program = program,
	                        .insns = arena_get_zeroed(arena, insns, sizeof *search.insns),
	                        .ranges = arena_get(arena, room * sizeof *search.ranges),
	                        .range_room = room,
	                        .at = arena_get_zeroed(arena, places, sizeof *search.at),
	                        .out = arena_get_zeroed(arena, blocks, sizeof *search.out),
	                        .written = arena_get_zeroed(arena, blocks, sizeof *search.written),
	                        .waiting = arena_get_zeroed(arena, blocks, sizeof *search.waiting),
	                        .moved = arena_get_zeroed(arena, places, sizeof *search.moved)};
	*ret_liveness = (struct taint_liveness){.at = search.at};
	int err = search.insns && search.ranges && search.at && search.out && search.written && search.waiting &&
	                          search.moved
	                  ? 0
	                  : -ENOMEM;
	if (!err)
		err = pack(&search);
	if (!err) {
		search_back(&search);
		err = list_steps(&search, facts, ret_liveness);
	}
	ret_liveness->ranges = search.ranges;
	arena_put(arena, search.insns, insns * sizeof *search.insns);
	arena_put(arena, search.out, blocks * sizeof *search.out);
	arena_put(arena, search.written, blocks * sizeof *search.written);
	arena_put(arena, search.waiting, blocks * sizeof *search.waiting);
	arena_put(arena, search.moved, places * sizeof *search.moved);
	return err;
}
