#include "shim/twins/space.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "registry/lock.h"

/* By ascending start, disjoint. */
static struct {
	struct space **of;
	size_t count, room;
} table;

/* Guards the table and each space's `busy`. Held for look-ups and moves of pointers only. */
static struct lock table_lock = LOCK_INITIALIZER(LOCK_TWINS);
static pthread_cond_t left = PTHREAD_COND_INITIALIZER; /* somebody left a space, or took one out */

/* The index of the first space that ends above the address. Under the lock, like all that follow with _at. */
static size_t index_at(uint64_t address)
{
	size_t low = 0, high = table.count;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (space_end(table.of[middle]) > address)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

static struct space *space_at(uint64_t address)
{
	size_t at = index_at(address);
	return at < table.count && table.of[at]->start <= address ? table.of[at] : NULL;
}

static struct space *next_at(uint64_t address, uint64_t end)
{
	size_t at = index_at(address);
	return at < table.count && table.of[at]->start < end ? table.of[at] : NULL;
}

struct space *space_enter_next(uint64_t address, uint64_t end)
{
	struct space *space;
	lock_acquire(&table_lock);
	/* Looked up again after each wait: it may have been freed meanwhile. */
	while ((space = next_at(address, end)) && space->busy)
		pthread_cond_wait(&left, &table_lock.mutex);
	if (space)
		space->busy = true;
	lock_release(&table_lock);
	return space;
}

struct space *space_enter(uint64_t address)
{
	return space_enter_next(address, address + 1);
}

void space_leave(struct space *space)
{
	lock_acquire(&table_lock);
	space->busy = false;
	pthread_cond_broadcast(&left);
	lock_release(&table_lock);
}

bool space_is_known(uint64_t address)
{
	lock_acquire(&table_lock);
	bool known = space_at(address);
	lock_release(&table_lock);
	return known;
}

static bool put_at(struct space *space)
{
	size_t at = index_at(space->start);
	if (at < table.count && table.of[at]->start < space_end(space))
		return false;
	if (table.count == table.room) {
		size_t room = table.room ? 2 * table.room : 16;
		struct space **grown = realloc(table.of, room * sizeof(struct space *));
		if (!grown)
			return false;
		table.of = grown;
		table.room = room;
	}
	memmove(&table.of[at + 1], &table.of[at], (table.count - at) * sizeof(struct space *));
	table.of[at] = space;
	table.count++;
	return true;
}

struct space *space_add(uint64_t start, uint64_t bytes)
{
	struct space *space = calloc(1, sizeof *space);
	if (!space)
		return NULL;
	space->start = start;
	space->bytes = bytes;
	space->busy = true;
	lock_acquire(&table_lock);
	bool added = put_at(space);
	lock_release(&table_lock);
	if (added)
		return space;
	free(space);
	return NULL;
}

void space_take_out(struct space *space)
{
	lock_acquire(&table_lock);
	size_t at = index_at(space->start);
	table.count--;
	memmove(&table.of[at], &table.of[at + 1], (table.count - at) * sizeof(struct space *));
	pthread_cond_broadcast(&left);
	lock_release(&table_lock);
}

void space_put_back(struct space *space)
{
	lock_acquire(&table_lock);
	/* It was there a moment ago, so there is room; and the driver did not give its addresses to anybody. */
	bool put = put_at(space);
	space->busy = false;
	pthread_cond_broadcast(&left);
	lock_release(&table_lock);
	if (!put)
		space_free(space);
}

void space_free(struct space *space)
{
	free(space->mappings);
	free(space);
}

bool space_add_mapping(struct space *space, uint64_t start, uint64_t bytes)
{
	size_t at = space->count;
	while (at > 0 && space->mappings[at - 1].start > start)
		at--;
	if ((at > 0 && space->mappings[at - 1].start + space->mappings[at - 1].bytes > start) ||
	    (at < space->count && space->mappings[at].start < start + bytes))
		return false;
	if (space->count == space->room) {
		size_t room = space->room ? 2 * space->room : 4;
		struct mapping *grown = realloc(space->mappings, room * sizeof *grown);
		if (!grown)
			return false;
		space->mappings = grown;
		space->room = room;
	}
	memmove(&space->mappings[at + 1], &space->mappings[at], (space->count - at) * sizeof space->mappings[0]);
	space->mappings[at] = (struct mapping){.start = start, .bytes = bytes, .state = MAPPING_PLAIN};
	space->count++;
	return true;
}

void space_remove_mappings(struct space *space, uint64_t start, uint64_t end)
{
	size_t kept = 0;
	for (size_t i = 0; i < space->count; i++) {
		const struct mapping *mapping = &space->mappings[i];
		if (mapping->start < start || mapping->start + mapping->bytes > end)
			space->mappings[kept++] = *mapping;
	}
	space->count = kept;
}

void spaces_reset(void)
{
	/* Its memory stays with the child: nobody can tell who was inside. */
	lock_init(&table_lock, LOCK_TWINS);
	pthread_cond_init(&left, NULL);
	table.of = NULL;
	table.count = table.room = 0;
}
