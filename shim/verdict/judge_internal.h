/*
 * Shared by judge.c (the way of a call, writes by contract) and judge_kernels.c (kernels); nobody else includes it.
 */
#ifndef CUCONST_VERDICT_JUDGE_INTERNAL_H
#define CUCONST_VERDICT_JUDGE_INTERNAL_H

#include "shim/effects/call.h"
#include "shim/effects/outer.h"
#include "shim/looks.h"
#include "shim/report/report.h"
#include "shim/verdict/judge.h"
#include "shim/verdict/verify.h"

/* One range that the call writes by contract. */
struct hit {
	struct range *range; /* a reference held */
	uint64_t start, end, bytes;
	const char *node; /* kind of graph node or NULL */
	bool permitted;   /* by its owner, or suppressed */
	bool maybe;       /* by nodes that may not run, all of them */
};

/* One range that a kernel with a slot in it may write. */
struct check {
	size_t slot; /* index in call->slots */
	bool owned;  /* the caller is its owner */
};

/* Between judge_before() and judge_after(). Without hits in the call itself, else on the heap. */
struct judgement {
	struct site site;
	struct outer outer;
	struct look look;     /* what checks find was written since the one before; own writes come behind it */
	struct check *checks; /* one block with targets */
	struct verify_target *targets; /* room for one of each check */
	size_t check_count;
	size_t hit_count;
	struct hit hits[];
};

/* May this writer write there? Owners are globs over library file names; unwinding was paid for already. */
bool judge_owned(const struct range *range, const struct site *site);

/* Writes the event about `range` (NULL: none in particular) and counts it. False: suppressed. */
bool judge_emit(struct report_event *event, struct range *range, enum report_action action, CUresult result);

/* Ranges that were written with permission: their baselines move on together. */
struct moved {
	struct range *ranges[32];
	size_t count;
};
void moved_flush(struct moved *moved, CUstream stream);
void moved_add(struct moved *moved, struct range *range, CUstream stream);

/* The kernel of a slot that is to be named, without the place. */
void judge_tell_slot(const struct entrypoint *entry, const struct call_slot *slot, struct report_kernel *ret);
/* The same with the place of the call. */
void judge_slot_kernel(const struct call *call, const struct call_slot *slot, struct report_kernel *ret);

/* Is the slot the only way by which some store of the kernel gets its address, and may its launch be refused? */
bool judge_refusable(const struct call_slot *slot);

/* deny: a kernel that would store into a range is refused before it is launched, or recorded to be. CUDA_SUCCESS: not refused. */
CUresult judge_refuse_kernels(const struct call *call);

/*
 * Finds the slots by which ranges are checked: of each range the first that may be stored through. A range that is written by contract needs no
 * check. False: no memory.
 */
bool judge_find_checks(const struct call *call);

/* Before the launch, for what launches since the last look may have written. */
void judge_verify_before(const struct call *call);

/* A launch ran that may have written the ranges of its checks: compares each with its baseline, in stream order. False: none. */
bool judge_verify_slots(const struct call *call);

/* After a launch of a graph with nodes that write into the range if they run. */
void judge_verify_maybe(const struct call *call, struct range *range);

#endif
