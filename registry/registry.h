/*
 * The registry: which bytes of device memory are read-only, and under which handle.
 *
 * Addresses are device addresses (uint64_t). A range is half-open, [start, end), and one byte is the granularity.
 * Ranges may nest, overlap and repeat. libc only: no CUDA header, no environment, no dlopen.
 *
 * Reading takes no lock as a rule: registry_empty(), registry_in_bounds() and registry_find() never wait;
 * registry_hits(), registry_overlaps(), registry_stab() and registry_nearest() try again when a writer ran at the same
 * instant, and only after many disturbed attempts in a row queue up behind the writers (README.md says how, and how
 * memory is reclaimed). Writing (registry_insert(), registry_remove()) takes the registry's own mutex, for about a
 * microsecond. Any thread may call any function; a signal handler none, since it may have interrupted a writer.
 */
#ifndef CUCONST_REGISTRY_REGISTRY_H
#define CUCONST_REGISTRY_REGISTRY_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Names one protection. Never 0; never used again after registry_remove(), so a stale handle is found. */
typedef uint64_t registry_handle;

/* Where a protection was asked for. Strings are owned by whoever holds the struct. */
struct registry_site {
	const char *file;     /* NULL when unknown */
	const char *function; /* NULL when unknown */
	int line;             /* 0 when unknown */
};

/* What the registry needs from outside; every member may be NULL. Called with no registry lock held. */
struct registry_hooks {
	/* The last reference to a removed range has gone: free what `attachment` (never NULL) owns. Any thread. */
	void (*release)(void *attachment);
};

/*
 * One protected range. Everything but the counters and `attachment` is fixed from insertion until
 * the last reference is given back, so a reference may be read without a lock.
 */
struct range {
	uint64_t start, end; /* half-open, device addresses, end > start */
	registry_handle handle;
	uint32_t flags;            /* the caller's; the registry does not look */
	_Atomic bool ending;       /* the caller's: its memory is being taken away */
	_Atomic bool removed;      /* set by registry_remove(): a check in flight may still hold a reference */
	void *attachment;          /* the caller's, e.g. the range's baseline; see registry_hooks.release */
	const char *label;         /* never NULL; owned by the range */
	const char *owner;         /* glob of the owner library's name, or NULL: nobody is exempt */
	struct registry_site site; /* strings owned by the range */
	_Atomic uint64_t checks;   /* launches and calls that were judged against this range */
	_Atomic uint64_t violations;
	_Atomic uint64_t mark,
		launches; /* the caller's: when it last looked at the bytes, and what it had counted by then; 0 at first */
};

/* What registry_insert() copies. */
struct registry_spec {
	uint64_t start, end;
	uint32_t flags;
	const char *label; /* NULL means "" */
	const char *owner; /* NULL: no owner */
	struct registry_site site;
	void *attachment; /* ownership passes to the registry on success only */
};

/* Open to inlining only: use the functions. All but `tree` is what the launch path loads. */
struct registry {
	_Atomic uint64_t live; /* number of ranges */
	_Atomic uint64_t low;  /* no range starts below (UINT64_MAX when empty) */
	_Atomic uint64_t high; /* no range ends above (0 when empty) */
	_Atomic uint64_t generation;
	struct registry_tree *tree;
};

/* Makes an empty registry; `hooks` is copied, NULL is allowed. Returns 0 or -ENOMEM; *ret_reg untouched on failure. */
int registry_create(const struct registry_hooks *hooks, struct registry **ret_reg);

/*
 * Frees it, all ranges and, through hooks.release, their attachments; nulls the pointer. NULL is fine. Not
 * thread-safe; references still held are dead afterwards and may not be given back.
 */
void registry_destroy(struct registry **reg);

/*
 * Adds a range. Returns 0, -EINVAL (end <= start), or -ENOMEM; outputs untouched on failure.
 * *ret_range (may be NULL) is a reference: give it back with range_put().
 */
int registry_insert(struct registry *reg, const struct registry_spec *spec, registry_handle *ret_handle,
                    struct range **ret_range);

/*
 * Ends a protection. Returns 0, -ENOENT (no such handle was ever given) or -ESTALE (already removed).
 * *ret_range (may be NULL) is the removed range as a reference, for a last check; give it back with range_put().
 */
int registry_remove(struct registry *reg, registry_handle handle, struct range **ret_range);

/* The range of a live handle as a reference, or NULL (unknown or removed): range_put(). Lock-free. */
struct range *registry_find(struct registry *reg, registry_handle handle);

/* One relaxed load: true when nothing at all is protected. */
static inline bool registry_empty(const struct registry *reg)
{
	return atomic_load_explicit(&reg->live, memory_order_relaxed) == 0;
}

/*
 * Changes with each insertion and removal, and never comes again. What was asked after it was read, with the same
 * answer of this function afterwards, holds as long as it answers the same.
 */
static inline uint64_t registry_generation(const struct registry *reg)
{
	return atomic_load_explicit(&reg->generation, memory_order_acquire);
}

/* Two relaxed loads: false means that no protected range overlaps [start, end); true means "ask the tree". */
static inline bool registry_in_bounds(const struct registry *reg, uint64_t start, uint64_t end)
{
	return start < atomic_load_explicit(&reg->high, memory_order_relaxed) &&
	       end > atomic_load_explicit(&reg->low, memory_order_relaxed);
}

/* Does any range overlap [start, end)? Takes no reference. An empty query overlaps nothing. */
bool registry_hits(struct registry *reg, uint64_t start, uint64_t end);

/*
 * Ranges that overlap [start, end), by ascending start, then handle. Writes up to `max` references to `out` and returns
 * how many there are in all (more than `max`: ask again with more room). References: range_put().
 */
size_t registry_overlaps(struct registry *reg, uint64_t start, uint64_t end, struct range **out, size_t max);

/* Ranges that hold this byte: registry_overlaps() of one byte. */
size_t registry_stab(struct registry *reg, uint64_t address, struct range **out, size_t max);

/*
 * The range nearest to an address: one that holds it (distance 0), else the one with the fewest bytes between. Of
 * equals the one that comes first by start, then handle, is meant. NULL when empty. *ret_distance (may be NULL) is
 * the distance in bytes to the range's nearest byte, so it is 0 only if the range holds the address, and 1 just
 * past its end. A reference: range_put().
 */
struct range *registry_nearest(struct registry *reg, uint64_t address, uint64_t *ret_distance);

/*
 * Calls fn for every live range, by ascending start, on a snapshot of references: fn may insert and remove, and is
 * not called for what was removed meanwhile. Stops early when fn returns non-zero, and returns that; 0 otherwise;
 * -ENOMEM when no snapshot could be made.
 */
int registry_each(struct registry *reg, int (*fn)(struct range *range, void *data), void *data);

/* Another reference to a range already held. */
struct range *range_get(struct range *range);

/* Gives a reference back. NULL is fine. The last one of a removed range frees it and calls hooks.release. */
void range_put(struct range *range);

/* fork: the child must not meet a mutex held by a thread it does not have. For pthread_atfork(), or by hand. */
void registry_prefork(struct registry *reg);
void registry_postfork_parent(struct registry *reg);
void registry_postfork_child(struct registry *reg);

#endif
