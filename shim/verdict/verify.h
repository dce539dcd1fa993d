/*
 * Verification: did a range's bytes change? Digests and snapshots on the device, compared in stream order, results through a pinned ring.
 *
 * Ranges up to VERIFY_SNAPSHOT_MAX bytes are kept as a copy, so extents are exact to the byte; larger ones as one 128-bit digest
 * for each VERIFY_CHUNK bytes. The baseline moves on: a finding makes the new content the baseline, and verify_refresh()
 * does so after a permitted write. Nothing is issued while the stream is capturing, no event crosses streams, nothing is loaded at a launch.
 * VERIFY.md has the protocol.
 */
#ifndef CUCONST_VERDICT_VERIFY_H
#define CUCONST_VERDICT_VERIFY_H

#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "registry/registry.h"
#include "shim/report/report.h"

#define VERIFY_CHUNK 4096u
#define VERIFY_SNAPSHOT_MAX 65536u

/* The driver calls that verification needs; filled by doors/ (tests hand in a fake). All are the _v2 forms where there are two. */
struct verify_driver {
	CUresult (*ctx_get_current)(CUcontext *);
	CUresult (*ctx_push)(CUcontext);
	CUresult (*ctx_pop)(CUcontext *);
	CUresult (*ctx_synchronize)(void);
	CUresult (*module_load_data)(CUmodule *, const void *);
	CUresult (*module_get_function)(CUfunction *, CUmodule, const char *);
	CUresult (*mem_alloc)(CUdeviceptr *, size_t);
	CUresult (*mem_free)(CUdeviceptr);
	/* May be NULL. Preferred to mem_host_alloc: pages of our own stay readable when the driver takes itself down at exit. */
	CUresult (*mem_host_register)(void *, size_t, unsigned);
	CUresult (*mem_host_alloc)(void **, size_t, unsigned);
	CUresult (*mem_host_get_device_pointer)(CUdeviceptr *, void *, unsigned);
	CUresult (*stream_create)(CUstream *, unsigned);
	CUresult (*stream_synchronize)(CUstream);
	CUresult (*stream_is_capturing)(CUstream, CUstreamCaptureStatus *);
	CUresult (*launch_kernel)(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
	                          CUstream, void **, void **);
	CUresult (*exchange_capture_mode)(CUstreamCaptureMode *);
};

/* Who may have written: what a check is made for. Copied into the pending check. */
struct verify_writer {
	const char *api;       /* "cuLaunchKernel", "cuGraphLaunch", ... static text */
	const char *outer_api; /* static or interned text, NULL: none */
	const char *outer_note;
	struct report_kernel kernel;            /* the launch; name NULL for a graph */
	const struct report_kernel *candidates; /* a graph's nodes that hold an address in the range; copied */
	size_t candidate_count;
	uint64_t stream, graph;
	uint64_t launches_before; /* launches since the bytes were last looked at: one of them may be the writer */
	int device;
	struct site site;
};

/* A finished check that found a change; called from verify_poll() in any thread, with no lock of verify held. */
struct verify_finding {
	struct range *range; /* a reference held for the call */
	const struct verify_writer *writer;
	const struct verify_writer *others; /* checks in flight on other streams at the same time: candidates */
	size_t other_count;
	uint64_t written_start, written_end, written_bytes;
	bool exact;
	bool inconclusive; /* a permitted write overlapped the check */
	uint64_t unverified_launches;
};

/* Sets up tables; no driver call. Call once. `finding` is called for each change found. */
void verify_init(const struct verify_driver *driver, void (*finding)(const struct verify_finding *finding));

/*
 * Takes a baseline of [start, end) in the current context: loads the device code there if this is the first, allocates, launches the digest
 * and waits for it. stream != NULL (with has_stream): in order after that stream's work; else the context is synchronised first.
 * While a capture runs in this process (verify_capture_began) the baseline is put off until it ended. Returns CUDA_SUCCESS and the attachment for
 * registry_spec.attachment, or the driver's error with *ret_attachment untouched.
 */
CUresult verify_attach(uint64_t start, uint64_t end, bool has_stream, CUstream stream, void **ret_attachment);

/* registry_hooks.release: gives the baseline's memory back to the pool (kept for the next range; no driver call). */
void verify_release(void *attachment);

/*
 * After a launch (or graph launch, or call) by `writer` in `stream` that may have written the ranges: compares each with its baseline in stream
 * order. Ranges without attachment are skipped. Does nothing, and counts it, when the stream is capturing or the ring is full.
 * Preserves the caller's current context and capture mode. Returns how many checks were issued.
 */
size_t verify_after(const struct verify_writer *writer, struct range *const *ranges, size_t count, CUstream stream);

/* One range of a launch, and what of the writer is this range's own. */
struct verify_target {
	struct range *range;
	const char *kernel; /* interned; NULL: no single kernel (a graph), and the next four are unused */
	int argument;
	uint32_t offset;
	uint64_t value;
	struct report_code code;
	const struct report_kernel *candidates; /* copied */
	size_t candidate_count;
	uint64_t launches_before;
	int device;
};

/*
 * verify_after() for ranges that name different arguments: each check has the writer with its own target's members in
 * place of the writer's. All checks go out together, VERIFY_JOBS to a launch.
 */
size_t verify_after_each(const struct verify_writer *writer, const struct verify_target *targets, size_t count,
                         CUstream stream);

/* After a permitted write in `stream`: the content there and then becomes the baseline. */
void verify_refresh(struct range *const *ranges, size_t count, CUstream stream);

/* Handles results that have arrived; returns how many. Cheap when there are none (one load). No driver call. */
size_t verify_poll(void);

/*
 * The memory of these ranges is about to go, and the driver waits for no work that is in flight: waits until no check or refresh reads it any more, or `ms` have passed.
 * False: one does.
 */
bool verify_settle(struct range *const *ranges, size_t count, uint64_t ms);

/*
 * verify_poll() that leaves nothing out: results that had come back when it was called are told when it returns, those too that another thread has in hand (the watcher
 * may have taken one and not yet written its record, nor counted it), and those that stand behind them. Gives up after 2 s, since stderr may be a pipe that nobody
 * reads. One load when nothing is in flight. Not from inside `finding`.
 */
void verify_catch_up(void);

/* Polls until nothing is pending or `ms` have passed. Returns how many are still pending. No driver call. */
size_t verify_drain(uint64_t ms);

/*
 * Synchronous check of one range: waits for the context, compares, reports through `finding` (with `writer`). *ret_changed tells.
 * CUDA_ERROR_NOT_SUPPORTED: no baseline. CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED: a capture runs, nothing was done. CUDA_ERROR_CONTEXT_IS_DESTROYED: the
 * baseline went with its context. Else the driver's error. *ret_changed is untouched on failure.
 */
CUresult verify_now(struct range *range, const struct verify_writer *writer, bool *ret_changed);

/*
 * A capture is about to begin, or ended or did not begin after all, somewhere in the process: puts off, then takes, baselines. The beginning waits
 * for threads that wait for the device, 2 s at most. The last end waits for the device if there are any to take: call it after the driver's call
 * returned, with no lock held.
 */
void verify_capture_began(void);
void verify_capture_ended(void);

/* A context is about to be destroyed: its baselines and pending checks are dropped (counted as unverified). */
void verify_context_gone(CUcontext context);

struct verify_counts {
	uint64_t verified, unverified, inconclusive, pending;
};
struct verify_counts verify_counts(void);

/* After fork in the child: forget everything, start no thread. */
void verify_postfork_child(void);

#endif
