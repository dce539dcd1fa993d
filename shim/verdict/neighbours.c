#include "shim/verdict/neighbours.h"

#include <errno.h>
#include <stdlib.h>

#include "registry/lock.h"
#include "shim/effects/call.h"
#include "shim/hook_state.h"
#include "shim/hot_page.h"
#include "shim/kernels/function.h"
#include "shim/kernels/slot_verdict.h"
#include "shim/verdict/granules.h"

#define WRITERS 512  /* kernels by parameter that are told apart in one allocation; beyond, the oldest makes room */
#define PLACES 64    /* where checked launches of them came from; of two that meet here the last one */
#define TALLIES 1024 /* the same, of which only the number of launches is kept: a foreach kernel has 500 pointers */
#define PROBES 8
#define OVERLAPPING                                                                                                    \
	8 /* neighbourhoods that hold one address: one, and for an instant those that it takes the place of */
#define FIRST_REACH ((uint64_t)1 << 16)

/* Where a checked launch came from. Apart from the writers, which are looked through at each look back. */
struct place {
	uint64_t key;
	struct site site;
};

/* Attachment of one entry of `all`. Its memory is used again for another one, and never given back: marks may point into it. */
struct neighbourhood {
	struct writer writers[WRITERS];
	struct tally tallies[TALLIES];
	/* Under the lock. */
	struct place places[PLACES];
	unsigned protections;
	struct neighbourhood *next; /* of those that are out of use */
};

static struct registry *_Atomic all HOOK_DATA;
static struct lock lock = LOCK_INITIALIZER(LOCK_NEIGHBOURS); /* nothing but the registry is called under it */
static _Atomic(struct neighbourhood *) returned; /* by whoever gave back the last reference, without a lock */
static struct neighbourhood *spare;              /* under the lock */

/* Taken as a whole by make(), so none comes back while another thread looks at it. */
static void give_back(void *attachment)
{
	struct neighbourhood *gone = attachment;
	gone->next = atomic_load_explicit(&returned, memory_order_relaxed);
	while (!atomic_compare_exchange_weak_explicit(&returned, &gone->next, gone, memory_order_release,
	                                              memory_order_relaxed))
		continue;
}

/* Late launches may still note themselves in one that is used again: so it is emptied as it is written to. */
static void empty(struct neighbourhood *used)
{
	for (size_t i = 0; i < WRITERS; i++) {
		struct writer *writer = &used->writers[i];
		atomic_store_explicit(&writer->key, 0, memory_order_relaxed);
		atomic_store_explicit(&writer->last, 0, memory_order_relaxed);
	}
	for (size_t i = 0; i < PLACES; i++)
		used->places[i].key = 0;
	for (size_t i = 0; i < TALLIES; i++) {
		atomic_store_explicit(&used->tallies[i].key, 0, memory_order_relaxed);
		atomic_store_explicit(&used->tallies[i].count, 0, memory_order_relaxed);
	}
}

/* Locked. NULL: no memory. */
static struct neighbourhood *make(void)
{
	if (!spare)
		spare = atomic_exchange_explicit(&returned, NULL, memory_order_acquire);
	struct neighbourhood *made = spare;
	if (made) {
		spare = made->next;
		empty(made);
		return made;
	}
	made = hot_page_take(sizeof *made);
	return made ? made : calloc(1, sizeof *made);
}

/* Locked, after each change: what is there all along lies within both bounds at each moment. */
static void bounds_follow(const struct registry *known)
{
	atomic_store_explicit(&hook_line.low, atomic_load_explicit(&known->low, memory_order_relaxed),
	                      memory_order_relaxed);
	atomic_store_explicit(&hook_line.high, atomic_load_explicit(&known->high, memory_order_relaxed),
	                      memory_order_relaxed);
	hook_stamp_renew();
}

int neighbours_start(void)
{
	const struct registry_hooks hooks = {.release = give_back};
	struct registry *made;
	if (neighbours_all())
		return 0;
	int error = granules_start() ? registry_create(&hooks, &made) : -ENOMEM;
	if (!error)
		atomic_store_explicit(&all, made, memory_order_release);
	return error;
}

HOOK_HOT struct registry *neighbours_all(void)
{
	return atomic_load_explicit(&all, memory_order_acquire);
}

static HOOK_HOT void put_each(struct range **ranges, size_t count)
{
	for (size_t i = 0; i < count; i++)
		range_put(ranges[i]);
}

/* Up to OVERLAPPING references. */
static size_t holding(uint64_t address, struct range **ret_found)
{
	size_t count = registry_stab(neighbours_all(), address, ret_found, OVERLAPPING);
	return count < OVERLAPPING ? count : OVERLAPPING;
}

/* The neighbourhoods that hold the slot's value: mostly the one that was found when it was scanned. */
static HOOK_HOT size_t holders_of(const struct call_slot *slot, struct range **ret_found)
{
	struct range *known = slot->neighbourhood ? registry_find(neighbours_all(), slot->neighbourhood) : NULL;
	if (!known)
		return holding(slot->value, ret_found);
	*ret_found = known;
	return 1;
}

/* Function (48 bits, of a multiple of 16), argument from -1 on, 8-byte slot in it; what is too large for its field is cut to the greatest. */
static uint64_t key_of(const struct call_slot *slot)
{
	uint64_t argument = (uint64_t)slot->argument + 1, place = slot->offset / 8;
	return (uint64_t)slot->function >> 4 << 21 | (argument < 4095 ? argument : 4095) << 9 |
	       (place < 511 ? place : 511);
}

/* `inside`: the range itself. Launches that store through such a slot are all checked, so it is one of those that store elsewhere. */
static struct report_kernel kernel_of(uint64_t key, bool inside)
{
	const struct function_info *function = (const struct function_info *)(uintptr_t)(key >> 21 << 4);
	const struct kernel_paths *paths = inside ? function_paths(function) : NULL;
	return (struct report_kernel){.name = function->name,
	                              .argument = (int)(key >> 9 & 4095) - 1,
	                              .offset = (uint32_t)(key & 511) * 8,
	                              .code.verdict = kernel_verdict_name(inside ? KERNEL_UNKNOWN : KERNEL_NEAR),
	                              .code.reason = paths ? paths_reason_text(paths->reason) : NULL};
}

static size_t hash_of(uint64_t key)
{
	return key * 0x9e3779b97f4a7c15u >> 32;
}

/* Under the lock. */
static struct place *place_at(struct neighbourhood *neighbourhood, uint64_t key)
{
	return &neighbourhood->places[hash_of(key) % PLACES];
}

/* The slot's writer. Another thread may take its place at the same time: then one launch less is told. */
static HOOK_HOT struct writer *writer_at(struct neighbourhood *neighbourhood, uint64_t key)
{
	struct writer *oldest = NULL;
	size_t at = hash_of(key);
	for (size_t i = 0; i < PROBES; i++) {
		struct writer *writer = &neighbourhood->writers[(at + i) % WRITERS];
		uint64_t there = 0;
		if (atomic_load_explicit(&writer->key, memory_order_relaxed) == key ||
		    atomic_compare_exchange_strong(&writer->key, &there, key))
			return writer;
		if (there == key)
			return writer;
		if (!oldest || atomic_load_explicit(&writer->last, memory_order_relaxed) <
		                       atomic_load_explicit(&oldest->last, memory_order_relaxed))
			oldest = writer;
	}
	atomic_store(&oldest->key, key);
	return oldest;
}

/* The slot's number of launches; where there is no place, the one that was launched least often makes room. */
static HOOK_HOT struct tally *tally_at(struct neighbourhood *neighbourhood, uint64_t key)
{
	struct tally *least = NULL;
	size_t at = hash_of(key);
	for (size_t i = 0; i < PROBES; i++) {
		struct tally *tally = &neighbourhood->tallies[(at + i) % TALLIES];
		uint64_t there = 0;
		if (atomic_load_explicit(&tally->key, memory_order_relaxed) == key ||
		    atomic_compare_exchange_strong(&tally->key, &there, key) || there == key)
			return tally;
		if (!least || atomic_load_explicit(&tally->count, memory_order_relaxed) <
		                      atomic_load_explicit(&least->count, memory_order_relaxed))
			least = tally;
	}
	atomic_store(&least->key, key);
	return least;
}

/* Locked. Takes over what another neighbourhood knows. */
static void absorb(struct neighbourhood *into, struct neighbourhood *from)
{
	into->protections += from->protections;
	for (size_t i = 0; i < WRITERS; i++) {
		struct writer *old = &from->writers[i];
		uint64_t key = atomic_load(&old->key);
		if (!key)
			continue;
		struct writer *writer = writer_at(into, key);
		atomic_store(&writer->last, atomic_load(&old->last));
		atomic_store(&writer->value, atomic_load(&old->value));
		atomic_store(&writer->api, atomic_load(&old->api));
	}
	for (size_t i = 0; i < PLACES; i++)
		if (from->places[i].key)
			into->places[i] = from->places[i];
	for (size_t i = 0; i < TALLIES; i++) {
		uint64_t key = atomic_load(&from->tallies[i].key);
		if (key)
			atomic_fetch_add(&tally_at(into, key)->count, atomic_load(&from->tallies[i].count));
	}
}

/* Locked. bounds_follow() is next. */
static void remove_one(const struct range *gone)
{
	registry_remove(neighbours_all(), gone->handle, NULL);
	granules_clear(gone->start, gone->end);
}

/*
 * Locked. One neighbourhood in place of all that overlap it, which are references. It is there before they go: an address in any of them is always in
 * one.
 */
static bool replace(uint64_t start, uint64_t end, struct range **old, size_t count)
{
	struct neighbourhood *made = make();
	if (!made)
		return false;
	made->protections = 1;
	for (size_t i = 0; i < count; i++) {
		start = old[i]->start < start ? old[i]->start : start;
		end = old[i]->end > end ? old[i]->end : end;
		absorb(made, old[i]->attachment);
	}
	const struct registry_spec spec = {.start = start, .end = end, .attachment = made};
	granules_mark(start, end);
	if (registry_insert(neighbours_all(), &spec, NULL, NULL)) {
		granules_clear(start, end);
		give_back(made);
		return false;
	}
	for (size_t i = 0; i < count; i++)
		remove_one(old[i]);
	bounds_follow(neighbours_all());
	return true;
}

bool neighbours_join(uint64_t start, uint64_t end)
{
	bool joined = false;
	lock_acquire(&lock);
	/* Nobody else adds any. */
	size_t count = registry_overlaps(neighbours_all(), start, end, NULL, 0);
	struct range **found = malloc((count + 1) * sizeof(struct range *));
	if (found) {
		count = registry_overlaps(neighbours_all(), start, end, found, count);
		joined = count == 1 && found[0]->start <= start && found[0]->end >= end;
		if (joined)
			((struct neighbourhood *)found[0]->attachment)->protections++;
		else
			joined = replace(start, end, found, count);
		put_each(found, count);
	}
	lock_release(&lock);
	free(found);
	return joined;
}

void neighbours_leave(uint64_t address)
{
	struct range *found[OVERLAPPING];
	lock_acquire(&lock);
	size_t count = holding(address, found);
	for (size_t i = 0; i < count; i++) {
		if (--((struct neighbourhood *)found[i]->attachment)->protections)
			continue;
		remove_one(found[i]);
		bounds_follow(neighbours_all());
	}
	put_each(found, count);
	lock_release(&lock);
}

/*
 * A kernel that was given many other parts of an allocation is not known yet when it is given a range of it for the first time: those launches have a number of their own.
 * No slot has the complement as its key, whose function would lie outside of user space.
 */
static uint64_t tally_key(uint64_t key, const struct call_slot *slot)
{
	return slot->seldom ? ~key : key;
}

static HOOK_HOT bool note_in(struct neighbourhood *neighbourhood, const struct call_slot *slot, uint64_t time,
                             const char *api, struct neighbours_mark *ret_mark)
{
	uint64_t key = key_of(slot);
	struct writer *writer = writer_at(neighbourhood, key);
	struct tally *tally = tally_at(neighbourhood, tally_key(key, slot));
	uint64_t count = atomic_fetch_add_explicit(&tally->count, 1, memory_order_relaxed) + 1;
	writer_note(writer, key, slot->value, time, api);
	*ret_mark = (struct neighbours_mark){writer, tally, key};
	return neighbours_is_due(count);
}

HOOK_HOT bool neighbours_note(const struct call_slot *slot, uint64_t time, const char *api,
                              struct neighbours_mark *ret_mark)
{
	struct range *found[OVERLAPPING];
	struct neighbours_mark mark = {0};
	bool due = false;
	size_t count = holders_of(slot, found);
	for (size_t i = 0; i < count; i++)
		due |= note_in(found[i]->attachment, slot, time, api, &mark);
	put_each(found, count);
	*ret_mark = count == 1 ? mark : (struct neighbours_mark){0};
	return due;
}

/* The last `max` ranges of [low, high), or some of them when there are many more. References. */
static size_t last_of(struct registry *ranges, uint64_t low, uint64_t high, struct range **ret, size_t max)
{
	size_t count = registry_overlaps(ranges, low, high, ret, max);
	while (count > max) {
		put_each(ret, max);
		low += (high - low + 1) / 2;
		count = low < high ? registry_overlaps(ranges, low, high, ret, max) : 0;
	}
	return count;
}

size_t neighbours_beside(struct registry *ranges, uint64_t address, struct range **ret_ranges)
{
	struct range *found[OVERLAPPING];
	size_t holders = holding(address, found), count = 0;
	uint64_t low = address, high = address;
	for (size_t i = 0; i < holders; i++) {
		low = found[i]->start < low ? found[i]->start : low;
		high = found[i]->end > high ? found[i]->end : high;
	}
	put_each(found, holders);
	/* A look at the surroundings first: an allocation may hold a million ranges, and each is counted on the way. */
	for (uint64_t reach = FIRST_REACH; !count; reach <<= 4) {
		uint64_t from = address - low > reach ? address - reach : low;
		uint64_t to = high - address > reach ? address + reach : high;
		count = last_of(ranges, from, address, ret_ranges, NEIGHBOURS_BESIDE / 2);
		size_t room = NEIGHBOURS_BESIDE - count;
		size_t behind = registry_overlaps(ranges, address, to, ret_ranges + count, room);
		count += behind < room ? behind : room;
		if ((from == low && to == high) || reach >> 60)
			break;
	}
	return count;
}

void neighbours_keep_site(const struct call_slot *slot, const struct site *site)
{
	struct range *found[OVERLAPPING];
	uint64_t key = key_of(slot);
	size_t count = holders_of(slot, found);
	for (size_t i = 0; i < count; i++) {
		lock_acquire(&lock);
		*place_at(found[i]->attachment, key) = (struct place){key, *site};
		lock_release(&lock);
	}
	put_each(found, count);
}

/* One to be named. */
struct named {
	struct neighbourhood *neighbourhood;
	uint64_t key, last, value;
	const char *api;
};

/* False: there is none, or others take its place again and again meanwhile. */
static bool read_writer(struct neighbourhood *neighbourhood, size_t nth, struct named *ret)
{
	const struct writer *writer = &neighbourhood->writers[nth];
	ret->neighbourhood = neighbourhood;
	for (int i = 0; i < PROBES; i++) {
		ret->last = atomic_load_explicit(&writer->last, memory_order_acquire);
		ret->key = atomic_load_explicit(&writer->key, memory_order_acquire);
		ret->value = atomic_load_explicit(&writer->value, memory_order_acquire);
		ret->api = atomic_load_explicit(&writer->api, memory_order_acquire);
		if (atomic_load_explicit(&writer->key, memory_order_relaxed) == ret->key)
			return ret->key;
	}
	return false;
}

/* Keeps the list by falling number. */
static size_t insert(struct named *list, size_t count, size_t max, const struct named *named)
{
	size_t at = count < max ? count : max - 1;
	if (count == max && list[at].last >= named->last)
		return count;
	for (; at > 0 && list[at - 1].last < named->last; at--)
		list[at] = list[at - 1];
	list[at] = *named;
	return count < max ? count + 1 : max;
}

static struct report_kernel tell(const struct named *named, const struct range *range)
{
	const struct place *place = place_at(named->neighbourhood, named->key);
	const bool inside = named->value >= range->start && named->value < range->end;
	struct report_kernel kernel = kernel_of(named->key, inside);
	kernel.value = named->value;
	kernel.api = named->api;
	lock_acquire(&lock);
	if (place->key == named->key)
		kernel.site = place->site;
	lock_release(&lock);
	return kernel;
}

size_t neighbours_writers(const struct range *range, uint64_t since, struct report_kernel *ret_kernels, size_t max)
{
	struct range *found[OVERLAPPING];
	struct named list[NEIGHBOURS_WRITERS];
	size_t holders = holding(range->start, found), count = 0;
	max = max < NEIGHBOURS_WRITERS ? max : NEIGHBOURS_WRITERS;
	for (size_t i = 0; max && i < holders; i++) {
		struct neighbourhood *neighbourhood = found[i]->attachment;
		for (size_t k = 0; k < WRITERS; k++) {
			struct named named;
			if (read_writer(neighbourhood, k, &named) && named.last > since)
				count = insert(list, count, max, &named);
		}
	}
	for (size_t i = 0; i < count; i++)
		ret_kernels[i] = tell(&list[i], range);
	put_each(found, holders);
	return count;
}
