/* Launches that were given twins before, and are again. */
#include "shim/effects/launch_memo_read.h"
#include "shim/effects/launches.h"
#include "shim/hook_state.h"

/* What this thread's last question found. */
static __thread struct {
	struct memo_twins twins;
	struct memo_found found;
	uint64_t word[MEMO_NOTES]; /* that each of its notes is of */
} answer __attribute__((tls_model("initial-exec")));

static inline void read_twins(struct memo_found found, const uint64_t *word)
{
	const struct memo_place *place = found.place;
	struct memo_twins *twins = &answer.twins;
	size_t count = memo_swaps_of(found);
	twins->count = count < MEMO_SWAPS ? count : MEMO_SWAPS;
	twins->function = atomic_load_explicit(&place->info, memory_order_acquire);
	twins->paths = atomic_load_explicit(&place->paths, memory_order_acquire);
	for (size_t i = 0; i < twins->count; i++) {
		uint64_t what = memo_peek(&place->swap[i].what);
		twins->twin[i] = (struct memo_twin){.value = word[what & (MEMO_WORDS - 1)],
		                                    .twin = memo_peek(&place->swap[i].twin),
		                                    .range = memo_peek(&place->swap[i].range),
		                                    .argument = what >> 8 & 0xff,
		                                    .offset = what >> 32 & 0xffff,
		                                    .bytes = (uint16_t)(what >> 48)};
		twins->params = what >> 16 & 0xff;
	}
}

HOOK_HOT enum memo_how memo_keeps_twins(struct memo_found found, uint32_t noted, const uint64_t *word)
{
	const size_t notes = memo_notes_of(found);
	read_twins(found, word);
	for (size_t i = 0; i < notes; i++)
		answer.word[i] = memo_word_noted(noted, i, word);
	answer.found = found;
	return HOOK_LIKELY(memo_is_held(found)) ? MEMO_HAS_TWINS : MEMO_UNKNOWN;
}

/* Whether they wait was asked before. False: the place is another launch's by now. */
static inline bool note_all(const char *api)
{
	const struct memo_found found = answer.found;
	const size_t notes = memo_notes_of(found);
	struct neighbours_mark note[MEMO_NOTES];
	if (!notes)
		return true;
	memo_read_notes(found.place, notes, note);
	if (HOOK_UNLIKELY(!memo_is_held(found)))
		return false;
	uint64_t time = look_launch_time();
	for (size_t i = 0; i < notes; i++)
		neighbours_mark_note(&note[i], answer.word[i], time, api);
	return true;
}

HOOK_HOT const struct memo_twins *memo_gives_twins(const CUlaunchConfig *config, const char *api)
{
	struct hook_counts *counts = hook_thread.counts;
	if (HOOK_UNLIKELY(launch_may_overlap(config) || !note_all(api)))
		return NULL;
	hook_count_own(counts, COUNT_LAUNCH);
	memo_count_judged(counts, memo_verdict_of(answer.found));
	hook_thread.depth++;
	return &answer.twins;
}
