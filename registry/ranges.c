#include "registry/ranges.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "registry/pages.h"

_Static_assert(sizeof(struct slot) == 128, "a slot is two cache lines");

static uint32_t handle_slot(registry_handle handle)
{
	return (uint32_t)handle;
}

static uint32_t handle_generation(registry_handle handle)
{
	return (uint32_t)(handle >> 32);
}

static struct slot *slot_of(struct range *range)
{
	return (struct slot *)((char *)range - offsetof(struct slot, range));
}

/* Which chunk holds slot `index`, and how many slots the chunks before it hold. */
static unsigned chunk_of(uint32_t index, uint64_t *ret_before)
{
	uint64_t round = index / RANGES_FIRST_CHUNK + 1;
	unsigned chunk = 63u - (unsigned)__builtin_clzll(round);

	*ret_before = RANGES_FIRST_CHUNK * ((UINT64_C(1) << chunk) - 1);
	return chunk;
}

static size_t chunk_bytes(unsigned chunk)
{
	return ((size_t)RANGES_FIRST_CHUNK << chunk) * sizeof(struct slot);
}

/* NULL when there is no such slot, or not yet. */
static __attribute__((hot)) struct slot *slot_at(struct ranges *table, uint32_t index)
{
	uint64_t before;
	unsigned chunk;
	struct slot *slots;

	if (index >= RANGES_MOST)
		return NULL;
	chunk = chunk_of(index, &before);
	slots = atomic_load_explicit(&table->chunk[chunk], memory_order_acquire);
	return slots ? slots + (index - before) : NULL;
}

void ranges_init(struct ranges *table, const struct registry_hooks *hooks)
{
	memset(table, 0, sizeof *table);
	if (hooks)
		table->hooks = *hooks;
	table->free = RANGES_NO_SLOT;
	atomic_init(&table->returned, RANGES_NO_SLOT);
}

/* What the range owned goes; the slot and its last handle stay. */
static void slot_release(struct slot *slot)
{
	void *attachment = slot->range.attachment;

	free((char *)(uintptr_t)slot->range.label);
	slot->range.label = slot->range.owner = slot->range.site.file = slot->range.site.function = NULL;
	slot->range.attachment = NULL;
	if (attachment && slot->table->hooks.release)
		slot->table->hooks.release(attachment);
}

void ranges_destroy(struct ranges *table)
{
	for (uint32_t index = 0; index < table->used; index++) {
		struct slot *slot = slot_at(table, index);

		if (atomic_load_explicit(&slot->references, memory_order_acquire))
			slot_release(slot);
	}
	for (unsigned chunk = 0; chunk < RANGES_CHUNKS; chunk++) {
		struct slot *slots = atomic_load_explicit(&table->chunk[chunk], memory_order_relaxed);

		if (slots)
			pages_unmap(slots, chunk_bytes(chunk));
	}
}

static size_t string_bytes(const char *text)
{
	return text ? strlen(text) + 1 : 0;
}

/* Copies to *at and moves it on; NULL stays NULL. */
static const char *string_append(char **at, const char *text)
{
	size_t bytes = string_bytes(text);
	char *copy = *at;

	if (!text)
		return NULL;
	memcpy(copy, text, bytes);
	*at += bytes;
	return copy;
}

int ranges_copy_spec(const struct registry_spec *spec, struct registry_spec *ret_copy)
{
	const char *label = spec->label ? spec->label : "";
	char *block = malloc(string_bytes(label) + string_bytes(spec->owner) + string_bytes(spec->site.file) +
	                     string_bytes(spec->site.function));

	if (!block)
		return -ENOMEM;
	*ret_copy = *spec;
	ret_copy->label = string_append(&block, label);
	ret_copy->owner = string_append(&block, spec->owner);
	ret_copy->site.file = string_append(&block, spec->site.file);
	ret_copy->site.function = string_append(&block, spec->site.function);
	return 0;
}

void ranges_drop_spec(struct registry_spec *copy)
{
	free((char *)(uintptr_t)copy->label);
}

int ranges_reserve(struct ranges *table)
{
	uint64_t before;
	unsigned chunk;
	void *slots;

	if (table->free == RANGES_NO_SLOT)
		table->free = atomic_exchange_explicit(&table->returned, RANGES_NO_SLOT, memory_order_acquire);
	if (table->free != RANGES_NO_SLOT)
		return 0;
	if (table->used == RANGES_MOST)
		return -ENOMEM;
	if (slot_at(table, table->used))
		return 0;
	chunk = chunk_of(table->used, &before);
	slots = pages_map(chunk_bytes(chunk));
	if (!slots)
		return -ENOMEM;
	atomic_store_explicit(&table->chunk[chunk], slots, memory_order_release);
	return 0;
}

struct range *ranges_add(struct ranges *table, const struct registry_spec *copy, uint32_t references)
{
	uint32_t index = table->free != RANGES_NO_SLOT ? table->free : table->used++;
	struct slot *slot = slot_at(table, index);
	struct range *range = &slot->range;
	uint64_t generation = handle_generation(range->handle) + UINT64_C(1);

	if (index == table->free)
		table->free = slot->next;
	slot->table = table;
	range->start = copy->start;
	range->end = copy->end;
	range->handle = generation << 32 | index;
	range->flags = copy->flags;
	range->label = copy->label;
	range->owner = copy->owner;
	range->site = copy->site;
	range->attachment = copy->attachment;
	atomic_store_explicit(&range->checks, 0, memory_order_relaxed);
	atomic_store_explicit(&range->violations, 0, memory_order_relaxed);
	atomic_store_explicit(&range->mark, 0, memory_order_relaxed);
	atomic_store_explicit(&range->launches, 0, memory_order_relaxed);
	atomic_store_explicit(&range->ending, false, memory_order_relaxed);
	atomic_store_explicit(&range->removed, false, memory_order_relaxed);
	/* Publishes all of it to whoever takes a reference from here on. */
	atomic_store_explicit(&slot->references, references, memory_order_release);
	return range;
}

int ranges_lookup(struct ranges *table, registry_handle handle, struct range **ret_range)
{
	struct slot *slot;

	if (handle_slot(handle) >= table->used || handle_generation(handle) == 0)
		return -ENOENT;
	slot = slot_at(table, handle_slot(handle));
	if (handle_generation(handle) > handle_generation(slot->range.handle))
		return -ENOENT;
	if (handle != slot->range.handle || atomic_load_explicit(&slot->range.removed, memory_order_relaxed))
		return -ESTALE;
	*ret_range = &slot->range;
	return 0;
}

__attribute__((hot)) struct range *ranges_take(struct ranges *table, registry_handle handle)
{
	struct slot *slot = slot_at(table, handle_slot(handle));
	uint32_t references;

	if (!slot)
		return NULL;
	references = atomic_load_explicit(&slot->references, memory_order_relaxed);
	do {
		if (references == 0)
			return NULL;
	} while (!atomic_compare_exchange_weak_explicit(&slot->references, &references, references + 1,
	                                                memory_order_acquire, memory_order_relaxed));
	/* From here on the slot cannot be reused, so its handle may be read: it is a later one if we came too late. */
	if (slot->range.handle == handle)
		return &slot->range;
	range_put(&slot->range);
	return NULL;
}

struct range *range_get(struct range *range)
{
	atomic_fetch_add_explicit(&slot_of(range)->references, 1, memory_order_relaxed);
	return range;
}

/* Only pushing and taking the whole chain happen to `returned`, so the exchange needs no guard against reuse. */
static void slot_return(struct slot *slot)
{
	struct ranges *table = slot->table;
	uint32_t index = handle_slot(slot->range.handle);
	uint32_t head = atomic_load_explicit(&table->returned, memory_order_relaxed);

	if (handle_generation(slot->range.handle) == RANGES_LAST_GENERATION)
		return; /* no new handle can be made from it: retired */
	do {
		slot->next = head;
	} while (!atomic_compare_exchange_weak_explicit(&table->returned, &head, index, memory_order_release,
	                                                memory_order_relaxed));
}

__attribute__((hot)) void range_put(struct range *range)
{
	struct slot *slot;

	if (!range)
		return;
	slot = slot_of(range);
	if (atomic_fetch_sub_explicit(&slot->references, 1, memory_order_acq_rel) != 1)
		return;
	slot_release(slot);
	slot_return(slot);
}
