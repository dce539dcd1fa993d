/*
 * Read-only twins: a second, read-only mapping of the same physical memory. The GPU's own MMU refuses stores through
 * it.
 *
 * One twin for each reserved address range, with all its mappings, so the twin of an address is address + constant.
 * README.md has the protocol. Addresses are device addresses, ranges are half-open, sizes are bytes. Thread-safe; no
 * function here is for a signal handler.
 */
#ifndef CUCONST_TWINS_TWIN_H
#define CUCONST_TWINS_TWIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shim/driver.h"

/* Why there is a twin, or none. */
enum twin_answer {
	TWIN_OK,
	TWIN_OFF,        /* twins=off */
	TWIN_NO_DRIVER,  /* the driver has no virtual memory management */
	TWIN_NOT_DEVICE, /* no live device memory over the whole range */
	TWIN_PLAIN,      /* cuMemAlloc: it has no handle that could be mapped again */
	TWIN_POOL,       /* cuMemAllocAsync, pools, graphs */
	TWIN_MANAGED,
	TWIN_HOST,
	TWIN_APART,   /* the range lies in two address ranges, whose twins are not neighbours */
	TWIN_NO_ROOM, /* no address space, or no memory for page tables or bookkeeping */
	TWIN_REFUSED, /* the driver refused the second mapping: twin_last_error() */
};

/* What twins need from above. Called with no lock of twins held. */
struct twin_hooks {
	/* [start, start + bytes) is a twin's from now on, whether mapped or not. Returns a name for `gone`, 0: none. */
	uint64_t (*made)(uint64_t start, uint64_t bytes, int device);
	void (*gone)(uint64_t name);
	/* Memory that was added to a reserved range could not be mirrored: the range has no twins until it can. */
	void (*broken)(enum twin_answer why);
};

/* Call once, before any other. `on` false: every question is answered by TWIN_OFF, and nothing is tracked. */
void twins_init(const struct twin_hooks *hooks, bool on);

/*
 * The twin of [address, address + bytes), if it was made. Two loads when it lies in one mapping; no lock, no driver
 * call.
 */
bool twin_of(uint64_t address, uint64_t bytes, uint64_t *ret_twin);

/*
 * Is this address mapped by virtual memory management? Asked by its attributes (no context, no pool), not for its
 * handle: to take a handle of memory that another thread unmaps at that moment corrupts the driver's heap (580, seen on
 * an H200).
 */
bool twin_is_mapping(uint64_t address);

/*
 * Is [address, address + bytes) inside a twin? *ret_original (may be NULL) is what it mirrors. No lock, no driver call.
 */
bool twin_is(uint64_t address, uint64_t bytes, uint64_t *ret_original);

/* Does any of [start, start + bytes) lie in a twin's reservation? No lock, no driver call. */
bool twin_touched(uint64_t start, uint64_t bytes);

/*
 * As twin_of(), and makes the twin if there is none yet. Makes driver calls, and waits for another thread that works on
 * the same reserved range: never at a launch. Needs a current context. *ret_twin is untouched unless TWIN_OK.
 */
enum twin_answer twin_make(uint64_t address, uint64_t bytes, uint64_t *ret_twin);

/*
 * The driver's error behind this thread's last TWIN_REFUSED or TWIN_NO_ROOM; CUDA_SUCCESS: it was none of the driver's.
 */
CUresult twin_last_error(void);

/*
 * What happens to virtual memory, for the hooks, and for who makes driver calls that no hook sees. Each is told with
 * the arguments of the driver's call, after it succeeded; the `_begins` ones before it, and their `_ends` after it with
 * how it ended.
 */
void twins_reserved(uint64_t start, uint64_t bytes);
void twins_mapped(uint64_t start, uint64_t bytes);
void twins_access_set(uint64_t start, uint64_t bytes);
void twins_unmap_begins(uint64_t start, uint64_t bytes);
void twins_unmap_ends(uint64_t start, uint64_t bytes, bool done);
/* Returns what twins_unreserve_ends() wants back; NULL: nothing to end. */
void *twins_unreserve_begins(uint64_t start, uint64_t bytes);
void twins_unreserve_ends(void *ending, bool done);

/* fork child: all forgotten, as CUDA is unusable there. */
void twins_postfork_child(void);

#endif
