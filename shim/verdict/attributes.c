#include "shim/verdict/attributes.h"

#include "shim/hook_state.h"
#include "shim/verdict/judge_internal.h"
#include "shim/verdict/options.h"
#include "shim/verdict/protect.h"

#define NESTED 64 /* ranges around one byte; with more, those beyond are as good as owned */

/* Unwinding is for ranges that have an owner at all. */
static bool concerns(const struct range *range, void *caller)
{
	struct site site;
	if (atomic_load_explicit(&range->ending, memory_order_relaxed))
		return false;
	if (!range->owner)
		return true;
	site_capture(&site, caller);
	return !judge_owned(range, &site);
}

bool attributes_read_only(uint64_t address, void *caller)
{
	struct registry *ranges = protect_ranges();
	struct range *found[NESTED];
	bool read_only = false;
	if (options_get()->mode == MODE_LOG || !atomic_load_explicit(&hook_line.armed, memory_order_relaxed) ||
	    !ranges || !registry_in_bounds(ranges, address, address + 1))
		return false;
	size_t count = registry_stab(ranges, address, found, NESTED);
	for (size_t i = 0; i < count && i < NESTED; i++) {
		read_only = read_only || concerns(found[i], caller);
		range_put(found[i]);
	}
	return read_only;
}
