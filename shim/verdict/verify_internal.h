/*
 * Verification's own: shared by the verify*.c files, included by nobody else (and by its unit tests).
 *
 * One lock, verify.lock, guards everything here that is not _Atomic or said to be fixed. It is held for short, bounded
 * work on host memory: never over a driver call, `finding`, range_put() or a wait. `setup` is the other one: it lets
 * one thread at a time make a context's tables or grow its arena, is held over driver calls, and is never taken by a
 * launch, a poll or the watcher.
 */
#ifndef CUCONST_VERDICT_VERIFY_INTERNAL_H
#define CUCONST_VERDICT_VERIFY_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>

#include "shim/hook_state.h"
#include "shim/verdict/verify.h"
#include "shim/verdict/verify_arena.h"
#include "shim/verdict/verify_device.h"

#define VERIFY_SLOTS 4096u /* checks and refreshes of one context that may be in flight */
#define VERIFY_OTHERS 8u   /* other writers kept for one check; more are not named */

/* A writer: copied once for all ranges of a launch that share it, once for each target otherwise. */
struct verify_box {
	unsigned references;
	struct verify_box *next_free;
	struct verify_writer writer; /* candidates: own memory */
};

/* Streams are told apart by handle, and the per-thread one by thread too. */
struct verify_stream {
	CUstream handle;
	uint64_t thread; /* a number of our own, never used again; 0 unless the handle is the per-thread one */
};

enum verify_op_kind { VERIFY_OP_CHECK, VERIFY_OP_REFRESH };

/* One job in flight. Belongs to a slot of its home. */
struct verify_op {
	struct verify_home *home; /* fixed */
	uint32_t slot;            /* fixed */
	enum verify_op_kind kind;
	bool used;
	bool issuing;      /* registered, the launch has not returned yet: only the issuing thread may end it */
	bool handled;      /* out of its queue, being reported */
	bool overlapped;   /* another stream worked on the same baseline at the same time */
	bool inconclusive; /* ... and one of the two was a refresh */
	bool suspect;      /* the baseline was in doubt when this was issued */
	uint64_t sequence;
	uint64_t memory;     /* the baseline's, on the device */
	uint64_t epoch;      /* of the baseline, when issued */
	uint64_t unverified; /* launches since the last check that was issued */
	struct verify_baseline *baseline;
	struct range *range; /* a reference; NULL: the baseline is not in a range yet */
	struct verify_box *writer;
	struct verify_box *others[VERIFY_OTHERS];
	unsigned other_count;
	struct verify_stream stream;
	struct verify_queue *queue;      /* NULL: the issuing thread waits for it itself */
	struct verify_op *next;          /* in the queue, in issue order */
	struct verify_op *newer, *older; /* of the same baseline */
};

/* The ops in flight in one stream. Exists while there are any. */
struct verify_queue {
	struct verify_home *home;
	struct verify_stream stream;
	struct verify_op *head, *tail;
	uint64_t telling; /* sequence of the one that a thread calls `finding` for: later ones wait, for the order's sake; 0: none */
	struct verify_queue *next, *previous;
};

enum verify_home_state {
	VERIFY_HOME_MAKING, /* what it has so far is kept for the next try: nothing is made twice */
	VERIFY_HOME_READY,
	VERIFY_HOME_FAILED, /* sticky error: counts only */
	VERIFY_HOME_GONE,
};

/* What a context has. Never freed: a late look at one is harmless; a gone one serves the next context. */
struct verify_home {
	struct verify_home *next; /* fixed */
	CUcontext context;
	enum verify_home_state state;
	CUmodule module;
	CUfunction check;
	CUstream stream;               /* own, non-blocking: for what is waited for */
	struct verify_result *results; /* pinned */
	CUdeviceptr results_device, totals, keys;
	struct verify_arena arena;
	/* Of each slot. */
	struct verify_op op[VERIFY_SLOTS];
	uint16_t free_slot[VERIFY_SLOTS];
	unsigned free_slots;
	struct verify_baseline *baselines;
};

enum verify_baseline_state {
	VERIFY_BASELINE_WAITING, /* put off by a capture */
	VERIFY_BASELINE_TAKING,
	VERIFY_BASELINE_READY,
	VERIFY_BASELINE_LOST, /* its context is gone */
};

/* The attachment of a range. */
struct verify_baseline {
	uint64_t generation;      /* fixed; that of the process: one from before a fork is not touched */
	uint64_t start, end;      /* fixed */
	CUcontext context;        /* fixed */
	struct verify_home *home; /* once TAKING */
	enum verify_baseline_state state;
	struct verify_block *block;
	struct verify_op *ops; /* in flight, newest first */
	unsigned held;         /* ops, and a thread that takes it: memory stays until it is 0 */
	bool released;
	/*
	 * In doubt: two streams wrote the baseline at the same time, or a refresh could not be issued. Then the next
	 * difference proves nothing; the first op that had the baseline to itself ends the doubt.
	 */
	bool doubtful;
	uint64_t epoch; /* how many times it became doubtful */
	uint64_t unverified;
	struct verify_baseline **list; /* of the home, of those that wait, or NULL */
	struct verify_baseline *next, *previous;
};

struct verify_state {
	struct verify_driver driver; /* fixed after verify_init() */
	void (*finding)(const struct verify_finding *);
	pthread_mutex_t lock, setup;
	uint64_t generation;
	uint64_t sequence;
	struct verify_home *homes;
	struct verify_queue *queues, *free_queues;
	struct verify_box *free_boxes;
	struct verify_baseline *waiting;
	uint8_t keys[VERIFY_KEY_BYTES]; /* random, one set a process */
	bool have_keys;
	_Atomic unsigned captures;      /* that run, or are about to begin */
	_Atomic unsigned synchronizing; /* threads in verify_synchronize() */
	_Atomic uint64_t checks;        /* of hook_line.in_flight */
	_Atomic uint64_t verified, unverified, inconclusive;
	_Atomic bool watching;           /* the watcher was started, or must not be */
	_Atomic uint32_t watcher_asleep; /* futex */
};

/* Hidden; the one instance. */
extern struct verify_state verify;

/* The PTX text, ends with a zero byte: made from digest.ptx at build time. */
extern const char verify_ptx[];

/* ---- verify_home.c: driver calls; no lock held by the caller */

/*
 * Waits for all work of the current context. The driver refuses that during a capture, and invalidates the capture: not asked then, and a capture
 * that is to begin waits. CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED: a capture runs, or what the driver says.
 */
CUresult verify_synchronize(void);

/* Around everything that calls the driver: the caller's context and capture mode come back at the end. */
struct verify_call {
	CUcontext current; /* the caller's; NULL: none */
	CUstreamCaptureMode mode;
	bool relaxed, pushed;
};
void verify_call_begin(struct verify_call *call);
/* Makes `context` current; false when the driver refuses. */
bool verify_call_enter(struct verify_call *call, CUcontext context);
void verify_call_end(struct verify_call *call);

/* False when nothing may be issued there: it is capturing, or the driver does not say. */
bool verify_stream_free(CUstream stream);

/* Launches one batch for ops of one home, in its context. */
CUresult verify_launch(struct verify_home *home, CUstream stream, struct verify_op *const *ops, unsigned count);

/* After an error: a sticky one ends verification in that context. */
void verify_home_error(struct verify_home *home, CUresult error);

/* Takes the baseline of a held baseline in state TAKING, in the current context, which is its own. Synchronous. */
CUresult verify_take(struct verify_baseline *baseline, bool has_stream, CUstream stream);

/* ---- verify_ops.c: bookkeeping; the caller holds verify.lock where it says so */

/* Locked. NULL when host memory is short. One reference. `target` (NULL: none) has its say over the writer. */
struct verify_box *verify_box_new(const struct verify_writer *writer, const struct verify_target *target);
/* Locked. NULL is fine. */
void verify_box_put(struct verify_box *box);

/*
 * Locked. Registers an op on a READY (or TAKING) baseline, before its launch, so that other threads' ops see it.
 * `range` gets a reference, `box` too. `waited`: the caller handles it itself. NULL when all slots are taken or host
 * memory is short.
 */
struct verify_op *verify_op_new(struct verify_baseline *baseline, struct range *range, enum verify_op_kind kind,
                                CUstream stream, struct verify_box *box, bool waited);
/*
 * Locked. The launch did not happen, or its result will not come. Returns the range whose reference the caller gives
 * back, unlocked.
 */
struct range *verify_op_cancel(struct verify_op *op);
/* The result is there. */
bool verify_op_arrived(const struct verify_op *op);
/*
 * Unlocked. Handles an arrived op that was waited for: reports, gives its slot back. Returns whether bytes had changed.
 */
bool verify_op_finish_waited(struct verify_op *op);

/* Locked. Puts a baseline that is in no list into one; takes it out of its list, if any. */
void verify_link(struct verify_baseline **list, struct verify_baseline *baseline);
void verify_link_last(struct verify_baseline **list, struct verify_baseline *baseline);
void verify_unlink(struct verify_baseline *baseline);
/* Locked. Its context is gone, and its memory with it. */
void verify_lose(struct verify_baseline *baseline);

/* Locked. A launch that may have written and was not checked. */
void verify_skip(struct verify_baseline *baseline);
/* Locked. */
void verify_doubt(struct verify_baseline *baseline);
/* Locked. Ends a hold; frees a released baseline that nobody holds. */
void verify_unhold(struct verify_baseline *baseline);
/*
 * Locked. Drops the ops of a home whose results will not come (with `all`, also those that came). Puts ranges to give
 * back into a list of up to `max`; call again until it returns less than max.
 */
size_t verify_drop_ops(struct verify_home *home, bool all, struct range **ret_ranges, size_t max);

/*
 * verify_poll() without its look at whether there is anything. `last`: the newest op that is of interest, 0: the newest there is, which is then stored there. `ret_held`: some
 * of those are not told yet because another thread, or a caller of this one, is telling one.
 */
size_t verify_handle(uint64_t *last, bool *ret_held);

/* ---- verify_watch.c */

/*
 * Starts the watcher once. Signals are blocked in it. Not being able to is not an error: results then wait for the next
 * verify_poll().
 */
void verify_watch_start(void);
/* After in_flight grew: wakes the watcher if it sleeps. */
void verify_watch_wake(void);

#endif
