/* Bookkeeping of what is in flight: who overlaps whom, what a result means, in which order results are told. */
#include "shim/verdict/verify_internal.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define DEFERRED 32 /* references given back per unlocking of the poll loop */

struct verify_state verify = {.lock = PTHREAD_MUTEX_INITIALIZER, .setup = PTHREAD_MUTEX_INITIALIZER, .generation = 1};

static void box_target(struct verify_writer *writer, const struct verify_target *target)
{
	writer->kernel.name = target->kernel;
	writer->kernel.argument = target->argument;
	writer->kernel.offset = target->offset;
	writer->kernel.value = target->value;
	writer->kernel.code = target->code;
	writer->launches_before = target->launches_before;
	writer->device = target->device;
}

struct verify_box *verify_box_new(const struct verify_writer *writer, const struct verify_target *target)
{
	const struct report_kernel *from = target ? target->candidates : writer->candidates;
	size_t count = target ? target->candidate_count : writer->candidate_count;
	struct report_kernel *candidates = NULL;
	if (count) {
		candidates = malloc(count * sizeof(*candidates));
		if (!candidates)
			return NULL;
		memcpy(candidates, from, count * sizeof(*candidates));
	}
	struct verify_box *box = verify.free_boxes;
	if (box) {
		verify.free_boxes = box->next_free;
	} else {
		box = malloc(sizeof(*box));
		if (!box) {
			free(candidates);
			return NULL;
		}
	}
	box->references = 1;
	box->writer = *writer;
	if (target)
		box_target(&box->writer, target);
	box->writer.candidates = candidates;
	box->writer.candidate_count = count;
	return box;
}

void verify_box_put(struct verify_box *box)
{
	if (!box || --box->references)
		return;
	free((void *)(uintptr_t)box->writer.candidates);
	box->writer.candidates = NULL;
	box->next_free = verify.free_boxes;
	verify.free_boxes = box;
}

static struct verify_stream stream_key(CUstream stream)
{
	static _Atomic uint64_t threads;
	static _Thread_local uint64_t thread;
	/* The legacy stream has two names; the per-thread one is another stream in each thread. */
	if (stream == NULL)
		stream = CU_STREAM_LEGACY;
	if (stream != CU_STREAM_PER_THREAD)
		return (struct verify_stream){stream, 0};
	if (!thread)
		thread = atomic_fetch_add(&threads, 1) + 1;
	return (struct verify_stream){stream, thread};
}

static bool same_stream(const struct verify_stream *a, const struct verify_stream *b)
{
	return a->handle == b->handle && a->thread == b->thread;
}

static struct verify_queue *queue_get(struct verify_home *home, const struct verify_stream *stream)
{
	struct verify_queue *queue;
	for (queue = verify.queues; queue; queue = queue->next)
		if (queue->home == home && same_stream(&queue->stream, stream))
			return queue;
	queue = verify.free_queues;
	if (queue)
		verify.free_queues = queue->next;
	else
		queue = malloc(sizeof(*queue));
	if (!queue)
		return NULL;
	*queue = (struct verify_queue){.home = home, .stream = *stream, .next = verify.queues};
	if (queue->next)
		queue->next->previous = queue;
	verify.queues = queue;
	return queue;
}

static void queue_put(struct verify_queue *queue)
{
	if (queue->head || queue->telling)
		return;
	if (queue->previous)
		queue->previous->next = queue->next;
	else
		verify.queues = queue->next;
	if (queue->next)
		queue->next->previous = queue->previous;
	queue->next = verify.free_queues;
	verify.free_queues = queue;
}

static void queue_remove(struct verify_queue *queue, const struct verify_op *op)
{
	struct verify_op *before = NULL;
	for (struct verify_op *at = queue->head; at && at != op; at = at->next)
		before = at;
	if (before)
		before->next = op->next;
	else
		queue->head = op->next;
	if (queue->tail == op)
		queue->tail = before;
}

bool verify_op_arrived(const struct verify_op *op)
{
	return __atomic_load_n(&op->home->results[op->slot].sequence, __ATOMIC_ACQUIRE) == op->sequence;
}

static void add_other(struct verify_op *op, struct verify_box *box)
{
	if (!box || box == op->writer || op->other_count == VERIFY_OTHERS)
		return;
	for (unsigned i = 0; i < op->other_count; i++)
		if (op->others[i] == box)
			return;
	box->references++;
	op->others[op->other_count++] = box;
}

/*
 * What is in flight on this baseline elsewhere ran before, after or during `op`: nobody knows. What has arrived was
 * before. Of one stream, an op whose launch has not returned (in another thread) may end up on either side too.
 */
static void note_overlaps(struct verify_op *op)
{
	struct verify_baseline *baseline = op->baseline;
	bool settled = false;
	for (struct verify_op *other = baseline->ops; other; other = other->older) {
		bool ordered = same_stream(&other->stream, &op->stream) && !other->issuing;
		if (ordered && !other->overlapped && other->epoch == baseline->epoch)
			settled = true;
		if (ordered || verify_op_arrived(other))
			continue;
		other->overlapped = op->overlapped = true;
		if (other->kind == VERIFY_OP_REFRESH)
			op->inconclusive = true;
		if (op->kind == VERIFY_OP_REFRESH)
			other->inconclusive = true;
		add_other(op, other->writer);
		add_other(other, op->writer);
	}
	op->suspect = baseline->doubtful && !settled;
}

struct verify_op *verify_op_new(struct verify_baseline *baseline, struct range *range, enum verify_op_kind kind,
                                CUstream stream, struct verify_box *box, bool waited)
{
	struct verify_home *home = baseline->home;
	if (!home->free_slots)
		return NULL;
	struct verify_stream key = stream_key(stream);
	struct verify_queue *queue = waited ? NULL : queue_get(home, &key);
	if (!waited && !queue)
		return NULL;
	struct verify_op *op = &home->op[home->free_slot[--home->free_slots]];
	*op = (struct verify_op){.home = home,
	                         .slot = op->slot,
	                         .kind = kind,
	                         .used = true,
	                         .issuing = true,
	                         .sequence = ++verify.sequence,
	                         .memory = verify_block_address(baseline->block),
	                         .epoch = baseline->epoch,
	                         .baseline = baseline,
	                         .range = range ? range_get(range) : NULL,
	                         .writer = box,
	                         .stream = key,
	                         .queue = queue};
	if (box)
		box->references++;
	note_overlaps(op);
	op->unverified = baseline->unverified;
	baseline->unverified = 0;
	op->older = baseline->ops;
	if (op->older)
		op->older->newer = op;
	baseline->ops = op;
	baseline->held++;
	if (!waited) {
		if (queue->tail)
			queue->tail->next = op;
		else
			queue->head = op;
		queue->tail = op;
		if (kind == VERIFY_OP_CHECK)
			atomic_fetch_add(&verify.checks, 1);
		atomic_fetch_add(&hook_line.in_flight, 1);
	}
	return op;
}

static void leave_baseline(struct verify_op *op)
{
	struct verify_baseline *baseline = op->baseline;
	if (op->newer)
		op->newer->older = op->older;
	else
		baseline->ops = op->older;
	if (op->older)
		op->older->newer = op->newer;
	op->baseline = NULL;
	verify_unhold(baseline);
}

/* Gives the slot back. Returns the range, whose reference the caller gives back without the lock. */
static struct range *end_op(struct verify_op *op)
{
	struct range *range = op->range;
	verify_box_put(op->writer);
	for (unsigned i = 0; i < op->other_count; i++)
		verify_box_put(op->others[i]);
	if (op->queue) {
		if (op->kind == VERIFY_OP_CHECK)
			atomic_fetch_sub(&verify.checks, 1);
		atomic_fetch_sub(&hook_line.in_flight, 1);
		queue_put(op->queue);
	}
	op->used = false;
	op->home->free_slot[op->home->free_slots++] = (uint16_t)op->slot;
	return range;
}

void verify_skip(struct verify_baseline *baseline)
{
	baseline->unverified++;
	atomic_fetch_add(&verify.unverified, 1);
}

void verify_doubt(struct verify_baseline *baseline)
{
	baseline->doubtful = true;
	baseline->epoch++;
}

struct range *verify_op_cancel(struct verify_op *op)
{
	struct verify_baseline *baseline = op->baseline;
	if (op->queue)
		queue_remove(op->queue, op);
	baseline->unverified += op->unverified;
	if (op->kind == VERIFY_OP_CHECK)
		verify_skip(baseline);
	else
		verify_doubt(baseline);
	leave_baseline(op);
	return end_op(op);
}

void verify_link(struct verify_baseline **list, struct verify_baseline *baseline)
{
	baseline->list = list;
	baseline->previous = NULL;
	baseline->next = *list;
	if (baseline->next)
		baseline->next->previous = baseline;
	*list = baseline;
}

void verify_link_last(struct verify_baseline **list, struct verify_baseline *baseline)
{
	struct verify_baseline *last = *list;
	if (!last) {
		verify_link(list, baseline);
		return;
	}
	while (last->next)
		last = last->next;
	baseline->list = list;
	baseline->previous = last;
	baseline->next = NULL;
	last->next = baseline;
}

void verify_unlink(struct verify_baseline *baseline)
{
	if (!baseline->list)
		return;
	if (baseline->previous)
		baseline->previous->next = baseline->next;
	else
		*baseline->list = baseline->next;
	if (baseline->next)
		baseline->next->previous = baseline->previous;
	baseline->list = NULL;
}

void verify_lose(struct verify_baseline *baseline)
{
	verify_unlink(baseline);
	baseline->state = VERIFY_BASELINE_LOST;
	baseline->home = NULL;
	baseline->block = NULL;
}

static void destroy(struct verify_baseline *baseline)
{
	verify_unlink(baseline);
	if (baseline->block)
		verify_arena_give(&baseline->home->arena, baseline->block);
	free(baseline);
}

void verify_unhold(struct verify_baseline *baseline)
{
	if (--baseline->held == 0 && baseline->released)
		destroy(baseline);
}

void verify_release(void *attachment)
{
	struct verify_baseline *baseline = attachment;
	if (!baseline)
		return;
	pthread_mutex_lock(&verify.lock);
	if (baseline->generation == verify.generation) {
		if (baseline->held)
			baseline->released = true;
		else
			destroy(baseline);
	}
	pthread_mutex_unlock(&verify.lock);
}

size_t verify_drop_ops(struct verify_home *home, bool all, struct range **ret_ranges, size_t max)
{
	size_t count = 0;
	for (unsigned slot = 0; slot < VERIFY_SLOTS && count < max; slot++) {
		struct verify_op *op = &home->op[slot];
		if (op->used && op->queue && !op->issuing && !op->handled && (all || !verify_op_arrived(op)))
			ret_ranges[count++] = verify_op_cancel(op);
	}
	return count;
}

/* What a result says. Ends the op's part in the baseline: after this only its own members are looked at. */
static bool settle(struct verify_op *op, struct verify_finding *ret_finding)
{
	const struct verify_result *result = &op->home->results[op->slot];
	struct verify_baseline *baseline = op->baseline;
	assert(baseline); /* each op is settled once */
	bool check = op->kind == VERIFY_OP_CHECK;
	uint64_t bytes = check ? __atomic_load_n(&result->bytes, __ATOMIC_RELAXED) : 0;
	bool found = bytes != 0;

	/*
	 * Ops that overlapped this one list each other; a doubt that arose from earlier ones concerns those that had it
	 * alone.
	 */
	bool inconclusive = op->inconclusive || op->suspect || (!op->overlapped && op->epoch != baseline->epoch);
	if (op->overlapped && (!check || found))
		verify_doubt(baseline);
	else if (!op->overlapped && op->epoch == baseline->epoch)
		baseline->doubtful = false;

	if (check)
		atomic_fetch_add(&verify.verified, 1);
	if (found) {
		bool exact = baseline->end - baseline->start <= VERIFY_SNAPSHOT_MAX;
		if (inconclusive)
			atomic_fetch_add(&verify.inconclusive, 1);
		*ret_finding = (struct verify_finding){
			.range = op->range,
			.writer = &op->writer->writer,
			.written_start = baseline->start + __atomic_load_n(&result->first, __ATOMIC_RELAXED),
			.written_end = baseline->start + __atomic_load_n(&result->last, __ATOMIC_RELAXED),
			.written_bytes = exact ? bytes : 0,
			.exact = exact,
			.inconclusive = inconclusive,
			.unverified_launches = op->unverified,
		};
	}
	op->handled = true;
	leave_baseline(op);
	return found;
}

/* Unlocked: the op is out of every list, its writers stay as long as it does. */
static void tell(const struct verify_op *op, struct verify_finding *finding)
{
	struct verify_writer *others = op->other_count ? malloc(op->other_count * sizeof(*others)) : NULL;
	if (others) {
		for (unsigned i = 0; i < op->other_count; i++)
			others[i] = op->others[i]->writer;
		finding->others = others;
		finding->other_count = op->other_count;
	}
	verify.finding(finding);
	free(others);
}

bool verify_op_finish_waited(struct verify_op *op)
{
	struct verify_finding finding;
	pthread_mutex_lock(&verify.lock);
	bool found = settle(op, &finding);
	pthread_mutex_unlock(&verify.lock);
	if (found)
		tell(op, &finding);
	pthread_mutex_lock(&verify.lock);
	struct range *range = end_op(op);
	pthread_mutex_unlock(&verify.lock);
	range_put(range);
	return found;
}

/*
 * Whether an older op of the same baseline has come back too: what that one says about the baseline must be known
 * first.
 */
static bool waits_for_older(const struct verify_op *op)
{
	for (const struct verify_op *older = op->older; older; older = older->older)
		if (verify_op_arrived(older))
			return true;
	return false;
}

/*
 * The oldest op that has arrived and is next in its stream, out of its queue; NULL when there is none. `ret_held`: one
 * up to number `last` is being told, and those behind it wait for that.
 */
static struct verify_op *next_arrived(uint64_t last, bool *ret_held)
{
	struct verify_op *oldest = NULL;
	*ret_held = false;
	for (struct verify_queue *queue = verify.queues; queue; queue = queue->next) {
		struct verify_op *op = queue->head;
		*ret_held |= queue->telling && queue->telling <= last;
		/* An op may arrive before its launch returned: its issuer still holds it. */
		if (queue->telling || !op || op->issuing || (oldest && oldest->sequence < op->sequence))
			continue;
		if (verify_op_arrived(op) && !waits_for_older(op))
			oldest = op;
	}
	if (oldest)
		queue_remove(oldest->queue, oldest);
	return oldest;
}

size_t verify_handle(uint64_t *last, bool *ret_held)
{
	int saved = errno;
	size_t handled = 0;
	struct range *deferred[DEFERRED];
	size_t deferred_count = 0;
	struct verify_op *op;

	pthread_mutex_lock(&verify.lock);
	if (!*last)
		*last = verify.sequence;
	while ((op = next_arrived(*last, ret_held))) {
		struct verify_finding finding;
		handled++;
		if (settle(op, &finding)) {
			struct verify_queue *queue = op->queue;
			queue->telling = op->sequence;
			pthread_mutex_unlock(&verify.lock);
			tell(op, &finding);
			pthread_mutex_lock(&verify.lock);
			queue->telling = 0;
		}
		deferred[deferred_count++] = end_op(op);
		if (deferred_count == DEFERRED) {
			pthread_mutex_unlock(&verify.lock);
			for (size_t i = 0; i < deferred_count; i++)
				range_put(deferred[i]);
			deferred_count = 0;
			pthread_mutex_lock(&verify.lock);
		}
	}
	pthread_mutex_unlock(&verify.lock);
	for (size_t i = 0; i < deferred_count; i++)
		range_put(deferred[i]);
	errno = saved;
	return handled;
}

HOOK_HOT size_t verify_poll(void)
{
	uint64_t last = 0;
	bool held;
	return atomic_load_explicit(&hook_line.in_flight, memory_order_relaxed) ? verify_handle(&last, &held) : 0;
}
