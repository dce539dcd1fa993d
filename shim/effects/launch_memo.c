#include "shim/effects/launch_memo.h"

#include <string.h>

#include "shim/effects/launches.h"
#include "shim/hook_state.h"
#include "shim/kernels/function.h"
#include "shim/kernels/variants.h"

#define LAYOUTS_BITS 10
#define PLACES_BITS 11
#define PARAMS 40 /* of a function whose launches are kept */
#define GUARDS 9  /* conditions on the values of the parameters */
#define MIX UINT64_C(0x9e3779b97f4a7c15)
#define NO_CONCERN 0xff /* in place of a verdict */
#define WORD sizeof(uint64_t)

/*
 * All of these are guarded by a sequence number, odd while they are written; every member is atomic, so a torn read is seen, not undefined. What is read is used only
 * after the second look at the number.
 */

/* How many whole words each parameter of a function has. A cache line. */
static struct layout {
	_Atomic uint32_t sequence, params;
	_Atomic uint64_t function, stamp;
	_Atomic uint64_t words[PARAMS / WORD]; /* a byte each */
} __attribute__((aligned(64))) layouts[1u << LAYOUTS_BITS];

struct kept_note {
	_Atomic(struct writer *) writer;
	_Atomic(struct tally *) tally;
	_Atomic uint64_t key;
};

/* One condition: parameter, small, offset and mask; and the value. */
struct kept_guard {
	_Atomic uint64_t what, value;
};

/* A launch. Most need the first two lines. */
static struct place {
	_Atomic uint32_t sequence, counts;           /* verdict, words, notes, guards: a byte each */
	_Atomic uint64_t function, stamp, at, noted; /* the last two: a byte for each word, and for each note */
	struct kept_note first;
	_Atomic uint64_t word[MEMO_WORDS];
	struct kept_note more[MEMO_NOTES - 1];
	struct kept_guard guard[GUARDS];
} __attribute__((aligned(64))) places[1u << PLACES_BITS];

static inline uint64_t peek(const _Atomic uint64_t *field)
{
	return atomic_load_explicit(field, memory_order_acquire);
}

/* Release: none can come before the number is odd. */
static inline void poke(_Atomic uint64_t *field, uint64_t value)
{
	atomic_store_explicit(field, value, memory_order_release);
}

/* False: another thread writes there. */
static bool write_begin(_Atomic uint32_t *sequence)
{
	uint32_t now = atomic_load_explicit(sequence, memory_order_relaxed);
	return !(now & 1) && atomic_compare_exchange_strong(sequence, &now, now + 1);
}

static void write_end(_Atomic uint32_t *sequence)
{
	atomic_fetch_add_explicit(sequence, 1, memory_order_release);
}

static inline struct layout *layout_of(uint64_t function)
{
	return &layouts[function * MIX >> (64 - LAYOUTS_BITS)];
}

static inline uint64_t mixed_with(uint64_t mixed, uint64_t word)
{
	return (mixed ^ word) * MIX;
}

static struct place *place_of(const struct function_info *info, const struct memo_draft *draft)
{
	uint64_t mixed = mixed_with(0, (uintptr_t)info->function);
	for (size_t i = 0; i < draft->words; i++)
		mixed = mixed_with(mixed, draft->word[i]);
	return &places[mixed >> (64 - PLACES_BITS)];
}

static inline struct kept_note *note_of(struct place *place, size_t nth)
{
	return nth ? &place->more[nth - 1] : &place->first;
}

/* The launch that comes now; its words are apart. */
struct now {
	uint64_t function, stamp, at, mixed; /* `at` as a place has it, `mixed` of the words so far */
	void *const *params;
	size_t words;
};

/* How many words each parameter has. False: not known. */
static inline bool read_layout(const struct now *now, uint64_t words[PARAMS / WORD], size_t *ret_params)
{
	struct layout *layout = layout_of(now->function);
	uint32_t sequence = atomic_load_explicit(&layout->sequence, memory_order_acquire);
	*ret_params = atomic_load_explicit(&layout->params, memory_order_acquire);
	if (sequence & 1 || *ret_params > PARAMS || peek(&layout->function) != now->function ||
	    peek(&layout->stamp) != now->stamp)
		return false;
	for (size_t i = 0; i * WORD < *ret_params; i++)
		words[i] = peek(&layout->words[i]);
	return atomic_load_explicit(&layout->sequence, memory_order_relaxed) == sequence;
}

/* The words within the bounds. False: not known how to find them, or too many. */
static inline bool read_words(struct now *now, uint64_t word[MEMO_WORDS])
{
	uint64_t words[PARAMS / WORD], value;
	size_t params, at = 0;
	if (!read_layout(now, words, &params))
		return false;
	uint64_t low = atomic_load_explicit(&hook_line.low, memory_order_relaxed);
	uint64_t high = atomic_load_explicit(&hook_line.high, memory_order_relaxed);
	for (size_t i = 0; i < params; i++) {
		const char *bytes = now->params[i];
		if (!bytes)
			return false;
		for (const char *end = bytes + WORD * ((const uint8_t *)words)[i]; bytes != end; bytes += WORD, at++) {
			memcpy(&value, bytes, sizeof value);
			if (HOOK_LIKELY(value < low || value >= high))
				continue;
			if (now->words == MEMO_WORDS)
				return false;
			now->at |= (uint64_t)at << 8 * now->words;
			now->mixed = mixed_with(now->mixed, value);
			word[now->words++] = value;
		}
	}
	return true;
}

/* Do the parameters have the values that the answer hangs on? */
static __attribute__((noinline)) bool guards_hold(const struct place *place, void *const *params, size_t guards,
                                                  uint32_t sequence)
{
	for (size_t i = 0; i < guards && i < GUARDS; i++) {
		uint64_t what = peek(&place->guard[i].what), value = peek(&place->guard[i].value);
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

static inline bool same_launch(const struct place *place, const struct now *now, const uint64_t *word, uint32_t counts)
{
	if (peek(&place->function) != now->function || peek(&place->stamp) != now->stamp ||
	    (counts >> 8 & 0xff) != now->words || peek(&place->at) != now->at)
		return false;
	for (size_t i = 0; i < now->words; i++)
		if (peek(&place->word[i]) != word[i])
			return false;
	return true;
}

/* Reads the notes, which are to be used only if the place holds the launch (another look at the number), and none of its launches is due. */
static inline bool read_place(struct place *place, const struct now *now, const uint64_t *word, uint32_t *ret_counts,
                              struct neighbours_mark note[MEMO_NOTES])
{
	uint32_t sequence = atomic_load_explicit(&place->sequence, memory_order_acquire);
	uint32_t counts = atomic_load_explicit(&place->counts, memory_order_acquire);
	size_t notes = counts >> 16 & 0xff;
	if (sequence & 1 || notes > MEMO_NOTES || !same_launch(place, now, word, counts))
		return false;
	for (size_t i = 0; i < notes; i++) {
		struct kept_note *kept = note_of(place, i);
		note[i].writer = atomic_load_explicit(&kept->writer, memory_order_acquire);
		note[i].tally = atomic_load_explicit(&kept->tally, memory_order_acquire);
		note[i].key = peek(&kept->key);
	}
	*ret_counts = counts;
	return (HOOK_LIKELY(!(counts >> 24)) || guards_hold(place, now->params, counts >> 24, sequence)) &&
	       atomic_load_explicit(&place->sequence, memory_order_relaxed) == sequence;
}

/* False: a place is another's by now, or the launch is one that is to be checked. */
static inline bool all_wait(const struct neighbours_mark *note, size_t notes)
{
	for (size_t i = 0; i < notes; i++)
		if (!neighbours_mark_waits(&note[i]))
			return false;
	return true;
}

HOOK_HOT bool memo_passes(CUfunction function, void **params, const char *api)
{
	struct now now = {.function = (uintptr_t)function, .stamp = hook_stamp(), .params = params};
	struct hook_counts *counts = hook_counts_own();
	struct neighbours_mark note[MEMO_NOTES];
	uint64_t word[MEMO_WORDS], noted = 0;
	uint32_t kept = NO_CONCERN;
	now.mixed = mixed_with(0, now.function);
	/* What is captured does not run now. */
	if (!params || !counts || atomic_load_explicit(&hook_line.captures, memory_order_relaxed) ||
	    !read_words(&now, word))
		return false;
	if (now.words) {
		struct place *place = &places[now.mixed >> (64 - PLACES_BITS)];
		if (!read_place(place, &now, word, &kept, note) || !all_wait(note, kept >> 16 & 0xff))
			return false;
		noted = kept >> 16 & 0xff ? peek(&place->noted) : 0;
	}
	uint64_t serial = launch_number();
	for (size_t i = 0; i < (kept >> 16 & 0xff); i++)
		neighbours_mark_note(&note[i], word[noted >> 8 * i & (MEMO_WORDS - 1)], serial, api);
	hook_count_own(counts, COUNT_LAUNCH);
	if ((kept & 0xff) != NO_CONCERN) {
		hook_count_own(counts, (enum hook_counter)(COUNT_CLEAN + (kept & 0xff)));
		hook_count_own(counts, COUNT_CHECKED);
	}
	hook_thread.depth++;
	return true;
}

/* False: too many parameters, or too large ones. */
static bool keep_layout(const struct function_info *info, uint64_t stamp)
{
	struct layout *layout = layout_of((uintptr_t)info->function);
	uint8_t words[PARAMS] = {0};
	if (info->param_count > PARAMS)
		return false;
	for (size_t i = 0; i < info->param_count; i++) {
		if (info->params[i].bytes / WORD > UINT8_MAX)
			return false;
		words[i] = (uint8_t)(info->params[i].bytes / WORD);
	}
	if (peek(&layout->function) == (uintptr_t)info->function && peek(&layout->stamp) == stamp)
		return true;
	if (!write_begin(&layout->sequence))
		return false;
	atomic_store_explicit(&layout->params, (uint32_t)info->param_count, memory_order_release);
	poke(&layout->function, (uintptr_t)info->function);
	poke(&layout->stamp, stamp);
	for (size_t i = 0; i < PARAMS / WORD; i++) {
		uint64_t eight;
		memcpy(&eight, words + i * WORD, sizeof eight);
		poke(&layout->words[i], eight);
	}
	write_end(&layout->sequence);
	return true;
}

/* A condition on a word of the block, as one on a parameter. False: it lies in no single one. */
static bool find_guard(const struct function_info *info, const struct variant_guard *guard, uint64_t ret[2])
{
	for (size_t i = 0; i < info->param_count; i++) {
		uint64_t start = info->params[i].offset, end = start + info->params[i].bytes;
		if (guard->offset < start || guard->offset + sizeof(uint32_t) > end || guard->offset - start > UINT16_MAX)
			continue;
		ret[0] = i | (uint64_t)guard->small << 8 | (guard->offset - start) << 16 | (uint64_t)guard->mask << 32;
		ret[1] = guard->value;
		return true;
	}
	return false;
}

static bool find_guards(const struct function_info *info, const struct variant *variant, uint64_t ret[GUARDS][2])
{
	if (variant->guard_count > GUARDS)
		return false;
	for (size_t i = 0; i < variant->guard_count; i++)
		if (!find_guard(info, &variant->guards[i], ret[i]))
			return false;
	return true;
}

static uint64_t packed(const uint8_t *bytes, size_t count)
{
	uint64_t all = 0;
	memcpy(&all, bytes, count);
	return all;
}

static void write_place(struct place *place, const struct function_info *info, const struct memo_draft *draft)
{
	poke(&place->function, (uintptr_t)info->function);
	poke(&place->stamp, draft->stamp);
	poke(&place->at, packed(draft->at, draft->words));
	poke(&place->noted, packed(draft->noted, draft->notes));
	for (size_t i = 0; i < draft->words; i++)
		poke(&place->word[i], draft->word[i]);
	for (size_t i = 0; i < draft->notes; i++) {
		struct kept_note *note = note_of(place, i);
		atomic_store_explicit(&note->writer, draft->note[i].writer, memory_order_release);
		atomic_store_explicit(&note->tally, draft->note[i].tally, memory_order_release);
		poke(&note->key, draft->note[i].key);
	}
}

void memo_keep(const struct call *call, const struct function_info *info, const struct memo_draft *draft)
{
	uint64_t guards[GUARDS][2];
	size_t count = draft->variant ? draft->variant->guard_count : 0;
	/* What changed meanwhile may have been seen in part. */
	if (hook_stamp() != draft->stamp || !keep_layout(info, draft->stamp) || !draft->words ||
	    (count && !find_guards(info, draft->variant, guards)))
		return;
	struct place *place = place_of(info, draft);
	if (!write_begin(&place->sequence))
		return;
	unsigned verdict = call->concerned ? call->verdict - KERNEL_CLEAN : NO_CONCERN;
	atomic_store_explicit(&place->counts, verdict | draft->words << 8 | draft->notes << 16 | (uint32_t)count << 24,
	                      memory_order_release);
	write_place(place, info, draft);
	for (size_t i = 0; i < count; i++) {
		poke(&place->guard[i].what, guards[i][0]);
		poke(&place->guard[i].value, guards[i][1]);
	}
	write_end(&place->sequence);
}
