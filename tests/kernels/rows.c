/*
 * Registers of one state that flow into another (taint_join.c): by what each machine has, by AVX-512 where there is that, and by a plain loop here. All must come to
 * the same: what is kept, what has changed, what is remembered for the next place. Random states, many alike from one place to the next. rows [ROUNDS]
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shim/kernels/taint.h"
#include "shim/kernels/wide.h"

#define POOL 150 /* sets to draw from, or as many as there are */
#define PLACES 4
#define ROWS (TAINT_REGISTERS / 64)

/* Sets of 2, 8 and 22 words: up to 8 fit into one register. */
static const unsigned sizes[] = {25, 250, 700};
static unsigned members, pool;

static uint64_t seed = 0x9e3779b97f4a7c15u;

static uint64_t draw(void)
{
	seed ^= seed << 13, seed ^= seed >> 7, seed ^= seed << 17;
	return seed;
}

struct stage {
	struct taint *t;
	struct taint_live live[PLACES];
	struct taint_entry entries[PLACES];
	set_id sets[PLACES][TAINT_REGISTERS], source[TAINT_REGISTERS];
};

/* The same ones by the same names in each. */
static void set_up(struct stage *stage, bool wide)
{
	struct taint *t = calloc(1, sizeof *t);
	struct arena *arena = arena_open();
	if (!t || !arena || sets_init(&t->sets, arena, members, false))
		abort();
	t->sets.wide = wide;
	*stage = (struct stage){.t = t};
	t->live.at = stage->live;
	t->entries = stage->entries;
	/* Scaled ones, too: only they have anything in the second half of a set, where its last words are. Neighbours have a member in common. */
	for (unsigned i = 1; i < POOL; i++) {
		set_id plain =
			taint_join(t, sets_one(&t->sets, i * 11 % members), sets_one(&t->sets, (i + 1) * 11 % members));
		taint_join(t, plain,
		           sets_turn(&t->sets, sets_one(&t->sets, members - 1 - i * 53 % members), SETS_SCALED));
	}
}

static void tear_down(struct stage *stage)
{
	arena_close(stage->t->sets.arena);
	free(stage->t);
}

static uint64_t some_bits(void)
{
	uint64_t few = draw();
	switch (draw() % 4) {
	case 0:
		return 0;
	case 1:
		return ~(uint64_t)0;
	case 2:
		return few & few >> 7 & few << 11;
	default:
		return draw();
	}
}

/* What all of them begin with. */
static void fill(struct stage *stage)
{
	struct taint *t = stage->t;
	t->row_count = 0;
	for (unsigned row = 0; row < ROWS; row++)
		if (draw() % 3)
			t->rows[t->row_count++] = (uint8_t)row;
	for (unsigned place = 0; place < PLACES; place++) {
		for (unsigned i = 0; i < t->row_count; i++)
			stage->live[place].bits[t->rows[i]] = some_bits();
		for (unsigned reg = 0; reg < TAINT_REGISTERS; reg++)
			stage->sets[place][reg] = draw() % 3 && place ? stage->sets[place - 1][reg]
			                                              : (set_id)(draw() % pool);
	}
}

static void take(const struct stage *from, struct stage *to)
{
	struct taint *t = to->t;
	memcpy(to->live, from->live, sizeof to->live);
	memcpy(to->sets, from->sets, sizeof to->sets);
	memcpy(to->source, from->source, sizeof to->source);
	memcpy(t->rows, from->t->rows, sizeof t->rows);
	t->row_count = from->t->row_count;
	for (unsigned place = 0; place < PLACES; place++)
		to->entries[place] = (struct taint_entry){.sets = to->sets[place], .filled = true};
	for (unsigned i = 0; i < t->row_count; i++)
		t->source.rows[i] = to->source + (size_t)i * 64;
}

/* As they say that it is. */
static bool join_plainly(struct taint *t, uint32_t place, const struct taint_live *chosen)
{
	bool any = false;
	for (unsigned i = 0; i < t->row_count; i++)
		for (unsigned at = 0; at < 64; at++) {
			struct taint_entry *entry = &t->entries[place];
			unsigned row = t->rows[i];
			set_id *into = entry->sets + (size_t)i * 64 + at, before = *into;
			if (!(t->live.at[place].bits[row] & chosen->bits[row] & (uint64_t)1 << at))
				continue;
			*into = sets_join(&t->sets, before, t->source.rows[i][at]);
			entry->changed.bits[row] |= (uint64_t)(*into != before) << at;
			any |= *into != before;
		}
	return any;
}

static bool alike(const struct stage *a, const struct stage *b)
{
	size_t words = (size_t)a->t->sets.count * 2 * a->t->sets.half;
	for (unsigned place = 0; place < PLACES; place++)
		if (memcmp(&a->entries[place].changed, &b->entries[place].changed, sizeof a->entries[place].changed) != 0)
			return false;
	return !memcmp(a->sets, b->sets, sizeof a->sets) && a->t->sets.count == b->t->sets.count &&
	       !memcmp(a->t->sets.bits, b->t->sets.bits, words * sizeof *a->t->sets.bits);
}

/* The same source into one place after the other, with a few registers that others hold in between. False: they differ. */
static bool round_of(taint_joins *const joins[], struct stage *stages, unsigned count, unsigned long *ret_changed)
{
	fill(&stages[0]);
	for (unsigned reg = 0; reg < TAINT_REGISTERS; reg++)
		stages[0].source[reg] = (set_id)(draw() % pool);
	for (unsigned i = count; i-- > 0;)
		take(&stages[0], &stages[i]);
	for (unsigned place = 0; place < PLACES; place++) {
		struct taint_live chosen;
		for (unsigned row = 0; row < ROWS; row++)
			chosen.bits[row] = some_bits();
		unsigned reg = draw() % TAINT_REGISTERS;
		set_id set = (set_id)(draw() % pool);
		bool any = false;
		for (unsigned i = 0; i < count; i++) {
			stages[i].source[reg] = set;
			bool changed = joins[i](stages[i].t, place, &chosen);
			if (i && (changed != any || !alike(&stages[0], &stages[i])))
				return false;
			any = changed;
		}
		*ret_changed += any;
	}
	return true;
}

static bool are_alike(unsigned long rounds)
{
	static struct stage stages[3];
	taint_joins *const joins[] = {join_plainly, taint_join_narrow, taint_join_wide};
	unsigned count = wide_is_there() ? 3 : 2;
	unsigned long changed = 0;
	bool good = true;
	for (unsigned i = 0; i < count; i++)
		set_up(&stages[i], i == 2);
	pool = stages[0].t->sets.count < POOL ? stages[0].t->sets.count : POOL;
	for (unsigned long round = 0; round < rounds && good; round++) {
		good = round_of(joins, stages, count, &changed);
		if (!good)
			printf("round %lu: they differ\n", round);
	}
	for (unsigned i = 0; i < count; i++)
		tear_down(&stages[i]);
	printf("%u members, %lu rounds, %u ways, something changed in %lu of %lu places\n", members, rounds, count,
	       changed, rounds * PLACES);
	return good && changed && changed != rounds * PLACES;
}

int main(int argc, char **argv)
{
	unsigned long rounds = argc > 1 ? strtoul(argv[1], NULL, 0) : 2000;
	bool good = true;
	for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
		members = sizes[i];
		good &= are_alike(rounds);
	}
	return !good;
}
