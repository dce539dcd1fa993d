#include "shim/verdict/fault_notes.h"

#include <stddef.h>
#include <sys/mman.h>

#include "shim/effects/launch_memo.h"
#include "shim/hook_state.h"
#include "shim/hot_page.h"
#include "shim/kernels/slot_verdict.h"
#include "shim/report/site_ring.h"
#include "shim/verdict/fault.h"
#include "shim/verdict/judge_internal.h"
#include "shim/verdict/protect.h"

#define NOTES_OF_LAUNCH 8 /* slots of one launch */
_Static_assert(sizeof(struct note) == 128, "two cache lines");
_Static_assert(SITE_RING_LASTS >= 2 * NOTES, "a note's place lasts as long as the note, whatever the threads in between");

static struct {
	_Atomic(struct note *) notes; /* NOTES of them */
	_Atomic uint64_t noted;
	_Atomic uint64_t settled; /* all notes before this number have ended */
} ring HOOK_DATA __attribute__((aligned(64)));

/* Of those that live: as good as pthread_self(), without a call. */
static inline uint64_t this_thread(void)
{
	return (uintptr_t)&hook_thread;
}

static enum entry_id entry_of(const struct call *call)
{
	return (enum entry_id)(call->entry - entrypoints);
}

static void *mapped(size_t bytes)
{
	void *made = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	return made != MAP_FAILED ? made : NULL;
}

void fault_start(void)
{
	struct note *none = NULL;
	site_ring_start();
	if (atomic_load_explicit(&ring.notes, memory_order_acquire))
		return;
	/* Of two threads that come here at once one has made its own in vain. */
	struct note *made = hot_page_take(NOTES * sizeof *made);
	if (!made)
		made = mapped(NOTES * sizeof *made);
	if (made)
		atomic_compare_exchange_strong(&ring.notes, &none, made);
}

CUcontext note_context_now(void)
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

/* What the slots of a launch share. */
struct launch_notes {
	CUcontext context;
	uint64_t stream, graph, site;
	uint64_t first; /* the number of its first note; UINT64_MAX: none yet */
	const char *outer_api, *outer_note;
	enum entry_id entry;
};

/* What they do not. */
struct slot_note {
	const struct function_info *function;
	const struct kernel_paths *paths;
	uint64_t value;
	registry_handle range;
	int argument;
	uint32_t offset;
	enum kernel_verdict verdict;
	bool beside;
};

static inline void write_note(struct launch_notes *launch, const struct slot_note *slot)
{
	uint64_t number = atomic_fetch_add(&ring.noted, 1);
	atomic_store_explicit(&hook_line.twins_noted, true, memory_order_relaxed);
	struct note *note = &atomic_load_explicit(&ring.notes, memory_order_relaxed)[number % NOTES];
	uint64_t turn = atomic_load_explicit(&note->turn, memory_order_relaxed);
	/* Somebody is still writing what was here NOTES launches ago, or this thread was held up while others noted so many: this one goes unnoted. */
	if (turn & 1 || turn > turn_of(number) || !atomic_compare_exchange_strong(&note->turn, &turn, turn | 1))
		return;
	if (launch->first == UINT64_MAX)
		launch->first = number;
	atomic_store_explicit(&note->context, launch->context, memory_order_relaxed);
	atomic_store_explicit(&note->stream, launch->stream, memory_order_relaxed);
	atomic_store_explicit(&note->thread, this_thread(), memory_order_relaxed);
	note->told = launch->stream;
	note->launch = launch->first;
	note->graph = launch->graph;
	note->range = slot->range;
	note->function = slot->function;
	note->paths = slot->paths;
	note->value = slot->value;
	note->site = launch->site;
	note->outer_api = launch->outer_api;
	note->outer_note = launch->outer_note;
	note->argument = (int16_t)slot->argument; /* a kernel's parameters have 32,764 bytes at most */
	note->offset = (uint16_t)slot->offset;
	note->entry = (uint16_t)launch->entry;
	note->verdict = (uint8_t)slot->verdict;
	note->beside = slot->beside;
	atomic_store_explicit(&note->turn, turn_of(number), memory_order_release);
}

bool fault_note(const struct call *call)
{
	struct launch_notes launch = {
		.stream = address_of(call->stream), .graph = call->graph, .first = UINT64_MAX, .entry = entry_of(call)};
	size_t count = 0;
	if (!atomic_load_explicit(&ring.notes, memory_order_acquire) || !call->judgement)
		return false;
	for (size_t i = 0; i < call->slot_count && count < NOTES_OF_LAUNCH; i++) {
		if (!holds_twin(&call->slots[i]) || listed_before(call, i))
			continue;
		if (!count++) {
			launch.context = note_context_now();
			launch.site = site_ring_put(&call->judgement->site);
			launch.outer_api = call->judgement->outer.api;
			launch.outer_note = call->judgement->outer.note;
		}
		const struct call_slot *slot = &call->slots[i];
		write_note(&launch, &(struct slot_note){slot->function, slot->paths, slot->value, slot->handle,
		                                        slot->argument, slot->offset, slot->verdict, slot->beside});
	}
	return count;
}

/* The place of the next note, which was written last NOTES launches ago: on its way here while the others are found out. */
static inline void fetch_next(const struct note *notes)
{
	const struct note *next = &notes[atomic_load_explicit(&ring.noted, memory_order_relaxed) % NOTES];
	__builtin_prefetch(next, 1);
	__builtin_prefetch(&next->range, 1);
}
_Static_assert(offsetof(struct note, range) == 64, "its second line");

/* The stack is still that of the call. */
HOOK_HOT void fault_note_twins(enum entry_id entry, const struct memo_twins *twins, CUstream stream, void *caller)
{
	const struct note *notes = atomic_load_explicit(&ring.notes, memory_order_acquire);
	if (!notes)
		return;
	fetch_next(notes);
	struct launch_notes launch = {.context = note_context_now(),
	                              .stream = address_of(stream),
	                              .site = site_ring_here(caller, 1 + (unsigned)entry),
	                              .first = UINT64_MAX,
	                              .outer_api = hook_thread.outer.api,
	                              .outer_note = hook_thread.outer.note,
	                              .entry = entry};
	for (size_t i = 0; i < twins->count; i++)
		write_note(&launch, &(struct slot_note){.function = twins->function,
		                                        .paths = twins->paths,
		                                        .value = twins->twin[i].value,
		                                        .range = twins->twin[i].range,
		                                        .argument = twins->twin[i].argument,
		                                        .offset = twins->twin[i].offset,
		                                        .verdict = KERNEL_STORES});
}

uint64_t fault_noted(void)
{
	return atomic_load_explicit(&ring.noted, memory_order_relaxed);
}

struct note *note_at(uint64_t number)
{
	return &atomic_load_explicit(&ring.notes, memory_order_acquire)[number % NOTES];
}

/* Is note `number` in this place? Also while somebody reads it, or has begun to write over it, which does no harm: its end is told by number. */
static bool is_there(const struct note *note, uint64_t number)
{
	return (atomic_load_explicit(&note->turn, memory_order_acquire) & ~UINT64_C(1)) == turn_of(number);
}

bool note_has_ended(struct note *note, uint64_t number)
{
	uint64_t turn = atomic_load_explicit(&note->turn, memory_order_acquire);
	/* What is overwritten is nobody's any more; what is still written has not ended. */
	return (turn & ~UINT64_C(1)) > turn_of(number) ||
	       atomic_load_explicit(&note->ended, memory_order_relaxed) == turn_of(number);
}

static void tell_kernel(const struct note *note, struct report_kernel *ret)
{
	const struct call_slot slot = {.function = note->function,
	                               .paths = note->paths,
	                               .verdict = (enum kernel_verdict)note->verdict,
	                               .argument = note->argument,
	                               .offset = note->offset,
	                               .value = note->value,
	                               .beside = note->beside};
	judge_tell_slot(&entrypoints[note->entry], &slot, ret);
}

bool note_read(uint64_t number, CUcontext context, struct note_told *ret)
{
	struct note *note = note_at(number);
	uint64_t turn = turn_of(number);
	if (note_has_ended(note, number) || !atomic_compare_exchange_strong(&note->turn, &turn, turn | 1))
		return false;
	bool wanted = !context || atomic_load_explicit(&note->context, memory_order_relaxed) == context;
	if (wanted) {
		ret->context = note->context;
		ret->stream = note->stream;
		ret->told = note->told;
		ret->launch = note->launch;
		ret->graph = note->graph;
		ret->range = note->range;
		ret->outer_api = note->outer_api;
		ret->outer_note = note->outer_note;
		tell_kernel(note, &ret->kernel);
		site_ring_get(note->site, &ret->kernel.site);
	}
	atomic_store_explicit(&note->turn, turn_of(number), memory_order_release);
	return wanted;
}

bool note_in_stream(const struct note *note, uint64_t stream)
{
	return !stream || (atomic_load_explicit(&note->stream, memory_order_relaxed) == stream &&
	                   (stream != address_of(CU_STREAM_PER_THREAD) ||
	                    atomic_load_explicit(&note->thread, memory_order_relaxed) == this_thread()));
}

void notes_settle(uint64_t upto)
{
	uint64_t from = atomic_load_explicit(&ring.settled, memory_order_relaxed), to = from;
	while (to < upto && (upto - to > NOTES || note_has_ended(note_at(to), to)))
		to++;
	if (to > from)
		atomic_compare_exchange_strong(&ring.settled, &from, to);
}

bool note_stream_was_created(uint64_t stream)
{
	return stream > address_of(CU_STREAM_PER_THREAD);
}

static bool in_context(struct note *note, CUcontext context, uint64_t stream)
{
	return note_stream_was_created(stream) || atomic_load_explicit(&note->context, memory_order_relaxed) == context;
}

void fault_ended(CUcontext context, uint64_t stream, uint64_t upto)
{
	uint64_t from = atomic_load_explicit(&ring.settled, memory_order_relaxed);
	if (from >= upto || !atomic_load_explicit(&ring.notes, memory_order_acquire))
		return;
	if (!context)
		context = note_context_now();
	for (uint64_t number = upto - from > NOTES ? upto - NOTES : from; number < upto; number++) {
		struct note *note = note_at(number);
		if (is_there(note, number) && in_context(note, context, stream) && note_in_stream(note, stream) &&
		    is_there(note, number))
			atomic_store_explicit(&note->ended, turn_of(number), memory_order_relaxed);
	}
	notes_settle(upto);
}

bool notes_in_flight(uint64_t stream, CUcontext *ret_context)
{
	uint64_t last = fault_noted();
	for (uint64_t number = last; number > 0 && last - number < NOTES; number--) {
		struct note *note = note_at(number - 1);
		if (!is_there(note, number - 1) || note_has_ended(note, number - 1) ||
		    atomic_load(&note->stream) != stream)
			continue;
		*ret_context = atomic_load_explicit(&note->context, memory_order_relaxed);
		return true;
	}
	return false;
}

void notes_rename_stream(uint64_t stream, uint64_t name)
{
	uint64_t last = fault_noted();
	for (uint64_t number = last; number > 0 && last - number < NOTES; number--) {
		uint64_t expected = stream;
		if (is_there(note_at(number - 1), number - 1))
			atomic_compare_exchange_strong(&note_at(number - 1)->stream, &expected, name);
	}
}

uint64_t notes_settled(void)
{
	return atomic_load_explicit(&ring.settled, memory_order_relaxed);
}

void notes_reset(void)
{
	struct note *notes = atomic_load_explicit(&ring.notes, memory_order_acquire);
	for (size_t i = 0; notes && i < NOTES; i++)
		atomic_store(&notes[i].turn, 0);
	atomic_store(&ring.noted, 0);
	atomic_store(&ring.settled, 0);
}
