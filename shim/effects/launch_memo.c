#include "shim/effects/launch_memo.h"

#include <string.h>

#include "shim/effects/launch_memo_internal.h"
#include "shim/effects/launches.h"
#include "shim/hook_state.h"
#include "shim/kernels/variants.h"
#include "shim/verdict/words.h"

/* The launch that comes now. */
struct now {
	struct memo_tables *tables;
	uint64_t function, stamp, at, mixed; /* `at` as a place has it, `mixed` of the words so far */
	void *const *params;
	struct words_bounds bounds;
	size_t words, seen; /* that may concern a range, and all that were looked at */
	uint64_t word[MEMO_WORDS];
};

/* Member by member: the room for words is not to be cleared. */
static inline void now_begin(struct now *now, CUfunction function, void *const *params)
{
	now->tables = memo_tables();
	now->function = (uintptr_t)function;
	now->stamp = hook_stamp();
	now->at = 0;
	now->mixed = memo_mixed(0, now->function);
	now->params = params;
	now->bounds = words_bounds();
	now->words = now->seen = 0;
}

/* What its parameters are. False: not known. */
static inline bool read_layout(const struct now *now, uint16_t ret_entry[MEMO_ENTRIES], size_t *ret_entries)
{
	struct memo_layout *layout = memo_layouts_of(now->tables, now->function);
	layout += memo_peek(&layout->function) != now->function;
	uint32_t sequence = atomic_load_explicit(&layout->sequence, memory_order_acquire);
	size_t entries = atomic_load_explicit(&layout->entries, memory_order_acquire), i = 0;
	uint64_t differ = (sequence & 1) | (memo_peek(&layout->function) ^ now->function) |
	                  (memo_peek(&layout->stamp) ^ now->stamp);
	if (HOOK_UNLIKELY(differ || entries > MEMO_ENTRIES))
		return false;
	do {
		uint64_t packed = memo_peek(&layout->packed[i]);
		memcpy(ret_entry + i * MEMO_PACKED, &packed, sizeof packed);
	} while (HOOK_UNLIKELY(++i * MEMO_PACKED < entries));
	*ret_entries = entries;
	return atomic_load_explicit(&layout->sequence, memory_order_relaxed) == sequence;
}

/* A word that is hit, the nth of those to come. False: one too many. The same as memo_draft_word(): a place has 8 bits for each. */
static inline bool take_word(void *context, uint64_t value, size_t nth)
{
	struct now *now = context;
	size_t at = now->seen + nth;
	if (HOOK_UNLIKELY(now->words == MEMO_WORDS || at > UINT8_MAX))
		return false;
	now->at |= (uint64_t)at << 8 * now->words;
	now->mixed = memo_mixed(now->mixed, value);
	now->word[now->words++] = value;
	return true;
}

/* Of a parameter with many words, whose entries begin here. Their number; 0: one word too many. */
static HOOK_HOT __attribute__((noinline)) size_t read_many(struct now *now, const char *start, const uint16_t *entry)
{
	size_t entries = 0, count;
	do {
		count = memo_entry_words(entry[entries++]);
		if (!words_each(&now->bounds, start, count, take_word, now))
			return 0;
		start += count * MEMO_WORD;
		now->seen += count;
	} while (count == MEMO_GOES_ON);
	return entries;
}

/* The words that may concern a range. False: not known how to find them, or too many. */
static inline bool read_words(struct now *now)
{
	uint16_t room[MEMO_ENTRIES];
	uint64_t value;
	size_t entries;
	if (HOOK_UNLIKELY(!read_layout(now, room, &entries)))
		return false;
	const uint16_t *entry = room, *end = room + entries;
	while (entry != end) {
		const char *start = now->params[memo_entry_param(*entry)];
		size_t count = memo_entry_words(*entry);
		if (HOOK_UNLIKELY(!start))
			return false;
		if (HOOK_UNLIKELY(count >= MEMO_MANY)) {
			size_t read = read_many(now, start, entry);
			if (!read)
				return false;
			entry += read;
			continue;
		}
		do {
			memcpy(&value, start, sizeof value);
			if (HOOK_UNLIKELY(words_hit(&now->bounds, value)) && !take_word(now, value, 0))
				return false;
			start += MEMO_WORD;
			now->seen++;
		} while (HOOK_UNLIKELY(--count));
		entry++;
	}
	return true;
}

static inline uint32_t look(const _Atomic uint32_t *field)
{
	return atomic_load_explicit(field, memory_order_relaxed);
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
static inline void fetch_rest(const struct memo_place *place)
{
	fetch_note(&place->first);
	fetch_note(&place->more[0]);
	fetch_note(&place->more[1]);
	if (HOOK_UNLIKELY(look(&place->counts) >> 4 & 0xf))
		fetch(place->swap);
}
_Static_assert(MEMO_NOTES == 3, "each is fetched");

/* The thread is at the launch of this place: fetches what the next ones need, as they came the last time. `expected` is where the course was thought to be. */
static inline void follow_course(struct memo_tables *tables, struct memo_course *course,
                                 const struct memo_place *expected, struct memo_place *place)
{
	uint32_t count = look(&course->count), at = look(HOOK_LIKELY(place == expected) ? &course->next : &place->seen);
	atomic_store_explicit(&course->place[count % MEMO_COURSE], memo_number_of(tables, place), memory_order_relaxed);
	atomic_store_explicit(&place->seen, count, memory_order_relaxed);
	atomic_store_explicit(&course->count, count + 1, memory_order_relaxed);
	atomic_store_explicit(&course->next, at + 1, memory_order_relaxed);
	fetch_rest(memo_nth_of(tables, course, at + 1));
	const struct memo_place *later = memo_nth_of(tables, course, at + 2);
	fetch(later);
	fetch(later->word);
	fetch(later->more);
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

/* Asked at once, not one by one: mostly all are the same. */
static inline bool same_launch(const struct memo_place *place, const struct now *now, uint32_t sequence, uint32_t counts)
{
	uint64_t differ = (sequence & 1) | (memo_peek(&place->function) ^ now->function) |
	                  (memo_peek(&place->stamp) ^ now->stamp) | ((counts >> 8 & 0xff) ^ now->words) |
	                  (memo_peek(&place->at) ^ now->at);
	for (size_t i = 0; i < now->words; i++)
		differ |= memo_peek(&place->word[i]) ^ now->word[i];
	return !differ;
}

/* A launch that was kept, and none of whose notes is due. */
struct found {
	struct memo_place *place;
	uint32_t sequence, counts, noted; /* the place's */
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

static inline unsigned notes_of(const struct found *found)
{
	unsigned notes = found->counts >> 16 & 0xff;
	return notes < MEMO_NOTES ? notes : MEMO_NOTES;
}

static inline bool is_held(const struct found *found)
{
	return atomic_load_explicit(&found->place->sequence, memory_order_relaxed) == found->sequence;
}

static inline struct neighbours_mark read_note(struct memo_note *note)
{
	return (struct neighbours_mark){.writer = atomic_load_explicit(&note->writer, memory_order_acquire),
	                                .tally = atomic_load_explicit(&note->tally, memory_order_acquire),
	                                .key = memo_peek(&note->key)};
}

static inline void read_notes(struct found *found)
{
	found->noted = atomic_load_explicit(&found->place->noted, memory_order_acquire);
	for (size_t i = 0; i < notes_of(found); i++)
		found->note[i] = read_note(memo_note_of(found->place, i));
}

static inline bool is_at(struct found *found, const struct now *now, struct memo_place *place)
{
	found->place = place;
	found->sequence = atomic_load_explicit(&place->sequence, memory_order_acquire);
	found->counts = atomic_load_explicit(&place->counts, memory_order_acquire);
	return same_launch(place, now, found->sequence, found->counts);
}

/* False: it has no place. */
static HOOK_HOT __attribute__((noinline)) bool search(struct found *found, const struct now *now)
{
	struct memo_place *place = memo_places_of(now->tables, now->mixed);
	for (const struct memo_place *end = place + MEMO_WAYS; place != end; place++)
		if (is_at(found, now, place))
			return true;
	return false;
}

/*
 * False: it has no place; or the place of a note is another's by now; or the launch is one that is to be checked. Mostly it is the one that its thread was expected to come to.
 */
static inline bool read_place(struct found *found, const struct now *now)
{
	struct memo_course *course = memo_course(now->tables);
	struct memo_place *expected = memo_nth_of(now->tables, course, look(&course->next));
	if (HOOK_UNLIKELY(!is_at(found, now, expected)) && !search(found, now))
		return false;
	follow_course(now->tables, course, expected, found->place);
	size_t guards = found->counts >> 24;
	if (HOOK_UNLIKELY(guards) && !guards_hold(found->place, now->params, guards, found->sequence))
		return false;
	found->noted = atomic_load_explicit(&found->place->noted, memory_order_acquire);
	/* What they point to stays, so it can be looked at before it is known that the place was held. */
	bool waits = true;
	for (size_t i = 0; i < notes_of(found); i++) {
		found->note[i] = read_note(memo_note_of(found->place, i));
		waits &= found->note[i].writer && found->note[i].tally && neighbours_mark_waits(&found->note[i]);
	}
	return waits & is_held(found);
}

static inline void note_all(const struct found *found, const uint64_t word[MEMO_WORDS], const char *api)
{
	uint64_t serial = launch_number();
	for (size_t i = 0; i < notes_of(found); i++)
		neighbours_mark_note(&found->note[i], word[found->noted >> 8 * i & (MEMO_WORDS - 1)], serial, api);
}

HOOK_HOT struct memo_answer memo_asks(CUfunction function, void **params, const char *api)
{
	struct hook_counts *counts = hook_counts_own();
	struct now now;
	struct found found;
	found.counts = MEMO_NO_CONCERN;
	now_begin(&now, function, params);
	/* What is captured does not run now. */
	if (HOOK_UNLIKELY(!counts || !params || !now.tables ||
	                  atomic_load_explicit(&hook_line.captures, memory_order_relaxed)) ||
	    !read_words(&now) || (HOOK_LIKELY(now.words) && !read_place(&found, &now)))
		return (struct memo_answer){.passes = false};
	if (HOOK_UNLIKELY(swaps_of(&found)))
		return (struct memo_answer){.twins = found.place, .sequence = found.sequence};
	note_all(&found, now.word, api);
	hook_count_own(counts, COUNT_LAUNCH);
	if (verdict_of(&found) != MEMO_NO_CONCERN) {
		hook_count_own(counts, (enum hook_counter)(COUNT_CLEAN + verdict_of(&found)));
		hook_count_own(counts, COUNT_CHECKED);
	}
	hook_thread.depth++;
	return (struct memo_answer){.passes = true};
}

/* False: the place is another launch's by now. */
static inline bool read_swaps(const struct found *found, const uint64_t word[MEMO_WORDS], struct memo_twins *ret)
{
	const struct memo_place *place = found->place;
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
	uint64_t word[MEMO_WORDS];
	if (launch_may_overlap(config))
		return false;
	found.counts = atomic_load_explicit(&found.place->counts, memory_order_acquire);
	for (size_t i = 0; i < MEMO_WORDS; i++)
		word[i] = memo_peek(&found.place->word[i]);
	read_notes(&found);
	if (!read_swaps(&found, word, ret))
		return false;
	note_all(&found, word, api);
	hook_count(COUNT_LAUNCH);
	hook_count((enum hook_counter)(COUNT_CLEAN + verdict_of(&found)));
	hook_count(COUNT_CHECKED);
	hook_thread.depth++;
	return true;
}
