#include "shim/kernels/special.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Runs of the analysis for one answer: fewer where one takes long. */
#define RUNS_MOST 40
#define RUNS_LEAST 6
#define RUNS_COST 200000 /* together */

/* The answer so far, and the bytes that it needs. */
struct search {
	special_run run;
	void *ctx;
	struct paths_values values; /* `known` and `used` are its own */
	struct kernel_paths paths;
	uint8_t *known, *needed, *missed;
	size_t runs; /* that are left */
};

static bool clear(const struct kernel_paths *paths)
{
	return paths->reason == PATHS_CLEAR;
}

bool special_same(const struct kernel_paths *a, const struct kernel_paths *b)
{
	if (clear(a) != clear(b) || a->slot_count != b->slot_count)
		return false;
	for (size_t i = 0; i < a->slot_count; i++) {
		const struct slot_paths *x = &a->slots[i], *y = &b->slots[i];
		bool stores = x->use == SLOT_STORE;
		if (stores != (y->use == SLOT_STORE))
			return false;
		if (stores && (x->only_base != y->only_base || x->compared != y->compared))
			return false;
	}
	return true;
}

/*
 * Nothing that the other does not do, and less than it: or, where a store has one base only, more surely. While an answer is not clear, its other slots may be stored
 * through as well, so that fewer of them are said to be is no gain.
 */
static bool better(const struct kernel_paths *paths, const struct kernel_paths *any)
{
	bool less = clear(paths) && !clear(any);
	if ((!clear(paths) && clear(any)) || paths->slot_count != any->slot_count)
		return false;
	for (size_t i = 0; i < paths->slot_count; i++) {
		bool stores = paths->slots[i].use == SLOT_STORE, might = any->slots[i].use == SLOT_STORE;
		if (stores && !might)
			return false;
		less |= clear(paths) && might && !stores;
		less |= stores && paths->slots[i].only_base && !any->slots[i].only_base;
	}
	return less;
}

static bool any(const uint8_t *bytes, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (bytes[i])
			return true;
	return false;
}

static int run(struct search *search, struct kernel_paths *ret_paths)
{
	memset(search->values.used, 0, search->values.count);
	search->runs -= search->runs != 0;
	return search->run(search->ctx, &search->values, ret_paths);
}

static bool is_small(const uint8_t *word)
{
	uint32_t value;
	memcpy(&value, word, sizeof value);
	return value < PATHS_SMALL;
}

/* Knows less of the needed words [first, end), counted by those of which anything is. The count is of whole words (special_paths). */
static void know_less(struct search *search, size_t first, size_t end, enum paths_knowledge knowledge)
{
	size_t word = 0;
	memcpy(search->known, search->needed, search->values.count);
	for (size_t at = 0; at < search->values.count; at += 4) {
		bool needed = any(search->needed + at, 4);
		if (needed && word >= first && word < end &&
		    (knowledge == VALUE_UNKNOWN || is_small(search->values.bytes + at)))
			memset(search->known + at, (int)knowledge, 4);
		word += needed;
	}
}

static size_t count_words(const struct search *search)
{
	size_t words = 0;
	for (size_t at = 0; at < search->values.count; at += 4)
		words += any(search->needed + at, 4);
	return words;
}

/* Is the answer the same then? */
static int try_less(struct search *search, size_t first, size_t end, enum paths_knowledge knowledge, bool *ret_same)
{
	struct kernel_paths paths;
	know_less(search, first, end, knowledge);
	if (!memcmp(search->known, search->needed, search->values.count))
		return 0;
	int err = run(search, &paths);
	if (err)
		return err;
	*ret_same = special_same(&paths, &search->paths);
	if (!*ret_same) {
		kernel_paths_free(&paths);
		return 0;
	}
	kernel_paths_free(&search->paths);
	search->paths = paths;
	memcpy(search->needed, search->values.used, search->values.count);
	return 0;
}

/* Halves, quarters and so on down to single words are left out; of what is left some need not be known exactly. */
static int reduce(struct search *search)
{
	int err = 0;
	bool same;
	for (size_t size = (count_words(search) + 1) / 2; size && !err; size = size > 1 ? (size + 1) / 2 : 0)
		for (size_t first = 0; first < count_words(search) && search->runs && !err;) {
			same = false;
			err = try_less(search, first, first + size, VALUE_UNKNOWN, &same);
			first += same ? 0 : size;
		}
	for (size_t first = 0; first < count_words(search) && search->runs && !err; first++)
		err = try_less(search, first, first + 1, VALUE_SMALL, &same);
	return err;
}

/*
 * Values for which nothing is better: the conditions under which none is. With another value of what was missed one may be: a store that runs where a parameter says so and the thread's
 * number is below another is decided by a 0, and not by a 1.
 */
static void note_missed(const struct search *search, struct paths_values *values)
{
	for (size_t i = 0; i < search->values.count; i++)
		if (search->missed[i])
			values->used[i] = VALUE_EXACT;
}

static int search_paths(struct search *search, struct paths_values *values, bool *ret_better)
{
	struct kernel_paths unguided = {0};
	search->values.missed = search->missed;
	int err = run(search, &search->paths);
	search->values.missed = NULL;
	memcpy(search->needed, search->values.used, search->values.count);
	memcpy(values->used, search->needed, search->values.count);
	/* Nothing is decided by these values, and so never by any that are alike. */
	if (err || !any(values->used, values->count)) {
		note_missed(search, values);
		return err;
	}
	memset(search->known, VALUE_UNKNOWN, search->values.count);
	err = run(search, &unguided);
	*ret_better = !err && better(&search->paths, &unguided);
	kernel_paths_free(&unguided);
	if (err || !*ret_better) {
		note_missed(search, values);
		return err;
	}
	err = reduce(search);
	memcpy(values->used, search->needed, search->values.count);
	return err;
}

/* A slot whose value decided something must not get another one: the decision could be another. */
static void fix_deciding(const struct paths_values *values, struct kernel_paths *paths)
{
	for (size_t i = 0; i < values->count && i / 8 < paths->slot_count; i++)
		paths->slots[i / 8].compared |= values->used[i] != VALUE_UNKNOWN;
}

int special_paths(special_run run_once, void *ctx, size_t cost, struct paths_values *values,
                  struct kernel_paths *ret_paths, bool *ret_better)
{
	size_t count = values->count & ~(size_t)3;
	uint8_t *room = calloc(4, count + 1);
	struct search search = {.run = run_once, .ctx = ctx, .values = *values};
	search.runs = RUNS_COST / (cost + 1);
	search.runs = search.runs > RUNS_MOST ? RUNS_MOST : search.runs < RUNS_LEAST ? RUNS_LEAST : search.runs;
	*ret_better = false;
	*ret_paths = (struct kernel_paths){0};
	memset(values->used, 0, values->count);
	if (!room)
		return -ENOMEM;
	search.known = room;
	search.needed = room + count + 1;
	search.values.used = search.needed + count + 1;
	search.missed = search.values.used + count + 1;
	search.values.known = search.known;
	search.values.count = count;
	memcpy(search.known, values->known, count);
	int err = search_paths(&search, values, ret_better);
	if (!err && *ret_better) {
		*ret_paths = search.paths;
		fix_deciding(values, ret_paths);
	} else {
		kernel_paths_free(&search.paths);
	}
	*ret_better &= !err;
	free(room);
	return err;
}
