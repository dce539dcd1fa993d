/*
 * Functions of libraries' kernels that were told of (kernels/images.h), as far as nothing has changed since then: some libraries ask for one before each launch, so that this is asked as often
 * as launches are judged. By hook_stamp(), which says when a function may be another one. Thread-safe; no lock, no allocation.
 */
#ifndef CUCONST_EFFECTS_TOLD_H
#define CUCONST_EFFECTS_TOLD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "shim/hook_state.h"

/* Two that share a place take turns, at the cost of another question. */
#define TOLD_BITS 10
struct told_marks {
	_Atomic uint64_t marks[1u << TOLD_BITS];
};

#pragma GCC visibility push(hidden)
extern _Atomic(struct told_marks *) told_now; /* never NULL */
#pragma GCC visibility pop

/* With the first protection: from now on the marks lie where launches look. Not in two threads at a time. */
void told_start(void);

static inline _Atomic uint64_t *told_place(const void *function, uint64_t stamp, uint64_t *ret_mark)
{
	uint64_t mixed = (uintptr_t)function * UINT64_C(0x9e3779b97f4a7c15);
	*ret_mark = mixed ^ stamp;
	return &atomic_load_explicit(&told_now, memory_order_acquire)->marks[mixed >> (64 - TOLD_BITS)];
}

static inline bool told_has(const void *function)
{
	uint64_t mark;
	return atomic_load_explicit(told_place(function, hook_stamp(), &mark), memory_order_relaxed) == mark;
}

/* `stamp`: read before it was known that the function had been told of. */
static inline void told_add(const void *function, uint64_t stamp)
{
	uint64_t mark;
	_Atomic uint64_t *place = told_place(function, stamp, &mark);
	atomic_store_explicit(place, mark, memory_order_relaxed);
}

#endif
