/*
 * What taint_effect() says an instruction reads and writes, against what taint_steps() does: every row of the table, in each form, with random fields, runs
 * twice. What it is said to depend on is the same both times, all else is not; what it leaves behind must be the same. effect [ROUNDS]
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shim/kernels/taint.h"

#define WORDS 32 /* of parameters */
#define POOL 400 /* sets to draw from */

static uint64_t seed = 0x9e3779b97f4a7c15u;

static uint64_t draw(void)
{
	seed ^= seed << 13, seed ^= seed >> 7, seed ^= seed << 17;
	return seed;
}

struct stage {
	struct program program;
	struct sass_insn insn;
	uint8_t mark;
	uint32_t link, guard;
	struct kernel_paths paths;
	struct taint *t;
	set_id pool[POOL];
};

/* All that an instruction may change. */
struct outcome {
	struct taint_state now;
	struct taint_words local_any, local_unplaced, shared, global;
	struct slot_paths slots[WORDS / 2];
	struct store_site stores[PATHS_STORES];
	size_t store_count;
	enum paths_reason reason, stop;
	struct taint_cell cells[64];
	struct taint_guarded guarded[TAINT_REGISTERS];
};

static set_id any_set(const struct stage *stage)
{
	return draw() % 4 ? stage->pool[draw() % POOL] : 0;
}

static void set_up(struct stage *stage, unsigned sm)
{
	*stage = (struct stage){.link = PROGRAM_NONE};
	stage->program = (struct program){
		.arena = arena_open(), .insns = &stage->insn, .marks = &stage->mark, .links = &stage->link, .count = 1};
	if (!stage->program.arena)
		abort();
	sass_machine_init(&stage->program.machine, sm);
	stage->program.params_at = stage->program.machine.params_at;
	stage->program.params_bytes = WORDS * 4;
	struct taint *t = stage->t = calloc(1, sizeof *t);
	t->program = &stage->program;
	t->paths = &stage->paths;
	stage->paths.slot_count = WORDS / 2;
	stage->paths.slots = calloc(WORDS / 2, sizeof *stage->paths.slots);
	stage->paths.stores = calloc(PATHS_STORES, sizeof *stage->paths.stores);
	t->word_count = WORDS;
	t->wide = calloc(WORDS, sizeof *t->wide);
	t->whole = calloc(WORDS, sizeof *t->whole);
	memset(t->wide, 1, WORDS / 2);
	memset(t->whole, 1, WORDS / 4);
	t->ones = calloc(FROM_PARAMS + WORDS + 1, sizeof *t->ones);
	t->guards = &stage->guard;
	stage->guard = 1;
	if (sets_init(&t->sets, stage->program.arena, FROM_PARAMS + WORDS + 1, false) ||
	    sets_init(&t->targets, stage->program.arena, 8, false))
		abort();
	t->all_params = sets_range(&t->sets, FROM_PARAMS, FROM_PARAMS + WORDS);
	t->indexed_params = t->all_params;
	t->loaded = sets_range(&t->sets, FROM_LOADED_LOW, FROM_LOADED_32 + 1);
	for (unsigned i = 0; i < POOL; i++) {
		set_id set = taint_one(t, draw() % 3 ? FROM_PARAMS + draw() % WORDS : draw() % (FROM_PIECE + 1));
		if (draw() % 2)
			set = taint_join(t, set, taint_one(t, FROM_PARAMS + draw() % WORDS));
		stage->pool[i] = draw() % 3 ? set : sets_turn(&t->sets, set, SETS_SCALED);
	}
}

static void tear_down(struct stage *stage)
{
	arena_close(stage->program.arena);
	free(stage->t->wide);
	free(stage->t->whole);
	free(stage->t->ones);
	free(stage->t);
	free(stage->paths.slots);
	free(stage->paths.stores);
}

static struct taint_words any_words(const struct stage *stage)
{
	return (struct taint_words){{any_set(stage), any_set(stage)}};
}

/* What may stand in the registers and in memory before it runs. */
struct before {
	struct taint_state now;
	struct taint_words local_any, local_unplaced, shared, global;
	struct taint_known known[TAINT_REGISTERS];
	struct taint_guarded guarded[TAINT_REGISTERS];
};

static void draw_before(const struct stage *stage, struct before *before)
{
	for (unsigned reg = 0; reg < TAINT_REGISTERS; reg++)
		before->now.registers[reg] = any_set(stage);
	for (unsigned i = 0; i < 16; i++)
		before->now.armed[i] = sets_range(&stage->t->targets, 0, draw() % 8);
	before->now.stack = (int32_t)(draw() % 64 * 8);
	before->local_any = any_words(stage);
	before->local_unplaced = any_words(stage);
	before->shared = any_words(stage);
	before->global = any_words(stage);
	for (unsigned i = 0; i < TAINT_REGISTERS; i++)
		before->known[i] = (struct taint_known){draw() % 3 == 0, (uint32_t)(draw() % 5 ? draw() % 40 : draw())};
	/* Nothing is ever written to the zero registers. */
	before->known[SASS_RZ].stamp = 0;
	before->known[TAINT_UNIFORM + stage->program.machine.uniform_zero].stamp = 0;
}

static void keep(const struct before *from, struct before *to, taint_packed range)
{
	for (unsigned reg = taint_range_first(range); reg < taint_range_first(range) + taint_range_count(range); reg++) {
		to->now.registers[reg] = from->now.registers[reg];
		to->known[reg] = from->known[reg];
	}
}

static void run(struct stage *stage, const struct before *before, bool recording, enum taint_plan plan,
                struct outcome *ret_outcome)
{
	struct taint *t = stage->t;
	struct taint_step step = {.when = WHEN_FIRST, .plan = (uint8_t)plan};
	taint_packed reads[TAINT_EFFECT_READS];
	struct taint_effect effect = {.reads = reads};
	uint16_t last = SETS_NONE;
	taint_effect(&stage->program, 0, &effect);
	/* One result that is overwritten: in short it has a way of its own. */
	step.single = plan == TAINT_UNPLANNED && effect.kill_count == 1 && effect.write_count == 1 &&
	              taint_range_count(effect.writes[0]) == 1;
	step.result = (uint16_t)taint_range_first(effect.writes[0]);
	t->live.results = &last;
	t->live.ranges = effect.writes;
	t->now = before->now;
	t->local_any = before->local_any;
	t->local_unplaced = before->local_unplaced;
	t->shared = before->shared;
	t->global = before->global;
	t->stamp = 1;
	t->first = true;
	t->when = WHEN_FIRST;
	t->recording = recording;
	t->stop = PATHS_CLEAR;
	memcpy(t->known, before->known, sizeof t->known);
	memcpy(t->guarded, before->guarded, sizeof t->guarded);
	memset(t->judged, 0, sizeof t->judged);
	memset(t->sets.marks, 0, t->sets.count);
	arena_put(stage->program.arena, t->cells, t->cell_count * sizeof *t->cells);
	t->cells = NULL;
	t->cell_count = t->cell_used = 0;
	memset(stage->paths.slots, 0, WORDS / 2 * sizeof *stage->paths.slots);
	memset(stage->paths.stores, 0, PATHS_STORES * sizeof *stage->paths.stores);
	stage->paths.store_count = 0;
	stage->paths.reason = PATHS_CLEAR;
	if (!stage->insn.never)
		taint_steps(t, &step, &step + 1);
	t->live.results = NULL;
	t->live.ranges = NULL;
	memset(ret_outcome, 0, sizeof *ret_outcome);
	ret_outcome->now = t->now;
	ret_outcome->local_any = t->local_any;
	ret_outcome->local_unplaced = t->local_unplaced;
	ret_outcome->shared = t->shared;
	ret_outcome->global = t->global;
	memcpy(ret_outcome->slots, stage->paths.slots, sizeof ret_outcome->slots);
	memcpy(ret_outcome->stores, stage->paths.stores, sizeof ret_outcome->stores);
	memcpy(ret_outcome->guarded, t->guarded, sizeof ret_outcome->guarded);
	ret_outcome->store_count = stage->paths.store_count;
	ret_outcome->reason = stage->paths.reason;
	ret_outcome->stop = t->stop;
	if (t->cells)
		memcpy(ret_outcome->cells, t->cells, 64 * sizeof *t->cells);
}

static bool written(const struct taint_effect *effect, unsigned reg)
{
	for (unsigned i = 0; i < effect->write_count; i++)
		if (reg - taint_range_first(effect->writes[i]) < taint_range_count(effect->writes[i]))
			return true;
	return false;
}

/* Registers: those said to be written agree, the others are what they were. */
static const char *registers_wrong(const struct taint_effect *effect, const struct before before[2],
                                   const struct outcome outcome[2])
{
	for (unsigned reg = 0; reg < TAINT_REGISTERS; reg++) {
		if (written(effect, reg) && outcome[0].now.registers[reg] != outcome[1].now.registers[reg])
			return "a result depends on what it is not said to read";
		for (unsigned i = 0; i < 2; i++)
			if (!written(effect, reg) && outcome[i].now.registers[reg] != before[i].now.registers[reg])
				return "a register is written that is not said to be";
	}
	return NULL;
}

static bool same_memory(const struct outcome *a, const struct outcome *b)
{
	return !memcmp(&a->local_any, &b->local_any, sizeof a->local_any) &&
	       !memcmp(&a->local_unplaced, &b->local_unplaced, sizeof a->local_unplaced) &&
	       !memcmp(&a->shared, &b->shared, sizeof a->shared) && !memcmp(&a->global, &b->global, sizeof a->global) &&
	       !memcmp(a->cells, b->cells, sizeof a->cells);
}

static bool same_findings(const struct outcome *a, const struct outcome *b)
{
	return !memcmp(a->slots, b->slots, sizeof a->slots) && !memcmp(a->stores, b->stores, sizeof a->stores) &&
	       a->store_count == b->store_count && a->reason == b->reason && a->stop == b->stop;
}

/* Nothing but its results: no memory, no barrier, no stack pointer. */
static bool quiet(const struct before *before, const struct outcome *outcome)
{
	struct outcome other = *outcome;
	other.local_any = before->local_any;
	other.local_unplaced = before->local_unplaced;
	other.shared = before->shared;
	other.global = before->global;
	return same_memory(outcome, &other) && !memcmp(outcome->now.armed, before->now.armed, sizeof before->now.armed) &&
	       outcome->now.stack == before->now.stack;
}

/* In short as in full, whatever registers hold where the predicate is true. */
static const char *short_wrong(struct stage *stage, struct before *before, bool recording)
{
	struct outcome outcome[2];
	for (unsigned i = 0; i < TAINT_REGISTERS; i++)
		before->guarded[i] = (struct taint_guarded){draw() % 2, draw() % 2, {any_set(stage), any_set(stage)}};
	before->guarded[SASS_RZ].stamp = 0;
	before->guarded[TAINT_UNIFORM + stage->program.machine.uniform_zero].stamp = 0;
	run(stage, before, recording, TAINT_UNPLANNED, &outcome[0]);
	run(stage, before, recording, TAINT_IN_FULL, &outcome[1]);
	return memcmp(&outcome[0], &outcome[1], sizeof outcome[0]) ? "in short it does something else" : NULL;
}

static const char *wrong(struct stage *stage, const struct taint_effect *effect, bool recording)
{
	struct before before[2];
	struct outcome outcome[2];
	memset(before, 0, sizeof before);
	draw_before(stage, &before[0]);
	draw_before(stage, &before[1]);
	for (unsigned i = 0; i < effect->read_count; i++)
		keep(&before[0], &before[1], effect->reads[i]);
	for (unsigned i = effect->kill_count; i < effect->write_count; i++)
		keep(&before[0], &before[1], effect->writes[i]);
	bool memory = effect->acts || effect->recalls || effect->again;
	if (memory) {
		before[1].local_any = before[0].local_any;
		before[1].local_unplaced = before[0].local_unplaced;
		before[1].shared = before[0].shared;
		before[1].global = before[0].global;
	}
	if (effect->again) {
		before[1].now.stack = before[0].now.stack;
		memcpy(before[1].now.armed, before[0].now.armed, sizeof before[0].now.armed);
	}
	for (unsigned i = 0; i < 2; i++)
		run(stage, &before[i], recording, TAINT_UNPLANNED, &outcome[i]);
	const char *what = registers_wrong(effect, before, outcome);
	if (!what)
		what = short_wrong(stage, &before[0], recording);
	if (what)
		return what;
	if (memory && !same_memory(&outcome[0], &outcome[1]))
		return "what it leaves in memory depends on what it is not said to read";
	if (!effect->acts && !(quiet(&before[0], &outcome[0]) && quiet(&before[1], &outcome[1])))
		return "it is said to have results only";
	if (!same_findings(&outcome[0], &outcome[1]))
		return "what it tells depends on what it is not said to read";
	bool tells = outcome[0].store_count || outcome[0].reason;
	for (unsigned i = 0; i < WORDS / 2; i++)
		tells |= outcome[0].slots[i].use || outcome[0].slots[i].loaded || outcome[0].slots[i].compared;
	return tells && !effect->acts && !effect->records ? "it tells something that it is not said to" : NULL;
}

static int check(struct stage *stage, const struct sass_row *row, unsigned form)
{
	uint8_t code[16];
	uint64_t low = draw(), high = draw();
	static const uint8_t favourites[] = {255, 254, 63, 62, 0, 1, 4, 5};
	low = (low & ~UINT64_C(0xfff)) | row->base | (uint64_t)form << 9;
	if (draw() % 2)
		low |= UINT64_C(0x7000), low &= ~UINT64_C(0x8000); /* no guard */
	for (unsigned shift = 16; shift <= 32; shift += 8)
		if (draw() % 3 == 0)
			low = (low & ~(UINT64_C(0xff) << shift)) | (uint64_t)favourites[draw() % 8] << shift;
	if (row->bit91 != SASS_ANY)
		high = (high & ~(UINT64_C(1) << 27)) | (uint64_t)row->bit91 << 27;
	for (unsigned i = 0; i < 8; i++)
		code[i] = (uint8_t)(low >> 8 * i), code[8 + i] = (uint8_t)(high >> 8 * i);
	sass_decode(&stage->program.machine, code, &stage->insn);
	if (!stage->insn.row)
		return 0;
	static const uint8_t marks[] = {0, 0, 0, MARK_GLOBAL, MARK_FUNCTION, MARK_EXTERNAL, MARK_UNKNOWN};
	stage->mark = marks[draw() % sizeof marks];
	taint_packed reads[TAINT_EFFECT_READS];
	struct taint_effect effect = {.reads = reads};
	taint_effect(&stage->program, 0, &effect);
	const char *what = wrong(stage, &effect, draw() % 2);
	if (what)
		printf("sm_%u %s form %u %016lx %016lx mark %u: %s\n", stage->program.machine.sm, row->name, form,
		       (unsigned long)low, (unsigned long)high, stage->mark, what);
	return what ? -1 : 1;
}

/* Instructions of two sources at most leave bits 64 to 71 at 0, as compilers do: that is not R0, and no address comes from there. */
static unsigned long third_sources(void)
{
	static const uint16_t two[] = {0x007, 0x008, 0x013, 0x017, 0x01a, 0x036, 0x048, 0x087, 0x0bd, 0x0bf};
	static const uint8_t forms[] = {1, 4, 6};
	struct stage stage;
	unsigned long failures = 0;
	set_up(&stage, 90);
	for (size_t i = 0; i < sizeof two / sizeof two[0] * sizeof forms; i++) {
		uint64_t low = two[i / sizeof forms] | (uint64_t)forms[i % sizeof forms] << 9 | UINT64_C(0x605047000);
		uint8_t code[16] = {0};
		for (unsigned k = 0; k < 8; k++)
			code[k] = (uint8_t)(low >> 8 * k);
		sass_decode(&stage.program.machine, code, &stage.insn);
		taint_packed reads[TAINT_EFFECT_READS];
		struct taint_effect effect = {.reads = reads};
		taint_effect(&stage.program, 0, &effect);
		for (unsigned k = 0; k < effect.read_count; k++)
			if (taint_range_first(effect.reads[k]) % TAINT_UNIFORM == 0) {
				printf("%s form %u reads a third source\n", stage.insn.row->name,
				       forms[i % sizeof forms]);
				failures++;
			}
	}
	tear_down(&stage);
	return failures;
}

/*
 * A register that a guard wrote holds that under the same guard until something writes the predicate. Bits 81 to 86 are 0 in constant and other loads:
 * that is not P0. In IADD3 they are carries.
 */
static unsigned long predicates(void)
{
	static const struct {
		uint64_t low, high;
		unsigned bumped;
	} rows[] = {
		{UINT64_C(0x00009e00ff0e7b82), UINT64_C(0x00000a0000000a00), 0},    /* LDC.64 R14, c[0x0][0x278] */
		{UINT64_C(0x0000000e140a7210), UINT64_C(0x000fe20007f1e0ff), 1},    /* IADD3 R10, P0, R20, R14, RZ */
		{UINT64_C(0x0000000806047209), UINT64_C(0x000fc00003fe0000), 0},    /* FMNMX R4, R6, R8, PT */
		{UINT64_C(0x0000000806047209), UINT64_C(0x000fc00003fe00f2), 0x10}, /* FMNMX.IS_A R4, P4, R6, R8, PT */
		{UINT64_C(0x0000000806047240), UINT64_C(0x000fc00003fe0072), 0x1818}, /* HMNMX2.IS_A R4, P4, P3, R6, R8, PT */
	};
	unsigned long failures = 0;
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		struct stage stage;
		set_up(&stage, 90);
		uint8_t code[16];
		for (unsigned k = 0; k < 8; k++)
			code[k] = (uint8_t)(rows[i].low >> 8 * k), code[8 + k] = (uint8_t)(rows[i].high >> 8 * k);
		sass_decode(&stage.program.machine, code, &stage.insn);
		unsigned said = constants_predicates(&stage.insn);
		if (said != rows[i].bumped) {
			printf("%s is said to write predicates %x\n", stage.insn.row->name, said);
			failures++;
		}
		tear_down(&stage);
	}
	return failures;
}

/* OP_UIADD3_64 stands for UIADD3.64, OP_RED_LATER for RED; "UF*" for all of a family. */
static bool names(const char *op, const char *row)
{
	for (; *row && *row != '*'; op++, row++)
		if (*row != *op && !(*row == '.' && *op == '_') && toupper(*row) != *op)
			return false;
	return *row == '*' || !*op || *op == '_';
}

/* Code asks for instructions by the numbers that they have in the table. */
static unsigned long numbers(void)
{
	static const struct {
		const char *name;
		unsigned number;
	} ops[] = {
#define SASS_OP(name, number) {#name, number},
#include "shim/kernels/sass_ops.def"
#undef SASS_OP
	};
	unsigned long failures = 0;
	for (size_t i = 0; i < sizeof ops / sizeof ops[0]; i++) {
		bool found = false;
		for (size_t k = 0; k < sass_row_count; k++)
			found |= sass_rows[k].base == ops[i].number && names(ops[i].name, sass_rows[k].name);
		if (!found) {
			printf("no row of %03x is called %s\n", ops[i].number, ops[i].name);
			failures++;
		}
	}
	return failures;
}

int main(int argc, char **argv)
{
	static const unsigned machines[] = {70, 75, 80, 90, 100, 120};
	unsigned long rounds = argc > 1 ? strtoul(argv[1], NULL, 10) : 20, ran = 0,
		      failures = third_sources() + predicates() + numbers();
	for (size_t i = 0; i < sizeof machines / sizeof machines[0] * rounds && failures < 20; i++) {
		struct stage stage;
		set_up(&stage, machines[i / rounds]);
		for (size_t k = 0; k < sass_row_count * 8; k++) {
			int said = check(&stage, &sass_rows[k / 8], k % 8);
			ran += said > 0;
			failures += said < 0;
		}
		failures += stage.t->sets.error || stage.t->targets.error;
		tear_down(&stage);
	}
	printf("%lu instructions, %lu wrong\n", ran, failures);
	return failures || ran < rounds * 1000;
}
