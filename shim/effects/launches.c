/* Kernel launches: every aligned 8-byte slot of the parameters that holds an address in a protected range, or beside one, and what the kernel can do with it. */
#include <string.h>

#include "shim/effects/capture.h"
#include "shim/effects/launches.h"
#include "shim/hook_state.h"
#include "shim/kernels/function.h"
#include "shim/kernels/images.h"
#include "shim/verdict/fault.h"
#include "shim/verdict/neighbours.h"
#include "shim/verdict/options.h"
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

/* One kernel's parameters on the way through. */
struct scan {
	struct call *call;
	const struct function_info *info;
	const struct kernel_paths *paths;
	bool asked; /* for the paths, and whether the stream captures */
};

bool launch_may_refuse(void)
{
	return options_get()->mode == MODE_DENY && atomic_load_explicit(&hook_armed, memory_order_relaxed);
}

const struct kernel_paths *launch_paths(const struct function_info *info)
{
	if (!options_get()->store_paths)
		return NULL;
	const struct kernel_paths *known = function_paths(info);
	return known ? known : images_paths(info->function);
}

/* At the first address that concerns a protected range: most launches have none. */
static void ask(struct scan *scan)
{
	scan->call->concerned = true;
	if (scan->asked)
		return;
	scan->asked = true;
	scan->paths = launch_paths(scan->info);
	/* What is captured does not run now. */
	scan->call->deferred |= capture_is_running(scan->call->stream);
}

static void add_slot(struct call *call, const struct call_slot *slot, struct range *range)
{
	struct call_slot added = *slot;
	if (atomic_load_explicit(&range->ending, memory_order_relaxed)) {
		range_put(range);
		return;
	}
	added.range = range;
	call_add_slot(call, &added);
}

static void add_inside(struct call *call, const struct call_slot *slot)
{
	struct range *found[RANGES_PER_SLOT];
	size_t count = registry_stab(protect_ranges(), slot->value, found, RANGES_PER_SLOT);
	for (size_t i = 0; i < count && i < RANGES_PER_SLOT; i++)
		add_slot(call, slot, found[i]);
}

/* Ranges beside the address: the kernel may run over into them. */
static void add_beside(struct call *call, const struct call_slot *slot)
{
	struct range *found[NEIGHBOURS_BESIDE];
	struct call_slot near = *slot;
	if (near.verdict == KERNEL_STORES)
		near.verdict = KERNEL_NEAR;
	size_t count = neighbours_beside(protect_ranges(), slot->value, found);
	for (size_t i = 0; i < count; i++) {
		/* Those that the address lies in have their slot already. */
		if (slot->value >= found[i]->start && slot->value < found[i]->end)
			range_put(found[i]);
		else
			add_slot(call, &near, found[i]);
	}
}

static void add_slot_value(struct scan *scan, int argument, uint32_t offset, uint64_t value)
{
	/* Most pointers lie in no allocation that holds a range: to learn that takes less than to ask which range it is. */
	if (!neighbours_hit(neighbours_all(), value))
		return;
	ask(scan);
	struct call *call = scan->call;
	struct call_slot slot = {
		.function = scan->info, .paths = scan->paths, .argument = argument, .offset = offset, .value = value};
	slot.verdict = slot_verdict(scan->info, scan->paths, argument, offset, &slot.may);
	if (slot.verdict == KERNEL_CLEAN)
		return;
	bool inside = registry_hits(protect_ranges(), value, value + 1);
	enum kernel_verdict verdict = inside || slot.verdict != KERNEL_STORES ? slot.verdict : KERNEL_NEAR;
	call->verdict = verdict > call->verdict ? verdict : call->verdict;
	if (inside)
		add_inside(call, &slot);
	if (!call->deferred && neighbours_note(&slot, call->serial, call->entry->name))
		add_beside(call, &slot);
}

static void scan_param(struct scan *scan, int argument, const void *bytes, size_t size)
{
	for (size_t offset = 0; offset + 8 <= size; offset += 8) {
		uint64_t value;
		memcpy(&value, (const char *)bytes + offset, sizeof value);
		add_slot_value(scan, argument, (uint32_t)offset, value);
	}
}

static void scan_block(struct scan *scan, const void *block, size_t size)
{
	const struct function_info *info = scan->info;
	const char *bytes = block;
	if (!info->readable) {
		scan_param(scan, -1, bytes, size < LAUNCH_BLOCK_MAX ? size : LAUNCH_BLOCK_MAX);
		return;
	}
	/* One by one, as a launch has them: a packed struct lies at no multiple of 8. */
	for (size_t i = 0; i < info->param_count; i++) {
		const struct function_param *param = &info->params[i];
		if (param->offset < size)
			scan_param(scan, (int)i, bytes + param->offset,
			           param->bytes < size - param->offset ? param->bytes : size - param->offset);
	}
}

void launch_scan_block(struct call *call, const struct function_info *info, const struct kernel_paths *paths,
                       const void *block, size_t size)
{
	scan_block(&(struct scan){.call = call, .info = info, .paths = paths, .asked = true}, block, size);
}

bool launch_concerns(const void *block, size_t size)
{
	struct registry *all = neighbours_all();
	for (size_t offset = 0; all && offset + 8 <= size; offset += 4) {
		uint64_t value;
		memcpy(&value, (const char *)block + offset, sizeof value);
		if (neighbours_hit(all, value))
			return true;
	}
	return false;
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

void launch_scan(struct call *call, CUfunction function, void **params, void **extra)
{
	const struct function_info *info = function_info(function);
	struct scan scan = {.call = call, .info = info};
	const void *block;
	size_t size;
	if (!info) {
		hook_count(COUNT_UNJUDGED);
		return;
	}
	if (!params) {
		if (launch_extra_block(extra, &block, &size))
			scan_block(&scan, block, size);
		return;
	}
	if (!info->readable) {
		hook_count(COUNT_UNJUDGED);
		return;
	}
	for (size_t i = 0; i < info->param_count; i++)
		if (params[i])
			scan_param(&scan, (int)i, params[i], info->params[i].bytes);
}

void launch_scan_deferred(struct call *call, CUfunction function, void **params, void **extra)
{
	if (!launch_may_refuse())
		return;
	call->deferred = true;
	launch_scan(call, function, params, extra);
}

void effect_launch(struct call *call, CUfunction function, void ***params, void ***extra)
{
	launch_number(call);
	launch_scan(call, function, *params, extra ? *extra : NULL);
	call->params = params;
	call->extra = extra;
}

/* A grid that starts while the one before it still runs may have read an address before that one wrote it through another mapping. */
static bool may_overlap(const CUlaunchConfig *config)
{
	for (unsigned i = 0; config && config->attrs && i < config->numAttrs; i++)
		if (config->attrs[i].id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION &&
		    config->attrs[i].value.programmaticStreamSerializationAllowed)
			return true;
	return false;
}

void effect_launch_config(struct call *call, const CUlaunchConfig *config, CUfunction function, void ***params,
                          void ***extra)
{
	effect_launch(call, function, params, extra);
	call->overlaps = call->slot_count && may_overlap(config);
}

void effect_launch_list(struct call *call, const CUDA_LAUNCH_PARAMS *list, unsigned count)
{
	int devices = 0;
	/* One launch for each device at most: the driver refuses a longer list. */
	if (!drv.cuDeviceGetCount || drv.cuDeviceGetCount(&devices) != CUDA_SUCCESS || count > (unsigned)devices)
		return;
	/* Several streams at once: the checks go into the first. What another has not written by then, the next check finds. */
	for (unsigned i = 0; list && i < count; i++) {
		if (i == 0 && list[i].hStream)
			call->stream = list[i].hStream;
		launch_number(call);
		launch_scan(call, list[i].function, list[i].kernelParams, NULL);
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

static void stream_after(struct call *call, CUresult result)
{
	if (result == CUDA_SUCCESS)
		fault_ended(NULL, address_of(call->stream), call->state[0].number);
}

void effect_sync_stream(struct call *call)
{
	call->state[0].number = fault_noted();
	call->after = stream_after;
}

static void context_after(struct call *call, CUresult result)
{
	if (result == CUDA_SUCCESS)
		fault_ended(call->state[1].pointer, 0, call->state[0].number);
}

void effect_sync_context(struct call *call, CUcontext context)
{
	call->state[0].number = fault_noted();
	call->state[1].pointer = context;
	call->after = context_after;
}
