/*
 * Neighbourhoods: the allocations that hold protected ranges. A kernel that stores through a pointer into one, beside the range, may run over into
 * it; with a pool allocator most launches do so rightly. So a launch is not checked for that each time: the 1st, 2nd, 4th, 8th... of a kernel
 * through one parameter is, and of all of them it is kept that they were, for the next look at the range to name them.
 *
 * Thread-safe. Nothing on the way of a launch takes a lock.
 */
#ifndef CUCONST_VERDICT_NEIGHBOURS_H
#define CUCONST_VERDICT_NEIGHBOURS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "registry/registry.h"
#include "shim/report/report.h"
#include "shim/verdict/neighbours_mark.h"

struct call_slot; /* effects/call.h */

/* Call once, before the first protection. 0 or -ENOMEM. */
int neighbours_start(void);

/*
 * A range in the allocation [start, end) is about to be protected, and its protection ended: any address of it says which. Allocations are shared by the ranges in
 * them; those that overlap (mappings were added to a pool) become one. False: no memory.
 */
bool neighbours_join(uint64_t start, uint64_t end);
void neighbours_leave(uint64_t address);

/* All of them, for neighbours_hit(). NULL before neighbours_start(). */
struct registry *neighbours_all(void);

/* Does this address lie in an allocation that holds a protected range? What does not, lies in no range either. */
static inline bool neighbours_hit(struct registry *all, uint64_t address)
{
	return registry_in_bounds(all, address, address + 1) && registry_hits(all, address, address + 1);
}

/*
 * A launch by `api`, at `time` (look_launch_time()), stores, or may store, through this slot, whose value lies in a neighbourhood. True: ranges beside it are to be checked after
 * it, neighbours_beside() names them. *ret_mark is where that was noted, if in one place: for the next launch, as long as hook_stamp() answers the same.
 */
bool neighbours_note(const struct call_slot *slot, uint64_t time, const char *api, struct neighbours_mark *ret_mark);

/* The ranges nearest to the address in its allocation, on both sides. References. At most NEIGHBOURS_BESIDE. */
#define NEIGHBOURS_BESIDE 16
size_t neighbours_beside(struct registry *ranges, uint64_t address, struct range **ret_ranges);

/* Where the launch of a slot came from that is checked; kept for neighbours_writers(). */
void neighbours_keep_site(const struct call_slot *slot, const struct site *site);

/* Kernels that stored, or may have, beside this range in launches later than `since` (look_time()), last ones first. Returns how many, up to `max`. */
#define NEIGHBOURS_WRITERS 8
size_t neighbours_writers(const struct range *range, uint64_t since, struct report_kernel *ret_kernels, size_t max);

#endif
