#include "shim/verdict/fault.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

#include "shim/effects/capture.h"
#include "shim/hook_state.h"
#include "shim/verdict/adrift.h"
#include "shim/verdict/judge_internal.h"
#include "shim/verdict/lifecycle.h"
#include "shim/verdict/options.h"
#include "shim/verdict/protect.h"

#define NOTES 512         /* a power of two: launches in flight beyond these are only counted */
#define NOTES_OF_LAUNCH 8 /* slots of one launch */
#define CANDIDATES 64     /* in a record */
#define CONTEXTS 64       /* that faulted */
#define ASKED 16          /* streams that are asked for at a time */
#define ADRIFT_MS 100     /* for a launch whose stream is gone, and nothing tells any more when it ends well */
#define PAUSE_NS 20000

/*
 * One slot of one launch. `turn` is twice the note's number plus two; odd while somebody has it to himself, to write or to read the plain members. Who does not get it
 * goes without.
 */
struct note {
	_Atomic uint64_t turn;
	_Atomic uint64_t ended; /* the turn that is known to have ended well */
	_Atomic(CUcontext) context;
	_Atomic uint64_t stream; /* or what stands for it since it was destroyed */
	_Atomic uint64_t thread; /* CU_STREAM_PER_THREAD is another stream in each */
	uint64_t told;           /* the stream's handle, for the record */
	uint64_t launch;         /* number of the first note of the same launch */
	uint64_t graph;
	registry_handle range;
	struct report_kernel kernel;
	struct outer outer;
};

static struct note *_Atomic notes; /* NOTES of them */
static _Atomic uint64_t noted;
static _Atomic uint64_t settled; /* all notes before this number have ended */
static _Atomic uint64_t blamed; /* what was noted before this number was a candidate of the last fault, or cleared of it */
static _Atomic(CUcontext) faulted[CONTEXTS];

void fault_start(void)
{
	struct note *none = NULL;
	if (atomic_load_explicit(&notes, memory_order_acquire))
		return;
	/* Untouched pages cost nothing. */
	void *made = mmap(NULL, NOTES * sizeof *none, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (made != MAP_FAILED && !atomic_compare_exchange_strong(&notes, &none, made))
		munmap(made, NOTES * sizeof *none);
}

static CUcontext current(void)
{
	CUcontext context = NULL;
	return drv.cuCtxGetCurrent && drv.cuCtxGetCurrent(&context) == CUDA_SUCCESS ? context : NULL;
}

/* Was this slot's value one that faults when it is stored through? */
static bool holds_twin(const struct call_slot *slot)
{
	return slot->twin ||
	       (slot->range->flags & RANGE_TWIN && slot->value >= slot->range->start && slot->value < slot->range->end);
}

/* The same parameter slot is listed for each range that it concerns. */
static bool listed_before(const struct call *call, size_t nth)
{
	for (size_t i = 0; i < nth; i++)
		if (holds_twin(&call->slots[i]) && call->slots[i].function == call->slots[nth].function &&
		    call->slots[i].argument == call->slots[nth].argument &&
		    call->slots[i].offset == call->slots[nth].offset)
			return true;
	return false;
}

static uint64_t turn_of(uint64_t number)
{
	return 2 * (number + 1);
}

static void write_note(const struct call *call, const struct call_slot *slot, CUcontext context, uint64_t *launch)
{
	uint64_t number = atomic_fetch_add(&noted, 1);
	struct note *note = &atomic_load_explicit(&notes, memory_order_relaxed)[number % NOTES];
	uint64_t turn = atomic_load_explicit(&note->turn, memory_order_relaxed);
	/* Somebody is still writing what was here NOTES launches ago: this one goes unnoted. */
	if (turn & 1 || !atomic_compare_exchange_strong(&note->turn, &turn, turn | 1))
		return;
	if (*launch == UINT64_MAX)
		*launch = number;
	atomic_store_explicit(&note->context, context, memory_order_relaxed);
	atomic_store_explicit(&note->stream, address_of(call->stream), memory_order_relaxed);
	atomic_store_explicit(&note->thread, (uint64_t)pthread_self(), memory_order_relaxed);
	note->told = address_of(call->stream);
	note->launch = *launch;
	note->graph = call->graph;
	note->range = slot->range->handle;
	judge_slot_kernel(call, slot, &note->kernel);
	note->outer = call->judgement->outer;
	atomic_store_explicit(&note->turn, turn_of(number), memory_order_release);
}

bool fault_note(const struct call *call)
{
	uint64_t launch = UINT64_MAX;
	CUcontext context = NULL;
	size_t count = 0;
	if (!atomic_load_explicit(&notes, memory_order_acquire) || !call->judgement)
		return false;
	for (size_t i = 0; i < call->slot_count && count < NOTES_OF_LAUNCH; i++) {
		if (!holds_twin(&call->slots[i]) || listed_before(call, i))
			continue;
		if (!count++)
			context = current();
		write_note(call, &call->slots[i], context, &launch);
	}
	return count;
}

uint64_t fault_noted(void)
{
	return atomic_load_explicit(&noted, memory_order_relaxed);
}

static struct note *note_at(uint64_t number)
{
	return &atomic_load_explicit(&notes, memory_order_acquire)[number % NOTES];
}

static bool has_ended(struct note *note, uint64_t number)
{
	uint64_t turn = atomic_load_explicit(&note->turn, memory_order_acquire);
	/* What is overwritten is nobody's any more; what is still written has not ended. */
	return (turn & ~UINT64_C(1)) > turn_of(number) ||
	       atomic_load_explicit(&note->ended, memory_order_relaxed) == turn_of(number);
}

/* Copies note `number` if it is there, in flight, and in this context. */
static bool read_note(uint64_t number, CUcontext context, struct note *ret)
{
	struct note *note = note_at(number);
	uint64_t turn = turn_of(number);
	if (has_ended(note, number) || !atomic_compare_exchange_strong(&note->turn, &turn, turn | 1))
		return false;
	bool wanted = !context || atomic_load_explicit(&note->context, memory_order_relaxed) == context;
	if (wanted) {
		ret->context = note->context;
		ret->stream = note->stream;
		ret->told = note->told;
		ret->thread = note->thread;
		ret->launch = note->launch;
		ret->graph = note->graph;
		ret->range = note->range;
		ret->outer = note->outer;
		ret->kernel = note->kernel;
	}
	atomic_store_explicit(&note->turn, turn_of(number), memory_order_release);
	return wanted;
}

static bool in_stream(const struct note *note, uint64_t stream)
{
	return !stream || (atomic_load_explicit(&note->stream, memory_order_relaxed) == stream &&
	                   (stream != address_of(CU_STREAM_PER_THREAD) ||
	                    atomic_load_explicit(&note->thread, memory_order_relaxed) == (uint64_t)pthread_self()));
}

/* Notes that cannot be in flight any more are not looked at again. */
static void settle(uint64_t upto)
{
	uint64_t from = atomic_load_explicit(&settled, memory_order_relaxed), to = from;
	while (to < upto && (upto - to > NOTES || has_ended(note_at(to), to)))
		to++;
	if (to > from)
		atomic_compare_exchange_strong(&settled, &from, to);
}

/* A stream that was created belongs to one context, whichever is current; the default ones are each context's own. */
static bool was_created(uint64_t stream)
{
	return stream > address_of(CU_STREAM_PER_THREAD);
}

static bool in_context(struct note *note, CUcontext context, uint64_t stream)
{
	return was_created(stream) || atomic_load_explicit(&note->context, memory_order_relaxed) == context;
}

void fault_ended(CUcontext context, uint64_t stream, uint64_t upto)
{
	uint64_t from = atomic_load_explicit(&settled, memory_order_relaxed);
	if (from >= upto || !atomic_load_explicit(&notes, memory_order_acquire))
		return;
	if (!context)
		context = current();
	for (uint64_t number = upto - from > NOTES ? upto - NOTES : from; number < upto; number++) {
		struct note *note = note_at(number);
		if (atomic_load_explicit(&note->turn, memory_order_acquire) == turn_of(number) &&
		    in_context(note, context, stream) && in_stream(note, stream) &&
		    atomic_load_explicit(&note->turn, memory_order_acquire) == turn_of(number))
			atomic_store_explicit(&note->ended, turn_of(number), memory_order_relaxed);
	}
	settle(upto);
}

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
static size_t suspects(uint64_t from, struct note *ret, size_t room)
{
	uint64_t last = fault_noted();
	CUcontext asked = NULL;
	bool answers = false;
	size_t count = 0;
	for (uint64_t number = last; number > from && last - number < NOTES && count < room; number--) {
		if (!read_note(number - 1, NULL, &ret[count]) || !ret[count].context || has_faulted(ret[count].context))
			continue;
		if (ret[count].context != asked) {
			asked = ret[count].context;
			answers = answers_fault(asked);
		}
		count += answers;
	}
	return count;
}

static bool same_range(const struct note *found, size_t count)
{
	for (size_t i = 1; i < count; i++)
		if (found[i].range != found[0].range)
			return false;
	return true;
}

static bool same_launch(const struct note *found, size_t count)
{
	for (size_t i = 1; i < count; i++)
		if (found[i].launch != found[0].launch)
			return false;
	return true;
}

static void record(const char *api, CUresult result, const struct note *found, size_t count)
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
	                             .outer_api = certain ? found[0].outer.api : NULL,
	                             .outer_note = certain ? found[0].outer.note : NULL,
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
	struct note *found = malloc(CANDIDATES * sizeof *found);
	size_t count = found ? suspects(from, found, CANDIDATES) : 0;
	if (count && atomic_compare_exchange_strong(&blamed, &from, last)) {
		for (size_t i = 0; i < count; i++)
			remember_fault(found[i].context);
		record(api, result, found, count);
	}
	free(found);
}

void fault_seen(const struct call *call, CUresult result)
{
	explain(call->entry->name, result);
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

void fault_wait(const struct call *call, uint64_t ms)
{
	uint64_t upto = fault_noted();
	CUresult result = drain(call->stream, now_ms() + ms);
	if (result == CUDA_SUCCESS)
		fault_ended(NULL, address_of(call->stream), upto);
	else
		explain(call->entry->name, result);
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

static CUresult drain_note(const struct note *note, uint64_t deadline)
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
	struct note note;
	CUcontext popped;
	for (uint64_t number = last; number > 0 && last - number < NOTES; number--) {
		if (!read_note(number - 1, only, &note) || !note.context ||
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

static void tell_adrift(CUcontext context, uint64_t stream, CUresult result, const char *api)
{
	if (result == CUDA_SUCCESS)
		fault_ended(context, stream, fault_noted());
	else
		explain(api, result);
}

/* The newest note that is in flight in this stream, which was created. False: there is none. */
static bool newest_in(uint64_t stream, struct note *ret)
{
	uint64_t last = fault_noted();
	for (uint64_t number = last; number > 0 && last - number < NOTES; number--)
		if (atomic_load_explicit(&note_at(number - 1)->stream, memory_order_relaxed) == stream &&
		    read_note(number - 1, NULL, ret) && ret->stream == stream)
			return true;
	return false;
}

/* From now on the notes of a stream are those of what stands for it: its handle may come again. */
static void rename_stream(uint64_t stream, uint64_t name)
{
	uint64_t last = fault_noted();
	for (uint64_t number = last; number > 0 && last - number < NOTES; number--) {
		uint64_t expected = stream;
		uint64_t turn = atomic_load_explicit(&note_at(number - 1)->turn, memory_order_acquire);
		if ((turn & ~UINT64_C(1)) == turn_of(number - 1))
			atomic_compare_exchange_strong(&note_at(number - 1)->stream, &expected, name);
	}
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
	struct note note;
	if (!fault_noted())
		return;
	adrift_look(tell_adrift, api);
	if (!was_created(address_of(stream)) || !newest_in(address_of(stream), &note))
		return;
	uint64_t upto = fault_noted();
	CUresult result = drain(stream, 0);
	if (result == CUDA_SUCCESS)
		fault_ended(note.context, note.stream, upto);
	else if (is_fault(result))
		explain(api, result);
	else /* any other answer than "not ready": it captures, and takes no event */
		rename_stream(address_of(stream), keep(result == CUDA_ERROR_NOT_READY ? stream : NULL, note.context));
}

/* One question about a stream with launches in flight. Not about another thread's own one: no call names it. */
static void ask(const struct note *note, uint64_t upto, const char *api)
{
	CUcontext popped;
	if (adrift_is(note->stream) || !in_stream(note, note->stream) ||
	    drv.cuCtxPushCurrent_v2(note->context) != CUDA_SUCCESS)
		return;
	CUresult result = drain((CUstream)(uintptr_t)note->stream, 0);
	if (result == CUDA_SUCCESS)
		fault_ended(note->context, note->stream, upto);
	else
		explain(api, result);
	drv.cuCtxPopCurrent_v2(&popped);
}

void fault_look_around(const char *api)
{
	uint64_t last = fault_noted(), from = atomic_load_explicit(&settled, memory_order_relaxed), asked[ASKED];
	size_t count = 0;
	struct note note;
	if (from >= last || capture_anywhere())
		return;
	adrift_look(tell_adrift, api);
	for (uint64_t number = last; number > from && last - number < NOTES && count < ASKED; number--) {
		uint64_t stream = atomic_load_explicit(&note_at(number - 1)->stream, memory_order_relaxed);
		size_t known = 0;
		while (known < count && asked[known] != stream)
			known++;
		if (known < count || !read_note(number - 1, NULL, &note) || !note.context)
			continue;
		asked[count++] = note.stream;
		ask(&note, last, api);
	}
	settle(last);
}

void fault_postfork_child(void)
{
	adrift_postfork_child();
	atomic_store(&blamed, 0);
	atomic_store(&noted, 0);
	atomic_store(&settled, 0);
}
