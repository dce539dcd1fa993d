/* Kernels: refused by what their code says, or checked by what their launch did. */
#include <stdlib.h>
#include <string.h>

#include "shim/cuconst.h"
#include "shim/kernels/function.h"
#include "shim/verdict/judge_internal.h"
#include "shim/verdict/neighbours.h"
#include "shim/verdict/options.h"
#include "shim/verdict/protect.h"
#include "shim/verdict/swap.h"

static bool is_hit(const struct judgement *judgement, const struct range *range)
{
	for (size_t i = 0; i < judgement->hit_count; i++)
		if (judgement->hits[i].range == range)
			return true;
	return false;
}

/* What the kernel's code says about the slot, for records. */
static struct report_code slot_code(const struct call_slot *slot)
{
	bool unknown = slot->verdict == KERNEL_UNKNOWN;
	return (struct report_code){.verdict = kernel_verdict_name(slot->beside ? KERNEL_NEAR : slot->verdict),
	                            .reason = !unknown      ? NULL
	                                      : slot->paths ? paths_reason_text(slot->paths->reason)
	                                                    : "was not read",
	                            .paths = slot->paths,
	                            .slot = slot_index(slot->function, slot->argument, slot->offset)};
}

void judge_tell_slot(const struct entrypoint *entry, const struct call_slot *slot, struct report_kernel *ret)
{
	ret->name = slot->function->name;
	ret->argument = slot->argument;
	ret->offset = slot->offset;
	ret->value = slot->value;
	ret->api = entry->name;
	ret->code = slot_code(slot);
}

void judge_slot_kernel(const struct call *call, const struct call_slot *slot, struct report_kernel *ret)
{
	judge_tell_slot(call->entry, slot, ret);
	site_copy(&ret->site, &call->judgement->site);
}

bool judge_refusable(const struct call_slot *slot)
{
	return slot->verdict == KERNEL_STORES && slot->may.only_base && !(slot->range->flags & CUCONST_VERIFY_ONLY);
}

/* The first refusable slot of each range speaks for it. */
static bool speaks(const struct call *call, size_t nth)
{
	for (size_t i = 0; i < nth; i++)
		if (call->slots[i].range == call->slots[nth].range && judge_refusable(&call->slots[i]))
			return false;
	return judge_refusable(&call->slots[nth]);
}

CUresult judge_refuse_kernels(const struct call *call)
{
	const struct judgement *judgement = call->judgement;
	bool refuse = false;
	if (options_get()->mode != MODE_DENY)
		return CUDA_SUCCESS;
	for (size_t i = 0; i < call->slot_count; i++) {
		const struct call_slot *slot = &call->slots[i];
		if (!speaks(call, i) || judge_owned(slot->range, &judgement->site))
			continue;
		struct report_kernel kernel;
		judge_slot_kernel(call, slot, &kernel);
		struct report_event event = {.kind = REPORT_VIOLATION,
		                             .evidence = EVIDENCE_WRITTEN,
		                             .api = call->entry->name,
		                             .outer_api = judgement->outer.api,
		                             .outer_note = judgement->outer.note,
		                             .inside_outer = judgement->outer.api != NULL,
		                             .earlier_launches = judgement->outer.launches,
		                             .kernel = &kernel,
		                             .stream = address_of(call->stream),
		                             .graph = call->graph,
		                             .graph_node = call->graph ? "kernel" : NULL,
		                             .site = &judgement->site};
		atomic_fetch_add_explicit(&slot->range->checks, 1, memory_order_relaxed);
		refuse |= judge_emit(&event, slot->range, ACTION_DENIED, CUDA_ERROR_NOT_PERMITTED);
	}
	return refuse ? CUDA_ERROR_NOT_PERMITTED : CUDA_SUCCESS;
}

/* Does another slot say more of the same range? One that points into it does than one beside it, and of equals the first. */
static bool outdone(const struct call *call, size_t nth)
{
	const struct call_slot *slot = &call->slots[nth];
	bool outside = slot->beside;
	for (size_t i = 0; i < call->slot_count; i++) {
		const struct call_slot *other = &call->slots[i];
		if (other->range == slot->range && (other->beside == outside ? i < nth : outside))
			return true;
	}
	return false;
}

/* Graph nodes that hold an address in this range, or without any beside it. The array is the caller's to free; NULL: none, or no memory. */
static struct report_kernel *node_candidates(const struct call *call, const struct range *range, size_t *ret_count)
{
	size_t inside = 0, all = 0, room;
	*ret_count = 0;
	for (size_t i = 0; i < call->slot_count; i++) {
		all += call->slots[i].range == range;
		inside += call->slots[i].range == range && !call->slots[i].beside;
	}
	/* No more than there are: a launch has one such list for each range. */
	room = inside ? inside : all;
	struct report_kernel *kernels = room ? malloc(room * sizeof *kernels) : NULL;
	for (size_t i = 0; kernels && i < call->slot_count; i++)
		if (call->slots[i].range == range && !(inside && call->slots[i].beside))
			judge_slot_kernel(call, &call->slots[i], &kernels[(*ret_count)++]);
	return kernels;
}

/* What all ranges of the call share; verify_target has the rest. */
static struct verify_writer call_writer(const struct call *call)
{
	const struct judgement *judgement = call->judgement;
	return (struct verify_writer){.api = call->entry->name,
	                              .outer_api = judgement->outer.api,
	                              .outer_note = judgement->outer.note,
	                              .kernel = {.api = call->entry->name, .site = judgement->site},
	                              .stream = address_of(call->stream),
	                              .graph = call->graph,
	                              .site = judgement->site};
}

struct look judge_looked(const struct range *range)
{
	return (struct look){atomic_load_explicit(&range->mark, memory_order_relaxed),
	                     atomic_load_explicit(&range->launches, memory_order_relaxed)};
}

void judge_looks(struct range *range, struct look look)
{
	atomic_store_explicit(&range->mark, look.number, memory_order_relaxed);
	atomic_store_explicit(&range->launches, look.launches, memory_order_relaxed);
}

const struct report_kernel *judge_neighbours(const struct range *range, struct look since, size_t *ret_count)
{
	struct report_kernel kernels[NEIGHBOURS_WRITERS];
	size_t count = neighbours_writers(range, look_time(since), kernels, NEIGHBOURS_WRITERS);
	struct report_kernel *kept = count ? malloc(count * sizeof *kept) : NULL;
	*ret_count = kept ? count : 0;
	if (kept)
		memcpy(kept, kernels, count * sizeof *kept);
	return kept;
}

static void free_candidates(struct verify_target *targets, size_t count)
{
	for (size_t i = 0; i < count; i++)
		free((void *)(uintptr_t)targets[i].candidates);
}

/*
 * Launches since these ranges were last looked at had no slot in them, yet one may have written there (a neighbour's overrun, a pointer in device
 * memory). Looked at before the launch, such a change is not blamed on the kernel that comes now.
 */
void judge_verify_before(const struct call *call)
{
	struct judgement *judgement = call->judgement;
	size_t count = 0;
	for (size_t i = 0; i < judgement->check_count; i++) {
		struct range *range = call->slots[judgement->checks[i].slot].range;
		struct look looked = judge_looked(range);
		uint64_t before = look_launches(looked, judgement->look, 1);
		if (!before || judgement->checks[i].owned)
			continue;
		struct verify_target *target = &judgement->targets[count++];
		*target = (struct verify_target){.range = range, .launches_before = before, .device = range_device(range)};
		target->candidates = judge_neighbours(range, looked, &target->candidate_count);
	}
	if (!count)
		return;
	struct verify_writer writer = call_writer(call);
	writer.api = "cuconst_before_launch";
	writer.outer_api = writer.outer_note = NULL;
	writer.graph = 0;
	verify_after_each(&writer, judgement->targets, count, call->stream);
	free_candidates(judgement->targets, count);
}

static struct verify_target slot_target(const struct call *call, const struct call_slot *slot)
{
	struct verify_target target = {.range = slot->range, .device = range_device(slot->range)};
	if (call->graph) {
		target.candidates = node_candidates(call, slot->range, &target.candidate_count);
	} else {
		target.kernel = slot->function->name;
		target.argument = slot->argument;
		target.offset = slot->offset;
		target.value = slot->value;
		target.code = slot_code(slot);
	}
	return target;
}

bool judge_verify_slots(const struct call *call)
{
	struct judgement *judgement = call->judgement;
	struct moved moved = {.count = 0};
	size_t count = 0;
	for (size_t i = 0; i < judgement->check_count; i++) {
		const struct call_slot *slot = &call->slots[judgement->checks[i].slot];
		atomic_fetch_add_explicit(&slot->range->checks, 1, memory_order_relaxed);
		judge_looks(slot->range, judgement->look);
		if (judgement->checks[i].owned)
			moved_add(&moved, slot->range, call->stream);
		else
			judgement->targets[count++] = slot_target(call, slot);
	}
	moved_flush(&moved, call->stream);
	if (count) {
		struct verify_writer writer = call_writer(call);
		verify_after_each(&writer, judgement->targets, count, call->stream);
		free_candidates(judgement->targets, count);
	}
	return judgement->check_count > 0;
}

/* Room for one of each slot: at the first check, since launches that were given twins have none. */
static struct check *make_checks(const struct call *call)
{
	struct judgement *judgement = call->judgement;
	judgement->checks = malloc(call->slot_count * (sizeof *judgement->targets + sizeof *judgement->checks));
	judgement->targets = judgement->checks ? (struct verify_target *)(judgement->checks + call->slot_count) : NULL;
	return judgement->checks;
}

void judge_verify_maybe(const struct call *call, struct range *range)
{
	struct verify_target target = {.range = range, .device = range_device(range)};
	struct verify_writer writer = call_writer(call);
	target.launches_before = look_launches(judge_looked(range), call->judgement->look, 1);
	judge_looks(range, call->judgement->look);
	target.candidates = node_candidates(call, range, &target.candidate_count);
	verify_after_each(&writer, &target, 1, call->stream);
	free_candidates(&target, 1);
}

bool judge_find_checks(const struct call *call)
{
	struct judgement *judgement = call->judgement;
	struct check *checks = NULL;
	size_t count = 0;
	for (size_t i = 0; i < call->slot_count; i++) {
		const struct call_slot *slot = &call->slots[i];
		bool seen = is_hit(judgement, slot->range) || outdone(call, i) || swap_guards(call, slot->range);
		if (!seen && !checks) {
			checks = make_checks(call);
			if (!checks)
				return false;
		}
		if (!seen)
			checks[count++] = (struct check){.slot = i, .owned = judge_owned(slot->range, &judgement->site)};
		/* Of such a kernel only some launches come here; later ones are named by the place of this. */
		if (!seen && (slot->seldom || slot->beside) && (i == 0 || slot->value != slot[-1].value))
			neighbours_keep_site(slot, &judgement->site);
	}
	judgement->check_count = count;
	return true;
}
