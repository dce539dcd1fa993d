/* Kernel launches: every aligned 8-byte slot of the parameters that holds an address in a protected range. */
#include <string.h>

#include "shim/effects/launches.h"
#include "shim/hook_state.h"
#include "shim/kernels/function.h"
#include "shim/verdict/protect.h"

/* Ranges looked at for one address; more than this many nested around one byte are cut. */
#define RANGES_PER_SLOT 64

static _Atomic uint64_t serial;

uint64_t launch_serial(void)
{
	return atomic_load_explicit(&serial, memory_order_relaxed);
}

void launch_number(struct call *call)
{
	call->serial = atomic_fetch_add_explicit(&serial, 1, memory_order_relaxed) + 1;
}

static void add_slot_value(struct call *call, const struct function_info *info, int argument, uint32_t offset,
                           uint64_t value)
{
	struct registry *ranges = protect_ranges();
	/* Most pointers lie between ranges: to learn that takes less than to ask which range it is. */
	if (!registry_in_bounds(ranges, value, value + 1) || !registry_hits(ranges, value, value + 1))
		return;
	struct range *found[RANGES_PER_SLOT];
	size_t count = registry_stab(ranges, value, found, RANGES_PER_SLOT);
	for (size_t i = 0; i < count && i < RANGES_PER_SLOT; i++) {
		if (atomic_load_explicit(&found[i]->ending, memory_order_relaxed)) {
			range_put(found[i]);
			continue;
		}
		struct call_slot slot = {info, argument, offset, value, found[i]};
		call_add_slot(call, &slot);
	}
}

void launch_scan_param(struct call *call, const struct function_info *info, int argument, const void *bytes, size_t size)
{
	for (size_t offset = 0; offset + 8 <= size; offset += 8) {
		uint64_t value;
		memcpy(&value, (const char *)bytes + offset, sizeof value);
		add_slot_value(call, info, argument, (uint32_t)offset, value);
	}
}

void launch_scan_block(struct call *call, const struct function_info *info, const void *block, size_t size)
{
	const char *bytes = block;
	if (!info->readable) {
		launch_scan_param(call, info, -1, bytes, size);
		return;
	}
	/* One by one, as a launch has them: a packed struct lies at no multiple of 8. */
	for (size_t i = 0; i < info->param_count; i++) {
		const struct function_param *param = &info->params[i];
		if (param->offset < size)
			launch_scan_param(call, info, (int)i, bytes + param->offset,
			                  param->bytes < size - param->offset ? param->bytes : size - param->offset);
	}
}

bool launch_extra_block(void **extra, const void **ret_block, size_t *ret_size)
{
	const void *block = NULL;
	size_t size = 0;
	/* Pairs of tag and value. The list is the program's: stop at anything that is no tag. */
	for (size_t i = 0; extra && extra[i] != CU_LAUNCH_PARAM_END; i += 2) {
		if (extra[i] == CU_LAUNCH_PARAM_BUFFER_POINTER)
			block = extra[i + 1];
		else if (extra[i] == CU_LAUNCH_PARAM_BUFFER_SIZE && extra[i + 1])
			size = *(const size_t *)extra[i + 1];
		else
			break;
	}
	*ret_block = block;
	*ret_size = size;
	return block && size;
}

void effect_launch(struct call *call, CUfunction function, void **params, void **extra)
{
	launch_number(call);
	const struct function_info *info = function_info(function);
	if (!info) {
		hook_count(COUNT_UNJUDGED);
		return;
	}
	const void *block;
	size_t size;
	if (!params) {
		if (launch_extra_block(extra, &block, &size))
			launch_scan_block(call, info, block, size);
		return;
	}
	if (!info->readable) {
		hook_count(COUNT_UNJUDGED);
		return;
	}
	for (size_t i = 0; i < info->param_count; i++)
		if (params[i])
			launch_scan_param(call, info, (int)i, params[i], info->params[i].bytes);
}

void effect_launch_list(struct call *call, const CUDA_LAUNCH_PARAMS *list, unsigned count)
{
	/* Several streams at once: the checks go into the first. What another has not written by then, the next check finds. */
	for (unsigned i = 0; list && i < count; i++) {
		if (i == 0 && list[i].hStream)
			call->stream = list[i].hStream;
		effect_launch(call, list[i].function, list[i].kernelParams, NULL);
	}
}

void effect_unjudged_launch(struct call *call)
{
	hook_count(COUNT_UNJUDGED);
}

void effect_sync(struct call *call)
{
	/* judge_after() collects the results that the synchronisation made ready. */
}
