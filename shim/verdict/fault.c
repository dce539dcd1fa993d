#include "shim/verdict/fault.h"

#include <stdlib.h>
#include <time.h>

#include "shim/effects/capture.h"
#include "shim/hook_state.h"
#include "shim/verdict/adrift.h"
#include "shim/verdict/fault_notes.h"
#include "shim/verdict/judge_internal.h"
#include "shim/verdict/lifecycle.h"
#include "shim/verdict/options.h"
#include "shim/verdict/protect.h"

#define CANDIDATES 64 /* in a record */
#define CONTEXTS 64   /* that faulted */
#define ASKED 16      /* streams that are asked about at a time, and threads that ask */
#define ADRIFT_MS 100 /* for a launch whose stream is gone, and nothing tells any more when it ends well */
#define PAUSE_NS 20000

static _Atomic uint64_t blamed; /* what was noted before this number was a candidate of the last fault, or cleared of it */
static _Atomic(CUcontext) faulted[CONTEXTS];

static bool has_faulted(CUcontext context)
{
	for (size_t i = 0; i < CONTEXTS; i++)
		if (atomic_load(&faulted[i]) == context)
			return true;
	return false;
}

static void remember_fault(CUcontext context)
{
	for (size_t i = 0; i < CONTEXTS && !has_faulted(context); i++) {
		CUcontext none = NULL;
		atomic_compare_exchange_strong(&faulted[i], &none, context);
	}
}

static bool is_fault(CUresult result)
{
	return result == CUDA_ERROR_ILLEGAL_ADDRESS || result == CUDA_ERROR_LAUNCH_FAILED;
}

/* An error stays, so that any call there answers it. */
static bool answers_fault(CUcontext context)
{
	size_t left, total;
	CUcontext popped;
	if (!drv.cuMemGetInfo_v2 || drv.cuCtxPushCurrent_v2(context) != CUDA_SUCCESS)
		return false;
	CUresult result = drv.cuMemGetInfo_v2(&left, &total);
	drv.cuCtxPopCurrent_v2(&popped);
	return is_fault(result);
}

/*
 * What is in flight where an error is answered, newest first. With most drivers one context's error is every context's; with others a call can answer that of another
 * context than the current one, whose stream or event it was for. So each context is asked.
 */
static size_t suspects(uint64_t from, struct note_told *ret, size_t room)
{
	uint64_t last = fault_noted();
	CUcontext asked = NULL;
	bool answers = false;
	size_t count = 0;
	for (uint64_t number = last; number > from && last - number < NOTES && count < room; number--) {
		if (!note_read(number - 1, NULL, &ret[count]) || !ret[count].context || has_faulted(ret[count].context))
			continue;
		if (ret[count].context != asked) {
			asked = ret[count].context;
			answers = answers_fault(asked);
		}
		count += answers;
	}
	return count;
}

static bool same_range(const struct note_told *found, size_t count)
{
	for (size_t i = 1; i < count; i++)
		if (found[i].range != found[0].range)
			return false;
	return true;
}

static bool same_launch(const struct note_told *found, size_t count)
{
	for (size_t i = 1; i < count; i++)
		if (found[i].launch != found[0].launch)
			return false;
	return true;
}

static void record(const char *api, CUresult result, const struct note_told *found, size_t count)
{
	struct report_kernel *kernels = malloc(count * sizeof *kernels);
	struct range *range = same_range(found, count) ? registry_find(protect_ranges(), found[0].range) : NULL;
	bool strict = options_get()->mode == MODE_STRICT, certain = same_launch(found, count) && !found[0].graph;
	struct report_kernel culprit = found[0].kernel;
	if (count > 1) { /* which of its slots it was is not known */
		culprit.argument = -1;
		culprit.code = (struct report_code){0};
	}
	for (size_t i = 0; kernels && i < count; i++)
		kernels[i] = found[i].kernel;
	/* A single slot needs no list of candidates. */
	bool listed = kernels && !(certain && count == 1);
	struct report_event event = {.kind = REPORT_VIOLATION,
	                             .evidence = EVIDENCE_WRITTEN,
	                             .fault = api,
	                             .api = certain ? culprit.api : NULL,
	                             .outer_api = certain ? found[0].outer_api : NULL,
	                             .outer_note = certain ? found[0].outer_note : NULL,
	                             .kernel = certain ? &culprit : NULL,
	                             .candidates = listed ? kernels : NULL,
	                             .candidate_count = listed ? count : 0,
	                             .stream = found[0].told,
	                             .graph = certain ? 0 : found[0].graph,
	                             .site = certain ? &culprit.site : NULL};
	bool told = judge_emit(&event, range, strict ? ACTION_STOPPED : ACTION_DENIED, result);
	free(kernels);
	range_put(range);
	if (told && strict)
		lifecycle_stop();
}

/*
 * One fault is one violation, however many calls, threads and contexts answer it. What is noted after it was launched after it, so there is life after it, and the next
 * fault is another one.
 */
static void explain(const char *api, CUresult result)
{
	uint64_t from = atomic_load(&blamed), last = fault_noted();
	if (!is_fault(result) || last <= from)
		return;
	struct note_told *found = malloc(CANDIDATES * sizeof *found);
	size_t count = found ? suspects(from, found, CANDIDATES) : 0;
	if (count && atomic_compare_exchange_strong(&blamed, &from, last)) {
		for (size_t i = 0; i < count; i++)
			remember_fault(found[i].context);
		record(api, result, found, count);
	}
	free(found);
}

void fault_seen(const char *api, CUresult result)
{
	explain(api, result);
}

static void nap(void)
{
	const struct timespec pause = {0, PAUSE_NS};
	nanosleep(&pause, NULL);
}

static uint64_t now_ms(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* Waits for a stream of the current context until `deadline`; its error when it has one. */
static CUresult drain(CUstream stream, uint64_t deadline)
{
	CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
	CUresult result = CUDA_ERROR_NOT_READY;
	if (!drv.cuStreamQuery || !drv.cuThreadExchangeStreamCaptureMode)
		return CUDA_SUCCESS;
	hook_thread.depth++;
	drv.cuThreadExchangeStreamCaptureMode(&mode);
	while ((result = drv.cuStreamQuery(stream)) == CUDA_ERROR_NOT_READY && now_ms() < deadline)
		nap();
	drv.cuThreadExchangeStreamCaptureMode(&mode);
	hook_thread.depth--;
	return result;
}

void fault_wait(CUstream stream, const char *api, uint64_t ms)
{
	uint64_t upto = fault_noted();
	CUresult result = drain(stream, now_ms() + ms);
	if (result == CUDA_SUCCESS)
		fault_ended(NULL, address_of(stream), upto);
	else
		explain(api, result);
}

/* A launch in a stream that is gone. Where nothing can tell how it ends it can only be waited for: an error that is there shows in any stream. */
static CUresult drain_adrift(uint64_t stream, uint64_t deadline)
{
	CUresult told;
	while ((told = adrift_query(stream)) == CUDA_ERROR_NOT_READY && now_ms() < deadline)
		nap();
	if (told != CUDA_ERROR_NOT_FOUND)
		return told;
	uint64_t until = now_ms() + ADRIFT_MS < deadline ? now_ms() + ADRIFT_MS : deadline;
	CUresult result;
	while ((result = drain(CU_STREAM_LEGACY, until)) == CUDA_SUCCESS && now_ms() < until)
		nap();
	return result;
}

static CUresult drain_note(const struct note_told *note, uint64_t deadline)
{
	if (adrift_is(note->stream))
		return drain_adrift(note->stream, deadline);
	/* Another thread's own stream cannot be asked for. */
	return drain(note->stream == address_of(CU_STREAM_PER_THREAD) ? CU_STREAM_LEGACY
	                                                              : (CUstream)(uintptr_t)note->stream,
	             deadline);
}

/* How what is in flight ends, in one context or (NULL) in all. */
static void look(CUcontext only, const char *api, uint64_t ms)
{
	uint64_t deadline = now_ms() + ms, last = fault_noted();
	struct note_told note;
	CUcontext popped;
	for (uint64_t number = last; number > 0 && last - number < NOTES; number--) {
		if (!note_read(number - 1, only, &note) || !note.context ||
		    drv.cuCtxPushCurrent_v2(note.context) != CUDA_SUCCESS)
			continue;
		CUresult result = drain_note(&note, deadline);
		if (result == CUDA_SUCCESS)
			fault_ended(note.context, note.stream, last);
		else
			explain(api, result);
		drv.cuCtxPopCurrent_v2(&popped);
	}
}

void fault_look_at_exit(uint64_t ms)
{
	look(NULL, "cuconst_at_exit", ms);
}

void fault_context_ends(CUcontext context, const char *api, uint64_t ms)
{
	if (context && fault_noted())
		look(context, api, ms);
}

void fault_look_everywhere(const char *api)
{
	if (fault_noted())
		look(NULL, api, 0);
}

void fault_context_ended(CUcontext context)
{
	if (!context || !fault_noted())
		return;
	fault_ended(context, 0, fault_noted());
	adrift_context_ended(context);
	for (size_t i = 0; i < CONTEXTS; i++) {
		CUcontext expected = context;
		atomic_compare_exchange_strong(&faulted[i], &expected, NULL);
	}
}

/* Streams that somebody is asking about, plus one; 0: free. */
static _Atomic uint64_t asking[ASKED];

/*
 * A question takes microseconds, and waits for nothing. Each place is not just read but written as it was: who takes it afterwards then sees what was told of
 * the stream's notes before, and who took it earlier is seen here.
 */
static void wait_until_nobody_asks(uint64_t stream)
{
	for (size_t i = 0; i < ASKED; i++)
		while (atomic_fetch_add(&asking[i], 0) == stream + 1)
			nap();
}

static void tell_adrift(CUcontext context, uint64_t stream, CUresult result, const char *api)
{
	if (result == CUDA_SUCCESS)
		fault_ended(context, stream, fault_noted());
	else
		explain(api, result);
}

static uint64_t keep(CUstream stream, CUcontext context)
{
	CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
	CUcontext popped;
	if (drv.cuCtxPushCurrent_v2(context) != CUDA_SUCCESS)
		return adrift_keep(NULL, context);
	hook_thread.depth++;
	drv.cuThreadExchangeStreamCaptureMode(&mode);
	uint64_t name = adrift_keep(stream, context);
	drv.cuThreadExchangeStreamCaptureMode(&mode);
	hook_thread.depth--;
	drv.cuCtxPopCurrent_v2(&popped);
	return name;
}

void fault_stream_ends(CUstream stream, const char *api)
{
	CUcontext context = NULL;
	if (!fault_noted())
		return;
	adrift_look(tell_adrift, api);
	if (!note_stream_was_created(address_of(stream)))
		return;
	uint64_t upto = fault_noted();
	CUresult result = notes_in_flight(address_of(stream), &context) ? drain(stream, 0) : CUDA_SUCCESS;
	if (result == CUDA_SUCCESS)
		fault_ended(context, address_of(stream), upto);
	else
		explain(api, result);
	/* With any other answer than "not ready" it captures, or is lost, and takes no event. */
	if (result != CUDA_SUCCESS)
		notes_rename_stream(address_of(stream), keep(result == CUDA_ERROR_NOT_READY ? stream : NULL, context));
	wait_until_nobody_asks(address_of(stream));
}

/* One question about a stream with launches in flight, which nobody destroys meanwhile. */
static void ask(uint64_t number, CUcontext here, uint64_t stream, uint64_t upto, const char *api)
{
	_Atomic uint64_t *place = NULL;
	for (size_t i = 0; i < ASKED && !place; i++) {
		uint64_t none = 0;
		if (atomic_compare_exchange_strong(&asking[i], &none, stream + 1))
			place = &asking[i];
	}
	if (!place)
		return;
	/* Who destroys the stream renames it in its notes first, and waits for who is asking then. */
	bool there = !note_has_ended(note_at(number), number) && atomic_load(&note_at(number)->stream) == stream;
	CUresult result = there ? drain((CUstream)(uintptr_t)stream, 0) : CUDA_ERROR_NOT_READY;
	atomic_store(place, 0);
	if (result == CUDA_SUCCESS)
		fault_ended(here, stream, upto);
	else
		explain(api, result);
}

/* Streams of the current context, which the caller is using, so that it lives. Not another thread's own one: no call names it. */
void fault_look_around(const char *api)
{
	uint64_t last = fault_noted(), from = notes_settled(), asked[ASKED];
	size_t count = 0;
	if (from >= last || capture_anywhere())
		return;
	adrift_look(tell_adrift, api);
	CUcontext here = note_context_now();
	for (uint64_t number = last; number > from && last - number < NOTES && count < ASKED; number--) {
		struct note *note = note_at(number - 1);
		uint64_t stream = atomic_load_explicit(&note->stream, memory_order_relaxed);
		size_t known = 0;
		while (known < count && asked[known] != stream)
			known++;
		if (known < count || adrift_is(stream) || note_has_ended(note, number - 1) ||
		    !note_in_stream(note, stream) || atomic_load_explicit(&note->context, memory_order_relaxed) != here)
			continue;
		asked[count++] = stream;
		ask(number - 1, here, stream, last, api);
	}
	notes_settle(last);
}

void fault_postfork_child(void)
{
	adrift_postfork_child();
	for (size_t i = 0; i < ASKED; i++)
		atomic_store(&asking[i], 0);
	atomic_store(&blamed, 0);
	notes_reset();
}
