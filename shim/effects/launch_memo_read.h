/*
 * What both ways of a launch that is asked for have in common (launch_memo.c, launch_memo_any.c; nobody else includes it): values, courses, and what is done for a launch whose place is found.
 */
#ifndef CUCONST_EFFECTS_LAUNCH_MEMO_READ_H
#define CUCONST_EFFECTS_LAUNCH_MEMO_READ_H

#include <string.h>

#include "shim/effects/launch_memo_internal.h"
#include "shim/hook_state.h"
#include "shim/looks.h"

static inline uint32_t memo_look(const _Atomic uint32_t *field)
{
	return atomic_load_explicit(field, memory_order_relaxed);
}

/* Do the parameters have the values of these conditions? */
static inline bool memo_values_hold(void *const *params, const uint32_t *condition, size_t count)
{
	uint32_t differ = 0, word;
	for (const uint32_t *end = condition + count * MEMO_CONDITION; condition < end; condition += MEMO_CONDITION) {
		const char *start = params[condition[0] & UINT8_MAX];
		size_t bytes = condition[0] >> 24;
		/* One that is left out has no entry, and nobody looked at it yet. */
		if (HOOK_UNLIKELY(!start))
			return false;
		start += condition[0] >> 8 & UINT16_MAX;
		if (HOOK_UNLIKELY(bytes))
			for (word = 0; bytes--;)
				word = word << 8 | (uint8_t)start[bytes];
		else
			memcpy(&word, start, sizeof word);
		differ |= (word & condition[1]) ^ condition[2];
	}
	return !differ;
}

/* The same of those that lie behind the pieces of a layout. */
static inline bool memo_layout_holds(void *const *params, const uint32_t *entry, uint32_t entries)
{
	const size_t conditions = memo_conditions(entries);
	return !HOOK_UNLIKELY(conditions) || memo_values_hold(params, entry + memo_conditions_at(entries), conditions);
}

/* Entries of a layout, from the one to before the other. Used only once it is known that the layout was held. */
static inline __attribute__((always_inline)) void memo_copy(const struct memo_layout *layout, size_t from, size_t to,
                                                            uint32_t *ret_entry)
{
#pragma GCC unroll 8
	for (size_t i = from; i < to; i += MEMO_PACKED) {
		uint64_t packed = memo_peek(&layout->packed[i / MEMO_PACKED]);
		memcpy(ret_entry + i, &packed, sizeof packed);
	}
}
_Static_assert(offsetof(struct memo_layout, packed) + MEMO_LINE_ENTRIES * sizeof(uint32_t) == MEMO_LINE,
               "the first line");

/* A line to the second-level cache: until the launch that needs it the first is full of other things again. */
static inline void memo_fetch(const void *line)
{
	__builtin_prefetch(line, 0, 2);
}

/* Is there something to be done when the driver has answered? A runtime's call around it counts it, results of checks may have come, and an error may be a twin's. */
static inline bool memo_is_watched(void)
{
	return (atomic_load_explicit(&hook_line.in_flight, memory_order_relaxed) |
	        atomic_load_explicit(&hook_line.twins_noted, memory_order_relaxed) |
	        (uintptr_t)hook_thread.outer.api) != 0;
}

/* Counts it: nothing is left to be done before the driver's call. */
static inline enum memo_how memo_passes(struct hook_counts *counts)
{
	hook_count_own(counts, COUNT_LAUNCH);
	if (HOOK_LIKELY(!memo_is_watched()))
		return MEMO_PASSES;
	hook_thread.depth++;
	return MEMO_IS_WATCHED;
}

/* launch_memo_any.c: the same question as memo_asks(), for any launch. */
enum memo_how memo_asks_any(CUfunction function, void **params, const char *api);

/* The next launch of a course, and the one behind it. */
struct memo_ahead {
	uint32_t next, later;
};

/* The thread had a launch, which was expected as the `nth` of its course or is found there: fetches the layout of the next one, as it came the last time. */
static inline struct memo_ahead memo_follow_course(struct memo_tables *tables, struct memo_course *course, uint32_t nth,
                                                   uint32_t launch)
{
	uint32_t count = memo_look(&course->count);
	atomic_store_explicit(&course->launch[count % MEMO_COURSE], launch, memory_order_relaxed);
	atomic_store_explicit(&course->count, count + 1, memory_order_relaxed);
	atomic_store_explicit(&course->next, nth + 1, memory_order_relaxed);
	struct memo_ahead ahead = {memo_nth(course, nth + 1), memo_nth(course, nth + 2)};
	const char *layout = (const char *)memo_layout_at(tables, ahead.next);
	memo_fetch(layout);
	memo_fetch(layout + MEMO_LINE);
	memo_fetch((const char *)course + offsetof(struct memo_course, launch) +
	           (nth + MEMO_AHEAD) % MEMO_COURSE * sizeof(uint32_t));
	return ahead;
}

static inline void memo_fetch_note(const struct memo_note *note)
{
	memo_fetch(atomic_load_explicit(&note->writer, memory_order_relaxed));
	memo_fetch(atomic_load_explicit(&note->tally, memory_order_relaxed));
}

/* What the next launch reads and writes besides its place, which is there by now; and the place of the one behind it. */
static inline void memo_fetch_places(struct memo_tables *tables, struct memo_ahead ahead)
{
	const struct memo_place *place = memo_place_at(tables, ahead.next), *behind = memo_place_at(tables, ahead.later);
	memo_fetch_note(&place->first);
	memo_fetch_note(&place->more[0]);
	memo_fetch_note(&place->more[1]);
	if (HOOK_UNLIKELY(memo_look(&place->counts) >> 4 & 0xf))
		memo_fetch(place->swap);
	memo_fetch(behind);
	memo_fetch(behind->word);
	memo_fetch(behind->more);
}
_Static_assert(MEMO_NOTES == 3, "each is fetched");

/* Where a launch is kept, as it was when that was seen. In two registers. */
struct memo_found {
	struct memo_place *place;  /* NULL: nowhere */
	uint32_t sequence, counts; /* the place's */
};

static inline struct memo_found memo_look_at(struct memo_place *place)
{
	return (struct memo_found){.place = place,
	                           .sequence = atomic_load_explicit(&place->sequence, memory_order_acquire),
	                           .counts = atomic_load_explicit(&place->counts, memory_order_acquire)};
}

static inline unsigned memo_verdict_of(struct memo_found found)
{
	return found.counts & 0xf;
}

static inline unsigned memo_swaps_of(struct memo_found found)
{
	return found.counts >> 4 & 0xf;
}

static inline unsigned memo_notes_of(struct memo_found found)
{
	unsigned notes = found.counts >> 16 & 0xff;
	return notes < MEMO_NOTES ? notes : MEMO_NOTES;
}

static inline bool memo_is_held(struct memo_found found)
{
	return atomic_load_explicit(&found.place->sequence, memory_order_relaxed) == found.sequence;
}

/* Do the parameters have the values that the answer hangs on? */
static inline bool memo_guards_hold(struct memo_found found, void *const *params)
{
	uint32_t condition[MEMO_GUARDS * MEMO_CONDITION];
	const size_t guards = found.counts >> 24, count = guards < MEMO_GUARDS ? guards : MEMO_GUARDS;
	if (HOOK_LIKELY(!count))
		return true;
	for (size_t i = 0; i < count * MEMO_CONDITION; i += MEMO_CONDITION)
		for (size_t part = i; part < i + MEMO_CONDITION; part++)
			condition[part] = atomic_load_explicit(&found.place->guard[part], memory_order_acquire);
	/* Where to look must not be torn. */
	return memo_is_held(found) && memo_values_hold(params, condition, count);
}

static inline struct neighbours_mark memo_read_note(struct memo_note *note)
{
	return (struct neighbours_mark){.writer = atomic_load_explicit(&note->writer, memory_order_acquire),
	                                .tally = atomic_load_explicit(&note->tally, memory_order_acquire),
	                                .key = memo_peek(&note->key)};
}

/*
 * Its notes. False: the place of one is another's by now, or the launch is one that is to be checked. What they point to stays, so it can be looked at before it is known that the
 * place was held.
 */
static inline bool memo_read_notes(struct memo_place *place, size_t notes, struct neighbours_mark ret_note[MEMO_NOTES])
{
	bool waits = true;
	for (size_t i = 0; i < notes; i++) {
		ret_note[i] = memo_read_note(memo_note_of(place, i));
		if (HOOK_UNLIKELY(!ret_note[i].writer || !ret_note[i].tally))
			return false;
		waits &= neighbours_mark_waits(&ret_note[i]);
	}
	return waits;
}

/* `noted`: the place's. Which of its words the nth note is of. */
static inline uint64_t memo_word_noted(uint32_t noted, size_t nth, const uint64_t *word)
{
	return word[noted >> 8 * nth & (MEMO_WORDS - 1)];
}

static inline void memo_note_all(size_t notes, uint32_t noted, const struct neighbours_mark note[MEMO_NOTES],
                                 const uint64_t *word, const char *api)
{
	uint64_t time = look_launch_time();
	for (size_t i = 0; i < notes; i++)
		neighbours_mark_note(&note[i], memo_word_noted(noted, i, word), time, api);
}

static inline void memo_count_judged(struct hook_counts *counts, unsigned verdict)
{
	hook_count_own(counts, (enum hook_counter)(COUNT_CLEAN + verdict));
	hook_count_own(counts, COUNT_CHECKED);
}

/* launch_memo_twins.c: for memo_gives_twins(), the twins of a launch that is that of the place. MEMO_UNKNOWN: that was not held until now. */
enum memo_how memo_keeps_twins(struct memo_found found, uint32_t noted, const uint64_t *word);

/* Of whose course it is, where in that, and as what it goes there. */
struct memo_taken {
	struct memo_tables *tables;
	struct memo_course *course;
	uint32_t nth, launch;
	struct hook_counts *counts;
};

/* The launch is that of the place. `word`: those of its words that may concern a range. Nothing is done if it is not to be answered from there, or the place was not held until now. */
static inline enum memo_how memo_takes(const struct memo_taken *taken, struct memo_found found, const uint64_t *word,
                                       const char *api)
{
	struct neighbours_mark note[MEMO_NOTES];
	uint32_t noted = atomic_load_explicit(&found.place->noted, memory_order_acquire);
	const size_t notes = memo_notes_of(found);
	bool waits = memo_read_notes(found.place, notes, note);
	if (HOOK_UNLIKELY(!(waits & memo_is_held(found))))
		return MEMO_UNKNOWN;
	/* Not before: what this launch reads does not wait for what the next one will. */
	atomic_store_explicit(&found.place->seen, memo_look(&taken->course->count), memory_order_relaxed);
	memo_fetch_places(taken->tables, memo_follow_course(taken->tables, taken->course, taken->nth, taken->launch));
	if (HOOK_UNLIKELY(memo_swaps_of(found)))
		return memo_keeps_twins(found, noted, word);
	if (HOOK_LIKELY(notes))
		memo_note_all(notes, noted, note, word, api);
	if (HOOK_LIKELY(memo_verdict_of(found) != MEMO_NO_CONCERN))
		memo_count_judged(taken->counts, memo_verdict_of(found));
	return memo_passes(taken->counts);
}

#endif
