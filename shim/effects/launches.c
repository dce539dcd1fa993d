/* Kernel launches: every aligned 8-byte slot of the parameters that holds an address in a protected range, or beside one, and what the kernel can do with it. */
#include <string.h>

#include "shim/effects/capture.h"
#include "shim/effects/launch_memo.h"
#include "shim/effects/launches.h"
#include "shim/hook_state.h"
#include "shim/kernels/function.h"
#include "shim/kernels/images.h"
#include "shim/kernels/variants.h"
#include "shim/looks.h"
#include "shim/verdict/area.h"
#include "shim/verdict/fault.h"
#include "shim/verdict/neighbours.h"
#include "shim/verdict/options.h"
#include "shim/verdict/protect.h"
#include "shim/verdict/words.h"

/* Ranges looked at for one address; more than this many nested around one byte are cut. */
#define RANGES_PER_SLOT 64

/* One kernel's parameters on the way through. */
struct scan {
	struct call *call;
	const struct function_info *info;
	const struct kernel_paths *paths;
	bool asked;            /* for the paths, and whether the stream captures */
	bool asked_for_values; /* for those of the parameters' values (paths_for_values) */
	struct area_view view;
	void **params;
	const void *block; /* or in one */
	size_t size;
	size_t words;             /* in the parameters before this one */
	struct memo_draft *draft; /* NULL: none */
};

bool launch_may_refuse(void)
{
	return options_get()->mode == MODE_DENY && atomic_load_explicit(&hook_line.armed, memory_order_relaxed);
}

HOOK_HOT const struct kernel_paths *launch_paths(const struct function_info *info)
{
	if (!options_get()->store_paths)
		return NULL;
	const struct kernel_paths *known = function_paths(info);
	return known ? known : images_paths(info->function);
}

/* At the first address that concerns a protected range: most launches have none. */
static HOOK_HOT void ask(struct scan *scan)
{
	if (scan->asked)
		return;
	scan->asked = true;
	scan->paths = launch_paths(scan->info);
	/* What is captured does not run now. */
	scan->call->deferred |= capture_is_running(scan->call->stream);
}

const struct kernel_paths *launch_paths_for(const struct function_info *info, const void *block, size_t size)
{
	const struct kernel_paths *paths = launch_paths(info);
	if (!paths || size < info->params_bytes)
		return paths;
	const struct kernel_paths *better = function_paths_for(info, block);
	return better ? better : paths;
}

/*
 * The block as the driver will lay it out; false: too large, or the program left one out. Always a copy: an answer is kept, so all questions that it takes must see
 * the same values, whatever another thread does to the program's.
 */
static bool lay_out(const struct scan *scan, uint8_t block[VARIANT_BLOCK_BYTES])
{
	const struct function_info *info = scan->info;
	if (!info->readable || info->params_bytes > VARIANT_BLOCK_BYTES)
		return false;
	if (!scan->params) {
		memcpy(block, scan->block, info->params_bytes);
		return true;
	}
	for (size_t i = 0; i < info->param_count; i++) {
		if (!scan->params[i])
			return false;
		memcpy(block + info->params[i].offset, scan->params[i], info->params[i].bytes);
	}
	return true;
}

/* Once for each launch, and only where its code for any values leaves a doubt: what it does for the values that it has. Its block is not for the stack of all launches. */
static __attribute__((noinline)) bool paths_for_values(struct scan *scan)
{
	uint8_t block[VARIANT_BLOCK_BYTES];
	if (scan->asked_for_values || !scan->paths || (!scan->params && scan->size < scan->info->params_bytes))
		return false;
	scan->asked_for_values = true;
	if (!lay_out(scan, block))
		return false;
	const struct variant *variant = function_variant(scan->info, block);
	const struct kernel_paths *better = variant ? variant->paths : NULL;
	scan->paths = better ? better : scan->paths;
	if (scan->draft) {
		scan->draft->variant = variant;
		scan->draft->unfit |= !variant; /* other values may get a better answer */
	}
	return better;
}

static void add_slot(struct call *call, const struct call_slot *slot, struct range *range)
{
	struct call_slot added = *slot;
	if (atomic_load_explicit(&range->ending, memory_order_relaxed)) {
		range_put(range);
		return;
	}
	added.range = range;
	added.handle = range->handle;
	added.beside = slot->value < range->start || slot->value >= range->end;
	call_add_slot(call, &added);
}

static __attribute__((noinline)) void add_inside(struct call *call, const struct call_slot *slot, registry_handle only)
{
	struct range *found[RANGES_PER_SLOT], *known = only ? registry_find(protect_ranges(), only) : NULL;
	if (known) {
		add_slot(call, slot, known);
		return;
	}
	size_t count = registry_stab(protect_ranges(), slot->value, found, RANGES_PER_SLOT);
	for (size_t i = 0; i < count && i < RANGES_PER_SLOT; i++)
		add_slot(call, slot, found[i]);
}

/* Ranges beside the address: the kernel may run over into them. */
static __attribute__((noinline)) void add_beside(struct call *call, const struct call_slot *slot)
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

/* A slot that may be stored through, and whose value lies in an allocation with ranges. */
static HOOK_HOT void add_slot_value(struct call *call, const struct call_slot *slot, const struct area *area,
                                    struct memo_draft *draft)
{
	struct neighbours_mark mark;
	bool inside = area->kind == AREA_INSIDE, due = false;
	enum kernel_verdict verdict = inside || slot->verdict != KERNEL_STORES ? slot->verdict : KERNEL_NEAR;
	call->verdict = verdict > call->verdict ? verdict : call->verdict;
	if (inside && !slot->seldom)
		add_inside(call, slot, area->range);
	if (!call->deferred) {
		due = neighbours_note(slot, call->time, call->entry->name, &mark);
		if (draft)
			memo_draft_note(draft, &mark);
		if (draft && inside && !slot->seldom)
			draft->inside = true; /* also where its ranges are about to end, and it has no slot */
	}
	if (!due)
		return;
	if (slot->seldom)
		add_inside(call, slot, area->range);
	add_beside(call, slot);
}

/* strict leaves no launch out. */
static bool is_seldom(const struct kernel_paths *paths, enum kernel_verdict verdict, const struct slot_paths *may)
{
	return verdict == KERNEL_UNKNOWN && slot_stores_elsewhere(paths, may) && options_get()->mode != MODE_STRICT;
}

/* A value that may lie in an allocation with ranges. */
static HOOK_HOT __attribute__((noinline)) void scan_value(struct scan *scan, int argument, uint32_t offset, uint64_t value)
{
	struct slot_paths may;
	enum kernel_verdict verdict = KERNEL_UNKNOWN;
	/* Where a slot points that is not stored through does not matter once it is known that the launch concerns a range. */
	bool known = scan->asked && scan->call->concerned;
	if (known)
		verdict = slot_verdict(scan->info, scan->paths, argument, offset, &may);
	if (verdict == KERNEL_CLEAN)
		return;
	struct area area = area_of(&scan->view, value);
	if (area.kind == AREA_ELSEWHERE)
		return;
	if (!known) {
		ask(scan);
		verdict = slot_verdict(scan->info, scan->paths, argument, offset, &may);
		/* What the code takes for no address is a number, whatever it looks like. */
		scan->call->concerned |= verdict != KERNEL_CLEAN || may.use != SLOT_NONE;
	}
	if (verdict != KERNEL_CLEAN && (area.kind == AREA_INSIDE || verdict == KERNEL_UNKNOWN) && paths_for_values(scan))
		verdict = slot_verdict(scan->info, scan->paths, argument, offset, &may);
	if (verdict == KERNEL_CLEAN)
		return;
	add_slot_value(scan->call,
	               &(struct call_slot){.function = scan->info,
	                                   .paths = scan->paths,
	                                   .verdict = verdict,
	                                   .may = may,
	                                   .argument = argument,
	                                   .offset = offset,
	                                   .value = value,
	                                   .seldom = area.kind == AREA_INSIDE && is_seldom(scan->paths, verdict, &may),
	                                   .neighbourhood = area.neighbourhood},
	               &area, scan->draft);
}

/* The parameter whose words are looked at. */
struct scan_param {
	struct scan *scan;
	int argument;
};

static inline bool take_word(void *context, uint64_t value, size_t nth)
{
	const struct scan_param *param = context;
	struct scan *scan = param->scan;
	if (scan->draft && !scan->draft->unfit)
		memo_draft_word(scan->draft, scan->words + nth, value);
	scan_value(scan, param->argument, (uint32_t)(nth * sizeof value), value);
	return true;
}

static inline void scan_param(struct scan *scan, int argument, const void *bytes, size_t size)
{
	struct scan_param param = {scan, argument};
	const struct words_bounds bounds = {scan->view.low, scan->view.bytes, granules_all()};
	size_t count = size / sizeof(uint64_t);
	if (bounds.granules)
		words_each(&bounds, bytes, count, take_word, &param);
	scan->words += count;
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
	scan_block(&(struct scan){.call = call,
	                          .info = info,
	                          .paths = paths,
	                          .asked = true,
	                          .asked_for_values = true,
	                          .view = area_view()},
	           block, size);
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

/* An answer without the code's paths is one for want of memory. */
static bool is_fit(const struct scan *scan)
{
	return !scan->draft->unfit && !scan->draft->inside && !scan->call->deferred &&
	       (!scan->call->concerned || scan->paths || !options_get()->store_paths);
}

/* What the code does for these values: if that is known, or it is time to ask. */
static __attribute__((noinline)) void ask_for_layout(struct scan *scan, bool is_due)
{
	uint8_t block[VARIANT_BLOCK_BYTES];
	const struct function_info *info = scan->info;
	const struct kernel_paths *paths = is_due ? launch_paths(info) : function_paths(info);
	if (!paths || paths->reason == PATHS_CLEAR || scan->asked_for_values || !lay_out(scan, block))
		return;
	scan->draft->variant = is_due ? function_variant(info, block) : function_known_variant(info, block);
}

static HOOK_HOT void scan_launch(struct call *call, CUfunction function, void **params, void **extra,
                                 struct memo_draft *draft)
{
	const struct function_info *info = function_info(function);
	struct scan scan = {.call = call, .info = info, .view = area_view()};
	const void *block;
	size_t size;
	if (!info) {
		hook_count(COUNT_UNJUDGED);
		return;
	}
	if (!params) {
		if (launch_extra_block(extra, &block, &size)) {
			scan.block = block;
			scan.size = size;
			scan_block(&scan, block, size);
		}
		return;
	}
	if (!info->readable) {
		hook_count(COUNT_UNJUDGED);
		return;
	}
	scan.params = params;
	scan.draft = draft;
	for (size_t i = 0; i < info->param_count; i++) {
		if (params[i])
			scan_param(&scan, (int)i, params[i], info->params[i].bytes);
		else if (draft)
			draft->unfit = true;
	}
	if (!draft)
		return;
	bool is_due = memo_is_due(info, draft->stamp);
	ask_for_layout(&scan, is_due);
	if (is_fit(&scan))
		memo_keep(call, info, draft, is_due);
	else
		memo_keep_layout(info, draft, is_due);
}

void launch_scan(struct call *call, CUfunction function, void **params, void **extra)
{
	scan_launch(call, function, params, extra, NULL);
}

void launch_scan_deferred(struct call *call, CUfunction function, void **params, void **extra)
{
	if (!launch_may_refuse())
		return;
	call->deferred = true;
	launch_scan(call, function, params, extra);
}

static HOOK_HOT void launch_one(struct call *call, CUfunction function, void ***params, void ***extra)
{
	call->params = params;
	call->extra = extra;
	call->draft = &call->inline_draft;
	memo_draft_begin(call->draft);
	call->time = look_launch_time();
	scan_launch(call, function, *params, extra ? *extra : NULL, call->draft);
}

HOOK_HOT void effect_launch(struct call *call, CUfunction function, void ***params, void ***extra)
{
	launch_one(call, function, params, extra);
}

HOOK_HOT void effect_launch_config(struct call *call, const CUlaunchConfig *config, CUfunction function, void ***params,
                                   void ***extra)
{
	call->overlaps = launch_may_overlap(config);
	launch_one(call, function, params, extra);
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
		call->time = look_launch_time();
		launch_scan(call, list[i].function, list[i].kernelParams, NULL);
	}
}

void effect_unjudged_launch(struct call *call)
{
	hook_count(COUNT_UNJUDGED);
}

static void sync_after(struct call *call, CUresult result)
{
	if (result == CUDA_SUCCESS)
		fault_look_around(call->entry->name);
}

/* For an event, which may be behind any work. judge_after() collects the results that are ready. */
void effect_sync(struct call *call)
{
	call->after = sync_after;
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
