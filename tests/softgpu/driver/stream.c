#include "tests/softgpu/driver/stream.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>

#include "tests/softgpu/driver/capture.h"
#include "tests/softgpu/driver/event.h"
#include "tests/softgpu/driver/order.h"

struct sg_work {
	struct sg_op op;
	uint64_t ticket; /* on its stream's timeline */
	uint64_t issued; /* among all work of all streams */
	struct sg_points waits;
	CUresult *ret_status; /* of the caller who waits for it, or NULL */
	struct sg_work *next;
};

static uint64_t stream_ids = 1;
static uint64_t works_issued;
/* In an ordered mode: the streams with work in their queue, and the thread that runs some. */
static struct sg_stream *busy;
static const struct sg_thread *stepping;

struct sg_point sg_point_of(struct sg_stream *stream)
{
	stream->timeline->references++;
	return (struct sg_point){stream->timeline, stream->timeline->submitted};
}

static void timeline_drop(struct sg_timeline *timeline)
{
	if (--timeline->references == 0)
		free(timeline);
}

void sg_point_drop(struct sg_point *point)
{
	if (point->timeline != NULL)
		timeline_drop(point->timeline);
	*point = (struct sg_point){0};
}

bool sg_point_reached(const struct sg_point *point)
{
	return point->timeline == NULL || point->timeline->completed >= point->ticket;
}

void sg_point_await(const struct sg_point *point)
{
	while (!sg_point_reached(point))
		if (!sg_stream_step())
			sg_wait_changed();
}

bool sg_points_add(struct sg_points *points, struct sg_point point)
{
	if (sg_point_reached(&point)) {
		sg_point_drop(&point);
		return true;
	}
	if (points->count == points->capacity) {
		size_t capacity = points->capacity == 0 ? 4 : points->capacity * 2;
		struct sg_point *bigger = realloc(points->list, capacity * sizeof(*bigger));
		if (bigger == NULL) {
			sg_point_drop(&point);
			return false;
		}
		points->list = bigger;
		points->capacity = capacity;
	}
	points->list[points->count++] = point;
	return true;
}

void sg_points_clear(struct sg_points *points)
{
	for (size_t i = 0; i < points->count; i++)
		sg_point_drop(&points->list[i]);
	free(points->list);
	*points = (struct sg_points){0};
}

static bool all_reached(const struct sg_points *points)
{
	for (size_t i = 0; i < points->count; i++)
		if (!sg_point_reached(&points->list[i]))
			return false;
	return true;
}

/* Unlinks a closed stream whose work is done, and frees it. */
static void finish(struct sg_stream *stream)
{
	struct sg_stream **link = &stream->context->streams;

	while (*link != stream)
		link = &(*link)->next;
	*link = stream->next;
	sg_points_clear(&stream->waits);
	timeline_drop(stream->timeline);
	free(stream);
	sg_changed();
}

/*
 * Runs the operation with the lock dropped, unless the context has faulted: then what was queued is dropped, as on a
 * real device.
 */
static CUresult run(struct sg_stream *stream, struct sg_op *op)
{
	CUresult status = atomic_load(&stream->context->sticky);
	unsigned delay = sg_delay_us();

	sg_unlock();
	if (status == CUDA_SUCCESS && delay != 0)
		nanosleep(&(struct timespec){delay / 1000000, (long)(delay % 1000000) * 1000}, NULL);
	if (status == CUDA_SUCCESS)
		status = sg_op_run(op, stream);
	sg_lock();
	return status;
}

static void complete(struct sg_stream *stream, struct sg_work *work, CUresult status)
{
	stream->timeline->completed = work->ticket;
	if (work->ret_status != NULL)
		*work->ret_status = status;
	sg_op_clear(&work->op);
	sg_points_clear(&work->waits);
	sg_changed();
}

static bool idle(const struct sg_stream *stream)
{
	return stream->timeline->completed == stream->timeline->submitted;
}

static bool ready(const struct sg_stream *stream)
{
	const struct sg_work *work = stream->first;

	return work != NULL && stream->timeline->completed + 1 == work->ticket && all_reached(&work->waits);
}

static void run_first(struct sg_stream *stream)
{
	struct sg_work *work = stream->first;

	stream->first = work->next;
	if (stream->first == NULL)
		stream->last = NULL;
	complete(stream, work, run(stream, &work->op));
	free(work);
}

static void *work_off(void *argument)
{
	struct sg_stream *stream = argument;

	sg_lock();
	while (!stream->closing || !idle(stream)) {
		if (ready(stream))
			run_first(stream);
		else
			sg_wait_changed();
	}
	finish(stream);
	sg_unlock();
	return NULL;
}

static void become_busy(struct sg_stream *stream)
{
	struct sg_stream **link = &busy;

	while (*link != NULL && *link != stream)
		link = &(*link)->next_busy;
	*link = stream;
}

static void forget_idle(void)
{
	struct sg_stream **link = &busy;

	while (*link != NULL) {
		struct sg_stream *stream = *link;
		if (stream->first == NULL) {
			*link = stream->next_busy;
			stream->next_busy = NULL;
		} else {
			link = &stream->next_busy;
		}
	}
}

/* Number `n` of the streams that are ready; or, serially, the one whose work was issued first. Counts them. */
static struct sg_stream *ready_stream(size_t n, size_t *ret_count)
{
	struct sg_stream *found = NULL;
	size_t count = 0;

	for (struct sg_stream *stream = busy; stream != NULL; stream = stream->next_busy) {
		if (!ready(stream))
			continue;
		if (sg_order() == SG_ORDER_SERIAL ? found == NULL || stream->first->issued < found->first->issued
		                                  : count == n)
			found = stream;
		count++;
	}
	*ret_count = count;
	return found;
}

bool sg_stream_step(void)
{
	const struct sg_thread *outer = stepping;
	size_t count;

	/*
	 * An operation that waits, for an event in a graph or a value in memory, works meanwhile: the same thread
	 * again.
	 */
	if (sg_order() == SG_ORDER_THREADS || (outer != NULL && outer != &sg_thread))
		return false;
	struct sg_stream *stream = ready_stream(0, &count);
	if (count == 0)
		return false;
	if (sg_order() == SG_ORDER_SHUFFLE)
		stream = ready_stream(sg_order_choose(count), &count);
	stepping = &sg_thread;
	run_first(stream);
	stepping = outer;
	forget_idle();
	if (stream->closing && idle(stream))
		finish(stream);
	return true;
}

/* The process's signals are not for this thread. */
static bool start(struct sg_stream *stream)
{
	pthread_attr_t attributes;
	pthread_t thread;
	sigset_t all, before;

	if (stream->started || sg_order() != SG_ORDER_THREADS)
		return true;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	pthread_attr_init(&attributes);
	pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	stream->started = pthread_create(&thread, &attributes, work_off, stream) == 0;
	pthread_attr_destroy(&attributes);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return stream->started;
}

/* The legacy stream waits for every blocking stream of its context, and they for it. */
static bool add_legacy_waits(struct sg_stream *stream, struct sg_points *waits)
{
	struct sg_stream *legacy = stream->context->legacy;

	if (stream != legacy)
		return (stream->flags & CU_STREAM_NON_BLOCKING) != 0 || legacy == NULL ||
		       sg_points_add(waits, sg_point_of(legacy));
	for (struct sg_stream *other = stream->context->streams; other != NULL; other = other->next)
		if (other != legacy && !(other->flags & CU_STREAM_NON_BLOCKING) &&
		    !sg_points_add(waits, sg_point_of(other)))
			return false;
	return true;
}

static CUresult run_here(struct sg_stream *stream, struct sg_work *work)
{
	work->ticket = ++stream->timeline->submitted;
	CUresult status = run(stream, &work->op);
	complete(stream, work, status);
	/* Destroyed meanwhile: with no thread of its own, the stream was left for this one to finish. */
	if (stream->closing && !stream->started)
		finish(stream);
	return status;
}

CUresult sg_submit(struct sg_stream *stream, struct sg_op *op, bool wait)
{
	CUresult status = CUDA_SUCCESS;

	if (stream->capture != NULL) {
		if (!wait)
			return sg_capture_add(stream, op);
		sg_op_clear(op);
		return sg_capture_refuse(stream);
	}
	if (stream == stream->context->legacy)
		status = sg_capture_implicit(stream);
	struct sg_work *work = status == CUDA_SUCCESS ? calloc(1, sizeof(*work)) : NULL;
	if (work == NULL) {
		sg_op_clear(op);
		return status != CUDA_SUCCESS ? status : CUDA_ERROR_OUT_OF_MEMORY;
	}
	work->op = *op;
	work->waits = stream->waits;
	stream->waits = (struct sg_points){0};
	bool known = add_legacy_waits(stream, &work->waits);
	if (known && wait && sg_order() == SG_ORDER_THREADS && stream->first == NULL && idle(stream) &&
	    all_reached(&work->waits)) {
		status = run_here(stream, work);
		free(work);
		return status;
	}
	if (!known || !start(stream)) {
		sg_op_clear(&work->op);
		sg_points_clear(&work->waits);
		free(work);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	work->ticket = ++stream->timeline->submitted;
	work->issued = ++works_issued;
	work->ret_status = wait ? &status : NULL;
	if (stream->last != NULL)
		stream->last->next = work;
	else
		stream->first = work;
	stream->last = work;
	if (sg_order() != SG_ORDER_THREADS)
		become_busy(stream);
	sg_changed();
	if (wait || sg_order() == SG_ORDER_SERIAL) {
		struct sg_point point = sg_point_of(stream);
		point.ticket = work->ticket;
		sg_point_await(&point);
		sg_point_drop(&point);
	}
	return status;
}

struct sg_stream *sg_stream_create(struct sg_context *context, unsigned flags, int priority)
{
	struct sg_stream *stream = calloc(1, sizeof(*stream));
	struct sg_timeline *timeline = calloc(1, sizeof(*timeline));

	if (stream == NULL || timeline == NULL) {
		free(stream);
		free(timeline);
		return NULL;
	}
	timeline->references = 1;
	stream->context = context;
	stream->flags = flags;
	stream->priority = priority;
	stream->sync_policy = CU_SYNC_POLICY_AUTO;
	stream->id = stream_ids++;
	stream->timeline = timeline;
	stream->next = context->streams;
	context->streams = stream;
	return stream;
}

void sg_stream_close(struct sg_stream *stream)
{
	if (stream->capture != NULL)
		sg_capture_abandon(stream);
	stream->closing = true;
	if (stream->started)
		sg_changed();
	else if (idle(stream))
		finish(stream);
}

void sg_stream_drain(struct sg_stream *stream)
{
	struct sg_point point = sg_point_of(stream);

	sg_point_await(&point);
	sg_point_drop(&point);
}
