#include "registry/registry.h"

#include <errno.h>
#include <stdlib.h>

#include "registry/lock.h"
#include "registry/query.h"

/*
 * A reader that writers keep disturbing takes the writers' mutex: after this many attempts, or after this many
 * nodes, so that a walk over many ranges is not begun again and again.
 */
#define READ_ATTEMPTS 64
#define READ_NODES 4096

/* Room that registry_each() leaves for ranges that come in between counting and collecting. */
#define EACH_SLACK 64

struct registry_tree {
	struct tree tree; /* first: tests look at it */
	struct ranges ranges;
	struct lock lock; /* of all writing */
};

static inline void pause_briefly(void)
{
#if defined(__x86_64__)
	__builtin_ia32_pause();
#endif
}

int registry_create(const struct registry_hooks *hooks, struct registry **ret_reg)
{
	/* A line of its own: the launch path reads it. */
	struct registry *reg = aligned_alloc(64, 64);
	struct registry_tree *all = malloc(sizeof *all);

	_Static_assert(sizeof *reg <= 64, "a registry's head is one cache line");
	if (!reg || !all) {
		free(reg);
		free(all);
		return -ENOMEM;
	}
	atomic_init(&reg->live, 0);
	atomic_init(&reg->low, UINT64_MAX);
	atomic_init(&reg->high, 0);
	atomic_init(&reg->generation, 0);
	reg->tree = all;
	tree_init(&all->tree);
	ranges_init(&all->ranges, hooks);
	lock_init(&all->lock, LOCK_REGISTRY);
	*ret_reg = reg;
	return 0;
}

void registry_destroy(struct registry **reg)
{
	struct registry_tree *all;

	if (!reg || !*reg)
		return;
	all = (*reg)->tree;
	tree_destroy(&all->tree);
	ranges_destroy(&all->ranges);
	free(all);
	free(*reg);
	*reg = NULL;
}

/* Both inside a write section: the head follows the tree. */
static void head_update(struct registry *reg, uint64_t live)
{
	uint64_t low, high;

	tree_bounds(&reg->tree->tree, &low, &high);
	atomic_store_explicit(&reg->low, low, memory_order_relaxed);
	atomic_store_explicit(&reg->high, high, memory_order_relaxed);
	atomic_store_explicit(&reg->live, live, memory_order_relaxed);
	/* Last, and before the tree may be read again: who sees the new number sees the new tree. */
	atomic_store_explicit(&reg->generation, atomic_load_explicit(&reg->generation, memory_order_relaxed) + 1,
	                      memory_order_release);
}

int registry_insert(struct registry *reg, const struct registry_spec *spec, registry_handle *ret_handle,
                    struct range **ret_range)
{
	struct registry_tree *all = reg->tree;
	struct registry_spec copy;
	struct range *range;
	int error;

	if (spec->end <= spec->start)
		return -EINVAL;
	error = ranges_copy_spec(spec, &copy);
	if (error)
		return error;
	lock_acquire(&all->lock);
	error = ranges_reserve(&all->ranges);
	if (!error)
		error = tree_reserve(&all->tree);
	if (error) {
		lock_release(&all->lock);
		ranges_drop_spec(&copy);
		return error;
	}
	range = ranges_add(&all->ranges, &copy, ret_range ? 2 : 1);
	/* Once the lock is gone another thread may remove the range. */
	if (ret_handle)
		*ret_handle = range->handle;
	tree_write_begin(&all->tree);
	tree_insert(&all->tree, range->start, range->end, range->handle);
	head_update(reg, atomic_load_explicit(&reg->live, memory_order_relaxed) + 1);
	tree_write_end(&all->tree);
	lock_release(&all->lock);
	if (ret_range)
		*ret_range = range;
	return 0;
}

int registry_remove(struct registry *reg, registry_handle handle, struct range **ret_range)
{
	struct registry_tree *all = reg->tree;
	struct range *range;
	int error;

	lock_acquire(&all->lock);
	error = ranges_lookup(&all->ranges, handle, &range);
	if (error) {
		lock_release(&all->lock);
		return error;
	}
	tree_write_begin(&all->tree);
	tree_remove(&all->tree, range->start, handle);
	head_update(reg, atomic_load_explicit(&reg->live, memory_order_relaxed) - 1);
	tree_write_end(&all->tree);
	atomic_store_explicit(&range->removed, true, memory_order_release);
	lock_release(&all->lock);
	/* The registry's own reference goes to the caller, or away. */
	if (ret_range)
		*ret_range = range;
	else
		range_put(range);
	return 0;
}

__attribute__((hot)) struct range *registry_find(struct registry *reg, registry_handle handle)
{
	struct range *range = ranges_take(&reg->tree->ranges, handle);

	if (range && atomic_load_explicit(&range->removed, memory_order_acquire)) {
		range_put(range);
		return NULL;
	}
	return range;
}

/* Attempts at one query: without the lock, and at last with it. */
struct attempts {
	struct registry_tree *all;
	struct reading reading;
	unsigned tried;
	bool locked;
};

static struct attempts attempts_start(struct registry *reg)
{
	struct registry_tree *all = reg->tree;

	return (struct attempts){.all = all, .reading = {.tree = &all->tree, .ranges = &all->ranges}};
}

/* Readies the next attempt. */
static void attempts_next(struct attempts *attempts)
{
	while (attempts->tried < READ_ATTEMPTS && attempts->reading.visited < READ_NODES) {
		attempts->tried++;
		if (reading_begin(&attempts->reading))
			return;
		pause_briefly();
	}
	/* Nothing changes under the lock, so this attempt is the last. */
	lock_acquire(&attempts->all->lock);
	attempts->locked = true;
	reading_begin(&attempts->reading);
}

static void attempts_end(struct attempts *attempts)
{
	if (attempts->locked)
		lock_release(&attempts->all->lock);
}

bool registry_hits(struct registry *reg, uint64_t start, uint64_t end)
{
	struct attempts attempts;
	bool hit;

	if (!registry_in_bounds(reg, start, end))
		return false;
	attempts = attempts_start(reg);
	do
		attempts_next(&attempts);
	while (!query_hits(&attempts.reading, start, end, &hit));
	attempts_end(&attempts);
	return hit;
}

size_t registry_overlaps(struct registry *reg, uint64_t start, uint64_t end, struct range **out, size_t max)
{
	struct attempts attempts;
	size_t total;

	if (!registry_in_bounds(reg, start, end))
		return 0;
	attempts = attempts_start(reg);
	do
		attempts_next(&attempts);
	while (!query_overlaps(&attempts.reading, start, end, out, max, &total));
	attempts_end(&attempts);
	return total;
}

size_t registry_stab(struct registry *reg, uint64_t address, struct range **out, size_t max)
{
	/* No range holds byte UINT64_MAX. */
	return address < UINT64_MAX ? registry_overlaps(reg, address, address + 1, out, max) : 0;
}

struct range *registry_nearest(struct registry *reg, uint64_t address, uint64_t *ret_distance)
{
	struct attempts attempts = attempts_start(reg);
	struct range *range;

	do
		attempts_next(&attempts);
	while (!query_nearest(&attempts.reading, address, &range));
	attempts_end(&attempts);
	if (range && ret_distance) {
		if (address < range->start)
			*ret_distance = range->start - address;
		else
			*ret_distance = address < range->end ? 0 : address - (range->end - 1);
	}
	return range;
}

int registry_each(struct registry *reg, int (*fn)(struct range *range, void *data), void *data)
{
	struct range **all = NULL;
	size_t room = 0, many;
	int result = 0;

	/* More came than there was room for: give back, and ask again with more. */
	while ((many = registry_overlaps(reg, 0, UINT64_MAX, all, room)) > room) {
		for (size_t at = 0; at < room; at++)
			range_put(all[at]);
		free(all);
		room = many + EACH_SLACK;
		all = malloc(room * sizeof *all);
		if (!all)
			return -ENOMEM;
	}
	for (size_t at = 0; at < many; at++) {
		if (result == 0 && !atomic_load_explicit(&all[at]->removed, memory_order_acquire))
			result = fn(all[at], data);
		range_put(all[at]);
	}
	free(all);
	return result;
}

void registry_prefork(struct registry *reg)
{
	lock_acquire(&reg->tree->lock);
}

void registry_postfork_parent(struct registry *reg)
{
	lock_release(&reg->tree->lock);
}

void registry_postfork_child(struct registry *reg)
{
	lock_reset_in_child(&reg->tree->lock);
}
