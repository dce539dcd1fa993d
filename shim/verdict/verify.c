/* The calls of verify.h: baselines taken and put off, checks and refreshes issued, waiting. */
#include "shim/verdict/verify.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "shim/verdict/verify_internal.h"

#define BEGIN_WAIT_MS 2000
#define TOLD_WAIT_MS 2000

void verify_init(const struct verify_driver *driver, void (*finding)(const struct verify_finding *))
{
	verify.driver = *driver;
	verify.finding = finding;
}

/* ---- baselines */

/* Ends verify_take(): a baseline that could not be taken waits (again), unless its context is gone. */
static CUresult taken(struct verify_baseline *baseline, CUresult result)
{
	pthread_mutex_lock(&verify.lock);
	if (baseline->state != VERIFY_BASELINE_TAKING) {
		result = CUDA_ERROR_CONTEXT_IS_DESTROYED;
	} else if (result == CUDA_SUCCESS) {
		baseline->state = VERIFY_BASELINE_READY;
	} else {
		if (baseline->block)
			verify_arena_give(&baseline->home->arena, baseline->block);
		verify_unlink(baseline);
		baseline->block = NULL;
		baseline->home = NULL;
		baseline->state = VERIFY_BASELINE_WAITING;
		verify_link_last(&verify.waiting, baseline);
	}
	verify_unhold(baseline);
	pthread_mutex_unlock(&verify.lock);
	return result;
}

/* Takes those that wait, each in its own context. Not at a launch: it waits for the device. */
static void take_waiting(struct verify_call *call)
{
	struct verify_baseline *tried = NULL;
	while (atomic_load(&verify.captures) == 0) {
		pthread_mutex_lock(&verify.lock);
		struct verify_baseline *baseline = verify.waiting;
		/* One that failed goes to the end: once it is met again, all had their turn. */
		if (baseline == tried)
			baseline = NULL;
		if (baseline) {
			verify_unlink(baseline);
			baseline->state = VERIFY_BASELINE_TAKING;
			baseline->held++;
		}
		pthread_mutex_unlock(&verify.lock);
		if (!baseline)
			return;
		CUresult result = CUDA_ERROR_INVALID_CONTEXT;
		if (verify_call_enter(call, baseline->context))
			result = verify_take(baseline, false, NULL);
		if (taken(baseline, result) != CUDA_SUCCESS && !tried)
			tried = baseline;
	}
}

CUresult verify_attach(uint64_t start, uint64_t end, bool has_stream, CUstream stream, void **ret_attachment)
{
	if (end <= start)
		return CUDA_ERROR_INVALID_VALUE;
	int saved = errno;
	struct verify_baseline *baseline = calloc(1, sizeof(*baseline));
	if (!baseline) {
		errno = saved;
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	struct verify_call call;
	verify_call_begin(&call);
	*baseline = (struct verify_baseline){
		.generation = verify.generation, .start = start, .end = end, .context = call.current};
	CUresult result = CUDA_SUCCESS;
	if (!call.current) {
		free(baseline);
		result = CUDA_ERROR_INVALID_CONTEXT;
	} else if (atomic_load(&verify.captures) || (has_stream && !verify_stream_free(stream))) {
		pthread_mutex_lock(&verify.lock);
		verify_link(&verify.waiting, baseline);
		pthread_mutex_unlock(&verify.lock);
		*ret_attachment = baseline;
	} else {
		baseline->state = VERIFY_BASELINE_TAKING;
		baseline->held = 1;
		result = taken(baseline, verify_take(baseline, has_stream, stream));
		/* A capture that began meanwhile: it waits by now, and no longer if that capture has ended already. */
		if (result == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED)
			result = CUDA_SUCCESS;
		if (result == CUDA_SUCCESS) {
			*ret_attachment = baseline;
			take_waiting(&call);
		} else {
			verify_release(baseline);
		}
	}
	if (result == CUDA_SUCCESS)
		verify_watch_start();
	verify_call_end(&call);
	errno = saved;
	return result;
}

CUresult verify_synchronize(void)
{
	atomic_fetch_add(&verify.synchronizing, 1);
	CUresult result = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
	if (!atomic_load(&verify.captures))
		result = verify.driver.ctx_synchronize();
	atomic_fetch_sub(&verify.synchronizing, 1);
	return result;
}

/* Not for ever: what the device does may wait for this very thread. */
void verify_capture_began(void)
{
	int saved = errno;
	atomic_fetch_add(&verify.captures, 1);
	for (int i = 0; i < BEGIN_WAIT_MS * 10 && atomic_load(&verify.synchronizing); i++)
		nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
	errno = saved;
}

void verify_capture_ended(void)
{
	unsigned captures = atomic_load(&verify.captures);
	while (captures && !atomic_compare_exchange_weak(&verify.captures, &captures, captures - 1))
		;
	if (captures > 1)
		return;
	pthread_mutex_lock(&verify.lock);
	bool any = verify.waiting != NULL;
	pthread_mutex_unlock(&verify.lock);
	if (!any)
		return;
	int saved = errno;
	struct verify_call call;
	verify_call_begin(&call);
	take_waiting(&call);
	verify_call_end(&call);
	errno = saved;
}

/* ---- checks and refreshes */

/* What an issue is about: ranges that share a writer, or each with its own target. */
struct work {
	const struct verify_writer *writer;  /* NULL for refreshes */
	struct range *const *ranges;         /* or */
	const struct verify_target *targets; /* NULL: `ranges` */
	size_t count;
};

static struct range *work_range(const struct work *work, size_t nth)
{
	return work->targets ? work->targets[nth].range : work->ranges[nth];
}

/* Ops of one home that go into one launch. */
struct issue {
	enum verify_op_kind kind;
	CUstream stream;
	const struct work *work;
	struct verify_box *box; /* the writer of all of them, where they share it */
	struct verify_call *call;
	struct verify_home *home;
	struct verify_op *ops[VERIFY_JOBS];
	unsigned count;
	size_t issued;
};

/* Locked. What did not happen leaves its trace: a check is counted, a refresh leaves the baseline in doubt. */
static void missed(struct verify_baseline *baseline, enum verify_op_kind kind)
{
	if (kind == VERIFY_OP_CHECK)
		verify_skip(baseline);
	else
		verify_doubt(baseline);
}

static bool names_current_context(CUstream stream)
{
	return stream == NULL || stream == CU_STREAM_LEGACY || stream == CU_STREAM_PER_THREAD;
}

/* Launches what was gathered. Not locked: the driver may block while its queue is full, and others must get on. */
static void flush(struct issue *issue)
{
	unsigned count = issue->count;
	if (!count)
		return;
	issue->count = 0;
	CUresult result = CUDA_ERROR_INVALID_CONTEXT;
	if (verify_call_enter(issue->call, issue->home->context))
		result = verify_launch(issue->home, issue->stream, issue->ops, count);

	struct range *ranges[VERIFY_JOBS];
	unsigned cancelled = 0;
	pthread_mutex_lock(&verify.lock);
	for (unsigned i = 0; i < count; i++) {
		struct verify_op *op = issue->ops[i];
		op->issuing = false;
		/* A context that broke or went meanwhile answers no more. */
		bool hopeless = issue->home->state != VERIFY_HOME_READY && !verify_op_arrived(op);
		if (result != CUDA_SUCCESS || hopeless)
			ranges[cancelled++] = verify_op_cancel(op);
	}
	pthread_mutex_unlock(&verify.lock);
	for (unsigned i = 0; i < cancelled; i++)
		range_put(ranges[i]);
	issue->issued += count - cancelled;
	if (result != CUDA_SUCCESS)
		verify_home_error(issue->home, result);
	else
		verify_watch_wake();
}

/* One launch must not work twice on the same baseline: its blocks run at the same time. */
static bool gathered(const struct issue *issue, const struct verify_baseline *baseline)
{
	for (unsigned i = 0; i < issue->count; i++)
		if (issue->ops[i]->baseline == baseline)
			return true;
	return false;
}

/* Locked. The nth range's op; NULL: no slot, or no memory. */
static struct verify_op *new_op(struct issue *issue, size_t nth)
{
	const struct work *work = issue->work;
	struct range *range = work_range(work, nth);
	struct verify_box *box = issue->box;
	if (work->writer && !box)
		box = verify_box_new(work->writer, work->targets ? &work->targets[nth] : NULL);
	if (work->writer && !box)
		return NULL;
	struct verify_op *op = verify_op_new(range->attachment, range, issue->kind, issue->stream, box, false);
	if (work->targets)
		verify_box_put(box);
	else
		issue->box = box;
	return op;
}

/* Registers the nth range's op. Returns false when it belongs into another launch: flush and come again. */
static bool gather(struct issue *issue, size_t nth, bool possible)
{
	struct verify_baseline *baseline = work_range(issue->work, nth)->attachment;
	bool fits = true;
	pthread_mutex_lock(&verify.lock);
	if (baseline->generation != verify.generation) {
		/* From before a fork. */
	} else if (baseline->state != VERIFY_BASELINE_READY) {
		/* Nothing to refresh yet, or no more. */
		if (issue->kind == VERIFY_OP_CHECK)
			verify_skip(baseline);
	} else if (!possible || baseline->home->state != VERIFY_HOME_READY ||
	           (names_current_context(issue->stream) && issue->call->current != baseline->context)) {
		missed(baseline, issue->kind);
	} else if (issue->count == VERIFY_JOBS || (issue->count && issue->home != baseline->home) ||
	           gathered(issue, baseline)) {
		fits = false;
	} else {
		struct verify_op *op = new_op(issue, nth);
		if (op) {
			issue->home = baseline->home;
			issue->ops[issue->count++] = op;
		} else {
			missed(baseline, issue->kind);
		}
	}
	pthread_mutex_unlock(&verify.lock);
	return fits;
}

static size_t issue_all(enum verify_op_kind kind, const struct work *work, CUstream stream)
{
	size_t first = 0;
	while (first < work->count && !work_range(work, first)->attachment)
		first++;
	if (first == work->count)
		return 0;
	int saved = errno;
	struct verify_call call;
	verify_call_begin(&call);
	struct issue issue = {.kind = kind, .stream = stream, .work = work, .call = &call};
	bool possible = verify_stream_free(stream);
	/* What is being captured does not run now: its write is not there to refresh, nor to doubt. */
	for (size_t i = first; i < work->count && (possible || kind == VERIFY_OP_CHECK); i++) {
		if (!work_range(work, i)->attachment)
			continue;
		while (!gather(&issue, i, possible))
			flush(&issue);
	}
	flush(&issue);
	verify_call_end(&call);
	if (issue.box) {
		pthread_mutex_lock(&verify.lock);
		verify_box_put(issue.box);
		pthread_mutex_unlock(&verify.lock);
	}
	errno = saved;
	return issue.issued;
}

size_t verify_after(const struct verify_writer *writer, struct range *const *ranges, size_t count, CUstream stream)
{
	return issue_all(VERIFY_OP_CHECK, &(struct work){.writer = writer, .ranges = ranges, .count = count}, stream);
}

size_t verify_after_each(const struct verify_writer *writer, const struct verify_target *targets, size_t count,
                         CUstream stream)
{
	return issue_all(VERIFY_OP_CHECK, &(struct work){.writer = writer, .targets = targets, .count = count}, stream);
}

void verify_refresh(struct range *const *ranges, size_t count, CUstream stream)
{
	issue_all(VERIFY_OP_REFRESH, &(struct work){.ranges = ranges, .count = count}, stream);
}

/* ---- waiting */

static CUresult check_now(struct verify_call *call, struct range *range, const struct verify_writer *writer,
                          bool *ret_changed)
{
	struct verify_baseline *baseline = range->attachment;
	if (!verify_call_enter(call, baseline->context))
		return CUDA_ERROR_INVALID_CONTEXT;
	CUresult result = verify_synchronize();
	struct verify_op *op = NULL;
	struct verify_home *home = NULL;
	if (result != CUDA_SUCCESS) {
		pthread_mutex_lock(&verify.lock);
		home = baseline->home;
		pthread_mutex_unlock(&verify.lock);
		if (home)
			verify_home_error(home, result);
		return result;
	}
	/* All that was issued before has come back: told first, by whoever has it, so that each change has its own writer. */
	verify_catch_up();

	pthread_mutex_lock(&verify.lock);
	if (baseline->state == VERIFY_BASELINE_READY && baseline->home->state == VERIFY_HOME_READY) {
		home = baseline->home;
		struct verify_box *box = verify_box_new(writer, NULL);
		if (box) {
			op = verify_op_new(baseline, range, VERIFY_OP_CHECK, home->stream, box, true);
			verify_box_put(box);
		}
	}
	pthread_mutex_unlock(&verify.lock);
	if (!home)
		return CUDA_ERROR_CONTEXT_IS_DESTROYED;
	if (!op)
		return CUDA_ERROR_OUT_OF_MEMORY;
	result = verify_launch(home, home->stream, &op, 1);
	if (result == CUDA_SUCCESS)
		result = verify.driver.stream_synchronize(home->stream);
	if (result == CUDA_SUCCESS && !verify_op_arrived(op))
		result = CUDA_ERROR_UNKNOWN;
	if (result == CUDA_SUCCESS) {
		*ret_changed = verify_op_finish_waited(op);
		return CUDA_SUCCESS;
	}
	pthread_mutex_lock(&verify.lock);
	struct range *reference = verify_op_cancel(op);
	pthread_mutex_unlock(&verify.lock);
	range_put(reference);
	verify_home_error(home, result);
	return result;
}

CUresult verify_now(struct range *range, const struct verify_writer *writer, bool *ret_changed)
{
	struct verify_baseline *baseline = range->attachment;
	if (!baseline)
		return CUDA_ERROR_NOT_SUPPORTED;
	if (atomic_load(&verify.captures))
		return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
	int saved = errno;
	struct verify_call call;
	CUresult result;
	verify_call_begin(&call);
	take_waiting(&call);
	pthread_mutex_lock(&verify.lock);
	bool ours = baseline->generation == verify.generation && baseline->state == VERIFY_BASELINE_READY;
	pthread_mutex_unlock(&verify.lock);
	result = ours ? check_now(&call, range, writer, ret_changed) : CUDA_ERROR_CONTEXT_IS_DESTROYED;
	verify_call_end(&call);
	errno = saved;
	return result;
}

static uint64_t now_ms(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static void nap(void)
{
	nanosleep(&(struct timespec){0, 50000}, NULL);
}

/* Whether a stream still has ops up to number `sequence`, be it one that is being told. */
static bool any_before(uint64_t sequence)
{
	bool any = false;
	pthread_mutex_lock(&verify.lock);
	for (struct verify_queue *queue = verify.queues; queue && !any; queue = queue->next)
		any = (queue->telling && queue->telling <= sequence) ||
		      (queue->head && queue->head->sequence <= sequence);
	pthread_mutex_unlock(&verify.lock);
	return any;
}

/* Other threads may go on issuing for ever: only what was there at the start is waited for. */
size_t verify_drain(uint64_t ms)
{
	int saved = errno;
	uint64_t start = now_ms();
	pthread_mutex_lock(&verify.lock);
	uint64_t last = verify.sequence;
	pthread_mutex_unlock(&verify.lock);
	for (;;) {
		verify_poll();
		if (atomic_load(&hook_line.in_flight) == 0 || !any_before(last) || now_ms() - start >= ms)
			break;
		nap();
	}
	errno = saved;
	return atomic_load(&verify.checks);
}

static bool reads(struct range *const *ranges, size_t count)
{
	bool any = false;
	pthread_mutex_lock(&verify.lock);
	for (size_t i = 0; i < count && !any; i++) {
		const struct verify_baseline *baseline = ranges[i]->attachment;
		if (!baseline || baseline->generation != verify.generation)
			continue;
		for (const struct verify_op *op = baseline->ops; op && !any; op = op->older)
			any = !verify_op_arrived(op);
	}
	pthread_mutex_unlock(&verify.lock);
	return any;
}

bool verify_settle(struct range *const *ranges, size_t count, uint64_t ms)
{
	int saved = errno;
	uint64_t start = now_ms();
	bool reading;
	while ((reading = reads(ranges, count)) && now_ms() - start < ms)
		nap();
	errno = saved;
	return !reading;
}

void verify_catch_up(void)
{
	if (atomic_load(&hook_line.in_flight) == 0)
		return;
	uint64_t last = 0;
	bool held;
	verify_handle(&last, &held);
	if (!held)
		return;
	int saved = errno;
	uint64_t start = now_ms();
	do {
		nap();
		verify_handle(&last, &held);
	} while (held && now_ms() - start < TOLD_WAIT_MS);
	errno = saved;
}

struct verify_counts verify_counts(void)
{
	return (struct verify_counts){.verified = atomic_load(&verify.verified),
	                              .unverified = atomic_load(&verify.unverified),
	                              .inconclusive = atomic_load(&verify.inconclusive),
	                              .pending = atomic_load(&verify.checks)};
}

void verify_postfork_child(void)
{
	/*
	 * Single-threaded here, but other threads of the parent may have been anywhere: no list can be trusted, so all
	 * is left behind, and attachments of the old generation are not looked into. The parent's watcher does not
	 * exist, and none is started.
	 */
	struct verify_driver driver = verify.driver;
	void (*finding)(const struct verify_finding *) = verify.finding;
	uint64_t generation = verify.generation;
	atomic_store(&hook_line.in_flight, 0);
	verify = (struct verify_state){.driver = driver,
	                               .finding = finding,
	                               .lock = PTHREAD_MUTEX_INITIALIZER,
	                               .setup = PTHREAD_MUTEX_INITIALIZER,
	                               .generation = generation + 1,
	                               .watching = true};
}
