#include "shim/verdict/judge.h"

#include <fnmatch.h>
#include <stdlib.h>

#include "shim/effects/call.h"
#include "shim/effects/capture.h"
#include "shim/effects/outer.h"
#include "shim/hook_state.h"
#include "shim/kernels/function.h"
#include "shim/report/report.h"
#include "shim/verdict/lifecycle.h"
#include "shim/verdict/options.h"
#include "shim/verdict/protect.h"
#include "shim/verdict/verify.h"

/* One range that the call writes by contract. */
struct hit {
	struct range *range; /* a reference held */
	uint64_t start, end, bytes;
	const char *node; /* kind of graph node or NULL */
	bool permitted;   /* by its owner, or suppressed */
};

/* One range that a kernel with a slot in it may write. */
struct check {
	size_t slot; /* index in call->slots */
	bool owned;  /* the caller is its owner */
};

/* Between judge_before() and judge_after(). On the heap: only calls that touch a protected range have one. */
struct judgement {
	struct site site;
	struct outer outer;
	struct check *checks;          /* one block with targets */
	struct verify_target *targets; /* room for one of each check */
	size_t check_count;
	size_t hit_count;
	struct hit hits[];
};

#define TOLD_WAIT_MS 2000 /* stderr may be a pipe that nobody reads */

static _Atomic uint64_t violations, denied;

struct judge_counts judge_counts(void)
{
	return (struct judge_counts){atomic_load(&violations), atomic_load(&denied)};
}

void judge_postfork_child(void)
{
	atomic_store(&violations, 0);
	atomic_store(&denied, 0);
}

/* May this writer write there? Owners are globs over library file names; unwinding was paid for already. */
static bool owned(const struct range *range, const struct site *site)
{
	return range->owner && !fnmatch(range->owner, site_library(site), 0);
}

static struct report_event hit_event(const struct call *call, const struct hit *hit)
{
	const struct judgement *judgement = call->judgement;
	return (struct report_event){.kind = REPORT_VIOLATION,
	                             .evidence = EVIDENCE_WRITTEN,
	                             .action = ACTION_LOGGED,
	                             .api = call->entry->name,
	                             .outer_api = judgement->outer.api,
	                             .outer_note = judgement->outer.note,
	                             .written_start = hit->start,
	                             .written_end = hit->end,
	                             .written_bytes = hit->bytes,
	                             .written_exact = true,
	                             .stream = address_of(call->stream),
	                             .graph = call->graph,
	                             .graph_node = hit->node,
	                             .site = &judgement->site};
}

/* Writes the event about `range` and counts it. False: suppressed. */
static bool emit(struct report_event *event, struct range *range, enum report_action action, CUresult result)
{
	event->range = range;
	event->device = range_device(range);
	event->action = action;
	event->result = (int)result;
	if (!report_emit(event))
		return false;
	if (event->kind == REPORT_VIOLATION) {
		atomic_fetch_add(&violations, 1);
		atomic_fetch_add(&range->violations, 1);
		if (action == ACTION_DENIED)
			atomic_fetch_add(&denied, 1);
	}
	return true;
}

/* Adds what one write does to one range; several writes of a batch to the same range make one hit. */
static void add_hit(struct judgement *judgement, struct range *range, const struct call_write *write)
{
	uint64_t start, end;
	if (atomic_load_explicit(&range->ending, memory_order_relaxed) ||
	    !extent_overlaps(&write->extent, range->start, range->end, &start, &end)) {
		range_put(range);
		return;
	}
	uint64_t bytes = extent_bytes(&write->extent, start, end);
	for (size_t i = 0; i < judgement->hit_count; i++) {
		struct hit *hit = &judgement->hits[i];
		if (hit->range != range)
			continue;
		hit->start = start < hit->start ? start : hit->start;
		hit->end = end > hit->end ? end : hit->end;
		hit->bytes = 0; /* the writes may overlap each other */
		range_put(range);
		return;
	}
	judgement->hits[judgement->hit_count++] = (struct hit){range, start, end, bytes, write->node, false};
}

/* All ranges that the call's writes overlap. NULL: none, or no memory (then counted). */
static struct judgement *find_hits(const struct call *call)
{
	struct registry *ranges = protect_ranges();
	size_t room = 0;
	uint64_t start, end;
	for (size_t i = 0; i < call->write_count; i++)
		if (extent_bounds(&call->writes[i].extent, &start, &end))
			room += registry_overlaps(ranges, start, end, NULL, 0);
	/* Ranges that another thread adds between the two passes do not fit, and came after this call anyway. */
	struct judgement *judgement = malloc(sizeof *judgement + room * sizeof judgement->hits[0]);
	struct range **found = malloc((room ? room : 1) * sizeof(struct range *));
	if (!judgement || !found) {
		hook_count(COUNT_UNJUDGED);
		free(judgement);
		free(found);
		return NULL;
	}
	judgement->checks = NULL;
	judgement->check_count = judgement->hit_count = 0;
	for (size_t i = 0, used = 0; i < call->write_count; i++) {
		if (!extent_bounds(&call->writes[i].extent, &start, &end))
			continue;
		size_t count = registry_overlaps(ranges, start, end, found, room - used);
		count = count < room - used ? count : room - used;
		for (size_t k = 0; k < count; k++)
			add_hit(judgement, found[k], &call->writes[i]);
		used += count;
	}
	free(found);
	return judgement;
}

static void drop(struct call *call)
{
	struct judgement *judgement = call->judgement;
	for (size_t i = 0; judgement && i < judgement->hit_count; i++)
		range_put(judgement->hits[i].range);
	if (judgement)
		free(judgement->checks);
	free(judgement);
	call->judgement = NULL;
}

/* deny: refuses when a hit is neither its owner's nor suppressed. strict: the end. log: go on. */
static CUresult decide(struct call *call)
{
	struct judgement *judgement = call->judgement;
	enum options_mode mode = options_get()->mode;
	bool refuse = false;
	for (size_t i = 0; i < judgement->hit_count; i++) {
		struct hit *hit = &judgement->hits[i];
		struct report_event event = hit_event(call, hit);
		atomic_fetch_add_explicit(&hit->range->checks, 1, memory_order_relaxed);
		hit->permitted = owned(hit->range, &judgement->site);
		if (hit->permitted || mode == MODE_LOG)
			continue;
		if (mode == MODE_STRICT)
			refuse |= emit(&event, hit->range, ACTION_STOPPED, CUDA_SUCCESS);
		else
			refuse |= emit(&event, hit->range, ACTION_DENIED, CUDA_ERROR_NOT_PERMITTED);
		hit->permitted = true; /* suppressed, else it does not come to pass */
	}
	if (refuse && mode == MODE_STRICT)
		lifecycle_stop();
	return refuse ? CUDA_ERROR_NOT_PERMITTED : CUDA_SUCCESS;
}

static void forget_slots(struct call *call)
{
	for (size_t i = 0; i < call->slot_count; i++)
		range_put(call->slots[i].range);
	call->slot_count = 0;
}

static bool is_hit(const struct judgement *judgement, const struct range *range)
{
	for (size_t i = 0; i < judgement->hit_count; i++)
		if (judgement->hits[i].range == range)
			return true;
	return false;
}

static struct report_kernel slot_kernel(const struct call *call, const struct call_slot *slot)
{
	return (struct report_kernel){.name = slot->function->name,
	                              .argument = slot->argument,
	                              .offset = slot->offset,
	                              .value = slot->value,
	                              .api = call->entry->name,
	                              .site = call->judgement->site};
}

/* Graph nodes that hold an address in this range. The array is the caller's to free; NULL: none, or no memory. */
static struct report_kernel *node_candidates(const struct call *call, const struct range *range, size_t *ret_count)
{
	size_t count = 0;
	for (size_t i = 0; i < call->slot_count; i++)
		count += call->slots[i].range == range;
	struct report_kernel *kernels = count ? malloc(count * sizeof *kernels) : NULL;
	*ret_count = 0;
	for (size_t i = 0; kernels && i < call->slot_count; i++)
		if (call->slots[i].range == range)
			kernels[(*ret_count)++] = slot_kernel(call, &call->slots[i]);
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

/*
 * Launches since these ranges were last looked at had no slot in them, yet one may have written there (a neighbour's overrun, a pointer in device
 * memory). Looked at before the launch, such a change is not blamed on the kernel that comes now.
 */
static void verify_before(const struct call *call)
{
	struct judgement *judgement = call->judgement;
	size_t count = 0;
	for (size_t i = 0; i < judgement->check_count; i++) {
		struct range *range = call->slots[judgement->checks[i].slot].range;
		uint64_t looked = atomic_load_explicit(&range->mark, memory_order_relaxed);
		if (looked + 1 >= call->serial || judgement->checks[i].owned)
			continue;
		judgement->targets[count++] = (struct verify_target){
			.range = range, .launches_before = call->serial - 1 - looked, .device = range_device(range)};
	}
	if (!count)
		return;
	struct verify_writer writer = call_writer(call);
	writer.api = "cuconst_before_launch";
	writer.outer_api = writer.outer_note = NULL;
	writer.graph = 0;
	verify_after_each(&writer, judgement->targets, count, call->stream);
}

/* Ranges that were written with permission: their baselines move on together. */
struct moved {
	struct range *ranges[32];
	size_t count;
};

static void moved_flush(struct moved *moved, CUstream stream)
{
	verify_refresh(moved->ranges, moved->count, stream);
	moved->count = 0;
}

static void moved_add(struct moved *moved, struct range *range, CUstream stream)
{
	if (moved->count == sizeof moved->ranges / sizeof moved->ranges[0])
		moved_flush(moved, stream);
	moved->ranges[moved->count++] = range;
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
	}
	return target;
}

/* A launch ran that may have written these ranges: compares each with its baseline, in stream order. */
static bool verify_slots(const struct call *call)
{
	struct judgement *judgement = call->judgement;
	struct moved moved = {.count = 0};
	size_t count = 0;
	for (size_t i = 0; i < judgement->check_count; i++) {
		const struct call_slot *slot = &call->slots[judgement->checks[i].slot];
		atomic_fetch_add_explicit(&slot->range->checks, 1, memory_order_relaxed);
		atomic_store_explicit(&slot->range->mark, call->serial, memory_order_relaxed);
		if (judgement->checks[i].owned)
			moved_add(&moved, slot->range, call->stream);
		else
			judgement->targets[count++] = slot_target(call, slot);
	}
	moved_flush(&moved, call->stream);
	if (count) {
		struct verify_writer writer = call_writer(call);
		verify_after_each(&writer, judgement->targets, count, call->stream);
		for (size_t i = 0; i < count; i++)
			free((void *)(uintptr_t)judgement->targets[i].candidates);
	}
	return judgement->check_count > 0;
}

/*
 * Finds the slots by which ranges are checked: of each range the first that may be stored through. A range that is written by contract needs no
 * check. False: no memory.
 */
static bool find_checks(const struct call *call)
{
	struct judgement *judgement = call->judgement;
	if (!call->slot_count)
		return true;
	judgement->checks = malloc(call->slot_count * (sizeof *judgement->targets + sizeof *judgement->checks));
	if (!judgement->checks)
		return false;
	judgement->targets = (struct verify_target *)(judgement->checks + call->slot_count);
	size_t count = 0;
	for (size_t i = 0; i < call->slot_count; i++) {
		const struct call_slot *slot = &call->slots[i];
		bool seen = is_hit(judgement, slot->range);
		for (size_t k = 0; k < i && !seen; k++)
			seen = call->slots[k].range == slot->range;
		if (!seen && function_verdict(slot->function, slot->argument, slot->offset) != KERNEL_CLEAN)
			judgement->checks[count++] =
				(struct check){.slot = i, .owned = owned(slot->range, &judgement->site)};
	}
	judgement->check_count = count;
	return true;
}

CUresult judge_before(struct call *call)
{
	if (!call->write_count && !call->slot_count)
		return CUDA_SUCCESS;
	/* What is captured does not run now: the graph is judged when it is launched. */
	if (capture_is_running(call->stream)) {
		call->write_count = 0;
		forget_slots(call);
		return CUDA_SUCCESS;
	}
	hook_count(COUNT_CHECKED);
	call->judgement = find_hits(call);
	if (!call->judgement)
		return CUDA_SUCCESS;
	call->judgement->outer = outer_call;
	site_capture(&call->judgement->site, call->caller);
	CUresult result = call->judgement->hit_count ? decide(call) : CUDA_SUCCESS;
	if (result == CUDA_SUCCESS) {
		if (!find_checks(call))
			hook_count(COUNT_UNJUDGED);
		verify_before(call);
	}
	if (result != CUDA_SUCCESS)
		drop(call);
	return result;
}

/* The driver took the call: record what was written by contract, and let the baselines move on. */
static void record_hits(const struct call *call)
{
	struct judgement *judgement = call->judgement;
	struct moved moved = {.count = 0};
	for (size_t i = 0; i < judgement->hit_count; i++) {
		struct hit *hit = &judgement->hits[i];
		struct report_event event = hit_event(call, hit);
		if (!hit->permitted)
			emit(&event, hit->range, ACTION_LOGGED, CUDA_SUCCESS);
		moved_add(&moved, hit->range, call->stream);
	}
	moved_flush(&moved, call->stream);
}

/* A write that could not be judged, for want of memory, has been counted. What it wrote must not be laid at the door of a later kernel. */
static void refresh_unjudged(const struct call *call)
{
	uint64_t start, end;
	for (size_t i = 0; i < call->write_count; i++) {
		struct range *found[16];
		if (!extent_bounds(&call->writes[i].extent, &start, &end))
			continue;
		size_t count = registry_overlaps(protect_ranges(), start, end, found, 16);
		count = count < 16 ? count : 16;
		verify_refresh(found, count, call->stream);
		for (size_t k = 0; k < count; k++)
			range_put(found[k]);
	}
}

CUresult judge_after(struct call *call, CUresult result)
{
	bool checked = false;
	if (call->after)
		call->after(call, result);
	if (call->judgement && result == CUDA_SUCCESS) {
		record_hits(call);
		checked = verify_slots(call);
	} else if (result == CUDA_SUCCESS) {
		refresh_unjudged(call);
	}
	drop(call);
	call_end(call);
	if (checked && options_get()->wait_ms)
		verify_drain(options_get()->wait_ms);
	else
		verify_poll();
	/* What another thread is about to end the process for must not be overtaken, by a synchronisation above all. */
	if (options_get()->mode == MODE_STRICT)
		verify_wait_told(TOLD_WAIT_MS);
	return result;
}

void judge_finding(const struct verify_finding *finding)
{
	const struct verify_writer *writer = finding->writer;
	bool strict = options_get()->mode == MODE_STRICT && !finding->inconclusive;
	size_t count = writer->candidate_count + finding->other_count;
	struct report_kernel *candidates = count ? malloc(count * sizeof *candidates) : NULL;
	size_t used = 0;
	for (size_t i = 0; candidates && i < writer->candidate_count; i++)
		candidates[used++] = writer->candidates[i];
	for (size_t i = 0; candidates && i < finding->other_count; i++)
		if (finding->others[i].kernel.name)
			candidates[used++] = finding->others[i].kernel;
	struct report_event event = {.kind = finding->inconclusive ? REPORT_INCONCLUSIVE : REPORT_VIOLATION,
	                             .evidence = EVIDENCE_CHANGED,
	                             .api = writer->api,
	                             .outer_api = writer->outer_api,
	                             .outer_note = writer->outer_note,
	                             .written_start = finding->written_start,
	                             .written_end = finding->written_end,
	                             .written_bytes = finding->exact ? finding->written_bytes
	                                                             : finding->written_end - finding->written_start,
	                             .written_exact = finding->exact,
	                             .kernel = writer->kernel.name ? &writer->kernel : NULL,
	                             .candidates = candidates,
	                             .candidate_count = used,
	                             .unverified_launches = finding->unverified_launches + writer->launches_before,
	                             .stream = writer->stream,
	                             .graph = writer->graph,
	                             .site = &writer->site};
	bool recorded = emit(&event, finding->range, strict ? ACTION_STOPPED : ACTION_LOGGED, CUDA_SUCCESS);
	free(candidates);
	if (recorded && strict)
		lifecycle_stop();
}

bool judge_library_write(const char *api, const char *note, uint64_t start, uint64_t bytes, void *caller)
{
	struct registry *ranges = protect_ranges();
	enum options_mode mode = options_get()->mode;
	struct range *found[64];
	struct site site;
	bool refuse = false;
	if (hook_idle() || mode == MODE_LOG || !registry_in_bounds(ranges, start, start + bytes))
		return false;
	size_t count = registry_overlaps(ranges, start, start + bytes, found, 64);
	count = count < 64 ? count : 64;
	if (count)
		site_capture(&site, caller);
	for (size_t i = 0; i < count; i++) {
		struct range *range = found[i];
		struct report_event event = {.kind = REPORT_VIOLATION,
		                             .evidence = EVIDENCE_WRITTEN,
		                             .api = api,
		                             .outer_api = api,
		                             .outer_note = note,
		                             .written_start = start > range->start ? start : range->start,
		                             .written_end = start + bytes < range->end ? start + bytes : range->end,
		                             .written_exact = true,
		                             .site = &site};
		if (!atomic_load_explicit(&range->ending, memory_order_relaxed) && !owned(range, &site))
			refuse |= emit(&event, range, mode == MODE_STRICT ? ACTION_STOPPED : ACTION_DENIED,
			               CUDA_ERROR_NOT_PERMITTED);
		range_put(range);
	}
	if (refuse && mode == MODE_STRICT)
		lifecycle_stop();
	return refuse;
}
