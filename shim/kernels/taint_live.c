#include "shim/kernels/taint_live.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "shim/kernels/constants.h"

#define SWEEPS 64 /* then every register counts as live: sets are kept for too many, never for too few */
#define WORDS (TAINT_REGISTERS / 64)
#define FIRST_RANGES 256
#define MOST_RANGES 20 /* of an instruction: ten, each in two */

#define BARRIERS 16
#define ANY_BARRIER BARRIERS /* of those that may lead to all places that are armed */

struct search {
	const struct program *program;
	struct taint_live *at, *out; /* by place; by block */
	struct taint_live *written;  /* by block: what its instructions write */
	uint32_t *waiting;           /* by block: a bit for each barrier from which a warp may come there */
	struct taint_live waits[BARRIERS + 1];
	uint32_t waits_moved[BARRIERS + 1]; /* as `moved` */
	struct taint_step *steps;           /* by instruction */
	taint_packed *ranges;
	size_t range_count, range_room;
	uint32_t *moved; /* by place: the sweep in which it changed last, 0: none */
	uint32_t sweep;
};

/* In two where it does not lie within one word of a struct taint_live. The end of what was put there. */
static inline taint_packed *packed(const struct taint_range *range, taint_packed *to)
{
	unsigned count = range->count, room = 64 - range->first % 64u, within = count < room ? count : room;
	*to++ = (taint_packed)(range->first | within << 9);
	if (count > room)
		*to++ = (taint_packed)((range->first + room) | (count - room) << 9);
	return to;
}

/* What an instruction reads and writes, packed. */
static int pack_insn(struct search *search, uint32_t at, struct taint_live *written)
{
	struct taint_effect effect;
	struct taint_step *step = &search->steps[at];
	taint_effect(search->program, at, &effect);
	if (search->range_count + MOST_RANGES > search->range_room) {
		size_t room = 2 * search->range_room;
		taint_packed *ranges = realloc(search->ranges, room * sizeof *ranges);
		if (!ranges)
			return -ENOMEM;
		search->ranges = ranges;
		search->range_room = room;
	}
	taint_packed *from = search->ranges + search->range_count, *to = from;
	step->insn = at;
	step->ranges = (uint32_t)search->range_count;
	/* Those that kill come first. */
	for (unsigned i = 0; i < effect.write_count; i++) {
		to = packed(&effect.writes[i], to);
		if (effect.writes[i].kills)
			step->kill_count = (uint8_t)(to - from);
	}
	step->write_count = (uint8_t)(to - from);
	for (unsigned i = 0; i < effect.read_count; i++)
		to = packed(&effect.reads[i], to);
	step->read_count = (uint8_t)(to - from - step->write_count);
	for (unsigned i = 0; i < step->write_count; i++)
		taint_live_add(written, from[i]);
	step->result = step->write_count ? effect.writes[0].first : 0;
	step->single = step->kill_count == 1 && step->write_count == 1 && effect.writes[0].count == 1;
	step->acts = effect.acts;
	step->guarded = search->program->insns[at].guard != 7;
	step->when = (uint8_t)(WHEN_FIRST | (effect.again ? WHEN_ANY : 0) | (effect.recalls ? WHEN_STORED : 0) |
	                       (effect.acts || effect.records ? WHEN_RECORDING : 0));
	search->range_count += (size_t)(to - from);
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

/* From the end of a block to its beginning. */
static void run_back(struct search *search, uint32_t id)
{
	const struct block *block = &search->program->blocks[id];
	struct taint_live live = search->out[id];
	for (uint32_t insn = block->last + 1; insn-- > block->first;) {
		struct taint_step *step = &search->steps[insn];
		const taint_packed *range = search->ranges + step->ranges, *reads = range + step->write_count;
		uint8_t need = step->acts ? NEED_ALWAYS : step->when & WHEN_RECORDING ? NEED_RECORDING : NEED_NOT;
		for (const taint_packed *write = range; write < reads && need != NEED_ALWAYS; write++)
			need = taint_live_any(&live, *write) ? NEED_ALWAYS : need;
		step->need = need;
		if (need == NEED_NOT)
			continue;
		for (const taint_packed *write = range; write < range + step->kill_count; write++)
			drop(&live, *write);
		for (const taint_packed *read = reads; read < reads + step->read_count; read++)
			taint_live_add(&live, *read);
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
		search->steps[i].need = NEED_ALWAYS;
}

/* Leaves of the steps those that are needed. */
static int list_steps(const struct search *search, struct taint_liveness *liveness)
{
	const struct program *program = search->program;
	size_t results = 0;
	liveness->first = calloc(program->block_count + (size_t)1, sizeof *liveness->first);
	if (!liveness->first)
		return -ENOMEM;
	struct taint_step *to = liveness->steps;
	for (uint32_t id = 0; id < program->block_count; id++) {
		for (uint32_t insn = program->blocks[id].first; insn <= program->blocks[id].last; insn++) {
			const struct taint_step *step = &search->steps[insn];
			if (step->need == NEED_NOT)
				continue;
			*to = *step;
			to->results = (uint32_t)results;
			to->pace[0] = step->need == NEED_ALWAYS ? PACE_ASK : PACE_SKIP;
			for (unsigned i = 0; i < to->write_count; i++)
				results += taint_range_count(search->ranges[to->ranges + i]) *
				           (to->guarded ? TAINT_GUARDED_RESULTS : 1);
			to++;
		}
		liveness->first[id + 1] = (uint32_t)(to - liveness->steps);
	}
	struct taint_step *steps = realloc(liveness->steps, ((size_t)(to - liveness->steps) + 1) * sizeof *steps);
	liveness->steps = steps ? steps : liveness->steps;
	liveness->results = malloc((results + 1) * sizeof *liveness->results);
	if (!liveness->results)
		return -ENOMEM;
	memset(liveness->results, 0xff, (results + 1) * sizeof *liveness->results);
	return 0;
}

int taint_live_find(const struct program *program, struct taint_liveness *ret_liveness)
{
	size_t blocks = program->block_count;
	struct search search = {.program = program,
	                        .steps = calloc(program->count + (size_t)1, sizeof *search.steps),
	                        .ranges = calloc(FIRST_RANGES, sizeof *search.ranges),
	                        .range_room = FIRST_RANGES,
	                        .at = calloc(program_places(program), sizeof *search.at),
	                        .out = calloc(blocks + 1, sizeof *search.out),
	                        .written = calloc(blocks + 1, sizeof *search.written),
	                        .waiting = calloc(blocks + 1, sizeof *search.waiting),
	                        .moved = calloc(program_places(program), sizeof *search.moved)};
	*ret_liveness = (struct taint_liveness){.at = search.at, .steps = search.steps};
	int err = search.steps && search.ranges && search.at && search.out && search.written && search.waiting &&
	                          search.moved
	                  ? 0
	                  : -ENOMEM;
	if (!err)
		err = pack(&search);
	if (!err) {
		search_back(&search);
		err = list_steps(&search, ret_liveness);
	}
	free(search.out);
	free(search.written);
	free(search.waiting);
	ret_liveness->ranges = search.ranges;
	free(search.moved);
	return err;
}

void taint_live_free(struct taint_liveness *liveness)
{
	free(liveness->at);
	free(liveness->steps);
	free(liveness->first);
	free(liveness->ranges);
	free(liveness->results);
	*liveness = (struct taint_liveness){0};
}
