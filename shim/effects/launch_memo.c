#include "shim/effects/launch_memo.h"

#include <string.h>

#include "shim/effects/launch_memo_internal.h"
#include "shim/effects/launches.h"
#include "shim/hook_state.h"
#include "shim/kernels/variants.h"
#include "shim/looks.h"
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

static inline uint32_t look(const _Atomic uint32_t *field)
{
	return atomic_load_explicit(field, memory_order_relaxed);
}

/* Where a launch is in the course of its thread, and the layout that it has there. In two registers. */
struct turn {
	struct memo_layout *layout;
	uint32_t nth;
};

/* It is not the launch that was expected. Some may have been left out; or the thread is elsewhere in its course: where it was the last time that it did not expect this one. */
static HOOK_HOT __attribute__((noinline)) struct turn search_turn(struct memo_tables *tables,
                                                                  struct memo_course *course, uint64_t function)
{
	struct turn turn = {.layout = memo_layouts_of(tables, function), .nth = look(&course->next)};
	turn.layout += memo_peek(&turn.layout->function) != function;
	if (memo_peek(&turn.layout->function) != function)
		return turn;
	uint32_t number = (uint32_t)(turn.layout - tables->layouts);
	for (uint32_t i = 1; i <= MEMO_SKIPPED; i++)
		if ((memo_nth(course, turn.nth + i) & MEMO_LAYOUT_OF_COURSE) == number)
			return (struct turn){.layout = turn.layout, .nth = turn.nth + i};
	uint32_t count = look(&course->count), seen = look(&turn.layout->seen);
	atomic_store_explicit(&turn.layout->seen, count, memory_order_relaxed);
	if (count - seen < MEMO_COURSE)
		turn.nth = seen;
	return turn;
}

static inline struct turn find_turn(const struct now *now, struct memo_course *course)
{
	uint32_t next = look(&course->next);
	struct memo_layout *expected = memo_layout_at(now->tables, memo_nth(course, next));
	if (HOOK_UNLIKELY(memo_peek(&expected->function) != now->function))
		return search_turn(now->tables, course, now->function);
	return (struct turn){.layout = expected, .nth = next};
}

static inline void copy_side(const struct memo_layout *layout, size_t at, uint32_t ret_entry[MEMO_ENTRIES])
{
#pragma GCC unroll 2
	for (size_t i = at; i < at + MEMO_SIDE; i += MEMO_PACKED) {
		uint64_t packed = memo_peek(&layout->packed[i / MEMO_PACKED]);
		memcpy(ret_entry + i, &packed, sizeof packed);
	}
}

/* What its parameters are. False: not known. */
static inline bool read_layout(struct now *now, const struct memo_layout *layout, uint32_t ret_entry[MEMO_ENTRIES])
{
	uint32_t sequence = atomic_load_explicit(&layout->sequence, memory_order_acquire);
	now->entries = atomic_load_explicit(&layout->entries, memory_order_acquire);
	size_t entries = now->entries & MEMO_COUNT;
	uint64_t differ = (sequence & 1) | (memo_peek(&layout->function) ^ now->function) |
	                  (memo_peek(&layout->stamp) ^ now->stamp);
	if (HOOK_UNLIKELY(differ || entries > MEMO_ENTRIES))
		return false;
	/* What its first line has, without a question. */
	copy_side(layout, 0, ret_entry);
	copy_side(layout, MEMO_SIDE, ret_entry);
	for (size_t i = 2 * MEMO_SIDE; HOOK_UNLIKELY(i < entries); i += MEMO_SIDE)
		copy_side(layout, i, ret_entry);
	return atomic_load_explicit(&layout->sequence, memory_order_relaxed) == sequence;
}
_Static_assert(offsetof(struct memo_layout, packed) + 2 * MEMO_SIDE * sizeof(uint32_t) == MEMO_LINE, "the first line");
_Static_assert(MEMO_ENTRIES % MEMO_SIDE == 0 && MEMO_SIDE % MEMO_PACKED == 0, "read side by side");

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
static inline bool read_words(struct now *now, struct memo_layout *layout)
{
	uint32_t room[MEMO_ENTRIES];
	if (HOOK_UNLIKELY(!read_layout(now, layout, room)))
		return false;
	if (HOOK_UNLIKELY(!(now->entries & MEMO_SINGLES
	                            ? read_singles(now, room)
	                            : read_pieces(now->bounds, now->hits, now->params, room, now->entries & MEMO_COUNT))))
		return false;
	return HOOK_LIKELY(now->entries & MEMO_SETTLED) || !looked_often(layout, now->hits->seen);
}

/* A line to the second-level cache: until the launch that needs it the first is full of other things again. */
static inline void fetch(const void *line)
{
	__builtin_prefetch(line, 0, 2);
}

static inline void fetch_note(const struct memo_note *note)
{
	fetch(atomic_load_explicit(&note->writer, memory_order_relaxed));
	fetch(atomic_load_explicit(&note->tally, memory_order_relaxed));
}

/* What a launch reads and writes besides its place, which is there by now. */
static inline void fetch_rest(struct memo_tables *tables, uint32_t launch)
{
	const char *layout = (const char *)memo_layout_at(tables, launch);
	const struct memo_place *place = memo_place_at(tables, launch);
	fetch(layout);
	fetch(layout + MEMO_LINE);
	fetch_note(&place->first);
	fetch_note(&place->more[0]);
	fetch_note(&place->more[1]);
	if (HOOK_UNLIKELY(look(&place->counts) >> 4 & 0xf))
		fetch(place->swap);
}
_Static_assert(MEMO_NOTES == 3, "each is fetched");

/*
 * The thread had a launch, of that place if it is not NULL, which was the one at `turn` of its course: fetches what the next ones need, as they came the last time.
 */
static HOOK_PAGE("0a")
	__attribute__((noinline)) void follow_course(struct memo_tables *tables, struct memo_course *course,
                                                     struct turn turn, struct memo_place *place)
{
	uint32_t count = look(&course->count);
	if (place)
		atomic_store_explicit(&place->seen, count, memory_order_relaxed);
	else
		place = memo_place_at(tables, memo_nth(course, count - 1));
	atomic_store_explicit(&course->launch[count % MEMO_COURSE], memo_launch(tables, turn.layout, place),
	                      memory_order_relaxed);
	atomic_store_explicit(&course->count, count + 1, memory_order_relaxed);
	atomic_store_explicit(&course->next, turn.nth + 1, memory_order_relaxed);
	fetch_rest(tables, memo_nth(course, turn.nth + 1));
	const struct memo_place *later = memo_place_at(tables, memo_nth(course, turn.nth + 2));
	fetch(later);
	fetch(later->word);
	fetch(later->more);
	fetch((const char *)course + offsetof(struct memo_course, launch) +
	      (turn.nth + MEMO_AHEAD) % MEMO_COURSE * sizeof(uint32_t));
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
		/* One without a word has no entry, and nobody looked at it yet. */
		if (!params[what & 0xff])
			return false;
		memcpy(&word, (const char *)params[what & 0xff] + (what >> 16 & 0xffff), sizeof word);
		if (!variant_guard_holds(&guard, word))
			return false;
	}
	return true;
}

/* Where a launch is kept, as it was when that was seen. In two registers. */
struct found {
	struct memo_place *place;  /* NULL: nowhere */
	uint32_t sequence, counts; /* the place's */
};

/* Asked at once, not one by one: mostly all are the same. */
static inline bool is_same(const struct found *found, const struct now *now)
{
	const struct memo_place *place = found->place;
	uint64_t differ =
		(found->sequence & 1) | (memo_peek(&place->function) ^ now->function) |
		(memo_peek(&place->stamp) ^ now->stamp) |
		((found->counts >> 8 & 0xff) ^ memo_words_of(now->hits->words, now->entries, now->hits->far != 0)) |
		(memo_peek(&place->at) ^ now->hits->at);
	size_t i = 0;
	do {
		differ |= memo_peek(&place->word[i]) ^ now->hits->word[i];
	} while (++i < now->hits->words);
	return !differ;
}

static inline struct found look_at(struct memo_place *place)
{
	return (struct found){.place = place,
	                      .sequence = atomic_load_explicit(&place->sequence, memory_order_acquire),
	                      .counts = atomic_load_explicit(&place->counts, memory_order_acquire)};
}

static inline unsigned verdict_of(struct found found)
{
	return found.counts & 0xf;
}

static inline unsigned swaps_of(struct found found)
{
	return found.counts >> 4 & 0xf;
}

static inline unsigned notes_of(struct found found)
{
	unsigned notes = found.counts >> 16 & 0xff;
	return notes < MEMO_NOTES ? notes : MEMO_NOTES;
}

static inline bool is_held(struct found found)
{
	return atomic_load_explicit(&found.place->sequence, memory_order_relaxed) == found.sequence;
}

static HOOK_HOT __attribute__((noinline)) struct found search(const struct now *now)
{
	uint64_t mixed = memo_mixed(0, now->function);
	for (size_t i = 0; i < now->hits->words; i++)
		mixed = memo_mixed(mixed, now->hits->word[i]);
	struct memo_place *place = memo_places_of(now->tables, mixed);
	for (const struct memo_place *end = place + MEMO_WAYS; place != end; place++) {
		struct found found = look_at(place);
		if (is_same(&found, now))
			return found;
	}
	return (struct found){.place = NULL};
}

/* The place of the launch, which mostly is the one at its turn; else that is set right. */
static inline struct found find(const struct now *now, const struct memo_course *course, struct turn *turn)
{
	struct found found = look_at(memo_place_at(now->tables, memo_nth(course, turn->nth)));
	if (HOOK_UNLIKELY(!is_same(&found, now))) {
		struct now copy = *now;
		found = search(&copy);
		if (found.place)
			turn->nth = look(&found.place->seen);
	}
	return found;
}

static inline struct neighbours_mark read_note(struct memo_note *note)
{
	return (struct neighbours_mark){.writer = atomic_load_explicit(&note->writer, memory_order_acquire),
	                                .tally = atomic_load_explicit(&note->tally, memory_order_acquire),
	                                .key = memo_peek(&note->key)};
}

/*
 * Its notes. False: the place of one is another's by now, or the launch is one that is to be checked. What they point to stays, so it can be looked at before it is known that the
 * place was held.
 */
static inline bool read_notes(struct memo_place *place, size_t notes, struct neighbours_mark ret_note[MEMO_NOTES])
{
	bool waits = true;
	for (size_t i = 0; i < notes; i++) {
		ret_note[i] = read_note(memo_note_of(place, i));
		if (HOOK_UNLIKELY(!ret_note[i].writer || !ret_note[i].tally))
			return false;
		waits &= neighbours_mark_waits(&ret_note[i]);
	}
	return waits;
}

/* `noted`: the place's. */
static inline void note_all(size_t notes, uint32_t noted, const struct neighbours_mark note[MEMO_NOTES],
                            const uint64_t *word, const char *api)
{
	uint64_t time = notes ? look_launch_time() : 0;
	for (size_t i = 0; i < notes; i++)
		neighbours_mark_note(&note[i], word[noted >> 8 * i & (MEMO_WORDS - 1)], time, api);
}

/* Is there something to be done when the driver has answered? A runtime's call around it counts it, results of checks may have come, and an error may be a twin's. */
static inline bool is_watched(void)
{
	return (atomic_load_explicit(&hook_line.in_flight, memory_order_relaxed) |
	        atomic_load_explicit(&hook_line.twins_noted, memory_order_relaxed) |
	        (uintptr_t)hook_thread.outer.api) != 0;
}

/* Counts it: nothing is left to be done before the driver's call. */
static inline struct memo_answer passes(struct hook_counts *counts)
{
	hook_count_own(counts, COUNT_LAUNCH);
	if (HOOK_LIKELY(!is_watched()))
		return (struct memo_answer){.how = MEMO_PASSES};
	hook_thread.depth++;
	return (struct memo_answer){.how = MEMO_IS_WATCHED};
}

HOOK_PAGE("0") HOOK_PAGE_BEGINS struct memo_answer memo_asks(CUfunction function, void **params, const char *api)
{
	struct hook_counts *counts = hook_counts_own();
	struct neighbours_mark note[MEMO_NOTES];
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
		return (struct memo_answer){.how = MEMO_UNKNOWN};
	struct memo_course *course = memo_course(now.tables);
	struct turn turn = find_turn(&now, course);
	if (HOOK_UNLIKELY(!read_words(&now, turn.layout)))
		return (struct memo_answer){.how = MEMO_UNKNOWN};
	if (!hits.words) {
		follow_course(now.tables, course, turn, NULL);
		return passes(counts);
	}
	struct found found = find(&now, course, &turn);
	if (HOOK_UNLIKELY(!found.place))
		return (struct memo_answer){.how = MEMO_UNKNOWN};
	size_t guards = found.counts >> 24;
	if (HOOK_UNLIKELY(guards) && !guards_hold(found.place, params, guards, found.sequence))
		return (struct memo_answer){.how = MEMO_UNKNOWN};
	uint32_t noted = atomic_load_explicit(&found.place->noted, memory_order_acquire);
	const size_t notes = notes_of(found);
	bool waits = read_notes(found.place, notes, note);
	if (HOOK_UNLIKELY(!(waits & is_held(found))))
		return (struct memo_answer){.how = MEMO_UNKNOWN};
	/* Not before: what this launch reads does not wait for what the next one will. */
	follow_course(now.tables, course, turn, found.place);
	if (HOOK_UNLIKELY(swaps_of(found)))
		return (struct memo_answer){.twins = found.place, .sequence = found.sequence, .how = MEMO_HAS_TWINS};
	note_all(notes, noted, note, hits.word, api);
	if (HOOK_LIKELY(verdict_of(found) != MEMO_NO_CONCERN)) {
		hook_count_own(counts, (enum hook_counter)(COUNT_CLEAN + verdict_of(found)));
		hook_count_own(counts, COUNT_CHECKED);
	}
	return passes(counts);
}

/* False: the place is another launch's by now. */
static inline bool read_swaps(struct found found, const uint64_t word[MEMO_WORDS], struct memo_twins *ret)
{
	const struct memo_place *place = found.place;
	ret->function = atomic_load_explicit(&place->info, memory_order_acquire);
	ret->paths = atomic_load_explicit(&place->paths, memory_order_acquire);
	ret->count = swaps_of(found);
	for (size_t i = 0; i < ret->count && i < MEMO_SWAPS; i++) {
		uint64_t what = memo_peek(&place->swap[i].what);
		struct memo_twin *twin = &ret->twin[i];
		twin->value = word[what & (MEMO_WORDS - 1)];
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
	struct neighbours_mark note[MEMO_NOTES] = {{0}};
	uint64_t word[MEMO_WORDS];
	if (launch_may_overlap(config))
		return false;
	found.counts = atomic_load_explicit(&found.place->counts, memory_order_acquire);
	for (size_t i = 0; i < MEMO_WORDS; i++)
		word[i] = memo_peek(&found.place->word[i]);
	uint32_t noted = atomic_load_explicit(&found.place->noted, memory_order_acquire);
	/* Whether they wait was asked before. */
	const size_t notes = notes_of(found);
	read_notes(found.place, notes, note);
	if (!read_swaps(found, word, ret))
		return false;
	note_all(notes, noted, note, word, api);
	hook_count(COUNT_LAUNCH);
	hook_count((enum hook_counter)(COUNT_CLEAN + verdict_of(found)));
	hook_count(COUNT_CHECKED);
	hook_thread.depth++;
	return true;
}
