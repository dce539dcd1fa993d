/*
 * What every hook looks at first: is anything protected, is this thread inside a hook already; and the counts of calls.
 * A leaf: every folder of shim/ may include it.
 */
#ifndef CUCONST_HOOK_STATE_H
#define CUCONST_HOOK_STATE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HOOK_UNLIKELY(x) __builtin_expect(!!(x), 0)
#define HOOK_LIKELY(x) __builtin_expect(!!(x), 1)
/* What a launch near protected memory runs through lies together: between two launches a program fills the caches with its own code. */
#define HOOK_HOT __attribute__((hot))
/*
 * What a launch that was judged before runs through lies in one page: between two launches a program goes through many, and to find one again costs more than to run it.
 * The linker sorts by `part`: first is what begins the page.
 */
#define HOOK_PAGE(part) __attribute__((section(".text.sorted.hook_page_" part)))
#define HOOK_PAGE_BEGINS __attribute__((aligned(4096)))
/* Not inlined there: what few launches need. */
#define HOOK_COLD __attribute__((noinline, cold))
/* So do the variables that it looks at and that change rarely: a section of its own, or the linker would scatter them. */
#define HOOK_DATA __attribute__((section("hook_data")))

/* Nobody else's: reached without the global offset table, which would be one more cache line for each call of a program that has other use for its cache. */
#pragma GCC visibility push(hidden)

enum hook_counter {
	COUNT_CALL,   /* copies, sets, memory operations */
	COUNT_LAUNCH, /* kernel launches */
	COUNT_GRAPH_LAUNCH,
	COUNT_CHECKED,  /* of all these, judged against at least one range */
	COUNT_UNJUDGED, /* could not be judged: parameters unknown */
	/* Of launches, those with an address in an allocation that holds a protected range; in the order of enum kernel_verdict. What is known to be clean is not looked at again, and not counted. */
	COUNT_CLEAN,
	COUNT_NEAR,
	COUNT_UNKNOWN,
	COUNT_STORES,
	COUNT_KINDS
};

/* One thread's counts: written by that thread alone, so an increment needs no locked instruction. */
struct hook_counts {
	_Atomic uint64_t of[COUNT_KINDS];
	_Atomic bool taken;
};
/* For all threads that found none of their own. */
extern struct hook_counts hook_counts_shared;

/* The outermost hooked runtime or library call on this thread: effects/outer.h. */
struct outer {
	const char *api;   /* static text; NULL: none */
	const char *note;  /* the guilty argument by the call's contract, e.g. "idata=odata"; static text or NULL */
	void *caller;      /* return address of the outermost call */
	uint64_t launches; /* hook_thread.launches when it began; in a copy how many it has made so far: outer_now() */
};

/* This thread's state, in one cache line; initial-exec, so that reaching it costs one instruction. */
struct hook_thread {
	struct hook_counts *counts; /* NULL before the first call */
	unsigned depth;             /* inside a hook: the driver called us back */
	uint64_t launches;          /* of kernels and graphs, that the driver took while something was protected */
	struct outer outer;
	struct memo_course *course; /* effects/launch_memo.c's; NULL: none yet */
} __attribute__((aligned(64)));
extern __thread struct hook_thread hook_thread __attribute__((tls_model("initial-exec")));

/* Gives this thread counts of its own, if there are any left; they go back, with their values, when the thread ends. */
struct hook_counts *hook_counts_claim(void);

/* The sum over all threads, living and dead. */
uint64_t hook_counted(enum hook_counter counter);

/* fork child: all counts at zero. */
void hook_counts_reset(void);

/* This thread's own counts, NULL: none yet, or it has to share; and a count of them. */
static inline struct hook_counts *hook_counts_own(void)
{
	struct hook_counts *counts = hook_thread.counts;
	return HOOK_LIKELY(counts != &hook_counts_shared) ? counts : NULL;
}

static inline void hook_count_own(struct hook_counts *counts, enum hook_counter counter)
{
	uint64_t value = atomic_load_explicit(&counts->of[counter], memory_order_relaxed);
	atomic_store_explicit(&counts->of[counter], value + 1, memory_order_relaxed);
}

static inline void hook_count(enum hook_counter counter)
{
	struct hook_counts *counts = hook_thread.counts;
	if (HOOK_UNLIKELY(!counts))
		counts = hook_counts_claim();
	if (HOOK_UNLIKELY(counts == &hook_counts_shared)) {
		atomic_fetch_add_explicit(&counts->of[counter], 1, memory_order_relaxed);
		return;
	}
	hook_count_own(counts, counter);
}

/* What each launch looks at while something is protected: a cache line that is seldom written, and one that is often. */
struct hook_line {
	_Atomic bool armed;       /* something is protected and the shim is active in this process */
	_Atomic bool names;       /* option `names`: runtime and library calls are named; verdict/lifecycle.c's */
	_Atomic bool twins_noted; /* launches were given twins, or addresses in read-only views: verdict/fault_notes.c's */
	_Atomic int captures;     /* that run in this process: effects/capture.c's */
	_Atomic uint64_t in_flight; /* checks and refreshes whose result is not told yet: verdict/verify_ops.c's */
	_Atomic uint64_t low, high; /* bounds of the allocations that hold protected ranges: verdict/neighbours.c's */
	_Atomic uint64_t stamp;     /* hook_stamp() */
	_Atomic(struct memo_tables *) memo;  /* effects/launch_memo.c's; NULL: none */
	_Atomic(struct granules *) granules; /* verdict/granules.h's */
	/*
	 * Memory of cuMemAlloc is served (twins/serve.h): the driver no longer knows where allocations end, so copies and sets are held to that here.
	 * twins/serve_memo.h's; NULL: none is.
	 */
	_Atomic(struct serve_memo *) served;
	/* In a line of their own, since checks and launches beside ranges write them: looks.h. */
	_Atomic uint64_t looks, noted; /* at protected bytes so far; launches since then */
} __attribute__((aligned(64)));
extern struct hook_line hook_line;
_Static_assert(offsetof(struct hook_line, looks) == 64, "what is seldom written fills one line");

/*
 * Changes with all that a launch's answer hangs on but the launch itself: protections and their ends, the allocations that hold them, twins, which function a handle means. What was worked out
 * after it was read holds as long as it is the same.
 */
static inline uint64_t hook_stamp(void)
{
	return atomic_load_explicit(&hook_line.stamp, memory_order_acquire);
}

/* After such a change, and before whoever made it goes on. */
static inline void hook_stamp_renew(void)
{
	atomic_fetch_add_explicit(&hook_line.stamp, 1, memory_order_release);
}

/* Something is protected in this process, or was: results of checks may be on their way, and launches with twins in flight. */
extern _Atomic bool hook_used;
/* Nothing is tracked or judged: could not start, or a fork child of a process that used CUDA. */
extern _Atomic bool hook_disabled;

/* Nothing to judge: one relaxed load, and this thread's depth. */
static inline bool hook_idle(void)
{
	return !atomic_load_explicit(&hook_line.armed, memory_order_relaxed) || hook_thread.depth;
}

/* A launch is to be judged, unless it was before. */
static inline bool hook_near(void)
{
	return HOOK_LIKELY(atomic_load_explicit(&hook_line.armed, memory_order_relaxed) && !hook_thread.depth);
}

static inline bool hook_serves(void)
{
	return atomic_load_explicit(&hook_line.served, memory_order_relaxed);
}

/* The same for calls that write themselves. */
static inline bool hook_write_idle(void)
{
	return (!atomic_load_explicit(&hook_line.armed, memory_order_relaxed) && !hook_serves()) || hook_thread.depth;
}

/* For questions that only served memory answers in another way than the driver. */
static inline bool hook_serve_idle(void)
{
	return !hook_serves() || hook_thread.depth;
}

/* For synchronisations, which collect what earlier checks found. */
static inline bool hook_unused(void)
{
	return !atomic_load_explicit(&hook_used, memory_order_relaxed) ||
	       atomic_load_explicit(&hook_disabled, memory_order_relaxed) || hook_thread.depth;
}

/* Nothing to track either. */
static inline bool hook_bypassed(void)
{
	return atomic_load_explicit(&hook_disabled, memory_order_relaxed) || hook_thread.depth;
}

/*
 * The whole of most calls: nothing to judge, counted, on to the driver, as a jump with no frame of our own. False: the long way, which counts it.
 */
static inline bool hook_passes(enum hook_counter counter, bool idle)
{
	if (HOOK_UNLIKELY(!idle))
		return false;
	struct hook_counts *counts = hook_counts_own();
	if (HOOK_UNLIKELY(!counts))
		return false;
	hook_count_own(counts, counter);
	return true;
}

#pragma GCC visibility pop

#endif
