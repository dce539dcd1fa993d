/* What is written into the tables of launch_memo.c, and where they are. */
#include <string.h>

#include "shim/effects/launch_memo_internal.h"
#include "shim/hook_state.h"
#include "shim/hot_page.h"
#include "shim/kernels/function.h"
#include "shim/kernels/variants.h"

void memo_start(void)
{
	if (!memo_tables())
		atomic_store_explicit(&hook_line.memo, hot_page_take(sizeof(struct memo_tables)), memory_order_release);
}

/* Release: none can come before the number is odd. */
static void poke(_Atomic uint64_t *field, uint64_t value)
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

/* Where it is, or else where there is room: what has another stamp is as good as none. Of two that have to share, each is always in the same place, and only they push each other out. */
static struct memo_layout *layout_of(struct memo_tables *tables, uint64_t function, uint64_t stamp)
{
	struct memo_layout *first = memo_layouts_of(tables, function);
	for (size_t way = 0; way < MEMO_LAYOUT_WAYS; way++)
		if (memo_peek(&first[way].function) == function)
			return &first[way];
	for (size_t way = 0; way < MEMO_LAYOUT_WAYS; way++)
		if (memo_peek(&first[way].stamp) != stamp)
			return &first[way];
	return &first[memo_way(memo_mixed(0, function)) % MEMO_LAYOUT_WAYS];
}

/* Entries of one parameter: none, where it has no word. `ret_entries` has room for `room`. SIZE_MAX: too little. */
static size_t make_entries(size_t param, size_t words, uint16_t *ret_entries, size_t room)
{
	size_t count = words ? words / MEMO_GOES_ON + 1 : 0;
	if (count > room || (count && param > UINT8_MAX))
		return SIZE_MAX;
	for (size_t i = 0; i < count; i++, words -= MEMO_GOES_ON)
		ret_entries[i] = memo_entry(param, words < MEMO_GOES_ON ? words : MEMO_GOES_ON);
	return count;
}

/* False: too many parameters, or too large ones. */
static bool keep_layout(struct memo_tables *tables, const struct function_info *info, uint64_t stamp)
{
	struct memo_layout *layout = layout_of(tables, (uintptr_t)info->function, stamp);
	uint16_t entries[MEMO_ENTRIES] = {0};
	size_t count = 0;
	if (memo_peek(&layout->function) == (uintptr_t)info->function && memo_peek(&layout->stamp) == stamp)
		return true;
	for (size_t i = 0; i < info->param_count; i++) {
		size_t made = make_entries(i, info->params[i].bytes / MEMO_WORD, entries + count, MEMO_ENTRIES - count);
		if (made == SIZE_MAX)
			return false;
		count += made;
	}
	if (!write_begin(&layout->sequence))
		return false;
	atomic_store_explicit(&layout->entries, (uint32_t)count, memory_order_release);
	poke(&layout->function, (uintptr_t)info->function);
	poke(&layout->stamp, stamp);
	for (size_t i = 0; i < MEMO_LAYOUT_WORDS; i++) {
		uint64_t packed;
		memcpy(&packed, entries + i * MEMO_PACKED, sizeof packed);
		poke(&layout->packed[i], packed);
	}
	write_end(&layout->sequence);
	return true;
}

/* A condition on a word of the block, as one on a parameter, whose number has 8 bits. False: it lies in no single one. */
static bool find_guard(const struct function_info *info, const struct variant_guard *guard, uint64_t ret[2])
{
	for (size_t i = 0; i < info->param_count && i <= UINT8_MAX; i++) {
		uint64_t start = info->params[i].offset, end = start + info->params[i].bytes;
		if (guard->offset < start || guard->offset + sizeof(uint32_t) > end || guard->offset - start > UINT16_MAX)
			continue;
		ret[0] = i | (uint64_t)guard->small << 8 | (guard->offset - start) << 16 | (uint64_t)guard->mask << 32;
		ret[1] = guard->value;
		return true;
	}
	return false;
}

static bool find_guards(const struct function_info *info, const struct variant *variant, uint64_t ret[MEMO_GUARDS][2])
{
	if (variant->guard_count > MEMO_GUARDS)
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

static void write_place(struct memo_place *place, const struct function_info *info, const struct memo_draft *draft)
{
	poke(&place->function, (uintptr_t)info->function);
	poke(&place->stamp, draft->stamp);
	poke(&place->at, packed(draft->at, draft->words));
	atomic_store_explicit(&place->noted, (uint32_t)packed(draft->noted, draft->notes), memory_order_release);
	for (size_t i = 0; i < draft->words; i++)
		poke(&place->word[i], draft->word[i]);
	for (size_t i = 0; i < draft->notes; i++) {
		struct memo_note *note = memo_note_of(place, i);
		atomic_store_explicit(&note->writer, draft->note[i].writer, memory_order_release);
		atomic_store_explicit(&note->tally, draft->note[i].tally, memory_order_release);
		poke(&note->key, draft->note[i].key);
	}
	/* The others are not read, but fetched with them: what is there anyway. */
	for (size_t i = draft->notes; i < MEMO_NOTES; i++) {
		struct memo_note *note = memo_note_of(place, i);
		atomic_store_explicit(&note->writer, (struct writer *)(void *)place, memory_order_release);
		atomic_store_explicit(&note->tally, (struct tally *)(void *)place, memory_order_release);
	}
}

static bool is_of(const struct memo_place *place, const struct function_info *info, const struct memo_draft *draft)
{
	uint32_t counts = atomic_load_explicit(&place->counts, memory_order_acquire);
	bool same = memo_peek(&place->function) == (uintptr_t)info->function && (counts >> 8 & 0xff) == draft->words &&
	            memo_peek(&place->at) == packed(draft->at, draft->words);
	for (size_t i = 0; same && i < draft->words; i++)
		same = memo_peek(&place->word[i]) == draft->word[i];
	return same;
}

/* As layout_of(). */
static struct memo_place *place_of(struct memo_tables *tables, const struct function_info *info,
                                   const struct memo_draft *draft)
{
	uint64_t mixed = memo_mixed(0, (uintptr_t)info->function);
	for (size_t i = 0; i < draft->words; i++)
		mixed = memo_mixed(mixed, draft->word[i]);
	struct memo_place *first = memo_places_of(tables, mixed);
	for (size_t way = 0; way < MEMO_WAYS; way++)
		if (is_of(&first[way], info, draft))
			return &first[way];
	for (size_t way = 0; way < MEMO_WAYS; way++)
		if (memo_peek(&first[way].stamp) != draft->stamp)
			return &first[way];
	return &first[memo_way(mixed) % MEMO_WAYS];
}

/* Begins to write the launch's place. NULL: it cannot be kept. */
static struct memo_place *keep(const struct call *call, const struct function_info *info,
                               const struct memo_draft *draft, size_t swaps)
{
	uint64_t guards[MEMO_GUARDS][2];
	size_t count = draft->variant ? draft->variant->guard_count : 0;
	struct memo_tables *tables = memo_tables();
	/* What changed meanwhile may have been seen in part. */
	if (!tables || hook_stamp() != draft->stamp || !keep_layout(tables, info, draft->stamp) || !draft->words ||
	    (count && !find_guards(info, draft->variant, guards)))
		return NULL;
	struct memo_place *place = place_of(tables, info, draft);
	if (!write_begin(&place->sequence))
		return NULL;
	size_t verdict = call->concerned ? (size_t)(call->verdict - KERNEL_CLEAN) : MEMO_NO_CONCERN;
	atomic_store_explicit(
		&place->counts,
		(uint32_t)(verdict | swaps << 4 | (size_t)draft->words << 8 | (size_t)draft->notes << 16 | count << 24),
		memory_order_release);
	write_place(place, info, draft);
	for (size_t i = 0; i < count; i++) {
		poke(&place->guard[i].what, guards[i][0]);
		poke(&place->guard[i].value, guards[i][1]);
	}
	return place;
}

void memo_keep(const struct call *call, const struct function_info *info, const struct memo_draft *draft)
{
	struct memo_place *place = keep(call, info, draft, 0);
	if (place)
		write_end(&place->sequence);
}

/* Which of the draft's words a slot is; MEMO_WORDS: none. */
static size_t word_of(const struct call_slot *slot, const struct memo_draft *draft)
{
	size_t at = slot->offset / MEMO_WORD, i = 0;
	for (int argument = 0; argument < slot->argument; argument++)
		at += slot->function->params[argument].bytes / MEMO_WORD;
	while (i < draft->words && draft->at[i] != at)
		i++;
	return i < draft->words ? i : MEMO_WORDS;
}

/* One for each word: it is listed for each range that it lies in. False: too many, or of no word. */
static bool find_swaps(const struct call *call, uint64_t ret[MEMO_SWAPS][3], size_t *ret_count)
{
	size_t count = 0;
	unsigned seen = 0;
	for (size_t i = 0; i < call->slot_count; i++) {
		const struct call_slot *slot = &call->slots[i];
		size_t word = word_of(slot, call->draft);
		if (word == MEMO_WORDS || slot->argument < 0)
			return false;
		if (seen & 1u << word)
			continue;
		if (count == MEMO_SWAPS)
			return false;
		seen |= 1u << word;
		ret[count][0] = memo_swap_what(word, (uint64_t)slot->argument, slot->function->param_count,
		                               slot->offset, slot->function->params[slot->argument].bytes);
		ret[count][1] = slot->twin;
		ret[count++][2] = slot->handle;
	}
	*ret_count = count;
	return true;
}

void memo_keep_twins(const struct call *call)
{
	const struct call_slot *first = &call->slots[0];
	uint64_t swaps[MEMO_SWAPS][3];
	size_t count;
	if (call->draft->unfit || call->deferred || !find_swaps(call, swaps, &count))
		return;
	struct memo_place *place = keep(call, first->function, call->draft, count);
	if (!place)
		return;
	atomic_store_explicit(&place->info, first->function, memory_order_release);
	atomic_store_explicit(&place->paths, first->paths, memory_order_release);
	for (size_t i = 0; i < count; i++) {
		poke(&place->swap[i].what, swaps[i][0]);
		poke(&place->swap[i].twin, swaps[i][1]);
		poke(&place->swap[i].range, swaps[i][2]);
	}
	write_end(&place->sequence);
}
