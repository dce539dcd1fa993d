/*
 * Launches that are expected, and whose words are few: most of a program's. All that those need which concern nothing is in few lines of code, and so is what the others do; what is
 * left goes to launch_memo_any.c.
 */
#include "shim/effects/launch_memo.h"

#include "shim/effects/launch_memo_read.h"
#include "shim/hook_state.h"
#include "shim/verdict/words.h"

#define VALUES 32 /* room for so many: whatever a torn place says, it is there */

/* What its parameters are. 0: not known, or not plain. */
static inline uint32_t read_plain(const struct memo_layout *layout, uint64_t function, uint64_t stamp,
                                  uint32_t ret_entry[MEMO_PLAIN_ENTRIES])
{
	uint32_t sequence = atomic_load_explicit(&layout->sequence, memory_order_acquire);
	uint32_t entries = atomic_load_explicit(&layout->entries, memory_order_acquire);
	uint64_t differ = (sequence & 1) | (memo_peek(&layout->function) ^ function) |
	                  (memo_peek(&layout->stamp) ^ stamp) | (~entries & MEMO_PLAIN);
	if (HOOK_UNLIKELY(differ))
		return 0;
	memo_copy(layout, 0, MEMO_LINE_ENTRIES, ret_entry);
	if (HOOK_UNLIKELY(memo_entries(entries) > MEMO_LINE_ENTRIES))
		memo_copy(layout, MEMO_LINE_ENTRIES, MEMO_PLAIN_ENTRIES, ret_entry);
	return atomic_load_explicit(&layout->sequence, memory_order_relaxed) == sequence ? entries : 0;
}

/* None of its words may concern a range. */
static inline bool is_elsewhere(void *const *params, const uint32_t *entry, size_t words)
{
	const struct words_bounds bounds = words_bounds();
	bool hit = false;
	for (const uint32_t *end = entry + words; entry < end; entry++) {
		const char *start = params[memo_entry_param(*entry)];
		uint64_t value;
		if (HOOK_UNLIKELY(!start))
			return false;
		memcpy(&value, start + memo_entry_first(*entry) * MEMO_WORD, sizeof value);
		hit |= words_hit(&bounds, value);
	}
	return !hit;
}

/* Its words, and of which of them may concern a range a bit each. False: one is not there. */
static inline bool find_hits(void *const *params, const uint32_t *entry, size_t words, uint64_t ret_value[VALUES],
                             uint32_t *ret_hits)
{
	const struct words_bounds bounds = words_bounds();
	uint32_t hits = 0;
	size_t i = 0;
	do {
		const char *start = params[memo_entry_param(entry[i])];
		if (HOOK_UNLIKELY(!start))
			return false;
		memcpy(&ret_value[i], start + memo_entry_first(entry[i]) * MEMO_WORD, sizeof *ret_value);
		hits |= (uint32_t)words_hit(&bounds, ret_value[i]) << i;
	} while (++i < words);
	*ret_hits = hits;
	return true;
}

/* Is the launch that of the place? The same words have to be hit, and be the same. */
static inline bool is_same(struct memo_found found, uint64_t key, uint64_t stamp, uint32_t entries, uint32_t hits,
                           const uint64_t value[VALUES], uint64_t ret_word[MEMO_WORDS])
{
	const struct memo_place *place = found.place;
	size_t words = found.counts >> 8 & (MEMO_WORDS * 2 - 1), i = 0;
	uint64_t at = memo_peek(&place->at),
		 differ = (found.sequence & 1) | (memo_peek(&place->key) ^ key) | (memo_peek(&place->stamp) ^ stamp) |
	                  ((found.counts >> 8 & 0xff) ^ memo_words_of(words, entries, false));
	/* As many as there are; what is torn may be any number. */
	words = words < MEMO_WORDS ? words : MEMO_WORDS;
	do {
		size_t nth = at & (VALUES - 1);
		ret_word[i] = value[nth];
		differ |= memo_peek(&place->word[i]) ^ value[nth];
		hits ^= UINT32_C(1) << nth;
		at >>= 8;
	} while (++i < words);
	return !(differ | hits);
}
_Static_assert(MEMO_PLAIN_ENTRIES <= VALUES && VALUES <= 32, "a bit for each");

/* A launch that may concern a range, as the one did that is expected. */
static HOOK_PAGE("0b") __attribute__((noinline)) enum memo_how
	asks_near(CUfunction function, void **params, const char *api, uint32_t nth, uint32_t launch,
                  struct memo_course *course)
{
	uint32_t room[MEMO_PLAIN_ENTRIES], hits;
	uint64_t value[VALUES], word[MEMO_WORDS];
	struct memo_tables *tables = memo_tables();
	const uint64_t stamp = hook_stamp();
	uint32_t entries = read_plain(memo_layout_at(tables, launch), (uintptr_t)function, stamp, room);
	if (HOOK_UNLIKELY(!(entries & MEMO_COUNT) || !memo_layout_holds(params, room, entries) ||
	                  !find_hits(params, room, entries & MEMO_COUNT, value, &hits)))
		return memo_asks_any(function, params, api);
	struct memo_found found = memo_look_at(memo_place_at(tables, launch));
	if (HOOK_UNLIKELY(!is_same(found, memo_key((uintptr_t)function, entries), stamp, entries, hits, value, word) ||
	                  !memo_guards_hold(found, params)))
		return memo_asks_any(function, params, api);
	return memo_takes(&(struct memo_taken){tables, course, nth, launch, hook_thread.counts}, found, word, api);
}

/* One that concerns nothing, as the one that is expected: most of all. */
static HOOK_PAGE("0a") __attribute__((noinline)) enum memo_how
	asks_elsewhere(CUfunction function, void **params, const char *api, uint32_t nth, uint32_t launch,
                       struct memo_course *course)
{
	uint32_t room[MEMO_PLAIN_ENTRIES];
	struct memo_tables *tables = memo_tables();
	const uint64_t stamp = hook_stamp();
	uint32_t entries = read_plain(memo_layout_at(tables, launch), (uintptr_t)function, stamp, room);
	if (HOOK_UNLIKELY(!entries || !memo_layout_holds(params, room, entries) ||
	                  !is_elsewhere(params, room, entries & MEMO_COUNT)))
		return memo_asks_any(function, params, api);
	struct memo_ahead ahead = memo_follow_course(tables, course, nth, launch);
	if (HOOK_UNLIKELY((ahead.next | ahead.later) >> MEMO_PLACE_SHIFT))
		memo_fetch_places(tables, ahead);
	return memo_passes(hook_thread.counts);
}

HOOK_PAGE("0") HOOK_PAGE_BEGINS enum memo_how memo_asks(CUfunction function, void **params, const char *api)
{
	struct memo_course *course = hook_thread.course;
	/* What is captured does not run now. */
	if (HOOK_UNLIKELY(!hook_counts_own() || !course || !params ||
	                  atomic_load_explicit(&hook_line.captures, memory_order_relaxed)))
		return memo_asks_any(function, params, api);
	const uint32_t nth = memo_look(&course->next), launch = memo_nth(course, nth);
	return launch >> MEMO_PLACE_SHIFT ? asks_near(function, params, api, nth, launch, course)
	                                  : asks_elsewhere(function, params, api, nth, launch, course);
}
