#include "shim/kernels/taint_live.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "shim/kernels/constants.h"

#define SWEEPS 64 /* then every register counts as live: sets are kept for too many, never for too few */
#define WORDS (TAINT_REGISTERS / 64)
#define FIRST_EFFECTS 64

/*
 * What instructions read and write, packed: for each the writes, the reads, then one word that says how many of each, so that it can be read from the end.
 */

#define HEADER_ACTS 0x8000u
#define HEADER_RECORDS 0x4000u
#define HEADER_AGAIN 0x2000u
#define HEADER_RECALLS 0x1000u

enum need { NEED_NOT, NEED_RECORDING, NEED_ALWAYS };

#define BARRIERS 16
#define ANY_BARRIER BARRIERS /* of those that may lead to all places that are armed */

struct search {
	const struct program *program;
	struct taint_live *at, *out; /* by place; by block */
	struct taint_live *written;  /* by block: what its instructions write */
	uint32_t *waiting;           /* by block: a bit for each barrier from which a warp may come there */
	struct taint_live waits[BARRIERS + 1];
	uint32_t waits_moved[BARRIERS + 1]; /* as `moved` */
	uint16_t *effects;
	size_t effect_count, effect_room;
	uint32_t *effects_end; /* by block */
	uint8_t *needed;       /* by instruction: enum need */
	uint32_t *headers;     /* by instruction: its header in effects */
	uint32_t *moved;       /* by place: the sweep in which it changed last, 0: none */
	uint32_t sweep;
};

static uint16_t packed(const struct taint_range *range)
{
	return (uint16_t)(range->first | range->count << 9 | (range->kills ? TAINT_RANGE_KILLS : 0));
}

static int pack_insn(struct search *search, uint32_t at)
{
	struct taint_effect effect;
	taint_effect(search->program, at, &effect);
	size_t more = effect.write_count + effect.read_count + (size_t)1;
	if (search->effect_count + more > search->effect_room) {
		size_t room = 2 * search->effect_room;
		uint16_t *effects = realloc(search->effects, room * sizeof *effects);
		if (!effects)
			return -ENOMEM;
		search->effects = effects;
		search->effect_room = room;
	}
	uint16_t *to = search->effects + search->effect_count;
	for (unsigned i = 0; i < effect.write_count; i++)
		*to++ = packed(&effect.writes[i]);
	for (unsigned i = 0; i < effect.read_count; i++)
		*to++ = packed(&effect.reads[i]);
	*to = (uint16_t)(effect.write_count | effect.read_count << 4 | (effect.acts ? HEADER_ACTS : 0) |
	                 (effect.records ? HEADER_RECORDS : 0) | (effect.again ? HEADER_AGAIN : 0) |
	                 (effect.recalls ? HEADER_RECALLS : 0));
	search->effect_count += more;
	search->headers[at] = (uint32_t)search->effect_count - 1;
	return 0;
}

static int pack(struct search *search)
{
	int err = 0;
	for (uint32_t i = 0; i < search->program->block_count && !err; i++) {
		const struct block *block = &search->program->blocks[i];
		for (uint32_t insn = block->first; insn <= block->last && !err; insn++)
			err = pack_insn(search, insn);
		search->effects_end[i] = (uint32_t)search->effect_count;
	}
	return err;
}

static void drop(struct taint_live *live, taint_packed range)
{
	unsigned first = taint_range_first(range), count = taint_range_count(range), shift = first % 64;
	uint64_t bits = ((uint64_t)1 << count) - 1;
	live->bits[first / 64] &= ~(bits << shift);
	if (shift + count > 64)
		live->bits[first / 64 + 1] &= ~(bits >> (64 - shift));
}

/* Adds what is live somewhere to what is live at the end of a block, and to *more what was not yet. */
static void take(const struct taint_live *from, struct taint_live *out, struct taint_live *more)
{
	for (unsigned i = 0; i < WORDS; i++) {
		more->bits[i] |= from->bits[i] & ~out->bits[i];
		out->bits[i] |= from->bits[i];
	}
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
	const uint16_t *end = search->effects + search->effects_end[id];
	for (uint32_t insn = block->last + 1; insn-- > block->first;) {
		uint16_t header = *--end;
		unsigned writes = header & 15, reads = header >> 4 & 15;
		const uint16_t *first = end - reads - writes;
		uint8_t need = header & HEADER_ACTS ? NEED_ALWAYS : header & HEADER_RECORDS ? NEED_RECORDING : NEED_NOT;
		for (unsigned i = 0; i < writes && need != NEED_ALWAYS; i++)
			need = taint_live_any(&live, first[i]) ? NEED_ALWAYS : need;
		search->needed[insn] = need;
		for (unsigned i = 0; i < writes; i++) {
			taint_live_add(&search->written[id], first[i]);
			if (first[i] & TAINT_RANGE_KILLS)
				drop(&live, first[i]);
		}
		for (unsigned i = writes; need && i < writes + reads; i++)
			taint_live_add(&live, first[i]);
		end = first;
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
	memset(search->needed, NEED_ALWAYS, program->count);
}

static struct taint_step step_of(const struct search *search, uint32_t insn)
{
	uint16_t header = search->effects[search->headers[insn]];
	unsigned writes = header & 15, reads = header >> 4 & 15;
	return (struct taint_step){.insn = insn,
	                           .ranges = search->headers[insn] - writes - reads,
	                           .write_count = writes & 15,
	                           .read_count = reads & 15,
	                           .records = (header & HEADER_RECORDS) != 0,
	                           .records_only = search->needed[insn] == NEED_RECORDING,
	                           .acts = (header & HEADER_ACTS) != 0,
	                           .again = (header & HEADER_AGAIN) != 0,
	                           .recalls = (header & HEADER_RECALLS) != 0};
}

static int list_steps(const struct search *search, struct taint_liveness *liveness)
{
	const struct program *program = search->program;
	size_t count = 0, results = 0;
	for (uint32_t i = 0; i < program->count; i++)
		count += search->needed[i] != NEED_NOT;
	liveness->steps = calloc(count + 1, sizeof *liveness->steps);
	liveness->first = calloc(program->block_count + (size_t)1, sizeof *liveness->first);
	if (!liveness->steps || !liveness->first)
		return -ENOMEM;
	struct taint_step *step = liveness->steps;
	for (uint32_t id = 0; id < program->block_count; id++) {
		for (uint32_t insn = program->blocks[id].first; insn <= program->blocks[id].last; insn++) {
			if (search->needed[insn] == NEED_NOT)
				continue;
			*step = step_of(search, insn);
			step->results = (uint32_t)results;
			for (unsigned i = 0; i < step->write_count; i++)
				results += taint_range_count(search->effects[step->ranges + i]);
			step++;
		}
		liveness->first[id + 1] = (uint32_t)(step - liveness->steps);
	}
	liveness->results = calloc(results + 1, sizeof *liveness->results);
	return liveness->results ? 0 : -ENOMEM;
}

int taint_live_find(const struct program *program, struct taint_liveness *ret_liveness)
{
	size_t blocks = program->block_count;
	struct search search = {.program = program,
	                        .effects = calloc(FIRST_EFFECTS, sizeof *search.effects),
	                        .effect_room = FIRST_EFFECTS,
	                        .at = calloc(program_places(program), sizeof *search.at),
	                        .out = calloc(blocks + 1, sizeof *search.out),
	                        .written = calloc(blocks + 1, sizeof *search.written),
	                        .waiting = calloc(blocks + 1, sizeof *search.waiting),
	                        .effects_end = calloc(blocks + 1, sizeof *search.effects_end),
	                        .needed = calloc(program->count + (size_t)1, 1),
	                        .headers = calloc(program->count + (size_t)1, sizeof *search.headers),
	                        .moved = calloc(program_places(program), sizeof *search.moved)};
	*ret_liveness = (struct taint_liveness){.at = search.at};
	int err = search.effects && search.at && search.out && search.written && search.waiting && search.effects_end &&
	                          search.needed && search.headers && search.moved
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
	ret_liveness->ranges = search.effects;
	free(search.effects_end);
	free(search.needed);
	free(search.headers);
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
