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

struct search {
	const struct program *program;
	struct taint_live *at, *out; /* by place; by block */
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

static void add(struct taint_live *live, taint_packed range)
{
	unsigned first = taint_range_first(range), count = taint_range_count(range), shift = first % 64;
	uint64_t bits = ((uint64_t)1 << count) - 1;
	live->bits[first / 64] |= bits << shift;
	if (shift + count > 64)
		live->bits[first / 64 + 1] |= bits >> (64 - shift);
}

/* What is live at the entry of `place` is live at the end of a block that leads there. */
static bool take(const struct search *search, struct taint_live *out, uint32_t place)
{
	if (search->moved[place] + 1 < search->sweep)
		return false;
	uint64_t more = 0;
	for (unsigned i = 0; i < WORDS; i++) {
		uint64_t bits = search->at[place].bits[i];
		more |= bits & ~out->bits[i];
		out->bits[i] |= bits;
	}
	return more != 0;
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
		for (unsigned i = 0; i < writes; i++)
			if (first[i] & TAINT_RANGE_KILLS)
				drop(&live, first[i]);
		for (unsigned i = writes; need && i < writes + reads; i++)
			add(&live, first[i]);
		end = first;
	}
	if (memcmp(&search->at[id], &live, sizeof live))
		search->moved[id] = search->sweep;
	search->at[id] = live;
}

/* What is live at the end of a block: the same ways out as in taint_run.c. */
static bool gather_out(struct search *search, uint32_t id)
{
	const struct program *program = search->program;
	const struct block *block = &program->blocks[id];
	struct taint_live *out = &search->out[id];
	bool changed = false;
	for (uint32_t i = 0; i < block->next_count; i++)
		changed |= take(search, out, program->next[block->next_first + i]);
	if (block->return_point != PROGRAM_NONE)
		changed |= take(search, out, block->return_point);
	for (uint32_t i = 0; i < block->returns_count; i++)
		changed |= take(search, out, program->block_count + program->returns[block->returns_first + i].to);
	if (block->returns_anywhere)
		changed |= take(search, out, program->block_count + program->function_count);
	if (block->kind != BLOCK_WAIT)
		return changed;
	unsigned barrier = sass_field(&program->insns[block->last], 16, 20);
	for (size_t i = 0; i < program->armed_count; i++)
		if (program_may_wait(program, barrier, i))
			changed |= take(search, out, program->armed[i]);
	return changed;
}

static bool gather_meetings(struct search *search)
{
	const struct program *program = search->program;
	bool any = false;
	for (uint32_t f = 0; f <= program->function_count; f++) {
		uint32_t place = program->block_count + f;
		struct taint_live *meeting = &search->at[place];
		bool changed = false;
		if (f == program->function_count) {
			for (size_t i = 0; i < program->return_count; i++)
				changed |= take(search, meeting, program->return_points[i]);
		} else {
			const struct program_function *function = &program->functions[f];
			for (uint32_t i = 0; i < function->points_count; i++)
				changed |= take(search, meeting, program->points[function->points_first + i].to);
			for (size_t i = 0; i < program->loose_count; i++)
				changed |= take(search, meeting, program->loose[i]);
		}
		if (changed)
			search->moved[place] = search->sweep;
		any |= changed;
	}
	return any;
}

static void search_back(struct search *search)
{
	const struct program *program = search->program;
	bool changed = true;
	for (search->sweep = 1; changed && search->sweep <= SWEEPS; search->sweep++) {
		changed = program->return_count && gather_meetings(search);
		for (uint32_t id = program->block_count; id-- > 0;) {
			if (!gather_out(search, id) && search->sweep > 1)
				continue;
			changed = true;
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
	                        .effects_end = calloc(blocks + 1, sizeof *search.effects_end),
	                        .needed = calloc(program->count + (size_t)1, 1),
	                        .headers = calloc(program->count + (size_t)1, sizeof *search.headers),
	                        .moved = calloc(program_places(program), sizeof *search.moved)};
	*ret_liveness = (struct taint_liveness){.at = search.at};
	int err = search.effects && search.at && search.out && search.effects_end && search.needed && search.headers &&
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
