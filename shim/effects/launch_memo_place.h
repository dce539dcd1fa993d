/*
 * The place of a launch that was judged before, once it is found: what is done for such a launch. Included by those files of the memo that ask (launch_memo.c, launch_memo_any.c).
 */
#ifndef CUCONST_EFFECTS_LAUNCH_MEMO_PLACE_H
#define CUCONST_EFFECTS_LAUNCH_MEMO_PLACE_H

#include "shim/effects/launch_memo_internal.h"
#include "shim/hook_state.h"
#include "shim/looks.h"

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
	for (size_t i = 0; i < count * MEMO_CONDITION; i++)
		condition[i] = atomic_load_explicit(&found.place->guard[i], memory_order_acquire);
	/* Where to look must not be torn. */
	return memo_is_held(found) && memo_values_hold(params, condition, count);
}

#pragma GCC visibility push(hidden)
/* This thread's launch whose twins memo_gives_twins() is asked for. */
extern __thread struct memo_found memo_answer __attribute__((tls_model("initial-exec")));
#pragma GCC visibility pop

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

/* `noted`: the place's. */
static inline void memo_note_all(size_t notes, uint32_t noted, const struct neighbours_mark note[MEMO_NOTES],
                                 const uint64_t *word, const char *api)
{
	uint64_t time = look_launch_time();
	for (size_t i = 0; i < notes; i++)
		neighbours_mark_note(&note[i], word[noted >> 8 * i & (MEMO_WORDS - 1)], time, api);
}

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
	if (HOOK_UNLIKELY(memo_swaps_of(found))) {
		memo_answer = found;
		return MEMO_HAS_TWINS;
	}
	if (HOOK_LIKELY(notes))
		memo_note_all(notes, noted, note, word, api);
	if (HOOK_LIKELY(memo_verdict_of(found) != MEMO_NO_CONCERN)) {
		hook_count_own(taken->counts, (enum hook_counter)(COUNT_CLEAN + memo_verdict_of(found)));
		hook_count_own(taken->counts, COUNT_CHECKED);
	}
	return memo_passes(taken->counts);
}

#endif
