/*
 * Judging: does this call write into a protected range, and what is done about it? Ties registry, owners, suppressions, modes, verification and records together.
 * Thread-safe; no lock is held while the driver runs.
 */
#ifndef CUCONST_VERDICT_JUDGE_H
#define CUCONST_VERDICT_JUDGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shim/driver.h"
#include "shim/hook_state.h"

struct call;
struct memo_twins;

/* CUDA_SUCCESS: call the driver. Else the error that the program gets instead (deny). In strict this may end the process. */
CUresult judge_before(struct call *call);

/*
 * After the driver answered `result`: state tracking, records of what was written, checks on the device, baselines that move on, results of
 * earlier checks. Gives back what the call holds. Returns what the program gets: `result`.
 */
CUresult judge_after(struct call *call, CUresult result);

/* For what comes after a call that needed no judging: an error, and results of earlier checks. It ends the hook. */
void judge_again_looks(const char *api, CUresult result);

/* The same for a write of which write_asks() says that it is watched; it ends what that began. */
static inline CUresult judge_write_again(const char *api, CUresult result)
{
	if (HOOK_UNLIKELY(result != CUDA_SUCCESS || atomic_load_explicit(&hook_line.in_flight, memory_order_relaxed)))
		judge_again_looks(api, result);
	else
		hook_thread.depth--;
	return result;
}

/* The same for a launch of which memo_asks() says so. */
static inline CUresult judge_again(const char *api, CUresult result)
{
	hook_thread.launches += result == CUDA_SUCCESS;
	return judge_write_again(api, result);
}

/* The same for one that was given twins, and that the driver answered: its place is taken, and it is noted for faults. `stream`, `caller`: as in struct call. */
CUresult judge_swapped(enum entry_id entry, const struct memo_twins *twins, CUstream stream, void *caller,
                       CUresult result);

/*
 * A library call (cufftExecC2R ...) that writes [start, start + bytes) by its contract, before it is made. True: refuse it (deny), the record is
 * written. In log: false, what the driver then does is judged there. In strict this ends the process when something protected would be written.
 * `api` and `note` are static text.
 */
bool judge_library_write(const char *api, const char *note, uint64_t start, uint64_t bytes, void *caller);

struct range;
struct report_kernel;
struct look;
/* When the range's bytes were last looked at; and that they are now. */
struct look judge_looked(const struct range *range);
void judge_looks(struct range *range, struct look look);
/* Kernels that stored beside this range in launches since then: an array to be freed. NULL: none, or no memory. */
const struct report_kernel *judge_neighbours(const struct range *range, struct look since, size_t *ret_count);

struct verify_finding;
/* A check on the device found a change: for verify_init(). Any thread, also the watcher. */
void judge_finding(const struct verify_finding *finding);

struct judge_counts {
	uint64_t violations; /* recorded or folded, not suppressed */
	uint64_t denied;     /* of these, refused */
};
struct judge_counts judge_counts(void);
/* fork child: the parent's are its own. */
void judge_postfork_child(void);

#endif
