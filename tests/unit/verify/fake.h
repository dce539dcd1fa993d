/*
 * A driver for verification's tests: device memory is host memory, kernels are reference.c. Launches run at once, or,
 * when deferred, in the order of their stream as the test says, so that every overlap can be made to happen.
 */
#ifndef TESTS_UNIT_VERIFY_FAKE_H
#define TESTS_UNIT_VERIFY_FAKE_H

#include "shim/verdict/verify.h"

#define FAKE_CONTEXT(n) ((CUcontext)(uintptr_t)(0x1000 + (n)))
#define FAKE_STREAM(n) ((CUstream)(uintptr_t)(0x100 + (n)))

/* Everything back to the start; the calling thread has FAKE_CONTEXT(0) current. `finding` as for verify_init(). */
void fake_start(void (*finding)(const struct verify_finding *));
/* Gives device memory back. */
void fake_stop(void);
const struct verify_driver *fake_driver(void);

void fake_defer(bool deferred);
/* Runs up to `count` pieces of work of a stream, or all there is everywhere. Returns how many ran. */
size_t fake_run(CUstream stream, size_t count);
size_t fake_run_all(void);
/* Work of the program itself: writes `bytes` bytes of `value`, in stream order. */
void fake_write(CUstream stream, uint64_t address, uint8_t value, size_t bytes);

void fake_capture(CUstream stream, bool capturing);

/* The calling thread's current context. */
void fake_set_current(CUcontext context);
CUcontext fake_current(void);
CUstreamCaptureMode fake_mode(void);

/* Driver call number `call` from now (1: the next) returns `error`, and, if `sticky`, all later ones too. 0: none. */
void fake_fail(unsigned call, CUresult error, bool sticky);
/* Only launches fail. */
void fake_fail_launches(CUresult error);
/* Called in each launch before it returns: stands for what other threads do meanwhile. */
void fake_during_launch(void (*function)(void));
/* mem_host_register refuses. */
void fake_refuse_register(bool refuse);

struct fake_counts {
	unsigned calls, launches, allocations, loads, synchronisations;
	unsigned live;      /* device allocations not given back */
	unsigned forbidden; /* calls that would have broken a capture, or came with verify's lock held */
	unsigned jobs;
	unsigned legacy;        /* launches into the legacy stream */
	unsigned wrong_context; /* a launch in a context that is not its function's */
};
struct fake_counts fake_counts(void);
/* Switched off for tests with several threads, where others may rightly hold the lock. */
void fake_check_lock(bool check);

/* Ranges with a count of references. */
struct range *fake_range(uint64_t start, uint64_t end, void *attachment);
int fake_references(const struct range *range);
/* Gives back the test's own reference: the last one calls verify_release(). Returns true when it was the last. */
void fake_drop(struct range *range);
int fake_live_ranges(void);

#endif
