/*
 * Streams: a queue of operations and a thread each, started with the first operation (or none: order.h). Order comes
 * from points on timelines: an operation waits for the one before it in its stream and for the points of other streams
 * it was given (events, the rules of the legacy default stream).
 */
#ifndef SOFTGPU_STREAM_H
#define SOFTGPU_STREAM_H

#include "tests/softgpu/driver/context.h"
#include "tests/softgpu/driver/core.h"
#include "tests/softgpu/driver/op.h"

struct sg_capture;
struct sg_node;

/* Counts a stream's operations. Outlives its stream as long as somebody holds a point on it. */
struct sg_timeline {
	unsigned references;
	uint64_t submitted, completed;
};

/* "All operations up to this one." No timeline: reached. */
struct sg_point {
	struct sg_timeline *timeline;
	uint64_t ticket;
};

struct sg_points {
	struct sg_point *list;
	size_t count, capacity;
};

struct sg_work;

struct sg_stream {
	struct sg_context *context;
	struct sg_stream *next; /* in its context */
	unsigned flags;
	int priority;
	CUsynchronizationPolicy sync_policy; /* remembered, of no effect */
	uint64_t id;
	bool is_default; /* the legacy stream or a thread's own */
	bool started, closing;
	struct sg_timeline *timeline;
	struct sg_work *first, *last;
	struct sg_stream *next_busy; /* in an ordered mode: of those with work in their queue */
	struct sg_points waits;      /* for the next operation */
	struct sg_capture *capture;
	struct sg_node **tips; /* while it captures: what the next node depends on */
	size_t tip_count;
};

/* All with the lock held, unless said otherwise. */

struct sg_point sg_point_of(struct sg_stream *stream); /* now; takes a reference */
void sg_point_drop(struct sg_point *point);
bool sg_point_reached(const struct sg_point *point);
/* Until it is reached, sleeps; in an ordered mode, works. */
void sg_point_await(const struct sg_point *point);
/* Takes over the caller's reference; false without memory (the reference is dropped). */
bool sg_points_add(struct sg_points *points, struct sg_point point);
void sg_points_clear(struct sg_points *points);

/* The stream that a handle means to the calling thread: NULL, CU_STREAM_LEGACY, CU_STREAM_PER_THREAD included. */
CUresult sg_stream_of(CUstream handle, struct sg_stream **ret_stream);
struct sg_stream *sg_stream_create(struct sg_context *context, unsigned flags, int priority);
/* Finishes what was submitted, then frees itself; never waits. */
void sg_stream_close(struct sg_stream *stream);
/* Waits until everything submitted so far has run. */
void sg_stream_drain(struct sg_stream *stream);

/* In an ordered mode: runs one operation that is ready, whichever stream's, with the lock dropped meanwhile. False: none
 * is, or another thread runs one, or there are threads for that. */
bool sg_stream_step(void);

/*
 * The way into a stream: captures the operation into the stream's graph, or queues it. Takes over what the operation
 * owns, also on failure. With `wait` it returns when the operation has run, with its status; a capturing stream then
 * refuses.
 */
CUresult sg_submit(struct sg_stream *stream, struct sg_op *op, bool wait);

#endif
