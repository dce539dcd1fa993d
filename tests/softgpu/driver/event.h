/* Events: a point on a timeline with the time it was reached. */
#ifndef SOFTGPU_EVENT_H
#define SOFTGPU_EVENT_H

#include "tests/softgpu/driver/stream.h"

/* A CUevent. Reference-counted: its handle holds one, pending operations and graph nodes one each. */
struct sg_event {
	struct sg_context *context;
	unsigned references;
	unsigned flags;
	uint64_t recording; /* how often it was recorded */
	bool timed;         /* `time` is that of the newest recording */
	uint64_t time;      /* nanoseconds */
	struct sg_point point;
	/* Recorded in a capturing stream: which capture, and the nodes that a waiting stream depends on. */
	uint64_t capture_id;
	struct sg_node **tips;
	size_t tip_count;
};

/* With the lock held. */
struct sg_event *sg_event_hold(struct sg_event *event);
void sg_event_drop(struct sg_event *event);
/* NULL for a handle that is none. */
struct sg_event *sg_event_of(CUevent handle);
/* Makes the stream's next operation the point of the event; fills a SG_OP_RECORD. */
void sg_event_begin_record(struct sg_event *event, struct sg_op *ret_op);
/* Without the lock: the recording is reached. */
void sg_event_reached(struct sg_event *event, uint64_t recording);
/* Nanoseconds of the monotonic clock. */
uint64_t sg_now(void);

#endif
