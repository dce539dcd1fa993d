/* What is written into the tables of launch_memo.c, and where they are. */
#include <string.h>

#include "shim/effects/launch_memo_internal.h"
#include "shim/effects/launches.h"
#include "shim/hook_state.h"
#include "shim/hot_page.h"
#include "shim/kernels/function.h"
#include "shim/kernels/slot_verdict.h"
#include "shim/kernels/variants.h"
#include "shim/verdict/options.h"

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

static bool is_for_values(const struct memo_layout *layout)
{
	return atomic_load_explicit(&layout->entries, memory_order_acquire) & MEMO_VALUES;
}

/* The function's layout, for all values or for some; NULL: there is none. */
static struct memo_layout *find_layout(struct memo_tables *tables, uint64_t function, bool for_values)
{
	struct memo_layout *first = memo_layouts_of(tables, function);
	for (size_t way = 0; way < MEMO_LAYOUT_WAYS; way++)
		if (memo_peek(&first[way].function) == function && is_for_values(&first[way]) == for_values)
			return &first[way];
	return NULL;
}

/*
 * Where it is, or else where there is room: what has another stamp is as good as none. Of those that have to share, each is always in the same place, and only they push each other out. One for
 * some values takes the place of that for all, which launches expect in their course; for other values that comes again, in another place.
 */
static struct memo_layout *layout_of(struct memo_tables *tables, uint64_t function, uint64_t stamp, bool for_values)
{
	struct memo_layout *first = memo_layouts_of(tables, function), *found = find_layout(tables, function, for_values);
	if (!found && for_values)
		found = find_layout(tables, function, false);
	for (size_t way = 0; !found && way < MEMO_LAYOUT_WAYS; way++)
		if (memo_peek(&first[way].stamp) != stamp && memo_peek(&first[way].function) != function)
			found = &first[way];
	size_t way = memo_way(memo_mixed(0, function)) % MEMO_LAYOUT_WAYS;
	way = memo_peek(&first[way].function) == function ? (way + 1) % MEMO_LAYOUT_WAYS : way;
	return found ? found : &first[way];
}

/* The words that are looked at. */
struct list {
	const struct function_info *info;
	const struct kernel_paths *paths; /* NULL: all words are */
	const struct variant *variant;    /* the paths are this one's; NULL: they hold for all values */
	bool singles;                     /* each piece is one word */
	uint32_t entry[MEMO_ENTRIES];
	size_t entries;
};

/* Does nothing store through it? Then it does not matter where it points. */
static bool is_harmless(const struct list *list, size_t param, size_t word)
{
	struct slot_paths may;
	return list->paths &&
	       slot_verdict(list->info, list->paths, (int)param, (uint32_t)(word * MEMO_WORD), &may) == KERNEL_CLEAN;
}

/* False: no more room. */
static bool add_piece(struct list *list, size_t param, size_t first, size_t end)
{
	const size_t most = list->singles ? 1 : MEMO_PIECE, room = list->singles ? MEMO_SINGLE : MEMO_ENTRIES;
	for (size_t count; first < end; first += count) {
		count = end - first < most ? end - first : most;
		if (list->entries == room || param > UINT8_MAX || first > UINT16_MAX)
			return false;
		list->entry[list->entries++] = memo_entry(param, first, count);
	}
	return true;
}

static bool add_param(struct list *list, size_t param)
{
	const size_t words = list->info->params[param].bytes / MEMO_WORD, gap = list->singles ? 0 : MEMO_GAP;
	size_t first = 0, end = 0;
	for (size_t word = 0; word < words; word++) {
		if (is_harmless(list, param, word))
			continue;
		if (word > end + gap) {
			if (!add_piece(list, param, first, end))
				return false;
			first = end = word;
		}
		if (first == end)
			first = word;
		end = word + 1;
	}
	return add_piece(list, param, first, end);
}

static bool add_all(struct list *list, const struct kernel_paths *paths, bool singles)
{
	list->paths = paths;
	list->singles = singles;
	list->entries = 0;
	for (size_t i = 0; i < list->info->param_count; i++)
		if (!add_param(list, i))
			return false;
	for (size_t i = list->entries; singles && i % MEMO_SIDE; i++)
		list->entry[i] = list->entry[list->entries - 1];
	return true;
}

/* Few words are better looked at each alone. */
static bool add_best(struct list *list, const struct kernel_paths *paths)
{
	return add_all(list, paths, true) || add_all(list, paths, false);
}

/* The parameter that these bytes of the block lie in, and where there, as a condition has it. False: in no single one, or one whose number or offset is too large. */
static bool find_bytes(const struct function_info *info, uint64_t from, size_t bytes, uint32_t *ret)
{
	for (size_t i = 0; i < info->param_count && i <= UINT8_MAX; i++) {
		uint64_t start = info->params[i].offset, end = start + info->params[i].bytes;
		if (from < start || from + bytes > end || from - start > UINT16_MAX)
			continue;
		*ret = (uint32_t)(i | (from - start) << 8);
		return true;
	}
	return false;
}

/* A condition on a word of the block, as one on a parameter. One that has less than the word, as a bool, is read no further than the bytes that matter. False: these lie in no single one. */
static bool find_guard(const struct function_info *info, const struct variant_guard *guard, uint32_t ret[MEMO_CONDITION])
{
	const uint32_t mask = guard->small ? ~(PATHS_SMALL - 1) : guard->mask, value = guard->small ? 0 : guard->value;
	ret[1] = mask;
	ret[2] = value;
	if (find_bytes(info, guard->offset, sizeof mask, &ret[0]))
		return true;
	if (!mask)
		return false;
	const unsigned first = (unsigned)__builtin_ctz(mask) / 8, last = (31 - (unsigned)__builtin_clz(mask)) / 8;
	ret[1] = mask >> 8 * first;
	ret[2] = value >> 8 * first;
	if (!find_bytes(info, guard->offset + first, last - first + 1, &ret[0]))
		return false;
	ret[0] |= (last - first + 1) << 24;
	return true;
}
_Static_assert((PATHS_SMALL & (PATHS_SMALL - 1)) == 0, "small is what has no upper bits");

static bool find_guards(const struct function_info *info, const struct variant *variant,
                        uint32_t ret[MEMO_GUARDS * MEMO_CONDITION])
{
	if (variant->guard_count > MEMO_GUARDS)
		return false;
	for (size_t i = 0; i < variant->guard_count; i++)
		if (!find_guard(info, &variant->guards[i], ret + i * MEMO_CONDITION))
			return false;
	return true;
}

/* As a layout has their number. */
static uint32_t conditions_of(const struct list *list)
{
	const struct variant *variant = list->variant;
	return variant ? (uint32_t)variant->guard_count << MEMO_VALUES_SHIFT | (uint32_t)variant->number
	                                                                               << MEMO_VARIANT_SHIFT
	               : 0;
}

/* Is the code understood for these values, so that they have a layout of their own, if it fits? */
static bool has_own_layout(const struct variant *variant)
{
	return variant && variant->paths && variant->paths->reason == PATHS_CLEAR && variant->number &&
	       variant->guard_count && variant->guard_count <= MEMO_GUARDS;
}

/* For values like these alone. False: nothing is known of them, or it does not fit. */
static bool add_variant(struct list *list, const struct variant *variant)
{
	uint32_t conditions[MEMO_GUARDS * MEMO_CONDITION];
	if (!has_own_layout(variant) || !find_guards(list->info, variant, conditions) ||
	    !add_all(list, variant->paths, true))
		return false;
	size_t at = memo_conditions_at((uint32_t)list->entries), count = variant->guard_count * MEMO_CONDITION;
	if (at + count > MEMO_ENTRIES)
		return false;
	memcpy(list->entry + at, conditions, count * sizeof *conditions);
	list->variant = variant;
	return true;
}

/* False: too many parameters, or too large ones. */
static bool make_list(const struct function_info *info, const struct variant *variant, struct list *ret)
{
	const struct kernel_paths *paths = options_get()->store_paths ? function_paths(info) : NULL;
	ret->info = info;
	ret->variant = NULL;
	return (paths && paths->reason == PATHS_CLEAR && add_best(ret, paths)) || add_variant(ret, variant) ||
	       add_best(ret, NULL);
}

static size_t words_of(const struct list *list)
{
	size_t words = 0;
	for (size_t i = 0; i < list->entries; i++)
		words += memo_entry_words(list->entry[i]);
	return words;
}

/* As a layout has them. Asked once is asked: what could not be found out then is not asked for again. */
static uint32_t entries_of(const struct list *list, bool asked)
{
	bool settled = asked || list->paths || !options_get()->store_paths || words_of(list) <= MEMO_FEW;
	uint32_t entries = (uint32_t)list->entries | (list->paths ? MEMO_NARROW : 0) | (settled ? MEMO_SETTLED : 0) |
	                   (list->singles ? MEMO_SINGLES : 0) | conditions_of(list);
	bool plain = settled && list->singles && memo_entries(entries) <= MEMO_PLAIN_ENTRIES;
	return entries | (plain ? MEMO_PLAIN : 0);
}

/* Which of the words that are looked at one of all words is. SIZE_MAX: none. */
static size_t looked_at(const struct list *list, size_t at)
{
	size_t before = 0, param = 0, seen = 0;
	for (size_t i = 0; i < list->entries; i++) {
		for (; param < memo_entry_param(list->entry[i]); param++)
			before += list->info->params[param].bytes / MEMO_WORD;
		size_t first = before + memo_entry_first(list->entry[i]), words = memo_entry_words(list->entry[i]);
		if (at >= first && at < first + words)
			return seen + at - first;
		seen += words;
	}
	return SIZE_MAX;
}

/* What is kept of a draft: its words that are looked at. */
struct kept {
	const struct memo_draft *draft;
	uint8_t words, notes;
	uint8_t noted[MEMO_NOTES], note[MEMO_NOTES]; /* which of the words, and which of the draft's notes */
	bool is_far;
	uint16_t at[MEMO_WORDS];     /* which of those that are looked at */
	uint16_t of_all[MEMO_WORDS]; /* what `at` is in the draft */
	uint64_t word[MEMO_WORDS];
};

/* A word that is noted, and not looked at, is one that nothing is stored through with these values: so it is not noted again. False: too many, and one lies too far behind. */
static bool make_kept(const struct memo_draft *draft, const struct list *list, struct kept *ret)
{
	ret->draft = draft;
	ret->words = ret->notes = 0;
	ret->is_far = false;
	for (size_t i = 0; i < draft->words; i++) {
		size_t at = looked_at(list, draft->at[i]);
		if (at == SIZE_MAX)
			continue;
		if (at > UINT16_MAX)
			return false;
		for (uint8_t note = 0; note < draft->notes; note++)
			if (draft->noted[note] == i) {
				ret->noted[ret->notes] = ret->words;
				ret->note[ret->notes++] = note;
			}
		ret->is_far |= at > UINT8_MAX;
		ret->at[ret->words] = (uint16_t)at;
		ret->of_all[ret->words] = draft->at[i];
		ret->word[ret->words++] = draft->word[i];
	}
	return !ret->is_far || ret->words <= MEMO_FAR_WORDS;
}

/* As a place has it. */
static uint64_t where(const struct kept *kept)
{
	uint64_t all = 0;
	for (size_t i = 0; i < kept->words; i++)
		all |= (uint64_t)kept->at[i] << (kept->is_far ? 16 : 8) * i;
	return all;
}

/* False: another thread writes there. */
static bool keep_layout(struct memo_tables *tables, const struct list *list, uint64_t stamp, bool asked)
{
	uint64_t function = (uintptr_t)list->info->function;
	struct memo_layout *layout = layout_of(tables, function, stamp, list->variant);
	bool known = memo_peek(&layout->function) == function, same = known && memo_peek(&layout->stamp) == stamp;
	uint32_t old = same ? atomic_load_explicit(&layout->entries, memory_order_relaxed) : 0;
	/* Once settled it stays so. */
	uint32_t entries = entries_of(list, asked || (old & MEMO_SETTLED));
	/* Within a stamp a function's paths come once and stay, so of one kind there is one list. */
	if (same && old == entries)
		return true;
	if (!write_begin(&layout->sequence))
		return false;
	atomic_store_explicit(&layout->entries, entries, memory_order_release);
	poke(&layout->function, function);
	poke(&layout->stamp, stamp);
	if (!known || asked)
		atomic_store_explicit(&layout->looks, 0, memory_order_relaxed);
	for (size_t i = 0; i * MEMO_PACKED < memo_entries(entries); i++) {
		uint64_t packed;
		memcpy(&packed, list->entry + i * MEMO_PACKED, sizeof packed);
		poke(&layout->packed[i], packed);
	}
	write_end(&layout->sequence);
	return true;
}

static uint64_t packed(const uint8_t *bytes, size_t count)
{
	uint64_t all = 0;
	memcpy(&all, bytes, count);
	return all;
}

/* How many launches this thread had so far. */
static uint32_t launches_so_far(void)
{
	const struct memo_course *course = hook_thread.course;
	return course ? atomic_load_explicit(&course->count, memory_order_relaxed) : 0;
}

static void write_place(struct memo_place *place, uint64_t key, const struct kept *kept)
{
	const struct memo_draft *draft = kept->draft;
	poke(&place->key, key);
	poke(&place->stamp, draft->stamp);
	poke(&place->at, where(kept));
	/* Where it would be in the course, behind the last one. */
	atomic_store_explicit(&place->seen, launches_so_far() - 1, memory_order_release);
	atomic_store_explicit(&place->noted, (uint32_t)packed(kept->noted, kept->notes), memory_order_release);
	for (size_t i = 0; i < kept->words; i++)
		poke(&place->word[i], kept->word[i]);
	for (size_t i = 0; i < kept->notes; i++) {
		const struct neighbours_mark *mark = &draft->note[kept->note[i]];
		struct memo_note *note = memo_note_of(place, i);
		atomic_store_explicit(&note->writer, mark->writer, memory_order_release);
		atomic_store_explicit(&note->tally, mark->tally, memory_order_release);
		poke(&note->key, mark->key);
	}
	/* The others are not read, but fetched with them: what is there anyway. */
	for (size_t i = kept->notes; i < MEMO_NOTES; i++) {
		struct memo_note *note = memo_note_of(place, i);
		atomic_store_explicit(&note->writer, (struct writer *)(void *)place, memory_order_release);
		atomic_store_explicit(&note->tally, (struct tally *)(void *)place, memory_order_release);
	}
}

/* The conditions that an answer hangs on, besides those of its layout. */
struct guards {
	size_t count;
	uint32_t of[MEMO_GUARDS * MEMO_CONDITION];
};

static bool is_of(const struct memo_place *place, uint64_t key, const struct kept *kept, uint32_t words,
                  const struct guards *guards)
{
	uint32_t counts = atomic_load_explicit(&place->counts, memory_order_acquire);
	bool same = memo_peek(&place->key) == key && (counts >> 8 & 0xff) == words && counts >> 24 == guards->count &&
	            memo_peek(&place->at) == where(kept);
	for (size_t i = 0; same && i < kept->words; i++)
		same = memo_peek(&place->word[i]) == kept->word[i];
	for (size_t i = 0; same && i < guards->count * MEMO_CONDITION; i++)
		same = atomic_load_explicit(&place->guard[i], memory_order_acquire) == guards->of[i];
	return same;
}

/*
 * As layout_of(). What this thread had not in all of its course makes room first: programs that allocate anew leave launches behind that never come again. Of another thread's places that may be said as well;
 * they come back.
 */
static struct memo_place *place_of(struct memo_tables *tables, uint64_t key, const struct kept *kept, uint32_t words,
                                   const struct guards *guards)
{
	uint64_t mixed = memo_mixed(0, key);
	for (size_t i = 0; i < kept->words; i++)
		mixed = memo_mixed(mixed, kept->word[i]);
	struct memo_place *first = memo_places_of(tables, mixed);
	for (size_t way = 0; way < MEMO_WAYS; way++)
		if (is_of(&first[way], key, kept, words, guards))
			return &first[way];
	for (size_t way = 0; way < MEMO_WAYS; way++)
		if (memo_peek(&first[way].stamp) != kept->draft->stamp)
			return &first[way];
	const uint32_t launches = launches_so_far();
	for (size_t way = 0; way < MEMO_WAYS; way++)
		if (launches - atomic_load_explicit(&first[way].seen, memory_order_relaxed) > MEMO_COURSE)
			return &first[way];
	return &first[memo_way(mixed) % MEMO_WAYS];
}

/* The values that the launch's paths hold for, if the function has a layout for no others. */
static const struct variant *variant_for(struct memo_tables *tables, const struct function_info *info,
                                         const struct memo_draft *draft)
{
	const struct memo_layout *known = find_layout(tables, (uintptr_t)info->function, true);
	bool is_other = draft->variant && known && memo_peek(&known->stamp) == draft->stamp &&
	                atomic_load_explicit(&known->entries, memory_order_acquire) >> MEMO_VARIANT_SHIFT !=
	                        draft->variant->number;
	return is_other ? NULL : draft->variant;
}

/* The code was asked for because of the layout for all values, but these have one of their own: that for all is looked at as often again, before it is due. */
static void begin_looks(struct memo_tables *tables, const struct function_info *info, uint64_t stamp)
{
	struct memo_layout *layout = find_layout(tables, (uintptr_t)info->function, false);
	if (layout && memo_peek(&layout->stamp) == stamp)
		atomic_store_explicit(&layout->looks, 0, memory_order_relaxed);
}

/* What all launches of the function that are kept have in common, and what is kept of this one. False: nothing. */
static bool begin(const struct function_info *info, const struct memo_draft *draft, bool asked, struct list *ret_list,
                  struct kept *ret_kept)
{
	struct memo_tables *tables = memo_tables();
	if (!tables || !make_list(info, variant_for(tables, info, draft), ret_list))
		return false;
	if (asked && ret_list->variant)
		begin_looks(tables, info, draft->stamp);
	bool fits = make_kept(draft, ret_list, ret_kept);
	/* What changed meanwhile may have been seen in part. */
	return hook_stamp() == draft->stamp && keep_layout(tables, ret_list, draft->stamp, asked) && fits &&
	       ret_kept->words;
}

/* Begins to write the launch's place. NULL: it cannot be kept. */
static struct memo_place *keep(const struct call *call, const struct list *list, const struct kept *kept, size_t swaps)
{
	const struct memo_draft *draft = kept->draft;
	uint64_t key = memo_key((uintptr_t)list->info->function, conditions_of(list));
	/* Those of the layout are looked at with it. */
	struct guards guards = {.count = draft->variant && !list->variant ? draft->variant->guard_count : 0};
	if (guards.count && !find_guards(list->info, draft->variant, guards.of))
		return NULL;
	uint32_t words = memo_words_of(kept->words, list->paths ? MEMO_NARROW : 0, kept->is_far);
	struct memo_place *place = place_of(memo_tables(), key, kept, words, &guards);
	if (!write_begin(&place->sequence))
		return NULL;
	/* Clean ones are counted where they are judged: from here most are not looked at for what they read. */
	size_t verdict = call->verdict > KERNEL_CLEAN ? (size_t)(call->verdict - KERNEL_CLEAN) : MEMO_NO_CONCERN;
	atomic_store_explicit(
		&place->counts,
		(uint32_t)(verdict | swaps << 4 | (size_t)words << 8 | (size_t)kept->notes << 16 | guards.count << 24),
		memory_order_release);
	write_place(place, key, kept);
	for (size_t i = 0; i < guards.count * MEMO_CONDITION; i++)
		atomic_store_explicit(&place->guard[i], guards.of[i], memory_order_release);
	return place;
}

bool memo_is_due(const struct function_info *info, uint64_t stamp)
{
	struct memo_tables *tables = memo_tables();
	struct memo_layout *layout = tables ? find_layout(tables, (uintptr_t)info->function, false) : NULL;
	return options_get()->store_paths && layout && memo_peek(&layout->stamp) == stamp &&
	       atomic_load_explicit(&layout->looks, memory_order_relaxed) >= MEMO_LOOKS;
}

/* Is there a layout for such a launch that will stay as it is? */
static bool has_layout(const struct function_info *info, const struct memo_draft *draft)
{
	struct memo_tables *tables = memo_tables();
	for (int for_values = 0; tables && for_values < 2; for_values++) {
		const struct memo_layout *known = find_layout(tables, (uintptr_t)info->function, for_values);
		uint32_t entries = known ? atomic_load_explicit(&known->entries, memory_order_acquire) : 0;
		bool own = for_values && draft->variant && entries >> MEMO_VARIANT_SHIFT == draft->variant->number;
		bool fits = own || (!for_values && !has_own_layout(variant_for(tables, info, draft)));
		if (known && memo_peek(&known->stamp) == draft->stamp && (entries & MEMO_SETTLED) && fits)
			return true;
	}
	return false;
}

void memo_keep_layout(const struct function_info *info, const struct memo_draft *draft, bool asked)
{
	struct list list;
	struct kept kept;
	if (!has_layout(info, draft))
		begin(info, draft, asked, &list, &kept);
}

void memo_keep(const struct call *call, const struct function_info *info, const struct memo_draft *draft, bool asked)
{
	struct list list;
	struct kept kept;
	struct memo_place *place = begin(info, draft, asked, &list, &kept) ? keep(call, &list, &kept, 0) : NULL;
	if (place)
		write_end(&place->sequence);
}

/* Which of the words that are kept a slot is; MEMO_WORDS: none. */
static size_t word_of(const struct call_slot *slot, const struct kept *kept)
{
	size_t at = slot->offset / MEMO_WORD, i = 0;
	for (int argument = 0; argument < slot->argument; argument++)
		at += slot->function->params[argument].bytes / MEMO_WORD;
	while (i < kept->words && kept->of_all[i] != at)
		i++;
	return i < kept->words ? i : MEMO_WORDS;
}

/* One for each word: it is listed for each range that it lies in. False: too many, or of no word. */
static bool find_swaps(const struct call *call, const struct kept *kept, uint64_t ret[MEMO_SWAPS][3], size_t *ret_count)
{
	size_t count = 0;
	unsigned seen = 0;
	for (size_t i = 0; i < call->slot_count; i++) {
		const struct call_slot *slot = &call->slots[i];
		size_t word = word_of(slot, kept);
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
	struct list list;
	struct kept kept;
	if (call->draft->unfit || call->deferred || !begin(first->function, call->draft, false, &list, &kept) ||
	    !find_swaps(call, &kept, swaps, &count))
		return;
	struct memo_place *place = keep(call, &list, &kept, count);
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
