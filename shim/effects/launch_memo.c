#include "shim/effects/launch_memo.h"

#include <string.h>

#include "shim/effects/launch_memo_internal.h"
#include "shim/effects/launches.h"
#include "shim/hook_state.h"
#include "shim/kernels/variants.h"
#include "shim/verdict/granules.h"

/* The launch that comes now; its words are apart. */
struct now {
	struct memo_tables *tables;
	uint64_t function, stamp, at, mixed; /* `at` as a place has it, `mixed` of the words so far */
	void *const *params;
	size_t words;
};

/* How many words each parameter has. False: not known. */
static inline bool read_layout(const struct now *now, uint64_t words[MEMO_PARAMS / MEMO_WORD], size_t *ret_params)
{
	struct memo_layout *layout = memo_layouts_of(now->tables, now->function);
	layout += memo_peek(&layout->function) != now->function;
	uint32_t sequence = atomic_load_explicit(&layout->sequence, memory_order_acquire);
	*ret_params = atomic_load_explicit(&layout->params, memory_order_acquire);
	if (sequence & 1 || *ret_params > MEMO_PARAMS || memo_peek(&layout->function) != now->function ||
	    memo_peek(&layout->stamp) != now->stamp)
		return false;
	for (size_t i = 0; i < MEMO_PARAMS / MEMO_WORD; i++)
		words[i] = memo_peek(&layout->words[i]);
	return atomic_load_explicit(&layout->sequence, memory_order_relaxed) == sequence;
}

/* The words that may concern a range. False: not known how to find them, or too many. */
static inline bool read_words(struct now *now, uint64_t word[MEMO_WORDS])
{
	uint64_t words[MEMO_PARAMS / MEMO_WORD], value;
	size_t params, at = 0;
	if (!read_layout(now, words, &params))
		return false;
	uint64_t low = atomic_load_explicit(&hook_line.low, memory_order_relaxed);
	uint64_t high = atomic_load_explicit(&hook_line.high, memory_order_relaxed);
	const struct granules *granules = granules_all();
	for (size_t i = 0; i < params; i++) {
		const char *bytes = now->params[i];
		if (!bytes)
			return false;
		for (const char *end = bytes + MEMO_WORD * ((const uint8_t *)words)[i]; bytes != end;
		     bytes += MEMO_WORD, at++) {
			memcpy(&value, bytes, sizeof value);
			if (HOOK_LIKELY(value < low || value >= high) || !granules_hold(granules, value))
				continue;
			/* The same as memo_draft_word(): a place has 8 bits for each. */
			if (now->words == MEMO_WORDS || at > UINT8_MAX)
				return false;
			now->at |= (uint64_t)at << 8 * now->words;
			now->mixed = memo_mixed(now->mixed, value);
			word[now->words++] = value;
		}
	}
	return true;
}

/* Do the parameters have the values that the answer hangs on? */
static __attribute__((noinline)) bool guards_hold(const struct memo_place *place, void *const *params, size_t guards,
                                                  uint32_t sequence)
{
	for (size_t i = 0; i < guards && i < MEMO_GUARDS; i++) {
		uint64_t what = memo_peek(&place->guard[i].what), value = memo_peek(&place->guard[i].value);
		/* Where to look must not be torn. */
		if (atomic_load_explicit(&place->sequence, memory_order_relaxed) != sequence)
			return false;
		const struct variant_guard guard = {
			.mask = (uint32_t)(what >> 32), .value = (uint32_t)value, .small = what >> 8 & 1};
		uint32_t word;
		memcpy(&word, (const char *)params[what & 0xff] + (what >> 16 & 0xffff), sizeof word);
		if (!variant_guard_holds(&guard, word))
			return false;
	}
	return true;
}

static inline bool same_launch(const struct memo_place *place, const struct now *now, const uint64_t *word,
                               uint32_t counts)
{
	if (memo_peek(&place->function) != now->function || memo_peek(&place->stamp) != now->stamp ||
	    (counts >> 8 & 0xff) != now->words || memo_peek(&place->at) != now->at)
		return false;
	for (size_t i = 0; i < now->words; i++)
		if (memo_peek(&place->word[i]) != word[i])
			return false;
	return true;
}

/* A launch that was kept, and none of whose notes is due. */
struct found {
	struct memo_place *place;
	uint32_t sequence, counts; /* the place's */
	uint64_t word[MEMO_WORDS], noted;
	struct neighbours_mark note[MEMO_NOTES];
};

static inline unsigned verdict_of(const struct found *found)
{
	return found->counts & 0xf;
}

static inline unsigned swaps_of(const struct found *found)
{
	return found->counts >> 4 & 0xf;
}

static inline unsigned words_of(const struct found *found)
{
	return found->counts >> 8 & 0xff;
}

static inline unsigned notes_of(const struct found *found)
{
	return found->counts >> 16 & 0xff;
}

static inline bool is_held(const struct found *found)
{
	return atomic_load_explicit(&found->place->sequence, memory_order_relaxed) == found->sequence;
}

static inline void read_notes(struct found *found)
{
	found->noted = memo_peek(&found->place->noted);
	for (size_t i = 0; i < notes_of(found) && i < MEMO_NOTES; i++) {
		struct memo_note *kept = memo_note_of(found->place, i);
		found->note[i].writer = atomic_load_explicit(&kept->writer, memory_order_acquire);
		found->note[i].tally = atomic_load_explicit(&kept->tally, memory_order_acquire);
		found->note[i].key = memo_peek(&kept->key);
	}
}

/* False: it has no place. */
static inline bool find_place(struct found *found, const struct now *now)
{
	struct memo_place *first = memo_places_of(now->tables, now->mixed);
	for (found->place = first; found->place != first + MEMO_WAYS; found->place++) {
		found->sequence = atomic_load_explicit(&found->place->sequence, memory_order_acquire);
		found->counts = atomic_load_explicit(&found->place->counts, memory_order_acquire);
		if (!(found->sequence & 1) && same_launch(found->place, now, found->word, found->counts))
			return true;
	}
	return false;
}

/* False: it has no place; or the place of a note is another's by now; or the launch is one that is to be checked. */
static inline bool read_place(struct found *found, const struct now *now)
{
	if (!find_place(found, now))
		return false;
	size_t notes = notes_of(found), guards = found->counts >> 24;
	if (notes > MEMO_NOTES)
		return false;
	read_notes(found);
	if ((guards && !guards_hold(found->place, now->params, guards, found->sequence)) || !is_held(found))
		return false;
	for (size_t i = 0; i < notes; i++)
		if (!neighbours_mark_waits(&found->note[i]))
			return false;
	return true;
}

static HOOK_HOT __attribute__((noinline)) bool find(CUfunction function, void **params, struct found *ret)
{
	struct now now = {
		.tables = memo_tables(), .function = (uintptr_t)function, .stamp = hook_stamp(), .params = params};
	now.mixed = memo_mixed(0, now.function);
	/* What is captured does not run now. */
	if (!params || !now.tables || atomic_load_explicit(&hook_line.captures, memory_order_relaxed) ||
	    !read_words(&now, ret->word))
		return false;
	ret->counts = MEMO_NO_CONCERN;
	return !now.words || read_place(ret, &now);
}

static inline void note_all(const struct found *found, const char *api)
{
	uint64_t serial = launch_number();
	for (size_t i = 0; i < notes_of(found); i++)
		neighbours_mark_note(&found->note[i], found->word[found->noted >> 8 * i & (MEMO_WORDS - 1)], serial, api);
}

HOOK_HOT struct memo_answer memo_asks(CUfunction function, void **params, const char *api)
{
	struct hook_counts *counts = hook_counts_own();
	struct found found;
	if (!counts || !find(function, params, &found))
		return (struct memo_answer){.passes = false};
	if (HOOK_UNLIKELY(swaps_of(&found)))
		return (struct memo_answer){.twins = found.place, .sequence = found.sequence};
	note_all(&found, api);
	hook_count_own(counts, COUNT_LAUNCH);
	if (verdict_of(&found) != MEMO_NO_CONCERN) {
		hook_count_own(counts, (enum hook_counter)(COUNT_CLEAN + verdict_of(&found)));
		hook_count_own(counts, COUNT_CHECKED);
	}
	hook_thread.depth++;
	return (struct memo_answer){.passes = true};
}

/* False: the place is another launch's by now. */
static inline bool read_swaps(const struct found *found, struct memo_twins *ret)
{
	const struct memo_place *place = found->place;
	ret->function = atomic_load_explicit(&place->info, memory_order_acquire);
	ret->paths = atomic_load_explicit(&place->paths, memory_order_acquire);
	ret->count = swaps_of(found);
	for (size_t i = 0; i < ret->count && i < MEMO_SWAPS; i++) {
		uint64_t what = memo_peek(&place->swap[i].what);
		struct memo_twin *twin = &ret->twin[i];
		twin->value = found->word[what & (MEMO_WORDS - 1)];
		twin->twin = memo_peek(&place->swap[i].twin);
		twin->range = memo_peek(&place->swap[i].range);
		twin->argument = what >> 8 & 0xff;
		twin->offset = what >> 32 & 0xffff;
		twin->bytes = what >> 48;
		ret->params = what >> 16 & 0xff;
	}
	return is_held(found);
}

HOOK_HOT bool memo_gives_twins(struct memo_answer answer, const CUlaunchConfig *config, const char *api,
                               struct memo_twins *ret)
{
	struct found found = {.place = answer.twins, .sequence = answer.sequence};
	if (launch_may_overlap(config))
		return false;
	found.counts = atomic_load_explicit(&found.place->counts, memory_order_acquire);
	for (size_t i = 0; i < words_of(&found) && i < MEMO_WORDS; i++)
		found.word[i] = memo_peek(&found.place->word[i]);
	read_notes(&found);
	if (!read_swaps(&found, ret))
		return false;
	note_all(&found, api);
	hook_count(COUNT_LAUNCH);
	hook_count((enum hook_counter)(COUNT_CLEAN + verdict_of(&found)));
	hook_count(COUNT_CHECKED);
	hook_thread.depth++;
	return true;
}
