#include "shim/verdict/fault.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

#include "shim/hook_state.h"
#include "shim/verdict/judge_internal.h"
#include "shim/verdict/lifecycle.h"
#include "shim/verdict/options.h"
#include "shim/verdict/protect.h"

#define NOTES 512         /* a power of two: launches in flight beyond these are only counted */
#define NOTES_OF_LAUNCH 8 /* slots of one launch */
#define CANDIDATES 64     /* in a record */
#define CONTEXTS 64       /* that faulted */
#define ADRIFT_MS 100     /* for a launch whose stream is gone: nothing tells any more when it ends well */
#define PAUSE_NS 20000

/* One slot of one launch. `turn` tells readers whether what they read is whole: odd while it is written, else twice the number of the note. */
struct note {
	_Atomic uint64_t turn;
	_Atomic bool ended;
	_Atomic bool adrift; /* its stream was destroyed before it ended */
	CUcontext context;
	uint64_t stream;
	pthread_t thread; /* CU_STREAM_PER_THREAD is another stream in each */
	uint64_t launch;  /* number of the first note of the same launch */
	uint64_t graph;
	registry_handle range;
	struct report_kernel kernel;
	struct outer outer;
};

static struct note *_Atomic notes; /* NOTES of them */
static _Atomic uint64_t noted;
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
	note->context = context;
	note->stream = address_of(call->stream);
	note->thread = pthread_self();
	note->launch = *launch;
	note->graph = call->graph;
	note->range = slot->range->handle;
	judge_slot_kernel(call, slot, &note->kernel);
	note->outer = call->judgement->outer;
	atomic_store_explicit(&note->ended, false, memory_order_relaxed);
	atomic_store_explicit(&note->adrift, false, memory_order_relaxed);
	atomic_store_explicit(&note->turn, 2 * (number + 1), memory_order_release);
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

/* Copies note `number` if it is still there and whole. */
static bool read_note(uint64_t number, struct note *ret)
{
	struct note *note = &atomic_load_explicit(&notes, memory_order_acquire)[number % NOTES];
	uint64_t turn = atomic_load_explicit(&note->turn, memory_order_acquire);
	if (turn != 2 * (number + 1))
		return false;
	ret->ended = atomic_load_explicit(&note->ended, memory_order_relaxed);
	ret->adrift = atomic_load_explicit(&note->adrift, memory_order_relaxed);
	ret->context = note->context;
	ret->stream = note->stream;
	ret->thread = note->thread;
	ret->launch = note->launch;
	ret->graph = note->graph;
	ret->range = note->range;
	ret->kernel = note->kernel;
	ret->outer = note->outer;
	atomic_thread_fence(memory_order_acquire);
	return atomic_load_explicit(&note->turn, memory_order_relaxed) == turn;
}

static bool in_stream(const struct note *note, uint64_t stream)
{
	return !stream || (note->stream == stream &&
	                   (stream != address_of(CU_STREAM_PER_THREAD) || pthread_equal(note->thread, pthread_self())));
}

void fault_ended(CUcontext context, uint64_t stream, uint64_t upto)
{
	struct note *all = atomic_load_explicit(&notes, memory_order_acquire);
	if (!all || !upto)
		return;
	if (!context)
		context = current();
	for (uint64_t number = upto > NOTES ? upto - NOTES : 0; number < upto; number++) {
		struct note *note = &all[number % NOTES];
		/* A note that is overwritten meanwhile has a later number, and is left alone. */
		uint64_t turn = atomic_load_explicit(&note->turn, memory_order_acquire);
		if (turn == 2 * (number + 1) && note->context == context && in_stream(note, stream) &&
		    atomic_load_explicit(&note->turn, memory_order_acquire) == turn)
			atomic_store_explicit(&note->ended, true, memory_order_relaxed);
	}
}

/* What is in flight in a context, newest first. */
static size_t in_flight(CUcontext context, struct note *ret, size_t room)
{
	uint64_t last = fault_noted();
	size_t count = 0;
	for (uint64_t number = last; number > 0 && last - number < NOTES && count < room; number--)
		if (read_note(number - 1, &ret[count]) && !ret[count].ended && ret[count].context == context)
			count++;
	return count;
}

static bool has_faulted(CUcontext context)
{
	for (size_t i = 0; i < CONTEXTS; i++)
		if (atomic_load(&faulted[i]) == context)
			return true;
	return false;
}

/* The first to ask about this context gets true, and every later one false: an error that stays is one violation. */
static bool first_fault(CUcontext context)
{
	for (size_t i = 0; i < CONTEXTS && !has_faulted(context); i++) {
		CUcontext none = NULL;
		if (atomic_compare_exchange_strong(&faulted[i], &none, context))
			return true;
		if (none == context)
			return false;
	}
	return false;
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
	                             .stream = found[0].stream,
	                             .graph = certain ? 0 : found[0].graph,
	                             .site = certain ? &culprit.site : NULL};
	bool told = judge_emit(&event, range, strict ? ACTION_STOPPED : ACTION_DENIED, result);
	free(kernels);
	range_put(range);
	if (told && strict)
		lifecycle_stop();
}

static void fault_in(CUcontext context, const char *api, CUresult result)
{
	if ((result != CUDA_ERROR_ILLEGAL_ADDRESS && result != CUDA_ERROR_LAUNCH_FAILED) || !context ||
	    !first_fault(context))
		return;
	struct note *found = malloc(CANDIDATES * sizeof *found);
	size_t count = found ? in_flight(context, found, CANDIDATES) : 0;
	if (count)
		record(api, result, found, count);
	free(found);
}

void fault_seen(const struct call *call, CUresult result)
{
	if (fault_noted())
		fault_in(current(), call->entry->name, result);
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
		fault_in(current(), call->entry->name, result);
}

/* A launch in a stream that is gone can only be waited for: an error that is there shows in any stream. */
static CUresult drain_adrift(uint64_t deadline)
{
	uint64_t until = now_ms() + ADRIFT_MS < deadline ? now_ms() + ADRIFT_MS : deadline;
	CUresult result;
	while ((result = drain(CU_STREAM_LEGACY, until)) == CUDA_SUCCESS && now_ms() < until)
		nap();
	return result;
}

static CUresult drain_note(const struct note *note, uint64_t deadline)
{
	if (note->adrift)
		return drain_adrift(deadline);
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
		if (!read_note(number - 1, &note) || note.ended || !note.context || (only && note.context != only) ||
		    drv.cuCtxPushCurrent_v2(note.context) != CUDA_SUCCESS)
			continue;
		CUresult result = drain_note(&note, deadline);
		if (result == CUDA_SUCCESS)
			fault_ended(note.context, note.stream, last);
		else
			fault_in(note.context, api, result);
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

void fault_context_ended(CUcontext context)
{
	if (!context || !fault_noted())
		return;
	fault_ended(context, 0, fault_noted());
	for (size_t i = 0; i < CONTEXTS; i++) {
		CUcontext expected = context;
		atomic_compare_exchange_strong(&faulted[i], &expected, NULL);
	}
}

/* The numbers of notes tell whether a note is still the one that was read. */
static void set_adrift(uint64_t number)
{
	struct note *note = &atomic_load_explicit(&notes, memory_order_acquire)[number % NOTES];
	if (atomic_load_explicit(&note->turn, memory_order_acquire) == 2 * (number + 1))
		atomic_store_explicit(&note->adrift, true, memory_order_relaxed);
}

void fault_stream_ends(CUstream stream, const char *api)
{
	uint64_t last = fault_noted();
	CUresult result = CUDA_ERROR_NOT_FOUND; /* not asked for yet */
	struct note note;
	for (uint64_t number = last; stream && number > 0 && last - number < NOTES; number--) {
		if (!read_note(number - 1, &note) || note.ended || note.stream != address_of(stream))
			continue;
		if (result == CUDA_ERROR_NOT_FOUND)
			result = drain(stream, 0);
		if (result == CUDA_SUCCESS) {
			fault_ended(note.context, note.stream, last);
			continue;
		}
		fault_in(note.context, api, result);
		set_adrift(number - 1);
	}
}

void fault_postfork_child(void)
{
	atomic_store(&noted, 0);
}
