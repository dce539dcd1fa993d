#include "shim/verdict/judge_internal.h"

#include <fnmatch.h>
#include <stdlib.h>

#include "shim/effects/capture.h"
#include "shim/hook_state.h"
#include "shim/twins/serve.h"
#include "shim/verdict/allocation.h"
#include "shim/verdict/fault.h"
#include "shim/verdict/lifecycle.h"
#include "shim/verdict/options.h"
#include "shim/verdict/protect.h"
#include "shim/verdict/swap.h"

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

bool judge_owned(const struct range *range, const struct site *site)
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
	                             .inside_outer = judgement->outer.api != NULL,
	                             .earlier_launches = judgement->outer.launches,
	                             .site = &judgement->site};
}

bool judge_emit(struct report_event *event, struct range *range, enum report_action action, CUresult result)
{
	event->range = range;
	event->device = range ? range_device(range) : -1;
	event->action = action;
	event->result = (int)result;
	if (!report_emit(event))
		return false;
	if (event->kind == REPORT_VIOLATION) {
		atomic_fetch_add(&violations, 1);
		if (range)
			atomic_fetch_add(&range->violations, 1);
		if (action == ACTION_DENIED)
			atomic_fetch_add(&denied, 1);
	}
	return true;
}

static void join(struct hit *hit, uint64_t start, uint64_t end)
{
	hit->start = start < hit->start ? start : hit->start;
	hit->end = end > hit->end ? end : hit->end;
	hit->bytes = 0; /* the writes may overlap each other */
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
		/* Of two kinds what certainly happens says it all. */
		if (hit->maybe && !write->maybe)
			*hit = (struct hit){range, start, end, bytes, write->node, false, false};
		else if (hit->maybe == write->maybe)
			join(hit, start, end);
		range_put(range);
		return;
	}
	judgement->hits[judgement->hit_count++] =
		(struct hit){range, start, end, bytes, write->node, false, write->maybe};
}

/* How many ranges the call's writes overlap. Those that another thread adds after this do not fit, and came after this call anyway. */
static size_t count_hits(const struct call *call)
{
	uint64_t start, end;
	size_t count = 0;
	for (size_t i = 0; i < call->write_count; i++)
		if (extent_bounds(&call->writes[i].extent, &start, &end))
			count += registry_overlaps(protect_ranges(), start, end, NULL, 0);
	return count;
}

static void find_hits(const struct call *call, struct judgement *judgement, struct range **found, size_t room)
{
	uint64_t start, end;
	for (size_t i = 0, used = 0; i < call->write_count; i++) {
		if (!extent_bounds(&call->writes[i].extent, &start, &end))
			continue;
		size_t count = registry_overlaps(protect_ranges(), start, end, found, room - used);
		count = count < room - used ? count : room - used;
		for (size_t k = 0; k < count; k++)
			add_hit(judgement, found[k], &call->writes[i]);
		used += count;
	}
}

/* With all ranges that the call's writes overlap. NULL: no memory (then counted). */
static struct judgement *make_judgement(struct call *call)
{
	_Static_assert(sizeof(struct judgement) <= CALL_INLINE_JUDGEMENT, "a launch needs no memory for its judgement");
	struct judgement *judgement = (struct judgement *)(void *)call->inline_judgement;
	size_t room = call->write_count ? count_hits(call) : 0;
	struct range **found = NULL;
	if (room) {
		judgement = malloc(sizeof *judgement + room * sizeof judgement->hits[0]);
		found = malloc(room * sizeof(struct range *));
		if (!judgement || !found) {
			hook_count(COUNT_UNJUDGED);
			free(judgement);
			free(found);
			return NULL;
		}
	}
	judgement->checks = NULL;
	judgement->check_count = judgement->hit_count = 0;
	if (room)
		find_hits(call, judgement, found, room);
	free(found);
	return judgement;
}

static __attribute__((noinline)) void drop(struct call *call)
{
	struct judgement *judgement = call->judgement;
	for (size_t i = 0; judgement && i < judgement->hit_count; i++)
		range_put(judgement->hits[i].range);
	if (judgement && judgement->checks)
		free(judgement->checks);
	if (judgement != (void *)call->inline_judgement)
		free(judgement);
	call->judgement = NULL;
}

/*
 * The driver refuses copies and sets into a twin by itself, but takes a memory operation into one, and then the context dies. It is refused in every
 * mode. In a graph it must be one: a node of the others was refused when it was added.
 */
static bool would_die(const struct call *call, const struct hit *hit)
{
	return hit->range->flags & RANGE_TWIN && (call->memop || call->graph);
}

/*
 * A call that runs out of memory is the program's own error, and no violation: the driver refuses copies and sets before
 * they write anything. The few others that it would begin, and lose the context in, get the same answer here.
 */
static bool leaves_memory(const struct call *call)
{
	struct allocation allocation;
	uint64_t start, end;
	CUresult result;
	for (size_t i = 0; i < call->write_count && !call->memop && !call->graph; i++)
		if (extent_bounds(&call->writes[i].extent, &start, &end) &&
		    allocation_of(start, end, &allocation, &result) == CUCONST_ERROR_OUT_OF_RANGE)
			return true;
	return false;
}

/* deny: refuses when a hit is neither its owner's nor suppressed. strict: the end, where it is certain to happen. log: go on. */
static CUresult decide(struct call *call)
{
	struct judgement *judgement = call->judgement;
	enum options_mode mode = options_get()->mode;
	bool refuse = false;
	for (size_t i = 0; i < judgement->hit_count; i++) {
		struct hit *hit = &judgement->hits[i];
		struct report_event event = hit_event(call, hit);
		atomic_fetch_add_explicit(&hit->range->checks, 1, memory_order_relaxed);
		hit->permitted = judge_owned(hit->range, &judgement->site);
		if (hit->permitted ||
		    ((mode == MODE_LOG || (mode == MODE_STRICT && hit->maybe)) && !would_die(call, hit)))
			continue;
		if (!refuse && leaves_memory(call))
			return CUDA_ERROR_INVALID_VALUE;
		if (mode == MODE_STRICT)
			refuse |= judge_emit(&event, hit->range, ACTION_STOPPED, CUDA_SUCCESS);
		else
			refuse |= judge_emit(&event, hit->range, ACTION_DENIED, CUDA_ERROR_NOT_PERMITTED);
		hit->permitted = true; /* suppressed, else it does not come to pass */
	}
	if (refuse && mode == MODE_STRICT)
		lifecycle_stop();
	return refuse ? CUDA_ERROR_NOT_PERMITTED : CUDA_SUCCESS;
}

void moved_flush(struct moved *moved, CUstream stream)
{
	verify_refresh(moved->ranges, moved->count, stream);
	moved->count = 0;
}

void moved_add(struct moved *moved, struct range *range, CUstream stream)
{
	if (moved->count == sizeof moved->ranges / sizeof moved->ranges[0])
		moved_flush(moved, stream);
	moved->ranges[moved->count++] = range;
}

static HOOK_HOT void count_verdict(const struct call *call)
{
	hook_count((enum hook_counter)(COUNT_CLEAN + (call->verdict - KERNEL_CLEAN)));
	if (!call->slot_count && !call->write_count)
		hook_count(COUNT_CHECKED);
}

/* What is recorded does not run now: contracts are judged when the graph is launched, and so are kernels that are not to be refused. */
static bool deferred(struct call *call)
{
	size_t kept = 0;
	call->deferred = call->deferred || capture_is_running(call->stream);
	if (!call->deferred)
		return false;
	call->write_count = 0;
	for (size_t i = 0; i < call->slot_count; i++) {
		if (options_get()->mode == MODE_DENY && judge_refusable(&call->slots[i]))
			call->slots[kept++] = call->slots[i];
		else
			range_put(call->slots[i].range);
	}
	call->slot_count = kept;
	return true;
}

/* Something is written, or may be. */
static __attribute__((noinline)) CUresult judge_found(struct call *call)
{
	bool later = deferred(call);
	if (!call->write_count && !call->slot_count)
		return CUDA_SUCCESS;
	hook_count(COUNT_CHECKED);
	call->judgement = make_judgement(call);
	if (!call->judgement)
		return CUDA_SUCCESS;
	call->judgement->outer = outer_now();
	site_capture(&call->judgement->site, call->caller);
	CUresult result = call->judgement->hit_count ? decide(call) : CUDA_SUCCESS;
	if (result == CUDA_SUCCESS && call->slot_count)
		result = judge_refuse_kernels(call);
	if (result != CUDA_SUCCESS || later) {
		drop(call);
		return result;
	}
	call->judgement->look = look_next();
	swap_slots(call);
	if (!judge_find_checks(call))
		hook_count(COUNT_UNJUDGED);
	if (call->judgement->check_count)
		judge_verify_before(call);
	return CUDA_SUCCESS;
}

HOOK_HOT CUresult judge_before(struct call *call)
{
	if (call->refused != CUDA_SUCCESS)
		return call->refused;
	/* The driver's answer for memory that it handed out itself. */
	if (call->overrun)
		return CUDA_ERROR_INVALID_VALUE;
	if (call->concerned && !call->deferred)
		count_verdict(call);
	return call->write_count || call->slot_count ? judge_found(call) : CUDA_SUCCESS;
}

/* The driver took the call: record what was written by contract, and let the baselines move on. */
static __attribute__((noinline)) void record_hits(const struct call *call)
{
	struct judgement *judgement = call->judgement;
	struct moved moved = {.count = 0};
	for (size_t i = 0; i < judgement->hit_count; i++) {
		struct hit *hit = &judgement->hits[i];
		struct report_event event = hit_event(call, hit);
		/* Whether it happened is seen by the bytes. */
		if (hit->maybe && !hit->permitted) {
			judge_verify_maybe(call, hit->range);
			continue;
		}
		if (!hit->permitted)
			judge_emit(&event, hit->range, ACTION_LOGGED, CUDA_SUCCESS);
		moved_add(&moved, hit->range, call->stream);
	}
	moved_flush(&moved, call->stream);
}

/* A write that could not be judged, for want of memory, has been counted. What it wrote must not be laid at the door of a later kernel. */
static HOOK_COLD void refresh_unjudged(const struct call *call)
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

/* Memory that the driver does not know to be synchronous: see serve_synchronous(). */
static CUresult ended(const struct call *call, CUresult result)
{
	return result == CUDA_SUCCESS && call->entry->blocks && serve_synchronous()
	               ? drv.cuStreamSynchronize(call->stream)
	               : result;
}

/* Results of earlier checks. What another thread is about to end the process for must not be overtaken, by a synchronisation above all. */
static void hear(void)
{
	if (options_get()->mode == MODE_STRICT)
		verify_catch_up();
	else
		verify_poll();
}

HOOK_HOT CUresult judge_after(struct call *call, CUresult result)
{
	bool checked = false, suspect = false;
	result = ended(call, result);
	if (result == CUDA_SUCCESS && call->entry->blocks)
		fault_look_around(call->entry->name);
	if (HOOK_UNLIKELY(result != CUDA_SUCCESS))
		fault_seen(call->entry->name, result);
	if (call->after)
		call->after(call, result);
	hook_thread.launches += call->time && result == CUDA_SUCCESS;
	if (call->judgement && result == CUDA_SUCCESS) {
		if (call->judgement->hit_count)
			record_hits(call);
		checked = call->judgement->check_count && judge_verify_slots(call);
		suspect = fault_note(call);
	} else if (result == CUDA_SUCCESS && call->write_count) {
		refresh_unjudged(call);
	}
	if (call->judgement)
		drop(call);
	call_end(call);
	if (suspect && options_get()->wait_ms)
		fault_wait(call->stream, call->entry->name, options_get()->wait_ms);
	if (checked && options_get()->wait_ms)
		verify_drain(options_get()->wait_ms);
	hear();
	return result;
}

HOOK_COLD void judge_again_looks(const char *api, CUresult result)
{
	/* Which asks the driver, as after any call: inside the hook. */
	if (result != CUDA_SUCCESS)
		fault_seen(api, result);
	hook_thread.depth--;
	hear();
}

HOOK_HOT CUresult judge_swapped(enum entry_id entry, const struct memo_twins *twins, CUstream stream, void *caller,
                                CUresult result)
{
	if (HOOK_LIKELY(result == CUDA_SUCCESS))
		fault_note_twins(entry, twins, stream, caller);
	return judge_again(entrypoints[entry].name, result);
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
	bool recorded = judge_emit(&event, finding->range, strict ? ACTION_STOPPED : ACTION_LOGGED, CUDA_SUCCESS);
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
		                             .inside_outer = true,
		                             .site = &site};
		if (!atomic_load_explicit(&range->ending, memory_order_relaxed) && !judge_owned(range, &site))
			refuse |= judge_emit(&event, range, mode == MODE_STRICT ? ACTION_STOPPED : ACTION_DENIED,
			                     CUDA_ERROR_NOT_PERMITTED);
		range_put(range);
	}
	if (refuse && mode == MODE_STRICT)
		lifecycle_stop();
	return refuse;
}
