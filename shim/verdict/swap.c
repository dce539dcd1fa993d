#include "shim/verdict/swap.h"

#include <stdlib.h>
#include <string.h>

#include "shim/cuconst.h"
#include "shim/effects/launch_memo.h"
#include "shim/effects/launches.h"
#include "shim/hook_state.h"
#include "shim/kernels/function.h"
#include "shim/twins/twin.h"
#include "shim/verdict/judge_internal.h"
#include "shim/verdict/options.h"
#include "shim/verdict/protect.h"

#define ALIGNMENT 16 /* of a parameter: that of the largest vector type */
#define EXTRA_ITEMS 5

/* Would the record be suppressed? Then the write is let pass. */
static bool is_suppressed(const struct call *call, const struct call_slot *slot)
{
	struct report_kernel kernel;
	if (!options_get()->suppressions)
		return false;
	judge_slot_kernel(call, slot, &kernel);
	struct report_event event = {.kind = REPORT_VIOLATION,
	                             .evidence = EVIDENCE_WRITTEN,
	                             .api = call->entry->name,
	                             .outer_api = call->judgement->outer.api,
	                             .kernel = &kernel,
	                             .range = slot->range,
	                             .site = &call->judgement->site};
	return report_suppressed(&event);
}

/*
 * Only where the whole code is understood, the slot is an address there, and nothing compares it with another: of a `first, last` pair one end in the twin would make
 * a loop run away.
 */
static bool may_swap(const struct call *call, const struct call_slot *slot)
{
	return slot->verdict == KERNEL_STORES && slot->paths->reason == PATHS_CLEAR && slot_may_swap(&slot->may) &&
	       !(slot->range->flags & (CUCONST_VERIFY_ONLY | RANGE_TWIN)) &&
	       !judge_owned(slot->range, &call->judgement->site) && !is_suppressed(call, slot);
}

/* The same parameter slot is listed once for each range that its value lies in, and once for each beside it. */
static bool same_place(const struct call_slot *one, const struct call_slot *other)
{
	return one->argument == other->argument && one->offset == other->offset;
}

static bool lies_inside(const struct call_slot *slot)
{
	return slot->verdict != KERNEL_NEAR && slot->value >= slot->range->start && slot->value < slot->range->end;
}

/* Each of the ranges that its value lies in must allow it. */
static bool all_may_swap(const struct call *call, const struct call_slot *slot)
{
	for (size_t i = 0; i < call->slot_count; i++) {
		const struct call_slot *other = &call->slots[i];
		if (same_place(other, slot) && lies_inside(other) && !may_swap(call, other))
			return false;
	}
	return true;
}

static void set_twin(struct call *call, const struct call_slot *slot, uint64_t twin)
{
	for (size_t i = 0; i < call->slot_count; i++)
		if (same_place(&call->slots[i], slot))
			call->slots[i].twin = twin;
}

/* Finds the twins. False: there are none. */
static bool find_twins(struct call *call)
{
	bool any = false;
	uint64_t twin;
	for (size_t i = 0; i < call->slot_count; i++) {
		const struct call_slot *slot = &call->slots[i];
		if (slot->twin || !lies_inside(slot) || !all_may_swap(call, slot) ||
		    !twin_of(slot->value, slot->range->end - slot->value, &twin))
			continue;
		set_twin(call, slot, twin);
		any = true;
	}
	return any;
}

static void forget_twins(struct call *call)
{
	for (size_t i = 0; i < call->slot_count; i++)
		call->slots[i].twin = 0;
}

static size_t rounded(size_t bytes)
{
	return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

/* Room in the call, or for the few that need more on the heap. NULL: no memory. */
static char *make_copy(struct call *call, size_t bytes)
{
	if (bytes <= sizeof call->inline_copy)
		return call->inline_copy;
	call->copy = malloc(bytes);
	return call->copy;
}

/* Is it the first slot of its argument that is swapped? */
static bool opens_argument(const struct call *call, size_t nth)
{
	for (size_t i = 0; i < nth; i++)
		if (call->slots[i].twin && call->slots[i].argument == call->slots[nth].argument)
			return false;
	return call->slots[nth].twin != 0;
}

/* The program's own list with other pointers in it, to copies of those parameters that a twin goes into. */
static bool copy_params(struct call *call, const struct function_info *info)
{
	size_t pointers = rounded(info->param_count * sizeof(void *)), bytes = pointers;
	for (size_t i = 0; i < call->slot_count; i++)
		if (opens_argument(call, i))
			bytes += rounded(info->params[call->slots[i].argument].bytes);
	char *copy = make_copy(call, bytes);
	if (!copy)
		return false;
	void **params = (void **)(void *)copy;
	memcpy(params, *call->params, info->param_count * sizeof(void *));
	copy += pointers;
	for (size_t i = 0; i < call->slot_count; i++) {
		const struct call_slot *slot = &call->slots[i];
		if (opens_argument(call, i)) {
			size_t size = info->params[slot->argument].bytes;
			params[slot->argument] = memcpy(copy, params[slot->argument], size);
			copy += rounded(size);
		}
		if (slot->twin)
			memcpy((char *)params[slot->argument] + slot->offset, &slot->twin, sizeof slot->twin);
	}
	*call->params = params;
	return true;
}

/* The same for the one block of an `extra` list. */
static bool copy_extra(struct call *call, const struct function_info *info)
{
	const void *block;
	size_t size;
	/* More than there are parameters, with a struct's padding, is the driver's to refuse, and need not be there to be read. */
	if (!launch_extra_block(*call->extra, &block, &size) ||
	    size > (info->readable ? (info->params_bytes + 7) / 8 * 8 : LAUNCH_BLOCK_MAX))
		return false;
	size_t items = rounded(EXTRA_ITEMS * sizeof(void *)), sizes = rounded(sizeof size);
	char *copy = make_copy(call, items + sizes + size);
	if (!copy)
		return false;
	void **extra = (void **)(void *)copy;
	char *bytes = copy + items + sizes;
	extra[0] = CU_LAUNCH_PARAM_BUFFER_POINTER;
	extra[1] = memcpy(bytes, block, size);
	extra[2] = CU_LAUNCH_PARAM_BUFFER_SIZE;
	extra[3] = memcpy(copy + items, &size, sizeof size);
	extra[4] = CU_LAUNCH_PARAM_END;
	for (size_t i = 0; i < call->slot_count; i++) {
		const struct call_slot *slot = &call->slots[i];
		size_t at = slot->argument >= 0 ? info->params[slot->argument].offset : 0;
		if (slot->twin)
			memcpy(bytes + at + slot->offset, &slot->twin, sizeof slot->twin);
	}
	*call->extra = extra;
	return true;
}

/* Were all slots given twins, whoever launches it, and from wherever? Then the next such launch needs no question, unless it is to be waited for. */
static bool is_settled(const struct call *call)
{
	if (options_get()->suppressions || options_get()->wait_ms || call->copy || !*call->params)
		return false;
	for (size_t i = 0; i < call->slot_count; i++)
		if (!call->slots[i].twin || call->slots[i].beside || call->slots[i].range->owner)
			return false;
	return true;
}

bool swap_slots(struct call *call)
{
	if (options_get()->mode != MODE_STRICT || !call->params || call->overlaps || !find_twins(call))
		return false;
	const struct function_info *info = call->slots[0].function;
	if (*call->params ? copy_params(call, info) : call->extra && copy_extra(call, info)) {
		if (call->draft && is_settled(call))
			memo_keep_twins(call);
		return true;
	}
	forget_twins(call);
	return false;
}

/* memo_swap_what() has 8 bits for how many parameters there are. */
_Static_assert(SWAP_ROOM / sizeof(void *) <= UINT8_MAX, "the copy of a launch that is kept has room for fewer");

/* For a twin before this one. Asked of the twins: the program's list may change meanwhile, and what it points to is not to be written. */
static inline bool has_copy(const struct memo_twins *twins, size_t nth)
{
	size_t i = 0;
	while (i < nth && twins->twin[i].argument != twins->twin[nth].argument)
		i++;
	return i < nth;
}

/* A parameter that is an address and nothing else is the twin itself; of others there is a copy, once for all twins in it. */
HOOK_HOT void **swap_again(const struct memo_twins *twins, void **params, char *room)
{
	void **list = (void **)(void *)room;
	char *copy = room + rounded(twins->params * sizeof(void *));
	memcpy(list, params, twins->params * sizeof(void *));
	for (size_t i = 0; i < twins->count; i++) {
		const struct memo_twin *twin = &twins->twin[i];
		if (twin->bytes == sizeof twin->twin) {
			list[twin->argument] = (void *)(uintptr_t)&twin->twin;
			continue;
		}
		if (!has_copy(twins, i)) {
			list[twin->argument] = memcpy(copy, list[twin->argument], twin->bytes);
			copy += rounded(twin->bytes);
		}
		memcpy((char *)list[twin->argument] + twin->offset, &twin->twin, sizeof twin->twin);
	}
	return list;
}

bool swap_guards(const struct call *call, const struct range *range)
{
	bool guarded = false;
	for (size_t i = 0; i < call->slot_count; i++) {
		if (call->slots[i].range != range)
			continue;
		if (!call->slots[i].twin)
			return false;
		guarded = true;
	}
	return guarded;
}
