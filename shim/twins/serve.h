/*
 * Serving: with the option twins=all the memory that a program gets from cuMemAlloc comes from virtual memory
 * management, so that it can have read-only twins. SERVE.md says what stays as it was and what differs. The calls
 * themselves are in serve_calls.h.
 *
 * Thread-safe. No lock is held while the driver or an event is called. None of these functions may be called from a
 * signal handler.
 */
#ifndef CUCONST_TWINS_SERVE_H
#define CUCONST_TWINS_SERVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shim/driver.h"

/*
 * What whoever mirrors mappings has to know of served memory: the calls that make it pass the hooks by. Any may be
 * NULL. Each runs in the thread whose call made it necessary, without a lock of serving's own, so they may call the
 * driver, and serve_range().
 */
struct serve_events {
	/*
	 * [base, base + bytes) is one reservation of addresses of its own, with one mapping, of the whole of `handle`,
	 * readable and writable by its device and by the peers that have access to its context. The handle is serving's
	 * own and lives until unmapped() has returned: no reference needs to be taken.
	 */
	void (*mapped)(CUdeviceptr base, size_t bytes, CUmemGenericAllocationHandle handle);
	/* The same range is about to be unmapped: aliases must be gone when this returns. All work on it is done. */
	void (*unmapping)(CUdeviceptr base, size_t bytes);
	/* It is unmapped (or, `done` false, the driver refused), and its addresses are about to be given back. */
	void (*unmapped)(CUdeviceptr base, size_t bytes, bool done);
	/* Other devices may access it than before. */
	void (*access_changed)(CUdeviceptr base, size_t bytes);
};

/*
 * Starts serving: for twins=all, once, before the first call arrives. `events` are copied; NULL: none. Without this
 * call, or where the driver lacks virtual memory management, everything passes through.
 */
void serve_init(const struct serve_events *events);

/* Was a context ever seen that may be served, or reach what is served? One load. */
bool serve_used(void);

/*
 * The allocation that holds `address`, as the program knows it: what cuMemGetAddressRange answers, also for memory that
 * shares its mapping with others. For memory that is not served this asks the driver. To be used in place of
 * drv.cuMemGetAddressRange_v2; an output may be NULL.
 */
CUresult serve_range(CUdeviceptr *ret_base, size_t *ret_bytes, CUdeviceptr address);

/*
 * Does a write of [start, end), not empty, begin in served memory and leave its allocation, or is there none? The
 * driver would refuse that in plain memory; here it sees a mapping which goes on.
 */
bool serve_overrun(CUdeviceptr start, CUdeviceptr end);

/*
 * Was SYNC_MEMOPS ever set for served memory? Then copies and sets that are not asynchronous are to have ended when
 * they return, as far as we can tell: the driver does not keep that attribute for mapped memory.
 */
bool serve_synchronous(void);

/*
 * The context of a served allocation that holds `address`; NULL: not served. The driver answers NULL for all mapped
 * memory.
 */
CUcontext serve_context(CUdeviceptr address);

/* A context is gone (or emptied by a reset), and with it all memory that it was given. After the driver's call. */
void serve_context_ended(CUcontext context);

/* What serving holds; for tests. */
struct serve_counts {
	uint64_t pieces, piece_bytes; /* live allocations of the program */
	uint64_t blocks, block_bytes; /* mappings */
	uint64_t kept_bytes;          /* of these, empty ones that wait for their next use */
	uint64_t waiting;             /* freed while no synchronisation was possible: not yet used again */
};
struct serve_counts serve_counts(void);

/* Around fork: the child finds the lock free. It never serves when its parent had initialised CUDA. */
void serve_prefork(void);
void serve_postfork_parent(void);
void serve_postfork_child(void);

#endif
