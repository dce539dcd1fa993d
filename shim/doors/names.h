/*
 * Runtime and library functions that are hooked by name, so that a record can say what the program called. names.def is
 * their table.
 */
#ifndef CUCONST_DOORS_NAMES_H
#define CUCONST_DOORS_NAMES_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shim/effects/outer.h"
#include "shim/hook_state.h"

/* CUDA runtime structs that are passed by value; the build needs cuda.h only. */
struct runtime_pitched {
	void *ptr;
	size_t pitch, xsize, ysize;
};
struct runtime_extent {
	size_t width, height, depth;
};

#include "names_table.h"

enum names_library { NAMES_CUDART, NAMES_CUFFT, NAMES_LIBRARIES };

/* Answered when the real function is nowhere: such a call cannot be made without this library, it would not link. */
#define NAMES_MISSING_CUDART 302 /* cudaErrorSharedObjectSymbolNotFound */
#define NAMES_MISSING_CUFFT 5    /* CUFFT_INTERNAL_ERROR */

struct name {
	const char *symbol; /* static */
	enum names_library library;
	void *hook;
};

/* Sorted by symbol. */
extern const struct name names[NAME_COUNT];

/* The row of a symbol; NAME_COUNT: none. */
enum name_id name_find(const char *symbol);

/* How the library's file name begins: "libcudart.so". Static. */
const char *name_library(enum name_id id);

/*
 * The look-up of a symbol by handle gave `found`: returns our hook when it belongs to the library of that name and the
 * hook would call exactly this function for `caller`; else `found`.
 */
void *name_swap(enum name_id id, void *found, const void *caller);

/*
 * One calling object. Never freed: their number is bounded by what the program loads, and where. One that was unloaded
 * is no more (0 bytes), until an object of its extent is loaded in its place.
 */
struct name_caller {
	uintptr_t start;
	_Atomic uintptr_t bytes;          /* its extent, or 0 */
	_Atomic(void *) real[NAME_COUNT]; /* NULL: not asked for yet */
	uintptr_t extent;
	_Atomic(const void *) dynamic; /* its dynamic section, which another object in its place has elsewhere; NULL: no object */
	struct name_caller *next;
} __attribute__((aligned(128))); /* two lines are fetched together */

#pragma GCC visibility push(hidden)
/* Who called each function last. */
extern _Atomic(struct name_caller *) names_last[NAME_COUNT];
#pragma GCC visibility pop

/* The real function, when the caller is the one that called last. NULL: to be found out. */
static inline void *name_of_last(enum name_id id, const void *caller)
{
	const struct name_caller *last = atomic_load_explicit(&names_last[id], memory_order_acquire);
	if (HOOK_UNLIKELY(!last ||
	                  (uintptr_t)caller - last->start >= atomic_load_explicit(&last->bytes, memory_order_relaxed)))
		return NULL;
	return atomic_load_explicit(&last->real[id], memory_order_relaxed);
}

/* The same, whoever called last. NULL: there is none. */
void *name_real(enum name_id id, const void *caller);

/* Is a call that begins now to be named: something is protected, and no other call is around it? */
static inline bool name_wanted(void)
{
	return HOOK_UNLIKELY(atomic_load_explicit(&hook_line.armed, memory_order_relaxed)) &&
	       atomic_load_explicit(&hook_line.names, memory_order_relaxed) && !hook_thread.outer.api;
}

/* After a call: no jump stands for it. */
#define NAME_NO_JUMP(result) __asm__ volatile("" : "+r"(result))

/* It is, from here to name_end() on the same thread. `api`: static text. */
static inline void name_begin(const char *api, void *caller)
{
	hook_thread.outer = (struct outer){.api = api, .caller = caller, .launches = hook_thread.launches};
}

static inline void name_end(void)
{
	hook_thread.outer = (struct outer){0};
}

/* All of it, for hooks that do more than that. NULL: there is no real function, and nothing has begun. */
struct name_scope {
	bool outermost;
};

static inline void *name_enter(struct name_scope *scope, enum name_id id, void *caller)
{
	void *real = name_real(id, caller);
	scope->outermost = real && name_wanted();
	if (scope->outermost)
		name_begin(names[id].symbol, caller);
	return real;
}

static inline void name_leave(const struct name_scope *scope)
{
	if (scope->outermost)
		name_end();
}

#endif
