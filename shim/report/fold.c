#include "shim/report/fold.h"

#include <stdatomic.h>
#include <string.h>

#include "registry/lock.h"

#define SLOTS (FOLD_SITES * 2) /* half full at most: probes stay short */
#define NATIVE_KEY_FRAMES 8

_Static_assert((SLOTS & (SLOTS - 1)) == 0, "slots are masked");

static struct {
	struct lock lock;
	unsigned used;
	uint16_t slots[SLOTS]; /* index into sites + 1, 0: free */
	struct fold_site sites[FOLD_SITES];
	struct fold_site other;
} table = {.lock = LOCK_INITIALIZER(LOCK_OUTPUT)};

static _Atomic uint64_t total;

static uint64_t mix(uint64_t key, uint64_t value)
{
	key = (key ^ value) * 0x9e3779b97f4a7c15u;
	return key ^ key >> 29;
}

static uint64_t mix_text(uint64_t key, const char *text)
{
	for (; text && *text; text++)
		key = (key ^ (unsigned char)*text) * 0x100000001b3u;
	return mix(key, text != NULL);
}

static uint64_t event_key(const struct report_event *event, const struct site_frame *frame)
{
	const struct site *site = report_event_site(event);
	uint64_t key = mix(mix(0xcbf29ce484222325u, event->kind), event->action);

	key = mix_text(key, event->api);
	key = mix_text(key, event->outer_api);
	key = mix_text(key, event->kernel ? event->kernel->name : NULL);
	if (event->range)
		key = event->range->label[0] ? mix_text(key, event->range->label) : mix(key, event->range->handle);
	if (frame) { /* interned: equal text has equal pointers */
		key = mix(key, (uintptr_t)frame->file);
		key = mix(key, (uintptr_t)frame->function);
		key = mix(key, (uint64_t)frame->line);
	} else if (site) {
		for (int i = 0; i < site->native_count && i < NATIVE_KEY_FRAMES; i++)
			key = mix(key, (uintptr_t)site->native[i]);
	}
	return key ? key : 1;
}

static void describe(struct fold_site *entry, uint64_t key, const struct report_event *event,
                     const struct site_frame *frame)
{
	*entry = (struct fold_site){
		.key = key,
		.kind = event->kind,
		.action = event->action,
		.api = event->api,
		.outer_api = event->outer_api,
		.outer_note = event->outer_note,
		.kernel = event->kernel ? event->kernel->name : NULL,
		.handle = event->range ? event->range->handle : 0,
	};
	if (frame)
		entry->frame = *frame;
	if (event->range) {
		size_t length = strnlen(event->range->label, FOLD_LABEL - 1);

		memcpy(entry->label, event->range->label, length);
	}
}

static struct fold_site *find(uint64_t key, const struct report_event *event, const struct site_frame *frame)
{
	for (unsigned slot = (unsigned)(key >> 32) & (SLOTS - 1);; slot = (slot + 1) & (SLOTS - 1)) {
		if (table.slots[slot]) {
			struct fold_site *entry = &table.sites[table.slots[slot] - 1];

			if (entry->key == key)
				return entry;
		} else if (table.used == FOLD_SITES) {
			table.other.other = true;
			return &table.other;
		} else {
			table.slots[slot] = (uint16_t)++table.used;
			describe(&table.sites[table.used - 1], key, event, frame);
			return &table.sites[table.used - 1];
		}
	}
}

static bool is_power_of_ten(uint64_t count)
{
	while (count >= 10 && count % 10 == 0)
		count /= 10;
	return count == 1;
}

enum fold_answer fold_count(const struct report_event *event, uint64_t limit, struct fold_site *ret_site)
{
	const struct site *site = report_event_site(event);
	const struct site_frame *frame = site ? site_user_frame(site) : NULL;
	uint64_t key = event_key(event, frame);
	enum fold_answer answer = FOLD_WRITE;
	struct fold_site *entry;

	lock_acquire(&table.lock);
	entry = find(key, event, frame);
	entry->count++;
	if (entry->count > limit) {
		answer = is_power_of_ten(entry->count) ? FOLD_MENTION : FOLD_DROP;
		atomic_fetch_add_explicit(&total, 1, memory_order_relaxed);
	}
	if (answer == FOLD_MENTION) {
		entry->mentioned = entry->count;
		*ret_site = *entry;
	}
	lock_release(&table.lock);
	return answer;
}

bool fold_next(unsigned *index, uint64_t limit, struct fold_site *ret_site)
{
	bool found = false;

	lock_acquire(&table.lock);
	while (!found && *index <= table.used) {
		struct fold_site *entry = *index == table.used ? &table.other : &table.sites[*index];

		++*index;
		found = entry->count > limit && entry->count != entry->mentioned;
		if (found) {
			entry->mentioned = entry->count;
			*ret_site = *entry;
		}
	}
	lock_release(&table.lock);
	return found;
}

uint64_t fold_total(void)
{
	return atomic_load_explicit(&total, memory_order_relaxed);
}

void fold_postfork_child(void)
{
	/* Another thread of the parent may have held the lock, in the middle of a change. */
	memset(&table, 0, sizeof(table));
	table.lock = (struct lock)LOCK_INITIALIZER(LOCK_OUTPUT);
	atomic_store(&total, 0);
}
