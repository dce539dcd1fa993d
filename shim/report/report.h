/*
 * Records: what happened, where it was called from, what was done about it. JSON lines and human text.
 *
 * report_emit() turns one event into one write(2) to the O_APPEND log and one to stderr. It never raises, never ends
 * the process, leaves errno alone, takes no CUDA call, and may be called from any thread, also the watcher. A log that
 * cannot be written is counted and said in the summary. Per-site limits fold repeats: the fold count is written with
 * the summary (and at powers of ten).
 */
#ifndef CUCONST_REPORT_REPORT_H
#define CUCONST_REPORT_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "registry/registry.h"
#include "shim/kernels/paths.h"
#include "shim/report/site.h"

enum report_kind {
	REPORT_VIOLATION,    /* bytes of a protected range are written by someone else than its owner */
	REPORT_INCONCLUSIVE, /* bytes differ, but a permitted write overlapped the check */
	REPORT_FREED,        /* protected memory was freed or unmapped: the protection ends */
	REPORT_ENDED,        /* a protection ended unverified (its context destroyed, its device's access taken away) */
};

enum report_evidence {
	EVIDENCE_NONE,
	EVIDENCE_WRITTEN /* the call's contract */,
	EVIDENCE_CHANGED /* the bytes differ */
};

enum report_action {
	ACTION_LOGGED,  /* the write went through */
	ACTION_DENIED,  /* refused before the damage */
	ACTION_STOPPED, /* strict: the process ends */
	ACTION_NONE,
};

/*
 * What a kernel's code says about the slot that holds the address. Zeroed: nobody asked. All of it is static or lives
 * for ever.
 */
struct report_code {
	const char *verdict;              /* "stores", "near", "unknown" */
	const char *reason;               /* why it is unknown; NULL */
	const struct kernel_paths *paths; /* where its stores are listed; NULL */
	uint32_t slot;                    /* of `paths` */
};

/* A kernel that wrote, or may have. */
struct report_kernel {
	const char *name; /* raw symbol, interned; NULL when unknown */
	int argument;     /* parameter index that holds the protected address; -1 when unknown */
	uint32_t offset;  /* byte offset of the slot inside that parameter */
	uint64_t value;   /* the address in the slot */
	const char *api;  /* the driver call that launched it, static text */
	struct report_code code;
	struct site site; /* of the launch */
};

/* One event. Pointers need to live for the call only. Zero what does not apply. */
struct report_event {
	enum report_kind kind;
	enum report_evidence evidence;
	enum report_action action;
	const char *fault; /* a store through a read-only mapping ended the context: the call that was told, static text; NULL: no such thing */
	const char *api;       /* driver entry point, e.g. "cuMemcpyDtoD_v2" */
	const char *outer_api; /* outermost hooked runtime or library call, e.g. "cufftExecC2C"; NULL: none; of a launch by the runtime its stack tells, when the event is told */
	const char *outer_note;              /* its guilty argument, e.g. "idata=odata"; NULL */
	const struct range *range;           /* NULL only for a call that concerns no single range */
	uint64_t written_start, written_end; /* first and last + 1 byte known to be written or changed inside the range */
	uint64_t written_bytes;              /* of these, how many; 0: unknown */
	bool written_exact;                  /* false: to 4 KiB chunks */
	const struct report_kernel *kernel;     /* the writer, or NULL */
	const struct report_kernel *candidates; /* others that may have written; graph: its nodes */
	size_t candidate_count;
	bool inside_outer;            /* a call that was refused inside outer_api: */
	uint64_t earlier_launches;    /* how many launches that call had made before */
	uint64_t unverified_launches; /* launches before this one that were not checked and may be the writer */
	uint64_t stream;              /* handle as a number */
	uint64_t graph;               /* CUgraphExec as a number, 0: none */
	const char *graph_node; /* for a graph: "memset", "memcpy", "kernel", ... of the guilty node when certain; NULL */
	int device;             /* ordinal; -1 unknown */
	int result;             /* CUresult the program got; 0 success */
	const struct site *site; /* of the call; NULL: none */
};

/* Where it was called from: the event's own site, else that of the launch. NULL: not known. */
static inline const struct site *report_event_site(const struct report_event *event)
{
	return event->site ? event->site : event->kernel ? &event->kernel->site : NULL;
}

/* Counters of the last line; filled by the caller. */
struct report_summary {
	uint64_t ranges_ever, ranges_live, bytes_live;
	uint64_t calls, launches, graph_launches, checked, verified, violations, denied, inconclusive, unverified,
		suppressed;
	uint64_t clean, near, unknown, stores; /* of the launches, by what the kernel's code says */
	uint64_t ended_unverified;
	const char *blind; /* what could not be seen in this run, e.g. "2 unknown entry points; RTLD_DEEPBIND library libcufftMp.so"; NULL: nothing known */
};

/*
 * Opens the outputs by the options (verdict/options.h). Call once, lazily. Never fails: without a log it goes on on
 * stderr, and says so.
 */
void report_open(void);

/*
 * Writes one event, unless a suppression matches. Returns true when it was recorded or folded, false when suppressed
 * (then nothing is counted as a violation, and `deny` and `strict` let it pass). The first lines of the text say what
 * wrote, into which range, from which Python line.
 */
bool report_emit(const struct report_event *event);

/* As report_emit() decides, without writing: is this event suppressed? For `deny`, before the call is refused. */
bool report_suppressed(const struct report_event *event);

/* The last record. Safe to call once, at exit or before _exit. */
void report_close(const struct report_summary *summary);

/*
 * One line on stderr, "cuconst: ...", at most once per distinct format string, at most 32 of them. For trouble of the
 * shim itself.
 */
void report_note(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* After fork in the child: a log of its own (new %p), counters at zero. */
void report_postfork_child(void);

#endif
