#include "shim/effects/writes.h"

#include "shim/hook_state.h"
#include "shim/twins/serve_memo.h"
#include "shim/verdict/granules.h"

/* Longer ones take longer than to judge them. */
#define WRITE_MOST ((GRANULES_AT_ONCE - 1) << GRANULE_BITS)

/* May a byte from `first` to `last` lie in an allocation that holds ranges? No more than WRITE_MOST bytes. */
static inline bool is_near(uint64_t first, uint64_t last)
{
	const struct granules *granules = granules_all();
	return granules && first < atomic_load_explicit(&hook_line.high, memory_order_relaxed) &&
	       last >= atomic_load_explicit(&hook_line.low, memory_order_relaxed) &&
	       granules_hold_any(granules, first, last);
}

/* Is there something to be done when the driver has answered? Results of checks may have come, and an error may be a twin's. */
static inline bool is_watched(void)
{
	return atomic_load_explicit(&hook_line.in_flight, memory_order_relaxed) |
	       atomic_load_explicit(&hook_line.twins_noted, memory_order_relaxed);
}

HOOK_PAGE("3") enum write_how write_asks(uint64_t address, uint64_t bytes, bool blocks)
{
	struct hook_counts *counts = hook_counts_own();
	uint64_t last = address + bytes - 1;
	/* None has a number too large. */
	if (HOOK_UNLIKELY(!counts || bytes - 1 >= WRITE_MOST || last < address) || is_near(address, last))
		return WRITE_UNKNOWN;
	struct serve_memo *served = atomic_load_explicit(&hook_line.served, memory_order_acquire);
	bool watched = is_watched();
	/* Behind a call that waits, more is looked at: what has ended by then, and whether served memory is to be waited for. */
	if (HOOK_UNLIKELY((blocks & (watched | (served != NULL))) || (served && !serve_memo_holds(served, address, last))))
		return WRITE_UNKNOWN;
	hook_count_own(counts, COUNT_CALL);
	hook_thread.depth += watched;
	return watched ? WRITE_IS_WATCHED : WRITE_PASSES;
}
