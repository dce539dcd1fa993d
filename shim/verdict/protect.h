/*
 * The protections of this process: the registry, and what belongs to a range besides its bytes. protect.c makes and ends them (it holds the
 * C API of cuconst.h). Thread-safe.
 */
#ifndef CUCONST_VERDICT_PROTECT_H
#define CUCONST_VERDICT_PROTECT_H

#include <stdbool.h>
#include <stdint.h>

#include "registry/registry.h"
#include "shim/cuconst.h"
#include "shim/driver.h"

struct call;

/* The registry; NULL before lifecycle_start(). */
struct registry *protect_ranges(void);

/* Makes it. 0 or -ENOMEM. */
int protect_start(void);

/* The device ordinal of a range; -1 when unknown. Kept in the upper half of range->flags. */
static inline int range_device(const struct range *range)
{
	return (int)(range->flags >> 16) - 1;
}

/* The memory of call->ended is gone, or (`freed` false) not its device's any more: their protections end, each with a record. */
void protect_memory_ended(struct call *call, bool freed);

/*
 * A context is about to end: calls are not judged against its ranges from here on. Then it is gone with all its memory, or (`ending` false) was kept.
 */
void protect_context_ending(CUcontext context, bool ending);
void protect_context_ended(struct call *call, CUcontext context);

/* A module is gone with its variables: ends the protections of memory that is no more. */
void protect_variables_ended(struct call *call);

/* Was anything protected in this process, ever? One load. */
bool protect_used(void);

/* In the upper bits of what range->flags keeps of the caller's: the range is a twin's, see protect_add_twin(). */
#define RANGE_TWIN 0x8000u

/*
 * [start, start + bytes) is a twin's: nobody may write there, and it has no baseline, as its bytes are another range's. Not counted among the protections.
 * Returns its handle; 0: no memory. protect_end_twin() ends it.
 */
uint64_t protect_add_twin(uint64_t start, uint64_t bytes, int device);
void protect_end_twin(uint64_t handle);

/* Can protections be made in this process? */
bool protect_active(void);

/* Keeps a driver's error for cuconst_last_cuda_error(), and returns `answer`. */
cuconst_result protect_cuda_failed(CUresult result, cuconst_result answer);

/*
 * Makes the right context current for work on that memory: the memory's own; else the current one if it is on that device; else the device's
 * primary context, when it is alive. *ret_pushed says whether to pop.
 */
CUresult protect_enter_context(int device, CUcontext context, CUcontext *ret_context, bool *ret_pushed);

struct protect_totals {
	uint64_t ranges_ever, ranges_live, bytes_live, ended_unverified;
};
struct protect_totals protect_totals(void);

/*
 * The last look at what is still protected: issues a check of every range and does not wait, since a kernel may never end;
 * verify_drain() does, for a while. Call it once, before the driver is gone.
 */
void protect_check_at_exit(void);

/* fork child: every protection is forgotten, as CUDA is unusable there. */
void protect_postfork_child(void);
void protect_prefork(void);
void protect_postfork_parent(void);

#endif
