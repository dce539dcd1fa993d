/*
 * How long the registry's operations take with 1 to 10^6 ranges, next to a binary interval tree of scattered nodes.
 * Prints a Markdown table: median and 99th percentile in ns. Every operation is timed alone at a random place, and
 * the clock's own time is taken off. An argument gives another greatest size.
 */
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "registry/pages.h"
#include "registry/registry.h"
#include "tests/bench/registry_treap.h"

#define SAMPLES 50000
#define GREATEST 1000000
#define REGION UINT64_C(0x7f0000000000)
/* One range begins every STRIDE bytes; in sets with gaps its last quarter is free. */
#define STRIDE UINT64_C(4096)
#define GAP (STRIDE / 4)
/* Queries are this far inside a range or a gap, and this long. */
#define INSIDE 256
#define ASKED 64

struct set {
	const char *name;
	void (*place)(uint64_t nth, uint64_t *ret_start, uint64_t *ret_end);
	bool gaps; /* between ranges, so that there are misses inside the bounds */
};

struct bench {
	const struct set *set;
	uint64_t many;
	struct registry *reg;
	registry_handle *handles;
	struct treap_node *nodes, *treap; /* nodes[n] and handles[n] are those of the nth place */
	uint64_t *order;                  /* of places */
};

struct figure {
	uint64_t median, p99;
};

static uint64_t state = 88172645463325252;
static uint64_t clock_ns;    /* what reading the clock takes */
static volatile bool answer; /* keeps the compiler from leaving out a question */

static uint64_t draw(uint64_t below)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (state >> 3) % below;
}

static uint64_t now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

static void check(int error, const char *what)
{
	if (!error)
		return;
	fprintf(stderr, "registry_bench: %s: %s\n", what, strerror(-error));
	exit(1);
}

static void expect(bool right, const char *what)
{
	if (right)
		return;
	fprintf(stderr, "registry_bench: wrong answer: %s\n", what);
	exit(1);
}

static void place_disjoint(uint64_t nth, uint64_t *ret_start, uint64_t *ret_end)
{
	*ret_start = REGION + nth * STRIDE;
	*ret_end = *ret_start + STRIDE - GAP;
}

/* Eight rings, one within the other, on every eight strides, and a gap after them. */
static void place_nested(uint64_t nth, uint64_t *ret_start, uint64_t *ret_end)
{
	uint64_t block = REGION + nth / 8 * 8 * STRIDE, ring = nth % 8;

	*ret_start = block + ring * 16;
	*ret_end = block + 8 * STRIDE - GAP - ring * 16;
}

/* Each reaches over the next three. */
static void place_overlapping(uint64_t nth, uint64_t *ret_start, uint64_t *ret_end)
{
	*ret_start = REGION + nth * STRIDE;
	*ret_end = *ret_start + 4 * STRIDE - GAP;
}

static void insert(struct bench *bench, uint64_t nth)
{
	struct registry_spec spec = {.label = "bench"};

	bench->set->place(nth, &spec.start, &spec.end);
	check(registry_insert(bench->reg, &spec, &bench->handles[nth], NULL), "registry_insert");
}

static void take_out(struct bench *bench, uint64_t nth)
{
	check(registry_remove(bench->reg, bench->handles[nth], NULL), "registry_remove");
}

static void put_in_treap(struct bench *bench, uint64_t nth)
{
	treap_insert(&bench->treap, &bench->nodes[nth]);
}

static void take_out_of_treap(struct bench *bench, uint64_t nth)
{
	treap_remove(&bench->treap, &bench->nodes[nth]);
}

/* The queries: each makes ready, and says how long the thing itself took. */

static uint64_t time_clock(struct bench *bench)
{
	uint64_t before = now();

	return now() - before;
}

static uint64_t hit_at(struct bench *bench)
{
	uint64_t start, end;

	bench->set->place(draw(bench->many), &start, &end);
	return start + INSIDE;
}

/* The gap after a range that is not the last one of its block: what the last range leaves free is out of bounds. */
static uint64_t miss_at(struct bench *bench)
{
	uint64_t start, end, nth = draw(bench->many - 8);

	bench->set->place(bench->set->place == place_nested ? nth / 8 * 8 : nth, &start, &end);
	return end + INSIDE;
}

static uint64_t time_hit(struct bench *bench)
{
	uint64_t at = hit_at(bench), before = now(), after;

	answer = registry_hits(bench->reg, at, at + ASKED);
	after = now();
	expect(answer, "hit");
	return after - before;
}

static uint64_t time_reference(struct bench *bench)
{
	uint64_t at = hit_at(bench), before = now(), after;
	struct range *out[1];

	expect(registry_overlaps(bench->reg, at, at + ASKED, out, 1) > 0, "overlap");
	range_put(out[0]);
	after = now();
	return after - before;
}

static uint64_t time_miss(struct bench *bench)
{
	uint64_t at = miss_at(bench), before = now(), after;

	answer = registry_hits(bench->reg, at, at + ASKED);
	after = now();
	expect(!answer, "miss");
	return after - before;
}

static uint64_t time_treap_hit(struct bench *bench)
{
	uint64_t at = hit_at(bench), before = now(), after;

	answer = treap_hits(bench->treap, at, at + ASKED);
	after = now();
	expect(answer, "treap hit");
	return after - before;
}

static uint64_t time_treap_miss(struct bench *bench)
{
	uint64_t at = miss_at(bench), before = now(), after;

	answer = treap_hits(bench->treap, at, at + ASKED);
	after = now();
	expect(!answer, "treap miss");
	return after - before;
}

static int by_value(const void *left, const void *right)
{
	uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;

	return (a > b) - (a < b);
}

static uint64_t ns[SAMPLES], more_ns[SAMPLES];

static struct figure figure_of(uint64_t *times)
{
	for (size_t at = 0; at < SAMPLES; at++)
		times[at] -= times[at] < clock_ns ? times[at] : clock_ns;
	qsort(times, SAMPLES, sizeof *times, by_value);
	return (struct figure){.median = times[SAMPLES / 2], .p99 = times[SAMPLES * 99 / 100]};
}

/*
 * What one load takes that depends on the one before and goes to a random line of 64 MiB: the machine's own share
 * of a lookup.
 */
static double memory_ns(void)
{
	enum { LINES = 1 << 20, LOADS = 16 };
	struct line {
		struct line *next;
		char rest[56];
	} *lines = pages_map(LINES * sizeof *lines), *at = lines;

	check(lines ? 0 : -ENOMEM, "setting up");
	/* One cycle through all lines (Sattolo's shuffle). */
	for (size_t nth = 0; nth < LINES; nth++)
		lines[nth].next = &lines[nth];
	for (size_t nth = LINES - 1; nth > 0; nth--) {
		size_t other = draw(nth);
		struct line *swap = lines[nth].next;

		lines[nth].next = lines[other].next;
		lines[other].next = swap;
	}
	/* A few loads at a time, and the median: other programs want the processor too. */
	for (size_t sample = 0; sample < SAMPLES; sample++) {
		uint64_t before = now();

		for (size_t load = 0; load < LOADS; load++)
			at = at->next;
		answer = at != NULL;
		ns[sample] = now() - before;
	}
	pages_unmap(lines, LINES * sizeof *lines);
	return (double)figure_of(ns).median / LOADS;
}

static struct figure measure(struct bench *bench, uint64_t (*operation)(struct bench *))
{
	for (size_t at = 0; at < SAMPLES; at++)
		ns[at] = operation(bench);
	return figure_of(ns);
}

/* The first `many` of `order` become a random choice of all of it, in random order. */
static void choose(uint64_t *order, uint64_t all, uint64_t many)
{
	for (uint64_t at = 0; at < many; at++) {
		uint64_t other = at + draw(all - at), swap = order[at];

		order[at] = order[other];
		order[other] = swap;
	}
}

/*
 * Takes many out and puts them back in another order, so that nothing is still warm from the last operation at the
 * same place; half of all at the most, so that the size stays about what it says.
 */
static void measure_updates(struct bench *bench, void (*take)(struct bench *, uint64_t),
                            void (*put)(struct bench *, uint64_t), struct figure *ret_remove, struct figure *ret_insert)
{
	uint64_t batch = bench->many / 2 < 1 ? 1 : bench->many / 2, before;

	for (size_t done = 0; done < SAMPLES; done += batch) {
		batch = batch > SAMPLES - done ? SAMPLES - done : batch;
		choose(bench->order, bench->many, batch);
		for (uint64_t at = 0; at < batch; at++) {
			before = now();
			take(bench, bench->order[at]);
			ns[done + at] = now() - before;
		}
		choose(bench->order, batch, batch);
		for (uint64_t at = 0; at < batch; at++) {
			before = now();
			put(bench, bench->order[at]);
			more_ns[done + at] = now() - before;
		}
	}
	*ret_remove = figure_of(ns);
	*ret_insert = figure_of(more_ns);
}

static void print_figure(struct figure figure)
{
	printf(" %" PRIu64 " / %" PRIu64 " |", figure.median, figure.p99);
}

static void print_ratio(struct figure treap, struct figure own)
{
	printf(" %.1f |", (double)treap.median / (double)(own.median ? own.median : 1));
}

/* In random order: a long-lived program's nodes are scattered. */
static void fill(struct bench *bench)
{
	bench->order = malloc(bench->many * sizeof *bench->order);
	bench->handles = malloc(bench->many * sizeof *bench->handles);
	bench->nodes = malloc(bench->many * sizeof *bench->nodes);
	check(bench->order && bench->handles && bench->nodes ? 0 : -ENOMEM, "setting up");
	check(registry_create(NULL, &bench->reg), "registry_create");
	for (uint64_t nth = 0; nth < bench->many; nth++)
		bench->order[nth] = nth;
	choose(bench->order, bench->many, bench->many);
	for (uint64_t at = 0; at < bench->many; at++)
		insert(bench, bench->order[at]);
	/* The nodes lie in the order of their places, which is kinder to the treap than a program would be. */
	for (uint64_t nth = 0; nth < bench->many; nth++) {
		bench->nodes[nth].priority = draw(UINT64_MAX);
		bench->set->place(nth, &bench->nodes[nth].start, &bench->nodes[nth].end);
	}
	for (uint64_t at = 0; at < bench->many; at++)
		put_in_treap(bench, bench->order[at]);
}

static void run(const struct set *set, uint64_t many)
{
	struct bench bench = {.set = set, .many = many};
	struct figure own, treap, removal, treap_removal;

	fill(&bench);
	printf("| %s | %" PRIu64 " |", set->name, many);
	own = measure(&bench, time_hit);
	treap = measure(&bench, time_treap_hit);
	print_figure(own);
	print_ratio(treap, own);
	if (set->gaps && many > 8) {
		own = measure(&bench, time_miss);
		treap = measure(&bench, time_treap_miss);
		print_figure(own);
		print_ratio(treap, own);
	} else {
		printf(" | |");
	}
	print_figure(measure(&bench, time_reference));
	measure_updates(&bench, take_out, insert, &removal, &own);
	measure_updates(&bench, take_out_of_treap, put_in_treap, &treap_removal, &treap);
	print_figure(own);
	print_ratio(treap, own);
	print_figure(removal);
	print_ratio(treap_removal, removal);
	printf("\n");
	fflush(stdout);
	registry_destroy(&bench.reg);
	free(bench.handles);
	free(bench.nodes);
	free(bench.order);
}

static _Atomic bool storm_on, storm_over;

static void *storm(void *data)
{
	struct bench *bench = data;

	storm_on = true;
	for (uint64_t at = 0; !storm_over; at = (at + 1) % bench->many) {
		take_out(bench, bench->order[at]);
		insert(bench, bench->order[at]);
	}
	return NULL;
}

/*
 * Whether it hits depends on the writer. Spread out, so that the samples see the writer in all its states, and away
 * from its processor.
 */
static uint64_t time_question(struct bench *bench)
{
	uint64_t at = hit_at(bench), before = now();

	while (now() - before < 5000)
		;
	before = now();
	answer = registry_hits(bench->reg, at, at + ASKED);
	return now() - before;
}

/* The worst that writers can do to a reader: one of them never pauses. */
static void run_storm(const struct set *set, uint64_t many)
{
	struct bench bench = {.set = set, .many = many};
	struct figure figure;
	pthread_t writer;

	fill(&bench);
	check(-pthread_create(&writer, NULL, storm, &bench), "pthread_create");
	while (!storm_on)
		;
	figure = measure(&bench, time_question);
	printf("while another thread removes and inserts without a pause, %s, %" PRIu64
	       " ranges: a question takes %" PRIu64 " / %" PRIu64 ", at worst %" PRIu64 "\n",
	       set->name, many, figure.median, figure.p99, ns[SAMPLES - 1]);
	storm_over = true;
	pthread_join(writer, NULL);
	registry_destroy(&bench.reg);
	free(bench.handles);
	free(bench.nodes);
	free(bench.order);
}

int main(int argc, char **argv)
{
	static const struct set sets[] = {
		{"disjoint", place_disjoint, true},
		{"nested", place_nested, true},
		{"overlapping", place_overlapping, false},
	};
	uint64_t greatest = argc > 1 ? strtoull(argv[1], NULL, 10) : GREATEST;

	clock_ns = measure(NULL, time_clock).median;
	printf("ns, median / p99, the clock's %" PRIu64 " ns taken off; ratios are treap / registry;\n", clock_ns);
	printf("one dependent load from a random line of 64 MiB takes %.0f ns here and now\n\n", memory_ns());
	printf("| set | ranges | hit | ratio | miss | ratio | overlap + reference | insert | ratio | remove | ratio |\n");
	printf("| --- | --: | --: | --: | --: | --: | --: | --: | --: | --: | --: |\n");
	for (size_t at = 0; at < sizeof sets / sizeof *sets; at++) {
		for (uint64_t many = 1; many <= greatest; many *= 10)
			run(&sets[at], many);
	}
	printf("\n");
	run_storm(&sets[0], greatest < 10000 ? greatest : 10000);
	return 0;
}
