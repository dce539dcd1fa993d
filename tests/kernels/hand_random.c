/*
 * Random kernels of a few instructions, put in the place of copy(to, from, n) of small_90.cubin, and run by an
 * interpreter of those instructions: pairs that are moved and selected under predicates that are moved, written again,
 * branched and waited on. What is said to be clear, for any values or for one n, must name what each store of each run
 * went through. hand_random CUBIN FIRST COUNT [answers]: with a fourth argument it prints what the analysis says instead.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shim/kernels/elf.h"
#include "shim/kernels/paths.h"
#include "tests/kernels/file.h"
#include "tests/kernels/random_text.h"

#define KERNEL "copy"
#define N_OFFSET 16
#define LENGTH 24
#define RUNS 8
#define STEPS 120
#define RZ 255

enum op {
	LOAD_TO,
	LOAD_FROM,
	LOAD_N,
	LOAD_PAIR,
	LOAD_WORD,
	MOVE,
	SELECT,
	CLEAR,
	NOT_ZERO,
	EQUAL,
	OUT,
	OUT_OVER,
	STORE,
	JUMP,
	ARM,
	WAIT,
	LEAVE,
	OPS
};
static const unsigned char weights[OPS] = {9, 4, 3, 4, 5, 6, 4, 2, 8, 3, 5, 1, 8, 4, 2, 2, 2};

struct insn {
	enum op op;
	unsigned guard, d, a, b, p; /* guard: 8 more is negated; p: second predicate, or the one that is written */
	int ahead;
};

struct word {
	uint64_t low, high;
};

static struct word encode(const struct insn *insn)
{
	uint64_t guard = (uint64_t)insn->guard << 12, d = (uint64_t)insn->d << 16, a = (uint64_t)insn->a << 24,
		 b = (uint64_t)insn->b << 32, none = (uint64_t)RZ << 24, p = (uint64_t)insn->p;
	uint64_t words = (uint64_t)((int64_t)insn->ahead * 4);
	switch (insn->op) {
	case LOAD_TO:
		return (struct word){0x0000840000000b82 | guard | d | none, 0x000e620000000a00};
	case LOAD_FROM:
		return (struct word){0x0000860000000b82 | guard | d | none, 0x000e620000000a00};
	case LOAD_N:
		return (struct word){0x0000880000000b82 | guard | d | none, 0x000e620000000800};
	case LOAD_PAIR:
		return (struct word){0x0000000400000981 | guard | d | a, 0x000ea4000c1e1b00};
	case LOAD_WORD:
		return (struct word){0x0000000400000981 | guard | d | a, 0x000ea4000c1e1900};
	case MOVE:
		return (struct word){0x0000000000000202 | guard | d | b, 0x000fe20000000f00};
	case SELECT:
		return (struct word){0x0000000000000207 | guard | d | a | b, 0x000fe20000000000 | p << 23};
	case CLEAR:
		return (struct word){0x000000ffff000224 | guard | d, 0x000fe200078e00ff};
	case NOT_ZERO:
		return (struct word){0x000000ff0000020c | guard | a, 0x000fe20003f05270 | p << 17};
	case EQUAL:
		return (struct word){0x000000ff0000020c | guard | a, 0x000fe20003f02270 | p << 17};
	case OUT:
		return (struct word){0x00000000ff000803 | guard | d | UINT64_C(1) << p << 32, 0x000fe40000000000};
	case OUT_OVER:
		return (struct word){0x0000000000000803 | guard | d | a | UINT64_C(1) << p << 32, 0x000fe40000000000};
	case STORE:
		return (struct word){0x0000000000000986 | guard | a | b, 0x000fe2000c101904};
	case JUMP:
		return (struct word){0x0000000000000947 | guard | (words & 0xff) << 16 | words >> 8 << 34,
		                     0x000fea0000000000 | p << 23 | (words >> 38 & 0x3ffff)};
	case ARM:
		return (struct word){0x0000000000000945 | guard | (uint64_t)insn->ahead << 36,
		                     0x000fe20000000000 | p << 23};
	case WAIT:
		return (struct word){0x0000000000000941 | guard, 0x000fea0003800000};
	default:
		return (struct word){0x000000000000094d | guard, 0x000fea0000000000 | p << 23};
	}
}

/* A pair in R2, R4 or R6; a word in R8 to R10, sometimes a half of a pair. */
static unsigned pair_of(uint64_t *random)
{
	return 2 + 2 * random_below(random, 3);
}
static unsigned word_of(uint64_t *random)
{
	return random_below(random, 8) ? 8 + random_below(random, 3) : 2 + random_below(random, 6);
}
static unsigned guard_of(uint64_t *random)
{
	return random_below(random, 2) ? 7 : random_below(random, 3) + (random_below(random, 4) ? 0 : 8);
}

static enum op op_of(uint64_t *random)
{
	unsigned sum = 0, at;
	for (unsigned op = 0; op < OPS; op++)
		sum += weights[op];
	at = random_below(random, sum);
	enum op op = 0;
	while (at >= weights[op])
		at -= weights[op++];
	return op;
}

/* One instruction, or two that do the same to both halves of a pair. */
static unsigned generate_step(uint64_t *random, unsigned at, struct insn *ret_insn)
{
	enum op op = op_of(random);
	struct insn insn = {
		op, guard_of(random), word_of(random), word_of(random), word_of(random), random_below(random, 3), 0};
	switch (op) {
	case LOAD_PAIR:
	case LOAD_TO:
	case LOAD_FROM:
		insn.d = insn.a = pair_of(random);
		insn.a = pair_of(random);
		break;
	case LOAD_WORD:
		insn.a = pair_of(random);
		break;
	case STORE:
		insn.a = pair_of(random);
		insn.b = 0;
		break;
	case MOVE:
	case SELECT:
		if (!random_below(random, 3))
			break;
		insn.d = pair_of(random), insn.a = pair_of(random), insn.b = pair_of(random);
		ret_insn[1] = insn;
		ret_insn[1].d++, ret_insn[1].a++, ret_insn[1].b++;
		ret_insn[0] = insn;
		return 2;
	case JUMP:
		insn.ahead = random_below(random, 4) ? (int)random_below(random, 5)
		                                     : -(int)random_below(random, at < 6 ? at + 1 : 7) - 1;
		insn.p = random_below(random, 3) ? 7 : random_below(random, 3);
		break;
	case ARM:
		insn.ahead = (int)random_below(random, 8);
		insn.p = random_below(random, 3) ? 7 : random_below(random, 3);
		insn.guard = 7;
		break;
	case WAIT:
		insn.guard = 7;
		break;
	case LEAVE:
		insn.p = random_below(random, 3) ? 7 : random_below(random, 3);
		break;
	default:
		break;
	}
	ret_insn[0] = insn;
	return 1;
}

static void generate(uint64_t seed, struct insn code[LENGTH])
{
	uint64_t random = (seed + 1) * 0x9e3779b97f4a7c15u;
	unsigned at = 0, end = 9 + random_below(&random, LENGTH - 10);
	code[at++] = (struct insn){random_below(&random, 4) ? LOAD_TO : LOAD_FROM, 7, 2, 0, 0, 0, 0};
	code[at++] = (struct insn){LOAD_FROM, 7, 4, 0, 0, 0, 0};
	if (random_below(&random, 2))
		code[at++] = (struct insn){LOAD_PAIR, 7, 2, 4, 0, 0, 0};
	if (random_below(&random, 2)) {
		code[at++] = (struct insn){LOAD_N, 7, 10, 0, 0, 0, 0};
		code[at++] = (struct insn){random_below(&random, 2) ? NOT_ZERO : EQUAL, 7, 0, 10, 0, 2, 0};
	}
	while (at < end)
		at += generate_step(&random, at, code + at);
	while (at < LENGTH)
		code[at++] = (struct insn){LEAVE, 7, 0, 0, 0, 7, 0};
}

/* All behind them ends the kernel. */
static int put(uint8_t *image, size_t bytes, const struct insn code[LENGTH])
{
	static const struct insn leave = {LEAVE, 7, 0, 0, 0, 7, 0};
	struct elf elf;
	struct elf_section section;
	if (elf_open(image, bytes, &elf) || elf_section_named(&elf, ".text.", KERNEL, &section) ||
	    section.bytes < 16 * LENGTH)
		return -1;
	for (size_t i = 0; i < section.bytes / 16; i++) {
		struct word word = encode(i < LENGTH ? &code[i] : &leave);
		memcpy(image + (section.data - image) + 16 * i, &word, 16);
	}
	return 0;
}

static const char *name_of(const uint32_t *n)
{
	return !n ? "any" : *n ? "1" : "0";
}

static void print_code(const struct insn code[LENGTH])
{
	static const char *const names[OPS] = {"to",     "from",  "n",        "pair",  "word", "move",
	                                       "select", "clear", "not_zero", "equal", "out",  "out_over",
	                                       "store",  "jump",  "arm",      "wait",  "leave"};
	for (unsigned i = 0; i < LENGTH; i++)
		printf("  %2u @%c%u %s d %u a %u b %u p %u ahead %d\n", i, code[i].guard & 8 ? '!' : ' ',
		       code[i].guard & 7, names[code[i].op], code[i].d, code[i].a, code[i].b, code[i].p, code[i].ahead);
}

/* What a run stored through: a slot, or a pair that was loaded. */
struct log {
	bool slot[2], loaded;
};

#define TO UINT64_C(0x00007a1000100000)
#define FROM UINT64_C(0x00007b2000200000)
#define LOADED UINT64_C(0x00007c3000300000)

struct thread {
	uint32_t r[256];
	bool p[8];
	int armed; /* -1: nowhere */
};

static bool holds(const struct thread *thread, unsigned predicate)
{
	return thread->p[predicate & 7] != (predicate >> 3 & 1);
}

static void set_pair(struct thread *thread, unsigned reg, uint64_t value)
{
	thread->r[reg] = (uint32_t)value;
	thread->r[reg + 1] = (uint32_t)(value >> 32);
}

/* Of which address a word is a half: 0 to, 1 from, 2 loaded; -1: a number. */
static int half_of(uint32_t word, unsigned shift)
{
	static const uint64_t addresses[] = {TO, FROM, LOADED};
	for (int i = 0; i < 3; i++)
		if (word == (uint32_t)(addresses[i] >> shift))
			return i;
	return -1;
}

/* One that is put together from a number or from halves of two, as where a jump leads between them, is nobody's. */
static void note_store(const struct thread *thread, unsigned reg, struct log *log)
{
	int low = half_of(thread->r[reg], 0), high = half_of(thread->r[reg + 1], 32);
	if (low < 0 || low != high)
		return;
	if (low == 2)
		log->loaded = true;
	else
		log->slot[low] = true;
}

/* Where it goes on; LENGTH: it ends. */
static int run_insn(struct thread *thread, const struct insn *insn, int at, uint32_t n, uint64_t *random, struct log *log)
{
	uint32_t bit = UINT32_C(1) << (insn->p & 7);
	uint32_t flags = (uint32_t)(thread->p[0] | thread->p[1] << 1 | thread->p[2] << 2);
	if (insn->op != WAIT && !holds(thread, insn->guard))
		return at + 1;
	switch (insn->op) {
	case LOAD_TO:
		set_pair(thread, insn->d, TO);
		break;
	case LOAD_FROM:
		set_pair(thread, insn->d, FROM);
		break;
	case LOAD_N:
		thread->r[insn->d] = n;
		break;
	case LOAD_PAIR:
		set_pair(thread, insn->d, LOADED);
		break;
	case LOAD_WORD:
		thread->r[insn->d] = random_below(random, 2);
		break;
	case MOVE:
		thread->r[insn->d] = thread->r[insn->b];
		break;
	case SELECT:
		thread->r[insn->d] = thread->r[holds(thread, insn->p) ? insn->a : insn->b];
		break;
	case CLEAR:
		thread->r[insn->d] = 0;
		break;
	case NOT_ZERO:
	case EQUAL:
		thread->p[insn->p] = (thread->r[insn->a] != 0) == (insn->op == NOT_ZERO);
		break;
	case OUT:
		thread->r[insn->d] = flags & bit;
		break;
	case OUT_OVER:
		thread->r[insn->d] = (thread->r[insn->a] & ~bit) | (flags & bit);
		break;
	case STORE:
		note_store(thread, insn->a, log);
		break;
	case JUMP:
		return holds(thread, insn->p) ? at + 1 + insn->ahead : at + 1;
	case ARM:
		if (holds(thread, insn->p))
			thread->armed = at + 1 + insn->ahead;
		break;
	case WAIT:
		return thread->armed < 0 ? LENGTH : thread->armed;
	default:
		return holds(thread, insn->p) ? LENGTH : at + 1;
	}
	return at + 1;
}

static void run(const struct insn code[LENGTH], uint32_t n, uint64_t *random, struct log *log)
{
	struct thread thread = {.armed = -1, .p = {[7] = true}};
	int at = 0;
	for (unsigned i = 0; i < 3; i++)
		thread.p[i] = random_below(random, 2);
	for (unsigned step = 0; at >= 0 && at < LENGTH && step < STEPS; step++)
		at = run_insn(&thread, &code[at], at, n, random, log);
}

/* For any values, or for one n. False: it is not said to be clear, or nothing more is known for that n. */
static bool is_clear(const uint8_t *image, size_t bytes, const uint32_t *n, struct kernel_paths *ret_paths)
{
	uint8_t block[24] = {0}, known[24] = {0}, used[24];
	struct paths_values values = {block, known, used, sizeof block, NULL};
	bool better = true;
	*ret_paths = (struct kernel_paths){0};
	if (n) {
		memcpy(block + N_OFFSET, n, sizeof *n);
		memset(known + N_OFFSET, VALUE_EXACT, sizeof *n);
	}
	int err = n ? paths_for_cubin(image, bytes, KERNEL, &values, ret_paths, &better)
	            : paths_of_cubin(image, bytes, KERNEL, ret_paths);
	return !err && better && ret_paths->reason == PATHS_CLEAR;
}

static void print_answer(uint64_t seed, const uint32_t *n, const struct kernel_paths *paths)
{
	printf("%lu for %s: reason %d at %#x, %zu stores", (unsigned long)seed, name_of(n), paths->reason,
	       paths->reason_offset, paths->store_count);
	for (size_t i = 0; i < paths->slot_count; i++)
		printf(" %d%d%d", paths->slots[i].use, paths->slots[i].only_base, paths->slots[i].compared);
	printf("\n");
}

struct tally {
	unsigned long clear, missed;
};

/* n: of the values that the answer is for, or NULL. */
static void judge(const uint8_t *image, size_t bytes, uint64_t seed, const struct insn code[LENGTH], const uint32_t *n,
                  struct tally *tally, bool answers)
{
	struct kernel_paths paths;
	struct log log = {{false, false}, false};
	uint64_t random = (seed + 1) * 0xd1342543de82ef95u;
	bool clear = is_clear(image, bytes, n, &paths);
	if (answers)
		print_answer(seed, n, &paths);
	for (unsigned i = 0; clear && i < RUNS; i++)
		run(code, n ? *n : random_below(&random, 2), &random, &log);
	bool missed = clear && (log.loaded || (log.slot[0] && paths.slots[0].use != SLOT_STORE) ||
	                        (log.slot[1] && paths.slots[1].use != SLOT_STORE));
	if (missed) {
		printf("MISSED %lu for %s: %s%s%s\n", (unsigned long)seed, name_of(n), log.slot[0] ? " to" : "",
		       log.slot[1] ? " from" : "", log.loaded ? " loaded" : "");
		print_code(code);
	}
	tally->clear += clear;
	tally->missed += missed;
	kernel_paths_free(&paths);
}

int main(int argc, char **argv)
{
	static const uint32_t zero = 0, one = 1;
	size_t bytes;
	struct tally any = {0}, given = {0};
	uint8_t *image = argc >= 4 ? read_whole(argv[1], &bytes) : NULL;
	if (!image)
		return 2;
	uint64_t first = strtoull(argv[2], NULL, 10), count = strtoull(argv[3], NULL, 10);
	for (uint64_t seed = first; seed < first + count; seed++) {
		struct insn code[LENGTH];
		generate(seed, code);
		if (put(image, bytes, code))
			return 2;
		judge(image, bytes, seed, code, NULL, &any, argc > 4);
		judge(image, bytes, seed, code, &zero, &given, argc > 4);
		judge(image, bytes, seed, code, &one, &given, argc > 4);
	}
	free(image);
	if (argc <= 4)
		printf("%lu kernels: clear %lu for any values and %lu for given ones, missed %lu and %lu\n",
		       (unsigned long)count, any.clear, given.clear, any.missed, given.missed);
	return any.missed || given.missed;
}
