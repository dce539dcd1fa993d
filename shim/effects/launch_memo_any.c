#include "shim/effects/launch_memo.h"

#include <string.h>

#include "shim/effects/launch_memo_read.h"
#include "shim/effects/launches.h"
#include "shim/hook_state.h"
#include "shim/verdict/words.h"

/* Words of a launch that may concern a range. */
struct hits {
	uint64_t at;  /* as a place has it */
	uint64_t far; /* the upper 8 bits of the same, where one needs more than 8 */
	size_t words; /* more than MEMO_WORDS: too many */
	size_t seen;  /* all that were looked at */
	uint64_t word[MEMO_WORDS + 1];
};

/* The launch that comes now. Nobody may take its address but what is inlined, or none of it would lie in registers. */
struct now {
	struct memo_tables *tables;
	uint64_t function, stamp;
	void *const *params;
	struct words_bounds bounds;
	uint32_t entries; /* as the layout has them */
	struct hits *hits;
};

/* Where a launch is in the course of its thread, and the layout that it has there. In two registers. */
struct turn {
	struct memo_layout *layout;
	uint32_t nth;
};

/* Its layouts: for all values, and for some. Those that there are not are some other function's. */
static inline void layouts_of(struct memo_tables *tables, uint64_t function, struct memo_layout *ret[2])
{
	struct memo_layout *first = memo_layouts_of(tables, function);
	size_t count = 0;
	ret[0] = ret[1] = first;
	for (size_t way = 0; way < MEMO_LAYOUT_WAYS; way++)
		if (memo_peek(&first[way].function) == function && count < 2)
			ret[count++] = &first[way];
}

/* It is not the launch that was expected. Some may have been left out; or the thread is elsewhere in its course: where it was the last time that it did not expect this one. */
static HOOK_HOT __attribute__((noinline)) struct turn search_turn(struct memo_tables *tables,
                                                                  struct memo_course *course, uint64_t function)
{
	struct memo_layout *known[2];
	struct turn turn = {.nth = memo_look(&course->next)};
	layouts_of(tables, function, known);
	turn.layout = known[0];
	if (memo_peek(&turn.layout->function) != function)
		return turn;
	for (uint32_t i = 1; i <= MEMO_SKIPPED; i++) {
		struct memo_layout *later = memo_layout_at(tables, memo_nth(course, turn.nth + i));
		if (later == known[0] || (later == known[1] && memo_peek(&later->function) == function))
			return (struct turn){.layout = later, .nth = turn.nth + i};
	}
	uint32_t count = memo_look(&course->count), seen = memo_look(&turn.layout->seen);
	atomic_store_explicit(&turn.layout->seen, count, memory_order_relaxed);
	if (count - seen < MEMO_COURSE)
		turn.nth = seen;
	return turn;
}

static inline struct turn find_turn(const struct now *now, struct memo_course *course)
{
	uint32_t next = memo_look(&course->next);
	struct memo_layout *expected = memo_layout_at(now->tables, memo_nth(course, next));
	if (HOOK_UNLIKELY(memo_peek(&expected->function) != now->function))
		return search_turn(now->tables, course, now->function);
	return (struct turn){.layout = expected, .nth = next};
}

/* What its parameters are. False: not known. */
static inline __attribute__((always_inline)) bool read_layout(struct now *now, const struct memo_layout *layout,
                                                              uint32_t ret_entry[MEMO_ENTRIES])
{
	uint32_t sequence = atomic_load_explicit(&layout->sequence, memory_order_acquire);
	now->entries = atomic_load_explicit(&layout->entries, memory_order_acquire);
	const size_t count = memo_entries(now->entries);
	uint64_t differ = (sequence & 1) | (memo_peek(&layout->function) ^ now->function) |
	                  (memo_peek(&layout->stamp) ^ now->stamp);
	if (HOOK_UNLIKELY(differ || count > MEMO_ENTRIES))
		return false;
	/* What its first line has, without a question. */
	memo_copy(layout, 0, MEMO_LINE_ENTRIES, ret_entry);
	for (size_t i = MEMO_LINE_ENTRIES; HOOK_UNLIKELY(i < count); i += MEMO_SIDE)
		memo_copy(layout, i, i + MEMO_SIDE, ret_entry);
	return atomic_load_explicit(&layout->sequence, memory_order_relaxed) == sequence;
}
_Static_assert(MEMO_ENTRIES % MEMO_SIDE == 0 && MEMO_SIDE % MEMO_PACKED == 0, "read side by side");

static inline bool read_conditions(struct now *now, const struct memo_layout *layout, uint32_t ret_entry[MEMO_ENTRIES],
                                   bool *ret_hold)
{
	if (HOOK_UNLIKELY(!read_layout(now, layout, ret_entry)))
		return false;
	*ret_hold = memo_layout_holds(now->params, ret_entry, now->entries);
	return true;
}

/* The function's other layout. False: there is none, or it is for other values than these. */
static HOOK_HOT __attribute__((noinline)) bool read_other_layout(struct now *now, struct turn *turn,
                                                                 uint32_t ret_entry[MEMO_ENTRIES])
{
	struct memo_layout *known[2];
	bool hold;
	layouts_of(now->tables, now->function, known);
	struct memo_layout *other = known[turn->layout == known[0]];
	if (other == turn->layout)
		return false;
	turn->layout = other;
	return read_conditions(now, other, ret_entry, &hold) && hold;
}

/* The layout at its turn, or `other`: the other one. */
static inline bool find_layout(struct now *now, struct turn *turn, bool other, uint32_t ret_entry[MEMO_ENTRIES])
{
	bool hold = false;
	if (!other && HOOK_UNLIKELY(!read_conditions(now, turn->layout, ret_entry, &hold)))
		return false;
	if (HOOK_LIKELY(hold))
		return true;
	struct now copy = *now;
	struct turn found = *turn;
	hold = read_other_layout(&copy, &found, ret_entry);
	*now = copy;
	*turn = found;
	return hold;
}

/* The words of these that are hit, a bit for each. No jump for any of them: mostly there are no more than MEMO_FEW_HITS. */
static inline void take_hits(struct hits *ret, uint64_t hit, const uint64_t value[MEMO_SINGLE])
{
	ret->at = ret->words = 0;
#pragma GCC unroll 4
	for (size_t i = 0; i < MEMO_FEW_HITS; i++, hit &= hit - 1) {
		uint64_t is = hit != 0, nth = (uint64_t)__builtin_ctzll(hit | UINT64_C(1) << 63) & -is;
		ret->at |= nth << 8 * i;
		ret->word[i] = value[nth];
		ret->words += is;
	}
	for (; HOOK_UNLIKELY(hit); hit &= hit - 1) {
		uint64_t nth = (uint64_t)__builtin_ctzll(hit);
		if (ret->words++ >= MEMO_WORDS)
			return;
		ret->at |= nth << 8 * (ret->words - 1);
		ret->word[ret->words - 1] = value[nth];
	}
}

/* Words that are pieces of their own, MEMO_SIDE of them side by side. False: one is not there, or too many are hit. */
static inline bool read_singles(const struct now *now, const uint32_t *entry)
{
	const size_t entries = now->entries & MEMO_COUNT;
	uint64_t value[MEMO_SINGLE], hit = 0;
	for (size_t i = 0; i < entries; i += MEMO_SIDE)
#pragma GCC unroll 4
		for (size_t side = i; side < i + MEMO_SIDE; side++) {
			const char *start = now->params[memo_entry_param(entry[side])];
			if (HOOK_UNLIKELY(!start))
				return false;
			memcpy(&value[side], start + memo_entry_first(entry[side]) * MEMO_WORD, sizeof *value);
			hit |= (uint64_t)words_hit(&now->bounds, value[side]) << side;
		}
	now->hits->seen = entries;
	now->hits->words = now->hits->far = 0;
	/* The last is there more than once. */
	hit &= (UINT64_C(1) << entries) - 1;
	if (hit)
		take_hits(now->hits, hit, value);
	return now->hits->words <= MEMO_WORDS;
}
_Static_assert(MEMO_SINGLE < 64, "a bit for each");

/*
 * The words of a small piece. Whether one is hit is hard to foretell, so there is no jump for it: what is not is written, too, and then over. The same as memo_draft_word(): a place has
 * 8 bits for each.
 */
static inline void read_few(const struct words_bounds *bounds, const char *start, size_t count, struct hits *hits)
{
	uint64_t at = hits->at, value;
	size_t words = hits->words;
	for (size_t seen = hits->seen, end = seen + count; seen < end; seen++, start += MEMO_WORD) {
		memcpy(&value, start, sizeof value);
		uint64_t hit = words_hit(bounds, value);
		size_t nth = words < MEMO_WORDS ? words : MEMO_WORDS;
		hits->word[nth] = value;
		at |= (seen & -hit) << (8 * nth & 63);
		words += hit;
	}
	hits->at = at;
	hits->words = words;
	hits->seen += count;
}

/* One that is hit, the nth of those to come. False: too many. */
static bool take_one_of_many(void *context, uint64_t value, size_t nth)
{
	struct hits *hits = context;
	uint64_t at = hits->seen + nth;
	if (hits->words >= MEMO_WORDS)
		return false;
	hits->at |= (at & UINT8_MAX) << 8 * hits->words;
	hits->far |= at >> 8 << 8 * hits->words;
	hits->word[hits->words++] = value;
	return true;
}

/* With 16 bits to say where each is. False: too many for that. */
static bool widen(struct hits *hits)
{
	uint64_t wide = 0;
	for (size_t i = 0; i < hits->words && i < MEMO_FAR_WORDS; i++)
		wide |= ((hits->at >> 8 * i & UINT8_MAX) | (hits->far >> 8 * i & UINT8_MAX) << 8) << 16 * i;
	hits->at = wide;
	return hits->words <= MEMO_FAR_WORDS;
}

/* Pieces with any number of words. False: one is not there, or too many are hit. */
static HOOK_HOT __attribute__((noinline)) bool read_pieces(struct words_bounds bounds, struct hits *hits,
                                                           void *const *params, const uint32_t *entry, size_t entries)
{
	hits->at = hits->far = hits->words = hits->seen = 0;
	for (const uint32_t *end = entry + entries; entry < end; entry++) {
		const char *start = params[memo_entry_param(*entry)];
		size_t count = memo_entry_words(*entry);
		if (HOOK_UNLIKELY(!start))
			return false;
		start += memo_entry_first(*entry) * MEMO_WORD;
		if (count < MEMO_MANY && hits->seen <= MEMO_SEEN - MEMO_MANY) {
			read_few(&bounds, start, count, hits);
			continue;
		}
		if (!words_each(&bounds, start, count, take_one_of_many, hits))
			return false;
		hits->seen += count;
	}
	return hits->far ? widen(hits) : hits->words <= MEMO_WORDS;
}

/* Counts the words that were looked at. True: it is time to ask which of them matter. What two threads count at once is lost, which does no harm. */
static HOOK_COLD bool looked_often(struct memo_layout *layout, size_t words)
{
	uint32_t looks = atomic_load_explicit(&layout->looks, memory_order_relaxed) + (uint32_t)words;
	atomic_store_explicit(&layout->looks, looks, memory_order_relaxed);
	return looks >= MEMO_LOOKS;
}

/* The words that may concern a range. False: not known how to find them, or too many. */
static inline bool read_words(struct now *now, struct turn *turn, bool other)
{
	uint32_t room[MEMO_ENTRIES];
	if (HOOK_UNLIKELY(!find_layout(now, turn, other, room)))
		return false;
	if (HOOK_UNLIKELY(!(now->entries & MEMO_SINGLES
	                            ? read_singles(now, room)
	                            : read_pieces(now->bounds, now->hits, now->params, room, now->entries & MEMO_COUNT))))
		return false;
	return HOOK_LIKELY(now->entries & MEMO_SETTLED) || !looked_often(turn->layout, now->hits->seen);
}

/* Asked at once, not one by one: mostly all are the same. */
static inline bool is_same(const struct memo_found *found, const struct now *now)
{
	const struct memo_place *place = found->place;
	uint64_t differ =
		(found->sequence & 1) | (memo_peek(&place->key) ^ memo_key(now->function, now->entries)) |
		(memo_peek(&place->stamp) ^ now->stamp) |
		((found->counts >> 8 & 0xff) ^ memo_words_of(now->hits->words, now->entries, now->hits->far != 0)) |
		(memo_peek(&place->at) ^ now->hits->at);
	size_t i = 0;
	do {
		differ |= memo_peek(&place->word[i]) ^ now->hits->word[i];
	} while (++i < now->hits->words);
	return !differ;
}

static HOOK_HOT __attribute__((noinline)) struct memo_found search(const struct now *now)
{
	uint64_t mixed = memo_mixed(0, memo_key(now->function, now->entries));
	for (size_t i = 0; i < now->hits->words; i++)
		mixed = memo_mixed(mixed, now->hits->word[i]);
	struct memo_place *place = memo_places_of(now->tables, mixed);
	for (const struct memo_place *end = place + MEMO_WAYS; place != end; place++) {
		struct memo_found found = memo_look_at(place);
		/* With other values it may be there as well. */
		if (is_same(&found, now) && memo_guards_hold(found, now->params))
			return found;
	}
	return (struct memo_found){.place = NULL};
}

/* The place of the launch, which mostly is the one at its turn; else that is set right. */
static inline struct memo_found find(const struct now *now, const struct memo_course *course, struct turn *turn)
{
	struct memo_found found = memo_look_at(memo_place_at(now->tables, memo_nth(course, turn->nth)));
	if (HOOK_UNLIKELY(!is_same(&found, now) || !memo_guards_hold(found, now->params))) {
		struct now copy = *now;
		found = search(&copy);
		if (found.place)
			turn->nth = memo_look(&found.place->seen);
	}
	return found;
}

static inline enum memo_how asks(CUfunction function, void **params, const char *api, bool other);

/* The layout that was expected does not answer: then perhaps the function's other one does, that for some values, or the one for all. */
static HOOK_HOT __attribute__((noinline)) enum memo_how asks_other(CUfunction function, void **params, const char *api)
{
	return asks(function, params, api, true);
}

static inline __attribute__((always_inline)) enum memo_how asks(CUfunction function, void **params, const char *api,
                                                                bool other)
{
	struct hook_counts *counts = hook_counts_own();
	struct hits hits;
	struct now now = {.tables = memo_tables(),
	                  .function = (uintptr_t)function,
	                  .stamp = hook_stamp(),
	                  .params = params,
	                  .bounds = words_bounds(),
	                  .hits = &hits};
	/* What is captured does not run now. */
	if (HOOK_UNLIKELY(!counts || !params || !now.tables ||
	                  atomic_load_explicit(&hook_line.captures, memory_order_relaxed)))
		return MEMO_UNKNOWN;
	struct memo_course *course = memo_course(now.tables);
	struct turn turn = find_turn(&now, course);
	if (HOOK_UNLIKELY(!read_words(&now, &turn, other)))
		return other ? MEMO_UNKNOWN : asks_other(function, params, api);
	if (!hits.words) {
		memo_fetch_places(now.tables, memo_follow_course(now.tables, course, turn.nth,
		                                                 memo_launch(now.tables, turn.layout, NULL)));
		return memo_passes(counts);
	}
	struct memo_found found = find(&now, course, &turn);
	if (HOOK_UNLIKELY(!found.place))
		return other ? MEMO_UNKNOWN : asks_other(function, params, api);
	uint32_t launch = memo_launch(now.tables, turn.layout, found.place);
	return memo_takes(&(struct memo_taken){now.tables, course, turn.nth, launch, counts}, found, hits.word, api);
}

HOOK_PAGE("9") enum memo_how memo_asks_any(CUfunction function, void **params, const char *api)
{
	return asks(function, params, api, false);
}
